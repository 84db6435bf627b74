"""Does every rank take the same way to a statement? Tests round it, and exits above it, made of configuration and counters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.exit_places import other_branch, same_loop
from codemods.analysis.short_texts import shorter
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk, walk_scope
from codemods.store.project import Project

_HOLDERS = frozenset({"args", "cfg", "config", "opt", "opts", "hparams", "training_args", "conf", "flags", "FLAGS"})
_COUNTERS = frozenset(
    {"epoch", "step", "global_step", "iteration", "iter_num", "it", "i", "batch_idx", "current_epoch", "max_epochs", "max_steps",
     "num_epochs", "total_steps", "completed_steps", "n_iter", "world_size", "num_processes", "distributed", "is_distributed",
     "ddp", "__name__", "sanity_checking", "initialized_distributed", "use_ddp", "start_epoch", "save_every", "log_every"}
)  # fmt: skip
_DEPTH = 4
_ROOTS = frozenset({"self", "trainer", "dist", "torch", "accelerator", "fabric", "int", "float", "str"})
_CALLS = frozenset(
    {"is_initialized", "is_available", "get_world_size", "isinstance", "hasattr", "getattr", "len", "bool", "max", "min"}
)


def is_same(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True where a test comes out the same on every rank.

    The variance analysis knows it of what the project computes before the eyes of the reader. It takes a call that nothing shows
    for the same, too, and a safe edit does not rest on that; there, and for settings that come from outside, the names count: a
    test of configuration, counters and constants.
    """
    value = variance(project).tested(module, test)
    if value.differs:
        return False
    return _is_of_settings(test) or (value.cause is Cause.SAME and _is_computed_here(project, module, test, _DEPTH))


def _is_computed_here(project: Project, module: SourceModule, value: ast.expr, depth: int) -> bool:
    """True for what is put together of constants, arithmetic and calls of functions that are seen."""
    if depth == 0:
        return False
    for node in walk(value):
        if isinstance(node, ast.Call):
            if last(dotted(node.func)) not in _CALLS and called_function(project, module, node) is None:
                return False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not _is_called(module, node):
            given = [b.value for b in bindings_of(module, node)]
            if not given or any(v is None or not _is_computed_here(project, module, v, depth - 1) for v in given):
                return False
        elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Lambda)) and not _is_called(module, node):
            return False
    return True


def _is_called(module: SourceModule, node: ast.expr) -> bool:
    """True for a name in the function of a call."""
    up = module.parent(node)
    while isinstance(up, ast.Attribute):
        node, up = up, module.parent(up)
    return isinstance(up, ast.Call) and up.func is node


def _is_of_settings(test: ast.expr) -> bool:
    heads: set[int] = set()
    for node in walk(test):
        if isinstance(node, ast.Call):
            heads.add(id(node.func))
            if last(dotted(node.func)) not in _CALLS:
                return False
        elif isinstance(node, ast.Attribute):
            name = dotted(node)
            parts = name.split(".")
            if id(node) not in heads and not (node.attr in _COUNTERS | _HOLDERS | _ROOTS or set(parts[:-1]) & _HOLDERS):
                return False
        elif isinstance(node, ast.Name) and id(node) not in heads:
            if node.id not in _COUNTERS | _HOLDERS | _ROOTS and not node.id.isupper():
                return False
    return True


def parting_ways(
    project: Project, module: SourceModule, node: ast.stmt, function: FunctionNode | None
) -> Iterator[tuple[int, str]]:
    """(line, what it is) of everything that may keep some ranks from `node`, the rank tests themselves aside."""
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, (ast.If, ast.While)) and not is_same(project, module, up.test):
            yield up.lineno, f"`{shorter(module, up.test)}` comes out the same on every rank"
        elif isinstance(up, ast.ExceptHandler):
            yield up.lineno, "every rank gets the exception"
    if function is None:
        return
    for leaving in project.memo(("exits of", module.path, id(function)), lambda: _exits(function)):
        if not stands_above(leaving, node):
            continue
        if isinstance(leaving, (ast.Continue, ast.Break)) and not same_loop(module, leaving, node):
            continue
        tests = [up for up in module.ancestors(leaving) if isinstance(up, ast.If) and _holds(module, function, up)]
        if not all(is_same(project, module, t.test) for t in tests) and not other_branch(module, leaving, node):
            word = type(leaving).__name__.lower()
            yield leaving.lineno, f"the {word} under `{shorter(module, tests[0].test)}` is taken by all or none"


def _exits(function: FunctionNode) -> list[ast.Return | ast.Continue | ast.Break]:
    return [n for n in walk_scope(function) if isinstance(n, (ast.Return, ast.Continue, ast.Break))]


def _holds(module: SourceModule, outer: ast.AST, node: ast.AST) -> bool:
    return any(up is outer for up in module.ancestors(node))
