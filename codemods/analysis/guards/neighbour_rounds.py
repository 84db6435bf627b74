"""Does a round of a loop hand something to one other rank, or take it from one? The stages of a pipeline make unequal rounds.

A stage of a pipeline begins with as many rounds as there are stages behind it, and ends with as many: what it sends and takes
pairs its rounds up with those of its neighbours, and none waits for all.
"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.names import qualified
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

_DEPTH = 4
_BETWEEN_TWO = frozenset({"send", "recv", "isend", "irecv", "P2POp", "batch_isend_irecv", "send_object_list", "recv_object_list"})


def exchanges_with_one(project: Project, module: SourceModule, loop: ast.AST) -> bool:
    """True where the loop itself comes to `send` and `recv` of torch.distributed, in what it calls too."""
    calls = [n for n in walk(loop) if isinstance(n, ast.Call)]
    return any(_is_exchange(module, c) for c in calls) or any(_leads(project, module, c, _DEPTH) for c in calls)


def _leads(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    site = called_function(project, module, call)
    return site is not None and depth > 0 and _exchanges(project, site, depth)


def _exchanges(project: Project, site: FunctionSite, depth: int) -> bool:
    def build() -> bool:
        calls = [n for n in walk_scope(site.node) if isinstance(n, ast.Call)]
        if any(_is_exchange(site.module, c) for c in calls):
            return True
        return any(_leads(project, site.module, c, depth - 1) for c in calls)

    return project.memo(("exchanges with one", *site.key, depth), build)


def _is_exchange(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    head, _, end = name.rpartition(".")
    return head.startswith("torch.distributed") and end in _BETWEEN_TWO
