"""Shares that are put together rank after rank and cut to the length of the data: what is cut is not what was repeated.

A DistributedSampler deals its samples out in turn, so that the repeated ones stand at the end of the share of each of the last
ranks. Only the last of them is at the end of all shares, one behind the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.padded_counts import padded_samplers_of
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import is_in_a_loop
from codemods.files.source import SourceModule, ends_above, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_CONCATENATE = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "numpy.concatenate"})
_KEEPS_ROWS = frozenset({"to", "cpu", "cuda", "detach", "clone", "contiguous", "long", "int", "bool", "float", "numpy", "tolist",
                         "squeeze"})  # fmt: skip
_OF_DATA = lazy(r"data|(^|_)ds$|set$|samples|examples")
_DEPTH = 4


@record
class CutGather:
    """cut: `torch.cat(gathered)[:len(dataset)]`, or the call of a function that makes this cut. loop: where the shares are
    gone through. sampler: which deals them out."""

    cut: ast.Subscript | ast.Call
    loop: ast.For
    where: SourceModule
    sampler: ast.Call


def cut_gathers(project: Project, module: SourceModule) -> Iterator[CutGather]:
    """The first cut of each function that goes through such shares itself."""
    told: set[int] = set()
    for cut in module.nodes(ast.Subscript):
        scope = module.function_of(cut) or module.tree
        if id(scope) in told or not isinstance(cut.ctx, ast.Load) or (length := _cut_to(cut)) is None:
            continue
        loops = [n for n in walk_scope(scope) if isinstance(n, ast.For) and ends_above(n, cut)]
        if not loops or not _is_length(project, module, length) or not _is_joined(project, module, cut.value, _DEPTH):
            continue
        dealt = ((loop, s) for loop in loops for s in padded_samplers_of(project, module, loop, ordered=False))
        if (found := next(dealt, None)) is not None:
            told.add(id(scope))
            yield CutGather(cut, found[0], *found[1])
    for call in module.nodes(ast.Call):
        scope = module.function_of(call) or module.tree
        if id(scope) not in told and (loop := _loop_of_rows(project, module, call, scope)) is not None:
            for sampler in padded_samplers_of(project, module, loop, ordered=False):
                told.add(id(scope))
                yield CutGather(call, loop, *sampler)
                break


def _loop_of_rows(project: Project, module: SourceModule, call: ast.Call, scope: ast.AST) -> ast.For | None:
    """The loop whose rows are handed to a function that joins those of all ranks and cuts them to the length of the data."""
    lengths = [a for a in (*call.args, *(k.value for k in call.keywords)) if _is_length(project, module, a)]
    site = called_function(project, module, call) if lengths else None
    if site is None or is_test_file(site.module.path) or not _cuts_to_a_parameter(project, site, call, lengths):
        return None
    rows = {n.id for a in call.args if a not in lengths for n in (a, *walk(a)) if isinstance(n, ast.Name)}
    loops = [n for n in walk_scope(scope) if isinstance(n, ast.For) and ends_above(n, call) and _fills(n, rows)]
    return loops[-1] if loops else None


def _cuts_to_a_parameter(project: Project, site: FunctionSite, call: ast.Call, lengths: list[ast.expr]) -> bool:
    given = bind(site.node, call, bound=False) or {}
    cuts = [n.value for n in walk_scope(site.node) if isinstance(n, ast.Return)]
    lengths_of = [_cut_to(c) if isinstance(c, ast.Subscript) else None for c in cuts]
    names = [n.id if isinstance(n, ast.Name) else "" for n in lengths_of]
    return len(cuts) == 1 and given.get(names[0]) in lengths and (
        isinstance(cuts[0], ast.Subscript) and _is_joined(project, site.module, cuts[0].value, _DEPTH)
    )


def _fills(loop: ast.For, rows: set[str]) -> bool:
    """True where each round puts something into one of the lists."""
    puts = (n.func for n in walk_scope(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(put.attr in ("append", "extend") and dotted(put.value) in rows for put in puts)


def _cut_to(node: ast.Subscript) -> ast.expr | None:
    """`n` of `rows[:n]`."""
    piece = node.slice
    plain = isinstance(piece, ast.Slice) and piece.lower is None and piece.step is None
    return piece.upper if plain and isinstance(piece, ast.Slice) else None


def _is_length(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for `len(dataset)`, be it under a name or given by every call of the function."""
    if isinstance(node, ast.Call):
        name = dotted(node.args[0]) if dotted(node.func) == "len" and len(node.args) == 1 else ""
        return bool(_OF_DATA.search(last(name).lower()))
    if not isinstance(node, ast.Name):
        return False
    bound = bindings_of(module, node)
    if len(bound) == 1 and bound[0].parameter:
        return _is_given_a_length(project, module, node)
    value = only_value(bound)
    return isinstance(value, ast.Call) and _is_length(project, module, value)


def _is_given_a_length(project: Project, module: SourceModule, name: ast.Name, depth: int = 2) -> bool:
    function = module.function_of(name)
    calls = module.calls_named(function.name) if function is not None and depth else []
    for call in calls:
        given = (bind(function, call, bound=module.class_of(name) is not None) or {}).get(name.id) if function else None
        if isinstance(given, ast.Call) and _is_length(project, module, given):
            continue
        if not isinstance(given, ast.Name) or not any(b.parameter for b in bindings_of(module, given)):
            return False
        if not _is_given_a_length(project, module, given, depth - 1):
            return False
    return bool(calls)


