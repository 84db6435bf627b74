"""What codemods find in the files of a project, file by file: through the gate, one after the other, in several processes."""

from __future__ import annotations

import ast
import fnmatch
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from codemods.analysis.ranks.gate_names import gate_names
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine import suppressions
from codemods.engine.find import find_in
from codemods.files.source import SourceModule
from codemods.files.text_file import READ_KINDS, UNREADABLE
from codemods.runtime.deep_stack import with_deep_stack
from codemods.store.project import Project
from ddpfix import workers
from ddpfix.discovery import Tree
from ddpfix.gate import Gate
from ddpfix.results import Failure, Judged
from ddpfix.settings import Settings

T = TypeVar("T")
Progress = Callable[[int, int], None]
BRANCHING = 400  # statements that branch, in one function: more have been written by a program, and tests for ranks are compared
# with each other (twice as many take four times as long)


def judge_all(
    project: Project,
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    progress: Progress | None = None,
    *,
    ending: bool = False,
) -> tuple[dict[str, Judged], list[str]]:
    """(what came of each file that passes the gate, in order; paths without bytes). ending: as for `engine.check`."""
    work, unread = gated(project, tree.chosen, codemods)

    def judge(paths: Sequence[str]) -> dict[str, Judged]:
        return {path: judge_file(project, path, work[path], settings) for path in each(project, paths, progress)}

    parts = shared_out(project, sorted(work), judge, ending=ending)
    return {path: found for part in parts for path, found in part.items()}, unread


def each(project: Project, paths: Sequence[str], progress: Progress | None) -> Iterator[str]:
    """The files one by one, with room made before each."""
    for i, path in enumerate(paths):
        if progress:
            progress(i, len(paths))
        project.make_room()
        yield path


def shared_out(project: Project, paths: Sequence[str], judge: Callable[[Sequence[str]], T], *, ending: bool) -> list[T]:
    """`judge` of the files in parts, in order, as many at once as is worth it. ending: the process ends with this check."""
    if not paths:
        return []
    # a server may have threads, which a fork leaves behind; a process that ends with this has none
    most = None if ending else 1
    shares = workers.parts(paths, lambda p: len(Project.read(project, p) or b""), most=most)
    return workers.judged(shares, lambda paths: with_deep_stack(lambda: judge(paths)))


def judge_file(project: Project, path: str, asking: Sequence[DdpCodemod], settings: Settings) -> Judged:
    """What some codemods, those that the gate lets through, find in a file; what it shares with others is not put together."""
    here = project.seen_from(path)
    asking = worth_parsing(project, path, asking)
    if not asking:
        return Judged()
    module = here.module(path)
    if module is None:
        return Judged(broken=(Failure(path, why_unreadable(here, path, asking)),))
    if crowded := why_crowded(module):
        return Judged(broken=(Failure(path, crowded, left_alone=True),), parsed=int(is_python(path)))
    findings = tuple(f for f in find_in(module, here, asking) if not ignored_here(f, settings))
    return Judged(findings, tuple(failures(project, path)), int(is_python(path)), here.left_out.get(path, 0))


def why_crowded(module: SourceModule) -> str:
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


def failures(project: Project, path: str) -> list[Failure]:
    """What went wrong in a file that was read; all others have been checked."""
    return [Failure(path, text) for text in (project.failed or {}).get(path, ())]


def why_unreadable(project: Project, path: str, codemods: Sequence[DdpCodemod]) -> str:
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
    gate = gate or Gate(codemods, gate_names(project))
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


def worth_parsing(project: Project, path: str, codemods: Sequence[DdpCodemod]) -> Sequence[DdpCodemod]:
    """The codemods that can have something to say of a file that passed the gate, as far as the other files show it."""
    data = project.read(path) or b""
    # else what finds nothing matters, too: its suppression is unused
    if b"ddpfix:" in data or data.startswith(UNREADABLE):
        return codemods
    here = project.seen_from(path)
    return [c for c in codemods if _is_worth_parsing(c, path, here)]


def _is_worth_parsing(codemod: DdpCodemod, path: str, project: Project) -> bool:
    try:
        return codemod.is_worth_parsing(path, project)
    except Exception:  # as of a part of `find`, which is asked next, and whose failure is noted at the file
        if project.failed is None:
            raise
        return True


def is_python(path: str) -> bool:
    return not path.endswith(READ_KINDS)


def ignored_here(finding: Finding, settings: Settings) -> bool:
    if finding.code == suppressions.CODE and any(suppressions.CODE.startswith(w.upper()) for w in settings.ignore):
        return True
    for pattern, words in (settings.per_file_ignores or {}).items():
        if fnmatch.fnmatch(finding.path, pattern):
            if any(finding.code.startswith(w.upper()) or w.lower() == finding.name for w in words):
                return True
    return False
