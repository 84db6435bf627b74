"""What else needs a process group round a call that is to be put under a test for one, or above the calls of its function."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import group_name
from codemods.analysis.guards.group_may_be_missing import asks_for_rank, is_guarded, needs_group, unguarded
from codemods.analysis.names import last, qualified
from codemods.analysis.ranks.uses import calls_of, uses_of
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

# Without a group there is nothing to wait for: a test round one of these changes nothing else.
ONLY_WAIT = frozenset({"barrier", "destroy_process_group", "monitored_barrier"})
_DEPTH = 2
_MOST_CALLERS = 6
_WORDS = (b"barrier(", b"reduce(", b"gather", b"broadcast", b"get_rank(", b"get_world_size(")


def earlier_wait(project: Project, module: SourceModule, call: ast.expr) -> tuple[str, int] | None:
    """A collective, or a question for the rank, in a function that is called above: without a group the program ends there."""
    return _called_wait(project, module, call, below=False)


def later_wait(project: Project, module: SourceModule, call: ast.expr) -> tuple[str, int] | None:
    """The same in a function that is called below: a test round this call alone only moves the end of the program there."""
    return _called_wait(project, module, call, below=True)


def _is_plain_wait(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a statement that waits and does nothing else, where a run without a group may come: it gets a test of its own."""
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Expr) or statement.value is not call or not module.is_whole(statement):
        return False
    if last(qualified(module, call.func)) not in ONLY_WAIT or not group_name(module, statement):
        return False
    return any(found.call is call and found.sure for found in unguarded(project, module))


def _is_mended(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a wait below that is put under a test in the same run: only what stays keeps the program from its end."""
    key = ("put under a test", module.path, call.lineno, call.col_offset)
    return project.keep(key, lambda: _is_put_under_a_test(project, module, call))


def _is_put_under_a_test(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if not _is_plain_wait(project, module, call) or callers_wait(project, module, call) is not None:
        return False
    return all(_called_wait(project, module, call, below=below, all_of_them=True) is None for below in (False, True))


def _called_wait(
    project: Project, module: SourceModule, call: ast.expr, *, below: bool, all_of_them: bool = False
) -> tuple[str, int] | None:
    scope: ast.AST = module.function_of(call) or module.tree
    calls = (n for n in walk_scope(scope) if isinstance(n, ast.Call))
    for other in (n for n in calls if (n.lineno > call.lineno if below else n.lineno < call.lineno)):
        if not is_guarded(project, module, other, set()):
            site = called_function(project, module, other) or _only_method(project, other)
            if site is not None and (found := _waits_in(project, site, 0, all_of_them)) is not None:
                return found
    return None


def callers_wait(project: Project, module: SourceModule, call: ast.expr) -> tuple[str, int] | None:
    """The same above each call of the function that this stands in: without a group it is never reached."""
    function = module.function_of(call)
    if function is None or uses_of(project, module, function).handed_on:
        return None
    sites = [s for s in calls_of(project, module, function) or () if not is_test_file(s.module.path)][:_MOST_CALLERS]
    found = [_called_wait(project, s.module, s.call, below=False, all_of_them=True) for s in sites]
    return found[0] if found and all(w is not None for w in found) else None


def _only_method(project: Project, call: ast.Call) -> FunctionSite | None:
    """`log.to_file(path)`: the one method of this name in the project, whoever the object is."""
    if not isinstance(call.func, ast.Attribute):
        return None
    name = call.func.attr
    homes = project.files_containing(f"def {name}(".encode())
    home = project.module(homes[0]) if len(homes) == 1 else None
    defined = [f for f in home.nodes(ast.FunctionDef) if f.name == name] if home is not None else []
    if home is None or len(defined) != 1 or not isinstance(home.parent(defined[0]), ast.ClassDef):
        return None
    return FunctionSite(home, defined[0])


def _waits_in(project: Project, site: FunctionSite, depth: int, all_of_them: bool) -> tuple[str, int] | None:
    """The first wait of a function, or of those that it calls, that no test for several processes is round.

    all_of_them: also those that are put under one in the same run.
    """
    module = site.module
    if not any(module.holds(word) for word in _WORDS):
        return None
    for node in walk_scope(site.node):
        if not isinstance(node, ast.Call) or is_guarded(project, module, node, set()):
            continue
        if needs_group(module, node, project) or asks_for_rank(module, node):
            if not all_of_them and _is_mended(project, module, node):
                continue
            return module.path, node.lineno
        inner = called_function(project, module, node) if depth < _DEPTH else None
        if inner is None or inner.node is site.node:
            continue
        if (found := _waits_in(project, inner, depth + 1, all_of_them)) is not None:
            return found
    return None
