"""`ddpfix fleet plan`, `pause`, `merge`, `status`, `retry` and `report`: what a campaign asks of its ledger."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.asking import words
from ddpfix.cli.ends import CommandError
from ddpfix.cli.fleet import OURS, ApiUrl, Format, LedgerFile, alone, book, fleet_app, told
from ddpfix.cli.showing import note, show

if TYPE_CHECKING:
    from ddpfix.fleet.forges import Place
    from ddpfix.fleet.repositories import Target


@fleet_app.command("plan")
def plan(
    repositories: Annotated[
        Path | None, typer.Argument(metavar="[REPOS.txt]", help="A path, an address or OWNER/NAME a line.")
    ] = None,
    ledger: LedgerFile = OURS,
    name: Annotated[str, typer.Option("--name", help="Of the campaign.")] = "ddpfix",
    cover: Annotated[Path | None, typer.Option("--cover", help="Markdown that stands above each pull request's text.")] = None,
    select: Annotated[list[str] | None, typer.Option("--select", help="Only these codes or topics.")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Leave these codes or topics out.")] = None,
    org: Annotated[str, typer.Option("--org", help="All repositories of an organization.", show_default=False)] = "",
    group: Annotated[str, typer.Option("--group", help="All of a GitLab group and the groups in it.", show_default=False)] = "",
    forks: Annotated[bool, typer.Option("--forks", help="Of these, forks, too.")] = False,
    forge: Annotated[str, typer.Option("--forge", help="github, gitlab or gitea.", show_default=False)] = "",
    server: Annotated[str, typer.Option("--server", help="Where OWNER/NAME lies; else the public one.", show_default=False)] = "",
    api_url: ApiUrl = "",
) -> None:
    """Write down a campaign: what is asked, and of which repositories. Planned again, it keeps what is done."""
    from ddpfix import catalog
    from ddpfix.fleet.forges import place
    from ddpfix.fleet.ledger import Campaign, Ledger

    catalog.check_words((*words(select), *words(ignore)), catalog.all_codemods())
    if not (repositories or org or group):
        raise CommandError("there is nothing to plan", todo="Give REPOS.txt, --org NAME or --group GROUP.")
    try:
        at = place(forge or ("gitlab" if group else "github"), server, api_url)
    except ValueError as error:
        raise CommandError(str(error)) from None
    targets = {target.url: target for target in _of_a_file(repositories, at)} if repositories else {}
    targets |= {target.url: target for owner in (org, group) if owner for target in _of_an_owner(owner, at, forks=forks)}
    text = _read(cover) if cover else ""
    asked = Campaign(name, words(select), words(ignore), text, at.kind, at.server, at.api_url)
    with told():
        kept = Ledger(ledger, new=True)
        new = kept.plan(asked, targets.values())
        kept.close()
    sys.stdout.write(f"{name}: {len(targets)} repositories, {new} of them new, in {ledger}\n")


def _of_a_file(path: Path, at: Place) -> tuple[Target, ...]:
    from ddpfix.fleet.repositories import BadList, read

    try:
        return read(_read(path), path.absolute().parent, base=at.server)
    except BadList as error:
        raise CommandError(f"{path} cannot be used", str(error), "Write a repository a line.") from None


def _of_an_owner(owner: str, at: Place, *, forks: bool) -> list[Target]:
    from ddpfix.bot.client import ForgeError, SystemClock
    from ddpfix.cli.commands import bot
    from ddpfix.fleet.forges import listed, reader

    bot._need_extra()
    forge = reader(at, SystemClock())
    if forge is None:
        raise CommandError(f"there is no token for {at.server}", todo="Set DDPFIX_READ_TOKEN_ and its host (docs/fleet.md).")
    try:
        wanted, left = listed(forge.listed(owner), at.server, forks=forks)
    except ForgeError as error:
        raise CommandError(f"{owner} cannot be listed", str(error), "Look at the name, the token and --api-url.") from None
    for why, count in sorted(left.items()):
        note(f"ddpfix fleet: {count} left out: {why}")
    return wanted


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be used", str(error), "Give a file of text.") from None


@fleet_app.command("pause")
def pause(ledger: LedgerFile = OURS) -> None:
    """Let the driver finish what is at work and end; `fleet run` goes on."""
    with told():
        book(ledger).pause()


@fleet_app.command("merge")
def merge(
    results: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files that shares wrote.")],
    ledger: LedgerFile = OURS,
) -> None:
    """Take the results of shares into the ledger."""
    from ddpfix.fleet import shards

    with told(), alone(ledger):
        kept = book(ledger)
        for path in results:
            count, unknown = shards.merge(kept, path)
            beside = f", {unknown} of repositories that the plan does not name" if unknown else ""
            sys.stdout.write(f"{path}: {count} results{beside}\n")
        kept.close()


@fleet_app.command("status")
def status(ledger: LedgerFile = OURS, output_format: Format = "text") -> None:
    """Say how many wait, are done and failed, by cause, what was found, and what became of the pull requests."""
    from ddpfix.fleet.status import lines
    from ddpfix.fleet.status import status as standing

    with told():
        found = standing(book(ledger))
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
    with told():
        sys.stdout.write(f"{book(ledger).retry(cause)} repositories wait again\n")


@fleet_app.command("report")
def report(
    ledger: LedgerFile = OURS,
    to: Annotated[Path | None, typer.Option("--to", help="A file; with .html a page, else Markdown.")] = None,
) -> None:
    """Write one page about the campaign."""
    from ddpfix.fleet import report as pages
    from ddpfix.outputs.files import write

    with told():
        kept = book(ledger)
        text = pages.html(kept) if to and to.suffix == ".html" else pages.markdown(kept)
    if to:
        write(to, text)
    else:
        sys.stdout.write(text)
