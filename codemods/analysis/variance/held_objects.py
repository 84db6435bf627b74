"""Which class the objects in a collection are of, where each one that is seen being put there is of that one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import bare, own_field
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_MADE_ON_DEMAND = "defaultdict"  # its first argument makes what is missing
_DICTS = frozenset({"dict", "OrderedDict", "ModuleDict"})
_LISTS = frozenset({"list", "tuple", "ModuleList"})


@record
class Element:
    """One of the objects in `self.field`. of_list: it was taken out of it as out of a list; a dict gives its keys so."""

    field: str
    of_list: bool = False


def element_of_field(module: SourceModule, node: ast.expr) -> Element | None:
    """What `meter` is in `for meter in self.meters.values()`, and `self.meters[key]`; None for anything else."""
    if isinstance(node, ast.Subscript):
        return _element(node.value)
    function = module.function_of(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return None
    given = [n for n in walk_scope(function) if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)]
    sources = {_handed_out(module, name) for name in given}
    return next(iter(sources)) if len(sources) == 1 else None


def _element(source: ast.expr, *, of_list: bool = False) -> Element | None:
    name = own_field(dotted(source))
    return Element(name, of_list) if name else None


def _handed_out(module: SourceModule, name: ast.Name) -> Element | None:
    """What a loop hands out under that name."""
    up = module.parent(name)
    pair = up if isinstance(up, ast.Tuple) else None
    loop = module.parent(pair) if pair is not None else up
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)) or loop.target is not (pair or name):
        return None
    source, counted = bare(loop.iter), isinstance(loop.iter, ast.Call) and last(dotted(loop.iter.func)) == "enumerate"
    func = source.func if isinstance(source, ast.Call) else None
    keyed = isinstance(func, ast.Attribute) and func.attr == "items"
    if (pair is not None) != (counted or keyed) or (counted and keyed):
        return None
    if pair is not None and (len(pair.elts) != 2 or pair.elts[1] is not name):
        return None
    if isinstance(func, ast.Attribute):
        return _element(func.value) if func.attr in ("values", "items") else None
    return _element(source, of_list=True)


def class_held(project: Project, owner: ClassSite, element: Element) -> ClassSite | None:
    """The class of the objects in a field of a class of the project; None where several are put there, or none is seen."""
    key = ("class held", owner.module.path, owner.node.lineno, element)
    return project.memo(key, lambda: _class_held(project, owner, element))


def _class_held(project: Project, owner: ClassSite, element: Element) -> ClassSite | None:
    facts = class_facts(project, owner.module, owner.node)
    values, name = class_values(project, facts), element.field
    if element.of_list and not all(_is_list(g.value) for g in values.given.get(name, ())):
        return None  # a dict would give its keys
    made = [(g.site.module, m) for g in values.given.get(name, ()) for m in _made_in(g.value)]
    made += [(g.site.module, g.value) for g in values.items.get(name, ())]
    made += [(_file_of(facts.lineage, v), v) for v in values.fillers.get(name, ())]
    found = {
        (site.module.path, site.node.lineno): site
        for module, value in made
        if (site := _class_of(project, module, value)) is not None
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _is_list(value: ast.expr) -> bool:
    written = isinstance(value, (ast.List, ast.Tuple, ast.ListComp))
    return written or (isinstance(value, ast.Call) and last(dotted(value.func)) in _LISTS)


def _file_of(lineage: tuple[ClassSite, ...], value: ast.expr) -> SourceModule:
    """The file of the class of the lineage that puts it there."""
    return next((s.module for s in lineage if s.module.class_of(value) is s.node), lineage[0].module)


def _made_in(value: ast.expr) -> Iterator[ast.expr]:
    """The elements of a collection as it is written: `[A(), A()]`, `{"a": A()}`, `defaultdict(A)`, `[A() for _ in …]`."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        yield from value.elts
    elif isinstance(value, ast.Dict):
        yield from value.values
    elif isinstance(value, (ast.ListComp, ast.SetComp)):
        yield value.elt
    elif isinstance(value, ast.DictComp):
        yield value.value
    elif isinstance(value, ast.Call) and last(dotted(value.func)) == _MADE_ON_DEMAND and value.args:
        factory = value.args[0]
        yield factory.body if isinstance(factory, ast.Lambda) else factory
    elif isinstance(value, ast.Call) and value.args and last(dotted(value.func)) in _DICTS | _LISTS:
        yield from _made_in(value.args[0])


def _class_of(project: Project, module: SourceModule, value: ast.expr) -> ClassSite | None:
    """The class that `A(...)` makes an object of, or that `A` names."""
    name = dotted(value.func if isinstance(value, ast.Call) else value)
    return find_class(project, module, name) if name and last(name)[:1].isupper() else None
