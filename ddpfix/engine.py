"""Files in, findings or fixed bytes out, in memory: only ddpfix.git ever writes inside a repository."""

from __future__ import annotations

import ast
import fnmatch
import gc
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from codemods import suppressions
from codemods.analysis.ranks.bound_to_rank import bound_to_rank
from codemods.codemod import DdpCodemod
from codemods.deep_stack import with_deep_stack
from codemods.find import find_in
from codemods.findings import Finding
from codemods.fix_source import Accept, Chosen, fix_project, joined
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule
from codemods.text_file import NOTEBOOK, READ_KINDS, UNREADABLE
from codemods.told_once import told_once
from ddpfix import cache, catalog, plugins, workers
from ddpfix.discovery import NO_FILE, Tree
from ddpfix.gate import Gate
from ddpfix.results import Failure, Fixed, Report
from ddpfix.settings import Settings

Progress = Callable[[int, int], None]
_LEFT: list[Project] = []  # taking a million nodes apart, one by one, is a tenth of a run: the end of the process does it
LARGEST = 2 * 1024 * 1024  # a Python file of more bytes is data
LARGEST_NOTEBOOK = 64 * 1024 * 1024  # its outputs hold pictures
BRANCHING = 400  # statements that branch, in one function: more have been written by a program, and tests for ranks are compared
# with each other (twice as many take four times as long)


def project_of(tree: Tree, settings: Settings, read: Callable[[str], bytes | None]) -> Project:
    """The project as the codemods see it: its files, what was seen of its runs, and what its settings say of it."""
    return Project(tree.files, read, observed=tree.observed, targets=settings.targets, launched=settings.launched)


def disk_reader(root: Path) -> Callable[[str], bytes | None]:
    """Bytes of a file below `root`; None for what is missing, a link, or no ordinary file."""
    base = os.fspath(root)
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # a pipe is opened without waiting for its other end
        flags |= getattr(os, name, 0)

    def read(path: str) -> bytes | None:
        full = f"{base}/{path}"
        try:
            handle = os.open(full, flags)
        except OSError:
            return None
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _most_bytes(path):
                return None
            data = os.read(handle, about.st_size + 1)
            while len(data) < about.st_size and (more := os.read(handle, about.st_size - len(data))):
                data += more
            return data
        finally:
            os.close(handle)

    return read


def _most_bytes(path: str) -> int:
    return LARGEST_NOTEBOOK if path.endswith(NOTEBOOK) else LARGEST


