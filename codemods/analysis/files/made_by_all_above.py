"""Folders that each rank has surely made above a place, without an error: a test that they are missing is never true there.

`SummaryWriter(path)` and `os.makedirs(path, exist_ok=True)`, by themselves or in both branches of an `if`; in the function
itself, above all of its calls, or in the function that gives the path back.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import count

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import above
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_WRITERS = frozenset({"SummaryWriter", "FileWriter"})
_FOLDER = ("log_dir", "logdir", "name", "path")
_Block = list[ast.stmt]


class _State:
    """What the names of folders stand for, a number for each value, and the values whose folder has been made."""

    def __init__(self, values: dict[str, int], made: set[int]) -> None:
        self._values, self._made = values, made

    def copy(self) -> _State:
        return _State(dict(self._values), set(self._made))

    def _value(self, name: str) -> int:
        return self._values.setdefault(name, _fresh())

    def is_made(self, name: str) -> bool:
        return self._value(name) in self._made

    def make(self, name: str) -> None:
        self._made.add(self._value(name))

    def bind(self, name: str, given: str = "") -> None:
        """`name` has another value, that of `given` if any; what is made of it (`args.out`) is not known any more."""
        value = self._value(given) if given else _fresh()
        read = re.compile(rf"(?<![\w.']){re.escape(name)}(?![\w'])")
        for other in [n for n in self._values if n != name and read.search(n)]:
            self._values[other] = _fresh()
        self._values[name] = value


_fresh = count().__next__


def is_made_by_all_above(project: Project, module: SourceModule, node: ast.AST, path: ast.expr, *, depth: int = 2) -> bool:
    """True where every way to `node` has made the folder `path`."""
    if _is_made_within(module, node, path):
        return True
    function = module.function_of(node)
    bound = bindings_in(module, function, path.id) if isinstance(path, ast.Name) else []
    if not depth or len(bound) != 1 or bound[0].part:
        return False
    if bound[0].parameter and function is not None and isinstance(path, ast.Name):
        return _is_made_by_callers(project, module, function, path.id, depth)
    value = bound[0].value
    called = called_function(project, module, value) if isinstance(value, ast.Call) else None
    if called is None or called.node is function:
        return False
    given = [n for n in walk_scope(called.node) if isinstance(n, ast.Return)]
    return bool(given) and all(
        n.value is not None and is_made_by_all_above(project, called.module, n, n.value, depth=depth - 1) for n in given
    )


def _is_made_by_callers(project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int) -> bool:
    uses = uses_of(project, module, function).outside_tests()
    method = isinstance(module.parent(function), ast.ClassDef)
    handed = [(s, (bind(function, s.call, bound=method) or {}).get(name)) for s in uses.calls]
    return bool(handed) and not uses.more and all(
        given is not None and is_made_by_all_above(project, s.module, s.call, given, depth=depth - 1) for s, given in handed
    )


def _is_made_within(module: SourceModule, node: ast.AST, path: ast.expr) -> bool:
    """True where every way to `node` within its function has made the folder `path`."""
    blocks: list[_Block] = []
    below: ast.AST = node
    for up in module.ancestors(node):
        blocks.append(above(module, below))
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        below = up
    state, wanted = _State({}, set()), _text(module, path)
    for block in reversed(blocks):
        _go_through(module, block, state, wanted)
    return state.is_made(wanted)


def _go_through(module: SourceModule, block: _Block, state: _State, wanted: str) -> None:
    for statement in block:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
            _pass(module, statement, state)
        elif isinstance(statement, ast.With):
            _go_through(module, statement.body, state, wanted)
        else:
            ends = [state.copy(), state.copy()]
            if isinstance(statement, ast.If):
                for branch, end in zip((statement.body, statement.orelse), ends, strict=True):
                    _go_through(module, branch, end, wanted)
            for name in _bound(module, statement):
                state.bind(name)
            if isinstance(statement, ast.If) and all(end.is_made(wanted) for end in ends):
                state.make(wanted)


def _pass(module: SourceModule, statement: ast.stmt, state: _State) -> None:
    for made in _made(module, statement):
        state.make(made)
    given = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    plain = given is not None and _is_path(given)
    for name in _bound(module, statement):
        state.bind(name, _text(module, given) if plain and given is not None else "")


def _is_path(node: ast.expr) -> bool:
    """True for a name, and for a path that is joined of names and texts: the same text stands for the same folder."""
    if isinstance(node, ast.Call):
        joins = dotted(node.func) in ("os.path.join", "join", "str", "Path", "os.fspath") and not node.keywords
        return joins and all(_is_path(a) for a in node.args)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Div)) and _is_path(node.left) and _is_path(node.right)
    if isinstance(node, ast.JoinedStr):
        return all(_is_path(v.value if isinstance(v, ast.FormattedValue) else v) for v in node.values)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _is_path(node.value)
    return isinstance(node, (ast.Name, ast.Constant))


def _bound(module: SourceModule, statement: ast.stmt) -> Iterator[str]:
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield _text(module, node)


def _made(module: SourceModule, statement: ast.stmt) -> Iterator[str]:
    """The folders that a plain statement makes, and goes on where they are there."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
    if not isinstance(call, ast.Call):
        return
    name = last(dotted(call.func)) or getattr(call.func, "attr", "")
    given = {k.arg: k.value for k in call.keywords}
    allows = given.get("exist_ok")
    if name in _WRITERS or (name == "makedirs" and isinstance(allows, ast.Constant) and allows.value is True):
        folder = call.args[0] if call.args else next((given[n] for n in _FOLDER if n in given), None)
        if folder is not None:
            yield _text(module, folder)
    elif name == "mkdir" and isinstance(allows, ast.Constant) and allows.value is True and isinstance(call.func, ast.Attribute):
        yield _text(module, call.func.value)


def _text(module: SourceModule, node: ast.expr) -> str:
    while isinstance(node, ast.Call) and last(dotted(node.func)) in ("str", "Path", "fspath") and len(node.args) == 1:
        node = node.args[0]
    return "".join(module.text_of(node).split()).replace('"', "'")
