"""The judgements of a project: those of the last run where they hold, the others made anew and kept for the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from codemods.analysis.ranks.gate_names import gate_names
from codemods.api.codemod import DdpCodemod
from codemods.runtime.record import record
from codemods.store.trace import Trace, together
from codemods.store.traced_project import TracedProject
from ddpfix import judging, store
from ddpfix.discovery import Tree
from ddpfix.gate import Gate
from ddpfix.results import Judged
from ddpfix.settings import Settings
from ddpfix.store import GATE, Kept


@record
class Part:
    """What one process found: the judgements of some files, what they rest on, digests of what was read for them."""

    judged: Mapping[str, Judged]
    trace: Trace
    digests: Mapping[str, bytes]


def judge_changed(
    name: str,
    project: TracedProject,
    read: store.Reader,
    now: Kept,
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    progress: judging.Progress | None = None,
    *,
    ending: bool = False,
) -> tuple[dict[str, Judged], list[str]]:
    """As `judging.judge_all`. name: of the store; now: the files as they were before any was read; read: `project` does it."""
    before = store.load(name)
    held = store.still_true(before, now, read.anew, project) if before is not None else now
    read.digests |= held.digests
    roots: dict[str, int] = {}
    ranks = held.ranks
    if GATE not in held.trace.roots:
        ranks, roots[GATE] = project.traced(lambda: gate_names(project))
        if ranks != held.ranks:  # who is asked about a file may be another for each
            held = now
    todo = [path for path in tree.chosen if path not in held.looked]
    work, _ = judging.gated(project, todo, codemods, Gate(codemods, ranks))

    def judge(paths: Sequence[str]) -> Part:
        found, own = {}, dict(roots)
        for path in judging.each(project, paths, progress):
            judge_it = partial(judging.judge_file, project, path, work[path], settings)
            found[path], own[path] = project.traced(judge_it)
        return Part(found, project.notes.trace(project, own), read.digests)

    parts = judging.shared_out(project, sorted(work), judge, ending=ending)
    if not parts and roots:
        parts = [judge(())]
    after = _joined(held, now, parts, read, ranks, todo)
    if after != before:
        store.save(name, after)
    chosen = frozenset(tree.chosen)
    judged = {path: after.judged[path] for path in sorted(chosen.intersection(after.judged))}
    return judged, [path for path in tree.chosen if after.gave_nothing(path)]


def _joined(
    held: Kept, now: Kept, parts: Sequence[Part], read: store.Reader, ranks: frozenset[str], looked: Sequence[str]
) -> Kept:
    """What is known now: what holds of the last run, and what was found in this one."""
    judged, digests = dict(held.judged), dict(read.digests)
    for part in parts:
        judged |= part.judged
        for path, digest in part.digests.items():
            if digests.setdefault(path, digest) != digest:
                digests[path] = b""  # it changed meanwhile
    traces = [t for t in (held.trace, *(p.trace for p in parts)) if t.roots]
    trace = traces[0] if len(traces) == 1 else together(traces)
    return Kept(now.stamps, now.taken, digests, ranks, held.looked.union(looked), judged, trace)
