"""Does a branch leave its function above the call that starts the program's ranks? What it does is one process's work.

    if args.only_settings:
        write_settings(args)
        return
    fabric.launch()  # each process that it starts comes here by itself, and none by the branch

A call that joins the processes of a launcher starts none: there every rank may take the branch.
"""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import made_as_fabric
from codemods.analysis.conditions import is_main_block
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.names import end_of, qualified
from codemods.analysis.ranks.leaving import is_end
from codemods.files.source import SourceModule, once_a_module
from codemods.store.project import Project

_SPAWNS = frozenset({"spawn", "start_processes", "notebook_launcher"})
_FAMILIES = ("torch.multiprocessing.", "torch.multiprocessing.spawn.", "accelerate.")


def is_left_before_start(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for a place in such a branch of a program that no command launches as several processes."""
    if not _mentions_a_start(module) or (block := _leaving_block(module, node)) is None:
        return False
    end, function = block[-1].end_lineno or block[-1].lineno, module.function_of(block[-1])
    started = [c for c in _starting(project, module) if module.function_of(c) is function]
    if not started or any(c.lineno <= end for c in started):
        return False
    return not any(s.several and s.path == module.path for s in starts(project))


def _leaving_block(module: SourceModule, node: ast.AST) -> list[ast.stmt] | None:
    """The block of an `if` that holds the node and ends with a `return` or an exit, where it stands in no loop."""
    found: list[ast.stmt] | None = None
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            break
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            return None
        if isinstance(up, ast.If) and not is_main_block(up) and below is not up.test:
            block = up.body if any(s is below for s in up.body) else up.orelse
            found = block if isinstance(block[-1], ast.Return) or is_end(block[-1]) else found
        below = up
    return found


@once_a_module
def _mentions_a_start(module: SourceModule) -> bool:
    return module.holds(b".launch(") or any(module.holds(f"{name}(".encode()) for name in _SPAWNS)


def _starting(project: Project, module: SourceModule) -> list[ast.Call]:
    """The calls of the file that start ranks: `fabric.launch()`, `mp.spawn(…)`."""
    return project.memo(("starts ranks", module.path), lambda: [c for c in module.nodes(ast.Call) if _starts(project, module, c)])


def _starts(project: Project, module: SourceModule, call: ast.Call) -> bool:
    end = end_of(call.func)
    if end == "launch" and isinstance(call.func, ast.Attribute):
        return made_as_fabric(project, module, call.func.value)
    return end in _SPAWNS and qualified(module, call.func).startswith(_FAMILIES)
