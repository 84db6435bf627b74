"""Settings that are written in Python: `hp.num_devices` of a module or a class with `num_devices = 1` at its top."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import find_class
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project


def setting_in_python(project: Project, module: SourceModule, node: ast.expr) -> ast.expr | None:
    """The only value that a setting of the project has; None for anything else, and where some file stores another one."""
    root, _, rest = dotted(node).partition(".")
    name = rest.rpartition(".")[2] or root
    if not root or root == "self" or _is_stored(project, name):
        return None
    imported = module.imports.get(root, ())
    if len(imported) == 1:
        found = project.resolve(".".join(filter(None, (imported[0].dotted, rest))), module.path)
        other = project.module(found.path) if found is not None and found.rest == (name,) else None
        if other is not None:
            return _only_value(other.tree.body, name)
    if not isinstance(node, ast.Attribute):
        return None
    site = find_class(project, module, _class_name(module, node.value))
    return _only_value(site.node.body, name) if site is not None else None


def _class_name(module: SourceModule, node: ast.expr) -> str:
    """The class that is named, or whose object a name is bound to: `cfg = Config()`."""
    bound = bindings_of(module, node) if isinstance(node, ast.Name) and node.id not in module.imports else []
    made = bound[0].value if len(bound) == 1 and not bound[0].part else None
    if isinstance(made, ast.Call) and not made.args and not made.keywords:
        return dotted(made.func)
    return dotted(node)


def _only_value(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    values: list[ast.expr | None] = []
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            values.append(getattr(statement, "value", None))
    return values[0] if len(values) == 1 else None


def _is_stored(project: Project, name: str) -> bool:
    """True where a file gives the field another value: `hp.num_devices = 4`, `setattr(hp, "num_devices", n)`, `Config(n=4)`."""
    word = re.escape(name.encode())
    stored = re.compile(
        rb"\." + word + rb"[ \t]*(?:[-+*/]?=(?!=)|:[^=\n]*=(?!=))|[\"']-*" + word.replace(b"_", b"[-_]") + rb"[\"']"
        rb"|[(,][ \t\n]*" + word + rb"[ \t]*=(?!=)"
    )
    return any(stored.search(project.read(p) or b"") for p in project.files_containing(name.encode()))
