"""The interpretation of one function: its statements in order, loops twice, branches joined, calls by their summaries."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.calls import make_same
from codemods.analysis.variance.expressions import bind, bind_elements, test_value, unpacked, value_of
from codemods.analysis.variance.state import State, parameters, path_of
from codemods.analysis.variance.values import SAME, Cause, Kind, Proof, Thing, Value, along, differing, join, made_of, plain
from codemods.data.rank_variance import LOADS, STOP_FLAGS
from codemods.record import replace
from codemods.source import child_nodes, walk, walk_scope

_Env = dict[str, Value]


def interpret(state: State, body: list[ast.stmt]) -> None:
    """Run the statements of the function that `state` is for; what is learned stands in it afterwards."""
    state.one_return = _returns_one_thing(body)
    for name in parameters(state.function):
        state.env.setdefault(name, _parameter(state, name))
    ended = _block(state, body)
    found = [*state.returns]
    state.result = join(found) if found else SAME
    if not ended:
        for name in state.sets:  # what the field holds in the end, whatever it held on the way
            state.sets[name] = state.env.get(f"self.{name}", state.sets[name])


def _returns_one_thing(body: list[ast.stmt]) -> bool:
    """True where every `return` reads the same: which one is taken is no matter."""
    found = [n.value for s in body for n in (s, *walk_scope(s)) if isinstance(n, ast.Return)]
    return len(found) > 1 and all(f is not None for f in found) and len({ast.dump(f) for f in found if f is not None}) == 1


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
    for statement in body:
        if _statement(state, statement):
            return True
    return False


def _statement(state: State, node: ast.stmt) -> bool:
    kind = _STATEMENTS.get(node.__class__)
    if kind is not None:
        return bool(kind(state, node))
    for child in child_nodes(node):
        if isinstance(child, ast.expr):
            value_of(state, child)
    return False


# Assignments


def _decided(state: State, value: Value, target: ast.expr | None = None) -> Value:
    """A value that is given under a test: which one it is differs where the test does."""
    deciding = [c for c in state.control if c.cause.differs or c.params]
    if isinstance(target, ast.Name) and any(target.id in names for names in state.alike):
        deciding = [c for c in deciding if c.cause is not Cause.RANK]
    if value.thing is not None:  # which object it is says nothing of numbers
        deciding = [c for c in deciding if c.cause is not Cause.RANK]
    if not deciding:
        return value
    found = join((plain(value), *(replace(plain(c), sized=False) for c in deciding)))
    return replace(found, thing=value.thing, parts=value.parts, decided=found.decided or not value.cause.differs)


def _assign(state: State, node: ast.Assign) -> None:
    value = _noted(state, node, value_of(state, node.value))
    for target in node.targets:
        if isinstance(target, ast.Attribute) and target.attr in STOP_FLAGS and not _is_false(node.value):
            state.stops.append((node, value))
        bind(state, target, value)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _noted(state: State, node: ast.Assign | ast.AnnAssign, value: Value) -> Value:
    if not _makes_object(node.value):
        value = _decided(state, value, node.targets[0] if isinstance(node, ast.Assign) else node.target)
    if isinstance(node.value, ast.Constant) and node.value.value is None and (value.cause.differs or value.params):
        value = replace(value, optional=True)
    if not (value.cause.differs or value.params):
        return value
    text = state.short(node)
    link = state.link(node, f"`{text}`")
    parts = tuple(along(p, link) for p in value.parts)
    return replace(along(value, link), parts=parts)


def _makes_object(node: ast.expr | None) -> bool:
    """True for `cfg = Config(...)`: which object it is says nothing of what it holds."""
    return isinstance(node, ast.Call) and last(dotted(node.func))[:1].isupper()


def _annotated_assign(state: State, node: ast.AnnAssign) -> None:
    if node.value is not None:
        bind(state, node.target, _noted(state, node, value_of(state, node.value)))


def _augmented(state: State, node: ast.AugAssign) -> None:
    old = value_of(state, _loaded(node.target))
    new = made_of(old, _decided(state, value_of(state, node.value)))
    if new.cause.differs or new.params:
        new = replace(along(new, state.link(node, f"`{state.short(node)}`")), mean=new.mean or state.data_loops > 0)
    path = path_of(node.target)
    if path and not isinstance(node.target, ast.Subscript):
        state.env.pop(path, None)
    bind(state, node.target, new, grows=False)


def _loaded(node: ast.expr) -> ast.expr:
    return node


def _return(state: State, node: ast.Return) -> bool:
    value = value_of(state, node.value)
    nothing = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    decided = value if state.one_return else _decided(state, value)
    if nothing and (decided.cause.differs or decided.params):
        decided = replace(decided, optional=True)
    if decided.cause.differs:
        link = state.link(node, f"`{state.short(node)}`")
        decided = replace(along(decided, link), parts=tuple(along(p, link) for p in decided.parts))
    state.returns.append(decided)
    return True


def _yielded(state: State, node: ast.Expr) -> bool:
    if not isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        value_of(state, node.value)
    else:
        given = value_of(state, node.value.value)
        state.returns.append(given)
        state.counted += [*state.counts, *(replace(c, sized=True) for c in state.control if c.cause is Cause.DATA)]
        if isinstance(node.value, ast.YieldFrom):
            state.counted.append(given)
    return isinstance(node.value, ast.Call) and _ends_process(state, node.value)


def _ends_process(state: State, call: ast.Call) -> bool:
    return state.module.text_of(call.func) in ("sys.exit", "exit", "quit", "os._exit")


# Branches


def _if(state: State, node: ast.If) -> bool:
    several = several_processes(state.module, node.test)
    test = test_value(state, node.test)
    if several is not None:
        taken, other = (node.body, node.orelse) if several else (node.orelse, node.body)
        before = dict(state.env)
        returned = len(state.returns)
        _block(state, other)
        del state.returns[returned:]
        state.env = before
        return _block(state, taken)
    state.tests[id(node.test)] = test
    state.alike.append(_alike(node))
    left = _arms(state, SAME if _is_turn(state, node) else test, [node.body, node.orelse])
    state.alike.pop()
    return left


def _is_turn(state: State, node: ast.If) -> bool:
    """True for `for i in range(n): if i == rank:`: each rank comes to it, one after the other."""
    if not isinstance(node.test, ast.Compare) or not isinstance(node.test.ops[0], ast.Eq):
        return False
    names = {n.id for n in (node.test.left, *node.test.comparators) if isinstance(n, ast.Name)}
    loops = (up for up in state.module.ancestors(node) if isinstance(up, ast.For))
    return any(isinstance(up.target, ast.Name) and up.target.id in names for up in loops)


def _alike(node: ast.If) -> set[str]:
    """The names that go through the same on both ways: `data = tqdm(loader)` here, `data = loader` there."""
    given: list[dict[str, str]] = []
    for arm in (node.body, node.orelse):
        simple = (s for s in arm if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name))
        given.append({s.targets[0].id: ast.dump(unpacked(s.value)) for s in simple})  # type: ignore[attr-defined]
    kept = {n for n, text in given[0].items() if given[1].get(n) == text}
    return kept | {n for arm in given for n, text in arm.items() if text == ast.dump(ast.Name(n, ast.Load()))}


def _arms(state: State, test: Value, arms: list[list[ast.stmt]]) -> bool:
    """The branches one by one, each from the same beginning; behind them holds what any of them left."""
    before = state.env
    ends: list[_Env] = []
    state.control.append(test)
    state.in_place += 1
    for arm in arms:
        state.env = dict(before)
        if not _block(state, arm):
            ends.append(state.env)
    state.in_place -= 1
    state.control.pop()
    state.env = _joined(ends) if ends else before
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
    closed = any(isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None and c.guard is None for c in node.cases)
    return _arms(state, test, [*(case.body for case in node.cases), *([] if closed else [[]])])


# Loops


def _for(state: State, node: ast.For | ast.AsyncFor) -> None:
    before = dict(state.env)
    rounds = SAME
    for again in (False, True):  # behind the loop holds what a round left: one that never runs reduces nothing
        rounds = bind_elements(state, node.target, node.iter)
        if isinstance(node.target, ast.Name) and not rounds.sized and _picks(node, path_of(unpacked(node.iter))):
            state.env[node.target.id] = SAME  # a key: which keys there are is no matter of what they lead to
        over_data = rounds.kind is Kind.LOADER or (rounds.cause.differs and not rounds.sized) or _is_handed(node, rounds)
        state.tests[id(node.iter)] = rounds
        state.data_loops += over_data
        state.control.append(rounds if rounds.sized and (rounds.cause.differs or rounds.params) else SAME)
        state.counts.append(replace(plain(rounds), length=True) if rounds.params and not rounds.cause.differs else state.control[-1])
        state.keys.append((_key_of(node), path_of(unpacked(node.iter)) or _items_of(node.iter)))
        _block(state, node.body)
        state.keys.pop()
        state.counts.pop()
        state.control.pop()
        state.data_loops -= over_data
        if isinstance(node.iter, (ast.Tuple, ast.List)) and dotted(node.target) in state.made_same:
            make_same(state, node.iter)  # `for t in (a, b): dist.all_reduce(t)`
        before, state.env = state.env, state.env if again else _joined([before, state.env])
    _block(state, node.orelse)


def _is_handed(node: ast.For | ast.AsyncFor, rounds: Value) -> bool:
    """True for a loop over what the function is handed: a loader, it may be."""
    return bool(rounds.params) and dotted(unpacked(node.iter)) != ""


def _key_of(node: ast.For | ast.AsyncFor) -> str:
    """The name of the key in `for k in d:` and `for k, v in d.items():`."""
    target = node.target.elts[0] if isinstance(node.target, ast.Tuple) and node.target.elts else node.target
    return dotted(target)


def _items_of(node: ast.expr) -> str:
    """`d` for `d.items()`, `d.keys()`, `list(d)`."""
    inner = unpacked(node)
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        inner = inner.func.value
    return path_of(inner)


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
        before, state.env = state.env, state.env if again else _joined([before, state.env])
    _block(state, node.orelse)


# The rest


def _with(state: State, node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        value = value_of(state, item.context_expr)
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
        if not _block(state, handler.body):
            _decided_by_error(state, node, handler)
            ends.append(state.env)
        state.in_place -= 1
    state.env = _joined(ends) if ends else before
    return _block(state, node.finalbody) or not ends


def _decided_by_error(state: State, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> None:
    """`try: epoch = load(path)… except: epoch = 0`: a rank that cannot read goes on with other values than the rest."""
    names = {path_of(t) for s in node.body for n in walk(s) if isinstance(n, ast.Assign) for t in _targets(n)}
    reads = any(isinstance(n, ast.Call) and last(dotted(n.func)) in LOADS for s in node.body for n in walk(s))
    broad = handler.type is None or last(dotted(handler.type)) in (
        "Exception", "BaseException", "OSError", "FileNotFoundError", "IOError", "RuntimeError", "OutOfMemoryError",
    )  # fmt: skip
    if not broad:
        return
    link = state.link(handler, "a rank that cannot read the file comes here, and goes on with other values")
    for given in (s for s in handler.body if isinstance(s, ast.Assign)):
        missing = isinstance(given.value, ast.Constant) and given.value.value is None
        for name in {path_of(t) for t in _targets(given)} & names - {""}:
            if reads or missing:
                state.env[name] = replace(differing(Cause.PLACE, Proof.LIKELY, link), optional=missing)


def _targets(node: ast.Assign) -> list[ast.expr]:
    return [e for t in node.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]


def _leave(state: State, node: ast.stmt) -> bool:
    for child in child_nodes(node):
        if isinstance(child, ast.expr):
            value_of(state, child)
    return True


def _pass(state: State, node: ast.stmt) -> None:
    del state, node


_STATEMENTS = {
    ast.Assign: _assign, ast.AnnAssign: _annotated_assign, ast.AugAssign: _augmented, ast.Return: _return, ast.Expr: _yielded,
    ast.If: _if, ast.Match: _match, ast.For: _for, ast.AsyncFor: _for, ast.While: _while, ast.With: _with, ast.AsyncWith: _with,
    ast.Try: _try, ast.TryStar: _try, ast.Raise: _leave, ast.Break: _leave, ast.Continue: _leave, ast.FunctionDef: _pass,
    ast.AsyncFunctionDef: _pass, ast.ClassDef: _pass, ast.Import: _pass, ast.ImportFrom: _pass,
}  # fmt: skip
