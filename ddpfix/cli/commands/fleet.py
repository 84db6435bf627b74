"""`ddpfix fleet`: one question to thousands of repositories, and their pull requests at a pace."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import Commands, app
from ddpfix.cli.asking import words
from ddpfix.cli.ends import CLEAN, FINDINGS, CommandError
from ddpfix.cli.showing import note, plain, show

if TYPE_CHECKING:
    from ddpfix.bot.repositories import Bot
    from ddpfix.fleet.drive import Tell
    from ddpfix.fleet.ledger import Ledger, Taken
    from ddpfix.fleet.result import Result

fleet_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Ask thousands of repositories one question, and repair them at a pace."
)
app.add_typer(fleet_app, name="fleet")

LedgerFile = Annotated[Path, typer.Option("--ledger", help="The file that holds the campaign, on this machine's own disk.")]
OURS = Path("ddpfix-fleet.sqlite")
Format = Annotated[str, typer.Option("--output-format", help="text or json.")]
ForgeName = Annotated[str, typer.Option("--forge", help="github or gitlab.")]
ApiUrl = Annotated[str, typer.Option("--api-url", help="Of a server of your own.", show_default=False)]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="Else DDPFIX_TOKEN, GITHUB_TOKEN or GITLAB_TOKEN.")]
Author = Annotated[str, typer.Option("--author", help="`Name <address>` of the commits.", show_default=False)]
StateFolder = Annotated[Path | None, typer.Option("--state", help="The bot's own folder; else DDPFIX_STATE, ~/.local/state.")]


@fleet_app.command("plan")
def plan(
    repositories: Annotated[Path, typer.Argument(metavar="REPOS.txt", help="A path, an address or OWNER/NAME a line.")],
    ledger: LedgerFile = OURS,
    name: Annotated[str, typer.Option("--name", help="Of the campaign.")] = "ddpfix",
    select: Annotated[list[str] | None, typer.Option("--select", help="Only these codes or topics.")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Leave these codes or topics out.")] = None,
    server: Annotated[str, typer.Option("--server", help="Where OWNER/NAME lies.")] = "https://github.com",
) -> None:
    """Write down a campaign: what is asked, and of which repositories. Planned again, it keeps what is done."""
    from ddpfix import catalog
    from ddpfix.fleet.ledger import Campaign, Ledger
    from ddpfix.fleet.repositories import BadList, read

    catalog.check_words((*words(select), *words(ignore)), catalog.all_codemods())
    try:
        text = repositories.read_text(encoding="utf-8")
        targets = read(text, repositories.absolute().parent, base=server)
    except (OSError, UnicodeDecodeError, BadList) as error:
        raise CommandError(f"{repositories} cannot be used", str(error), "Write a repository a line.") from None
    with _told():
        book = Ledger(ledger, new=True)
        new = book.plan(Campaign(name, words(select), words(ignore)), targets)
        book.close()
    sys.stdout.write(f"{name}: {len(targets)} repositories, {new} of them new, in {ledger}\n")


@fleet_app.command("run")
def run(
    ledger: LedgerFile = OURS,
    engine: Annotated[str, typer.Option("--engine", help="local or dask.")] = "local",
    scheduler: Annotated[str, typer.Option("--scheduler", help="The address of a Dask cluster.", show_default=False)] = "",
    workers: Annotated[int, typer.Option("--workers", min=0, help="Repositories at a time; 0: one for each processor.")] = 0,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="The most that one repository may take.")] = 900,
    memory: Annotated[int, typer.Option("--memory", min=256, help="MiB that one repository may take.")] = 4096,
    size: Annotated[int, typer.Option("--size", min=1, help="MiB that git may fetch of one repository at once.")] = 1024,
    files: Annotated[int, typer.Option("--files", min=1, help="Files that one repository may hold.")] = 200_000,
    shard: Annotated[str, typer.Option("--shard", help="INDEX/COUNT: this share alone, into a file.", show_default=False)] = "",
    results: Annotated[Path | None, typer.Option("--results", help="The file of a share.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Those that are done, too, if they or the rules changed.")] = False,
) -> None:
    """Work off what waits; run again after whatever ended it. Exit 1 where repositories failed."""
    from ddpfix.fleet import drive, engines, shards

    gc.enable()  # the command line turns it off for runs that are short
    count, limits = workers or len(os.sched_getaffinity(0)), (seconds, memory, size, files)
    with _told():
        if shard:
            share = shards.parse(shard)
            place = results or ledger.with_name(f"{ledger.stem}-{share.index}-of-{share.count}.jsonl")
            shards.run(_book(ledger, read_only=True), share, place, drive.Pace(1, *limits), _teller(None))
            raise typer.Exit(CLEAN)
        with _alone(ledger):
            book = _book(ledger)
            book.resume(again=again)
            # a cluster gets two for each of its places, so that none waits for the driver
            window = count if engine == "local" else 2 * count
            if engine not in engines.ENGINES:
                raise CommandError(f"there is no engine {engine!r}", todo="Give --engine local or dask.")
            with engines.started(engine, count, scheduler) as executor:
                whole = drive.drive(book, executor, drive.Pace(window, *limits), _teller(book))
            failed = book.counts().get("failed", 0)
            book.close()
    if not whole:
        note("ddpfix fleet: paused; `ddpfix fleet run` goes on")
    raise typer.Exit(FINDINGS if failed else CLEAN)


@fleet_app.command("pause")
def pause(ledger: LedgerFile = OURS) -> None:
    """Let the driver finish what is at work and end; `fleet run` goes on."""
    with _told():
        _book(ledger).pause()


@fleet_app.command("merge")
def merge(
    results: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files that shares wrote.")],
    ledger: LedgerFile = OURS,
) -> None:
    """Take the results of shares into the ledger."""
    from ddpfix.fleet import shards

    with _told(), _alone(ledger):
        book = _book(ledger)
        for path in results:
            kept, unknown = shards.merge(book, path)
            beside = f", {unknown} of repositories that the plan does not name" if unknown else ""
            sys.stdout.write(f"{path}: {kept} results{beside}\n")
        book.close()


@fleet_app.command("status")
def status(ledger: LedgerFile = OURS, output_format: Format = "text") -> None:
    """Say how many wait, are done and failed, by cause, what was found, and what became of the pull requests."""
    from ddpfix.fleet.status import lines
    from ddpfix.fleet.status import status as standing

    with _told():
        found = standing(_book(ledger))
    if output_format == "json":
        sys.stdout.write(json.dumps(found.plain(), indent=1) + "\n")
    else:
        show("".join(f"{line}\n" for line in lines(found)))


@fleet_app.command("retry")
def retry(
    ledger: LedgerFile = OURS, cause: Annotated[str, typer.Option("--cause", help="timeout, memory, git, …; else all.")] = ""
) -> None:
    """Let repositories that failed wait again."""
    from ddpfix.fleet.result import CAUSES

    if cause and cause not in CAUSES:
        raise CommandError(f"there is no cause {cause!r}", todo=f"Give one of {', '.join(CAUSES)}.")
    with _told():
        sys.stdout.write(f"{_book(ledger).retry(cause)} repositories wait again\n")


@fleet_app.command("report")
def report(
    ledger: LedgerFile = OURS,
    to: Annotated[Path | None, typer.Option("--to", help="A file; with .html a page, else Markdown.")] = None,
) -> None:
    """Write one page about the campaign."""
    from ddpfix.fleet import report as pages
    from ddpfix.outputs.files import write

    with _told():
        book = _book(ledger)
        text = pages.html(book) if to and to.suffix == ".html" else pages.markdown(book)
    if to:
        write(to, text)
    else:
        sys.stdout.write(text)


@fleet_app.command("publish")
def publish(
    ledger: LedgerFile = OURS,
    waves: Annotated[str, typer.Option("--waves", help="Repositories of each wave; after the last, the rest.")] = "10,100",
    most_closed: Annotated[str, typer.Option("--most-closed", help="Share that may be closed unmerged.")] = "5%",
    forge: ForgeName = "github",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    author: Author = "",
    per_hour: Annotated[int, typer.Option("--per-hour", min=0, help="Pull requests opened within an hour.")] = 50,
    state: StateFolder = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which repositories come next, write nothing.")] = False,
) -> None:
    """Open the pull requests of the next wave. Exit 1 where too many of the earlier ones were closed unmerged."""
    from ddpfix.cli.commands.bot import _tell
    from ddpfix.fleet import publish as waving

    with _told(), _alone(ledger):
        book = _book(ledger)
        asked = waving.parse(waves, most_closed)
        bot = None if dry_run else _bot(book, forge, api_url, token_file, author, per_hour, state)
        if bot:
            waving.refresh(book, bot.forge, _tell)
        try:
            number, wanted = waving.next_wave(book, asked)
        except waving.NotYet as why:
            note(f"ddpfix fleet: wave not begun: {why}; look at them with `ddpfix fleet report`")
            raise typer.Exit(FINDINGS) from None
        if bot is None:
            show("".join(f"{name}\n" for _, name in wanted))
        else:
            waving.publish(book, bot, number, wanted, _tell)
        book.close()


@fleet_app.command("close")
def close(
    ledger: LedgerFile = OURS,
    why: Annotated[str, typer.Option("--why", help="What is said in each of them.")] = "This campaign was called off.",
    forge: ForgeName = "github",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    state: StateFolder = None,
) -> None:
    """Close the campaign's open pull requests; their branches stay."""
    from ddpfix.cli.commands.bot import _tell
    from ddpfix.fleet.publish import close_all

    with _told(), _alone(ledger):
        book = _book(ledger)
        bot = _bot(book, forge, api_url, token_file, "", 0, state)
        closed, failed = close_all(book, bot.forge, why, _tell)
        sys.stdout.write(f"{closed} pull requests closed\n")
        book.close()
    raise typer.Exit(FINDINGS if failed else CLEAN)


