"""What the commands of `ddpfix fleet` share: their options, the ledger, and the errors that a user can repair."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import Commands, app
from ddpfix.cli.ends import CommandError

if TYPE_CHECKING:
    from ddpfix.fleet.forges import Place
    from ddpfix.fleet.ledger import Campaign, Ledger

fleet_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Ask thousands of repositories one question, and repair them at a pace."
)
app.add_typer(fleet_app, name="fleet")

LedgerFile = Annotated[Path, typer.Option("--ledger", help="The file that holds the campaign, on this machine's own disk.")]
OURS = Path("ddpfix-fleet.sqlite")
Format = Annotated[str, typer.Option("--output-format", help="text or json.")]
ForgeName = Annotated[str, typer.Option("--forge", help="github, gitlab or gitea; else as planned.", show_default=False)]
ApiUrl = Annotated[str, typer.Option("--api-url", help="Of a server of your own; else as planned.", show_default=False)]


def book(path: Path, *, read_only: bool = False) -> Ledger:
    from ddpfix.fleet.ledger import Ledger

    return Ledger(path, read_only=read_only)


def place_of(campaign: Campaign, forge: str = "", api_url: str = "") -> Place:
    """The forge of a campaign, or another one that is named."""
    from ddpfix.fleet.forges import Place, place

    planned = place(campaign.forge, campaign.server, campaign.api_url)
    if not forge or forge == planned.kind:
        return Place(planned.kind, planned.server, api_url or planned.api_url)
    try:
        return place(forge, "", api_url)
    except ValueError as error:
        raise CommandError(str(error)) from None


@contextmanager
def told() -> Iterator[None]:
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
def alone(ledger: Path) -> Iterator[None]:
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
