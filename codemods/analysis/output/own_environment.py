"""The project's own function that reads the rank from what launchers set, Lightning's too: known above the Trainer as well."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import find_function
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.rewriting.imports import plan_rank_zero_only
from codemods.store.project import Project

_NAMES = ("get_rank", "get_global_rank", "get_dist_rank")
# What the launchers call the rank; Lightning sets LOCAL_RANK in the processes that it starts itself.
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"})
_NEEDED = "LOCAL_RANK"
_READS = ("environ.get", "getenv")


def own_rank_of_environment(project: Project, module: SourceModule) -> str:
    """`get_rank()` of a file that trains with Lightning and asks it already; "" where there is none."""
    if not module.holds(b".fit(") or not module.holds(b"rank") or plan_rank_zero_only(module) is None:
        return ""
    for call in module.calls_named(*_NAMES):
        text = dotted(call.func)
        site = find_function(project, module, text) if not (call.args or call.keywords) and "." not in text else None
        if site is not None and _reads_the_environment(site.node):
            return f"{text}()"
    return ""


def _reads_the_environment(function: FunctionNode) -> bool:
    """True for a function that gives back a variable of a launcher as a number, 0 without one, and does nothing else."""
    if function.args.args or function.decorator_list or not isinstance(function.body[-1], ast.Return):
        return False
    nodes = [n for s in function.body for n in walk(s)]
    named = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isupper()}
    if _NEEDED not in named or not named <= _VARIABLES:
        return False
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    if not all(dotted(c.func).endswith(_READS) or dotted(c.func) == "int" for c in calls):
        return False
    return _is_zero(function.body[-1].value)


def _is_zero(value: ast.expr | None) -> bool:
    """True for `0`, and for `int(os.environ.get("LOCAL_RANK", 0))`."""
    if isinstance(value, ast.Call) and last(dotted(value.func)) == "int" and len(value.args) == 1:
        read = value.args[0]
        return isinstance(read, ast.Call) and len(read.args) == 2 and _is_zero(read.args[1])
    return isinstance(value, ast.Constant) and value.value in (0, "0")
