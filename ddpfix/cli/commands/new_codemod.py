"""`ddpfix new-codemod`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.ends import CLEAN, CommandError


@app.command("new-codemod")
def new_codemod(
    name: Annotated[str, typer.Argument(help="What it is called: small letters and hyphens, as in no-old-barrier.")],
    into: Annotated[Path, typer.Option("--into", help="The folder for its files.")] = Path("codemods_of_ours"),
    code: Annotated[str, typer.Option("--code", help="Its code: letters and three digits.")] = "TEAM001",
    bowler: Annotated[bool, typer.Option("--bowler", help="Written as a Bowler query.")] = False,
) -> None:
    """Write the file of a codemod of your own, its test and the skeleton of its proof."""
    from ddpfix import scaffold

    try:
        made = scaffold.files(name, code, bowler=bowler)
        scaffold.refuse_existing(into, made)
    except scaffold.BadName as error:
        raise CommandError(str(error)) from error
    for path, text in made.items():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{(into / path).as_posix()}\n")
    file = (into / next(iter(made))).as_posix()
    sys.stdout.write(f'\nTest it:  python -m pytest {into.as_posix()}\nUse it:   plugins = ["{file}"] under [tool.ddpfix], and\n')
    sys.stdout.write("          ddpfix check --allow-plugins\n")
    raise typer.Exit(CLEAN)
