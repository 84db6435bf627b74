"""Collectives with a root, where each rank names itself: `dist.broadcast(x, src=dist.get_rank())`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.counted_among import Among, index_among
from codemods.analysis.ranks.proven_rank import is_proven_global
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.sharded_state import framework_of_sharded
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Name -> the argument that names the root, its place, and the place of the group.
_ROOTS = {
    "broadcast": ("src", 1, 2),
    "broadcast_object_list": ("src", 1, 2),
    "scatter": ("src", 2, 3),
    "scatter_object_list": ("src", 2, 3),
    "reduce": ("dst", 1, 3),
    "gather": ("dst", 2, 3),
    "gather_object": ("dst", 2, 3),
    "consolidate_state_dict": ("to", 0, 9),
}
_NUMBERS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


@record
class OwnRoot:
    """A collective of all ranks, each of which gives its own number as the root."""

    call: ast.Call
    root: ast.expr
    name: str


def own_roots(project: Project, module: SourceModule) -> Iterator[OwnRoot]:
    for call in module.calls_named(*_ROOTS):
        name = last(dotted(call.func)) or getattr(call.func, "attr", "")
        root = _root(call, name) if name in _ROOTS and _is_collective(project, module, call, name) else None
        if root is None or _is_chosen(module, call, root) or not _is_own_number(project, module, root):
            continue
        if ranks_reaching(project, module, call) is Ranks.ALL:
            yield OwnRoot(call, root, name)


def _is_collective(project: Project, module: SourceModule, call: ast.Call, name: str) -> bool:
    if name == "consolidate_state_dict":
        return framework_of_sharded(module, call, qualified(module, call.func), name, project) == "torch"
    return qualified(module, call.func) in (f"torch.distributed.{name}", f"torch.distributed.distributed_c10d.{name}")


def _root(call: ast.Call, name: str) -> ast.expr | None:
    """The argument that names the root; None in a group of some ranks, whose roots may differ."""
    word, place, group = _ROOTS[name]
    if any(k.arg is None or k.arg == "group" for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = next((k.value for k in call.keywords if k.arg == word), call.args[place] if len(call.args) > place else None)
    return given if isinstance(given, _NUMBERS) and len(call.args) <= group else None


def _is_own_number(project: Project, module: SourceModule, root: ast.expr) -> bool:
    return is_proven_global(project, module, root) or index_among(project, module, root) in (Among.NODE, Among.SPAWNED)


def _is_chosen(module: SourceModule, call: ast.Call, root: ast.expr) -> bool:
    """True where a test or a loop round the call asks for the same number: it may let one rank through."""
    text = module.text_of(root)
    for up in module.ancestors(call):
        asked = up.test if isinstance(up, (ast.If, ast.While, ast.IfExp)) else up.iter if isinstance(up, ast.For) else None
        if asked is not None and any(isinstance(n, _NUMBERS) and module.text_of(n) == text for n in walk(asked)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
    return False
