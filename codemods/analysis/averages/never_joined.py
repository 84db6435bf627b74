"""Losses and metrics of one rank that are divided by the number of processes, though nothing has summed them over the ranks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.averages.calls import CASTS, is_process_count_in
from codemods.analysis.averages.frame import known_value
from codemods.analysis.averages.wrong import joins_ranks
from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, qualified
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.number_words import is_key, is_number
from codemods.analysis.variance.outlets import says_shown
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.values import Cause
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_PLACES = (ast.Name, ast.Attribute, ast.Subscript)
_MOST_NAMES = 12
_COUNTS = (b"world_size", b"num_processes", b"nprocs", b"num_replicas")
_PACKAGES = frozenset({"torch", "np", "numpy"})
_NEW = frozenset({"sum", "mean", "item", "clone", "tolist", "float", "stack", "cat"})  # what has memory of its own
_SAME_NUMBER = frozenset({"mean", "item", "detach", "cpu", "float"})
_BATCHES = "gives each rank its own batches"
_MAY_JOIN = ("sync", "average", "broadcast", "all_", "across", "allmean")


@record
class NeverJoined:
    """division: the quotient. number: what is divided, as it is written. shown: the call that shows the quotient."""

    division: ast.BinOp | ast.AugAssign
    number: str
    shown: ast.Call


def never_joined(project: Project, module: SourceModule) -> Iterator[NeverJoined]:
    """One for each quotient of a file, where the function makes the number, divides it and shows it."""
    analysis = variance(project)
    if not analysis.is_parallel(module):
        return
    nodes: list[ast.BinOp | ast.AugAssign] = [*module.nodes(ast.BinOp), *module.nodes(ast.AugAssign)]
    for node in nodes:
        if not isinstance(node.op, ast.Div):
            continue
        number, divisor = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        function = module.function_of(node)
        if function is None or not is_process_count_in(module, divisor):
            continue
        names = made_of(module, function, number)
        if names is None or is_joined(project, module, function, names) or not _is_own(analysis, module, number):
            continue
        shown = _shown_as_own(analysis, module, function, node) if not _scales_losses_up(project) else None
        if shown is not None and not _goes_backward(module, function, names | _targets(module, node)):
            yield NeverJoined(node, " ".join(module.text_of(number).split()), shown)


def made_of(module: SourceModule, function: FunctionNode, number: ast.expr) -> frozenset[str] | None:
    """The names of the function that the number is made of, to the calls that give it; None where one is handed in."""
    names: set[str] = set()
    left: list[ast.expr] = [number]
    while left:
        for name in _read_in(module, left.pop()):
            if name in names:
                continue
            names.add(name)
            bound = bindings_in(module, function, name)
            if len(names) > _MOST_NAMES or not bound or any(b.parameter for b in bound):
                return None
            left += [b.value for b in bound if b.value is not None]
    return frozenset(names)


def _read_in(module: SourceModule, node: ast.expr) -> Iterator[str]:
    """The names in an expression; of a call what it is called on (`loss.item()`), or what it casts (`torch.tensor(loss)`)."""
    if is_process_count_in(module, node):
        return
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not (node.args or node.keywords):
            yield from _read_in(module, node.func.value)
        elif node.args and qualified(module, node.func) in CASTS:
            yield from _read_in(module, node.args[0])
    elif isinstance(node, ast.Name):
        yield node.id
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _read_in(module, child)


def is_joined(project: Project, module: SourceModule, function: FunctionNode, names: frozenset[str]) -> bool:
    """True where a call that reduces, or may by its name, takes one of the names or what shares their memory, or gives it."""
    names = _followed(module, function, names, _may_share_memory)
    for call in (n for n in walk(function) if isinstance(n, ast.Call)):
        if not joins_ranks(project, call) and not any(word in called_name(call).lower() for word in _MAY_JOIN):
            continue
        if any(isinstance(n, ast.Name) and n.id in names for n in walk(module.statement_of(call))):
            return True
    return False


def _followed(
    module: SourceModule, function: FunctionNode, names: frozenset[str], passes: Callable[[ast.expr], bool]
) -> frozenset[str]:
    """The names, and those that are given one of them alone, as it is or by a call that passes."""
    found = set(names)
    for assign in sorted((n for n in walk_scope(function) if isinstance(n, ast.Assign)), key=lambda n: n.lineno):
        value = assign.value
        while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)) and passes(value):
            value = _taken(value)
        if isinstance(value, ast.Name) and value.id in found:
            found |= {path_of(t) for t in assign.targets} - {""}
    return frozenset(found)


def _may_share_memory(node: ast.expr) -> bool:
    return not isinstance(node, ast.Call) or called_name(node) not in _NEW


def _is_same_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called_name(node) in _SAME_NUMBER


def _taken(node: ast.Call | ast.Attribute | ast.Subscript) -> ast.expr:
    """What a call is made on or handed first, and what an entry or a field is one of."""
    if not isinstance(node, ast.Call):
        return node.value
    if isinstance(node.func, ast.Attribute) and not (node.args and dotted(node.func.value) in _PACKAGES):
        return node.func.value
    return node.args[0] if node.args else node.func


def _scales_losses_up(project: Project) -> bool:
    """True where a loss is multiplied by the processes somewhere: it is divided by them again for the log."""

    def build() -> bool:
        paths = {p for word in _COUNTS for p in project.files_containing(word)}
        return any(_multiplies(m) for p in sorted(paths) if (m := project.module(p)) is not None)

    return project.keep("losses times the processes", build)


def _multiplies(module: SourceModule) -> bool:
    for node in (*module.nodes(ast.BinOp), *module.nodes(ast.AugAssign)):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Mult):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
            if any(is_process_count_in(module, s) for s in sides) and "loss" in module.text_of(module.statement_of(node)).lower():
                return True
    return False


def _is_own(analysis: Analysis, module: SourceModule, number: ast.expr) -> bool:
    """True for what the batches make that a rank goes through: its share, or all of them."""
    value = known_value(analysis, module, number)
    batches = value.origin is not None and _BATCHES in value.origin.text
    return value.is_of_own_data or (value.differs and value.cause is Cause.DATA and batches)


def _targets(module: SourceModule, division: ast.BinOp | ast.AugAssign) -> frozenset[str]:
    """The names that hold the quotient: those of the assignment that it is the whole value of."""
    if isinstance(division, ast.AugAssign):
        return frozenset({path_of(division.target)} - {""})
    statement = module.statement_of(division)
    if not isinstance(statement, ast.Assign) or statement.value is not division:
        return frozenset()
    return frozenset({path_of(t) for t in statement.targets} - {""})


def _shown_as_own(
    analysis: Analysis, module: SourceModule, function: FunctionNode, division: ast.BinOp | ast.AugAssign
) -> ast.Call | None:
    return next((c for c, part in _shows(module, function, division) if _is_own(analysis, module, part)), None)


def shows_quotient(module: SourceModule, function: FunctionNode, division: ast.BinOp | ast.AugAssign) -> ast.Call | None:
    """The call that shows the quotient, or the name that holds it, as a loss or a metric."""
    return next((call for call, _ in _shows(module, function, division)), None)


def _shows(
    module: SourceModule, function: FunctionNode, division: ast.BinOp | ast.AugAssign
) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Each call that shows it as a loss or a metric, and the part of it that it is."""
    targets = _followed(module, function, _targets(module, division), _is_same_number)
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call) and n.lineno >= division.lineno and says_shown(n)):
        for part in (n for given in (*call.args, *(k.value for k in call.keywords)) for n in walk(given)):
            if part is not division and not (isinstance(part, _PLACES) and path_of(part) in targets):
                continue
            assert isinstance(part, ast.expr)
            if _is_named(call, part):
                yield call, part


def _is_named(call: ast.Call, part: ast.expr) -> bool:
    words = [n.value for n in walk(call) if isinstance(n, ast.Constant)]
    return any(map(is_key, words)) or any(isinstance(n, _PLACES) and is_number(n) for n in walk(part))


def _goes_backward(module: SourceModule, function: FunctionNode, names: frozenset[str]) -> bool:
    """True where a backward pass is made of the quotient: DDP107 tells of its gradients."""
    calls = (c for name in BACKWARDS for c in module.calls_named(name) if module.function_of(c) is function)
    return any(path_of(n) in names for c in calls for n in walk(c) if isinstance(n, _PLACES))
