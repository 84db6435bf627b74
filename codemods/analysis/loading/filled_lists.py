"""Loaders and samplers in a list that one loop fills, a place a round: what stands at one of the places?

`for data, sampler in zip(sets, samplers): loaders.append(DataLoader(data, sampler=sampler))` gives back a list, and a caller
takes it apart: what its second loader is made of stands at the second place of what the caller hands over.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in, bindings_of
from codemods.analysis.literals import is_true
from codemods.analysis.loading.origins import Origin, Passed, origins, origins_of_part
from codemods.analysis.loading.told_by_calls import calls_passed
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_LEAVES = (ast.Continue, ast.Break, ast.Return)
_DEPTH = 3


@record
class Filled:
    """element: what the loop appends in each round; place: the round that is asked for."""

    module: SourceModule
    element: ast.expr
    loop: ast.For
    place: int

    def source_of(self, node: ast.expr | None) -> ast.expr | None:
        """What the loop goes through for one of its variables, where no round gives the variable anything else."""
        if not isinstance(node, ast.Name) or any(b.node is not self.loop for b in bindings_of(self.module, node)):
            return None
        target, over = self.loop.target, self.loop.iter
        if isinstance(target, ast.Name):
            return over if target.id == node.id and not isinstance(over, ast.Call) else None
        zipped = over.args if isinstance(over, ast.Call) and dotted(over.func) == "zip" else []
        names = [dotted(t) for t in target.elts] if isinstance(target, ast.Tuple) else []
        if len(zipped) != len(names) or names.count(node.id) != 1 or any(isinstance(z, ast.Starred) for z in zipped):
            return None
        return zipped[names.index(node.id)]


def filled_at(origin: Origin) -> Filled | None:
    """What a loop puts at the place of a list that starts empty, where each round puts one thing in, and nothing else does."""
    module, node = origin.module, origin.node
    place = origin.path[0] if len(origin.path) == 1 else None
    made = module.parent(node)
    if not isinstance(node, ast.List) or node.elts or not isinstance(place, int) or place < 0:
        return None
    targets = made.targets if isinstance(made, ast.Assign) else [made.target] if isinstance(made, ast.AnnAssign) else []
    if (function := module.function_of(node)) is None or len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return None
    name = targets[0].id
    if len(bindings_in(module, function, name)) != 1:
        return None
    uses = [n for n in walk_scope(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    appends = [call for n in uses if (call := _append_to(module, n)) is not None]
    if len(appends) != 1 or any(_append_to(module, n) is None and not _is_only_read(module, n) for n in uses):
        return None
    loop = module.parent(module.statement_of(appends[0]))
    appended = module.statement_of(appends[0])
    if not isinstance(loop, ast.For) or appended not in loop.body or _outside(module, loop) is not function:
        return None
    if any(isinstance(n, _LEAVES) for n in walk_scope(loop)):
        return None
    return Filled(module, appends[0].args[0], loop, place)


def _outside(module: SourceModule, loop: ast.For) -> ast.AST | None:
    """What a loop stands in, past `with`, `if True:` and a `try` that is left by no handler."""
    up = module.parent(loop)
    while up is not None and _is_passed_through(up):
        up = module.parent(up)
    return up


def _is_passed_through(block: ast.AST) -> bool:
    if isinstance(block, ast.Try):
        return not block.handlers
    return isinstance(block, ast.With) or (isinstance(block, ast.If) and is_true(block.test))


def _append_to(module: SourceModule, name: ast.Name) -> ast.Call | None:
    """`rows.append(x)` as a statement."""
    held = module.parent(name)
    call = module.parent(held) if isinstance(held, ast.Attribute) and held.attr == "append" else None
    fits = isinstance(call, ast.Call) and call.func is held and len(call.args) == 1 and isinstance(module.parent(call), ast.Expr)
    return call if isinstance(call, ast.Call) and fits else None


def _is_only_read(module: SourceModule, name: ast.Name) -> bool:
    """True for `return rows` and `len(rows)`."""
    up = module.parent(name)
    return isinstance(up, ast.Return) or (isinstance(up, ast.Call) and dotted(up.func) == "len" and name in up.args)


def made_at(project: Project, filled: Filled, node: ast.expr, passed: Passed, depth: int = 0) -> tuple[Origin, ...]:
    """What makes `node` in the round of the place; the list's own parameters are asked of the calls on the way alone."""
    source = filled.source_of(node)
    if source is None:
        return origins(project, filled.module, node)
    found: list[Origin] = []
    for module, value in calls_passed(project, filled.module, source, passed, (filled.place,)) or [(filled.module, source)]:
        parts = origins_of_part(project, module, value, filled.place) if value is not None else ()
        for origin in parts:
            inner = filled_at(origin) if depth < _DEPTH else None
            found += [origin] if inner is None else made_at(project, inner, inner.element, frozenset(), depth + 1)
    return tuple(found)


def is_off_at(project: Project, filled: Filled, node: ast.expr, passed: Passed) -> bool:
    """True for an option that is `False` in the round of the place, also by a test of another one: `if is_train: drop = True`."""
    if isinstance(node, ast.Constant):
        return node.value is False
    if filled.source_of(node) is not None or not isinstance(node, ast.Name):
        return _said_at(project, filled, node, passed) is False
    bound = bindings_of(filled.module, node)
    comes = [_reached(project, filled, b, passed) for b in bound]
    reached = [b.value for b, here in zip(bound, comes, strict=True) if here is not False]
    return bool(reached) and None not in comes and all(isinstance(v, ast.Constant) and v.value is False for v in reached)


def _reached(project: Project, filled: Filled, bound: Binding, passed: Passed) -> bool | None:
    """Does the round of the place come to a binding in the loop? None where that is not told."""
    branch = filled.module.parent(filled.module.statement_of(bound.node))
    if branch is filled.loop and bound.value is not None:
        return True
    if not isinstance(branch, ast.If) or filled.module.parent(branch) is not filled.loop or bound.value is None or bound.part:
        return None
    test, turned = branch.test, False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, turned = test.operand, not turned
    said = _said_at(project, filled, test, passed)
    return None if said is None else (said is not turned) == (filled.module.statement_of(bound.node) in branch.body)


def _said_at(project: Project, filled: Filled, node: ast.expr, passed: Passed) -> bool | None:
    """The one truth value that a variable of the loop has in the round of the place."""
    made = made_at(project, filled, node, passed) if filled.source_of(node) is not None else ()
    said = {o.node.value if o.known and isinstance(o.node, ast.Constant) and not o.path else None for o in made}
    value = said.pop() if len(said) == 1 else None
    return value if isinstance(value, bool) else None
