"""Starts of processes that fail, or start too many: arguments that are no tuple, that do not fit, and the count of all nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.functions import functions_by_name
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.counted_among import Among, is_node_count, size_among
from codemods.analysis.ranks.started_ranks import started_rank
from codemods.analysis.ranks.unequal_counts import Unequal, unequal_counts
from codemods.analysis.ranks.values_behind import values_behind
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_STARTS = ("multiprocessing.spawn", "multiprocessing.start_processes")
_NUMBERS = frozenset({"int", "len", "torch.cuda.device_count", "os.cpu_count", "torch.distributed.get_world_size"})
_NUMBERED = (ast.Mult, ast.Sub, ast.FloorDiv)


class Wrong(Enum):
    """What is wrong with a start."""

    NO_TUPLE = "no tuple"
    COUNT = "count"
    NODES = "nodes"
    SIZE = "size"


@record
class BadStart:
    """given: the expression that is wrong. worker: the function that is started, where it is seen.

    least, most: how many arguments it takes behind the number of the process; numbered: that number is handed over.
    """

    call: ast.Call
    given: ast.expr
    wrong: Wrong
    numbered: bool
    worker: FunctionSite | None = None
    least: int = 0
    most: int | None = None
    unequal: Unequal | None = None

    def takes(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


def wrong_starts(project: Project, module: SourceModule) -> Iterator[BadStart]:
    """The starts of ranks in the file that cannot be right."""
    for call in module.calls_named("spawn", "start_processes", "Process"):
        numbered = qualified(module, call.func).endswith(_STARTS)
        if not numbered and not started_rank(project, module, call):
            continue
        given = _handed(call, "args", 1) if numbered else _handed(call, "args", 3)
        if given is not None and (found := _arguments(project, module, call, given, numbered)) is not None:
            yield found
        count = _handed(call, "nprocs", 2) if numbered else None
        if count is not None and size_among(project, module, count) is Among.PRODUCT and _says_nodes(project, module, count):
            yield BadStart(call, count, Wrong.NODES, numbered)
        elif count is not None and (unequal := _unequal(project, module, call, count)) is not None:
            yield BadStart(call, count, Wrong.SIZE, numbered, unequal.worker, unequal=unequal)


def _unequal(project: Project, module: SourceModule, call: ast.Call, count: ast.expr) -> Unequal | None:
    target = _handed(call, "fn", 0)
    worker = _worker(project, module, target) if target is not None else None
    if target is None or worker is None or worker.node.decorator_list or worker.module.class_of(worker.node) is not None:
        return None
    return unequal_counts(project, module, target, count, worker)


def _handed(call: ast.Call, name: str, at: int) -> ast.expr | None:
    if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    named = next((k.value for k in call.keywords if k.arg == name), None)
    return named if named is not None else call.args[at] if len(call.args) > at else None


def _arguments(project: Project, module: SourceModule, call: ast.Call, given: ast.expr, numbered: bool) -> BadStart | None:
    target = _handed(call, "fn", 0) if numbered else _handed(call, "target", 1)
    worker = _worker(project, module, target) if target is not None else None
    least, most = _room(worker, numbered) if worker is not None else (0, None)
    if isinstance(given, ast.Tuple):
        if worker is None or any(isinstance(e, ast.Starred) for e in given.elts):
            return None
        found = BadStart(call, given, Wrong.COUNT, numbered, worker, least, most)
        return None if found.takes(len(given.elts)) else found
    if not _is_no_tuple(project, module, given):
        return None
    return BadStart(call, given, Wrong.NO_TUPLE, numbered, worker, least, most)


def _worker(project: Project, module: SourceModule, target: ast.expr) -> FunctionSite | None:
    """The one function that a target can be."""
    name = dotted(target)
    root, _, rest = name.partition(".")
    if not name:
        return None
    if root == "self":
        owner = module.class_of(target)
        own = module.methods_of(owner).get(rest) if owner is not None else None
        others = project.files_containing(f"def {rest}(".encode()) if own is not None else ()
        return FunctionSite(module, own) if own is not None and len(set(others)) == 1 and _is_only(module, rest) else None
    if rest:
        return find_function(project, module, name) if root in module.imports else None
    if any(_binds(module, target, name)):
        return None
    if functions_by_name(module).get(name) and not _is_only(module, name):
        return None
    return find_function(project, module, name)


def _is_only(module: SourceModule, name: str) -> bool:
    return sum(f.name == name for f in module.functions) == 1


def _binds(module: SourceModule, target: ast.expr, name: str) -> Iterator[ast.AST]:
    """What gives the name another value: a parameter, an assignment."""
    for up in module.ancestors(target):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = up.args
            yield from (arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs) if arg.arg == name)
    yield from (n for n in module.nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Store))


def _room(worker: FunctionSite, numbered: bool) -> tuple[int, int | None]:
    """(the fewest, the most) arguments that a worker takes behind what the start itself hands over."""
    node, a = worker.node, worker.node.args
    if node.decorator_list:
        return 0, None
    taken = [*a.posonlyargs, *a.args]
    own = int(numbered) + int(worker.module.class_of(node) is not None)
    least = len(taken) - len(a.defaults) - own
    return max(least, 0), None if a.vararg is not None else len(taken) - own


def _is_no_tuple(project: Project, module: SourceModule, given: ast.expr) -> bool:
    """True where every value that the expression may have is a number or what `parse_args()` gives."""
    if isinstance(given, ast.Name) and (near := values_of_name(module, given)):  # `int(x)` itself, and not what x is
        if all(_is_scalar(project, module, value, 0) for value in near):
            return True
    values = values_behind(project, module, given, constants=True)
    return bool(values) and all(_is_scalar(project, v.module, v.node, 0) for v in values)


def _is_scalar(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _NUMBERED) and depth < 3:
        sides = [v for side in (node.left, node.right) for v in values_behind(project, module, side, constants=True)]
        return any(isinstance(v.node, ast.Call) and _is_number(v.module, v.node) for v in sides)
    return isinstance(node, ast.Call) and (_is_number(module, node) or _is_parsed(module, node))


def _is_number(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func) in _NUMBERS or dotted(call.func) in ("int", "len")


def _is_parsed(module: SourceModule, call: ast.Call) -> bool:
    """`parser.parse_args()` of argparse, whose answer nothing goes through."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "parse_args" or not isinstance(call.func.value, ast.Name):
        return False
    made = [b.value for b in bindings_of(module, call.func.value)]
    return bool(made) and all(isinstance(v, ast.Call) and qualified(module, v.func) == "argparse.ArgumentParser" for v in made)


def values_of_name(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    """What assignments of the function give the name; nothing where something else gives it a value, too."""
    function = module.function_of(name)
    stores = [n for n in module.nodes(ast.Name) if n.id == name.id and not isinstance(n.ctx, ast.Load)]
    homes = [module.parent(n) for n in stores if module.function_of(n) is function]
    given = [h.value for h in homes if isinstance(h, ast.Assign)]
    return given if len(given) == len(homes) else []


def _says_nodes(project: Project, module: SourceModule, count: ast.expr) -> bool:
    """True where the count is a product with a number of machines that a setting gives."""
    products = [v for v in values_behind(project, module, count) if isinstance(v.node, ast.BinOp)]
    return bool(products) and all(
        any(is_node_count(v.module, side) and not isinstance(side, ast.Constant) for side in (v.node.left, v.node.right))
        for v in products
        if isinstance(v.node, ast.BinOp)
    )