def _bot(
    book: Ledger, forge: str, api_url: str, token_file: Path | None, author: str, per_hour: int, state: Path | None
) -> Bot:
    from ddpfix.bot.repositories import BotOptions
    from ddpfix.bot.state import kept
    from ddpfix.cli.commands import bot

    bot._need_extra()
    # a campaign of some codes asks for their pull requests, one of all for that with the safe fixes
    options = BotOptions(topics=book.campaign().select or ("safe",), per_hour=per_hour)
    return bot._bot(forge, api_url, token_file, "", None, author, options, kept(state))


def _book(path: Path, *, read_only: bool = False) -> Ledger:
    from ddpfix.fleet.ledger import Ledger

    return Ledger(path, read_only=read_only)


@contextmanager
def _told() -> Iterator[None]:
    """What a user can repair, as an error of the command."""
    import sqlite3

    from ddpfix.fleet.engines import NoEngine
    from ddpfix.fleet.ledger import NoLedger
    from ddpfix.fleet.publish import BadWaves
    from ddpfix.fleet.shards import BadShard

    try:
        yield
    except (NoLedger, NoEngine, BadShard, BadWaves) as error:
        raise CommandError(str(error)) from None
    except sqlite3.Error as error:
        raise CommandError("the ledger cannot be written", str(error)) from None


