"""Programs that insist on one visible GPU in each process: `assert torch.cuda.device_count() == 1` where the group is started."""

from __future__ import annotations

import ast

from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import qualified
from codemods.files.source import SourceModule, once_a_module
from codemods.store.project import Project

_COUNT = "torch.cuda.device_count"


def insists_on_one_gpu(project: Project, module: SourceModule) -> bool:
    """True where a file of the program ends a process that sees several GPUs, in the function that starts the group."""
    named = {path for word in (b"device_count() == 1", b"device_count() != 1") for path in project.files_containing(word)}
    asking = sorted(named & whole_program(project, module.path)) if named else []
    return any((other := project.module(path)) is not None and _insists(other) for path in asking)


@once_a_module
def _insists(module: SourceModule) -> bool:
    starting = {module.function_of(call) for call in module.calls_named("init_process_group")} - {None}
    asserted = (n for n in module.nodes(ast.Assert) if _compares(module, n.test, ast.Eq))
    raised = (
        n for n in module.nodes(ast.If)
        if _compares(module, n.test, ast.NotEq) and any(isinstance(s, ast.Raise) for s in n.body)
    )  # fmt: skip
    found = (n for nodes in (asserted, raised) for n in nodes)
    return any((home := module.function_of(n)) in starting and home is not None and n in home.body for n in found)


def _compares(module: SourceModule, test: ast.expr, how: type[ast.cmpop]) -> bool:
    """True for `torch.cuda.device_count() == 1`, or `!= 1`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], how):
        return False
    count, number = test.left, test.comparators[0]
    counted = isinstance(count, ast.Call) and qualified(module, count.func) == _COUNT
    return counted and isinstance(number, ast.Constant) and number.value == 1
