"""Where every rank runs a copy of a network: by its name, or in a function that is handed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.handed import handed
from codemods.analysis.names import dotted
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.wrapped.early_copies import EarlyCopy
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 4
# An average whose rate begins at nothing: `min(1 - 1 / (step + 1), rate)`. Its first step takes the weights over as they are.
_WARMS_UP = lazy(r"\bmin\([^\n]*1(?:\.0)?\s*-\s*1|1(?:\.0)?\s*-\s*1(?:\.0)?\s*/|\bexp\(-")
_Scope = FunctionNode | ast.ClassDef | ast.Module


@record
class Run:
    """A call that runs the copy on every rank."""

    module: SourceModule
    call: ast.Call


def run_on_every_rank(project: Project, copy: EarlyCopy) -> Run | None:
    """The first run of a copy by all ranks; None where there is none, or the first steps of an average take the weights over."""
    module = copy.module
    function = module.function_of(copy.wrap)
    scope: _Scope = function if function is not None else module.tree
    if copy.name.startswith("self.") and (owner := module.class_of(copy.wrap)) is not None:
        scope = owner
    search = _Search(project)
    found = list(search.runs(module, scope, copy.name, copy.fields, 0))
    return None if search.warms_up or not found else found[0]


def _is_in_loop(module: SourceModule, node: ast.AST) -> bool:
    """False for what runs once: behind the training an average has forgotten how it began."""
    return any(isinstance(up, (ast.For, ast.While)) for up in module.ancestors(node))


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[tuple[int, str]] = set()
        self.warms_up = False

    def runs(self, module: SourceModule, scope: _Scope, name: str, fields: tuple[str, ...], depth: int) -> Iterator[Run]:
        if (id(scope), name) in self.seen or depth > _DEPTH:
            return
        self.seen.add((id(scope), name))
        if not isinstance(scope, ast.Module) and _WARMS_UP.search(module.text_of(scope)):
            self.warms_up = True
        inside = {name, *(f"{name}.{field}" for field in fields)}
        called = inside | {f"{one}.forward" for one in inside}
        for node in walk(scope):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and dotted(node.value) in inside:
                other = dotted(node.targets[0])
                if other and other != name:
                    yield from self.runs(module, scope, other, fields if dotted(node.value) == name else (), depth)
            if isinstance(node, ast.Call) and (depth or isinstance(scope, ast.ClassDef) or _is_in_loop(module, node)):
                if dotted(node.func) in called and not ranks_reaching(self.project, module, node).some:
                    yield Run(module, node)
                yield from self._handed(module, node, name, fields, depth)

    def _handed(self, module: SourceModule, call: ast.Call, name: str, fields: tuple[str, ...], depth: int) -> Iterator[Run]:
        """The runs in a function that is handed the copy, or the network that it holds."""
        inside = {name, *(f"{name}.{field}" for field in fields)}
        given = [dotted(a) for a in (*call.args, *(k.value for k in call.keywords))]
        if not inside & set(given):
            return
        site = called_function(self.project, module, call)
        if site is None or ranks_reaching(self.project, module, call).some:
            return
        for parameter, value in handed(site, call).items():
            if dotted(value) in inside:
                kept = fields if dotted(value) == name else ()
                yield from self.runs(site.module, site.node, parameter, kept, depth + 1)
