"""Findings that lie behind another one: a line that is reported ends each run of several processes, and no rank gets to them.

They are said as soon as that line is put right. What is found of a crash or a hang is said all the same: who repairs one wants to
know of the next.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.ranks.failing_statements import Places, place_of
from codemods.analysis.ranks.shown_runs import ends_above, ends_nearby
from codemods.analysis.wrapped.holders import wrapper_in
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.seen_ranks import OF_RUNS
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, TextFile
from codemods.store.project import Project

_WHY = "no run of several processes gets past what {} reports beside it: this is reported once that is repaired"


def without_what_is_behind(
    project: Project, module: SourceModule, found: Sequence[Finding], chosen: Sequence[DdpCodemod]
) -> list[Finding]:
    """The findings of a file without the noise, and the spoilt data, of places that each of its runs on several processes ends
    above; without noise also where it ends right below.
    """
    ending = {c.code for c in chosen if c.ends_each_run}
    ends = [f for f in found if f.code in ending and f.severity == "crash" and f.path == module.path]
    if not ends or isinstance(module, TextFile) or module.path.endswith(NOTEBOOK):
        return list(found)
    of_runs = {c.code for c in chosen if c.topic() in OF_RUNS} - ending
    at = _raising(project, module, ends)
    why = _WHY.replace("{}", " and ".join(sorted({f.code for f in ends})))
    behind = (f.code in of_runs and f.path == module.path and _is_behind(project, module, f, at) for f in found)
    return [f for f, gone in zip(found, behind, strict=True) if not gone or not left(module, f.span, why)]


def _raising(project: Project, module: SourceModule, ends: Sequence[Finding]) -> Places:
    """The expressions that raise on each rank: they ask a wrapper that is there in any case for what it has not."""
    spans = {f.span for f in ends}
    nodes = (n for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Load) and module.span(n) in spans)
    made = ((n, wrapper_in(project, module, n.value)) for n in nodes)
    return frozenset(place_of(module, n) for n, wrapped in made if wrapped is not None and wrapped.always)


def _is_behind(project: Project, module: SourceModule, finding: Finding, at: Places) -> bool:
    if not at or finding.severity not in ("noise", "data"):
        return False
    if ends_above(project, module, finding.span, at):
        return True
    return finding.severity == "noise" and ends_nearby(project, module, finding.span, at)
