"""Functions that are handed to a helper of the project which calls them on some ranks only: `on_main(save)`, lambdas too."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handed import held_as
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, both, ranks_at
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DEPTH = 3  # helpers that hand it on to each other
_ASKS = frozenset({"callable", "getattr", "hasattr", "isinstance", "repr", "str", "id"})  # they call none
_TOLD = frozenset({"__name__", "__qualname__", "__module__", "__doc__", "__class__"})


def ranks_running(project: Project, module: SourceModule, node: ast.expr, depth: int = 0) -> Ranks:
    """The ranks on which the helper that is handed `node` calls it; ALL where that is not shown, or keeps nobody out.

    Those that call the helper are not asked for.
    """
    if (found := _handed_to(module, node)) is None or depth >= _DEPTH:
        return Ranks.ALL
    call, value = found
    site = called_function(project, module, call)
    if site is None or site.node.name == "__init__":  # an object keeps it, and calls it later
        return Ranks.ALL
    name = held_as(site, call, value)
    if not name or depth:  # only a whole answer is kept: one within another has fewer steps left
        return _running(project, site, name, depth) if name else Ranks.ALL
    key = ("ranks running", site.module.path, site.node.lineno, name)
    return project.keep(key, lambda: _running(project, site, name, 0))


def ranks_of_lambda(project: Project, module: SourceModule, node: ast.AST) -> Ranks:
    """The ranks on which a helper calls the lambda round `node`: `on_main(lambda: save(model))`."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.Lambda) and up.body is below:
            return ranks_running(project, module, up)
        if isinstance(up, ast.stmt):
            break
        below = up
    return Ranks.ALL


def _handed_to(module: SourceModule, node: ast.expr) -> tuple[ast.Call, ast.expr] | None:
    """The call that is handed `node`, also within a `partial`, and the argument that it stands in."""
    up = module.parent(node)
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    if not isinstance(call, ast.Call) or call.func is node:
        return None
    if last(dotted(call.func)) == "partial":
        return _handed_to(module, call) if call.args[:1] == [node] else None
    return call, node


def _running(project: Project, site: FunctionSite, name: str, depth: int) -> Ranks:
    answers: set[Ranks] = set()
    for read in site.module.reads_of(name):
        if not isinstance(read, ast.Name) or not _is_within(site, read):
            continue
        up = site.module.parent(read)
        if isinstance(up, ast.Call) and up.func is read:
            answers.add(ranks_at(site.module, up, project=project))
        elif not _only_looks(site.module, read):
            handed = ranks_running(project, site.module, read, depth + 1)
            answers.add(both(ranks_at(site.module, read, project=project), handed) if handed.some else Ranks.ALL)
    return answers.pop() if len(answers) == 1 else Ranks.ALL


def _is_within(site: FunctionSite, read: ast.Name) -> bool:
    return any(up is site.node for up in site.module.ancestors(read))


def _only_looks(module: SourceModule, read: ast.Name) -> bool:
    """True for `func.__name__`, `f"{func}"`, `callable(func)`, and for a test of what it is."""
    up = module.parent(read)
    if isinstance(up, ast.Attribute):
        return up.attr in _TOLD
    if isinstance(up, ast.Call):
        return dotted(up.func) in _ASKS
    below: ast.AST = read
    while isinstance(up, (ast.BoolOp, ast.UnaryOp, ast.Compare)):
        below, up = up, module.parent(up)
    return isinstance(up, ast.FormattedValue) or getattr(up, "test", None) is below
