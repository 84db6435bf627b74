"""Rows in the order of a set that is made far from the data set: in another function, another class, another file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.dealt_out import all_deals
from codemods.analysis.loading.origins import given_to_field, handed_over
from codemods.analysis.loading.rows_of_sets import RowsOfSet, has_texts, takes_for_text
from codemods.analysis.loading.shuffled_alone import taken_by_index
from codemods.analysis.loading.unordered import is_sorted_in_place
from codemods.analysis.model.signatures import bind, is_bound, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.reaching import reaching
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.deep_stack import with_deep_stack
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_DEPTH = 14
_PASSES = frozenset({"enumerate", "map", "filter", "iter", "reversed", "tqdm"})
_LISTS = frozenset({"list", "tuple"})
_OF_SETS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_JOINS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)


@record
class _Place:
    """An expression, with what the call that led here hands to the parameters of its function."""

    module: SourceModule
    node: ast.expr
    given: dict[str, _Place]
    function: FunctionNode | None = None


@record
class _Row:
    """at: what puts the elements of the set `inside` in a row. texts: they are shown to be texts."""

    module: SourceModule
    at: ast.expr
    inside: ast.expr
    texts: bool


def far_sets(project: Project, module: SourceModule) -> list[RowsOfSet]:
    """Those whose row is made in this file, for data sets anywhere whose indices are dealt out."""
    if module.path not in files_of_far_sets(project):
        return []
    return [rows for at, rows in _far(project) if at is module]


def files_of_far_sets(project: Project) -> frozenset[str]:
    """The files with such a row: trees are gone by the time when the next one is asked for, this is not."""
    return project.keep("files of far sets", lambda: frozenset(at.path for at, _ in with_deep_stack(lambda: _far(project))))


def _far(project: Project) -> tuple[tuple[SourceModule, RowsOfSet], ...]:
    return project.memo("rows of far sets", lambda: tuple(_all(project)))


def _all(project: Project) -> Iterator[tuple[SourceModule, RowsOfSet]]:
    seen: set[int] = set()
    for deal in all_deals(project):
        module = deal.site.module
        for name, item in taken_by_index(project, deal.site).items():
            taken = takes_for_text(project, deal.site, name)
            for row in _rows(project, _Place(module, item.value, {}), 0) or ():
                if (row.texts or taken) and id(row.at) not in seen:
                    seen.add(id(row.at))
                    yield row.module, RowsOfSet(row.at, name, row.inside, item, deal.site, deal.loader)


def _rows(project: Project, place: _Place, depth: int) -> list[_Row] | None:
    """Every row of a set that a list may be; None where it may be something else than those and an empty list."""
    node, module = place.node, place.module
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.List) and not node.elts:
        return []
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _joined(project, _held(project, place), depth)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _rows(project, replace(place, node=node.value), depth + 1)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        return _of_comprehension(project, place, node, depth)
    if not isinstance(node, ast.Call):
        return None
    name = qualified(module, node.func)
    if name in _LISTS and len(node.args) == 1:
        inner = replace(place, node=node.args[0])
        found = _set_in(project, inner, depth + 1)
        return [_Row(module, node, node.args[0], texts=found)] if found is not None else _rows(project, inner, depth + 1)
    if last(name) in _PASSES and node.args:
        return _rows(project, replace(place, node=node.args[-1]), depth + 1)
    return _joined(project, _given_back(project, place, node), depth)


def _of_comprehension(
    project: Project, place: _Place, node: ast.ListComp | ast.GeneratorExp, depth: int
) -> list[_Row] | None:
    part = node.generators[0]
    source = replace(place, node=part.iter)
    found = _set_in(project, source, depth + 1)
    rows = _rows(project, source, depth + 1) if found is None else [_Row(place.module, part.iter, part.iter, texts=found)]
    texts = isinstance(part.target, ast.Name) and _makes_text_of(node.elt, part.target.id)
    return [replace(r, texts=r.texts or texts) for r in rows] if rows is not None else None


def _joined(project: Project, places: list[_Place] | None, depth: int) -> list[_Row] | None:
    found: list[_Row] = []
    for place in places or ():
        rows = _rows(project, place, depth + 1)
        if rows is None:
            return None
        found += rows
    return found if places else None


# Where names, fields and calls lead


def _held(project: Project, place: _Place) -> list[_Place] | None:
    """What a name or a field is given; None where it is sorted, or where that is not seen."""
    node, module = place.node, place.module
    if is_sorted_in_place(module, dotted(node), node):
        return None
    if isinstance(node, ast.Attribute):
        return [_Place(m, v, {}) for m, v in given_to_field(project, module, node)]
    if not isinstance(node, ast.Name):
        return None
    if node.id in place.given and place.function is module.function_of(node):
        bound = bindings_of(module, node)
        return [place.given[node.id]] if len(bound) == 1 else None
    held: list[_Place] = []
    for binding in reaching(module, node, bindings_of(module, node)):
        function = module.function_of(node)
        if binding.parameter:
            found = list(handed_over(project, module, function, node.id)) if function is not None else []
            if not found or any(v is None for _, v in found):
                return None
            held += [_Place(m, v, {}) for m, v in found if v is not None]
        elif binding.value is None or binding.part:
            return None
        else:
            held.append(replace(place, node=binding.value))
    return held


def _given_back(project: Project, place: _Place, call: ast.Call) -> list[_Place] | None:
    """What a function of the project gives for this call."""
    site = called_function(project, place.module, call)
    if site is None or site.node.name == "__init__":
        return None
    given = bind(site.node, call, bound=is_bound(site.module, site.node))
    handed = {name: replace(place, node=value) for name, value in (given or {}).items()}
    return [_Place(site.module, v, handed, site.node) for v in returned(site.node, site.module)]


# Sets


def _set_in(project: Project, place: _Place, depth: int) -> bool | None:
    """None for what is no set; else whether its elements are shown to be texts."""
    node, module = place.node, place.module
    if depth > _DEPTH:
        return None
    if isinstance(node, (ast.Set, ast.SetComp)):
        return has_texts(module, node, 0) or (isinstance(node, ast.Set) and any(has_texts(module, e, 0) for e in node.elts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, _JOINS):
        return _any_set(project, [replace(place, node=node.left), replace(place, node=node.right)], depth)
    if isinstance(node, ast.Name):
        made = _held(project, place)
        found = [_set_in(project, p, depth + 1) for p in made or ()]
        known = [f for f in found if f is not None]
        return (any(known) or _is_filled_with_texts(module, node)) if known and len(known) == len(found) else None
    if not isinstance(node, ast.Call):
        return None
    name = qualified(module, node.func)
    if name in ("set", "frozenset"):
        return has_texts(module, node, 0)
    if last(name) == "reduce" and len(node.args) > 1:
        return _set_of_each(project, replace(place, node=node.args[1]), depth + 1)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_SETS:
        if dotted(node.func.value) == "set" and node.args and isinstance(node.args[0], ast.Starred):
            return _set_of_each(project, replace(place, node=node.args[0].value), depth + 1)
        return _set_in(project, replace(place, node=node.func.value), depth + 1)
    return _any_set(project, _given_back(project, place, node) or [], depth, each=True)


def _any_set(project: Project, places: list[_Place], depth: int, *, each: bool = False) -> bool | None:
    """each: all of them have to be sets."""
    found = [_set_in(project, p, depth + 1) for p in places]
    known = [f for f in found if f is not None]
    return any(known) if known and (not each or len(known) == len(found)) else None


def _set_of_each(project: Project, place: _Place, depth: int) -> bool | None:
    """Of a list of sets: what they hold."""
    node = place.node
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _set_in(project, replace(place, node=node.elt), depth + 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        return _any_set(project, [replace(place, node=e) for e in node.elts], depth, each=True)
    if isinstance(node, ast.Name) and depth <= _DEPTH:
        held = _held(project, place) or []
        return _set_of_each(project, held[0], depth + 1) if len(held) == 1 else None
    return None


def _is_filled_with_texts(module: SourceModule, name: ast.Name) -> bool:
    """`names.add(path.stem)`, in the function of the name."""
    function = module.function_of(name)
    for call in module.calls_named("add"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name.id and call.args:
            if module.function_of(call) is function and has_texts(module, call.args[0], 0):
                return True
    return False


def _makes_text_of(node: ast.expr, name: str) -> bool:
    """`os.path.join(folder, name + ".png")`."""
    for inner in walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
            ends = [inner.left, inner.right]
            texts = any(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in ends)
            if texts and any(dotted(e) == name for e in ends):
                return True
        if isinstance(inner, ast.Call) and last(dotted(inner.func)) in ("join", "Path", "open"):
            if any(isinstance(n, ast.Name) and n.id == name for a in inner.args for n in walk(a)):
                return True
    return False
