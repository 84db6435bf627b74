"""Where the local names of a function get their values: one walk over each function, remembered for the project."""

from __future__ import annotations

import ast

from codemods.analysis.logged.value_kinds import IN_PLACE
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

Path = tuple[object, ...]
_FILLERS = frozenset({"append", "extend", "add", "insert", "update", "appendleft"})
_GOES_THROUGH = frozenset({"enumerate", "range", "tqdm"})


@record
class Bound:
    """A value that a local name gets. value: None where it is not followed. path: which part of it, by index or key.
    into: the key under which it is put into the name, None for the name as a whole. loop: it is an element of `value`."""

    value: ast.expr | None
    path: Path = ()
    into: object = None
    loop: bool = False


def in_slots(name: str) -> str:
    """Under which name the values stand that go into the entries of a list or a dict."""
    return f"{name}[]"


def counted_over(name: str) -> str:
    """Under which name the collections stand for whose elements `name += 1` counts."""
    return f"{name}+"


def local_values(project: Project, module: SourceModule, function: FunctionNode) -> dict[str, list[Bound]]:
    key = ("local values", module.path, function.lineno, function.col_offset)
    return project.memo(key, lambda: _read(function))


def _read(function: FunctionNode) -> dict[str, list[Bound]]:
    out: dict[str, list[Bound]] = {}
    for node in walk_scope(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(out, target, Bound(node.value))
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                _bind(out, node.target, Bound(node.value))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            _loop(out, node.target, node.iter)
            if isinstance(node, ast.For):
                _counters(out, node)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _bind(out, node.optional_vars, Bound(None))
        elif isinstance(node, ast.Call):
            _call(out, node)
    return out


def _bind(out: dict[str, list[Bound]], target: ast.expr, bound: Bound) -> None:
    if isinstance(target, ast.Name):
        out.setdefault(target.id, []).append(bound)
    elif isinstance(target, ast.Starred):
        _bind(out, target.value, Bound(bound.value, (), None, bound.loop))
    elif isinstance(target, (ast.Tuple, ast.List)):
        for i, part in enumerate(target.elts):
            _bind(out, part, Bound(bound.value, (*bound.path, i), None, bound.loop))
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        key = target.slice.value if isinstance(target.slice, ast.Constant) else Ellipsis
        out.setdefault(target.value.id, []).append(Bound(bound.value, bound.path, key, bound.loop))


def _loop(out: dict[str, list[Bound]], target: ast.expr, iterated: ast.expr) -> None:
    """Loop variables: the second of `enumerate(x)` is an element of x, the n-th of `zip(a, b)` one of its n-th argument."""
    name = last(dotted(iterated.func)) if isinstance(iterated, ast.Call) else ""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else None
    if isinstance(iterated, ast.Call) and parts and iterated.args:
        if name == "enumerate" and len(parts) == 2:
            _bind(out, parts[0], Bound(ast.Constant(0)))
            _bind(out, parts[1], Bound(iterated.args[0], loop=True))
            return
        if name == "zip" and len(parts) == len(iterated.args):
            for part, argument in zip(parts, iterated.args, strict=True):
                _bind(out, part, Bound(argument, loop=True))
            return
    method = iterated.func.attr if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute) else ""
    if method == "items" and parts and len(parts) == 2:
        _bind(out, parts[0], Bound(None))
        _bind(out, parts[1], Bound(iterated.func.value, loop=True))  # type: ignore[attr-defined]
        return
    _bind(out, target, Bound(iterated, loop=True))


def _counters(out: dict[str, list[Bound]], loop: ast.For) -> None:
    """`n += 1` in a loop: how large `n` gets is said by what is gone through, also where a test stands before it."""
    over = loop.iter
    while isinstance(over, ast.Call) and last(dotted(over.func)) in _GOES_THROUGH and over.args:
        over = over.args[-1 if last(dotted(over.func)) == "range" else 0]
    for node in walk_scope(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Constant):
            out.setdefault(counted_over(node.target.id), []).append(Bound(over))


def _call(out: dict[str, list[Bound]], call: ast.Call) -> None:
    """`x.append(v)`, `x.update(v)`; `x[i].append(v)`, under the name `x[]`; and `all_reduce(x)`, which changes x."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _FILLERS and call.args:
        holder = func.value.value if isinstance(func.value, ast.Subscript) else func.value
        if isinstance(holder, ast.Name):
            name = holder.id if holder is func.value else in_slots(holder.id)
            out.setdefault(name, []).append(Bound(call.args[-1], into=Ellipsis))
    name = dotted(func)
    # dist.all_gather fills its first argument; the method of a module or an accelerator gives a new value
    gathers = last(name).startswith("all_gather") and len(call.args) > 1 and name.partition(".")[0] in ("dist", "torch")
    in_place = (gathers or last(name) in IN_PLACE) and call.args and isinstance(call.args[0], ast.Name)
    if in_place and "functional" not in name and "funcol" not in name:
        out.setdefault(call.args[0].id, []).append(Bound(call))  # type: ignore[attr-defined]
