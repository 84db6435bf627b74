"""What stands behind `args.first`, `self.first`, `worker(first)`: the fields, properties and methods that may carry a rank."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, end_of, last
from codemods.analysis.ranks.object_class import answers_of_its_own, class_of_object
from codemods.analysis.ranks.rank_attributes import is_given_by_others, rank_attributes
from codemods.data.rank_names import HOLDERS, speaks_of_rank
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.store.project import Project

_PROPERTIES = frozenset({"property", "cached_property"})
_PARSED = frozenset({"args", "opt", "opts", "cfg", "config", "hparams", "options", "flags", "params"})
_GPU_NUMBERS = frozenset({"gpu", "gpu_id", "device_id"})  # what a process is told to work on, by its number on the node
_MANY = 4  # a name that is defined more often than this says nothing of its own


def field_bindings(project: Project | None, module: SourceModule, node: ast.Attribute) -> list[tuple[SourceModule, Binding]]:
    """The values that `args.first`, a field of arguments or of a configuration, is given: in this file, else in others."""
    holder = end_of(node.value)
    if holder in ("", "self", "cls"):
        return []
    if own := _fields(module).get((holder, node.attr)):
        return [(module, b) for b in own]
    if project is None:
        return []
    if not speaks_of_rank(node.attr) and node.attr not in _GPU_NUMBERS:
        return _fields_of_its_class(project, module, node)
    if holder not in HOLDERS:
        return []
    return project.memo(("rank field", holder, node.attr), lambda: _fields_elsewhere(project, holder, node.attr))


def options_elsewhere(project: Project, node: ast.Attribute) -> list[tuple[SourceModule, Binding]]:
    """What other files give a field of the options of a program, whatever it is called: `args.world_size = …`."""
    holder = end_of(node.value)
    if holder not in _PARSED:
        return []
    return project.memo(("rank field", holder, node.attr), lambda: _fields_elsewhere(project, holder, node.attr))


def _fields_of_its_class(project: Project, module: SourceModule, node: ast.Attribute) -> list[tuple[SourceModule, Binding]]:
    """What the class of `reports` gives the field of `reports.active`, where nobody else gives it anything."""
    if node.attr not in rank_attributes(project) or is_given_by_others(project, node.attr):
        return []
    site = class_of_object(project, module, node.value)
    given = class_values(project, class_facts(project, site.module, site.node)).given if site is not None else {}
    return [(g.site.module, Binding(g.value, g.value, part=g.part is not None)) for g in given.get(node.attr, ())]


def _fields_elsewhere(project: Project, holder: str, name: str) -> list[tuple[SourceModule, Binding]]:
    found: list[tuple[SourceModule, Binding]] = []
    for path in project.files_containing(f"{holder}.{name} = ".encode())[: _MANY + 1]:
        if (other := project.module(path)) is not None:
            found += [(other, b) for b in _fields(other).get((holder, name), ())]
    return found if found or holder in _PARSED else _fields_of_classes(project, name)


def _fields_of_classes(project: Project, name: str) -> list[tuple[SourceModule, Binding]]:
    """`self.primary = rank == 0` in the class of what `ctx.primary` asks, where few classes have such a field."""
    paths = project.files_containing(f"self.{name} = ".encode())
    modules = [m for p in paths if (m := project.module(p)) is not None] if len(paths) <= _MANY else []
    return [(m, b) for m in modules for b in _fields(m).get(("self", name), ())]


@once_a_module
def _fields(module: SourceModule) -> dict[tuple[str, str], list[Binding]]:
    out: dict[tuple[str, str], list[Binding]] = {}
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            pairs = [(target, assign.value)]
            if isinstance(target, ast.Tuple):
                values = assign.value.elts if isinstance(assign.value, ast.Tuple) else []
                pairs = list(zip(target.elts, values, strict=False)) if len(values) == len(target.elts) else []
            for part, value in pairs:
                if isinstance(part, ast.Attribute):
                    out.setdefault((end_of(part.value), part.attr), []).append(Binding(assign, value))
    return out


def inherited_bindings(
    project: Project | None, module: SourceModule, node: ast.Attribute
) -> tuple[SourceModule, list[Binding]] | None:
    """What `self.x` is given by a base class; None where its own class gives it something, or two files do."""
    owner = module.class_of(node) if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") else None
    if owner is None or project is None or not owner.bases:
        return None
    given = class_values(project, class_facts(project, module, owner)).given.get(node.attr, ())
    homes = {g.site.module.path: g.site.module for g in given}
    if len(homes) != 1:
        return None
    home = next(iter(homes.values()))
    return home, [Binding(home.statement_of(g.value), g.value, part=g.part is not None) for g in given]


def properties(project: Project | None, module: SourceModule, node: ast.Attribute) -> tuple[FunctionSite, ...]:
    """The definitions that the read of an attribute may run: of its own class, else every property of that name."""
    owner = module.class_of(node) if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") else None
    if owner is not None:
        site = _own_method(project, module, owner, node.attr)
        return (site,) if site and _is_property(site.node) else ()
    if not speaks_of_rank(node.attr):
        return _own_property(module, node) or _property_of_its_class(project, module, node)
    return tuple(s for s in _defined(project, module, node.attr) if _is_property(s.node))


def _own_property(module: SourceModule, node: ast.Attribute) -> tuple[FunctionSite, ...]:
    """`env.quiet`: the one property of that name in the file, where nothing else there has the name."""
    if end_of(node.value) in _PARSED or end_of(node.value) in module.imports:
        return ()
    site = _properties_here(module).get(node.attr)
    return (site,) if site is not None else ()


def _property_of_its_class(project: Project | None, module: SourceModule, node: ast.Attribute) -> tuple[FunctionSite, ...]:
    """`reports.active`: the property of the class, of this file or another, that `reports` holds an object of."""
    if project is None or node.attr not in rank_attributes(project):
        return ()
    site = class_of_object(project, module, node.value)
    if site is None or not answers_of_its_own(project, site, node.attr):
        return ()
    method = class_facts(project, site.module, site.node).method(node.attr)
    return (FunctionSite(method[0].module, method[1]),) if method and _is_property(method[1]) else ()


@once_a_module
def _properties_here(module: SourceModule) -> dict[str, FunctionSite]:
    named: dict[str, list[FunctionNode]] = {}
    for function in module.functions:
        if module.class_of(function) is not None:
            named.setdefault(function.name, []).append(function)
    given = {n.attr for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store)}
    given |= {k.arg for k in module.nodes(ast.keyword) if k.arg}
    own = {name: found[0] for name, found in named.items() if len(found) == 1 and _is_property(found[0]) and name not in given}
    return {name: FunctionSite(module, function) for name, function in own.items()}


def record_values(project: Project | None, node: ast.Attribute) -> list[tuple[SourceModule, ast.expr]]:
    """What records of the project are given for a field by its name: `Setting(rank=0, master=get_rank() == 0)`."""
    if project is None or not speaks_of_rank(node.attr) or end_of(node.value) in ("self", "cls"):
        return []
    return project.memo(("record field", node.attr), lambda: _in_records(project, node.attr))


def _in_records(project: Project, name: str) -> list[tuple[SourceModule, ast.expr]]:
    paths = {p for written in (f"{name}=", f"{name} =") for p in project.files_containing(written.encode())}
    modules = [m for p in sorted(paths) if (m := project.module(p)) is not None] if len(paths) <= _MANY * 2 else []
    given = ((m, c, k) for m in modules for c in m.nodes(ast.Call) for k in c.keywords if k.arg == name)
    return [(m, k.value) for m, c, k in given if end_of(c.func)[:1].isupper() and find_class(project, m, dotted(c.func))]


def called_sites(project: Project | None, module: SourceModule, call: ast.Call) -> tuple[FunctionSite, ...]:
    """The definitions that a call may run: the one that its name leads to, else every method of that name."""
    if (site := called_function(project, module, call)) is not None:
        return (site,)
    if not isinstance(call.func, ast.Attribute) or not speaks_of_rank(call.func.attr):
        return ()
    root = dotted(call.func).partition(".")[0]
    if root in ("self", "cls", "super", "") or root in module.imports:
        return ()
    found = _defined(project, module, call.func.attr)
    return tuple(s for s in found if not _is_property(s.node) and s.module.class_of(s.node) is not None)


def _own_method(project: Project | None, module: SourceModule, owner: ast.ClassDef, name: str) -> FunctionSite | None:
    if project is not None:
        method = class_facts(project, module, owner).method(name)
        return FunctionSite(method[0].module, method[1]) if method else None
    own = [f for f in owner.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and f.name == name]
    return FunctionSite(module, own[-1]) if own else None


def _defined(project: Project | None, module: SourceModule, name: str) -> tuple[FunctionSite, ...]:
    """Every definition of that name in the project; none where there are too many."""
    if project is None:
        return tuple(FunctionSite(module, f) for f in module.functions if f.name == name)
    return project.memo(("rank definitions", name), lambda: _defined_in(project, name))


def _defined_in(project: Project, name: str) -> tuple[FunctionSite, ...]:
    paths = project.files_containing(f"def {name}(".encode())
    if len(paths) > _MANY:
        return ()
    modules = [m for p in paths if (m := project.module(p)) is not None]
    return tuple(FunctionSite(m, f) for m in modules for f in m.functions if f.name == name)


def _is_property(function: FunctionNode) -> bool:
    return any(last(dotted(d)) in _PROPERTIES for d in function.decorator_list)
