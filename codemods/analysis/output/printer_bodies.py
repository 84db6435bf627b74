"""Is a function of the project nothing but a `print` of rank 0? Then it can stand for every `print` that it takes.

`def log0(*args): if is_main_process(): print(*args)`, with an early return or a decorator instead of the test, and with a print
of its own for a run without a process group.
"""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effects import does_nothing
from codemods.analysis.output.print_in_scope import is_print_of_python
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_guards import Ranks, decorated_ranks
from codemods.analysis.ranks.rank_sets import Split
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_ZERO = Split(Ranks.ZERO, Ranks.OTHERS)
_ASKS_GROUP = ("is_initialized", "is_available")


@record
class Printer:
    """What a printing function takes, and what it asks to know whether it is rank 0's.

    many: any number of values, else one. empty: none at all is an empty line. keywords: those of Python's `print`; flushes: all
    but `flush`, which it gives itself. asked: its tests, and what they are made from in its body; group_first: it asks whether
    there is a process group before it asks for the rank. by_node: one process of each node prints.
    """

    home: SourceModule
    function: FunctionNode
    many: bool
    empty: bool
    keywords: bool
    flushes: bool
    asked: tuple[ast.expr, ...]
    group_first: bool
    by_node: bool = False

    def takes(self, call: ast.Call) -> bool:
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        if not self.many and (starred or len(call.args) > 1 or (not call.args and not self.empty)):
            return False
        if call.keywords and not self.keywords:
            return False
        return not (self.flushes and any(k.arg in (None, "flush") for k in call.keywords))


def printer_of(project: Project, module: SourceModule, function: FunctionNode) -> Printer | None:
    """The function as one that prints on rank 0 alone and does no more; None where it does, or that is not shown."""
    key = ("printer", module.path, id(function))
    return project.memo(key, lambda: _read(project, module, function))


def _read(project: Project, module: SourceModule, function: FunctionNode) -> Printer | None:
    if isinstance(function, ast.AsyncFunctionDef) or not _takes_values(module, function):
        return None
    if function.name == "print" and not _is_method(module, function):
        return None
    decorated = bool(function.decorator_list)
    if _is_method(module, function) and decorated:
        return None
    if decorated and (len(function.decorator_list) > 1 or decorated_ranks(module, function, project=project) is not Ranks.ZERO):
        return None
    reader = _Reader(project, module, {n.arg for n in walk(function.args) if isinstance(n, ast.arg)})
    if not (reader.prints(function.body) if decorated else reader.keeps_to_zero(function.body)):
        return None
    shapes = {_shape(module, function, call) for call in reader.calls}
    if None in shapes or len(shapes) != 1 or (shape := shapes.pop()) is None:
        return None
    many, empty, keywords, flushes = shape
    return Printer(module, function, many, empty, keywords, flushes, tuple(reader.asked), reader.group_first, reader.by_node)


def _takes_values(module: SourceModule, function: FunctionNode) -> bool:
    """True for `*args` alone, or one argument, besides a method's own object."""
    spec = function.args
    return not spec.kwonlyargs and len(_plain(module, function)) == (0 if spec.vararg else 1)


def _plain(module: SourceModule, function: FunctionNode) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args][1 if _is_method(module, function) else 0 :]


def _is_method(module: SourceModule, function: FunctionNode) -> bool:
    first = function.args.args[:1]
    return isinstance(module.parent(function), ast.ClassDef) and bool(first) and first[0].arg == "self"


_Shape = tuple[bool, bool, bool, bool]


def _shape(module: SourceModule, function: FunctionNode, call: ast.Call) -> _Shape | None:
    """How a `print` hands on what the function is given; None where it changes it."""
    spec = function.args
    given = call.args[0] if len(call.args) == 1 else None
    if spec.vararg:
        given = given.value if isinstance(given, ast.Starred) else None
    name = spec.vararg.arg if spec.vararg else _plain(module, function)[0].arg
    if not isinstance(given, ast.Name) or given.id != name:
        return None
    keywords = flushes = False
    for keyword in call.keywords:
        if keyword.arg is None and spec.kwarg and dotted(keyword.value) == spec.kwarg.arg:
            keywords = True
        elif keyword.arg == "flush" and isinstance(keyword.value, ast.Constant):
            flushes = True
        else:
            return None
    default = spec.defaults[0] if spec.defaults else None
    empty = spec.vararg is not None or (isinstance(default, ast.Constant) and default.value == "")
    return spec.vararg is not None, empty, keywords, flushes


