"""The prints of functions of the same file that a changed one calls: every rank goes on making them, and nobody changed them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted
from codemods.analysis.ranks.object_class import class_of_object
from codemods.analysis.ranks.rank_guards import Ranks, decorated_ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.findings import Evidence, Finding, claims
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import replace
from codemods.store.project import Project


def with_called_lines(project: Project, module: SourceModule, found: Sequence[Finding]) -> list[Finding]:
    """The findings of a file; one of each changed function with the prints of those that it calls among what remains."""
    known = {place.line for f in found for place in f.remaining}
    known |= {line for f in found for e in f.edits for line in range(claims(e).line, claims(e).end_line + 1)}
    done: set[FunctionNode] = set()
    out = []
    for finding in found:
        changed = _function_at(module, finding)
        if changed is None or changed in done or not finding.edits:
            out.append(finding)
            continue
        done.add(changed)
        more = [place for place in _in_calls(project, module, changed) if place.line not in known]
        known |= {place.line for place in more}
        out.append(replace(finding, remaining=(*finding.remaining, *more)))
    return out


def _function_at(module: SourceModule, finding: Finding) -> FunctionNode | None:
    """The innermost function round a finding."""
    line = finding.span.line
    around = [f for f in module.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return max(around, key=lambda f: f.lineno) if around and finding.path == module.path else None


def _prints_of_all(project: Project, module: SourceModule, called: FunctionNode) -> list[ast.stmt]:
    """The prints that each rank makes which calls the function by hand, be it a hook that Lightning runs on one process."""
    if decorated_ranks(module, called, project=project).some:
        return []
    lines = [s for s in walk_scope(called) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    printed = [s for s in lines if isinstance(s.value, ast.Call) and dotted(s.value.func) == "print"]
    return [s for s in printed if not ranks_at(module, s, project=project).some and not _is_of_error(module, s)]


def _is_of_error(module: SourceModule, statement: ast.stmt) -> bool:
    return any(isinstance(up, ast.ExceptHandler) for up in module.ancestors(statement))


def _called_here(project: Project, module: SourceModule, call: ast.Call) -> FunctionNode | None:
    """The function of this file that a call runs, also a method of an object whose class stands here."""
    site = called_function(project, module, call)
    if site is not None:
        return site.node if site.module is module else None
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = class_of_object(project, module, call.func.value)
    methods = owner.node.body if owner is not None and owner.module is module else []
    return next((m for m in methods if isinstance(m, ast.FunctionDef) and m.name == call.func.attr), None)


def _in_calls(project: Project, module: SourceModule, changed: FunctionNode) -> list[Evidence]:
    found: dict[int, Evidence] = {}
    for call in (n for n in walk_scope(changed) if isinstance(n, ast.Call)):
        called = _called_here(project, module, call)
        if called is None or called is changed or ranks_reaching(project, module, call) is not Ranks.ALL:
            continue
        lines = _prints_of_all(project, module, called)
        if lines and not is_run_by_nobody(project, module, called.body[0]):
            why = f"in {module.symbol(lines[0])}, which {changed.name} calls"
            found.update({s.lineno: Evidence("static", why, module.path, s.lineno) for s in lines})
    return [found[line] for line in sorted(found)]
