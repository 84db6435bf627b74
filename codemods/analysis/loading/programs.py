"""Which files one training program is made of, whether it wraps its model for several processes, and how it seeds random numbers."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.passes import CLIMBS, Pass
from codemods.analysis.names import last, qualified
from codemods.analysis.ranks.uses import uses_of
from codemods.project import Project
from codemods.source import SourceModule

MOST_IMPORTERS = 20


def files_of(project: Project, found: Pass) -> tuple[SourceModule, ...]:
    """The files of a pass and its callers."""
    out: dict[str, SourceModule] = {found.module.path: found.module, found.backward.module.path: found.backward.module}
    edge: list[tuple[SourceModule, ast.AST]] = [(found.module, found.loop)]
    for _ in range(CLIMBS):
        above: list[tuple[SourceModule, ast.AST]] = []
        for module, node in edge:
            function = module.function_of(node)
            if function is None:
                continue
            for site in uses_of(project, module, function).outside_tests().calls:
                if not is_test_file(site.module.path):
                    out.setdefault(site.module.path, site.module)
                    above.append((site.module, site.call))
        edge = above[:8]
    return tuple(out.values())


def wrap_in(module: SourceModule) -> ast.Call | None:
    """The first `DistributedDataParallel(...)` of torch in a file."""
    for call in module.calls_named("DistributedDataParallel", "DDP", "NativeDDP"):
        name = qualified(module, call.func)
        if last(name) == "DistributedDataParallel" and name.startswith("torch."):
            return call
    return None


def wraps(project: Project, found: Pass, *others: SourceModule) -> tuple[SourceModule, ast.Call] | None:
    """Where the program of a pass wraps its model in DistributedDataParallel, as far as its files show it."""
    for module in (*files_of(project, found), *others):
        if (call := wrap_in(module)) is not None:
            return module, call
    return None


def starts_group_before(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where the function of `node` has started the process group above it, whatever else is true: by itself or by a helper."""
    statement = module.statement_of(node)
    function = module.function_of(node)
    body = function.body if function is not None else module.tree.body
    for above in body:
        if above.lineno >= statement.lineno:
            return False
        if not isinstance(above, (ast.Expr, ast.Assign)) or not isinstance(above.value, ast.Call):
            continue
        if last(qualified(module, above.value.func)) == "init_process_group":
            return True
        helper = called_function(project, module, above.value)
        for inner in helper.node.body if helper is not None else ():
            value = inner.value if isinstance(inner, (ast.Expr, ast.Assign)) else None
            if helper is not None and isinstance(value, ast.Call):
                if last(qualified(helper.module, value.func)) == "init_process_group":
                    return True
    return False


def reached(project: Project, module: SourceModule, depth: int = 3) -> frozenset[str]:
    """The files that a script imports, and those that they import."""
    found: set[str] = {module.path}
    edge = [module]
    for _ in range(depth):
        new: list[SourceModule] = []
        for near in edge:
            for items in near.imports.values():
                for item in items:
                    resolved = project.resolve(item.dotted, near.path)
                    if resolved is not None and resolved.path not in found:
                        found.add(resolved.path)
                        other = project.module(resolved.path)
                        new += [other] if other is not None else []
        edge = new
    return frozenset(found)


def same_program(project: Project, one: SourceModule, other: SourceModule) -> bool:
    """True where one of two files imports the other, or a script imports both."""
    if other.path in reached(project, one) or one.path in reached(project, other):
        return True
    stem = one.path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    for path in project.files_importing(stem)[:MOST_IMPORTERS]:
        module = project.module(path) if not is_test_file(path) else None
        if module is not None and {one.path, other.path} <= reached(project, module):
            return True
    return False
