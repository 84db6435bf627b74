"""`ddpfix bot run`, `ddpfix bot review` and `ddpfix bot serve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import Commands, app
from ddpfix.cli.asking import words
from ddpfix.cli.ends import CLEAN, ERROR, CommandError
from ddpfix.cli.showing import note

if TYPE_CHECKING:
    from ddpfix.bot.client import SystemClock
    from ddpfix.bot.outcome import Outcome
    from ddpfix.bot.repositories import Bot, BotOptions
    from ddpfix.bot.state import State

bot_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Open pull requests with the fixes and keep them right; review those of others."
)
app.add_typer(bot_app, name="bot")

ForgeName = Annotated[str, typer.Option("--forge", help="github, gitlab or gitea (Forgejo, too).")]
ApiUrl = Annotated[str, typer.Option("--api-url", help="Of a server of your own.", show_default=False)]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="Else DDPFIX_TOKEN, or GITHUB_, GITLAB_, GITEA_TOKEN.")]
AppId = Annotated[str, typer.Option("--app-id", help="Of a GitHub App; else DDPFIX_APP_ID.", show_default=False)]
KeyFile = Annotated[Path | None, typer.Option("--app-key-file", help="The App's private key; else DDPFIX_APP_KEY.")]
Author = Annotated[str, typer.Option("--author", help="`Name <address>` of the commits.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, write nothing.")]
Prefix = Annotated[str, typer.Option("--branch-prefix", help="What the names of its branches begin with.")]
Block = Annotated[list[str] | None, typer.Option("--block", help="Owners and repositories to leave alone.")]
Topics = Annotated[list[str] | None, typer.Option("--topics", help="safe, unsafe, codes or per-rule, instead of the settings.")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="Put on new pull requests.")]
Forks = Annotated[bool, typer.Option("--forks", help="Work on forks, too.")]
StateFolder = Annotated[Path | None, typer.Option("--state", help="The bot's own folder; else DDPFIX_STATE, ~/.local/state.")]
MarksKey = Annotated[Path | None, typer.Option("--marks-key-file", help="Else DDPFIX_MARKS_KEY, or a key in --state.")]
PerHour = Annotated[int, typer.Option("--per-hour", min=0, help="Pull requests opened within an hour.")]
Signed = Annotated[bool, typer.Option("--signed", help="The forge makes the commits, and signs them where it does so.")]
Dashboard = Annotated[bool, typer.Option("--dashboard", help="Keep an issue with what is open and what was closed.")]
Format = Annotated[str, typer.Option("--output-format", help="text or json.")]


@bot_app.command("run")
def run(
    repositories: Annotated[list[str], typer.Argument(metavar="OWNER/NAME...")],
    forge: ForgeName = "github",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    app_id: AppId = "",
    app_key_file: KeyFile = None,
    author: Author = "",
    topics: Topics = None,
    label: Labels = None,
    block: Block = None,
    branch_prefix: Prefix = "ddpfix",
    forks: Forks = False,
    reopen: Annotated[bool, typer.Option("--reopen", help="Make again what people closed or changed.")] = False,
    per_hour: PerHour = 50,
    signed: Signed = False,
    dashboard: Dashboard = False,
    state: StateFolder = None,
    marks_key_file: MarksKey = None,
    dry_run: DryRun = False,
    output_format: Format = "text",
) -> None:
    """Bring the pull requests of some repositories up to date. Exit 2 where one failed."""
    if output_format not in ("text", "json"):
        raise CommandError(f"--output-format takes text or json, not {output_format!r}")
    _check_names(repositories)
    _need_extra()
    from ddpfix.bot.repositories import BotOptions
    from ddpfix.bot.state import kept

    options = BotOptions(
        prefix=branch_prefix, topics=words(topics), blocked=words(block), labels=words(label), forks=forks, reopen=reopen,
        dry_run=dry_run, per_hour=per_hour, signed=signed, dashboard=dashboard,
    )  # fmt: skip
    bot = _bot(forge, api_url, token_file, app_id, app_key_file, author, options, kept(state, marks_key_file))
    outcomes = bot.run(repositories, _tell if output_format == "text" else None)
    if output_format == "json":
        sys.stdout.write(json.dumps([o.plain() for o in outcomes], indent=1) + "\n")
    raise typer.Exit(ERROR if any(o.is_error for o in outcomes) else CLEAN)


@bot_app.command("review")
def review(
    pull_request: Annotated[str, typer.Argument(metavar="OWNER/NAME#N")],
    forge: ForgeName = "github",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    app_id: AppId = "",
    app_key_file: KeyFile = None,
    state: StateFolder = None,
    marks_key_file: MarksKey = None,
    dry_run: DryRun = False,
) -> None:
    """Put suggestions on the lines that a pull request changes. Never pushes."""
    slug, mark, number = pull_request.replace("!", "#").rpartition("#")
    if not mark or not number.isdigit():
        raise CommandError(f"{pull_request} names no pull request", todo="Write it as OWNER/NAME#N.")
    _check_names([slug])
    _need_extra()
    from ddpfix.bot.events import Job
    from ddpfix.bot.repositories import BotOptions
    from ddpfix.bot.state import kept
    from ddpfix.bot.worker import do

    options = BotOptions(dry_run=dry_run)
    bot = _bot(forge, api_url, token_file, app_id, app_key_file, "", options, kept(state, marks_key_file))
    outcomes = do(bot, Job(slug, int(number)))
    for outcome in outcomes:
        _tell(outcome)
    raise typer.Exit(ERROR if any(o.is_error for o in outcomes) else CLEAN)


@bot_app.command("serve")
def serve(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port to listen on.")] = 8484,
    secret_file: Annotated[Path | None, typer.Option("--webhook-secret-file", help="Else DDPFIX_WEBHOOK_SECRET.")] = None,
    metrics: Annotated[str, typer.Option("--metrics", help="HOST:PORT for Prometheus.", show_default=False)] = "",
    forge: ForgeName = "github",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    app_id: AppId = "",
    app_key_file: KeyFile = None,
    author: Author = "",
    topics: Topics = None,
    label: Labels = None,
    block: Block = None,
    branch_prefix: Prefix = "ddpfix",
    per_hour: PerHour = 50,
    signed: Signed = False,
    dashboard: Dashboard = False,
    state: StateFolder = None,
    marks_key_file: MarksKey = None,
) -> None:
    """Listen to the webhooks of a forge until SIGTERM. What was accepted and is not done waits for the next start."""
    _need_extra()
    from ddpfix.bot import connect, webhooks
    from ddpfix.bot.client import SystemClock
    from ddpfix.bot.login import from_file_or_environment
    from ddpfix.bot.messages import KINDS
    from ddpfix.bot.numbers import Numbers
    from ddpfix.bot.queue import Queue
    from ddpfix.bot.repositories import BotOptions
    from ddpfix.bot.state import kept
    from ddpfix.bot.worker import Worker, do
    from ddpfix.cli.serving import numbers

    secret = from_file_or_environment(secret_file, connect.SECRETS, "the webhook secret")
    if not secret:
        raise CommandError("there is no webhook secret", todo="Set DDPFIX_WEBHOOK_SECRET, or give --webhook-secret-file.")
    if forge not in KINDS:
        raise CommandError(f"there is no forge {forge!r}", todo=f"Give --forge {', '.join(KINDS)}.")
    options = BotOptions(
        prefix=branch_prefix, topics=words(topics), blocked=words(block), labels=words(label), per_hour=per_hour, signed=signed,
        dashboard=dashboard,
    )  # fmt: skip
    ours, clock = kept(state, marks_key_file), SystemClock()
    with ours.alone():
        bot = _bot(forge, api_url, token_file, app_id, app_key_file, author, options, ours, clock)
        queue = Queue(bot.database)
        counted = Numbers(queue, _tell)
        worker = Worker(lambda job: do(bot, job), counted.tell, queue, clock=clock, stop=clock.stop)
        note(f"ddpfix bot: listening on http://{host}:{port}/webhook, {queue.take_up()} waiting")
        with numbers(metrics, counted.metrics):
            app = webhooks.application(worker, secret, prefix=branch_prefix, messages=KINDS[forge])
            webhooks.serve(app, host, port)
    raise typer.Exit(CLEAN)


def _bot(
    forge: str,
    api_url: str,
    token_file: Path | None,
    app_id: str,
    key_file: Path | None,
    author: str,
    options: BotOptions,
    state: State,
    clock: SystemClock | None = None,
) -> Bot:
    import gc

    from ddpfix.bot.client import SystemClock
    from ddpfix.bot.connect import Given, connect
    from ddpfix.bot.repositories import Bot

    gc.enable()  # the command line turns it off for runs that are short; this one may go on for months
    clock = clock or SystemClock()
    return Bot(connect(Given(forge, api_url, token_file, app_id, key_file, author), clock), options, clock, state)


def _tell(outcome: Outcome) -> None:
    # in one line whatever a branch is called, and in characters that every log can hold
    sys.stdout.write("".join(c if c.isprintable() else "\ufffd" for c in outcome.line()) + "\n")
    sys.stdout.flush()


def _check_names(slugs: list[str]) -> None:
    for slug in slugs:
        parts = slug.split("/")
        if len(parts) < 2 or not all(part and part not in (".", "..") and not part.startswith("-") for part in parts):
            raise CommandError(f"{slug!r} is no repository", todo="Write it as OWNER/NAME.")


def _need_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("httpx2", "jwt", "starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise CommandError(f"the bot needs {', '.join(missing)}", todo="Install it with `pip install 'ddpfix[bot]'`.")
