"""Calls that hand over a wrapper and a bare network to a function which looks the names of one up among those of the other.

All names of a wrapper begin with `module.`: the averages of weights of many programs, which go by name, end with a KeyError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in, name_or_field_bindings, only_value
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import find_class
from codemods.analysis.handed import handed, held_as
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.analysis.wrapped.made_models import classes_of
from codemods.analysis.wrapped.wrap_files import callers
from codemods.analysis.wrapped.wraps import without_moves
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk
from codemods.runtime.record import record
from codemods.store.project import Project

DEPTH = 2
_GIVES_NAMES = ("named_parameters", "named_buffers", "state_dict")
_DICTS = ("dict", "OrderedDict")


@record
class LookedUp:
    """A call that hands both over. function: what is called; line: where it looks a name up; bare: how the other is written."""

    call: ast.Call
    holder: ast.expr
    wrapped: Wrapped
    function: FunctionSite
    line: int
    bare: str


def looked_up(project: Project, module: SourceModule) -> Iterator[LookedUp]:
    """The calls of this file whose function cannot find a name of the wrapper, or finds none of the other in the wrapper."""
    for call in module.nodes(ast.Call):
        if len(call.args) + len(call.keywords) < 2:
            continue
        site = called_function(project, module, call)
        if site is None or not (pairs := list(_pairs(site))):
            continue
        given = handed(site, call)
        for pair in pairs:
            yield from _fitting(project, module, call, site, pair, given)


def _fitting(
    project: Project, module: SourceModule, call: ast.Call, site: FunctionSite, pair: _Pair, given: dict[str, ast.expr]
) -> Iterator[LookedUp]:
    """The pair as a call fills it, where one is a wrapper for sure, and the other none."""
    for one, other in ((pair.one, pair.other), (pair.other, pair.one)):
        holder, bare = given.get(one), given.get(other)
        if not isinstance(holder, (ast.Name, ast.Attribute)) or bare is None or dotted(holder) == dotted(bare):
            continue
        if held_as(site, call, holder) != one or held_as(site, call, bare) != other:
            continue
        found = wrapper_in(project, module, holder)
        if found is not None and not found.many and _is_bare(project, module, bare, found, 0):
            yield LookedUp(call, holder, found, site, pair.line, dotted(bare))
            return


# The function


@record
class _Pair:
    """Two parameters: the names of `one` are looked up among those of `other`."""

    one: str
    other: str
    line: int


def _pairs(site: FunctionSite) -> Iterator[_Pair]:
    module, function = site.module, site.node
    text = module.text_of(function)
    if "module" in text or not any(name in text for name in _GIVES_NAMES):
        return  # it may take the prefix off
    if any(isinstance(n, ast.Try) for n in walk(function)):
        return
    for loop in walk(function):
        if not isinstance(loop, ast.For) or module.function_of(loop) is not function:
            continue
        key, owner = _key_of(loop.target), _owner(module, function, loop.iter)
        if not key or not owner or _is_changed(loop, key):
            continue
        for node in walk(loop):
            if isinstance(node, ast.Subscript) and dotted(node.slice) == key and not _is_asked(module, node, loop, key):
                other = _owner(module, function, node.value)
                if other and other != owner and isinstance(node.ctx, ast.Load):
                    yield _Pair(owner, other, node.lineno)
                    break


def _key_of(target: ast.expr) -> str:
    """The name of the key in `for key, value in ...` and `for key in ...`."""
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[0]
    return target.id if isinstance(target, ast.Name) else ""


def _owner(module: SourceModule, function: FunctionNode, node: ast.expr) -> str:
    """The parameter whose names are the keys of what stands here: `dict(net.named_parameters())`, a name for it, its items."""
    if isinstance(node, ast.Name):
        value = only_value(bindings_in(module, function, node.id))
        return _owner(module, function, value) if value is not None and not isinstance(value, ast.Name) else ""
    if isinstance(node, ast.DictComp) and len(node.generators) == 1:
        source = node.generators[0]
        plain = not source.ifs and _key_of(source.target) == dotted(node.key)
        return _owner(module, function, source.iter) if plain else ""
    if not isinstance(node, ast.Call) or node.keywords:
        return ""
    if last(dotted(node.func)) in _DICTS and len(node.args) == 1:
        return _owner(module, function, node.args[0])
    if not isinstance(node.func, ast.Attribute) or node.args:
        return ""
    if node.func.attr in ("items", "keys"):
        return _owner(module, function, node.func.value)
    name = node.func.value.id if node.func.attr in _GIVES_NAMES and isinstance(node.func.value, ast.Name) else ""
    bound = bindings_in(module, function, name) if name else []
    return name if len(bound) == 1 and bound[0].parameter else ""


def _is_changed(loop: ast.For, key: str) -> bool:
    """True where the loop changes the name, or asks whether it is there."""
    for node in (n for part in loop.body for n in walk(part)):
        if isinstance(node, ast.Name) and node.id == key and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and dotted(node.left) == key:
            return True
    return False


def _is_asked(module: SourceModule, node: ast.AST, loop: ast.For, key: str) -> bool:
    """True where a test of the name stands over its lookup."""
    for up in module.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, (ast.If, ast.IfExp)) and any(dotted(n) == key for n in walk(up.test)):
            return True
    return False


# The other network


def _is_bare(project: Project, module: SourceModule, node: ast.expr, found: Wrapped, depth: int) -> bool:
    """True for a copy of the network that is made above the wrap, or of the one inside, and for another of its class."""
    bound = [b for b in name_or_field_bindings(module, node) if not _is_moved(b, dotted(node))]
    if len(bound) != 1 or bound[0].part:
        return False
    value = bound[0].value
    if bound[0].parameter and isinstance(node, ast.Name):
        return depth < DEPTH and _is_handed_bare(project, module, node, found, depth)
    made = without_moves(value) if value is not None else None
    if not isinstance(made, ast.Call):
        return False
    if last(dotted(made.func)) == "deepcopy" and len(made.args) == 1:
        return _is_inside(project, module, without_moves(made.args[0]), made, found)
    site = find_class(project, module, dotted(made.func)) if dotted(made.func) else None
    known = {id(facts.lineage[0].node) for facts in classes_of(project, found.module, found.model)}
    return site is not None and len(known) == 1 and id(site.node) in known


def _is_moved(one: Binding, name: str) -> bool:
    """True for `ema = ema.to(device)`."""
    return one.value is not None and not one.part and dotted(without_moves(one.value)) == name


def _is_handed_bare(project: Project, module: SourceModule, node: ast.Name, found: Wrapped, depth: int) -> bool:
    """True for a parameter that each caller hands a bare network."""
    function = module.function_of(node)
    calls = callers(project, module, function) if function is not None else []
    for site in calls:
        value = handed(FunctionSite(module, function), site.call).get(node.id) if function is not None else None
        if value is None or not _is_bare(project, site.module, value, found, depth + 1):
            return False
    return bool(calls)


def _is_inside(project: Project, module: SourceModule, source: ast.expr, copy: ast.Call, found: Wrapped) -> bool:
    """True where what is copied is the network that goes into the wrap, above it, or what is taken out of the wrapper."""
    if isinstance(source, ast.Attribute) and source.attr == "module":
        return wrapper_in(project, module, source.value) is not None
    if isinstance(source, ast.Call) and last(dotted(source.func)) == "unwrap_model":
        return True
    name = dotted(source)
    if found.model is None or not name or dotted(without_moves(found.model)) != name or module is not found.module:
        return False
    home = module.function_of(found.wrap)
    if module.function_of(copy) is not home or not stands_above(copy, found.wrap):
        return False
    if wrapper_in(project, module, source) is not None:
        return False
    below = (b for b in name_or_field_bindings(module, source) if stands_above(copy, b.node))
    wrap = module.statement_of(found.wrap)
    return all(_is_moved(b, name) or b.node is wrap for b in below if stands_above(b.node, found.wrap))
