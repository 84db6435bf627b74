"""Branches that a call cannot come to: `if create:` in a function that is called with `create=False`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from codemods.analysis.bindings import bindings_in
from codemods.analysis.branches import branches_round
from codemods.analysis.class_index import ClassSite, subclasses
from codemods.analysis.literals import held_against
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.ranks.none_arguments import asked_for_none, leads_past_none
from codemods.analysis.ranks.uses import CallSite, Uses, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class _Compared:
    """A parameter that has to be one of the values for a place to be reached, or none of them."""

    name: str
    values: tuple[object, ...]
    wanted: bool


def open_uses(project: Project, module: SourceModule, function: FunctionNode, node: ast.AST, uses: Uses) -> Uses:
    """`uses` of the function without the calls whose literal arguments, new objects, or defaults lead past `node`."""
    asked, compared = _asked(module, function, node), _compared(module, function, node)
    empty = asked_for_none(module, function, node)
    if not asked and not compared and not empty:
        return uses
    known = (s for s in uses.calls if not _is_past(module, function, s, asked, compared))
    calls = tuple(site for site in known if not _is_none(project, module, function, site, empty))
    return uses if len(calls) == len(uses.calls) else Uses(calls, uses.handed_on, uses.more)


def led_past(project: Project, module: SourceModule, function: FunctionNode, node: ast.AST) -> Uses | None:
    """The uses of a plain function that lead to `node`, where its own tests lead some call past it; None where they lead none.

    `build("single")` comes to `if kind == "single":`, and `build("distributed")` does not.
    """
    if isinstance(module.parent(function), ast.ClassDef) or function.decorator_list:
        return None
    if not asks_a_parameter(module, function, node):
        return None
    uses = uses_of(project, module, function)
    let_in = open_uses(project, module, function, node, uses)
    return None if let_in is uses or uses.more or uses.handed_on else let_in


def is_asked_for_by_none(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a parameter (`if download:`) that all calls of the function, as many as the project has, leave or set off."""
    function = module.function_of(node)
    if function is None or not asks_a_parameter(module, function, node):
        return False
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        uses: Uses | None = uses_of(project, module, function)
    elif function.name == "__init__" and not subclasses(project, ClassSite(module, owner)):
        uses = constructions(project, module, owner)
    else:
        return False  # an heir or a framework may call it
    if uses is None or uses.more or uses.handed_on or not uses.calls:
        return False
    return not open_uses(project, module, function, node, uses).calls


def is_only_asked_for_by_none(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a method that has calls, and all of them under such a parameter."""
    used = uses_of(project, module, function).outside_tests()
    handed_on = [h for h in used.handed_on if not isinstance(h.node, ast.Name)]  # a plain name is no method
    if used.more or handed_on or not used.calls:
        return False
    return all(is_asked_for_by_none(project, s.module, s.call) for s in used.calls)


def wanted_above(
    module: SourceModule, function: FunctionNode, site: CallSite, wanted: Mapping[str, bool]
) -> dict[str, bool] | None:
    """What the caller's own parameters have to be for a call to make those of the function true or false, as a place in it wants.

    None where the call's literals, or the defaults, lead past the place: `Net(cfg)` of `def __init__(self, cfg, fresh=False)`.
    """
    if _is_past(module, function, site, wanted):
        return None
    given = bind(function, site.call, bound=isinstance(module.parent(function), ast.ClassDef)) or {}
    home = site.module.function_of(site.call)
    own = {p.arg for p in parameters(home, bound=False)} if home is not None else set()
    handed = {v.id: wanted[name] for name, v in given.items() if name in wanted and isinstance(v, ast.Name) and v.id in own}
    return {name: answer for name, answer in handed.items() if all(b.parameter for b in bindings_in(site.module, home, name))}


def wanted_at(module: SourceModule, function: FunctionNode, node: ast.AST) -> dict[str, bool]:
    """Parameter -> what it has to be for a place of its function to be reached, by the tests that ask for it alone."""
    return _asked(module, function, node)


def asks_a_parameter(module: SourceModule, function: FunctionNode, node: ast.AST) -> bool:
    """True where a test round the node is a parameter of its function alone, or holds one against literals or None."""
    return bool(_asked(module, function, node) or _compared(module, function, node) or asked_for_none(module, function, node))


def _asked(module: SourceModule, function: FunctionNode, node: ast.AST) -> dict[str, bool]:
    """Parameter -> what it has to be for the node to be reached."""
    given = {p.arg for p in parameters(function, bound=False)}
    out = {test.id: wanted for test, wanted in _tests(module, node) if isinstance(test, ast.Name) and test.id in given}
    return {name: wanted for name, wanted in out.items() if _is_kept(module, function, name)}


def _compared(module: SourceModule, function: FunctionNode, node: ast.AST) -> tuple[_Compared, ...]:
    """The parameters that are held against literals round the node."""
    given = {p.arg for p in parameters(function, bound=False)}
    found = [c for test, wanted in _tests(module, node) if (c := _comparison(test, wanted)) and c.name in given]
    return tuple(c for c in found if _is_kept(module, function, c.name))


def _comparison(test: ast.expr, wanted: bool) -> _Compared | None:
    """`kind == "a"` and `kind in ("a", "b")`, or the opposite of them."""
    held = held_against(test)
    if held is None or not isinstance(held[0], ast.Name):
        return None
    values = tuple(value for value in held[1] if isinstance(value, (str, int)))
    return _Compared(held[0].id, values, wanted is held[2]) if len(values) == len(held[1]) else None


def _tests(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The tests round the node, each with what it has to be for the node to be reached."""
    for branch in branches_round(module, node):
        test, wanted = branch.test, branch.holds
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, wanted = test.operand, not wanted
        yield test, wanted


def _is_kept(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True for a parameter that the function gives no other value."""
    return all(b.parameter for b in bindings_in(module, function, name))


def _is_past(
    module: SourceModule,
    function: FunctionNode,
    site: CallSite,
    asked: Mapping[str, bool],
    compared: Sequence[_Compared] = (),
) -> bool:
    given = bind(function, site.call, bound=isinstance(module.parent(function), ast.ClassDef))
    if given is None:
        return False
    values = defaults(function) | given
    for name, wanted in asked.items():
        value = values.get(name)
        if isinstance(value, ast.Constant) and bool(value.value) is not wanted:
            return True
    for one in compared:
        value = values.get(one.name)
        if isinstance(value, ast.Constant) and (value.value in one.values) is not one.wanted:
            return True
    return False


def _is_none(project: Project, module: SourceModule, function: FunctionNode, site: CallSite, empty: Mapping[str, bool]) -> bool:
    """True where the call gives a parameter that has to be None a value that is there, or the other way round."""
    given = bind(function, site.call, bound=isinstance(module.parent(function), ast.ClassDef)) if empty else None
    if given is None:
        return False
    left_out = {name: value for name, value in defaults(function).items() if name not in given}
    return leads_past_none(project, site.module, given, empty) or leads_past_none(project, module, left_out, empty)
