"""What of the same way needs a process group as well, above a call that is to be put under a test for one."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.guards.group_may_be_missing import asks_for_rank, is_guarded, needs_group
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_DEPTH = 2
_WORDS = (b"barrier(", b"reduce(", b"gather", b"broadcast", b"get_rank(", b"get_world_size(")


def earlier_wait(project: Project, module: SourceModule, call: ast.expr) -> tuple[str, int] | None:
    """A collective, or a question for the rank, in a function that is called above: without a group the program ends there."""
    scope: ast.AST = module.function_of(call) or module.tree
    for other in (n for n in walk_scope(scope) if isinstance(n, ast.Call) and n.lineno < call.lineno):
        if not is_guarded(project, module, other, set()):
            site = called_function(project, module, other)
            if site is not None and (found := _waits_in(project, site, 0)) is not None:
                return found
    return None


def _waits_in(project: Project, site: FunctionSite, depth: int) -> tuple[str, int] | None:
    """The first wait of a function, or of those that it calls, that no test for several processes is round."""
    module = site.module
    if not any(module.holds(word) for word in _WORDS):
        return None
    for node in walk_scope(site.node):
        if not isinstance(node, ast.Call) or is_guarded(project, module, node, set()):
            continue
        if needs_group(module, node, project) or asks_for_rank(module, node):
            return module.path, node.lineno
        inner = called_function(project, module, node) if depth < _DEPTH else None
        if inner is not None and inner.node is not site.node and (found := _waits_in(project, inner, depth + 1)) is not None:
            return found
    return None
