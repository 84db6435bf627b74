"""Loops: over modules they are unrolled, all others run once and are noted down as an assumption where it matters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.model.flow_elements import iterate
from codemods.analysis.model.flow_frame import Env, Frame
from codemods.analysis.model.flow_meeting import meet_all
from codemods.analysis.model.flow_tests import cause_of
from codemods.analysis.model.flow_values import NOTHING, Cause, Names, Value, flat, union
from codemods.analysis.names import dotted, last
from codemods.files.source import walk
from codemods.runtime.record import replace

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow


def for_statement(flow: Flow, frame: Frame, node: ast.For | ast.AsyncFor, env: Env) -> Env | None:
    rounds = iterate(flow, frame, env, node.iter)
    frame.breaks.append([])
    current: Env | None = env
    before = dict(env)
    counted = rounds is None
    if rounds is None:
        element = _generic_element(flow, frame, env, node)
        rounds = [element]
    for value in rounds:
        if current is None:
            break
        frame.loops.append([])
        flow.assign(frame, current, node.target, value)
        depth = len(frame.tests)
        current = flow.block(frame, node.body, current)
        del frame.tests[depth:]
        for early, test in frame.loops.pop():
            current = early if current is None else meet_all(flow, frame, current, early, test)
    for early, test in frame.breaks.pop():
        current = early if current is None else meet_all(flow, frame, current, early, test)
    if current is None:
        return None
    if counted:
        current = _once_more(flow, frame, node, current, before)
    elif repeated := _repeated(flow, rounds):
        current = _of_the_last(flow, frame, node, current, rounds[0], repeated)
    if not _runs(flow, frame, env, node.iter):
        gained = {p for n, v in current.items() for p in v.must - before.get(n, NOTHING).must}
        if gained:
            flow.assumptions.setdefault(f"the loop at {frame.module.path}:{node.lineno} runs at least once")
    return flow.block(frame, node.orelse, current)


def _generic_element(flow: Flow, frame: Frame, env: Env, node: ast.For | ast.AsyncFor) -> Value:
    value = flow.eval(frame, env, node.iter)
    name = last(dotted(node.iter.func)) if isinstance(node.iter, ast.Call) else ""
    if name == "range":
        return Value(index_of="*")
    if name == "enumerate" and isinstance(node.iter, ast.Call) and node.iter.args:
        inner = flow.element(flow.eval(frame, env, node.iter.args[0]), object())
        return replace(union([inner]), parts=((0, Value(index_of="*")), (1, inner)))
    if value.refs:
        return flow.element(value, None)
    if not (value.many or value.parts):
        return flat(value)
    return flat(value) if _adds_up(node) else flow.element(value, object())


def _runs(flow: Flow, frame: Frame, env: Env, iterated: ast.expr) -> bool:
    """True where the loop goes over modules (no round without a module) or a literal."""
    if isinstance(iterated, (ast.List, ast.Tuple)):
        return True
    return iterate(flow, frame, env, iterated) is not None


def while_statement(flow: Flow, frame: Frame, node: ast.While, env: Env) -> Env | None:
    before = dict(env)
    frame.loops.append([])
    frame.breaks.append([])
    current = flow.block(frame, node.body, env)
    for early, test in [*frame.loops.pop(), *frame.breaks.pop()]:
        current = early if current is None else meet_all(flow, frame, current, early, test)
    if current is None:
        return None
    if _counts_what_is_there(frame, node.test):  # as for a loop over them: no step is without one
        if any(v.must - before.get(n, NOTHING).must for n, v in current.items()):
            flow.assumptions.setdefault(f"the loop at {frame.module.path}:{node.lineno} runs at least once")
        return _once_more(flow, frame, node, current, before)
    return meet_all(flow, frame, current, before, node.test)


def _once_more(flow: Flow, frame: Frame, node: ast.For | ast.AsyncFor | ast.While, first: Env, before: Env) -> Env:
    """The end of a round with what a second one may carry: `step = self.feedback(frame)` is read in the next round alone.

    How many rounds there are is not known, so nothing more reaches the end for sure.
    """
    if not any(n in before and _carried(v) - _carried(before[n]) for n, v in first.items()):
        return first
    if flow.loop is not None or flow.by_hand is not None:
        return first  # the passes of a training loop are counted as they are met
    later = _another_round(flow, frame, node, dict(first))
    return {n: _may_carry(v, _carried((later or {}).get(n, NOTHING)) - _carried(v)) for n, v in first.items()}


def _another_round(flow: Flow, frame: Frame, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> Env | None:
    """The end of one more round, of which nothing else is remembered."""
    decisions, branches, heap, steps = list(flow.decisions), dict(flow.branches), dict(flow.heap), flow.steps
    exits, depth = len(frame.exits), len(frame.tests)
    frame.loops.append([])
    frame.breaks.append([])
    later = flow.block(frame, node.body, env)
    frame.loops.pop()
    frame.breaks.pop()
    del frame.tests[depth:], frame.exits[exits:]
    flow.decisions[:], flow.branches, flow.heap, flow.steps = decisions, branches, heap, steps
    return later


def _repeated(flow: Flow, rounds: list[Value]) -> tuple[str, ...]:
    """The paths of the lists of modules whose elements, of a number that is not known, one round stands for."""
    if len(rounds) != 1:
        return ()
    refs = [r for value in (rounds[0], *(v for _, v in rounds[0].parts)) for r in value.refs]
    listed = [v.index_of for v in (rounds[0], *(v for _, v in rounds[0].parts)) if v.index_of not in ("", "*")]
    return (*dict.fromkeys(r.path for r in refs if r.member.repeated), *listed)


def _of_the_last(
    flow: Flow, frame: Frame, node: ast.For | ast.AsyncFor, first: Env, element: Value, paths: tuple[str, ...]
) -> Env:
    """The end of the loop, where a name that each round gives anew (`out = head(x)`) has what the last one gave it.

    What one round left is marked, and another is gone through: what has lost the mark has forgotten the rounds before.
    """
    marked = {n: _marked(v, paths) for n, v in first.items()}
    flow.assign(frame, marked, node.target, element)
    later = _another_round(flow, frame, node, marked)
    if later is None:
        return first
    targets = {n.id for n in walk(node.target) if isinstance(n, ast.Name)}
    return {n: _last_alone(v) if n in targets else _less_forgotten(v, later.get(n, NOTHING), paths) for n, v in first.items()}


_MARK = "\0"


def _is_of(name: str, paths: tuple[str, ...]) -> bool:
    return any(name == path or name.startswith((f"{path}.", f"{path}[")) for path in paths)


def _marked(value: Value, paths: tuple[str, ...]) -> Value:
    must = frozenset(n + _MARK if _is_of(n, paths) else n for n in value.must)
    may = frozenset(n + _MARK if _is_of(n, paths) else n for n in value.may)
    return replace(value, must=must, may=may, parts=tuple((k, _marked(v, paths)) for k, v in value.parts))


def _less_forgotten(value: Value, later: Value, paths: tuple[str, ...]) -> Value:
    gone = frozenset(n for n in value.must if _is_of(n, paths) and n + _MARK not in later.must)
    if not gone:
        return value
    parts = tuple((k, _less_forgotten(v, later.part(k) or NOTHING, paths)) for k, v in value.parts)
    doubts = value.doubts | {"of a loop over modules only what the last round gives it is used"}
    return replace(value, must=value.must - gone, may=value.may | gone, doubts=doubts, parts=parts)


def _last_alone(value: Value) -> Value:
    refs = tuple(replace(r, partial=r.partial or r.path) if r.member.repeated else r for r in value.refs)
    return replace(value, refs=refs, parts=tuple((k, _last_alone(v)) for k, v in value.parts))


def _carried(value: Value) -> Names:
    return value.may | value.must


def _may_carry(value: Value, gained: Names) -> Value:
    if not gained:
        return value
    parts = tuple((k, replace(v, may=v.may | gained)) for k, v in value.parts)
    doubts = value.doubts | {"what one round of a loop leaves to the next"}
    return replace(value, may=value.may | gained, doubts=doubts, parts=parts)


def _counts_what_is_there(frame: Frame, test: ast.expr) -> bool:
    """True for `while len(frames) < x.size(0)`: by a number of steps of what is given."""
    sized = (c for c in walk(test) if isinstance(c, ast.Call) and last(dotted(c.func)) in ("len", "size"))
    if not isinstance(test, ast.Compare) or not any(True for _ in sized):
        return False
    return cause_of(frame.module, test, random=False, parameters=frame.parameters) in (Cause.SHAPE, Cause.ARGUMENT, Cause.OTHER)


def _adds_up(loop: ast.For | ast.AsyncFor) -> bool:
    """True where the loop adds (or appends) what it makes of each element to something, so all of them count."""
    names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    for statement in loop.body:
        added: list[ast.expr] = []
        if isinstance(statement, ast.AugAssign):
            added = [statement.value]
        elif isinstance(statement, ast.Assign):
            if any(isinstance(n, ast.Name) and n.id in names for n in walk(statement.value)):
                names |= {n.id for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}
            grown = {t.id for t in statement.targets if isinstance(t, ast.Name)}
            old = isinstance(statement.value, ast.BinOp) and isinstance(statement.value.left, ast.Name)
            added = [statement.value] if old and statement.value.left.id in grown else []  # type: ignore[attr-defined]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            func = statement.value.func
            added = statement.value.args if isinstance(func, ast.Attribute) and func.attr == "append" else []
        if any(isinstance(n, ast.Name) and n.id in names for a in added for n in walk(a)):
            return True
    return False
