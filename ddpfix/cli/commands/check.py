"""`ddpfix check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.check_options import CheckOptions
from ddpfix.cli.options import (
    Config,
    Exclude,
    Extend,
    Force,
    Ignore,
    Isolated,
    Launched,
    Logs,
    Paths,
    Plugins,
    Seen,
    Select,
    Unsafe,
    Words,
)

_FORMATS = (
    "full (the default on a terminal), text (the default elsewhere), concise, json, json-lines, sarif, github, gitlab, junit "
    "or rdjson."
)


@app.command()
def check(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    launched: Launched = False,
    exclude: Exclude = None,
    force_exclude: Force = False,
    output_format: Annotated[str, typer.Option("--output-format", help=_FORMATS, show_default=False)] = "",
    output: Annotated[Words, typer.Option("--output", "-o", help="FORMAT=FILE: write this, too.", show_default=False)] = None,
    with_edits: Annotated[bool, typer.Option("--with-edits", help="Put the line replacements into the JSON.")] = False,
    fail_on: Annotated[str, typer.Option("--fail-on", help="Exit 1 from this level on: display, unsafe, safe.")] = "",
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever is found.")] = False,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Leave the findings out that this file names.", show_default=False)
    ] = None,
    write_baseline: Annotated[bool, typer.Option("--write-baseline", help="Write what is found into that file.")] = False,
    changed_since: Annotated[
        str, typer.Option("--changed-since", metavar="REF", help="Only what changed since this branch or commit.")
    ] = "",
    stdin_filename: Annotated[
        Path | None, typer.Option("--stdin-filename", help="Read this file's text from stdin.", show_default=False)
    ] = None,
    config: Config = None,
    isolated: Isolated = False,
    allow_plugins: Plugins = False,
    show_settings: Annotated[bool, typer.Option("--show-settings", help="Say which settings hold here, check nothing.")] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Work everything out again; nothing is read from the cache or written to it.")
    ] = False,
    statistics: Annotated[bool, typer.Option("--statistics", help="Count the findings of each codemod, list none.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write the findings and what was not read, nothing else.")] = False,
    show_files: Annotated[bool, typer.Option("--show-files", help="List the files that would be read, check nothing.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Make the fixes in place, as `ddpfix apply --in-place`; say what is left.")
    ] = False,
    log: Logs = None,
    evidence: Seen = None,
    color: Annotated[str, typer.Option("--color", help="auto, always or never.")] = "auto",
    why_not: Annotated[
        str, typer.Option("--why-not", metavar="FILE:LINE", help="Say what each codemod asked about this line, check nothing.")
    ] = "",
) -> None:
    """Say what is wrong. Changes code only with --fix. Exit 0: nothing to fix; 1: findings; 2: an error, or nothing was read."""
    given = CheckOptions(**locals())  # the fields have the names of the options
    from ddpfix.cli import checked

    raise typer.Exit(checked.check(given))
