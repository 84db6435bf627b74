"""Methods that write for the hooks of a callback: which of them may be left to rank 0 with the hooks that call them."""

from __future__ import annotations

import ast

from codemods.analysis.hooks import LIGHTNING_HOOKS, OBSERVERS
from codemods.analysis.output.effects import Effects, Kind
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def is_helper(project: Project, module: SourceModule, function: FunctionNode, effects: Effects) -> bool:
    """True for a method that writes files itself and is called, for no value, from observing hooks and such helpers only."""
    own = [e for e in effects.of(Kind.FILE) if e.path == module.path and _inside(function, e.line)]
    if not own or any(ast.unparse(d) not in ("staticmethod",) for d in function.decorator_list):
        return False
    return _called_by_observers(project, module, function, set()) and not _is_kept(project, module, function, frozenset())


def _is_kept(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> bool:
    """True where every call of the method stands under a guard, or in a method of which that holds."""
    if id(function) in seen:
        return True
    sites = calls_of(project, module, function) or ()
    for site in sites:
        if ranks_at(site.module, site.call, project=project).some:
            continue
        caller = site.module.function_of(site.call)
        if caller is None or caller.name in OBSERVERS or not _is_kept(project, site.module, caller, seen | {id(function)}):
            return False
    return bool(sites)


def _inside(function: FunctionNode, line: int) -> bool:
    return function.lineno <= line <= (function.end_lineno or function.lineno)


def _called_by_observers(project: Project, module: SourceModule, function: FunctionNode, seen: set[str]) -> bool:
    sites = calls_of(project, module, function) or ()
    owner = module.parent(function)
    for site in sites:
        home = site.module.method_of(site.call)
        if site.module is not module or home is None or home[0] is not owner:
            return False
        if not isinstance(module.parent(site.call), ast.Expr) or module.function_of(site.call) is not home[1]:
            return False
        if _hands_on_a_batch(home[1], site.call):
            return False
        if home[1].name not in OBSERVERS and home[1].name not in seen:
            if home[1].name in LIGHTNING_HOOKS or home[1].name.startswith("__"):
                return False
            if not _called_by_observers(project, module, home[1], seen | {function.name}):
                return False
    return bool(sites)


def _hands_on_a_batch(caller: FunctionNode, call: ast.Call) -> bool:
    arguments = {a.arg for a in caller.args.args} & {"batch", "outputs"}
    return any(isinstance(n, ast.Name) and n.id in arguments for a in (*call.args, *call.keywords) for n in walk(a))
