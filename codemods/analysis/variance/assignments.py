"""Statements that give a name its value, and `return`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.conditions import conjuncts
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.binding import bind
from codemods.analysis.variance.copies import keep_fields
from codemods.analysis.variance.given_in_turn import is_given_in_turn
from codemods.analysis.variance.given_up import emptied
from codemods.analysis.variance.meetings import make_same, settle_object
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause, How, Value, along, join, made_of, plain
from codemods.data.rank_variance import STOP_FLAGS
from codemods.files.source import walk
from codemods.runtime.record import replace


def assign(state: State, node: ast.Assign) -> None:
    value = _noted(state, node, node.targets[0], state.value(node.value))
    for target in node.targets:
        off = isinstance(node.value, ast.Constant) and not node.value.value
        if isinstance(target, ast.Attribute) and target.attr in STOP_FLAGS and not off:
            state.stops.append((node, value))
        bind(state, target, value, grows=not _has_the_key(state, node, target))
        keep_fields(state, target, node.value)
        if isinstance(target, ast.Name):
            state.begun[target.id] = tuple(state.control)
            if state.in_place and _is_gathered_back(state, target, node.value, value):
                state.made_same.add(target.id)  # under a test: the other way is that of a single process
        if isinstance(target, ast.Subscript) and _is_gathered_back(state, target, node.value, value):
            make_same(state, target.value)
        if isinstance(target, ast.Attribute) and not value.cause.differs and not state.made_same.isdisjoint(_names(node.value)):
            settle_object(state, path_of(target))  # `meter.matrix = total.cpu()` of a `total` that was reduced


def _has_the_key(state: State, node: ast.Assign, target: ast.expr) -> bool:
    """True for `d[k] = v` under `if k in d:`, which puts no key in."""
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Constant):
        return False
    for up in state.module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and any(s.lineno <= node.lineno <= (s.end_lineno or s.lineno) for s in up.body):
            if any(_asks_for(part, target) for part in conjuncts(up.test)):
                return True
    return False


def _asks_for(test: ast.expr, target: ast.Subscript) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.In):
        return False
    held = test.comparators[0]
    if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr == "keys":
        held = held.func.value
    return ast.unparse(test.left) == ast.unparse(target.slice) and ast.unparse(held) == ast.unparse(target.value)


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in (node, *walk(node)) if isinstance(n, ast.Name)}


def _is_gathered_back(state: State, target: ast.Name | ast.Subscript, given: ast.expr, value: Value) -> bool:
    """True for `losses = gather_object(losses)` and `out["boxes"] = gather_all(out["boxes"])`: `out` is what all ranks have."""
    if value.cause.differs or not isinstance(given, ast.Call) or not any(m.carries for m in state.met.get(id(given), ())):
        return False
    entry = ast.unparse(target)
    return any(ast.unparse(a) == entry for a in (*given.args, *(k.value for k in given.keywords)))


def annotated_assign(state: State, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    value = _noted(state, node, node.target, state.value(node.value))
    if value.thing is None:
        value = replace(value, thing=state.summaries.annotated(state.module, node.annotation))
    bind(state, node.target, value)


def augmented(state: State, node: ast.AugAssign) -> None:
    """`total += loss`: in a loop over batches it is put together from many of them."""
    new = made_of(state.value(node.target), _decided(state, state.value(node.value)))
    if new.cause.differs or new.params:
        way = along(new, state.link(node, f"`{state.short(node)}`", how=How.ASSIGNED))
        new = replace(way, mean=new.mean or state.data_loops > 0)
    bind(state, node.target, new, grows=_makes_entries(state, node.target))


def _makes_entries(state: State, target: ast.expr) -> bool:
    """True for `counts[name] += 1` of a `defaultdict` or a `Counter`: a key that is not there is put in."""
    held = target.value if isinstance(target, ast.Subscript) else None
    bound = bindings_of(state.module, held) if isinstance(held, ast.Name) else ()
    if isinstance(held, ast.Attribute):
        bound = attribute_bindings(state.module, held)
    return any(isinstance(b.value, ast.Call) and last(dotted(b.value.func)) in ("defaultdict", "Counter") for b in bound)


def returned(state: State, node: ast.Return) -> bool:
    value = state.value(node.value)
    if not state.one_return:
        value = replace(_decided(state, value), parts=_decided_parts(state, node, value))
    if node.value is None or is_none(node.value):
        value = _missing(value)
    value = emptied(state, node.value, value)
    state.returns.append(_told(state, node, value) if value.cause.differs else value)
    return True


def _decided_parts(state: State, node: ast.Return, value: Value) -> tuple[Value, ...]:
    """The elements of what is given back, each decided by the tests round it, but for those that every `return` gives alike."""
    if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(value.parts):
        return value.parts
    found = list(value.parts)
    for i, written in enumerate(node.value.elts):
        if i in state.alike_parts:
            continue
        part = _decided(state, found[i])
        found[i] = _missing(part) if is_none(written) else part
    return tuple(found)


def _noted(state: State, node: ast.Assign | ast.AnnAssign, target: ast.expr, value: Value) -> Value:
    """The value as the target keeps it: with what decides over the statement, and with the statement on its way."""
    if not _makes_object(node.value):
        value = _decided(state, value, target)
    if not (value.cause.differs or value.params):
        return value
    return _told(state, node, _missing(value) if is_none(node.value) else value)


def _missing(none: Value) -> Value:
    """None, as it is decided: where nothing but parameters and fields decides, they tell whether a rank has it."""
    return replace(none, optional=True) if none.cause.differs else replace(none, missing=none.params)


def _makes_object(node: ast.expr | None) -> bool:
    """True for `cfg = Config(...)`: which object it is says nothing of what it holds."""
    return isinstance(node, ast.Call) and last(dotted(node.func))[:1].isupper()


def _decided(state: State, value: Value, target: ast.expr | None = None) -> Value:
    """A value that is given under a test: which one it is differs where the test does."""
    deciding = [c for c in state.control if c.cause.differs or c.params]
    alike = isinstance(target, ast.Name) and any(target.id in names for names in state.alike)
    if not alike and target is not None and any(c.cause is Cause.RANK for c in deciding):
        alike = is_given_in_turn(state, target)
    if alike or value.thing is not None:  # which object it is says nothing of numbers
        deciding = [c for c in deciding if c.cause is not Cause.RANK]
    if not deciding:
        return value
    tests = [replace(plain(c), sized=False) for c in deciding]
    found = join((plain(value), *tests))
    entries = tuple((key, join((plain(entry), *tests))) for key, entry in value.entries)
    decided = found.decided or not value.cause.differs
    return replace(found, thing=value.thing, parts=value.parts, entries=entries, decided=decided)


def _told(state: State, node: ast.stmt, value: Value) -> Value:
    """The value, and the elements of a tuple or the entries of a dict, with the statement as a step of their way."""
    link = state.link(node, f"`{state.short(node)}`", how=How.ASSIGNED)
    parts, entries = tuple(along(p, link) for p in value.parts), tuple((key, along(v, link)) for key, v in value.entries)
    return replace(along(value, link), parts=parts, entries=entries)