@contextmanager
def collector_off() -> Iterator[None]:
    """Trees are many small objects that live to the end: without the cycle collector they are built 1.6 times as fast."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def check(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod] | None = None,
    *,
    use_cache: bool = True,
    progress: Progress | None = None,
    read: Callable[[str], bytes | None] | None = None,
    ending: bool = False,
) -> Report:
    """Findings of a project. Reads only; a project in which nothing changed since the last run is answered from the cache.

    codemods: those that the settings select, unless given. They are imported only where the cache has no answer.
    read: gives the bytes where they are not those of the work tree; nothing is cached then. ending: the process ends with this
    check, so its trees are left as they are.
    """
    started = time.perf_counter()
    use_cache = use_cache and read is None
    key, state = (cache.key(tree, settings, codemods), cache.state_of(tree)) if use_cache else ("", None)
    if state and (known := cache.load(tree, key, state)):
        return known
    if codemods is None:
        tree, chosen = plugins.with_codemods(tree, settings)
    else:
        chosen = tuple(codemods)
    with collector_off():
        report = _check(tree, settings, chosen, started, progress, read or disk_reader(tree.root), ending)
    if state and (codemods is not None or not any(catalog.is_plugged_in(c) for c in chosen)):
        cache.store(key, state, report)
    return report


@record
class Judged:
    """What came of some files. broken: those that cannot be parsed. parsed: how many Python files were."""

    findings: tuple[Finding, ...] = ()
    broken: tuple[Failure, ...] = ()
    parsed: int = 0


def _check(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    started: float,
    progress: Progress | None,
    read: Callable[[str], bytes | None],
    ending: bool,
) -> Report:
    project = project_of(tree, settings, read)
    project.failed = {}
    if ending:
        _LEFT.append(project)
    judged, unread = judge_all(project, tree, settings, codemods, progress, ending=ending)
    findings = tuple(told_once([f for part in judged.values() for f in part.findings]))
    failed = (*tree.skipped, *not_read(tree.root, unread), *(f for part in judged.values() for f in part.broken))
    scanned = _scanned(tree, unread)
    parsed = sum(part.parsed for part in judged.values())
    return Report(tree.root, findings, scanned, parsed, failed, time.perf_counter() - started)


def judge_all(
    project: Project,
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    progress: Progress | None = None,
    *,
    ending: bool = False,
) -> tuple[dict[str, Judged], list[str]]:
    """(what came of each file that passes the gate, in order; paths without bytes). ending: as for `check`."""
    work, unread = gated(project, tree.chosen, codemods)

    def judge(paths: Sequence[str]) -> dict[str, Judged]:
        found = {}
        for i, path in enumerate(paths):
            if progress:
                progress(i, len(paths))
            project.make_room()
            found[path] = judge_file(project, path, work[path], settings)
        return found

    if not work:
        return {}, unread
    # a server may have threads, which a fork leaves behind; a process that ends with this has none
    most = None if ending else 1
    shares = workers.parts(sorted(work), lambda p: len(project.read(p) or b""), most=most)
    parts = workers.judged(shares, lambda paths: with_deep_stack(lambda: judge(paths)))
    return {path: found for part in parts for path, found in part.items()}, unread


def judge_file(project: Project, path: str, asking: Sequence[DdpCodemod], settings: Settings) -> Judged:
    """What some codemods, those that the gate lets through, find in a file; what it shares with others is not put together."""
    here = project.seen_from(path)
    asking = _worth_parsing(project, path, asking)
    if not asking:
        return Judged()
    module = here.module(path)
    if module is None:
        return Judged(broken=(Failure(path, _why_unreadable(here, path, asking)),))
    if crowded := _crowded(module):
        return Judged(broken=(Failure(path, crowded, left_alone=True),), parsed=int(_is_python(path)))
    findings = tuple(f for f in find_in(module, here, asking) if not _ignored_here(f, settings))
    return Judged(findings, tuple(_failures(project, path)), int(_is_python(path)))


def _crowded(module: SourceModule) -> str:
    """Why the file is left out: a function that nobody wrote by hand; "" where there is none."""
    kinds = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)
    nodes = [n for kind in kinds for n in module.nodes(kind)]
    if len(nodes) <= BRANCHING:
        return ""
    most, count = Counter(module.function_of(n) for n in nodes).most_common(1)[0]
    if count <= BRANCHING:
        return ""
    name = most.name if most is not None else "the file itself"
    return f"{name} has {count} statements that branch, more than {BRANCHING}: taken for the work of a program, and left out"


def _failures(project: Project, path: str) -> list[Failure]:
    """What went wrong in a file that was read; all others have been checked."""
    return [Failure(path, text) for text in (project.failed or {}).get(path, ())]


def _why_unreadable(project: Project, path: str, codemods: Sequence[DdpCodemod]) -> str:
    """Why Python cannot read a file; where a rename would have reached into it, that it did not."""
    why = project.why_unreadable(path)
    if any(c.topic() == "project" for c in codemods):
        from ddpfix.bowler_rewrites import only_bowler_reads

        if only_bowler_reads(project.read(path) or b""):
            return f"{why}. Only Bowler's grammar reads it: the project's renames in it are yours to make"
    return why


def gated(
    project: Project, paths: Iterable[str], codemods: Sequence[DdpCodemod], gate: Gate | None = None
) -> tuple[dict[str, Sequence[DdpCodemod]], list[str]]:
    """(path -> codemods that can have something to say there, paths without bytes). gate: theirs, where it is made already."""
    gate = gate or Gate(codemods, bound_to_rank(project))
    wanted = dict.fromkeys(paths)
    work: dict[str, Sequence[DdpCodemod]] = {}
    unread: list[str] = []

    def look(path: str, data: bytes) -> None:
        text = path.endswith(READ_KINDS)
        # which codemods have nothing to say matters to a suppression comment, too
        whole = (b"ddpfix:" in data and not text) or data.startswith(UNREADABLE)
        hits = codemods if whole else gate.open_for(data, path)
        if hits:
            work[path] = hits

    if 2 * len(wanted) > len(project.python_files):
        for path, data in project.each_python_file():
            if path in wanted:
                del wanted[path]
                look(path, data)
    for path in wanted:
        found = project.read(path)
        if found is not None:
            look(path, found)
        else:
            unread.append(path)
    return work, unread


def _worth_parsing(project: Project, path: str, codemods: Sequence[DdpCodemod]) -> Sequence[DdpCodemod]:
    """The codemods that can have something to say of a file that passed the gate, as far as the other files show it."""
    data = project.read(path) or b""
    # else what finds nothing matters, too: its suppression is unused
    if b"ddpfix:" in data or data.startswith(UNREADABLE):
        return codemods
    here = project.seen_from(path)
    return [c for c in codemods if c.is_worth_parsing(path, here)]


def _is_python(path: str) -> bool:
    return not path.endswith(READ_KINDS)


def _scanned(tree: Tree, unread: Iterable[str]) -> int:
    """How many Python files were looked at."""
    return sum(map(_is_python, tree.chosen)) - sum(map(_is_python, unread))


def not_read(root: Path, paths: Iterable[str]) -> list[Failure]:
    """Why listed files gave no bytes; nothing for those that are simply gone."""
    out = []
    for path in paths:
        full = root / path
        try:
            about = full.lstat()
            # a job file that is a link, or too long, is nothing to tell; one without an end is
            if path.endswith(READ_KINDS) and (stat.S_ISREG((end := full.stat()).st_mode) or stat.S_ISDIR(end.st_mode)):
                continue
        except OSError:
            continue
        if stat.S_ISLNK(about.st_mode) and not path.endswith(READ_KINDS):
            out.append(Failure(path, "a symbolic link, left alone: the file it points to is what counts", left_alone=True))
        elif not stat.S_ISREG(about.st_mode):
            out.append(Failure(path, NO_FILE))
        elif about.st_size > (most := _most_bytes(path)):
            out.append(Failure(path, f"larger than {most // 1024 // 1024} MiB, so taken for data", left_alone=True))
        else:
            out.append(Failure(path, "it cannot be opened"))
    return out


def _ignored_here(finding: Finding, settings: Settings) -> bool:
    if finding.code == suppressions.CODE and any(suppressions.CODE.startswith(w.upper()) for w in settings.ignore):
        return True
    for pattern, words in (settings.per_file_ignores or {}).items():
        if fnmatch.fnmatch(finding.path, pattern):
            if any(finding.code.startswith(w.upper()) or w.lower() == finding.name for w in words):
                return True
    return False


def fix(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    accept: Accept,
    *,
    read: Callable[[str], bytes | None] | None = None,
    progress: Progress | None = None,
    project: Project | None = None,
) -> Fixed:
    """Fix a project in memory. `read` gives the bytes to work on where they are not those of the work tree.

    progress: called with the number of files that are read for the first time, and of all. project: as it is held already.
    """
    started = time.perf_counter()
    with collector_off():
        project = project or project_of(tree, settings, read or disk_reader(tree.root))
        project.failed = {}
        first, unread = gated(project, tree.chosen, codemods)
        candidates = tuple(first)
        looked = {p: who for p in first if (who := _worth_parsing(project, p, first[p]))}
        crowded = {p: why for p in looked if (module := project.module(p)) and (why := _crowded(module))}
        asked = {p: who for p, who in looked.items() if p not in crowded}

        def work(now: Project, paths: Iterable[str]) -> Mapping[str, Sequence[DdpCodemod]]:
            if now is project:
                return {p: who for p in paths if (who := asked.get(p))}
            return gated(now, (p for p in paths if p not in crowded), codemods)[0]

        wanted: Accept = lambda f: False if _ignored_here(f, settings) else accept(f)  # noqa: E731
        edited = accept.edited if isinstance(accept, Chosen) else None
        modules = [p for p in candidates if not p.endswith(NOTEBOOK)]
        alone = [p for p in candidates if p.endswith(NOTEBOOK)]
        result = fix_project(project, work, modules, wanted, edited, progress)
        result = joined([result, *(fix_project(project.seen_from(p), work, (p,), wanted, edited) for p in alone)])
        before = {path: project.raw(path) or b"" for path in result.changed}
        after = {path: as_file(path, before[path], data) for path, data in result.changed.items()}
        broken = [Failure(p, _why_unreadable(project, p, looked[p])) for p in looked if project.module(p) is None]
        parsed = sum(_is_python(p) for p in looked) - sum(_is_python(f.path) for f in broken)
        broken += [Failure(path, why, left_alone=True) for path, why in crowded.items()]
        broken += [f for path in sorted(project.failed) for f in _failures(project, path)]
    failed = (*tree.skipped, *(not_read(tree.root, unread) if read is None else ()), *broken)
    left = tuple(told_once(f for f in result.left if not _ignored_here(f, settings)))
    scanned = _scanned(tree, unread)
    report = Report(tree.root, (*result.fixed, *left), scanned, parsed, failed, time.perf_counter() - started)
    at_first = tuple(told_once(f for f in result.first if not _ignored_here(f, settings)))
    return Fixed(report, before, after, result.fixed, left, result.withdrawn, at_first, result.origins)


def as_file(path: str, before: bytes, new: bytes) -> bytes:
    """What is written to the file: of a notebook the cells that changed, in the file as it was."""
    if not path.endswith(NOTEBOOK):
        return new
    from codemods.notebook import written

    return written(path, before, new)


def _in_the_file(module: SourceModule, made: list[tuple[int, int, str]], data: bytes) -> list[tuple[int, int, str]]:
    """The replacements in a notebook's program as those of lines of its file; none where they cannot be written there."""
    from codemods.notebook import cannot_be_written, written
    from codemods.notebook_places import replaced_lines

    lines = list(module.lines)
    for top, bottom, new in reversed(made):
        lines[top - 1 : bottom] = [new]
    text = "".join(lines)
    return [] if cannot_be_written(module, text) else replaced_lines(data, written(module.path, data, text.encode()))


