"""Folders that each rank has surely made above a place, without an error: a test that they are missing is never true there.

`SummaryWriter(path)` and `os.makedirs(path, exist_ok=True)`, by themselves or in both branches of an `if`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import count

from codemods.analysis.names import dotted, last
from codemods.analysis.positions import above
from codemods.source import SourceModule, walk

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
        """`name` has another value, that of `given` if any; what begins with it (`args.out`) is not known any more."""
        value = self._value(given) if given else _fresh()
        for other in [n for n in self._values if n.startswith((f"{name}.", f"{name}["))]:
            self._values[other] = _fresh()
        self._values[name] = value


_fresh = count().__next__


def is_made_by_all_above(module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where every way to `call` within its function has made the folder `path`."""
    blocks: list[_Block] = []
    below: ast.AST = call
    for up in module.ancestors(call):
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
    plain = isinstance(given, (ast.Name, ast.Attribute, ast.Subscript))
    for name in _bound(module, statement):
        state.bind(name, _text(module, given) if plain and given is not None else "")


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
