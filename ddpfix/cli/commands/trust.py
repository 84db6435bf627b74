"""`ddpfix trust`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.ends import CLEAN, CommandError

if TYPE_CHECKING:
    from ddpfix.trust import Programs


@app.command()
def trust(
    path: Annotated[Path, typer.Argument(help="The repository.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", help="Record it without a question.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust nothing of this repository any more.")] = False,
) -> None:
    """Let the format command and the plug-ins that a repository's settings name run from now on, as they are."""
    from ddpfix import discovery, settings
    from ddpfix import trust as records
    from ddpfix.cli.showing import agreed

    if not path.exists():
        raise CommandError(f"{path} does not exist", todo="Give a repository.")
    root = discovery.find_root(path)
    try:
        if forget:
            gone = records.forget(root)
            sys.stdout.write("Nothing of this repository is trusted any more.\n" if gone else "Nothing was trusted here.\n")
            raise typer.Exit(CLEAN)
        programs = records.named(settings.load(root), root)
        if not (programs.format_command or programs.plugins):
            sys.stdout.write("The settings of this repository name no program: there is nothing to trust.\n")
            raise typer.Exit(CLEAN)
        for name, digest in programs.plugins.items():
            if not digest:
                raise CommandError(f"the plug-in {name!r} cannot be read", todo="Repair the settings, then record the trust.")
        sys.stderr.write("".join(f"{line}\n" for line in _shown(programs)))
        if not (yes or agreed("These run with your rights. Trust them?")):
            raise CommandError("nothing is recorded", todo="Say --yes where nobody can answer.")
        sys.stdout.write(f"Recorded in {records.keep(root, programs)}.\n")
    except OSError as error:
        raise CommandError("the trust cannot be recorded", error.strerror or str(error)) from error
    raise typer.Exit(CLEAN)


def _shown(programs: Programs) -> list[str]:
    """The programs a line each; control characters, and those that turn the line around, are escaped."""
    rows = [f"format-command {programs.format_command!r}"] if programs.format_command else []
    return rows + [f"plug-in {name!r}, SHA-256 {digest[:16]}…" for name, digest in programs.plugins.items()]
