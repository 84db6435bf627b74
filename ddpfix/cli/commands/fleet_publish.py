"""`ddpfix fleet publish`, `refresh` and `close`: the pull requests of a campaign."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.ends import CLEAN, FINDINGS
from ddpfix.cli.fleet import OURS, ApiUrl, ForgeName, LedgerFile, alone, book, fleet_app, place_of, told
from ddpfix.cli.showing import note, show

if TYPE_CHECKING:
    from ddpfix.bot.repositories import Bot
    from ddpfix.fleet.ledger import Ledger

TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="Else DDPFIX_TOKEN, GITHUB_TOKEN, GITLAB_TOKEN or GITEA_TOKEN.")
]
Author = Annotated[str, typer.Option("--author", help="`Name <address>` of the commits.", show_default=False)]
Signed = Annotated[bool, typer.Option("--signed", help="The forge makes the commits, and signs them where it does so.")]
Dashboard = Annotated[bool, typer.Option("--dashboard", help="Keep an issue in each repository with what is open.")]
StateFolder = Annotated[Path | None, typer.Option("--state", help="The bot's own folder; else DDPFIX_STATE, ~/.local/state.")]


@fleet_app.command("publish")
def publish(
    ledger: LedgerFile = OURS,
    waves: Annotated[str, typer.Option("--waves", help="Repositories of each wave; after the last, the rest.")] = "10,100",
    most_closed: Annotated[str, typer.Option("--most-closed", help="Share that may be closed unmerged.")] = "5%",
    forge: ForgeName = "",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    author: Author = "",
    per_hour: Annotated[int, typer.Option("--per-hour", min=0, help="Pull requests opened within an hour.")] = 50,
    signed: Signed = False,
    dashboard: Dashboard = False,
    state: StateFolder = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which repositories come next, write nothing.")] = False,
) -> None:
    """Open the pull requests of the next wave. Exit 1 where too many of the earlier ones were closed unmerged."""
    from ddpfix.cli.commands.bot import _tell
    from ddpfix.fleet import publish as waving

    with told(), alone(ledger):
        kept = book(ledger)
        asked = waving.parse(waves, most_closed)
        bot = None if dry_run else _bot(
            kept, forge, api_url, token_file, author, per_hour, state, signed=signed, dashboard=dashboard
        )  # fmt: skip
        if bot:
            waving.refresh(kept, bot.forge, _tell)
        try:
            number, wanted = waving.next_wave(kept, asked)
        except waving.NotYet as why:
            note(f"ddpfix fleet: wave not begun: {why}; look at them with `ddpfix fleet report`")
            raise typer.Exit(FINDINGS) from None
        if bot is None:
            show("".join(f"{name}\n" for _, name in wanted))
        else:
            waving.publish(kept, bot, number, wanted, _tell)
        kept.close()


@fleet_app.command("refresh")
def refresh(
    ledger: LedgerFile = OURS,
    forge: ForgeName = "",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    state: StateFolder = None,
) -> None:
    """Ask the forge what became of the open pull requests, and what people said of those they closed."""
    from ddpfix.cli.commands.bot import _tell
    from ddpfix.fleet.publish import refresh as asked_again

    with told(), alone(ledger):
        kept = book(ledger)
        changed = asked_again(kept, _bot(kept, forge, api_url, token_file, "", 0, state).forge, _tell)
        kept.close()
    sys.stdout.write(f"{changed} pull requests are no longer open\n")


@fleet_app.command("close")
def close(
    ledger: LedgerFile = OURS,
    why: Annotated[str, typer.Option("--why", help="What is said in each of them.")] = "This campaign was called off.",
    forge: ForgeName = "",
    api_url: ApiUrl = "",
    token_file: TokenFile = None,
    state: StateFolder = None,
) -> None:
    """Close the campaign's open pull requests; their branches stay."""
    from ddpfix.cli.commands.bot import _tell
    from ddpfix.fleet.publish import close_all

    with told(), alone(ledger):
        kept = book(ledger)
        bot = _bot(kept, forge, api_url, token_file, "", 0, state)
        closed, failed = close_all(kept, bot.forge, why, _tell)
        sys.stdout.write(f"{closed} pull requests closed\n")
        kept.close()
    raise typer.Exit(FINDINGS if failed else CLEAN)


def _bot(
    kept: Ledger,
    forge: str,
    api_url: str,
    token_file: Path | None,
    author: str,
    per_hour: int,
    state: Path | None,
    *,
    signed: bool = False,
    dashboard: bool = False,
) -> Bot:
    from ddpfix.bot import state as states
    from ddpfix.bot.repositories import BotOptions
    from ddpfix.cli.commands import bot
    from ddpfix.fleet.publish import cover

    bot._need_extra()
    campaign = kept.campaign()
    at = place_of(campaign, forge, api_url)
    # a campaign of some codes asks for their pull requests, one of all for that with the safe fixes
    options = BotOptions(
        topics=campaign.select or ("safe",), per_hour=per_hour, cover=cover(campaign), signed=signed, dashboard=dashboard
    )
    return bot._bot(at.kind, at.api_url, token_file, "", None, author, options, states.kept(state))
