"""Folders that are surely there above a place: a test that they are missing is never true there.

Each rank has made them, or met them: `SummaryWriter(path)`, `os.makedirs(path)` and `if not exists(path): makedirs(path)`, by
themselves or in both branches of an `if`; or one rank has, with a barrier behind it. In the function itself, above all of its
calls, in the process that starts the ranks, in a function that is handed the path, in the one that gives it back, or in the
constructor of the object whose method it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import count

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import class_facts
from codemods.analysis.conditions import conjuncts
from codemods.analysis.files.missing_folders import asks_for
from codemods.analysis.model.signatures import bind, takes
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import above
from codemods.analysis.ranks.collectives import WAITS
from codemods.analysis.ranks.handed_arguments import spawned_with
from codemods.analysis.ranks.rank_branches import ranks_of_test
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_WRITERS = frozenset({"SummaryWriter", "FileWriter"})
_LOG_FILES = frozenset({"FileHandler", "RotatingFileHandler", "TimedRotatingFileHandler"})
_FOLDER = ("log_dir", "logdir", "name", "path")
_ONE = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_MAKES = (b"makedirs", b"mkdir")
_Block = list[ast.stmt]


class _State:
    """What the names of folders stand for, a number for each value, and the values whose folder has been made."""

    def __init__(self, values: dict[str, int], made: set[int]) -> None:
        self._values, self._made = values, made
        self._by_one: set[int] = set()  # made by one rank: the others know behind a barrier

    def copy(self) -> _State:
        return _State(dict(self._values), set(self._made))

    def make_on_one(self, name: str) -> None:
        self._by_one.add(self._value(name))

    def wait(self) -> None:
        self._made |= self._by_one

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
    if _is_made_within(project, module, node, path):
        return True
    function = module.function_of(node)
    if function is not None and _is_made_by_constructor(project, module, function, path):
        return True
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


def _is_made_by_constructor(project: Project, module: SourceModule, method: FunctionNode, path: ast.expr) -> bool:
    """True where the constructor of the method's class, in the same file, has made the folder of a setting or an attribute."""
    owner = module.parent(method)
    if not isinstance(owner, ast.ClassDef) or method.name == "__init__":
        return False
    given = class_facts(project, module, owner).method("__init__")
    if given is None or given[0].module is not module:
        return False
    init, wanted = given[1], _text(module, path)
    for name in {n.id for n in (path, *walk(path)) if isinstance(n, ast.Name)} - {"self"}:
        if bindings_in(module, method, name) or bindings_in(module, init, name):
            return False
    if any(text in wanted for text in _set_later(module, owner, init)):
        return False
    state = _State({}, set())
    _go_through(project, module, init.body, state, wanted)
    return state.is_made(wanted) and not any(isinstance(n, ast.Return) for n in walk_scope(init))


def _set_later(module: SourceModule, owner: ast.ClassDef, init: FunctionNode) -> Iterator[str]:
    """The attributes that a method of the class sets, but for its constructor."""
    for node in walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and module.function_of(node) is not init:
            yield _text(module, node)


def _is_made_by_callers(project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int) -> bool:
    uses = uses_of(project, module, function).outside_tests()
    method = isinstance(module.parent(function), ast.ClassDef)
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    calls = [s for s in uses.calls if takes(function, s.call, bound=method)]  # `model.train()` is not `train(model, …)`
    handed = [(s.module, (bind(function, s.call, bound=method) or {}).get(name)) for s in calls]
    handed += [(h.module, spawned_with(h.module, h.node, names, name)) for h in uses.handed_on]
    return bool(handed) and not uses.more and all(
        given is not None and is_made_by_all_above(project, home, given, given, depth=depth - 1) for home, given in handed
    )


def _is_made_within(project: Project, module: SourceModule, node: ast.AST, path: ast.expr) -> bool:
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
        _go_through(project, module, block, state, wanted)
    return state.is_made(wanted)


def _go_through(project: Project, module: SourceModule, block: _Block, state: _State, wanted: str, *, calls: bool = True) -> None:
    """calls: functions that are called count, too."""
    for statement in block:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
            _pass(project, module, statement, state, calls=calls)
        elif isinstance(statement, ast.With):
            _go_through(project, module, statement.body, state, wanted, calls=calls)
        else:
            _branch(project, module, statement, state, wanted, calls=calls)


