"""Buffers of a model: the forward of its wrapper broadcasts them, so that it waits for all ranks."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.project import Project
from codemods.source import SourceModule, walk

_DEPTH = 12  # models inside of models that are looked at
_REGISTERING = frozenset({"register_buffer", "spectral_norm"})  # the latter keeps its vectors in buffers


def has_buffers(project: Project, site: ClassSite, seen: frozenset[int] = frozenset()) -> bool | None:
    """Does a model have buffers? None where it is put together from what the source does not show."""
    known: bool | None = False
    for base in class_facts(project, site.module, site.node).lineage[1:]:
        if id(base.node) not in seen and len(seen) < _DEPTH and has_buffers(project, base, seen | {id(site.node)}):
            return True
    for node in walk(site.node):
        if not isinstance(node, ast.Call):
            continue
        name, full = dotted(node.func), qualified(site.module, node.func)
        if "BatchNorm" in last(name) or last(name) in _REGISTERING or full.startswith(("torchvision.models.", "timm.")):
            return True
        if full.startswith(("torch.", "super", "self.")) or not name or id(node) in seen:
            continue
        part = find_class(project, site.module, name) if last(name)[:1].isupper() and len(seen) < _DEPTH else None
        if part is not None:
            found = False if id(part.node) in seen else has_buffers(project, part, seen | {id(site.node)})
            if found:
                return True
            known = None if found is None else known
        elif _is_part(site.module, node):
            known = None
    return None if known is False and _runs_what_it_is_given(site) else known


def _runs_what_it_is_given(site: ClassSite) -> bool:
    """True for a model round another one: `self.body = body` of a parameter, and `self.body(x)` or a method of it."""
    init = site.methods().get("__init__")
    if init is None:
        return False
    names = {a.arg for a in (*init.args.args, *init.args.kwonlyargs)}
    assigned = (n for n in walk(init) if isinstance(n, ast.Assign) and dotted(n.value) in names)
    held = {dotted(t) for n in assigned for t in n.targets} - {""}
    calls = (dotted(n.func) for n in walk(site.node) if isinstance(n, ast.Call))
    return any(called == name or called.startswith(f"{name}.") for called in calls for name in held)


def speaks_of_buffers(project: Project) -> bool:
    """False where no file of the project gives a model buffers: then a model that is not seen counts as one without."""
    words = (b"BatchNorm", b"register_buffer")
    return any(not is_test_file(path) for word in words for path in project.files_containing(word))


def _is_part(module: SourceModule, node: ast.Call) -> bool:
    """True for `self.name = make(...)` with a function or class from elsewhere: a part of the model that is not seen."""
    up = module.parent(node)
    given = isinstance(up, ast.Assign) and any(isinstance(t, ast.Attribute) for t in up.targets)
    return given and dotted(node.func).partition(".")[0] in module.imports
