"""Reads of what an imported file of the project lacks: `import settings as cfg`, and a `cfg.workdir` that nothing sets."""

from __future__ import annotations

import ast
import re
import sys
from posixpath import basename

from codemods.analysis.ranks.cannot_run import lacks
from codemods.files.source import SourceModule, once_a_module, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SETS_BY_NAME = lazy(rb"setattr\(|__dict__|\bvars\(|import_module|\breload\(")  # what may put names into a module


def is_absent(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True for an attribute of a module of the project that neither the module nor any other file gives it."""
    holder = node.value
    if not isinstance(holder, ast.Name) or not isinstance(node.ctx, ast.Load) or node.attr.startswith("__"):
        return False
    imported = module.imports.get(holder.id, ())
    if len(imported) != 1 or holder.id in _rebound(module):
        return False
    name = imported[0].dotted
    if not name or name.partition(".")[0] in sys.stdlib_module_names:
        return False
    return project.keep(("absent name", module.path, name, node.attr), lambda: _is_absent(project, module, name, node.attr))


def _is_absent(project: Project, module: SourceModule, source: str, name: str) -> bool:
    found = project.resolve(source, module.path)
    if found is None or found.rest or found.path.endswith("/__init__.py") or source.startswith("."):
        return False
    if not lacks(project, module, found.path, source.split("."), name):
        return False
    word = re.escape(name.encode())
    given = re.compile(rb"\." + word + rb"[ \t]*(?:[-+*/|]?=(?!=)|:[^=\n]*=(?!=))|[\"']" + word + rb"[\"']")
    if any(given.search(project.read(p) or b"") for p in project.files_containing(name.encode())):
        return False
    users = {found.path, *project.files_importing(basename(found.path).removesuffix(".py"))}
    return not any(_SETS_BY_NAME.search(project.read(p) or b"") for p in users)


@once_a_module
def _rebound(module: SourceModule) -> frozenset[str]:
    """The names that something else than an import binds somewhere in the file."""
    stored = {n.id for n in walk(module.tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return frozenset(stored | {a.arg for a in module.nodes(ast.arg)} | {f.name for f in module.functions})
