"""Which project functions reach a collective: through calls and files, cycles cut, remembered for the project."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, run_function
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.ranks.collectives import Collective, collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.rank_tests import means_process_group
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.ranks.trace_items import Step
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project
from codemods.store.tables import Table

DEPTH = 8


@record
class Reached:
    """A collective, and the calls that lead to it; the last step is the collective itself."""

    collective: Collective
    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        return " -> ".join(step.text for step in self.steps)


def reached_by(project: Project, module: SourceModule, call: ast.Call) -> Reached | None:
    """The collective that a call of a project function comes to on every rank that makes the call."""
    site = run_function(project, module, call)
    if site is None or keeps_its_results(site.node):
        return None
    found = reached_in(project, site)
    if found is None:
        return None
    return Reached(found.collective, (Step(module.path, call.lineno, f"{module.text_of(call.func)}()"), *found.steps))


def reached_in(project: Project, site: FunctionSite) -> Reached | None:
    """The collective that a run of a function comes to on every rank that runs it."""
    return _of_function(project, site, ())


def may_put_together(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a collective that does more than wait, and for a call that comes to one of any kind."""
    found = collective_at(module, call, project)
    return (found is not None and not found.waits_only) or reached_by(project, module, call) is not None


def _of_function(project: Project, site: FunctionSite, above: tuple[tuple[str, int, int], ...]) -> Reached | None:
    known: _Known = project.memo("reached collectives", lambda: Table(project))
    key = site.key
    if key in known:
        return known[key]
    if key in above or len(above) > DEPTH:
        return None
    nodes = [n for n in walk_scope(site.node) if isinstance(n, (ast.Call, ast.Attribute))]
    with project.apart() as rest:
        found = _direct(project, site, nodes) or _through_calls(project, site, nodes, (*above, key))
    if found is not None or not above:  # a "no" in the middle of a cycle may be for the cut
        known.put(key, found, rest)
    return found


_Nodes = list[ast.Call | ast.Attribute]
_Known = Table[tuple[str, int, int], Reached | None]


def _direct(project: Project, site: FunctionSite, nodes: _Nodes) -> Reached | None:
    """A collective of the function itself, wherever its caller comes from.

    One under a test does not count: what the caller passes decides (`zero_first(-1)` waits for nobody). Tests for a run
    with several processes do not stand in the way.
    """
    for node in nodes:
        collective = collective_at(site.module, node, project)
        if collective is None or collective.grouped or collective.name in ("init_process_group", "new_group"):
            continue
        if _always(project, site, node):
            return Reached(collective, (Step(site.module.path, node.lineno, collective.text),))
    return None


def _always(project: Project, site: FunctionSite, node: ast.AST) -> bool:
    """True where a call of the function comes to `node` on every rank that runs with others."""
    if is_of_one_process(site.module, node):
        return False
    below = node
    for up in site.module.ancestors(node):
        if up is site.node:
            break
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            inside = below is up.body or (isinstance(up.body, list) and any(s is below for s in up.body))
            if not inside or not means_process_group(site.module, up.test):
                return False
        below = up
    return ranks_at(site.module, node, project=project) is Ranks.ALL


def _through_calls(
    project: Project, site: FunctionSite, nodes: _Nodes, above: tuple[tuple[str, int, int], ...]
) -> Reached | None:
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        inner = run_function(project, site.module, node)
        if inner is None or inner.key in above:
            continue
        found = _of_function(project, inner, above)
        if found is not None and _always(project, site, node):
            step = Step(site.module.path, node.lineno, f"{site.module.text_of(node.func)}()")
            return Reached(found.collective, (step, *found.steps))
    return None
