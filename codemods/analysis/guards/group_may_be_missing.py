"""Collectives that a run with one process comes to as well, where there may be no process group."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.called_below_start import is_called_below_a_start
from codemods.analysis.guards.called_with_group import SPEAKING, called_with_group, words_of
from codemods.analysis.guards.conditional_starts import needs_a_group, start_above
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.guards.group_above import has_group_above
from codemods.analysis.literals import is_none
from codemods.analysis.names import last, qualified
from codemods.analysis.ranks import sharded_state
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.rank_guards import guards_over
from codemods.analysis.ranks.rank_tests import means_process_group
from codemods.analysis.ranks.spawned import spawned_parameter
from codemods.analysis.ranks.unused import is_packaged
from codemods.analysis.ranks.uses import calls_of, uses_of
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_ORDER = {ast.NotEq: operator.ne, ast.Gt: operator.gt, ast.GtE: operator.ge}
_RANKS = 9  # as many as are tried: those of one machine
_WORKS_ALONE = frozenset({"get_dist_info"})  # mmcv's and mmengine's: (0, 1) without a group
_STARTS = frozenset({"init_process_group", "new_group", "DistributedDataParallel"})
_WAITS = frozenset({"barrier", "monitored_barrier", "destroy_process_group"})
ASKED = frozenset({"is_initialized", "is_available"})


@record
class Unguarded:
    """call: the collective, or the destruction of the group. why, line: what shows that there may be no group, in `path`."""

    call: ast.Call
    why: str
    line: int
    sure: bool
    path: str = ""


def unguarded(project: Project, module: SourceModule) -> Iterator[Unguarded]:
    """The calls of a file that raise where there is no process group, and that a run without one may come to."""
    return (found for found in _unguarded(project, module) if not has_group_above(project, module, found.call))


def _unguarded(project: Project, module: SourceModule) -> Iterator[Unguarded]:
    scopes: dict[int, tuple[FunctionNode | None, list[ast.Call]]] = {}
    for call in module.nodes(ast.Call):
        if needs_group(module, call, project) or asks_for_rank(module, call):
            function = module.function_of(call)
            scopes.setdefault(id(function), (function, []))[1].append(call)
    for function, calls in scopes.values():
        start = _conditional_start(project, module, function)
        alone = _asked_alone(project, module, function) if start is None else None
        if alone is not None and function is not None and (
            called_with_group(project, module, function)
            or is_called_below_a_start(project, module, function)
            or _is_called_by_nobody(project, module, function)
        ):
            continue
        ask = next((c for c in calls if asks_for_rank(module, c)), None)
        if ask is not None:  # the first one of the function ends the program: the others are not reached
            calls = [c for c in calls if not asks_for_rank(module, c)]
            if found := _asked_without_group(project, module, function, ask, start):
                yield found
        for call in calls:
            if start is None and alone is None and (found := _below_a_start(project, module, call)) is not None:
                yield found
            elif start is not None and call.lineno > start.lineno and not is_guarded(project, module, call, words_of(start.test)):
                yield Unguarded(call, f"the group is started under `{module.text_of(start.test)}` only", start.lineno, True)
            elif alone is not None and alone.lineno < call.lineno:
                if is_guarded(project, module, call, _sizes(module, alone)):
                    continue
                body = function.body if function is not None else []
                if ask is not None and ask.lineno < call.lineno and module.statement_of(ask) in body:
                    continue  # without a group the function ends there already: it is not made to run so
                if function is not None and needs_a_group(project, module, function, call):
                    continue  # so it does where it wraps its model
                yield Unguarded(call, f"{module.text_of(alone.func)}() is written to work without a group", alone.lineno, False)


def _is_called_by_nobody(project: Project, module: SourceModule, function: FunctionNode, up: int = 2) -> bool:
    """True for a function that no script of a repository of scripts comes to: of a copied library other parts are used."""
    if module.class_of(function) is not None or function.name == "main" or is_packaged(project, module.path):
        return False
    if not project.files_containing(b"__main__"):
        return False
    sites = calls_of(project, module, function)
    if sites is None or uses_of(project, module, function).handed_on:
        return False
    outer = [(s.module, s.module.function_of(s.call)) for s in sites if not is_test_file(s.module.path)]
    return all(f is not None and up > 0 and _is_called_by_nobody(project, m, f, up - 1) for m, f in outer)


def asks_for_rank(module: SourceModule, call: ast.Call) -> bool:
    """True for torch's own `dist.get_rank()`, which raises without a group, in no expression that asks for one first."""
    if qualified(module, call.func) not in ("torch.distributed.get_rank", "torch.distributed.get_world_size"):
        return False
    if call.args or call.keywords:
        return False
    above = (up for up in module.ancestors(call) if isinstance(up, (ast.BoolOp, ast.IfExp)))
    return not any(_speaks_of_group(module, part, set()) for up in above for part in _before(up, call))


