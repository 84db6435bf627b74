"""`ddpfix diagnose`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.asking import asked
from ddpfix.cli.ends import CLEAN, FINDINGS, CommandError
from ddpfix.cli.options import Ignore, Plugins, Select, Unsafe
from ddpfix.cli.showing import note

if TYPE_CHECKING:
    from ddpfix.diagnosis.cause import Diagnosis
    from ddpfix.discovery import Tree
    from ddpfix.settings import Settings


@app.command()
def diagnose(
    log: Annotated[Path, typer.Argument(help="What a run printed, of one rank or of all.")],
    repository: Annotated[Path | None, typer.Argument(help="The code that ran: its lines and repairs are named too.")] = None,
    select: Select = None,
    ignore: Ignore = None,
    unsafe_fixes: Unsafe = False,
    allow_plugins: Plugins = False,
    apply_: Annotated[bool, typer.Option("--apply", help="Commit the repairs of the cause, as `ddpfix apply` does.")] = False,
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
) -> None:
    """Name the probable cause of a failed run from its log. Exit 0: named, or nothing failed; 1: unknown; 2: an error."""
    from ddpfix.diagnosis import command

    if output_format not in ("text", "json"):
        raise CommandError(f"no output format is called {output_format!r}", todo="Use text or json.")
    found = command.read(log)
    where = [repository or Path()] if repository or apply_ else []
    projects = asked(where, select, ignore, None, unsafe_fixes, None, plugins=allow_plugins) if where else []
    inside = [command.in_repository(found, tree, settings) for tree, settings in projects]
    sys.stdout.write(command.Answer(found, inside[0] if inside else None).render(output_format))
    status = CLEAN if found.known or not found.failed else FINDINGS
    for tree, settings in projects if apply_ else ():
        note(_repaired(found, log, tree, settings))
    raise typer.Exit(status)


def _repaired(found: Diagnosis, log: Path, tree: Tree, settings: Settings) -> str:
    """The closing screen of an apply with the codemods that repair the cause, or why there was none."""
    from ddpfix import plugins, run
    from ddpfix.diagnosis import command, observations

    chosen = command.narrowed(found, tree, settings)
    if not chosen.select:
        return "Nothing to apply: no codemod repairs this cause."
    seen = replace(tree, observed=observations.observed(found, tree.files))
    options = run.Options(unsafe=chosen.unsafe_fixes, branch=chosen.branch, format_command=chosen.formatter)
    again = command.as_apply(log, chosen)
    return run.apply(seen, chosen, plugins.chosen(chosen, tree.root).codemods, options, command=again).screen.rstrip()
