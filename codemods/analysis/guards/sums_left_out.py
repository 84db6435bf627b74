"""A sum over the ranks that a rank leaves out where its own part of it is empty: `if n > 0:` round the `all_reduce` of `n`.

A number that is summed over the ranks is each rank's own by the program's own word, and so is a test of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.again import sums_its_argument
from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.guards.own_parts_tested import is_selection, may_be_none_here, tested_part
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.files.source import FunctionNode, SourceModule, walk, walk_block
from codemods.runtime.record import record
from codemods.store.project import Project

_TENSORS = frozenset({"tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "DoubleTensor", "float", "int"})
_MOVES = frozenset(
    {"to", "cuda", "cpu", "float", "double", "int", "long", "clone", "detach", "item", "reshape", "view", "unsqueeze"}
)
_STEPS = 6


@record
class SumLeftOut:
    """test: the `if` round the sum. part: what it asks for, as it is written. summed: the call that every rank must make."""

    test: ast.If
    part: str
    summed: ast.Call


def sums_left_out(project: Project, module: SourceModule) -> Iterator[SumLeftOut]:
    seen: set[int] = set()
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        summed = sums_its_argument(project, module, call) if function is not None else None
        if function is None or summed is None:
            continue
        found = _test_of_part(project, module, function, call, summed)
        if found is None or id(found.test) in seen or ranks_reaching(project, module, call).some:
            continue
        if not is_run_by_nobody(project, module, call):
            seen.add(id(found.test))
            yield found


def _test_of_part(
    project: Project, module: SourceModule, function: FunctionNode, call: ast.Call, summed: ast.expr
) -> SumLeftOut | None:
    below: ast.AST = call
    for up in module.ancestors(call):
        if up is function:
            return None
        if isinstance(up, ast.If) and any(below is s for s in up.body) and not _meets(project, module, up.orelse):
            for asked in _operands(up.test):
                part = tested_part(asked)
                if part is not None and _is_own(module, function, up, call, part.node, summed, counted=part.counted):
                    return SumLeftOut(up, " ".join(module.text_of(asked).split()), call)
        below = up
    return None


def _is_own(
    module: SourceModule, function: FunctionNode, test: ast.If, call: ast.Call, part: ast.expr, summed: ast.expr, *, counted: bool
) -> bool:
    """True where the sum is of the tested number, or is made of what the tested selection holds."""
    if not isinstance(part, ast.Name):
        return False
    bound = bindings_in(module, function, part.id)
    if not bound or any(test.lineno <= module.statement_of(b.node).lineno <= call.lineno for b in bound):
        return False
    if _is_shared(module, function, part.id, test):
        return False
    if counted and is_selection(module, bound, part.id):
        return _leads_to(module, function, summed, part.id, call)
    taken = _as_it_is(module, function, summed, call)
    same = isinstance(taken, ast.Name) and taken.id == part.id
    return not counted and same and may_be_none_here(module, bound)


def _as_it_is(module: SourceModule, function: FunctionNode, node: ast.expr, call: ast.Call) -> ast.expr:
    """The number that stands in a tensor, behind the moves of it and the names that it is given."""
    for _ in range(_STEPS):
        if isinstance(node, ast.List) and len(node.elts) == 1:
            node = node.elts[0]
        elif isinstance(node, ast.Call) and node.args and last(dotted(node.func)) in _TENSORS:
            node = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
            node = node.func.value
        elif isinstance(node, ast.Name) and (value := _last_value(module, function, node, call)) is not None:
            node = value
        else:
            break
    return node


def _last_value(module: SourceModule, function: FunctionNode, name: ast.Name, call: ast.Call) -> ast.expr | None:
    """What a name was given last above, where that stands in a block round the call."""
    first = min(name.lineno, call.lineno)
    above = [b for b in bindings_in(module, function, name.id) if not b.parameter and _line(module, b) < first]
    nearest = max(above, key=lambda b: _line(module, b), default=None)
    if nearest is None or nearest.part or nearest.value is None:
        return None
    block = module.block_of(module.statement_of(nearest.node))
    if not any(s is up for up in (module.statement_of(call), *module.ancestors(call)) for s in block):
        return None
    made = nearest.value
    tensor = isinstance(made, ast.Call) and (
        last(dotted(made.func)) in _TENSORS or (isinstance(made.func, ast.Attribute) and made.func.attr in _MOVES)
    )
    return made if tensor or isinstance(made, ast.Name) else None


def _line(module: SourceModule, bound: Binding) -> int:
    return module.statement_of(bound.node).lineno


def _leads_to(module: SourceModule, function: FunctionNode, node: ast.expr, wanted: str, call: ast.Call) -> bool:
    """True where the name is among what a value is made of in the function, above the call."""
    todo, seen = [n.id for n in (node, *walk(node)) if isinstance(n, ast.Name)], set[str]()
    while todo:
        name = todo.pop()
        if name == wanted:
            return True
        if name in seen or name == "self":
            continue
        seen.add(name)
        for bound in bindings_in(module, function, name):
            if bound.value is not None and _line(module, bound) < call.lineno:
                todo += [n.id for n in (bound.value, *walk(bound.value)) if isinstance(n, ast.Name)]
    return False


def _is_shared(module: SourceModule, function: FunctionNode, name: str, test: ast.If) -> bool:
    """True where a call above that speaks of the other ranks was handed the name, or gave it."""
    for node in walk(function):
        if not isinstance(node, ast.Call) or node.lineno >= test.lineno:
            continue
        called = last(dotted(node.func)) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if any(word in called for word in ("reduce", "gather", "broadcast", "sync")):
            given = {n.id for n in walk(module.statement_of(node)) if isinstance(n, ast.Name)}
            if name in given:
                return True
    return False


def _operands(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _meets(project: Project, module: SourceModule, block: list[ast.stmt]) -> bool:
    """True where the other branch makes a collective of its own, or calls what may."""
    calls = [n for n in walk_block(block) if isinstance(n, ast.Call)]
    return any(collective_at(module, c, project) or sums_its_argument(project, module, c) is not None for c in calls)
