"""The process group destroyed where there is none: twice, by the process that only starts the others, by a helper."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.called_with_group import fails_without_group, words_of
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.guards.group_may_be_missing import ASKED, holds_for_spawned, is_guarded
from codemods.analysis.names import last, qualified
from codemods.analysis.output.run_before import run_before
from codemods.analysis.positions import above
from codemods.analysis.ranks.uses import CallSite, calls_of
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk_block, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_MOST_CALLERS = 6
_SPAWNS = frozenset({"spawn", "start_processes"})


@record
class LostGroup:
    """call: what destroys the group, here or by the function that holds `destroys`. why, path, line: what shows there is none."""

    call: ast.Call
    destroys: ast.Call
    why: str
    path: str
    line: int


def lost_groups(project: Project, module: SourceModule) -> Iterator[LostGroup]:
    """Each unguarded destruction of the file once, with the first place from which it runs without a group."""
    for call in module.calls_named("destroy_process_group"):
        if _destroys_all(module, call) and not is_guarded(project, module, call, set()):
            found = next((f for site in _places(project, module, call) if (f := _lost(project, module, site, call))), None)
            if found is not None:
                yield found


def _places(project: Project, module: SourceModule, call: ast.Call) -> list[CallSite]:
    """Where it runs: at its own place, and at the calls of the function that holds it."""
    function = module.function_of(call)
    callers = (calls_of(project, module, function) or ()) if function is not None else ()
    outside = [s for s in callers[:_MOST_CALLERS] if not is_test_file(s.module.path)]
    return [CallSite(module, call), *(s for s in outside if not is_guarded(project, s.module, s.call, set()))]


def _lost(project: Project, module: SourceModule, site: CallSite, destroys: ast.Call) -> LostGroup | None:
    own = site.call is destroys
    here = site.module is module
    for why, line in (_second(project, site), _in_parent(project, site), _NOTHING if own else _conditional(project, site)):
        if why:
            told = why if here else f"{why}, and {site.module.text_of(site.call.func)}() is called in line {site.call.lineno}"
            return LostGroup(site.call if here else destroys, destroys, told, site.module.path, line)
    return None


_Why = tuple[str, int]
_NOTHING: _Why = ("", 0)


# Twice


def _second(project: Project, site: CallSite) -> _Why:
    """A statement above, in the same block, has destroyed the group, and none is started in between."""
    statement = site.module.statement_of(site.call)
    if not isinstance(statement, ast.Expr):
        return _NOTHING
    for earlier in reversed(above(site.module, statement)):
        calls = [n for n in (earlier, *walk_scope(earlier)) if isinstance(n, ast.Call)]
        if any(has_start(project, site.module, c) for c in calls):
            return _NOTHING
        if (first := _destroyed_by(project, site.module, earlier)) is not None:
            return f"line {first.lineno} has destroyed the process group already", first.lineno
    return _NOTHING


def _destroyed_by(
    project: Project, module: SourceModule, statement: ast.stmt, *, settings: bool = False
) -> ast.Call | None:
    """The call in a statement that leaves no group, whatever happens: also in a `try`, and under a test for a group.

    settings: also under `if args.distributed:`, as long as a run that fails it has no group to begin with.
    """
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value if _leaves_none(project, module, statement.value) else None
    inner: list[ast.stmt] = []
    if isinstance(statement, (ast.Try, ast.With)):
        inner = statement.body
    elif isinstance(statement, ast.If):
        asks = bool(words_of(statement.test) & ASKED) or (settings and fails_without_group(module, statement.test))
        inner = statement.body if asks else []
    return next((c for s in inner if (c := _destroyed_by(project, module, s, settings=settings)) is not None), None)


def _leaves_none(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if _destroys_all(module, call):
        return True
    site = called_function(project, module, call)
    body = site.node.body if site is not None else []
    return site is not None and any(_calls_destroy(site.module, s) for s in body)


def _calls_destroy(module: SourceModule, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call):
        return _destroys_all(module, call)
    asked = isinstance(statement, ast.If) and bool(words_of(statement.test) & ASKED)
    return isinstance(statement, ast.If) and asked and any(_calls_destroy(module, s) for s in statement.body)


def _destroys_all(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    of_torch = name.startswith("torch.distributed.") and last(name) == "destroy_process_group"
    return of_torch and not call.args and not call.keywords


def group_is_over(project: Project, frames: Iterable[tuple[SourceModule, ast.AST]]) -> str:
    """Where a statement above one of these places has destroyed the group, and none is started in between; "" where none has.

    From there on `is_initialized()` is False on every rank, and a test that asks it first is true on all of them.
    """
    for module, node in frames:
        calls: list[ast.stmt] = list(run_before(module, module.statement_of(node)))
        for earlier in sorted(calls, key=lambda s: s.lineno, reverse=True):
            inside = [n for n in (earlier, *walk_scope(earlier)) if isinstance(n, ast.Call)]
            if any(has_start(project, module, c) for c in inside):
                return ""
            if (first := _destroyed_by(project, module, earlier, settings=True)) is not None:
                return f"{module.path}:{first.lineno}"
    return ""


# By the process that starts the others


def _in_parent(project: Project, site: CallSite) -> _Why:
    function = site.module.function_of(site.call)
    if function is None:
        return _NOTHING
    calls = [n for n in walk_scope(function) if isinstance(n, ast.Call)]
    spawned = next((c for c in calls if _spawns(site.module, c) and stands_above(c, site.call)), None)
    if spawned is None or any(has_start(project, site.module, c) for c in calls):
        return _NOTHING
    return "the ranks are its children: this process never joined a group", spawned.lineno


def _spawns(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    return name.startswith("torch.multiprocessing") and last(name) in _SPAWNS


# Started under a condition


def _conditional(project: Project, site: CallSite) -> _Why:
    """The function that calls the helper starts the group under a test, and destroys it in any case."""
    module, function = site.module, site.module.function_of(site.call)
    if function is None:
        return _NOTHING
    tests: list[ast.If] = []
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call) and has_start(project, module, n)):
        over = [u for u in module.ancestors(call) if isinstance(u, ast.If) and module.function_of(u) is function]
        over = [u for u in over if not holds_for_spawned(project, module, u.test)]
        if not over or any(words_of(t.test) & (ASKED | {"__name__"}) for t in over) or call.lineno > site.call.lineno:
            return _NOTHING
        if not any(n is call for n in walk_block(over[-1].body)):
            return _NOTHING
        tests.append(over[-1])
    if len({id(t) for t in tests}) != 1 or is_guarded(project, module, site.call, words_of(tests[0].test)):
        return _NOTHING
    return f"the group is started under `{module.text_of(tests[0].test)}` only", tests[0].lineno


def has_start(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the call starts a group, itself or in the function that it runs."""
    if starts_group(module, call):
        return True
    site = called_function(project, module, call)
    return site is not None and site.module.holds(b"init_process_group") and _holds_start(site.module, site.node)


def _holds_start(module: SourceModule, function: FunctionNode) -> bool:
    return any(isinstance(n, ast.Call) and starts_group(module, n) for n in walk_scope(function))
