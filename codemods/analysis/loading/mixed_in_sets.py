"""Data sets whose constructor mixes the list that a sample's index is looked up in, where the ranks share the indices out.

Every rank mixes a list of its own: index 7 is one sample on rank 0, and another on rank 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.loading.dealt_out import all_deals
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.prepared_data import prepared
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.model.literal_arguments import is_ruled_out, told
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.store.project import Project

_OWN = "self."


def dealt_after_mixing(project: Project, module: SourceModule, call: ast.Call, names: set[str]) -> Loader | None:
    """The loader whose indices the ranks share, of a set that `call` mixes for by what it gives these names."""
    found = module.method_of(call)
    if found is None or module.parent(found[0]) is not module.tree or not names:
        return None
    owner, method = found
    path = _from_constructor(module, owner, method, call)
    fields = _fields(module, method, call, names)
    if path is None or not fields or not _are_looked_up(project, module, owner, fields):
        return None
    for made, loader in _shared(project):
        if isinstance(made.node, ast.Call) and _is_of(project, made, owner) and not _is_left_out(module, owner, made.node, path):
            return loader
    return None


def _shared(project: Project) -> tuple[tuple[Origin, Loader], ...]:
    """What makes the sets whose indices a DistributedSampler or Accelerate shares out, with their loaders."""

    def build() -> Iterator[tuple[Origin, Loader]]:
        yield from ((d.made, d.loader) for d in all_deals(project) if not d.by_lightning)
        for loader in prepared(project):
            if loader.dataset is not None:
                yield from ((o, loader) for o in origins(project, loader.module, loader.dataset))

    return project.memo("sets that are shared out", lambda: tuple(build()))


def _is_of(project: Project, made: Origin, owner: ast.ClassDef) -> bool:
    site = made_class(project, made)
    return site is not None and site.node is owner


def _from_constructor(
    module: SourceModule, owner: ast.ClassDef, method: FunctionNode, call: ast.Call
) -> tuple[ast.AST, ...] | None:
    """The places in the class by which the constructor comes to a call in one of its methods; None where it does not."""
    if method.name == "__init__":
        return (call,)
    init = module.methods_of(owner).get("__init__")
    calls = [n for n in walk_scope(init) if isinstance(n, ast.Call)] if init is not None else []
    place = next((c for c in calls if dotted(c.func) == f"{_OWN}{method.name}"), None)
    return (call, place) if place is not None else None


def _is_left_out(module: SourceModule, owner: ast.ClassDef, made: ast.Call, path: tuple[ast.AST, ...]) -> bool:
    """True where what the object is made with rules a place out: `Rows(paths, mix=False)`."""
    init = module.methods_of(owner).get("__init__")
    literals = told(init, made, {}, bound=True) if init is not None else {}
    inside = (p for p in path if module.function_of(p) is init)
    return any(is_ruled_out(module, place, literals) for place in inside)


def _fields(module: SourceModule, method: FunctionNode, call: ast.Call, names: set[str]) -> set[str]:
    """The fields that hold the mixed list, or a part of it; none where something sorts below."""
    held = set(names)
    for node in sorted((n for n in walk_scope(method) if isinstance(n, ast.stmt)), key=lambda n: n.lineno):
        if node.lineno <= call.lineno or not isinstance(node, ast.Assign):
            continue
        value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
        given = {dotted(t) for t in node.targets} - {""}
        held = held | given if dotted(value) in held else held - given
    sorts = (n for n in walk_scope(method) if isinstance(n, ast.Call) and called_name(n) in ("sort", "sorted"))
    if any(n.lineno >= call.lineno for n in sorts):
        return set()
    return {name for name in held if name.startswith(_OWN)}


def _are_looked_up(project: Project, module: SourceModule, owner: ast.ClassDef, fields: set[str]) -> bool:
    """True where `__getitem__` looks the index up in these fields alone: a second list beside another tells no sample."""
    found = class_facts(project, module, owner).method("__getitem__")
    if found is None or len(found[1].args.args) < 2:
        return False
    home, method, index = found[0].module, found[1], found[1].args.args[1].arg
    uses = (n for n in walk(method) if isinstance(n, ast.Name) and n.id == index and isinstance(n.ctx, ast.Load))
    looked = [held for use in uses if (held := _looked_up_in(home, use, method)) is not None]
    first = min(looked, key=lambda n: n.lineno, default=None)
    if first is None or dotted(first.value) not in fields:
        return False
    given = [n for n in walk(method) if isinstance(n, ast.Assign) and any(dotted(t) == index for t in n.targets)]
    if given:
        return len(given) == 1 and any(n is first for n in walk(given[0].value))
    return all(dotted(n.value) in fields for n in looked)


def _looked_up_in(module: SourceModule, index: ast.Name, method: FunctionNode) -> ast.Subscript | None:
    """`self.order[index]` of `self.rows[self.order[index]]`."""
    below: ast.AST = index
    for up in module.ancestors(index):
        if up is method:
            return None
        if isinstance(up, ast.Subscript) and up.slice is below and dotted(up.value).startswith(_OWN):
            return up
        below = up
    return None
