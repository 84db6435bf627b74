"""What a helper does to a model in front of the wrap: its calls stand above that, in the function that wraps."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import CallSite, HandedOn, uses_of
from codemods.files.source import FunctionNode, SourceModule, stands_above
from codemods.store.project import Project

_CLIMBS = 3  # helpers of helpers


def is_called_in_front(project: Project, module: SourceModule, node: ast.AST, home: SourceModule, wrap: ast.AST) -> bool:
    """True where a statement stands in a function that is only called above a wrap, through however few helpers."""
    return _in_front(project, module, node, home, wrap, _CLIMBS)


def _in_front(
    project: Project, module: SourceModule, node: ast.AST, home: SourceModule, wrap: ast.AST, climbs: int
) -> bool:
    function = module.function_of(node)
    if function is None or climbs == 0 or (module is home and function is home.function_of(wrap)):
        return False
    sites = _calls(project, module, function)
    return bool(sites) and all(
        _stands_above(s.module, s.call, home, wrap) or _in_front(project, s.module, s.call, home, wrap, climbs - 1) for s in sites
    )


def _calls(project: Project, module: SourceModule, function: FunctionNode) -> list[CallSite]:
    """The calls that lead to the function, or may; none where it is handed on, or there are too many to look at.

    A method shares its name with others (`Image.load(path)`) and with fields (`args.load`): what is another's is left out.
    """
    method = isinstance(module.parent(function), ast.ClassDef)
    uses = uses_of(project, module, function)
    if uses.more or any(not method or _is_of_self(place) for place in uses.handed_on):
        return []
    return [site for site in uses.calls if not (method and _is_of_another(project, site, function))]


def _is_of_self(place: HandedOn) -> bool:
    return not isinstance(place.node, ast.Attribute) or dotted(place.node.value) in ("self", "cls")


def _is_of_another(project: Project, site: CallSite, function: FunctionNode) -> bool:
    """True for a call that is seen to lead to another function."""
    found = called_function(project, site.module, site.call)
    return found is not None and found.node is not function


def _stands_above(module: SourceModule, call: ast.AST, home: SourceModule, wrap: ast.AST) -> bool:
    return module is home and module.function_of(call) is home.function_of(wrap) and stands_above(call, wrap)
