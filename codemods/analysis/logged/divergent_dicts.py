"""The keys of a logged dictionary that a loop over values of the batch makes, also in the helper that returns it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.logged.called_values import arguments_of, callee
from codemods.analysis.logged.divergent_keys import Divergence, decides, iterates_values, made_of_batch
from codemods.analysis.logged.log_calls import LogCall, logged_value, scope_of
from codemods.analysis.logged.logged_values import Scope, classify
from codemods.analysis.logged.value_kinds import Kind
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import record

HELPERS_DEEP = 3
_OF_THE_BATCH = frozenset({Kind.LOCAL, Kind.NUMBER, Kind.CPU})


@record
class _Place:
    """An expression in a function, and the names there that hold values of the batch."""

    scope: Scope
    function: FunctionNode
    made: frozenset[str]

    @property
    def module(self) -> SourceModule:
        return self.scope.module


def names_of_batch(log: LogCall) -> frozenset[str]:
    """The names of the function of a log call that hold values of the batch: in another object, by what its callers hand in."""
    if log.held is None or log.in_hooked_class:
        key = ("names of batch", log.module.path, log.function.lineno, log.function.col_offset, log.function.name)
        return log.project.memo(key, lambda: made_of_batch(log.function))
    scope = scope_of(log)
    given = {n for n in scope.given if classify(scope, ast.Name(n, ast.Load())).kind in _OF_THE_BATCH}
    return made_of_batch(log.function, given)


def dictionary_divergence(log: LogCall) -> Divergence | None:
    """What lets the batch decide over the keys of the dictionary that `log_dict` logs, or over their order."""
    value = logged_value(log.call)
    if log.is_log or value is None:
        return None
    place = _Place(scope_of(log), log.function, names_of_batch(log))
    return next(_in(place, value, 0), None)


def _in(place: _Place, node: ast.expr, depth: int) -> Iterator[Divergence]:
    """node: the expression that makes the dictionary, or what it iterates over."""
    if depth > HELPERS_DEEP:
        return
    if isinstance(node, ast.Name):
        yield from _in_name(place, node.id, depth)
    elif isinstance(node, ast.DictComp):
        for generator in node.generators:
            if iterates_values(generator.iter, place.made) or any(decides(t, place.made) for t in generator.ifs):
                yield Divergence("loop", place.module.text_of(generator.iter), generator.iter.lineno)
            yield from _in(place, generator.iter, depth)
    elif isinstance(node, ast.Call):
        if dotted(node.func) == "sorted" and (by := _sorted_by(node, place.made)) is not None:
            yield Divergence("order", place.module.text_of(by), node.lineno)
        else:
            yield from _in_helper(place, node, depth)


def _sorted_by(node: ast.Call, made: frozenset[str]) -> ast.expr | None:
    """The key by whose values something of the batch is sorted."""
    key = next((k.value for k in node.keywords if k.arg == "key"), None)
    given = any(isinstance(n, ast.Name) and n.id in made for a in node.args for n in ast.walk(a))
    asks = isinstance(key, ast.Lambda) and any(isinstance(n, ast.Attribute) and n.attr == "item" for n in ast.walk(key.body))
    return key if given and asks else None


def _in_name(place: _Place, name: str, depth: int) -> Iterator[Divergence]:
    """A name that one expression gives a dictionary, and what is put into it afterwards."""
    for node in walk_scope(place.function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield from _in(place, node.value, depth + 1)
            elif isinstance(target, ast.Subscript) and dotted(target.value) == name:
                if not isinstance(target.slice, ast.Constant):
                    yield from _round(place, node)
                else:
                    yield from _tested(place, node)


def _round(place: _Place, node: ast.stmt) -> Iterator[Divergence]:
    """The loops round an entry whose key is worked out."""
    for up in place.module.ancestors(node):
        if up is place.function:
            break
        if isinstance(up, ast.For) and iterates_values(up.iter, place.made):
            yield Divergence("loop", place.module.text_of(up.iter), up.lineno)
    yield from _tested(place, node)


def _tested(place: _Place, node: ast.stmt) -> Iterator[Divergence]:
    """The tests on the batch round an entry."""
    for up in place.module.ancestors(node):
        if up is place.function:
            return
        if isinstance(up, ast.If) and not up.orelse and decides(up.test, place.made):
            yield Divergence("if", place.module.text_of(up.test), up.lineno)


def _in_helper(place: _Place, node: ast.Call, depth: int) -> Iterator[Divergence]:
    """The dictionary that a function of the project returns."""
    target = callee(place.scope, node)
    if target is None:
        return
    scope, function = target
    method = bool(function.args.args) and function.args.args[0].arg == "self"
    handed = arguments_of(node, function, skip_self=method)
    made = {n for n, v in handed.items() if any(isinstance(p, ast.Name) and p.id in place.made for p in ast.walk(v))}
    inner = _Place(scope, function, made_of_batch(function, made))
    for returned in walk_scope(function):
        if isinstance(returned, ast.Return) and returned.value is not None:
            yield from _in(inner, returned.value, depth + 1)