class _Reader:
    """Reads the body of a function; `calls`: its prints, one for each way through it."""

    def __init__(self, project: Project, module: SourceModule, arguments: set[str]) -> None:
        self._project, self._module, self._arguments = project, module, arguments
        self.calls: list[ast.Call] = []
        self.asked: list[ast.expr] = []
        self.group_first = False
        self.by_node = False

    def keeps_to_zero(self, block: list[ast.stmt]) -> bool:
        """True for a block that prints on rank 0 and does nothing on the others."""
        block = self._without_preparation(block)
        if len(block) == 1 and self._leaves_it_to_an_accelerator(block[0]):
            return True
        if not block or not isinstance(block[0], ast.If):
            return False
        test, body, orelse, rest = block[0].test, block[0].body, block[0].orelse, block[1:]
        split = known_split(self._module, test, self._project)
        if split in (_ZERO, _ZERO.turned):
            self.asked.append(test)
            if split == _ZERO.turned:
                left = not orelse and _ends(body) and _returns(body)
                return self.prints(_cut(rest)) if left else _ends(body) and not rest and self.prints(_cut(orelse))
            return self.prints(_cut(body)) and _ends(orelse) and not rest
        if (grouped := self._asks_group(test)) is None or (rest and (orelse or not _returns(body))):
            return False
        self.group_first = True
        several, alone = (body, orelse or rest) if grouped else (orelse or rest, body)
        return self.keeps_to_zero(_cut(several)) and self.prints(_cut(alone))

    def _leaves_it_to_an_accelerator(self, statement: ast.stmt) -> bool:
        """True for `self.accelerator.print(message)`, which one process of each node prints."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        func = call.func if isinstance(call, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "print" or not isinstance(call, ast.Call):
            return False
        if not is_accelerator(self._project, self._module, func.value):
            return False
        self.calls.append(call)
        self.asked.append(func.value)
        self.by_node = True
        return True

    def prints(self, block: list[ast.stmt]) -> bool:
        """True for one `print`, flushed behind it or not."""
        block = _spoken_off(block)
        call = block[0].value if block and isinstance(block[0], ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "print":
            return False
        if "print" in self._module.imports or not is_print_of_python(self._module, call.func):
            return False
        self.calls.append(call)
        return all(self._flushes(s) for s in block[1:])

    def _flushes(self, statement: ast.stmt) -> bool:
        call = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(call, ast.Call) and qualified(self._module, call.func) in ("sys.stdout.flush", "sys.stderr.flush")

    def _without_preparation(self, block: list[ast.stmt]) -> list[ast.stmt]:
        block = _spoken_off(block)
        while block and isinstance(block[0], ast.Assign) and does_nothing(self._project, self._module, block[0]):
            if not all(isinstance(t, ast.Name) and t.id not in self._arguments for t in block[0].targets):
                break
            self.asked.append(block[0].value)
            block = block[1:]
        return block

    def _asks_group(self, test: ast.expr) -> bool | None:
        """Whether a test holds where there is a process group, or where there is none; None where it asks something else."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._asks_group(test.operand)
            return None if inner is None else not inner
        parts = conjuncts(test)
        named = (qualified(self._module, p.func) if isinstance(p, ast.Call) else "" for p in parts)
        return True if all(n.startswith("torch.distributed.") and last(n) in _ASKS_GROUP for n in named) else None


def _spoken_off(block: list[ast.stmt]) -> list[ast.stmt]:
    """The block without its docstring."""
    first = block[0] if block else None
    return block[1:] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else block


def _ends(block: list[ast.stmt]) -> bool:
    """True for a block that does nothing."""
    return all(isinstance(s, ast.Pass) or (isinstance(s, ast.Return) and s.value is None) for s in block)


def _returns(block: list[ast.stmt]) -> bool:
    return isinstance(block[-1], ast.Return) and block[-1].value is None


def _cut(block: list[ast.stmt]) -> list[ast.stmt]:
    return block[:-1] if block and _returns(block) else block
