"""Statements that fail in every run that comes to them: by what they read, and by what they call and with which arguments."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.absent_names import is_absent
from codemods.analysis.ranks.lost_attributes import is_lost_attribute
from codemods.analysis.ranks.lost_options import is_lost_option
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.refused_calls import is_refused, surely_run
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.unbound_names import unbound
from codemods.files.source import SourceModule, child_nodes, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What a file can only have by an import.
_IMPORTED = frozenset(sys.stdlib_module_names) | {
    "np", "pd", "plt", "nn", "torch", "torchvision", "numpy", "pandas", "tqdm", "cv2", "wandb", "yaml", "einops", "transformers",
    "timedelta", "defaultdict", "OrderedDict", "namedtuple", "deepcopy", "partial", "Path", "Counter", "deque", "dataclass",
}  # fmt: skip
# What takes hours: whatever fails behind it, the noise before is heard till then.
TRAINS = lazy(r"\.backward\(|\.step\(|\.fit\(|\btrain\w*\(", re.IGNORECASE)
# Ways to give names to all files that are not followed, and names for the module of what is built in.
_BY_ANOTHER_WAY = lazy(rb"builtins(?:__)?\.(?:__dict__|update)|vars\(\s*\w*builtin|=\s*\w*builtins\w*\s*$", re.MULTILINE)
_AS = lazy(rb"\bbuiltins as (\w+)")
_HIDES = frozenset({"suppress", "raises", "assertRaises"})
_FEW_NAMES = 4  # more of them, and the file is a piece of something else
_LINES_OF_A_PROGRAM = 60
_DEPTH = 2  # functions that a statement calls, and these
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
Place = tuple[str, int, int, int, int]  # of an expression: path, first and last line and column
Places = frozenset[Place]


def failing(project: Project, module: SourceModule, block: list[ast.stmt], at: Places | None = None) -> tuple[int, ...]:
    """The statements of a block that fail in every run, by their numbers. at: where expressions raise, and nowhere else."""

    def build() -> tuple[int, ...]:
        return tuple(i for i, s in enumerate(block) if statement_fails(project, module, s, at=at))

    return project.memo(("failing", module.path, block[0].lineno, block[0].col_offset, at), build)


def constructor_dies(project: Project, site: ClassSite, at: Places | None = None) -> bool:
    """True where no object of the class gets made: a statement of its own constructor that every run comes to fails."""

    def build() -> bool:
        init = site.methods().get("__init__")
        return init is not None and not init.decorator_list and _block_fails(project, site.module, init.body, _DEPTH, at)

    return project.keep(("constructor dies", site.module.path, site.node.lineno, at), build)


def statement_fails(
    project: Project, module: SourceModule, statement: ast.stmt, depth: int = _DEPTH, at: Places | None = None
) -> bool:
    """True where every run of several processes fails there: by what the statement reads and calls, or on one of the ranks."""
    if any(expression_fails(project, module, part, depth, at) for part in evaluated(statement)):
        return True
    if isinstance(statement, ast.Assign):
        return at is None and _is_taken_apart_wrongly(project, module, statement)
    if isinstance(statement, (ast.With, ast.For)) and _is_entered(module, statement):
        return _block_fails(project, module, statement.body, depth, at)
    if not isinstance(statement, ast.If):
        return False
    several = several_processes(module, statement.test)
    if several is not None:
        return _block_fails(project, module, statement.body if several else statement.orelse, depth, at)
    split = known_split(module, statement.test, project)
    if split is None or not split.alone:
        return False
    # some rank of each run takes either way, and the others end with it
    return any(_block_fails(project, module, arm, depth, at) for arm in (statement.body, statement.orelse))


def _is_entered(module: SourceModule, statement: ast.With | ast.For) -> bool:
    """True for a block that is run at least once: not that of a loop over what may be empty, nor one that hides errors."""
    if isinstance(statement, ast.With):
        managers = (i.context_expr for i in statement.items)
        return not any(last(dotted(m.func if isinstance(m, ast.Call) else m)) in _HIDES for m in managers)
    over = statement.iter
    counts = isinstance(over, ast.Call) and dotted(over.func) in ("range", "trange", "tqdm.trange")
    return counts or TRAINS.search(module.text_of(statement)) is not None


def _block_fails(project: Project, module: SourceModule, block: list[ast.stmt], depth: int, at: Places | None) -> bool:
    """True for a block that fails before anything in it may leave it."""
    for statement in block:
        if statement_fails(project, module, statement, depth, at):
            return True
        if any(isinstance(n, _LEAVES) for n in (statement, *walk_scope(statement))):
            return False
    return False


def expression_fails(
    project: Project, module: SourceModule, node: ast.expr, depth: int = _DEPTH, at: Places | None = None
) -> bool:
    """True where working out this node itself raises in every run; what stands in it is asked for itself."""
    if at is not None:
        return place_of(module, node) in at or (isinstance(node, ast.Call) and _calls_a_failure(project, module, node, depth, at))
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load) and node.id in unbound(module) and _is_missing(project, module, node)
    if isinstance(node, ast.Attribute):
        if is_lost_option(project, module, node) or is_absent(project, module, node):
            return True
        return is_whole(module) and is_lost_attribute(project, module, node)
    if not isinstance(node, ast.Call):
        return False
    return is_refused(project, module, node) or _calls_a_failure(project, module, node, depth, at)


def place_of(module: SourceModule, node: ast.expr) -> Place:
    return module.path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _is_missing(project: Project, module: SourceModule, name: ast.Name) -> bool:
    """True for a name that can only come of an import or of `self`, and for one of few that a whole program does not bind."""
    if name.id in _IMPORTED or project.files_defining(name.id) or _is_without_self(module, name):
        return True
    if len(unbound(module)) > _FEW_NAMES or not is_whole(module):
        return False
    return not any(_may_give_to_all(project.read(path) or b"", name.id) for path in project.files_containing(b"builtins"))


def _may_give_to_all(data: bytes, name: str) -> bool:
    """True for a file that may put the name into the built-ins: `builtins.show = …`, `setattr(builtins, "show", …)`."""
    word = name.encode()
    if _BY_ANOTHER_WAY.search(data) is not None:
        return word in data
    modules = b"|".join((b"builtins", b"__builtins__", *(m.group(1) for m in _AS.finditer(data))))
    given = rb"\b(?:" + modules + rb")(?:\.|\s*,\s*[\"']|\[[\"'])" + re.escape(word) + rb"\b"
    return re.search(given, data) is not None


def is_whole(module: SourceModule) -> bool:
    """False for a short sample, which leaves out where its names and its methods come from."""
    return module.data.count(b"\n") >= _LINES_OF_A_PROGRAM


def _is_without_self(module: SourceModule, name: ast.Name) -> bool:
    """True for a name that no scope binds in a method which has it from `self` elsewhere: `self.trainer`, and `trainer`."""
    function = module.function_of(name)
    reads = (n for n in walk(function) if isinstance(n, ast.Attribute)) if function is not None else ()
    return any(n.attr == name.id and isinstance(n.value, ast.Name) and n.value.id == "self" for n in reads)


def _calls_a_failure(project: Project, module: SourceModule, call: ast.Call, depth: int, at: Places | None) -> bool:
    if depth <= 0 or (found := surely_run(project, module, call)) is None:
        return False
    key = ("function that fails", found.module.path, found.function.lineno, depth, at)
    return project.keep(key, lambda: _block_fails(project, found.module, found.function.body, depth - 1, at))


def _is_taken_apart_wrongly(project: Project, module: SourceModule, statement: ast.Assign) -> bool:
    """True for `a, b = read()`, where `read` gives back another number of values whichever way it takes."""
    target = statement.targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(statement.value, ast.Call):
        return False
    if any(isinstance(e, ast.Starred) for e in target.elts):
        return False
    found = surely_run(project, module, statement.value)
    values = returned(found.function, found.module) if found is not None and not found.bound else []
    return bool(values) and all(_has_another_length(v, len(target.elts)) for v in values)


def _has_another_length(value: ast.expr, length: int) -> bool:
    if not isinstance(value, (ast.Tuple, ast.List)) or any(isinstance(e, ast.Starred) for e in value.elts):
        return False
    return len(value.elts) != length


def evaluated(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement surely reads, whichever way it takes."""
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield from certain(statement.test)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from certain(statement.iter)
    elif isinstance(statement, (ast.Expr, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign)):
        if statement.value is not None:
            yield from certain(statement.value)
            yield from _read_by_targets(statement)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            yield from certain(item.context_expr)


def _read_by_targets(statement: ast.Expr | ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[ast.expr]:
    """What is read where something is put: `model.config` of `model.config.width = 3`."""
    if isinstance(statement, (ast.Expr, ast.Return)):
        return
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        for one in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(one, (ast.Attribute, ast.Subscript)):
                yield from certain(one.value)


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
