"""Files in, findings or fixed bytes out, in memory: only ddpfix.git ever writes inside a repository."""

from __future__ import annotations

import gc
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.fix_source import Accept, Chosen, fix_project, joined
from codemods.engine.reported_once import told_once
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, READ_KINDS
from codemods.runtime.deep_stack import with_deep_stack
from codemods.store.project import Project
from codemods.store.traced_project import TracedProject
from ddpfix import cache, catalog, plugins, store
from ddpfix.discovery import Tree
from ddpfix.judging import (
    Progress,
    failures,
    gated,
    ignored_here,
    is_python,
    judge_all,
    why_crowded,
    why_unreadable,
    worth_parsing,
)
from ddpfix.rejudging import judge_changed
from ddpfix.results import Failure, Fixed, Report
from ddpfix.settings import Settings
from ddpfix.unlisted import NO_FILE

P = TypeVar("P", bound=Project)
_LEFT: list[Project] = []  # taking a million nodes apart, one by one, is a tenth of a run: the end of the process does it
LARGEST = 2 * 1024 * 1024  # a Python file of more bytes is data
LARGEST_NOTEBOOK = 64 * 1024 * 1024  # its outputs hold pictures


def project_of(tree: Tree, settings: Settings, read: Callable[[str], bytes | None], made: type[P]) -> P:
    """The project as the codemods see it: its files, what was seen of its runs, and what its settings say of it."""
    return made(tree.files, read, observed=tree.observed, targets=settings.targets, launched=settings.launched)


def _begun(project: P, ending: bool) -> P:
    project.failed = {}
    if ending:
        _LEFT.append(project)
    return project


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
        plugged_in = any(catalog.is_plugged_in(c) for c in chosen)
        kept = cache.key_of_judgements(tree, settings, chosen) if use_cache and not plugged_in else ""
        report = _check(tree, settings, chosen, started, progress, read or disk_reader(tree.root), ending, kept)
    if state and (codemods is not None or not plugged_in):
        cache.store(key, state, report)
    return report


def _check(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    started: float,
    progress: Progress | None,
    read: Callable[[str], bytes | None],
    ending: bool,
    kept: str,
) -> Report:
    if kept:
        now, seen = store.begun(tree.root, tree.files), store.Reader(read)
        traced = _begun(project_of(tree, settings, seen, TracedProject), ending)
        judged, unread = judge_changed(kept, traced, seen, now, tree, settings, codemods, progress, ending=ending)
    else:
        project = _begun(project_of(tree, settings, read, Project), ending)
        judged, unread = judge_all(project, tree, settings, codemods, progress, ending=ending)
    findings = tuple(told_once([f for part in judged.values() for f in part.findings]))
    failed = (*tree.skipped, *not_read(tree.root, unread), *(f for part in judged.values() for f in part.broken))
    scanned = _scanned(tree, unread)
    parsed = sum(part.parsed for part in judged.values())
    left_out = sum(part.left_out for part in judged.values())
    return Report(tree.root, findings, scanned, parsed, failed, time.perf_counter() - started, left_out)


def _scanned(tree: Tree, unread: Iterable[str]) -> int:
    """How many Python files were looked at."""
    return sum(map(is_python, tree.chosen)) - sum(map(is_python, unread))


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
        project = project or project_of(tree, settings, read or disk_reader(tree.root), Project)
        project.failed = {}
        first, unread = gated(project, tree.chosen, codemods)
        candidates = tuple(first)
        looked = {p: who for p in first if (who := worth_parsing(project, p, first[p]))}
        crowded = {p: why for p in looked if (module := project.module(p)) and (why := why_crowded(module))}
        asked = {p: who for p, who in looked.items() if p not in crowded}

        def work(now: Project, paths: Iterable[str]) -> Mapping[str, Sequence[DdpCodemod]]:
            if now is project:
                return {p: who for p in paths if (who := asked.get(p))}
            return gated(now, (p for p in paths if p not in crowded), codemods)[0]

        def wanted(finding: Finding) -> bool | None:
            return False if ignored_here(finding, settings) else accept(finding)

        edited = accept.edited if isinstance(accept, Chosen) else None
        modules = [p for p in candidates if not p.endswith(NOTEBOOK)]
        alone = [p for p in candidates if p.endswith(NOTEBOOK)]
        result = fix_project(project, work, modules, wanted, edited, progress)
        result = joined([result, *(fix_project(project.seen_from(p), work, (p,), wanted, edited) for p in alone)])
        before = {path: project.raw(path) or b"" for path in result.changed}
        after = {path: as_file(path, before[path], data) for path, data in result.changed.items()}
        broken = [Failure(p, why_unreadable(project, p, looked[p])) for p in looked if project.module(p) is None]
        parsed = sum(is_python(p) for p in looked) - sum(is_python(f.path) for f in broken)
        broken += [Failure(path, why, left_alone=True) for path, why in crowded.items()]
        broken += [f for path in sorted(project.failed) for f in failures(project, path)]
    failed = (*tree.skipped, *(not_read(tree.root, unread) if read is None else ()), *broken)
    left = tuple(told_once(f for f in result.left if not ignored_here(f, settings)))
    scanned, left_out = _scanned(tree, unread), sum(project.left_out.values())
    report = Report(tree.root, (*result.fixed, *left), scanned, parsed, failed, time.perf_counter() - started, left_out)
    at_first = tuple(told_once(f for f in result.first if not ignored_here(f, settings)))
    return Fixed(report, before, after, result.fixed, left, result.withdrawn, at_first, result.origins)


def as_file(path: str, before: bytes, new: bytes) -> bytes:
    """What is written to the file: of a notebook the cells that changed, in the file as it was."""
    if not path.endswith(NOTEBOOK):
        return new
    from codemods.files.notebook import written

    return written(path, before, new)


def _in_the_file(module: SourceModule, made: list[tuple[int, int, str]], data: bytes) -> list[tuple[int, int, str]]:
    """The replacements in a notebook's program as those of lines of its file; none where they cannot be written there."""
    from codemods.files.notebook import cannot_be_written, written
    from codemods.files.notebook_places import replaced_lines

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
    from codemods.rewriting.rewriter import RewriteError, replacements
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
