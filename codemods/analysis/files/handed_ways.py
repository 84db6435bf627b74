"""Do the ranks come to a function that is only handed on as a value? By its calls, and the places that hand it on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.names import dotted
from codemods.analysis.ranks.reach import ranks_reaching, to_a_launcher
from codemods.analysis.ranks.uses import HandedOn, constructions
from codemods.analysis.ranks.value_calls import ValueCall, calls_of_value
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

ForSome = Callable[[Project, SourceModule, ast.AST], bool]


def places_of_all(
    project: Project, handed: tuple[HandedOn, ...], is_for_some: ForSome
) -> Iterator[tuple[SourceModule, ast.AST]]:
    """The places by which every rank reaches it, if it reaches them: nothing between them and the function keeps a rank out.

    That is the outermost place that hands it on, and the call itself where it is made in processes that are started there.
    """
    for place in handed:
        for call in calls_of_value(project, place.module, place.node):
            if not is_kept_to_some(project, call, is_for_some):
                yield (call.module, call.call) if call.spawned or not call.handed else call.handed[0]


def all_kept_to_some(
    project: Project, module: SourceModule, function: FunctionNode, handed: tuple[HandedOn, ...], is_for_some: ForSome
) -> bool:
    """True where a test of the rank stands over each call of the value, or over each place that hands it on.

    A method that nobody names is called by what fetches methods by a text: `getattr(trainer, mode)()`.
    """

    def kept(place: HandedOn) -> bool:
        calls = calls_of_value(project, place.module, place.node)
        if calls:
            return all(is_kept_to_some(project, c, is_for_some) for c in calls)
        return not to_a_launcher(place) and is_for_some(project, place.module, place.node)

    if handed:
        return all(map(kept, handed))
    fetched = list(_fetched(project, module, function))
    return bool(fetched) and all(is_for_some(project, home, call) for home, call in fetched)


def _fetched(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls of what `getattr` finds under an open name, in the files that make objects of the method's class."""
    owner = module.parent(function)
    made = constructions(project, module, owner) if isinstance(owner, ast.ClassDef) else None
    homes = {s.module.path: s.module for s in made.outside_tests().calls} if made is not None else {}
    for home in homes.values():
        for call in home.nodes(ast.Call) if home.holds(b"getattr(") else ():
            inner = call.func
            if isinstance(inner, ast.Call) and dotted(inner.func) == "getattr" and len(inner.args) > 1:
                if not isinstance(inner.args[1], ast.Constant) or inner.args[1].value == function.name:
                    yield home, call


def is_kept_to_some(project: Project, call: ValueCall, is_for_some: ForSome) -> bool:
    """True where a test of the rank stands over the call, or over a place that hands the value to the function round it."""
    if any(is_for_some(project, module, node) for module, node in ((call.module, call.call), *call.handed)):
        return True
    return any(ranks_reaching(project, module, node).some for module, node in call.handed)
