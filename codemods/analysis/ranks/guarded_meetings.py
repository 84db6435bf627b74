"""What a new guard would keep the other ranks from: a backward pass or a collective in the statements that it goes round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.ranks.collectives import collective_at
from codemods.api.findings import Finding, ReplaceExpression, Span, WrapInGuard
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_RANKS = lazy(r"rank|zero|main|master|process_index|leader|chief")
_BACKWARD = frozenset({"backward", "manual_backward"})  # DDP averages the gradients in it


def meeting_under(project: Project, module: SourceModule, finding: Finding) -> ast.Call | None:
    """The first call under a guard of the fix that every rank has to make; None where there is none."""
    for first, last in _guarded(module, finding):
        for call in module.nodes(ast.Call):
            if first.line <= call.lineno <= last.end_line and _is_between(module.span(call), first, last):
                if _meets(project, module, call, first.line):
                    return call
    return None


def _is_between(span: Span, first: Span, last: Span) -> bool:
    begins = (first.line, first.column) <= (span.line, span.column)
    return begins and (span.end_line, span.end_column) <= (last.end_line, last.end_column)


def _guarded(module: SourceModule, finding: Finding) -> Iterator[tuple[Span, Span]]:
    """The first and the last statement that each guard goes round, be it an `if` of its own or a part of one that is there."""
    for edit in finding.edits:
        if isinstance(edit, WrapInGuard) and edit.path == module.path and _OF_RANKS.search(edit.test):
            yield edit.span, edit.last
        elif isinstance(edit, ReplaceExpression) and edit.path == module.path and " and " in edit.code:
            held = (n for n in module.nodes(ast.If) if module.span(n.test) == edit.span)
            yield from ((module.span(n.body[0]), module.span(n.body[-1])) for n in held)


def _meets(project: Project, module: SourceModule, call: ast.Call, first: int) -> bool:
    if not isinstance(call.func, (ast.Attribute, ast.Name)):
        return False
    function = module.function_of(call)
    if function is not None and function.lineno >= first:
        return False  # defined there, and called elsewhere
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    if name in _BACKWARD:
        return True
    found = collective_at(module, call, project)
    return found is not None and not found.grouped
