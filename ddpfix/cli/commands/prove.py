"""`ddpfix prove`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.asking import asked
from ddpfix.cli.ends import CLEAN, ERROR, FINDINGS, CommandError
from ddpfix.cli.options import Exclude, Extend, Ignore, Launched, Plugins, Select, Unsafe, Words
from ddpfix.cli.showing import note, show


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def prove(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command that trains: -- python train.py", metavar="-- COMMAND")
    ] = None,
    nproc: Annotated[int, typer.Option("--nproc", min=1, help="Processes.")] = 2,
    steps: Annotated[int, typer.Option("--steps", min=0, help="Optimizer steps after which every rank stops; 0: never.")] = 20,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds for each of the two runs.")] = 600,
    memory: Annotated[float, typer.Option("--memory", min=0, help="GiB for all processes; 0: 4/5 of the machine's.")] = 0,
    link: Annotated[Words, typer.Option("--link", help="A path that git ignores and the program needs.")] = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    launched: Launched = False,
    exclude: Exclude = None,
    allow_plugins: Plugins = False,
    output_format: Annotated[str, typer.Option("--output-format", help="text, or json for `apply --proof`.")] = "text",
) -> None:
    """Run a training command on two CPU processes before and after the fixes. Exit 0: right after; 1: wrong; 2: an error."""
    from ddpfix import plugins
    from ddpfix.prove import proof as proofs
    from ddpfix.prove import report

    if output_format not in ("text", "json"):
        raise CommandError(f"no output format is called {output_format!r}", todo="Use text or json.")
    ((tree, settings),) = asked(
        None, select, ignore, extend_select, unsafe_fixes, exclude, launched=launched, plugins=allow_plugins
    )
    bounds = proofs.Bounds(nproc, steps, timeout, memory)
    chosen = plugins.chosen(settings, tree.root)
    for failure in chosen.failed:
        note(f"{failure.path}: {failure.error}")
    made = proofs.prove(
        tree, settings, chosen.codemods, command or [], cwd=Path.cwd(), bounds=bounds, links=link or (), say=note
    )
    table = report.text(made, width=shutil.get_terminal_size((120, 40)).columns)
    if output_format == "json":
        sys.stdout.write(report.to_json(made))
        note(table.rstrip())
    else:
        show(table)
    if not made.right:
        sys.stderr.write(f"{made.output.rstrip()}\n")  # of the user's own program, colours and all
    raise typer.Exit(ERROR if made.impossible else CLEAN if made.right else FINDINGS)