def _before(up: ast.BoolOp | ast.IfExp, call: ast.expr) -> list[ast.expr]:
    if isinstance(up, ast.IfExp):
        return [up.test]
    at = next(i for i, v in enumerate(up.values) if any(n is call for n in walk(v)))
    return up.values[:at]


def _asked_without_group(
    project: Project, module: SourceModule, function: FunctionNode | None, call: ast.Call, start: ast.If | None
) -> Unguarded | None:
    """The rank is asked for behind a start under a condition, in the same function or in one that it calls."""
    if start is None and (found := _below_a_helper(project, module, function, call)) is not None:
        return found
    if start is not None and start.lineno < call.lineno:
        above = _starting(project, module, function, call)
    elif function is not None and module.class_of(call) is None:
        sites = (s for s in calls_of(project, module, function) or () if not is_test_file(s.module.path))
        places = (_starting(project, s.module, s.module.function_of(s.call), s.call) for s in sites)
        above = next(filter(None, places), None)
    else:
        return None
    if above is None or is_guarded(project, module, call, words_of(above[1].test)):
        return None
    why = f"the group is started under `{above[0].text_of(above[1].test)}` only"
    return Unguarded(call, why, above[1].lineno, False, above[0].path)


def _below_a_helper(project: Project, module: SourceModule, function: FunctionNode | None, call: ast.Call) -> Unguarded | None:
    """Below a helper that may come back without a group, in a function that asks elsewhere whether there is one."""
    asks = (n for n in walk_scope(function or module.tree) if isinstance(n, ast.Call) and n is not call)
    if not any(qualified(module, n.func) == "torch.distributed.is_initialized" for n in asks):
        return None
    below = start_above(project, module, call)
    if below is None or below.module is not module or module.function_of(below.start) is not function:
        return None
    if is_guarded(project, module, call, set()):
        return None
    why = f"{module.text_of(below.start.func)}() comes back without one from {below.found.ends}:{below.found.at}"
    return Unguarded(call, why, below.found.at, False, below.found.ends)


def _starting(
    project: Project, module: SourceModule, function: FunctionNode | None, call: ast.Call
) -> tuple[SourceModule, ast.If] | None:
    """The condition under which alone the group is started above a call that every way comes to."""
    start = _conditional_start(project, module, function)
    if start is None or start.lineno >= call.lineno or needs_a_group(project, module, function or module.tree, call):
        return None
    if any(isinstance(n, (ast.Return, ast.Raise)) for s in start.orelse for n in walk(s)):
        return None  # without a group it goes no further
    return None if is_guarded(project, module, call, words_of(start.test)) else (module, start)


def _below_a_start(project: Project, module: SourceModule, call: ast.Call) -> Unguarded | None:
    """Below a call of the project's own function that starts the group, or comes back without one."""
    if last(qualified(module, call.func)) not in _WAITS or is_guarded(project, module, call, set()):
        return None
    below = start_above(project, module, call)
    if below is None:
        return None
    found = below.found
    why = f"{below.module.text_of(below.start.func)}() comes back without one from {found.ends}:{found.at}"
    return Unguarded(call, why, found.at, True, found.ends)


def needs_group(module: SourceModule, call: ast.Call, project: Project) -> bool:
    """True for a collective of all ranks, or the destruction of the group."""
    name = qualified(module, call.func)
    if name.startswith("torch.distributed.") and last(name) == "destroy_process_group":
        return not call.args and not call.keywords
    found = collective_at(module, call, project)
    if found is None or found.framework != "torch" or found.grouped or found.name in _STARTS:
        return False
    # what shards, a ZeRO optimizer say, asks for the group when it is made: without one the program does not come here
    return found.name not in sharded_state.NAMES


