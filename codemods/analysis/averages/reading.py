"""One function after the other, statement by statement: what its numbers are made of, and what it shows of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codemods.analysis.averages.calls import count_of
from codemods.analysis.averages.expressions import divided, number_of
from codemods.analysis.averages.frame import DEEPEST, Frame, Reading
from codemods.analysis.averages.scale import CONSTANT, Items, Number, Parts, Scale, mapped, plus, times
from codemods.analysis.averages.showing import show
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.exits import cases_of
from codemods.analysis.variance.paths import parameters, path_of, unpacked
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import replace

_MOST_STATEMENTS = 60  # of a function that a call is followed into


def read(reading: Reading, module: SourceModule, site: FunctionSite | None) -> None:
    """Read a function, or a file outside of its functions, from what is known without its callers."""
    frame = Frame(reading, module, site, number_of, run)
    _block(frame, site.node.body if site is not None else module.tree.body)


def run(frame: Frame, call: ast.Call) -> Number:
    """What a function of the project gives for the numbers that it is handed; what it changes in place is changed."""
    site = frame.target(call)
    if site is None or frame.depth >= DEEPEST or _is_long(site):
        return None
    inner = Frame(frame.reading, site.module, site, number_of, run)
    inner.depth, inner.over_data = frame.depth + 1, frame.over_data
    written = _written(call, site)
    for name, given in written.items():
        inner.env[name] = frame.of(given)
        if inner.env[name] is None:
            del inner.env[name]
        if path := path_of(given):
            root, _, rest = path.partition(".")
            start = frame.called.get(root)
            count = start if start is not None and not rest else frame.many(path, given).open[0][0]
            inner.called[name] = count
    shown = len(frame.reading.shown)
    _block(inner, site.node.body)
    del frame.reading.shown[shown:]  # it is read by itself, too
    for name in inner.changed & written.keys():
        if path := path_of(written[name]):
            frame.env[path] = inner.env.get(name)
            frame.changed.add(path)
    found = inner.returned[0] if inner.returned else None
    for other in inner.returned[1:]:
        found = plus(found, other)
    return found


def _is_long(site: FunctionSite) -> bool:
    return sum(isinstance(n, ast.stmt) for n in walk(site.node)) > _MOST_STATEMENTS


def _written(call: ast.Call, site: FunctionSite) -> dict[str, ast.expr]:
    """Parameter -> the argument."""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return {}
    names = [p for p in parameters(site.node) if p not in ("self", "cls")]
    return {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords if k.arg in names and k.arg}}


# Statements


def _block(frame: Frame, body: list[ast.stmt]) -> bool:
    """True where the end of the block is not reached."""
    return any(_statement(frame, s) for s in body)


def _statement(frame: Frame, node: ast.stmt) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    statement = _STATEMENTS.get(node.__class__)
    if statement is not None:
        return bool(statement(frame, node))
    return isinstance(node, (ast.Raise, ast.Break, ast.Continue))


def _assign(frame: Frame, node: ast.Assign | ast.AnnAssign) -> None:
    if node.value is None:
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if len(targets) == 1 and _adds_to(targets[0], node.value):
        assert isinstance(node.value, ast.BinOp)
        _add(frame, targets[0], node.value.right)
        return
    number = frame.of(node.value)
    show(frame, node)
    for target in targets:
        _bind(frame, target, number)


def _adds_to(target: ast.expr, value: ast.expr) -> bool:
    """True for `total = total + x`."""
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and ast.unparse(value.left) == ast.unparse(target)


def _bind(frame: Frame, target: ast.expr, number: Number) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        for i, element in enumerate(target.elts):
            known = isinstance(number, Parts) and len(number.entries) == len(target.elts)
            part = number.get(i) if known and isinstance(number, Parts) else number.element if isinstance(number, Items) else None
            _bind(frame, element, part if known or isinstance(number, Items) else number if isinstance(number, Scale) else None)
        return
    path = _place(target)
    if not path:
        return
    for entry in [n for n in frame.env if n.startswith((f"{path}[", f"{path}."))]:
        del frame.env[entry]
    frame.env[path] = Items(None, CONSTANT) if isinstance(number, Parts) and not number.entries else number
    frame.begun[path] = len(frame.loops)


def _place(target: ast.expr) -> str:
    """The path that a target is kept under; of an entry whose key is written out, with the key."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        held = path_of(target.value)
        return f"{held}[{target.slice.value!r}]" if held else ""
    return path_of(target)


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    if isinstance(node.op, (ast.Add, ast.Sub)):
        _add(frame, node.target, node.value)
        return
    path = _place(node.target)
    before, by = frame.of(node.target), frame.of(node.value)
    found: Number = None
    if isinstance(by, Scale) and isinstance(node.op, ast.Mult):
        found = _times(before, by)
    elif isinstance(by, Scale) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
        found = divided(frame, node, before, by, node.value)
    if path:
        _change(frame, path, found)


def _change(frame: Frame, path: str, number: Number) -> None:
    """A tensor that is changed in place, under whatever name it was handed over."""
    frame.env[path] = number
    if path in frame.changed:
        return
    if frame.site is not None and path in parameters(frame.site.node):
        frame.changed.add(path)


def _add(frame: Frame, target: ast.expr, value: ast.expr) -> None:
    """`total += x` in a loop: as often as the loops since `total` was begun."""
    path = _place(target)
    added = frame.of(value)
    if not path:
        return
    before = frame.env.get(path, frame.env.get(path_of(target)))
    begun = frame.begun.get(path, frame.begun.get(path_of(target)))
    if before is None or begun is None:
        frame.env[path] = None
        return
    for loop in frame.loops[begun:]:
        added = _as_often(added, loop)
    frame.env[path] = plus(before, added)


