"""A called name -> the project function it means: in the function round it, in the file, in another file."""

from __future__ import annotations

import ast
import builtins

from codemods.analysis.names import dotted, is_parameter
from codemods.analysis.package_names import given_by_package
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.runtime.record import replace
from codemods.store.corpus import may_give_function
from codemods.store.project import Project

Found = tuple[SourceModule, FunctionNode]
_BUILT_IN = frozenset(dir(builtins))


def find_function(project: Project, module: SourceModule, func: ast.expr, at: ast.AST) -> Found | None:
    """The function of the project that calling `func` at `at` runs, or None where it is none, or not plainly one."""
    name = dotted(func)
    if not name or is_parameter(module, name.partition(".")[0], at):
        return None
    if "." not in name and (local := _visible(module, name, at)) is not None:
        return module, local
    root, _, rest = name.partition(".")
    imported = module.imports.get(root, ())
    for found in imported:
        target = f"{found.dotted}.{rest}" if rest else found.dotted
        if (there := follow_function(project, target, module.path, 0)) is not None:
            return there
    return None if imported or rest else _brought_by_stars(project, module, root, 0)


def keeps_its_results(function: FunctionNode) -> bool:
    """True under `@cache`: who has asked the same before gets the answer without running anything."""
    named = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return any(dotted(d).rpartition(".")[2] in ("cache", "lru_cache") for d in named)


def _brought_by_stars(project: Project, module: SourceModule, name: str, depth: int) -> Found | None:
    """What `from other import *` brings in under that name."""
    if name.startswith("_") or name in _BUILT_IN:
        return None
    for star in module.imports.get("*", ()):
        target = replace(star, name=name).dotted
        if (there := follow_function(project, target, module.path, depth + 1)) is not None:
            return there
    return None


@once_a_module
def functions_by_name(module: SourceModule) -> dict[str, list[FunctionNode]]:
    """Every `def` of a file by its name, in source order."""
    out: dict[str, list[FunctionNode]] = {}
    for function in module.functions:
        out.setdefault(function.name, []).append(function)
    return out


def _visible(module: SourceModule, name: str, at: ast.AST) -> FunctionNode | None:
    """A function of that name defined in a function round `at`, or at the top level of the file, the last one winning."""
    named = functions_by_name(module).get(name)
    if not named:
        return None
    around = [up for up in module.ancestors(at) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for home in (*around, None):
        here = [f for f in named if module.function_of(f) is home]
        here = [f for f in here if not isinstance(module.parent(f), ast.ClassDef)]
        if here:
            return here[-1]
    return None


def follow_function(project: Project, target: str, importer: str, depth: int = 0) -> Found | None:
    """The function that the imported name `target` leads to, through re-exports; None where it is none of the project."""
    resolved = project.resolve(target, importer)
    if resolved is not None and not resolved.rest:
        resolved = given_by_package(project, resolved)
    if depth > 8 or resolved is None or len(resolved.rest) != 1:
        return None
    if not gives_function(project.read(resolved.path) or b"", resolved.rest[0].encode()):
        return None
    inner = project.module(resolved.path)
    if inner is None:
        return None
    name = resolved.rest[0]
    named = functions_by_name(inner).get(name, ())
    tops = [f for f in named if not inner.function_of(f) and not inner.class_of(f)]
    if tops:
        return inner, tops[-1]
    for found in inner.imports.get(name, ()):
        if (there := follow_function(project, found.dotted, inner.path, depth + 1)) is not None:
            return there
    return _brought_by_stars(project, inner, name, depth)


def gives_function(data: bytes, name: bytes) -> bool:
    """False where a file shows no function of that name, and hands none on that it gets with everything of another file."""
    return may_give_function(data, name) or b"import *" in data
