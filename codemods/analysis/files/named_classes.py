"""Classes that a program takes out of a module by their names: `getattr(sets, name)(root)`, `eval("sets." + name)(root)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassSite, find_class
from codemods.analysis.files.loose_ends import brought_in_by
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_HEAD = lazy(r"([A-Za-z_][\w.]*)\.")
_HOPS = 3  # the file, the packages that hand it on, the file that asks for the name
_FILES = 60


def places_by_name(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls that make an object of the constructor's class where a name says that it is the one."""
    owner = module.parent(function)
    if function.name != "__init__" or not isinstance(owner, ast.ClassDef) or module.function_of(owner) is not None:
        return
    for path in brought_in_by(project, module.path, hops=_HOPS, most=_FILES):
        data = project.read(path) or b""
        other = project.module(path) if b"getattr(" in data or b"eval(" in data else None
        for call in other.nodes(ast.Call) if other is not None else ():
            holder = holder_of_named(other, call) if other is not None else ""
            site = find_class(project, other, f"{holder}.{owner.name}") if other is not None and holder else None
            if other is not None and site is not None and site.module.path == module.path and site.node is owner:
                yield other, call


def classes_by_name(project: Project, module: SourceModule, call: ast.Call) -> Iterator[ClassSite]:
    """The classes of the module of which `call` makes the one that a name says."""
    holder = holder_of_named(module, call)
    root, _, rest = holder.partition(".")
    for found in module.imports.get(root, ()) if holder else ():
        resolved = project.resolve(f"{found.dotted}.{rest}" if rest else found.dotted, module.path)
        home = project.module(resolved.path) if resolved is not None and not resolved.rest else None
        if home is None:
            continue
        names = (*(c.name for c in home.nodes(ast.ClassDef)), *(n for n in home.imports if n[:1].isupper()))
        for name in dict.fromkeys(names):
            if (site := find_class(project, module, f"{holder}.{name}")) is not None:
                yield site
        return


def holder_of_named(module: SourceModule, call: ast.Call) -> str:
    """`sets` of `getattr(sets, name)(root)`, also where a name of the function holds what is found; "" for other calls."""
    found: list[ast.expr] = [call.func]
    if isinstance(call.func, ast.Name):
        found = assigned(module, call.func, call.func.id)
    holders = {_holder(value) for value in found}
    return holders.pop() if len(holders) == 1 else ""


def _holder(value: ast.expr) -> str:
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    first = value.args[0]
    if dotted(value.func) == "getattr" and len(value.args) >= 2:
        return "" if isinstance(value.args[1], ast.Constant) else dotted(first)
    return _evaluated(first) if dotted(value.func) == "eval" else ""


def _evaluated(text: ast.expr) -> str:
    """`sets` of the texts `"sets." + name`, `f"sets.{name}"` and `"sets.{}".format(name)`."""
    head: ast.expr | None = None
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add) and not isinstance(text.right, ast.Constant):
        head = text.left
    elif isinstance(text, ast.JoinedStr) and len(text.values) == 2:
        head = text.values[0]
    elif isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute) and text.func.attr == "format":
        form = text.func.value
        if isinstance(form, ast.Constant) and isinstance(form.value, str) and form.value.endswith("{}"):
            head = ast.Constant(form.value[:-2])
    said = _HEAD.fullmatch(head.value) if isinstance(head, ast.Constant) and isinstance(head.value, str) else None
    return said.group(1) if isinstance(said, re.Match) else ""
