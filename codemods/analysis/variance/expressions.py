"""The value of an expression: what it is put together from, and what is the same on all ranks whatever it is made of."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.binding import bind_elements
from codemods.analysis.variance.calls import call_value
from codemods.analysis.variance.deciding import test_value
from codemods.analysis.variance.lookup import attribute_value, name_value
from codemods.analysis.variance.meetings import shown
from codemods.analysis.variance.numbered_shares import numbered_share
from codemods.analysis.variance.paths import as_many_rounds, entry_of, names_device, unpacked
from codemods.analysis.variance.shares import item_value
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, Kind, Proof, Value, along, differing, join, made_of, plain
from codemods.data.rank_variance import LOADER_NAMES
from codemods.files.source import child_nodes
from codemods.runtime.record import replace


def value_of(state: State, node: ast.expr | None) -> Value:
    """What is known of an expression, with the names as they stand at this point of the interpretation."""
    if node is None or isinstance(node, (ast.Constant, ast.Lambda)):
        return SAME
    found = _by_signal(state, node) if state.signalled else None
    if found is None:
        found = _EVALUATED.get(node.__class__, _of_parts)(state, node)
    state.values[id(node)] = found
    return found


def _by_signal(state: State, node: ast.expr) -> Value | None:
    """What a signal handler sets: each process gets the signal on its own, and at a time of its own."""
    if isinstance(node, ast.Call):
        path = f"{dotted(node.func)}()"
    elif isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)):
        path = entry_of(node) if isinstance(node, ast.Subscript) else dotted(node)
    else:
        return None
    if path not in state.signalled:
        return None
    link = state.link(node, f"`{path}` is set by a signal, which each process gets on its own")
    return differing(Cause.PLACE, Proof.PROVEN, link)


def _of_parts(state: State, node: ast.expr) -> Value:
    return made_of(*(value_of(state, child) for child in child_nodes(node) if isinstance(child, ast.expr)))


def _chosen(state: State, node: ast.BoolOp) -> Value:
    return made_of(*(value_of(state, v) for v in node.values))


def _listed(state: State, node: ast.Tuple | ast.List) -> Value:
    parts = tuple(value_of(state, e) for e in node.elts)
    if not parts:
        return SAME
    as_long = any(isinstance(e, ast.Starred) for e in node.elts)  # else as many elements are written out on every rank
    found = made_of(*parts)
    return replace(found, parts=parts, sized=found.sized and as_long)


def _named(state: State, node: ast.NamedExpr) -> Value:
    value = value_of(state, node.value)
    state.env[node.target.id] = along(value, state.link(node, f"`{state.short(node)}`"))
    return value


def _formatted(state: State, node: ast.FormattedValue) -> Value:
    value = value_of(state, node.value)
    shown(state, node, value)
    return value


def _inner(state: State, node: ast.Await | ast.Starred) -> Value:
    return value_of(state, node.value)


def _entries(state: State, node: ast.Dict) -> Value:
    """The entries, joined; `{"rank": rank, "lr": lr}` says nothing of those that are not the rank."""
    given = [value_of(state, k) for k in node.keys if k is not None]
    for key, value in zip(node.keys, node.values, strict=True):
        found = value_of(state, value)
        if found.cause is not Cause.RANK or not isinstance(key, ast.Constant):
            given.append(found)
    entries = [state.values.get(id(v), SAME) for v in node.values]
    loaders = bool(entries) and all(v.kind is Kind.LOADER and v.is_of_own_data for v in entries)
    if loaders:
        return replace(made_of(*given), thing=entries[0].thing)
    keys = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    found = made_of(*given)
    if len(set(keys)) != len(entries) or not (found.cause.differs or found.params):
        return found
    held = (replace(plain(value), entries=value.entries) if value.entries else plain(value) for value in entries)
    return replace(found, entries=tuple(zip(keys, held, strict=True)))


def _text(state: State, node: ast.JoinedStr) -> Value:
    return SAME if names_device(node) else _of_parts(state, node)


def _conditional(state: State, node: ast.IfExp) -> Value:
    several = several_processes(state.module, node.test)
    if several is not None:
        return value_of(state, node.body if several else node.orelse)
    test = test_value(state, node.test)
    state.tests[id(node.test)] = test
    if as_many_rounds(node.body, node.orelse):
        return value_of(state, unpacked(node.orelse))
    arms = join((value_of(state, node.body), value_of(state, node.orelse)))
    if not (test.cause.differs or test.params):
        return arms
    both = made_of(test, arms)
    none = any(is_none(arm) for arm in (node.body, node.orelse))
    own = test.cause.differs
    return replace(
        both,
        thing=arms.thing,
        optional=arms.optional or (none and own),
        missing=arms.missing | (test.params if none and not own else frozenset()),
    )


def _comprehension(state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    """The elements, joined; a filter by what differs makes the length differ, and one over a loader has many batches in it."""
    before = dict(state.env)
    rounds: list[Value] = []
    for part in node.generators:
        source = state.tests[id(part.iter)] = bind_elements(state, part.target, part.iter)
        tests = [_filter(state, t) for t in part.ifs]
        kept = join(tests) if tests else SAME
        rounds.append(replace(kept, sized=True) if kept.cause.differs or kept.params else source if source.sized else SAME)
    elements = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
    if isinstance(node, ast.DictComp) and value_of(state, node.key).cause.differs:
        elements.append(node.key)
    found = made_of(*(value_of(state, e) for e in elements), *rounds)
    state.env = before
    if isinstance(node, ast.DictComp) and found.sized and any(part.ifs for part in node.generators):
        found = replace(found, keyed=True)  # a filter by what the entries hold
    return replace(found, mean=True) if any(_is_of_batches(state, found, p.iter) for p in node.generators) else found


def _filter(state: State, test: ast.expr) -> Value:
    """What a test of a comprehension decides; of one that deals the elements out by their numbers, what it lets through."""
    found = test_value(state, test)
    own = numbered_share(state, test)
    return own.share if own is not None and own.when else found


def _is_of_batches(state: State, found: Value, source: ast.expr) -> bool:
    """True for elements that are made of the batches of a loader: of one that is seen, or that callers hand over by that name."""
    if not found.cause.differs and not found.params:
        return False
    kind = value_of(state, unpacked(source)).kind
    return kind is Kind.LOADER or (kind is None and LOADER_NAMES.search(last(dotted(unpacked(source)))) is not None)


_EVALUATED: dict[type[ast.expr], Callable[[State, Any], Value]] = {
    ast.Name: name_value, ast.Attribute: attribute_value, ast.Call: call_value, ast.Compare: test_value, ast.BoolOp: _chosen,
    ast.IfExp: _conditional, ast.Subscript: item_value, ast.Tuple: _listed, ast.List: _listed, ast.ListComp: _comprehension,
    ast.SetComp: _comprehension, ast.GeneratorExp: _comprehension, ast.DictComp: _comprehension, ast.NamedExpr: _named,
    ast.Dict: _entries, ast.FormattedValue: _formatted, ast.Await: _inner, ast.Starred: _inner, ast.JoinedStr: _text,
}  # fmt: skip
