"""What `ddpfix check` does: asked for a report, it writes one and says with which status to end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.files.text_file import PYTHON_KINDS, READ_KINDS
from codemods.runtime.record import replace
from ddpfix.cli.asking import asked, formatter, with_evidence
from ddpfix.cli.ends import CLEAN, ERROR, FINDINGS, CommandError
from ddpfix.cli.showing import clear_progress, note, progress, wants_color

if TYPE_CHECKING:
    from types import ModuleType

    from ddpfix.checking import Baseline
    from ddpfix.discovery import Tree
    from ddpfix.outputs.answer import Answer
    from ddpfix.results import Report
    from ddpfix.settings import Settings

STDIN = Path("-")


def check(
    paths: Sequence[Path] | None = None,
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    extend_select: Sequence[str] | None = None,
    unsafe_fixes: bool = False,
    launched: bool = False,
    exclude: Sequence[str] | None = None,
    force_exclude: bool = False,
    output_format: str = "",
    output: Sequence[str] | None = None,
    with_edits: bool = False,
    fail_on: str = "",
    exit_zero: bool = False,
    baseline: Path | None = None,
    write_baseline: bool = False,
    changed_since: str = "",
    stdin_filename: Path | None = None,
    config: Path | None = None,
    isolated: bool = False,
    allow_plugins: bool = False,
    show_settings: bool = False,
    no_cache: bool = False,
    statistics: bool = False,
    quiet: bool = False,
    show_files: bool = False,
    fix: bool = False,
    log: Sequence[Path] | None = None,
    evidence: Sequence[Path] | None = None,
    color: str = "auto",
    why_not: str = "",
) -> int:
    """Write what is wrong in `paths` to stdout, and return the exit status. The options are those of the command."""
    if why_not:
        return _why_not(why_not, select, ignore, extend_select, config=config, isolated=isolated, plugins=allow_plugins)
    if statistics and output_format not in ("", "text"):
        raise CommandError("--statistics is a text of its own", todo="Leave --output-format out.")
    from ddpfix import api, checking
    from ddpfix.outputs import formats, text

    colors = wants_color(color)
    output_format = output_format or ("full" if sys.stdout.isatty() else "text")
    main, files = formats.find(output_format), outputs(output)
    needs = set(formats.needs([main, *files.values()])) | ({"edits"} if with_edits else set())
    stdin_as = from_stdin(paths, stdin_filename)
    if fix and (baseline or write_baseline or changed_since or stdin_as or show_settings or show_files):
        raise CommandError("--fix goes with no baseline, no --changed-since, no text from stdin", todo="Use `ddpfix apply`.")

    def look() -> list[tuple[Tree, Settings]]:
        found = asked(
            *(paths, select, ignore, extend_select, unsafe_fixes, exclude),
            launched=launched,
            config=config,
            isolated=isolated,
            force_exclude=force_exclude,
            stdin_as=stdin_as,
            plugins=allow_plugins,
        )
        return with_evidence(found, log, evidence)

    projects = look()
    if show_files:
        sys.stdout.write("".join(f"{line}\n" for line in listed(projects)))
        sys.stderr.write("".join(f"{line}\n" for line in left_alone(projects)))
        return CLEAN
    if show_settings:
        sys.stdout.write("\n".join(stated(tree, settings, config, isolated) for tree, settings in projects))
        return CLEAN
    known = baseline_of(baseline, projects, write=write_baseline, narrowed=bool(changed_since or stdin_as))
    level = level_of(fail_on, projects)
    if fix and _fixed(projects):  # below all that may be wrong with what is asked: an error has written nothing
        projects = look()
    stdin = (stdin_as, sys.stdin.buffer.read()) if stdin_as else None
    shows = None if quiet else progress()
    reports = [
        api.Project(tree, settings, read=checking.reader(tree.root, stdin)).check(
            changed_since=changed_since, use_cache=not no_cache, progress=shows, ending=True
        )
        for tree, settings in projects
    ]
    clear_progress()
    answer = checking.answer(reports, known, needs, Path.cwd(), stdin=stdin)
    answer = replace(answer, fails_from=level, unsafe=any(s.unsafe_fixes for _, s in projects), with_edits=with_edits)
    in_color = getattr(main, "colored", None) if colors else None
    shown = _counted(answer) if statistics else (in_color or main.document)(answer)
    notes = "" if output_format in ("json", "json-lines") else text.notes(answer.reports, closing=not quiet)
    failing = any(answer.fails(finding) for _, finding in answer.rows())
    status = CLEAN if exit_zero else FINDINGS if failing else ERROR if all(map(is_unread, reports)) else CLEAN
    sys.stdout.write(shown)
    sys.stderr.write(notes)
    for line in checking.about_baseline(answer, known):
        note(line)
    write_files(answer, files, page="github" in (output_format, *(m.__name__.rpartition(".")[2] for m in files.values())))
    seen = baseline or write_baseline or changed_since or stdin_as or config or log or evidence
    elsewhere = seen or files or fix or output_format == "github"
    if not (no_cache or elsewhere):
        remember(projects, paths, (shown, notes, status))
    return status


def _fixed(projects: Sequence[tuple[Tree, Settings]]) -> int:
    """Make the fixes in place, as `ddpfix apply --in-place` does; how many were made. Raises GitRefusal, FormatFailed."""
    from ddpfix import api
    from ddpfix.outputs.text import plural
    from ddpfix.run import Options

    made = 0
    for tree, settings in projects:
        options = Options(unsafe=settings.unsafe_fixes, in_place=True, format_command=formatter(settings))
        applied = api.Project(tree, settings).apply(options, command="ddpfix check --fix", progress=progress())
        clear_progress()
        made += len(applied.fixed.fixed)
        if applied.fixed.fixed:
            count, files = plural(len(applied.fixed.fixed), "finding"), plural(len(applied.fixed.after), "file")
            note(f"Fixed {count} in {files} of {tree.root.name}; `ddpfix undo` takes it back.")
    return made


def listed(projects: Sequence[tuple[Tree, Settings]]) -> Iterator[str]:
    """The files that a check looks at, as seen from the working folder."""
    from ddpfix.escaping import harmless
    from ddpfix.outputs.paths import shown_from

    for tree, _ in projects:
        yield from (harmless(shown_from(tree.root, Path.cwd())(path)) for path in tree.chosen)


def left_alone(projects: Sequence[tuple[Tree, Settings]]) -> Iterator[str]:
    """What a check leaves alone though it lies in what was asked for, with the reasons."""
    from ddpfix.escaping import harmless
    from ddpfix.outputs.paths import shown_from
    from ddpfix.outputs.text import left_out

    for tree, _ in projects:
        yield from map(harmless, left_out(tree.skipped, shown_from(tree.root, Path.cwd())))


def is_unread(report: Report) -> bool:
    """True where all that was to be read whole could not be: that nothing is found says nothing then."""
    return bool(report.unread) and not report.parsed


def _counted(answer: Answer) -> str:
    from ddpfix.outputs import statistics

    return statistics.table(answer)


def _why_not(
    given: str,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    extend: Sequence[str] | None,
    *,
    config: Path | None,
    isolated: bool,
    plugins: bool,
) -> int:
    """Write what each codemod asked about `FILE:LINE`, and return the exit status."""
    from ddpfix import why_not as asking

    try:
        path, line = asking.place(given)
    except ValueError:
        raise CommandError(f"--why-not takes FILE:LINE, not {given!r}", todo="Give `--why-not train.py:42`, say.") from None
    from ddpfix.discovery import is_of_a_project

    # what lies in no repository is seen as `check` sees it from here
    near = [path] if is_of_a_project(path) or not path.resolve().is_relative_to(Path.cwd()) else [Path()]
    if not path.is_file():
        raise CommandError(f"{path} does not exist", todo="Give a file and a line of it.")
    ((tree, settings),) = asked(near, select, ignore, extend, False, None, config=config, isolated=isolated, plugins=plugins)
    name = path.resolve().relative_to(tree.root).as_posix()
    if not name.endswith((*PYTHON_KINDS, *READ_KINDS)):
        raise CommandError(f"--why-not reads programs, YAML, JSON, shell, Markdown and Dockerfiles, not {path}")
    sys.stdout.write(asking.page(asking.why_not(tree, settings, name, line)))
    return CLEAN


def outputs(given: Sequence[str] | None) -> dict[Path, ModuleType]:
    """`--output FORMAT=FILE`, as often as wanted: file -> format."""
    from ddpfix.outputs import formats

    out = {}
    for word in given or ():
        name, equals, file = word.partition("=")
        if not (equals and file):
            raise CommandError(f"--output takes FORMAT=FILE, not {word!r}", todo="Give `--output sarif=ddpfix.sarif`, say.")
        out[Path(file)] = formats.find(name)
    return out


def from_stdin(paths: Sequence[Path] | None, name: Path | None) -> Path | None:
    """The file whose text comes from stdin, if one does."""
    if name is None and STDIN in (paths or ()):
        raise CommandError("`-` needs the name of the file it stands for", todo="Give it with --stdin-filename.")
    if name is not None and list(paths or [STDIN]) != [STDIN]:
        raise CommandError("--stdin-filename and paths exclude each other", todo="Give `-` or no path beside it.")
    return name


def level_of(fail_on: str, projects: Sequence[tuple[Tree, Settings]]) -> int:
    """The rank from which a finding makes the check fail: the command line's, else that of the settings."""
    from ddpfix.settings import FAIL_ON

    if fail_on and fail_on not in FAIL_ON:
        raise CommandError(f"--fail-on takes {', '.join(FAIL_ON)}, not {fail_on!r}")
    return min(FAIL_ON.index(fail_on or settings.fail_on) for _, settings in projects)


def baseline_of(
    file: Path | None, projects: Sequence[tuple[Tree, Settings]], *, write: bool, narrowed: bool
) -> Baseline | None:
    """The baseline that is asked for, if one is."""
    from ddpfix.checking import Baseline

    if file is None:
        if write:
            raise CommandError("--write-baseline needs a file to write", todo="Give it with --baseline.")
        return None
    if len(projects) != 1:
        raise CommandError("these paths lie in several projects", "a baseline is one project's", "Check one at a time.")
    if write and narrowed:
        todo = "Leave --changed-since and --stdin-filename out."
        raise CommandError("--write-baseline writes what whole files hold", todo=todo)
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
        raise CommandError(f"{path} cannot be written", error.strerror or str(error)) from error


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
