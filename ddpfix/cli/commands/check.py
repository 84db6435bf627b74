"""`ddpfix check`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import CLEAN, FINDINGS, app
from ddpfix.cli.options import (
    Config,
    Exclude,
    Extend,
    Force,
    Ignore,
    Isolated,
    Paths,
    Plugins,
    Select,
    Trouble,
    Unsafe,
    Words,
    asked,
)
from ddpfix.cli.showing import clear_progress, note, progress

if TYPE_CHECKING:
    from types import ModuleType

    from ddpfix.checking import Baseline
    from ddpfix.discovery import Tree
    from ddpfix.outputs.answer import Answer
    from ddpfix.settings import Settings

_FORMATS = "text, concise, json, json-lines, sarif, github, gitlab, junit or rdjson."
STDIN = Path("-")


@app.command()
def check(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    exclude: Exclude = None,
    force_exclude: Force = False,
    output_format: Annotated[str, typer.Option("--output-format", help=_FORMATS)] = "text",
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
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Work everything out again.")] = False,
) -> None:
    """Say what is wrong. Never changes code. Exit 0: nothing to fix; 1: findings; 2: trouble."""
    from ddpfix import checking
    from ddpfix.outputs import formats, text

    main, files = formats.find(output_format), outputs(output)
    needs = set(formats.needs([main, *files.values()])) | ({"edits"} if with_edits else set())
    stdin_as = from_stdin(paths, stdin_filename)
    projects = asked(
        *(paths, select, ignore, extend_select, unsafe_fixes, exclude),
        config=config,
        isolated=isolated,
        force_exclude=force_exclude,
        stdin_as=stdin_as,
        plugins=allow_plugins,
    )
    if show_settings:
        sys.stdout.write("\n".join(stated(tree, settings, config, isolated) for tree, settings in projects))
        raise typer.Exit(CLEAN)
    known = baseline_of(baseline, projects, write=write_baseline, narrowed=bool(changed_since or stdin_as))
    level = level_of(fail_on, projects)
    stdin = (stdin_as, sys.stdin.buffer.read()) if stdin_as else None
    reports = checking.reports(projects, stdin, changed_since, use_cache=not no_cache, progress=progress())
    clear_progress()
    answer = checking.answer(reports, known, needs, Path.cwd(), stdin=stdin)
    answer = replace(answer, fails_from=level, unsafe=any(s.unsafe_fixes for _, s in projects), with_edits=with_edits)
    shown, notes = main.document(answer), "" if output_format in ("json", "json-lines") else text.notes(answer.reports)
    failing = any(answer.fails(finding) for _, finding in answer.rows())
    status = FINDINGS if failing and not exit_zero else CLEAN
    sys.stdout.write(shown)
    sys.stderr.write(notes)
    for line in checking.about_baseline(answer, known):
        note(line)
    write_files(answer, files, page="github" in (output_format, *(m.__name__.rpartition(".")[2] for m in files.values())))
    elsewhere = files or baseline or write_baseline or changed_since or stdin_as or config or output_format == "github"
    if not (no_cache or elsewhere):
        remember(projects, paths, (shown, notes, status))
    raise typer.Exit(status)


def outputs(given: Sequence[str] | None) -> dict[Path, ModuleType]:
    """`--output FORMAT=FILE`, as often as wanted: file -> format."""
    from ddpfix.outputs import formats

    out = {}
    for word in given or ():
        name, equals, file = word.partition("=")
        if not (equals and file):
            raise Trouble(f"--output takes FORMAT=FILE, not {word!r}", todo="Give `--output sarif=ddpfix.sarif`, say.")
        out[Path(file)] = formats.find(name)
    return out


def from_stdin(paths: Sequence[Path] | None, name: Path | None) -> Path | None:
    """The file whose text comes from stdin, if one does."""
    if name is None and STDIN in (paths or ()):
        raise Trouble("`-` needs the name of the file it stands for", todo="Give it with --stdin-filename.")
    if name is not None and list(paths or [STDIN]) != [STDIN]:
        raise Trouble("--stdin-filename and paths exclude each other", todo="Give `-` or no path beside it.")
    return name


def level_of(fail_on: str, projects: Sequence[tuple[Tree, Settings]]) -> int:
    """The rank from which a finding makes the check fail: the command line's, else that of the settings."""
    from ddpfix.settings import FAIL_ON

    if fail_on and fail_on not in FAIL_ON:
        raise Trouble(f"--fail-on takes {', '.join(FAIL_ON)}, not {fail_on!r}")
    return min(FAIL_ON.index(fail_on or settings.fail_on) for _, settings in projects)


def baseline_of(
    file: Path | None, projects: Sequence[tuple[Tree, Settings]], *, write: bool, narrowed: bool
) -> Baseline | None:
    """The baseline that is asked for, if one is."""
    from ddpfix.checking import Baseline

    if file is None:
        if write:
            raise Trouble("--write-baseline needs a file to write", todo="Give it with --baseline.")
        return None
    if len(projects) != 1:
        raise Trouble("these paths lie in several projects", "a baseline is one project's", "Check one at a time.")
    if write and narrowed:
        raise Trouble("--write-baseline writes what whole files hold", todo="Leave --changed-since and --stdin-filename out.")
    return Baseline(file, *projects[0], write=write, narrowed=narrowed)


def write_files(answer: Answer, wanted: dict[Path, ModuleType], *, page: bool) -> None:
    """The files of `--output`, and the page of a job of GitHub Actions where its annotations are wanted."""
    from ddpfix.outputs import files, step_summary

    path = Path()
    try:
        for path, module in wanted.items():
            files.write(path, module.document(answer))
        if page and (name := os.environ.get("GITHUB_STEP_SUMMARY")):
            path = Path(name)
            taken = path.stat().st_size if path.exists() else 0
            files.append(path, step_summary.markdown(answer, room=step_summary.LIMIT - taken))
    except OSError as error:
        raise Trouble(f"{path} cannot be written", error.strerror or str(error)) from error


def stated(tree: Tree, settings: Settings, config: Path | None, isolated: bool) -> str:
    """What holds for a project, as a settings file of its own."""
    from ddpfix import plugins
    from ddpfix.settings import as_toml, source

    file = None if isolated else config or source(tree.root)
    codes = " ".join(c.code for c in plugins.chosen(settings, tree.root).codemods)
    head = f"# project: {tree.root}\n# settings: {file or 'none'}\n# files: {len(tree.chosen)}\n# codemods: {codes}\n"
    return head + as_toml(settings)


def remember(projects: Sequence[tuple[Tree, Settings]], paths: Sequence[Path] | None, answer: tuple[str, str, int]) -> None:
    """Keep an answer that rests on the files of the projects alone, for the next time."""
    from ddpfix import answers, cache

    if all(cache.knows(tree, settings) for tree, settings in projects):
        answers.remember(sys.argv[1:], map(str, paths or [Path()]), [tree for tree, _ in projects], answer)
