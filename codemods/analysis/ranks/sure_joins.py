"""Does a program join a launcher's processes in each run, or only where it finds that a launcher has started it?

`init_process_group()` under no test ends a run of one process: whoever runs the program launches it. Beside
`if "RANK" in os.environ:` one process is as well.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.conditions import is_main_block
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.reached_scopes import inside, reached
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_OWN = frozenset({"RANK", "WORLD_SIZE", "MASTER_ADDR"})
_LEAVES = (ast.Return, ast.Raise)


def joins_in_every_run(
    project: Project, program: SourceModule, is_join: Callable[[Project, SourceModule, ast.Call], bool]
) -> bool:
    """True where what the program comes to under no test joins ranks, or reads a number that a launcher alone gives.

    is_join: says of a call that it joins ranks. False where the program gives itself the numbers of one process.
    """
    joins = False
    untested = _Untested()
    for module, scope in reached(project, program, untested):
        for node in inside(module, scope, untested):
            if _gives_itself(node):
                return False
            joins = joins or _needs_a_launcher(node) or (isinstance(node, ast.Call) and is_join(project, module, node))
    return joins


class _Untested:
    """Leaves out what stands under a test, in a block that may fail, and behind a test under which a function ends."""

    def followed(self, module: SourceModule, node: ast.AST) -> list[ast.AST] | None:
        if isinstance(node, ast.BoolOp):
            return [node.values[0]]  # `"RANK" in os.environ and int(os.environ["RANK"]) > 0`
        if isinstance(node, (ast.If, ast.IfExp)):
            block = isinstance(node, ast.If) and is_main_block(node)
            return None if block or _holds_for_ranks(node.test) or _starts_either_way(node) else [node.test]
        if isinstance(node, ast.Try):
            return list(node.finalbody) if node.handlers else None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(module.parent(node), ast.ClassDef) and _is_called_under_tests(module, node):
                return []
            end = next((i for i, s in enumerate(node.body) if isinstance(s, ast.If) and _may_leave(s)), len(node.body))
            return list(node.body[: end + 1])
        return None


def _is_called_under_tests(module: SourceModule, method: FunctionNode) -> bool:
    """True for a method whose calls on `self` all stand under a test: what comes to the class comes to all of its methods."""
    owner = module.parent(method)
    named = (c for c in module.calls_named(method.name) if dotted(c.func) == f"self.{method.name}")
    calls = [c for c in named if module.class_of(c) is owner]
    return bool(calls) and all(_is_under_a_test(module, c) for c in calls)


def _is_under_a_test(module: SourceModule, node: ast.AST) -> bool:
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and not _holds_for_ranks(up.test) and not _starts_either_way(up):
            return True
    return False


def _starts_either_way(test: ast.If | ast.IfExp) -> bool:
    """True for `init_process_group("gloo")` and, in the other arm, `init_process_group("nccl")`."""
    arms = (test.body, test.orelse) if isinstance(test, ast.If) else ()
    named = [{last(dotted(n.func)) for s in arm for n in ast.walk(s) if isinstance(n, ast.Call)} for arm in arms]
    return bool(named) and all("init_process_group" in names for names in named)


def _holds_for_ranks(test: ast.expr) -> bool:
    """True for a test that does not ask how the program was started: `True`, `not dist.is_initialized()` above the start, and
    `torch.cuda.device_count() > 1`, over which the machine decides.
    """
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.operand, ast.Call):
        return last(dotted(test.operand.func)) == "is_initialized"
    calls = [last(dotted(n.func)) for n in ast.walk(test) if isinstance(n, ast.Call)]
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return bool(calls) and set(calls) <= {"device_count", "is_available"} and names <= {"torch", "cuda"}


def _may_leave(statement: ast.If) -> bool:
    return any(isinstance(n, _LEAVES) for n in ast.walk(statement))


def _needs_a_launcher(node: ast.AST) -> bool:
    """True for `os.environ["RANK"]`, which one process does not have."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or last(dotted(node.value)) != "environ":
        return False
    return isinstance(node.slice, ast.Constant) and node.slice.value in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID")


def _gives_itself(node: ast.AST) -> bool:
    """True for `os.environ["RANK"] = "0"`, and for a group that is said to have one process."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return last(dotted(node.value)) == "environ" and isinstance(node.slice, ast.Constant) and node.slice.value in _OWN
    if not isinstance(node, ast.Call):
        return False
    if last(dotted(node.func)) == "setdefault" and node.args:
        return isinstance(node.args[0], ast.Constant) and node.args[0].value in _OWN
    sizes = [k.value for k in node.keywords if k.arg == "world_size"]
    return any(isinstance(v, ast.Constant) and v.value == 1 for v in sizes)