@contextmanager
def _alone(ledger: Path) -> Iterator[None]:
    """A hold on the ledger as its one writer; it ends with the process, however that ends."""
    import fcntl

    try:
        handle = os.open(f"{ledger}.driver", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CommandError(f"{ledger} cannot be used", error.strerror or "") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        todo = "Wait, or `ddpfix fleet pause` it."
        raise CommandError(f"{ledger} is in use", "another `ddpfix fleet` works with it", todo) from None
    finally:
        os.close(handle)


def _teller(book: Ledger | None) -> Tell:
    """One line that is written anew on a terminal, else a JSON line a repository."""
    live = book if sys.stderr.isatty() and not os.environ.get("CI") else None

    def tell(taken: Taken, result: Result) -> None:
        if live:
            counts = live.counts()
            parts = (f"{counts[state]} {state}" for state in ("waiting", "running", "done", "failed") if counts.get(state))
            sys.stderr.write(f"\r\x1b[K{', '.join(parts)}; last {plain(taken.name)}")
            sys.stderr.flush()
            return
        levels = [row[1] for row in result.findings]
        said = {
            "repository": taken.name, "cause": result.cause, "error": result.error, "unchanged": result.unchanged,
            **{level: levels.count(level) for level in ("safe", "unsafe", "display")}, "seconds": result.seconds,
        }  # fmt: skip
        sys.stdout.write(json.dumps(said, ensure_ascii=True) + "\n")
        sys.stdout.flush()

    return tell