def line_edits(
    report: Report, *, read: Callable[[str], bytes | None] | None = None
) -> dict[str, list[dict[str, object]]]:
    """Finding id -> the line replacements of its fix, each worked out alone. Imports LibCST."""
    return with_deep_stack(lambda: _line_edits(report, read))  # one thread for all: to make one is dearer than a fix


def _line_edits(report: Report, read: Callable[[str], bytes | None] | None) -> dict[str, list[dict[str, object]]]:
    from codemods.rewriter import RewriteError, replacements
    from ddpfix.narrow_edits import narrowed

    project = Project((e.path for f in report.findings for e in f.edits), read or disk_reader(report.root))
    out: dict[str, list[dict[str, object]]] = {}
    for finding in report.findings:
        rows: list[dict[str, object]] = []
        for path in dict.fromkeys(e.path for e in finding.edits):
            edits = [e for e in finding.edits if e.path == path]
            module = project.module(path)
            if module is None:
                continue
            try:
                found = replacements(module, edits)
            except RewriteError:
                continue
            if path.endswith(NOTEBOOK):
                found = _in_the_file(module, found, project.raw(path) or b"")
            else:
                found = narrowed(module.lines, found)
            rows += [{"path": path, "start_line": top, "end_line": end, "replacement": new} for top, end, new in found]
        out[finding.id] = rows
    return out
