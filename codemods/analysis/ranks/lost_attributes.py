"""Attributes of `self` that no class, and no other code of the project, ever sets: reading one raises AttributeError.

Only in classes of which everything is to be seen: no base of a library but those that give nothing, nothing set by name.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import ClassSite, class_facts, find_class, has_many_heirs, subclasses
from codemods.analysis.names import dotted, qualified
from codemods.analysis.unbound_names import names_bound_by
from codemods.files.source import SourceModule, child_nodes, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What sets attributes whose names are not written as such.
_BY_NAME = lazy(rb"setattr\(|__dict__|__getattr|__slots__|vars\(|namedtuple|attrs\b|attr\.s\b|pydantic")
# Bases that give their heirs no attribute that code reads on `self`.
_BARE = frozenset({"object", "abc.ABC", "torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset", "typing.Generic"})
# Another object than `self` is given the attribute, or it stands in a text that may be its name.
_GIVEN = (
    rb"(?<!\bself)\.[ \t]*NAME\b[ \t]*(?:[-+*/|&%@]|//|\*\*|<<|>>)?=(?!=)|(?<!\bself)\.[ \t]*NAME\b[ \t]*:[^=\n]*=(?!=)"
    rb"|(?<!\bself)\.[ \t]*NAME\b[ \t]*,[^()\n]*[^=!<>]=(?!=)|\.[ \t]*NAME\b[ \t]+in\b|\bas[ \t]+[\w.]+\.NAME|[\"']NAME[\"']"
)
_MOST = 40  # classes of one family


def is_lost_attribute(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True for `self.name` in a method where nothing that the object is made of binds `name`, and nobody sets it from outside."""
    if not isinstance(node.value, ast.Name) or node.value.id != "self" or not isinstance(node.ctx, ast.Load):
        return False
    place = module.method_of(node)
    if place is None or node.attr.startswith("__") or not _is_first_parameter(place[1]):
        return False
    owner = ClassSite(module, place[0])
    known = project.keep(("attributes of", module.path, owner.node.lineno), lambda: _attributes(project, owner))
    if known is None or node.attr in known:
        return False
    return project.keep(("attribute set from outside", node.attr), lambda: not _is_given(project, node.attr))


def _is_first_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    first = [*function.args.posonlyargs, *function.args.args][:1]
    return bool(first) and first[0].arg == "self" and not function.decorator_list


def _attributes(project: Project, owner: ClassSite) -> frozenset[str] | None:
    """What the classes of an object of this class, or of an heir, bind; None where something else may give it more."""
    if has_many_heirs(project, owner):
        return None
    family = [owner, *subclasses(project, owner)]
    names: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for site in family:
        facts = class_facts(project, site.module, site.node)
        if facts.unresolved:
            return None
        for part in facts.lineage:
            key = (part.module.path, part.node.lineno)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > _MOST or _BY_NAME.search(part.module.data) or not _is_plain(project, part):
                return None
            names |= _bound_in(part)
    return frozenset(names)


def _is_plain(project: Project, site: ClassSite) -> bool:
    """True for a class that is made as it is written, from classes of the project and such as give nothing."""
    if site.node.keywords or site.node.decorator_list:
        return False
    named = (base.value if isinstance(base, ast.Subscript) else base for base in site.node.bases)
    return all(qualified(site.module, b) in _BARE or find_class(project, site.module, dotted(b)) for b in named)


def _bound_in(site: ClassSite) -> set[str]:
    """The names of a class's body, and each attribute that its code stores, of whatever object."""
    bound = {n.attr for n in walk(site.node) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
    left: list[ast.AST] = [*site.node.body]
    while left:
        node = left.pop()
        bound.update(names_bound_by(node))
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            left.extend(child_nodes(node))
    return bound


def _is_given(project: Project, name: str) -> bool:
    given = re.compile(_GIVEN.replace(b"NAME", re.escape(name.encode())))
    return any(given.search(project.read(path) or b"") for path in project.files_containing(name.encode()))