def _conditional_start(project: Project, module: SourceModule, function: FunctionNode | None) -> ast.If | None:
    """The `if` under which alone the same function starts the group; None where it is started anyway, or elsewhere."""
    found: list[ast.If] = []
    for call in module.calls_named("init_process_group"):
        if not starts_group(module, call) or module.function_of(call) is not function:
            continue
        tests = [up for up in module.ancestors(call) if isinstance(up, ast.If) and module.function_of(up) is function]
        tests = [t for t in tests if not holds_for_spawned(project, module, t.test)]
        if not tests or any(words_of(t.test) & (ASKED | {"__name__"}) for t in tests):
            return None
        if not any(n is call for s in (*tests[-1].body, *tests[-1].orelse) for n in walk(s)):
            return None
        found.append(tests[-1])
    both = len(found) > 1 and bool(found[0].orelse) and any(starts_group(module, n) for s in found[0].orelse for n in _calls(s))
    return found[0] if len({id(f) for f in found}) == 1 and not both else None


def holds_for_spawned(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for `gpu != -1` and `rank is not None` of what `mp.spawn` alone calls: it numbers its processes from 0."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
        return False
    function = module.function_of(test)
    if function is None or not spawned_parameter(project, module, test.left) or uses_of(project, module, function).calls:
        return False
    if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)) and is_none(test.comparators[0]):
        return True
    try:
        other = ast.literal_eval(test.comparators[0])
    except ValueError:
        return False
    asked = _ORDER.get(type(test.ops[0]))
    return asked is not None and isinstance(other, int) and all(asked(rank, other) for rank in range(_RANKS))


def _calls(statement: ast.stmt) -> list[ast.Call]:
    return [n for n in walk(statement) if isinstance(n, ast.Call)]


def is_guarded(project: Project, module: SourceModule, call: ast.expr, names: set[str]) -> bool:
    """True under a test for several processes or for the rank, behind an exit without them, and where the error is caught."""
    function = module.function_of(call)
    if any(g.ranks.some for g in guards_over(module, call, project=project)):
        return True
    below: ast.AST = call
    for up in module.ancestors(call):
        if up is function:
            break
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test and _speaks_of_group(module, up.test, names):
            return True
        if isinstance(up, ast.BoolOp) and any(_speaks_of_group(module, v, names) for v in _before(up, call)):
            return True  # `several and dist.barrier()`
        if isinstance(up, ast.Try) and up.handlers and any(s is below for s in up.body):
            return True
        below = up
    scope: ast.AST = function or module.tree
    for exit_ in walk_scope(scope):
        if isinstance(exit_, ast.If) and exit_.lineno < call.lineno and _speaks_of_group(module, exit_.test, names):
            if leaves(exit_.body):
                return True
    return False


def _speaks_of_group(module: SourceModule, test: ast.expr, names: set[str]) -> bool:
    words = words_of(test)
    if words & names or words & ASKED or means_process_group(module, test):
        return True
    if any(_stands_for_group(module, n) for n in walk(test) if isinstance(n, ast.Name)):
        return True
    return any(speaking in word.lower() for word in words for speaking in SPEAKING)


def _stands_for_group(module: SourceModule, name: ast.Name) -> bool:
    """True for `on` where it is only ever given the answer to that question: `on = dist.is_initialized()`."""
    values = assigned(module, name, name.id)
    return bool(values) and all(words_of(v) & ASKED and not isinstance(v, ast.IfExp) for v in values)


def _asked_alone(project: Project, module: SourceModule, function: FunctionNode | None) -> ast.Call | None:
    """A call in the function that asks for the rank or the size, and gives an answer without a group."""
    if function is None:
        return None
    for call in walk_scope(function):
        if not isinstance(call, ast.Call):
            continue
        name = last(qualified(module, call.func))
        if name in _WORKS_ALONE:
            return call
        if name in ("get_rank", "get_world_size", "get_dist_info", "get_dist_rank"):
            site = called_function(project, module, call)
            if site is not None and any(_asks_node(n) for n in walk(site.node)):
                return call
    return None


def _sizes(module: SourceModule, ask: ast.Call) -> set[str]:
    """The names that hold the number of processes: `ws` of `rank, ws = get_dist_info()`; it is 1 where there is no group."""
    statement = module.parent(ask)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    end = last(qualified(module, ask.func))
    if end.endswith("_info") and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    elif end != "get_world_size":
        return set()
    return {target.id} if isinstance(target, ast.Name) else set()


def _asks_node(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "is_initialized"
