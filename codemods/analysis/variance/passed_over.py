"""Numbers for which all ranks gather their parts, and that are made of this rank's own part all the same."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.values import Value
from codemods.files.source import SourceModule, ends_above, stands_above, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# function -> the places of the list, and of what is put into it.
_GATHERS = {"all_gather_object": (0, 1), "all_gather": (0, 1), "gather_object": (1, 0), "gather": (1, 0)}
_FILLS = frozenset({"update", "extend", "append"})


@record
class PassedOver:
    """statement: reads `own`, of this rank, below a call that gathers it into `parts`."""

    statement: ast.stmt
    own: str
    parts: str
    gathered: ast.Call


def passed_over(project: Project, module: SourceModule, value: Value) -> PassedOver | None:
    """The step of the way at which a rank goes on with its own part, though it has those of all."""
    for link in value.chain:
        for statement in _at(module, link.line) if link.path == module.path else ():
            if (found := _own_part(module, statement)) is not None:
                return found
            sites = (called_function(project, module, n) for n in walk(statement) if isinstance(n, ast.Call))
            for site in filter(None, sites):
                returns = (n for n in walk(site.node) if isinstance(n, ast.Return)) if site.module is module else ()
                if (found := next(filter(None, (_own_part(module, r) for r in returns)), None)) is not None:
                    return found
    return None


def is_completed(module: SourceModule, value: Value) -> bool:
    """True where a step of the way reads what the parts of the others were put into: `for p in parts: found.update(p)`."""
    for link in value.chain:
        for statement in _at(module, link.line) if link.path == module.path else ():
            function = module.function_of(statement)
            read = {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            loops = (n for n in walk(function) if isinstance(n, ast.For)) if function is not None else ()
            if any(stands_above(n, statement) and _is_over_parts(module, n) and _put_into(n) & read for n in loops):
                return True
    return False


def _is_over_parts(module: SourceModule, loop: ast.For) -> bool:
    """True for a loop over what a gather above it has filled."""
    name = dotted(loop.iter)
    calls = (c for c in module.calls_named(*_GATHERS) if module.function_of(c) is module.function_of(loop)) if name else ()
    return any(any(isinstance(n, ast.Name) and n.id == name for n in walk(c)) and stands_above(c, loop) for c in calls)


def _put_into(loop: ast.For) -> set[str]:
    taken = {loop.target.id} if isinstance(loop.target, ast.Name) else set()
    return {_filled(c) for s in loop.body if (c := _fills(s, taken)) is not None} - {""}


def _at(module: SourceModule, line: int) -> Iterator[ast.Return | ast.Assign]:
    yield from (s for s in module.nodes(ast.Return) if s.lineno == line)
    yield from (s for s in module.nodes(ast.Assign) if s.lineno == line)


def _own_part(module: SourceModule, statement: ast.stmt) -> PassedOver | None:
    function = module.function_of(statement)
    if function is None:
        return None
    last_word = not isinstance(statement, ast.Assign) or _is_last(statement, function)
    read = {n.id for n in walk(statement) if isinstance(n, ast.Name)}
    for call in module.calls_named(*_GATHERS):
        if module.function_of(call) is not function or not stands_above(call, statement):
            continue
        into, given = _GATHERS[last(dotted(call.func))]
        if len(call.args) < 2 or not qualified(module, call.func).startswith("torch.distributed."):
            continue
        room = call.args[into]
        room = room.body if isinstance(room, ast.IfExp) else room  # `parts if rank == 0 else None`
        own, parts = dotted(call.args[given]), dotted(room)
        if not (last_word or _is_never_used(function, parts)):
            continue
        if own in read and parts and parts not in read and not _is_given_anew(module, own, call, statement):
            return PassedOver(statement, own, parts, call)
    return None


def _is_last(statement: ast.Assign, function: ast.AST) -> bool:
    """True for what the function hands back by a name: below it nothing but the `return` of that name."""
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    below = [n for n in walk(function) if isinstance(n, ast.Return) and n.lineno > statement.lineno]
    return len(below) == 1 and isinstance(below[0].value, ast.Name) and below[0].value.id in names


def _is_never_used(function: ast.AST, parts: str) -> bool:
    """True where what is gathered is put together in names that nothing reads: `for p in parts: whole.update(p)`."""
    loops = [n for n in walk(function) if isinstance(n, ast.For) and dotted(n.iter) == parts]
    taken = {n.target.id for n in loops if isinstance(n.target, ast.Name)}
    filled = {_filled(c) for n in loops for s in n.body if (c := _fills(s, taken)) is not None} - {""}
    if not loops or any(_fills(s, taken) is None for n in loops for s in n.body):
        return False
    names = [n for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    reads = Counter(n.id for n in names)
    spent = Counter(_filled(c) for n in loops for s in n.body if (c := _fills(s, taken)) is not None)
    calls = (n for n in walk(function) if isinstance(n, ast.Call) and last(dotted(n.func)) in _GATHERS)
    gathered = sum(1 for c in calls if any(isinstance(n, ast.Name) and n.id == parts for n in walk(c)))
    return reads[parts] == len(loops) + gathered and all(reads[name] == spent[name] for name in filled)


def _fills(statement: ast.stmt, taken: set[str]) -> ast.Call | None:
    """`whole.update(part)`, where the part is one of `taken`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _FILLS:
        return None
    return call if len(call.args) == 1 and dotted(call.args[0]) in taken and isinstance(call.func.value, ast.Name) else None


def _filled(call: ast.Call) -> str:
    return dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_given_anew(module: SourceModule, name: str, call: ast.Call, statement: ast.stmt) -> bool:
    """True where the name holds something else by then: `found = merge(parts)`."""
    function = module.function_of(call)
    for node in walk(function) if function is not None else ():
        if isinstance(node, ast.Name) and ends_above(call, node) and stands_above(node, statement):
            if node.id == name and (isinstance(node.ctx, ast.Store) or _is_changed(module, node)):
                return True
    return False


def _is_changed(module: SourceModule, node: ast.Name) -> bool:
    """True for `found.update(part)` and `found[key] = value`: the parts of the others are put into it."""
    up = module.parent(node)
    if isinstance(up, ast.Subscript):
        return isinstance(up.ctx, ast.Store)
    return isinstance(up, ast.Attribute) and isinstance(module.parent(up), ast.Call)
