"""Settings that are written in Python: `hp.num_devices` of a module or a class with `num_devices = 1` at its top.

And fields of a class that the project's own files make, with their values: `TrainConfig(devices=1)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import find_class
from codemods.analysis.distribution import is_test_file
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


def field_values(project: Project, field: str) -> list[ast.expr]:
    """All values that a field of settings is given in the project's Python; none where some value of it is not to be seen.

    By its class (`devices: int = 1`), where one is made (`TrainConfig(devices=1)`), and behind it (`config.train.devices = 1`).
    """
    word = field.encode()
    holding = [p for p in project.files_containing(word) if not is_test_file(p)]
    by_text = re.compile(rb"[\"']-*" + re.escape(word).replace(b"_", b"[-_]") + rb"[\"']")
    if any(by_text.search(project.read(p) or b"") for p in holding):
        return []  # an option, or a key that comes from somewhere else
    read = [m for p in holding if (m := project.module(p)) is not None]
    given = [value for module in read for value in _given(module, field)]
    declared = any(_declares(module, field) for module in read)
    return [v for v in given if v is not None] if declared and None not in given else []


def _given(module: SourceModule, field: str) -> Iterator[ast.expr | None]:
    """The values of a field in one file, None for one that is not seen; what only hands the field on gives it none."""
    for call in module.nodes(ast.Call):
        yield from (k.value for k in call.keywords if k.arg == field and not _is_field(k.value, field))
    for assign in module.nodes(ast.Assign):
        yield from (assign.value for t in assign.targets if _is_field(t, field) or _is_in_a_class(module, assign, t, field))
    for noted in module.nodes(ast.AnnAssign):
        if noted.value is not None and (_is_field(noted.target, field) or _is_in_a_class(module, noted, noted.target, field)):
            yield noted.value
    for changed in module.nodes(ast.AugAssign):
        if _is_field(changed.target, field):
            yield None


def _is_field(node: ast.expr, field: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == field


def _is_in_a_class(module: SourceModule, statement: ast.stmt, target: ast.expr, field: str) -> bool:
    return isinstance(target, ast.Name) and target.id == field and isinstance(module.parent(statement), ast.ClassDef)


def _declares(module: SourceModule, field: str) -> bool:
    """True where a class of the file names the field: `devices: int`."""
    return any(_is_in_a_class(module, noted, noted.target, field) for noted in module.nodes(ast.AnnAssign))


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
