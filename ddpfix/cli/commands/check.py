"""`ddpfix check`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddpfix.cli.app import CLEAN, FINDINGS, app
from ddpfix.cli.options import Exclude, Extend, Ignore, Paths, Select, Trouble, Unsafe, asked
from ddpfix.cli.showing import clear_progress, progress

if TYPE_CHECKING:
    from ddpfix.results import Report


@app.command()
def check(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    exclude: Exclude = None,
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
    with_edits: Annotated[bool, typer.Option("--with-edits", help="Put the line replacements into the JSON.")] = False,
    fail_on: Annotated[str, typer.Option("--fail-on", help="Exit 1 from this level on: display, unsafe, safe.")] = "",
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Work everything out again.")] = False,
) -> None:
    """Say what is wrong. Never writes. Exit 0: nothing to fix; 1: findings; 2: trouble."""
    from ddpfix import answers, cache, engine
    from ddpfix.outputs import json, text
    from ddpfix.outputs.paths import shown_from
    from ddpfix.settings import FAIL_ON

    if output_format not in ("text", "json"):
        raise Trouble(f"no output format is called {output_format!r}", todo="Use text or json.")
    if fail_on and fail_on not in FAIL_ON:
        raise Trouble(f"--fail-on takes {', '.join(FAIL_ON)}, not {fail_on!r}")
    reports = []
    level = fail_on
    projects = asked(paths, select, ignore, extend_select, unsafe_fixes, exclude)
    for tree, settings in projects:
        report = engine.check(tree, settings, use_cache=not no_cache, progress=progress())
        reports.append((report, shown_from(tree.root, Path.cwd())))
        level = fail_on or settings.fail_on
    clear_progress()
    if output_format == "json":
        answer, notes = json.render(reports, Path.cwd(), edits=edits_of(reports) if with_edits else None), ""
    else:
        answer, notes = text.render(reports), text.notes(reports)
    order = {"display": 0, "unsafe": 1, "safe": 2}
    ranks = [f.applicability.rank for report, _ in reports for f in report.findings]
    status = FINDINGS if any(rank >= order[level] for rank in ranks) else CLEAN
    sys.stdout.write(answer)
    sys.stderr.write(notes)
    if not no_cache and all(cache.knows(tree, settings) for tree, settings in projects):
        answers.remember(sys.argv[1:], map(str, paths or [Path()]), [tree for tree, _ in projects], (answer, notes, status))
    raise typer.Exit(status)


def edits_of(reports: Sequence[tuple[Report, Callable[[str], str]]]) -> dict[str, list[dict[str, Any]]]:
    """Finding id -> its line replacements, with paths as the user sees them."""
    from ddpfix import engine

    out = {}
    for report, shown in reports:
        for key, rows in engine.line_edits(report).items():
            out[key] = [{**row, "path": shown(str(row["path"]))} for row in rows]
    return out