def _as_often(number: Number, loop: Scale | None) -> Number:
    if loop is None:
        return None

    def change(scale: Scale) -> Scale:
        found = times(replace(scale, constant=False), replace(loop, constant=False))
        return replace(found, own=scale.own or loop.own, ratio=scale.ratio)

    return mapped(number, change)


def _expression(frame: Frame, node: ast.Expr) -> None:
    call = node.value
    if isinstance(call, ast.Await):
        call = call.value
    if not isinstance(call, ast.Call):
        return
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("append", "add_", "div_", "mul_") and len(call.args) == 1:
        _method(frame, call, func)
        return
    show(frame, node)
    frame.of(call)


def _method(frame: Frame, call: ast.Call, func: ast.Attribute) -> None:
    """`losses.append(x)`, `total.div_(n)`."""
    path = path_of(func.value)
    if not path:
        return
    given, before = frame.of(call.args[0]), frame.env.get(path)
    if func.attr == "append":
        if not isinstance(before, Items):
            frame.env.pop(path, None)
            return
        count: Scale | None = CONSTANT
        for loop in frame.loops[frame.begun.get(path, 0) :]:
            count = times(count, loop) if count is not None and loop is not None else None
        if before.element is None and before.count is CONSTANT:
            frame.env[path] = Items(given, count)
        else:
            frame.env[path] = Items(plus(before.element, given), count if count == before.count else None)
    elif func.attr == "add_":
        _add(frame, func.value, call.args[0])
    elif isinstance(given, Scale):
        divides = func.attr == "div_"
        _change(frame, path, divided(frame, call, before, given, call.args[0]) if divides else _times(before, given))


def _times(number: Number, by: Scale) -> Number:
    return mapped(number, lambda s: times(s, by))


def _return(frame: Frame, node: ast.Return) -> bool:
    if node.value is not None:
        frame.returned.append(frame.of(node.value))
    return True


def _if(frame: Frame, node: ast.If) -> bool:
    several = several_processes(frame.module, node.test)
    if several is not None:
        return _block(frame, node.body if several else node.orelse)
    return _arms(frame, [node.body, node.orelse])


def _match(frame: Frame, node: ast.Match) -> bool:
    return _arms(frame, cases_of(node))


def _arms(frame: Frame, arms: list[list[ast.stmt]]) -> bool:
    """The branches one by one; behind them holds what all of them left, or what is written out on the others."""
    before, begun = dict(frame.env), dict(frame.begun)
    ends: list[dict[str, Number]] = []
    for arm in arms:
        frame.env = dict(before)
        if not _block(frame, arm):
            ends.append(frame.env)
    frame.begun = {**frame.begun, **begun}
    if not ends:
        return True
    frame.env = ends[0]
    for end in ends[1:]:
        frame.env = _joined(frame.env, end)
    return False


def _joined(one: dict[str, Number], other: dict[str, Number]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name in one.keys() | other.keys():
        if name in one and name in other:
            found[name] = one[name] if one[name] == other[name] else plus(one[name], other[name])
        else:
            found[name] = one.get(name, other.get(name))
    return found


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    if isinstance(node.iter, (ast.Tuple, ast.List)) and isinstance(node.target, ast.Name):
        _each(frame, node, node.target.id, node.iter.elts)
        return
    source = frame.env.get(path_of(unpacked(node.iter)))
    rounds = source.count if isinstance(source, Items) else count_of(frame, node.iter)
    over_data = not isinstance(source, Items) and not _counts(node.iter)
    frame.loops.append(rounds)
    frame.over_data += over_data
    if isinstance(source, Items):
        _bind(frame, node.target, source.element)
    else:
        for name in (n.id for n in walk(node.target) if isinstance(n, ast.Name)):
            frame.env.pop(name, None)
    _block(frame, node.body)
    frame.over_data -= over_data
    frame.loops.pop()
    _block(frame, node.orelse)


def _counts(source: ast.expr) -> bool:
    """True for `range(n)`: no round has a batch of its own."""
    node = unpacked(source)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", "trange")


def _each(frame: Frame, node: ast.For | ast.AsyncFor, name: str, elements: list[ast.expr]) -> None:
    """`for part in (hits, total): dist.all_reduce(part)`: once for each of them."""
    for element in elements:
        frame.env[name] = frame.of(element)
        frame.begun[name] = len(frame.loops)
        frame.changed.discard(name)
        _block(frame, node.body)
        if name in frame.changed and (path := path_of(element)):
            frame.env[path] = frame.env[name]


def _while(frame: Frame, node: ast.While) -> None:
    frame.loops.append(None)
    _block(frame, node.body)
    frame.loops.pop()


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    return _block(frame, node.body)


def _try(frame: Frame, node: ast.Try | ast.TryStar) -> bool:
    left = _block(frame, [*node.body, *node.orelse])
    return _block(frame, node.finalbody) or left


_STATEMENTS: dict[type[ast.stmt], Callable[[Frame, Any], bool | None]] = {
    ast.Assign: _assign, ast.AnnAssign: _assign, ast.AugAssign: _augmented, ast.Return: _return, ast.Expr: _expression,
    ast.If: _if, ast.Match: _match, ast.For: _for, ast.AsyncFor: _for, ast.While: _while, ast.With: _with, ast.AsyncWith: _with,
    ast.Try: _try, ast.TryStar: _try,
}  # fmt: skip
