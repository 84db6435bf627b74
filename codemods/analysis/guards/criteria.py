"""Who calls a function that gives back a loss: by its name, or as the `forward` of an object (`criterion(output, target)`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.distribution import is_test_module
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import constructions, uses_of
from codemods.analysis.variance.analysis import Analysis
from codemods.files.source import SourceModule

_MOST = 6  # callers that are looked at
_CALLED = frozenset({"forward", "__call__"})


def callers(analysis: Analysis, site: FunctionSite) -> list[tuple[FunctionSite, ast.Call]]:
    """The calls that run a function, each with the function round it."""

    def build() -> list[tuple[FunctionSite, ast.Call]]:
        found = _of_objects(analysis, site) if site.node.name in _CALLED else _by_name(analysis, site)
        within = ((m, m.function_of(c), c) for m, c in found if not is_test_module(m))
        return [(FunctionSite(m, f), c) for m, f, c in within if f is not None][:_MOST]

    return analysis.project.memo(("callers of a loss", *site.key), build)


def own_parameters(analysis: Analysis, site: FunctionSite) -> frozenset[str]:
    """The parameters of the `forward` of a criterion for which a caller hands over what each rank has of its own."""
    if site.node.name not in _CALLED:
        return frozenset()  # those of other functions are resolved by the analysis itself
    given = ((caller.module, bind(site.node, call, bound=True) or {}) for caller, call in callers(analysis, site))
    return frozenset(n for module, pairs in given for n, value in pairs.items() if analysis.value(module, value).differs)


def _by_name(analysis: Analysis, site: FunctionSite) -> Iterator[tuple[SourceModule, ast.Call]]:
    for place in uses_of(analysis.project, site.module, site.node).outside_tests().calls:
        function = place.module.function_of(place.call)
        state = analysis.of(FunctionSite(place.module, function)) if function is not None else None
        target = state.targets.get(id(place.call)) if state is not None else None
        if target is not None and target.key == site.key:
            yield place.module, place.call


def _of_objects(analysis: Analysis, site: FunctionSite) -> Iterator[tuple[SourceModule, ast.Call]]:
    """`self.criterion = Hits()` in a class, `hits = Hits()` in a function or a file, and the calls of that name there."""
    owner = site.module.parent(site.node)
    made = constructions(analysis.project, site.module, owner) if isinstance(owner, ast.ClassDef) else None
    for place in made.outside_tests().calls if made is not None else ():
        module = place.module
        bound = module.statement_of(place.call)
        paths = [dotted(t) for t in bound.targets] if isinstance(bound, ast.Assign) else []
        function, holder = module.function_of(bound), module.class_of(bound)
        for path in filter(None, paths):
            for call in module.calls_named(path.rpartition(".")[2]):
                within = module.class_of(call) is holder if path.startswith("self.") else _is_in(module, call, function)
                if dotted(call.func) == path and within:
                    yield module, call


def _is_in(module: SourceModule, call: ast.Call, function: ast.AST | None) -> bool:
    return function is None or any(up is function for up in module.ancestors(call))
