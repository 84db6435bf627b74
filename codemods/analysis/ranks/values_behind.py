"""Where a value comes from: names, fields, what a function gives back and is handed, what `mp.spawn` hands over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.names import dotted
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.member_values import member_values
from codemods.analysis.ranks.raised_numbers import is_raised
from codemods.analysis.ranks.rank_members import field_bindings, options_elsewhere
from codemods.analysis.ranks.rank_sources import imported_value
from codemods.analysis.ranks.returned_parts import returned_parts
from codemods.analysis.ranks.spawned import spawned_parameter
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

DEPTH = 7
MOST_CALLS = 12
_SIZE = lazy(r"world|replica|n_?procs?\b|num_proc|n_?gpus?\b", re.I)


@record
class Value:
    """Where a value comes from. given: the argument of the outermost call that hands it over, without one the expression."""

    module: SourceModule
    node: ast.expr
    given_in: SourceModule
    given: ast.expr


def values_behind(project: Project, module: SourceModule, node: ast.expr, *, constants: bool = False) -> list[Value]:
    """The expressions that a value comes from. constants: also those beside others, as a run with one process gives them."""
    found = list(_behind(project, Value(module, node, module, node), 0))
    if constants:
        return found
    telling = [v for v in found if not isinstance(v.node, ast.Constant)]
    return telling or found


def _behind(project: Project, value: Value, depth: int) -> Iterator[Value]:
    node, module = value.node, value.module
    if depth > DEPTH:
        yield value
        return
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.NamedExpr):
        parts = [node.value]
    elif isinstance(node, ast.Call) and dotted(node.func) in ("int", "str") and len(node.args) == 1:
        parts = node.args
    else:
        yield from _named(project, value, depth)
        return
    for part in parts:
        yield from _behind(project, _moved(value, module, part), depth + 1)


def _moved(value: Value, module: SourceModule, node: ast.expr) -> Value:
    """The same value a step further back; while no call hands it over, the expression asked about stays."""
    return Value(module, node, value.given_in, value.given)


def _named(project: Project, value: Value, depth: int) -> Iterator[Value]:
    node, module = value.node, value.module
    if isinstance(node, ast.Name):
        if spawned_parameter(project, module, node):
            bound = bindings_of(module, node)
            if len(bound) == 1:
                yield value
                return
        yield from _bound(project, value, bindings_of(module, node), depth)
    elif isinstance(node, ast.Attribute):
        yield from _of_attribute(project, value, node, depth)
    elif isinstance(node, ast.Call) and (site := called_function(project, module, node)) is not None:
        returned = [r.value for r in walk_scope(site.node) if isinstance(r, ast.Return) and r.value is not None]
        if not returned or len(returned) > 3 or site.node.name == "__init__":
            yield value
        for result in returned[:3] if len(returned) <= 3 else []:
            yield from _behind(project, _moved(value, site.module, result), depth + 1)
    else:
        yield value


def _of_attribute(project: Project, value: Value, node: ast.Attribute, depth: int) -> Iterator[Value]:
    if is_raised(project, value.module, node):
        yield _moved(value, value.module, node.value)  # no longer what it was given first
        return
    if own := attribute_bindings(value.module, node):
        yield from _bound(project, value, own, depth)
        return
    fields = field_bindings(project, value.module, node)
    if any(not same_program(project, value.module.path, m.path) for m, _ in fields):
        yield _moved(value, value.module, node.value)  # another program's own: what it is here is unknown
        return
    if not fields and _SIZE.search(node.attr):
        given = options_elsewhere(project, node)
        fields = [(m, b) for m, b in given if same_program(project, value.module.path, m.path)]
    others = [(m, b.value) for m, b in fields if b.value is not None and dotted(b.value) != dotted(node)]
    others = others or (member_values(project, value.module, node) if not fields else [])
    if not others or len(others) > 4:
        yield value
        return
    for module, held in others:
        yield from _behind(project, _moved(value, module, held), depth + 1)


def _bound(project: Project, value: Value, bound: list[Binding], depth: int) -> Iterator[Value]:
    if not bound and isinstance(value.node, ast.Name):
        imported = imported_value(value.module, value.node, project)
        if imported is not None:
            yield from _behind(project, _moved(value, *imported), depth + 1)
            return
    parts = _parts(project, value, bound)
    if not bound or len(bound) > 4 or any(b.value is None and not b.parameter for b in bound) or None in parts:
        yield value
        return
    for binding, given in zip(bound, parts, strict=True):
        if given:
            for module, part in given:
                yield from _behind(project, _moved(value, module, part), depth + 1)
        elif binding.parameter:
            yield from _given(project, value, binding, depth)
        elif binding.value is not None:
            yield from _behind(project, _moved(value, value.module, binding.value), depth + 1)


def _parts(project: Project, value: Value, bound: list[Binding]) -> list[list[tuple[SourceModule, ast.expr]] | None]:
    """For each binding what a tuple that is taken apart holds there, None where that is not shown; nothing for any other."""
    name = dotted(value.node)
    return [(returned_parts(project, value.module, name, b) or None) if b.part else [] for b in bound]


def _given(project: Project, value: Value, binding: Binding, depth: int) -> Iterator[Value]:
    """What the callers hand over for a parameter; the parameter itself where nobody is seen to."""
    function = value.module.function_of(binding.node)
    assert isinstance(binding.node, ast.arg)
    handed = list(arguments(project, value.module, function, binding.node.arg)) if function is not None else []
    if not handed or len(handed) > MOST_CALLS:
        yield value
        return
    for module, node in handed:
        yield from _behind(project, Value(module, node, module, node), depth + 1)