def _is_joined(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True for the shares of all ranks, one behind the other."""
    node = _as_rows(node)
    if depth < 0:
        return False
    if isinstance(node, ast.Name):
        value = only_value(bindings_of(module, node))
        return value is not None and not is_in_a_loop(module, value) and _is_joined(project, module, value, depth - 1)
    if isinstance(node, ast.ListComp):  # [row for rows in gathered for row in rows]
        inner = node.generators
        flat = len(inner) == 2 and isinstance(node.elt, ast.Name) and dotted(inner[1].iter) == dotted(inner[0].target) != ""
        return flat and _is_list_of_ranks(module, inner[0].iter, depth)
    if not isinstance(node, ast.Call):
        return False
    name, arguments = qualified(module, node.func), node.args
    if name in _CONCATENATE and arguments:
        rows = [*(k.value for k in node.keywords if k.arg in ("dim", "axis")), *arguments[1:]]
        first = all(isinstance(r, ast.Constant) and r.value == 0 for r in rows)
        return first and _is_list_of_ranks(module, arguments[0], depth)
    if name in ("list", "sum") and arguments:
        return _is_joined(project, module, arguments[0], depth - 1) if name == "list" else _is_list_of_ranks(
            module, arguments[0], depth
        )
    if name == "itertools.chain" and len(arguments) == 1 and isinstance(arguments[0], ast.Starred):
        return _is_list_of_ranks(module, arguments[0].value, depth)
    if name == "itertools.chain.from_iterable" and len(arguments) == 1:
        return _is_list_of_ranks(module, arguments[0], depth)
    site = called_function(project, module, node)
    return site is not None and not is_test_file(site.module.path) and _returns_joined(project, site, depth - 1)


def _returns_joined(project: Project, site: FunctionSite, depth: int) -> bool:
    returned = [n.value for n in walk_scope(site.node) if isinstance(n, ast.Return)]
    joined = [v is not None and _is_joined(project, site.module, v, depth) for v in returned]
    alone = [isinstance(v, ast.Name) and _is_parameter(site, v.id) for v in returned]  # `return x` of a run with one process
    return any(joined) and all(j or a for j, a in zip(joined, alone, strict=True))


def _is_parameter(site: FunctionSite, name: str) -> bool:
    return any(a.arg == name for a in site.node.args.args)


def _as_rows(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_ROWS:
        if isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "np"):
            return node
        node = node.func.value
    return node


def _is_list_of_ranks(module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True for the list that an `all_gather` outside of loops fills, and for one of parts of its entries, in their order."""
    if depth < 0:
        return False
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return len(node.generators) == 1 and not node.generators[0].ifs and _is_of_each_rank(module, node, depth)
    if not isinstance(node, ast.Name):
        return False
    if _is_filled(module, node):
        return True
    value = only_value(bindings_of(module, node))
    return value is not None and _is_list_of_ranks(module, value, depth - 1)


def _is_of_each_rank(module: SourceModule, node: ast.ListComp | ast.GeneratorExp, depth: int) -> bool:
    """`[g.cpu() for g in gathered]`, `[g[:n] for g, n in zip(gathered, sizes)]`, `[gathered[i][:n[i]] for i in range(world)]`."""
    source, element = node.generators[0].iter, node.elt
    while isinstance(element, (ast.Subscript, ast.Call, ast.Attribute)):
        if isinstance(element, ast.Call):
            if not isinstance(element.func, ast.Attribute) or element.func.attr not in _KEEPS_ROWS:
                return False
            element = element.func.value
        elif isinstance(element, ast.Subscript) and isinstance(element.value, ast.Name) and isinstance(element.slice, ast.Name):
            counted = isinstance(source, ast.Call) and dotted(source.func) == "range" and len(source.args) == 1
            return counted and element.slice.id == dotted(node.generators[0].target) and _is_filled(module, element.value)
        elif isinstance(element, ast.Subscript) and isinstance(element.slice, ast.Slice):
            element = element.value
        else:
            return False
    if not isinstance(element, ast.Name):
        return False
    if isinstance(source, ast.Call) and dotted(source.func) == "zip" and source.args:
        target = node.generators[0].target
        first = isinstance(target, ast.Tuple) and dotted(target.elts[0]) == element.id
        return first and _is_list_of_ranks(module, source.args[0], depth - 1)
    return dotted(node.generators[0].target) == element.id and _is_list_of_ranks(module, source, depth - 1)


def _is_filled(module: SourceModule, name: ast.Name) -> bool:
    function = module.function_of(name)
    bound = bindings_of(module, name)
    for call in module.calls_named("all_gather", "all_gather_object"):
        if module.function_of(call) is function and call.args and dotted(call.args[0]) == name.id and len(call.args) == 2:
            plain = qualified(module, call.func).startswith("torch.distributed.") and not call.keywords
            return plain and len(bound) == 1 and not is_in_a_loop(module, call)
    return False
