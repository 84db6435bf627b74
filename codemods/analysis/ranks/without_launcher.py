"""Places that only a run without a launcher comes to: `if "LOCAL_RANK" not in os.environ:`, `if args.local_rank == -1:`.

There is one process then. A local rank of -1 says it where the group is started under the opposite: a rank that nobody hands over
would be -1 on every process. What starts processes by itself, and a launcher with variables of its own, is asked for first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.branches import Branch, branches_round
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.importing import imported_files
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.rank_comparisons import constant_of
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.started_alone import starts_nothing
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_WORDS = (b"RANK", b"WORLD_SIZE", b"_rank", b"rank")
# These start processes to which they give variables of their own.
_OTHER_LAUNCHERS = lazy(rb"SLURM_|OMPI_|PMI_|\bhvd\b|deepspeed|\bProcess\(|\bPool\(")
_MOST_CALLS, _DEEPEST = 12, 3


def is_without_launcher(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where every way to `node` passes a test that only a run of one process passes."""
    return _comes_without(project, module, node, 0)


def _comes_without(project: Project, module: SourceModule, node: ast.AST, depth: int) -> bool:
    if any(_is_alone(project, module, b.test, holds=b.holds) for b in _branches(module, node)):
        return True
    function = module.function_of(node)
    if function is None or depth >= _DEEPEST or isinstance(module.parent(function), ast.ClassDef) or function.decorator_list:
        return False
    if module.function_of(function) is not None:
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not 0 < len(used.calls) <= _MOST_CALLS:
        return False
    return all(_comes_without(project, s.module, s.call, depth + 1) for s in used.calls)


def _branches(module: SourceModule, node: ast.AST) -> Iterator[Branch]:
    return branches_round(module, node, until=(ast.Lambda,)) if any(map(module.holds, _WORDS)) else iter(())


def _is_alone(project: Project, module: SourceModule, test: ast.expr, *, holds: bool) -> bool:
    """True where a test that came out as `holds` leaves runs of one process."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_alone(project, module, test.operand, holds=not holds)
    if isinstance(test, ast.BoolOp):
        every = isinstance(test.op, ast.And) == holds  # each part came out as the whole did; else one of them
        return (any if every else all)(_is_alone(project, module, v, holds=holds) for v in test.values)
    if isinstance(test, ast.Name):
        value = only_value(bindings_of(module, test))
        return isinstance(value, ast.Compare) and _is_alone(project, module, value, holds=holds)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if isinstance(test.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)) and _asks_for_variable(module, test):
        return holds == isinstance(test.ops[0], (ast.NotIn, ast.Is)) and _is_left_to_launchers(project, module)
    if isinstance(test.ops[0], (ast.Eq, ast.NotEq)) and constant_of(module, test.comparators[0]) == -1:
        asked = rank_source(module, test.left, project) is not None and bool(dotted(test.left))
        return asked and holds == isinstance(test.ops[0], ast.Eq) and _starts_beside(project, module, test.left)
    return False


def _asks_for_variable(module: SourceModule, test: ast.Compare) -> bool:
    """True for `"RANK" in os.environ`, `os.environ.get("RANK") is None`, with or without a `not`."""
    left, right = test.left, test.comparators[0]
    if isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return isinstance(left, ast.Constant) and left.value in _VARIABLES and qualified(module, right) == "os.environ"
    if not isinstance(left, ast.Call) or not (isinstance(right, ast.Constant) and right.value is None) or len(left.args) != 1:
        return False
    name = left.args[0].value if isinstance(left.args[0], ast.Constant) else None
    return name in _VARIABLES and qualified(module, left.func) in ("os.environ.get", "os.getenv")


def _is_left_to_launchers(project: Project, module: SourceModule) -> bool:
    """True where the program starts no processes by itself, and knows no launcher that sets other variables."""

    def ask() -> bool:
        texts = (project.read(p) or b"" for p in {module.path, *imported_files(project, module)})
        return starts_nothing(project, module) and not any(_OTHER_LAUNCHERS.search(text) for text in texts)

    return project.keep(("left to launchers", module.path), ask)


def _starts_beside(project: Project, module: SourceModule, rank: ast.expr) -> bool:
    """True where each start of the group in the file stands under the opposite test of the same rank."""
    starts = [c for c in module.nodes(ast.Call) if starts_group(module, c)]
    name = dotted(rank).rpartition(".")[2]
    return bool(starts) and starts_nothing(project, module) and all(
        any(_keeps_off(module, b.test, name, holds=b.holds) for b in branches_round(module, c)) for c in starts
    )


def _keeps_off(module: SourceModule, test: ast.expr, name: str, *, holds: bool) -> bool:
    """True where the test, coming out as `holds`, says that the rank is not -1."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _keeps_off(module, test.operand, name, holds=not holds)
    if isinstance(test, ast.BoolOp):
        every = isinstance(test.op, ast.And) == holds
        return (any if every else all)(_keeps_off(module, v, name, holds=holds) for v in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or dotted(test.left).rpartition(".")[2] != name:
        return False
    if constant_of(module, test.comparators[0]) != -1 or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return False
    return holds == isinstance(test.ops[0], ast.NotEq)
