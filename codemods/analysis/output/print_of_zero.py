"""Does `print` speak on rank 0 alone, since the program has put one of its own in its place? So does DETR's.

`def print(*args, force=False): if is_master or force: builtin_print(*args)`, and `builtins.print = quiet` on the other ranks.
"""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import reached
from codemods.analysis.names import dotted, last
from codemods.analysis.output.muted_blocks import OF_OTHERS
from codemods.analysis.output.muted_print import add_with_callers, is_print_of_python
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ASKS = lazy(r"(^|_)(rank|is_(main|master|primary|chief|root)\w*|main_process|master_process|master)$")


def prints_on_zero_alone(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a `print` in a file of such a program, but for one that is forced (`force=True`)."""
    if not isinstance(call.func, ast.Name) or call.func.id != "print":
        return False
    if any(k.arg in (None, "force", "file") for k in call.keywords):
        return False
    paths = project.keep("files that print on rank 0 alone", lambda: frozenset(_found(project)))
    return bool(paths) and project.keep(
        ("prints on rank 0 alone", module.path), lambda: any(module.path in reached(project, path) for path in paths)
    )


def _found(project: Project) -> set[str]:
    """The files that put such a `print` in place, and those that call a function which does; none beside another sort."""
    found: set[str] = set()
    for path in project.files_containing(b".print = "):
        module = project.module(path) if not is_test_file(path) else None
        for assign in module.nodes(ast.Assign) if module is not None else ():
            if module is None or not any(is_print_of_python(module, target) for target in assign.targets):
                continue
            if not _is_quiet_elsewhere(project, module, assign):
                return set()
            add_with_callers(project, module, assign, found)
    return found


def _is_quiet_elsewhere(project: Project, module: SourceModule, assign: ast.Assign) -> bool:
    put = _function_named(module, assign)
    if ranks_at(module, assign, project=project) in OF_OTHERS:
        if isinstance(assign.value, ast.Lambda):
            return not any(isinstance(n, ast.Call) for n in walk(assign.value.body))
        return put is not None and not any(isinstance(n, ast.Call) for n in walk_scope(put))
    return put is not None and _asks_before_it_prints(module, put)


def _function_named(module: SourceModule, assign: ast.Assign) -> FunctionNode | None:
    """The function whose name the assignment takes: beside it, or at the top of the file."""
    if not isinstance(assign.value, ast.Name):
        return None
    named = [f for f in module.functions if f.name == dotted(assign.value)]
    here = [f for f in named if module.function_of(f) in (None, module.function_of(assign))]
    return here[0] if len(here) == len(named) == 1 else None


def _asks_before_it_prints(module: SourceModule, function: FunctionNode) -> bool:
    """True where each call of the kept `print` stands under a test of the rank."""
    calls = [n for n in walk_scope(function) if isinstance(n, ast.Call) and "print" in last(dotted(n.func))]
    return bool(calls) and all(_is_asked(module, call) for call in calls)


def _is_asked(module: SourceModule, call: ast.Call) -> bool:
    above = (up for up in module.ancestors(call) if isinstance(up, ast.If) and _asks(up.test))
    return any(statement is up for branch in above for statement in branch.body for up in module.ancestors(call))


def _asks(test: ast.expr) -> bool:
    """True for `is_master`, `is_master or force` and `rank == 0`."""
    if isinstance(test, ast.BoolOp):
        return any(_asks(value) for value in test.values)
    if isinstance(test, ast.Compare):
        beside = test.comparators[0]
        zero = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq) and isinstance(beside, ast.Constant) and beside.value == 0
        return zero and _asks(test.left)
    return _ASKS.search(last(dotted(test.func if isinstance(test, ast.Call) else test))) is not None