def _branch(
    project: Project, module: SourceModule, statement: ast.stmt, state: _State, wanted: str, *, calls: bool
) -> None:
    ends = [state.copy(), state.copy()]
    if isinstance(statement, ast.If):
        for branch, end in zip((statement.body, statement.orelse), ends, strict=True):
            _go_through(project, module, branch, end, wanted, calls=calls)
    for name in _bound(module, statement):
        state.bind(name)
    if not isinstance(statement, ast.If):
        return
    if all(end.is_made(wanted) for end in ends):
        state.make(wanted)
    elif ends[0].is_made(wanted) and not statement.orelse:
        tests = conjuncts(statement.test)
        rest = [test for test in tests if not (_is_missing(module, test, wanted) or _is_given(module, test, wanted))]
        if not rest:
            state.make(wanted)
        elif all(ranks_of_test(module, test, project=project) in _ONE for test in rest):
            state.make_on_one(wanted)


def _is_missing(module: SourceModule, test: ast.expr, wanted: str) -> bool:
    """`not os.path.exists(path)`."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    return isinstance(asked, ast.Call) and (path := asks_for(asked)) is not None and _text(module, path) == wanted


def _is_given(module: SourceModule, test: ast.expr, wanted: str) -> bool:
    """`path is not None`, of a path that is used later on."""
    return isinstance(test, ast.Compare) and ast.unparse(test).endswith(" is not None") and _text(module, test.left) == wanted


def _pass(project: Project, module: SourceModule, statement: ast.stmt, state: _State, *, calls: bool) -> None:
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
    if isinstance(call, ast.Call):
        if (last(dotted(call.func)) or getattr(call.func, "attr", "")) in WAITS:
            state.wait()
        for made in (*_made(module, call), *_opened(module, call), *(_made_in(project, module, call) if calls else ())):
            state.make(made)
    given = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    plain = given is not None and _is_path(given)
    for name in _bound(module, statement):
        state.bind(name, _text(module, given) if plain and given is not None else "")


def _opened(module: SourceModule, call: ast.Call) -> Iterator[str]:
    """The folders of log files that are opened on the way: where one is missing, the program does not come past it."""
    for inner in (n for n in walk(call) if isinstance(n, ast.Call)):
        later = any(k.arg in ("delay", None) for k in inner.keywords)
        if last(dotted(inner.func)) not in _LOG_FILES or not inner.args or later:
            continue
        path = inner.args[0]
        if isinstance(path, ast.Call) and dotted(path.func) in ("os.path.join", "join") and len(path.args) == 2:
            if isinstance(path.args[1], ast.Constant) and "/" not in str(path.args[1].value):
                yield _text(module, path.args[0])


def _made_in(project: Project, module: SourceModule, call: ast.Call) -> Iterator[str]:
    """The folders that are handed to a function of the project which makes them."""
    called = called_function(project, module, call)
    if called is None or not any(called.module.holds(word) for word in _MAKES):
        return
    method = isinstance(called.module.parent(called.node), ast.ClassDef)
    if not any(word.decode() in called.module.text_of(called.node) for word in _MAKES):
        return
    for name, given in (bind(called.node, call, bound=method) or {}).items():
        if _is_path(given) or _is_setting(module, given):
            inside = _State({}, set())
            _go_through(project, called.module, called.node.body, inside, name, calls=False)
            if inside.is_made(name) and not any(isinstance(n, ast.Return) for n in walk_scope(called.node)):
                yield _text(module, given)


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


def _is_setting(module: SourceModule, node: ast.expr) -> bool:
    """`config.get("out")` of something that the file imports: it says the same each time."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or not isinstance(node.args[0], ast.Constant):
        return False
    asked = dotted(node.func)
    return asked.endswith(".get") and asked.partition(".")[0] in module.imports


def _bound(module: SourceModule, statement: ast.stmt) -> Iterator[str]:
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield _text(module, node)


def _made(module: SourceModule, call: ast.Call) -> Iterator[str]:
    """The folder that a call makes, or that is there where it goes on."""
    name = last(dotted(call.func)) or getattr(call.func, "attr", "")
    given = {k.arg: k.value for k in call.keywords}
    if name in _WRITERS or name == "makedirs" or dotted(call.func) == "os.mkdir":
        folder = call.args[0] if call.args else next((given[n] for n in _FOLDER if n in given), None)
        if folder is not None:
            yield _text(module, folder)
    elif name == "mkdir" and isinstance(call.func, ast.Attribute):
        yield _text(module, call.func.value)


def _text(module: SourceModule, node: ast.expr) -> str:
    while isinstance(node, ast.Call) and last(dotted(node.func)) in ("str", "Path", "fspath") and len(node.args) == 1:
        node = node.args[0]
    return "".join(module.text_of(node).split()).replace('"', "'")
