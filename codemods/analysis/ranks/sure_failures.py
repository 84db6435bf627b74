"""Places that no run reaches, since a statement before them raises in every run: a lost option, a forgotten import, a setting
that its file lacks.

And blocks that no run completes, since one of their statements raises so, or calls a function of the project with arguments that
it does not take. Such a call may be repaired any day: errors beside it are reported all the same, mere noise is not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, find_class, subclasses
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import position
from codemods.analysis.ranks.absent_names import is_absent
from codemods.analysis.ranks.lost_options import OPTION_NAMES, is_lost_option
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.refused_calls import is_refused, plain_function
from codemods.analysis.unbound_names import unbound
from codemods.files.source import SourceModule, child_nodes, once_a_module, walk, walk_scope
from codemods.files.text_file import NOTEBOOK
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What a file can only have by an import. Any other name that it does not bind may be a sketch, or be set from outside.
_IMPORTED = frozenset(sys.stdlib_module_names) | {
    "np", "pd", "plt", "nn", "torch", "torchvision", "numpy", "pandas", "tqdm", "cv2", "wandb", "yaml", "einops", "transformers",
    "timedelta", "defaultdict", "OrderedDict", "namedtuple", "deepcopy", "partial", "Path", "Counter", "deque", "dataclass",
}  # fmt: skip
_DEPTH = 2  # functions that a statement calls, and these
TRAINS = lazy(r"\.backward\(|\.step\(|\.fit\(|\btrain\w*\(", re.IGNORECASE)
_OPTIONS = tuple(f"{name}.".encode() for name in sorted(OPTION_NAMES))
_OF_THE_CLASS = frozenset({"staticmethod", "classmethod"})
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def is_behind_a_failure(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a statement above `node`, or a test round it, reads what does not exist: each run raises there."""
    if module.path.endswith(NOTEBOOK):
        return False
    below: ast.AST = node
    for up in module.ancestors(node):
        place = position(module, below)
        if isinstance(up, (ast.If, ast.While)) and place is not None:
            if any(_fails(project, module, part) for part in _asked(up.test, whole=place.name == "body")):
                return True
        if place is not None and place.index > _first_failure(project, module, place.block):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def is_in_a_failing_block(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a block round `node` raises in every run, above or below it: by such a read, or a call with wrong arguments."""
    if module.path.endswith(NOTEBOOK):
        return False
    below: ast.AST = node
    for up in module.ancestors(node):
        place = position(module, below)
        if place is not None and _dies(project, module, place.block, place.index):
            return True
        if isinstance(up, (ast.Try, ast.TryStar)):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _is_of_unmade(project, module, up)
        below = up
    return False


def _is_of_unmade(project: Project, module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a method of an object that no run gets made: its constructor dies, and each heir has it from there."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or function.name.startswith("__"):
        return False
    if _OF_THE_CLASS & {last(dotted(d)) for d in function.decorator_list}:
        return False
    below = subclasses(project, ClassSite(module, owner))
    return not any("__init__" in s.methods() for s in below) and _constructor_dies(project, ClassSite(module, owner))


def _constructor_dies(project: Project, site: ClassSite) -> bool:
    """True where a call among the plain statements of the class's own constructor is refused in every run."""

    def build() -> bool:
        init = site.methods().get("__init__")
        if init is None or init.decorator_list:
            return False
        calls = (part for s in _sure(init.body) for part in evaluated(s) if isinstance(part, ast.Call))
        return any(is_refused(project, site.module, c) for c in calls)

    return project.keep(("constructor dies", site.module.path, site.node.lineno), build)


def _sure(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block that every run comes to: not behind one that may leave it."""
    for statement in block:
        yield statement
        if any(isinstance(n, _LEAVES) for n in (statement, *walk_scope(statement))):
            return


def _is_refused(project: Project, module: SourceModule, call: ast.Call) -> bool:
    return is_refused(project, module, call) or _makes_none(project, module, call)


def _makes_none(project: Project, module: SourceModule, call: ast.Call) -> bool:
    made = find_class(project, module, dotted(call.func)) if isinstance(call.func, ast.Name) else None
    return made is not None and _constructor_dies(project, made)


def _dies(project: Project, module: SourceModule, block: list[ast.stmt], index: int) -> bool:
    """True where another statement of the block fails in every run, and no training lies between: it would print for hours."""
    for at in _failing(project, module, block):
        between = block[index:at]
        if at != index and not any(TRAINS.search(module.text_of(s)) for s in between):
            return True
    return False


def _failing(project: Project, module: SourceModule, block: list[ast.stmt]) -> frozenset[int]:
    """The statements of a block that fail in every run, by their numbers."""

    def build() -> frozenset[int]:
        return frozenset(
            i for i, s in enumerate(block)
            if any(
                _fails(project, module, part) or (isinstance(part, ast.Call) and _is_refused(project, module, part))
                for part in evaluated(s)
            )
        )  # fmt: skip

    return project.memo(("failing", module.path, block[0].lineno, block[0].col_offset), build)


def _first_failure(project: Project, module: SourceModule, block: list[ast.stmt]) -> int:
    """The first statement of a block that fails in every run; their number where none does."""

    def build() -> int:
        return next((i for i, s in enumerate(block) if _statement_fails(project, module, s)), len(block))

    return project.memo(("first failure", module.path, block[0].lineno, block[0].col_offset), build)


def _statement_fails(project: Project, module: SourceModule, statement: ast.stmt, depth: int = _DEPTH) -> bool:
    """True where every run raises there: by what the statement reads, in a function that it calls, or on one of the ranks."""
    if any(_fails(project, module, part) or _calls_a_failure(project, module, part, depth) for part in evaluated(statement)):
        return True
    if not isinstance(statement, ast.If):
        return False
    split = known_split(module, statement.test, project)
    if split is None or not split.alone:
        return False
    # some rank of each run takes either way, and the others end with it
    return any(_block_fails(project, module, arm, depth) for arm in (statement.body, statement.orelse))


def _block_fails(project: Project, module: SourceModule, block: list[ast.stmt], depth: int) -> bool:
    """True for a block that raises before anything in it may leave it."""
    for statement in block:
        if _statement_fails(project, module, statement, depth):
            return True
        if any(isinstance(n, _LEAVES) for n in (statement, *walk_scope(statement))):
            return False
    return False


def _calls_a_failure(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    if depth <= 0 or not isinstance(node, ast.Call) or (found := plain_function(project, module, node)) is None:
        return False
    home, function = found
    if not _may_fail(home):
        return False
    key = ("function that fails", home.path, function.lineno, depth)
    return project.keep(key, lambda: _block_fails(project, home, function.body, depth - 1))


@once_a_module
def _may_fail(module: SourceModule) -> bool:
    """False for a file that binds all that it reads, and asks no options."""
    return bool(unbound(module)) or any(module.holds(word) for word in _OPTIONS)


def _fails(project: Project, module: SourceModule, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        known = node.id in unbound(module)
        return known and (node.id in _IMPORTED or bool(project.files_defining(node.id)) or _is_without_self(module, node))
    if not isinstance(node, ast.Attribute):
        return False
    return is_lost_option(project, module, node) or is_absent(project, module, node)


def _is_without_self(module: SourceModule, name: ast.Name) -> bool:
    """True for a name that no scope binds in a method which has it from `self` elsewhere: `self.trainer`, and `trainer`."""
    function = module.function_of(name)
    reads = (n for n in walk(function) if isinstance(n, ast.Attribute)) if function is not None else ()
    return any(n.attr == name.id and isinstance(n.value, ast.Name) and n.value.id == "self" for n in reads)


def evaluated(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement surely reads, whichever way it takes."""
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield from certain(statement.test)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from certain(statement.iter)
    elif isinstance(statement, (ast.Expr, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign)):
        if statement.value is not None:
            yield from certain(statement.value)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            yield from certain(item.context_expr)


def _asked(test: ast.expr, *, whole: bool) -> Iterator[ast.expr]:
    """What a test has read where it has come out. whole: it came out true, so that each part of an `and` was read."""
    if whole and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _asked(part, whole=True)
    else:
        yield from certain(test)


def certain(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that are worked out with this one in any case."""
    yield node
    inner: list[ast.AST]
    if isinstance(node, ast.BoolOp):
        inner = [node.values[0]]
    elif isinstance(node, ast.IfExp):
        inner = [node.test]
    elif isinstance(node, ast.Compare):
        inner = [node.left, node.comparators[0]]
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        inner = [node.generators[0].iter]
    elif isinstance(node, ast.Lambda):
        inner = []
    else:
        inner = [n.value if isinstance(n, ast.keyword) else n for n in child_nodes(node)]
    for part in inner:
        if isinstance(part, ast.expr):
            yield from certain(part)
