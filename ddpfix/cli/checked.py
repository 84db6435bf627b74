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
    from ddpfix.cli.check_options import CheckOptions
    from ddpfix.discovery import Tree
    from ddpfix.outputs.answer import Answer
    from ddpfix.results import Report
    from ddpfix.settings import Settings

STDIN = Path("-")


def check(given: CheckOptions) -> int:
    """Write what is wrong to stdout, and return the exit status."""
    if given.why_not:
        return _why_not(given)
    stdin_as = from_stdin(given.paths, given.stdin_filename)
    _refuse_what_excludes(given, stdin_as)
    from ddpfix import checking
    from ddpfix.outputs import formats

    name = given.output_format or ("full" if sys.stdout.isatty() else "text")
    main, files = formats.find(name), outputs(given.output)
    projects = _projects(given, stdin_as)
    if given.show_files or given.show_settings:
        return _described(given, projects)
    known = baseline_of(
        given.baseline, projects, write=given.write_baseline, narrowed=bool(given.changed_since or stdin_as)
    )
    level = level_of(given.fail_on, projects)
    if given.fix and _fixed(projects):  # below all that may be wrong with what is asked: an error has written nothing
        projects = _projects(given, stdin_as)
    stdin = (stdin_as, sys.stdin.buffer.read()) if stdin_as else None
    reports = _reports(given, projects, stdin)
    needs = set(formats.needs([main, *files.values()])) | ({"edits"} if given.with_edits else set())
    answer = checking.answer(reports, known, needs, Path.cwd(), stdin=stdin)
    answer = replace(answer, fails_from=level, unsafe=any(s.unsafe_fixes for _, s in projects), with_edits=given.with_edits)
    shown, notes = _texts(given, name, main, answer)
    status = _status(given, answer, reports)
    sys.stdout.write(shown)
    sys.stderr.write(notes)
    for line in checking.about_baseline(answer, known):
        note(line)
    write_files(answer, files, page="github" in (name, *(m.__name__.rpartition(".")[2] for m in files.values())))
    if _rests_on_the_files(given, stdin_as) and not files and name != "github":
        remember(projects, given.paths, (shown, notes, status))
    return status


def _refuse_what_excludes(given: CheckOptions, stdin_as: Path | None) -> None:
    if given.statistics and given.output_format not in ("", "text"):
        raise CommandError("--statistics is a text of its own", todo="Leave --output-format out.")
    narrowed = given.baseline or given.write_baseline or given.changed_since or stdin_as
    if given.fix and (narrowed or given.show_settings or given.show_files):
        raise CommandError("--fix goes with no baseline, no --changed-since, no text from stdin", todo="Use `ddpfix apply`.")


def _projects(given: CheckOptions, stdin_as: Path | None) -> list[tuple[Tree, Settings]]:
    found = asked(
        *(given.paths, given.select, given.ignore, given.extend_select, given.unsafe_fixes, given.exclude),
        launched=given.launched,
        config=given.config,
        isolated=given.isolated,
        force_exclude=given.force_exclude,
        stdin_as=stdin_as,
        plugins=given.allow_plugins,
    )
    return with_evidence(found, given.log, given.evidence)


def _described(given: CheckOptions, projects: Sequence[tuple[Tree, Settings]]) -> int:
    """Say which files and settings a check has, instead of checking."""
    if given.show_files:
        sys.stdout.write("".join(f"{line}\n" for line in listed(projects)))
        sys.stderr.write("".join(f"{line}\n" for line in left_alone(projects)))
    else:
        sys.stdout.write("\n".join(stated(tree, settings, given.config, given.isolated) for tree, settings in projects))
    return CLEAN


def _reports(
    given: CheckOptions, projects: Sequence[tuple[Tree, Settings]], stdin: tuple[Path, bytes] | None
) -> list[Report]:
    from ddpfix import api, checking

    shows = None if given.quiet else progress()
    reports = [
        api.Project(tree, settings, read=checking.reader(tree.root, stdin)).check(
            changed_since=given.changed_since, use_cache=not given.no_cache, progress=shows, ending=True
        )
        for tree, settings in projects
    ]
    clear_progress()
    return reports


def _texts(given: CheckOptions, name: str, main: ModuleType, answer: Answer) -> tuple[str, str]:
    """What goes to stdout and to stderr. name: of the format."""
    from ddpfix.outputs import statistics, text

    in_color = getattr(main, "colored", None) if wants_color(given.color) else None
    shown = statistics.table(answer) if given.statistics else (in_color or main.document)(answer)
    notes = "" if name in ("json", "json-lines") else text.notes(answer.reports, closing=not given.quiet)
    return shown, notes


def _status(given: CheckOptions, answer: Answer, reports: Sequence[Report]) -> int:
    if given.exit_zero:
        return CLEAN
    if any(answer.fails(finding) for _, finding in answer.rows()):
        return FINDINGS
    return ERROR if all(map(is_unread, reports)) else CLEAN


def _rests_on_the_files(given: CheckOptions, stdin_as: Path | None) -> bool:
    """True where the same command says the same as long as no file of the projects changes, and does nothing beside."""
    seen = given.baseline or given.write_baseline or given.changed_since or given.config or given.log or given.evidence
    return not (given.no_cache or seen or stdin_as or given.fix)


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


def _why_not(given: CheckOptions) -> int:
    """Write what each codemod asked about `FILE:LINE`, and return the exit status."""
    from ddpfix import why_not as asking
    from ddpfix.why_not_page import page

    try:
        path, line = asking.place(given.why_not)
    except ValueError:
        todo = "Give `--why-not train.py:42`, say."
        raise CommandError(f"--why-not takes FILE:LINE, not {given.why_not!r}", todo=todo) from None
    from ddpfix.discovery import is_of_a_project

    # what lies in no repository is seen as `check` sees it from here
    near = [path] if is_of_a_project(path) or not path.resolve().is_relative_to(Path.cwd()) else [Path()]
    if not path.is_file():
        raise CommandError(f"{path} does not exist", todo="Give a file and a line of it.")
    chosen = (given.select, given.ignore, given.extend_select, False, None)
    ((tree, settings),) = asked(near, *chosen, config=given.config, isolated=given.isolated, plugins=given.allow_plugins)
    name = path.resolve().relative_to(tree.root).as_posix()
    if not name.endswith((*PYTHON_KINDS, *READ_KINDS)):
        raise CommandError(f"--why-not reads programs, YAML, JSON, shell, Markdown and Dockerfiles, not {path}")
    sys.stdout.write(page(asking.why_not(tree, settings, name, line)))
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
