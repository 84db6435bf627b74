"""The program itself: its name, its help, the options of all commands, the exit statuses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from ddpfix import __version__
from ddpfix.cli.ends import CLEAN

if TYPE_CHECKING:
    from typer._click import HelpFormatter

_UNCUT = 10_000
FIRST = ("check", "diff", "apply", "undo", "review")  # what people come for; the others follow by name


class Commands(TyperGroup):
    """The commands in the order in which one meets them, each with the whole sentence that says what it does."""

    def list_commands(self, ctx: object) -> list[str]:
        return [n for n in FIRST if n in self.commands] + sorted(set(self.commands) - set(FIRST))

    def format_commands(self, ctx: object, formatter: HelpFormatter) -> None:
        """typer's own cuts the sentences off at the width of the terminal; here they go on in the next line."""
        rows = [(name, self.commands[name].get_short_help_str(_UNCUT)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    name="ddpfix",
    cls=Commands,
    help="Repair PyTorch training code that breaks, hangs or lies when it goes from one GPU to several.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked_for: bool) -> None:
    if asked_for:
        sys.stdout.write(f"ddpfix {__version__}\n")
        raise typer.Exit(CLEAN)


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Say the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Repair PyTorch training code that breaks, hangs or lies when it goes from one GPU to several."""
