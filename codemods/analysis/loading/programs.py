"""Which files one training program is made of, whether it wraps its model, and where its process group is there."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.passes import CLIMBS, Pass
from codemods.analysis.loading.same_program import callers, same_program
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project


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
            for site in callers(project, module, function):
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
        if (call := wrap_in(module)) is not None and same_program(project, module.path, found.module.path):
            return module, call
    return None


def starts_group_before(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where the function of `node` has surely started the process group above it: by itself or by a helper."""
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
