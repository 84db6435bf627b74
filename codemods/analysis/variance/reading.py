"""The interpretation of one function: its statements in order, loops twice, branches joined, calls by their summaries."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codemods.analysis.names import dotted
from codemods.analysis.ranks.leaving import is_end
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.alike_arms import alike_names, is_turn, known_alikes, takes_what_was_sent
from codemods.analysis.variance.assignments import annotated_assign, assign, augmented, returned
from codemods.analysis.variance.averaged_modes import averaged_arm
from codemods.analysis.variance.binding import bind, bind_counter, bind_elements
from codemods.analysis.variance.deciding import test_value
from codemods.analysis.variance.even_yields import gives_as_many
from codemods.analysis.variance.exits import cases_of
from codemods.analysis.variance.failed_reads import decided_by_error
from codemods.analysis.variance.given_up import given_up, of_returns
from codemods.analysis.variance.meetings import make_same
from codemods.analysis.variance.numbered_shares import left_by_others, numbered_share
from codemods.analysis.variance.own_bars import is_handed
from codemods.analysis.variance.paths import behind_bar, goes_through_entries, parameters, path_of, unpacked
from codemods.analysis.variance.refilled import asks_if_full
from codemods.analysis.variance.rounds_together import go_back, mark, meet_each_round
from codemods.analysis.variance.shares import takes_in_turn
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, Kind, Thing, Value, join, plain
from codemods.data.rank_variance import PROCESS_EXITS
from codemods.files.source import FunctionNode, SourceModule, child_nodes, once_a_module, walk
from codemods.runtime.record import replace

_Env = dict[str, Value]


def interpret(state: State, body: list[ast.stmt]) -> None:
    """Run the statements of the function that `state` is for; what is learned stands in it afterwards."""
    state.one_return = _returns_one_thing(state)
    state.alike_parts = _alike_parts(state)
    for name in parameters(state.function):
        state.env.setdefault(name, _parameter(state, name))
    ended = any(_statement(state, statement) for statement in state.outermost(body))
    state.result = of_returns(state.returns)
    if not ended:
        for name in state.sets:  # what the field holds in the end, whatever it held on the way
            state.sets[name] = state.env.get(f"self.{name}", state.sets[name])


def _returns_one_thing(state: State) -> bool:
    """True where every `return` reads the same, and none is left out: which one is taken is no matter, nor a bar round it."""
    found = [n.value and behind_bar(n.value) for n in _returns(state.module).get(state.function, ())]
    if len(found) < 2 or found[0] is None or any(f is None or f.__class__ is not found[0].__class__ for f in found):
        return False
    if state.function is not None and _falls_through(state.function.body):
        return False  # the others give None
    return len({ast.dump(f) for f in found if f is not None}) == 1


def _falls_through(body: list[ast.stmt]) -> bool:
    """True where the end of a block may be reached."""
    end = body[-1]
    if isinstance(end, ast.If):
        return not end.orelse or _falls_through(end.body) or _falls_through(end.orelse)
    if isinstance(end, (ast.With, ast.AsyncWith)):
        return _falls_through(end.body)
    if isinstance(end, (ast.Try, ast.TryStar)):
        if end.finalbody and not _falls_through(end.finalbody):
            return False
        return any(_falls_through(b) for b in (end.orelse or end.body, *(h.body for h in end.handlers)))
    if isinstance(end, ast.While):
        return not (isinstance(end.test, ast.Constant) and end.test.value)
    return not (isinstance(end, (ast.Return, ast.Raise, ast.Match)) or is_end(end))


def _alike_parts(state: State) -> frozenset[int]:
    """The places in the tuples that are given back at which every `return` has the same text."""
    found = [n.value for n in _returns(state.module).get(state.function, ())]
    rows = [v.elts for v in found if isinstance(v, ast.Tuple)]
    if not rows or len(rows) != len(found) or len({len(r) for r in rows}) > 1:
        return frozenset()
    return frozenset(i for i, column in enumerate(zip(*rows, strict=True)) if len({ast.dump(e) for e in column}) == 1)


@once_a_module
def _returns(module: SourceModule) -> dict[FunctionNode | None, list[ast.Return]]:
    out: dict[FunctionNode | None, list[ast.Return]] = {}
    for node in module.nodes(ast.Return):
        out.setdefault(module.function_of(node), []).append(node)
    return out


def _parameter(state: State, name: str) -> Value:
    return Value(Cause.UNKNOWN, params=frozenset({name}), thing=_annotated(state, name)) if name not in ("self", "cls") else SAME


def _annotated(state: State, name: str) -> Thing | None:
    """What an annotation says of a parameter: an object of a project class, a loader."""
    assert state.function is not None
    spec = state.function.args
    argument = next((a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == name), None)
    if argument is None or argument.annotation is None:
        return None
    return state.summaries.annotated(state.module, argument.annotation)


def _block(state: State, body: list[ast.stmt]) -> bool:
    """True where the end of the block is not reached: every way leaves it."""
    shares = 0
    for statement in body:
        left = _statement(state, statement)
        if isinstance(statement, ast.If) and left_by_others(statement):
            share = numbered_share(state, statement.test)
            if share is not None and not share.when:
                state.control.append(share.share)
                shares += 1
        if left:
            break
    else:
        left = False
    del state.control[len(state.control) - shares :]
    return left


def _statement(state: State, node: ast.stmt) -> bool:
    if isinstance(node, _DEFINITIONS):
        return False
    run = _STATEMENTS.get(node.__class__)
    if run is not None:
        return bool(run(state, node))
    for child in child_nodes(node):
        if isinstance(child, ast.expr):
            state.value(child)
    return isinstance(node, (ast.Raise, ast.Break, ast.Continue))


# Statements without a block


def _yielded(state: State, node: ast.Expr) -> bool:
    """An expression as a statement; a `yield` gives what the generator hands out, as often as the loops round it run."""
    if not isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        state.value(node.value)
    else:
        given = state.value(node.value.value)
        even = gives_as_many(state.module, node)
        state.returns.append(replace(given, sized=False) if even else given)
        if even:
            return False
        shares = (c for c in state.control if c.sized and c.params)
        state.counted += [*state.counts, *(replace(c, sized=True) for c in state.control if c.cause is Cause.DATA), *shares]
        if isinstance(node.value, ast.YieldFrom):
            state.counted.append(given)
    return isinstance(node.value, ast.Call) and dotted(node.value.func) in PROCESS_EXITS


# Branches


def _if(state: State, node: ast.If) -> bool:
    several = True if asks_if_full(state.module, node) else several_processes(state.module, node.test)
    if several is None and (averaged := averaged_arm(node.test)) is not None:
        several = not averaged
    test = test_value(state, node.test)
    if several is not None:
        taken, other = (node.body, node.orelse) if several else (node.orelse, node.body)
        before, met = dict(state.env), dict(state.met)
        returned = len(state.returns)
        _block(state, other)
        del state.returns[returned:]
        state.env, state.met = before, met  # several processes meet nowhere in it
        return _block(state, taken)
    state.tests[id(node.test)] = test
    known = known_alikes(state.module)
    if node not in known:
        known[node] = alike_names(node)
    state.alike.append(known[node])
    catches_up = is_turn(state, node) or takes_what_was_sent(state.module, node)
    own = numbered_share(state, node.test)
    deciding = own.share if own is not None and own.when else SAME if catches_up else test
    left = _arms(state, deciding, [node.body, node.orelse])
    state.alike.pop()
    return left


def _arms(state: State, test: Value, arms: list[list[ast.stmt]]) -> bool:
    """The branches one by one, each from the same beginning; behind them holds what any of them left."""
    before, made_before = state.env, state.made_same
    ends: list[_Env] = []
    reduced: list[set[str]] = []
    state.control.append(test)
    state.in_place += 1
    for arm in arms:
        state.env, state.made_same = dict(before), set()
        if not _block(state, arm):
            ends.append(state.env)
            reduced.append(state.made_same)
        made_before |= state.made_same
    state.in_place -= 1
    state.control.pop()
    state.made_same = made_before
    state.env = _joined(ends) if ends else before
    if not test.cause.differs:
        for path in set().union(*reduced):  # what one way reduces: the other is that of a single process
            state.env[path] = next(end[path] for end, made in zip(ends, reduced, strict=True) if path in made)
    return not ends


def _joined(ends: list[_Env]) -> _Env:
    first = ends[0]
    if len(ends) == 1:
        return first
    out = dict(first)
    for end in ends[1:]:
        for name, value in end.items():
            if name not in out:
                out[name] = value
            elif out[name] is not value and out[name] != value:
                out[name] = join((out[name], value))
    return out


def _match(state: State, node: ast.Match) -> bool:
    test = test_value(state, node.subject)
    state.tests[id(node.subject)] = test
    for case in node.cases:
        if case.guard is not None:
            state.tests[id(case.guard)] = test_value(state, case.guard)
    return _arms(state, test, cases_of(node))


# Loops


def _for(state: State, node: ast.For | ast.AsyncFor) -> None:
    before = dict(state.env)
    rounds = SAME
    element = _element(node)
    made_above = element in state.made_same
    state.made_same.discard(element)
    again, together, entered = False, False, mark(state)
    while True:  # behind the loop holds what a round left: one that never runs reduces nothing
        rounds = bind_elements(state, node.target, node.iter)
        if isinstance(node.target, ast.Name) and not rounds.sized and _picks(node, path_of(unpacked(node.iter))):
            state.env[node.target.id] = SAME  # a key: which keys there are is no matter of what they lead to
        handed = bool(rounds.params) and is_handed(node.iter, state.targets)  # what the function is handed may be a loader
        over_data = rounds.kind is Kind.LOADER or (rounds.cause.differs and not rounds.sized) or handed
        over_data = over_data or (state.module.holds(b"rank") and takes_in_turn(node))
        if rounds.sized and not rounds.keyed and goes_through_entries(node.iter):
            rounds = replace(rounds, sized=False)  # under the same keys: how long what they hold is, is no matter
        state.tests[id(node.iter)] = rounds
        state.data_loops += over_data
        uneven = rounds if rounds.sized and (rounds.cause.differs or rounds.params) else SAME
        state.control.append(SAME if together else uneven)
        asked_later = rounds.params and not rounds.cause.differs
        state.counts.append(replace(plain(rounds), length=True) if asked_later else uneven)
        state.keys.append(_entries(node))
        _block(state, node.body)
        state.keys.pop()
        state.counts.pop()
        state.control.pop()
        state.data_loops -= over_data
        if element in state.made_same:
            make_same(state, unpacked(node.iter))  # `for t in tensors: dist.all_reduce(t)`
        if uneven is not SAME and not together and meet_each_round(state, node):
            together = True
            go_back(state, entered)
            continue
        if again or _says_the_same(state, before):
            break
        again = True
    if made_above:
        state.made_same.add(element)
    bind_counter(state, node.target, node.iter, SAME if together else rounds)
    _block(state, node.orelse)


def _element(node: ast.For | ast.AsyncFor) -> str:
    """The name of what a loop takes out of a list or a dict, also with its number or key; "" where it takes it apart."""
    target = node.target
    if isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(node.iter, ast.Call):
        keyed = isinstance(node.iter.func, ast.Attribute) and node.iter.func.attr == "items"
        target = target.elts[1] if keyed or dotted(node.iter.func) == "enumerate" else target
    return target.id if isinstance(target, ast.Name) else ""


def _says_the_same(state: State, entered: _Env) -> bool:
    """True where a second round begins as the first one did; else it begins with what either way leaves."""
    joined = _joined([entered, state.env])
    if joined == entered:
        return True
    state.env = joined
    return False


def _entries(node: ast.For | ast.AsyncFor) -> tuple[str, str]:
    """(`k`, `d`) for `for k in d:` and `for k, v in d.items():`."""
    key = node.target.elts[0] if isinstance(node.target, ast.Tuple) and node.target.elts else node.target
    held = unpacked(node.iter)
    while isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute):
        held = held.func.value
    return dotted(key), path_of(held)


def _picks(node: ast.For | ast.AsyncFor, path: str) -> bool:
    """True for `for k in d: … d[k]`."""
    assert isinstance(node.target, ast.Name)
    inner = (n for s in node.body for n in walk(s) if isinstance(n, ast.Subscript))
    return bool(path) and any(path_of(n) == path and dotted(n.slice) == node.target.id for n in inner)


def _while(state: State, node: ast.While) -> None:
    before = dict(state.env)
    for again in (False, True):
        test = test_value(state, node.test)
        state.tests[id(node.test)] = test
        state.control.append(test)
        _block(state, node.body)
        state.control.pop()
        if not again and _says_the_same(state, before):
            break
    _block(state, node.orelse)


# The rest


def _with(state: State, node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        value = state.value(item.context_expr)
        if item.optional_vars is not None:
            bind(state, item.optional_vars, value)
    return _block(state, node.body)


def _try(state: State, node: ast.Try | ast.TryStar) -> bool:
    before = dict(state.env)
    left = _block(state, node.body) or _block(state, node.orelse)
    ends = [] if left else [state.env]
    for handler in node.handlers:
        state.env = _joined([dict(before), dict(state.env)])
        state.in_place += 1
        state.control.append(given_up(state, node, handler))
        if not _block(state, handler.body):
            decided_by_error(state, node, handler)
            ends.append(state.env)
        state.control.pop()
        state.in_place -= 1
    state.env = _joined(ends) if ends else before
    return _block(state, node.finalbody) or not ends


# A definition runs nothing by itself; each way of leaving a block ends it.
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_STATEMENTS: dict[type[ast.stmt], Callable[[State, Any], bool | None]] = {
    ast.Assign: assign, ast.AnnAssign: annotated_assign, ast.AugAssign: augmented, ast.Return: returned, ast.Expr: _yielded,
    ast.If: _if, ast.Match: _match, ast.For: _for, ast.AsyncFor: _for, ast.While: _while, ast.With: _with, ast.AsyncWith: _with,
    ast.Try: _try, ast.TryStar: _try,
}  # fmt: skip
