"""Numbers of one rank that are shown as if they were everybody's: rank 0 prints, logs or goes by the loss of its own share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, Value
from codemods.data.rank_variance import METRIC_NAME, SAYS_SHOWN, SHOWN_BY_MAIN, SHOWN_NUMBERS
from codemods.project import Project
from codemods.record import record
from codemods.source import FunctionNode, SourceModule, walk

_CURVES = ("add_scalar", "log_scalar")
_ORDERS = (ast.Lt, ast.Gt, ast.LtE, ast.GtE)


@record
class Number:
    """at: where the number is made (a mean) or shown; shown: the call or test that shows it. text: the number, as written.

    decides: rank 0 goes by it, and does not only show it.
    """

    at: ast.AST
    shown: ast.AST
    text: str
    value: Value
    decides: bool = False


def numbers_of_one_rank(project: Project, module: SourceModule) -> Iterator[Number]:
    """Each number once: where it is put together, if this file does it, else where it is shown."""
    analysis = variance(project)
    if not analysis.is_parallel(module):
        return
    places: dict[FunctionNode | None, list[ast.Call | ast.If]] = {}
    nodes: list[ast.Call | ast.If] = [*module.nodes(ast.Call), *module.nodes(ast.If)]
    for node in nodes:
        function = module.function_of(node)
        if _shows(project, module, function, node) if isinstance(node, ast.Call) else _decides(project, module, function, node):
            places.setdefault(function, []).append(node)
    for function, shown in places.items():  # the others are not interpreted for this
        state = analysis.of(FunctionSite(module, function)) if function is not None else analysis.top_level(module)
        if state is not None:
            yield from _in_function(analysis, state, sorted(shown, key=lambda n: (n.lineno, n.col_offset)))


def _in_function(analysis: Analysis, state: State, places: list[ast.Call | ast.If]) -> Iterator[Number]:
    found: list[Number] = []
    for node in places:
        found += _shown_in(analysis, state, node) if isinstance(node, ast.Call) else _compared_in(analysis, state, node)
    means = [n for n in found if n.value.mean]
    steps = sorted((n for n in found if not n.value.mean), key=_is_print)  # a curve before a line of text
    seen: set[tuple[int, str]] = set()
    lines: list[int] = []
    for number in (*means, *steps[:1]):
        made = number.value.chain[0].line if number.value.chain else 0
        key = (getattr(number.at, "lineno", 0), "") if number.at is not number.shown else (made, "shown")
        line = getattr(number.at, "lineno", 0)
        if key not in seen and all(abs(line - other) > 4 for other in lines):  # neighbours are one matter
            seen.add(key)
            lines.append(line)
            yield number


def _is_print(number: Number) -> bool:
    return isinstance(number.shown, ast.Call) and last(dotted(number.shown.func)) in ("print", "info", "debug", "write")


def _shows(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.Call) -> bool:
    """True for output that rank 0 alone makes: under a test of the rank, callers included, or by an object that sees to it."""
    name = dotted(node.func)
    if name in SHOWN_BY_MAIN:
        return True
    named = last(name) in SHOWN_NUMBERS or SAYS_SHOWN.search(last(name))
    if not named or name.startswith("math.") or _is_lightning(project, module, node):
        return False
    if last(name) not in _CURVES and not any(_is_number(part) for part in _parts(node)):
        return False  # cheaper than to ask who calls the function
    return _is_on_zero(project, module, function, node)


def _decides(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.If) -> bool:
    """True for a comparison that rank 0 goes by, alone."""
    tests = (n for n in walk(node.test) if isinstance(n, ast.Compare) and isinstance(n.ops[0], _ORDERS))
    compared = any(_is_number(side) for test in tests for side in (test.left, *test.comparators))
    return compared and (_asks_for_zero(project, module, node) or _is_on_zero(project, module, function, node))


def _is_lightning(project: Project, module: SourceModule, node: ast.AST) -> bool:
    owner = module.class_of(node)
    return owner is not None and class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE)


def _asks_for_zero(project: Project, module: SourceModule, node: ast.If) -> bool:
    split = known_split(module, node.test, project)
    return split is not None and split.true in (Ranks.ZERO, Ranks.LOCAL_ZERO)


def _is_on_zero(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.AST) -> bool:
    here = ranks_at(module, node, project=project)
    if here is Ranks.ALL and function is not None:
        here = ranks_entering(project, module, function)
    return here in (Ranks.ZERO, Ranks.LOCAL_ZERO)


def _shown_in(analysis: Analysis, state: State, node: ast.Call) -> Iterator[Number]:
    parts = _parts(node)
    if any(_value(analysis, state, p).cause is Cause.RANK and len(_value(analysis, state, p).chain) < 2 for p in parts):
        return  # it says whose number it is
    taken: set[int] = set()
    for part in parts:
        if id(part) in taken:
            continue
        value = _value(analysis, state, part)
        tracked = dotted(node.func) in ("wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "accelerator.log")
        item = isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "item"
        plotted = last(dotted(node.func)) in _CURVES and len(node.args) > 1 and part is node.args[1]
        plotted = plotted or (tracked and item)
        if value.origin is not None and value.origin.by_name and len(value.chain) == 1 and not _is_trained(state):
            continue  # nothing but its name speaks for it
        if _is_whole(analysis, state, value) or _holds_pictures(state, part):
            continue
        told = last(dotted(node.func)) in SHOWN_NUMBERS or dotted(node.func) in SHOWN_BY_MAIN or value.mean
        if value.differs and value.cause is Cause.DATA and told and (plotted or _is_number(part)):
            taken |= {id(n) for n in walk(part)}
            yield _number(state, part, node, value)


def _parts(node: ast.Call) -> list[ast.expr]:
    given = [*node.args, *(k.value for k in node.keywords)]
    return [n for g in given for n in walk(g) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp))]


def _is_whole(analysis: Analysis, state: State, value: Value) -> bool:
    """True where only its name says that a loader shares out, and rank 0 alone goes through it: most likely it has the whole."""
    origin = value.origin
    if origin is None or not origin.by_name or origin.path != state.module.path:
        return False
    loop = next((n for n in state.module.nodes(ast.For) if n.lineno == origin.line), None)
    return loop is not None and _is_on_zero(state.project, state.module, state.function, loop)


def _holds_pictures(state: State, part: ast.expr) -> bool:
    """True for a dict of images and the like."""
    bound = bindings_of(state.module, part) if isinstance(part, ast.Name) else []
    calls = (n for b in bound if b.value is not None for n in walk(b.value) if isinstance(n, ast.Call))
    return any(last(dotted(call.func)) in ("Image", "Video", "Html", "Audio") for call in calls)


def _is_trained(state: State) -> bool:
    return any(m.name == "backward" for meetings in state.met.values() for m in meetings)


def _compared_in(analysis: Analysis, state: State, node: ast.If) -> Iterator[Number]:
    """`if acc > best:` on rank 0: the best checkpoint is that of its own share."""
    for test in walk(node.test):
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], _ORDERS):
            continue
        for side in (test.left, *test.comparators):
            value = _value(analysis, state, side)
            if value.differs and value.cause is Cause.DATA and value.mean and _is_number(side):
                yield _number(state, side, node, value, decides=True)
                return


def _value(analysis: Analysis, state: State, node: ast.expr) -> Value:
    return analysis.resolved(state.site, state.values.get(id(node), SAME))


def _is_number(node: ast.expr) -> bool:
    """True for what reads like a loss or a metric: by its name, the key it is found under, or `.item()`."""
    if isinstance(node, ast.Call):
        operands = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return any(_is_number(n) for n in (*operands, *node.args))
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) or _is_number(node.right)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        return _is_number(node.value) or bool(isinstance(key, str) and METRIC_NAME.search(key))
    name = last(dotted(node))
    if name in ("avg", "global_avg", "average", "val", "mean", "value") and isinstance(node, ast.Attribute):
        return True
    return bool(METRIC_NAME.search(name))


def _number(state: State, part: ast.expr, shown: ast.AST, value: Value, *, decides: bool = False) -> Number:
    at: ast.AST = shown
    if value.mean:
        at = _where_made(state.module, value) or shown
    return Number(at, shown, " ".join(state.module.text_of(part).split()), value, decides)


def _where_made(module: SourceModule, value: Value) -> ast.stmt | None:
    """The statement that divides the sum, or takes the mean of the list: behind the one that adds a batch to it."""
    for link in value.chain:
        for statement in _statements(module, link.line) if link.path == module.path else ():
            if _puts_together(statement):
                return statement
        if "+=" in link.text or ".append(" in link.text or "keeps it" in link.text:
            return None
    return None


def _statements(module: SourceModule, line: int) -> list[ast.stmt]:
    kinds: tuple[type[ast.stmt], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
    return [s for kind in kinds for s in module.nodes(kind) if s.lineno == line]


def _puts_together(node: ast.stmt) -> bool:
    """True where a statement makes a mean: it divides, or takes the mean of a list."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Div)
    for inner in walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
            return True
        if isinstance(inner, ast.Call) and last(dotted(inner.func)) in ("mean", "average", "fmean", "nanmean"):
            return True
    return False
