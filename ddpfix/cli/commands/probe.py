"""`ddpfix probe`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.ends import CLEAN, ERROR
from ddpfix.cli.showing import note


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def probe(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command that trains: -- python train.py", metavar="-- COMMAND")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps after which the program is stopped.")] = 50,
    out: Annotated[Path, typer.Option("--out", help="Where the evidence is written.")] = Path("ddpfix-evidence.json"),
) -> None:
    """Run a training command as one process and see which parameters lead to no loss. Exit: 0, or that of a failed program."""
    from ddpfix.diagnosis import probe as probes
    from ddpfix.diagnosis import probe_report

    sys.stdout.flush()
    found = probes.probe(command or [], cwd=Path.cwd(), steps=steps)
    if found.evidence.observed:
        probes.write(found, out)
    for line in probe_report.lines(found, str(out)):
        note(line)
    raise typer.Exit(found.exit_status or (CLEAN if found.evidence.observed else ERROR))
