"""Places that take the number of a Slurm task for the rank where a launcher has set one: `if "RANK" in os.environ:` says so.

All processes of a torchrun that runs as one task inherit the number of that task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, end_of
from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.launcher_order import Order
from codemods.api.findings import ReplaceExpression
from codemods.files.source import SourceModule, walk

_OF_PROCESS = {"SLURM_PROCID": "RANK", "SLURM_LOCALID": "LOCAL_RANK", "SLURM_NTASKS": "WORLD_SIZE", "SLURM_NPROCS": "WORLD_SIZE"}
_MEANT = {"RANK": "rank", "LOCAL_RANK": "rank", "WORLD_SIZE": "world"}


def tasks_for_ranks(module: SourceModule) -> Iterator[Order]:
    """The reads of a file, under a test that holds only where the launcher's variables are set."""
    for test in module.nodes(ast.If):
        launched = next((v for part in conjuncts(test.test) if (v := _set_where(module, part))), "")
        if not launched:
            continue
        reads = [n for s in test.body for n in walk(s) if isinstance(n, (ast.Subscript, ast.Call)) and environment(module, n)]
        asked = {environment(module, n) for n in reads}
        for node in reads:
            variable = environment(module, node)
            own = _OF_PROCESS.get(variable, "")
            if not own or own in asked or not _is_the_number(module, node, own):
                continue
            key = node.slice if isinstance(node, ast.Subscript) else node.args[0]
            quote = module.text_of(key)[:1]
            edit = ReplaceExpression(module.path, module.span(key), f"{quote}{own}{quote}")
            yield Order(node, variable, (edit,), under=launched)


def _set_where(module: SourceModule, test: ast.expr) -> str:
    """The launcher's variable that is set wherever the test holds; "" where it says nothing of the kind."""
    if isinstance(test, ast.Name):
        value = only_value(bindings_of(module, test))
        return _set_where(module, value) if isinstance(value, ast.Compare) else ""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, ast.In) and isinstance(left, ast.Constant) and end_of(right) == "environ":
        return str(left.value) if left.value in _MEANT else ""
    if isinstance(left, ast.Call) and dotted(left.func) == "int" and len(left.args) == 1:
        left = left.args[0]
    variable = environment(module, left)
    if variable not in _MEANT or not isinstance(left, ast.Call):
        return ""
    default = left.args[1] if len(left.args) > 1 else None
    if default is None:
        return variable if isinstance(op, ast.IsNot) and isinstance(right, ast.Constant) and right.value is None else ""
    unset = ast.unparse(default).strip("'\"") == "-1"
    above = (isinstance(op, (ast.NotEq, ast.Gt)) and ast.unparse(right) == "-1") or (
        isinstance(op, ast.GtE) and ast.unparse(right) == "0"
    )
    return variable if unset and above else ""


def _is_the_number(module: SourceModule, node: ast.expr, own: str) -> bool:
    """True for `rank = int(os.environ["SLURM_PROCID"])` and `init_process_group(rank=…)`, not for a line that is printed."""
    statement = module.statement_of(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [end_of(t) for t in targets]
    for up in module.ancestors(node):
        if up is statement:
            break
        if isinstance(up, ast.Call) and dotted(up.func) != "int":
            names = []
        if isinstance(up, ast.keyword):
            names = [up.arg or ""]
            break
        if isinstance(up, ast.BinOp):
            return False
    return any(_MEANT[own] in n.lower() and "node" not in n.lower() for n in names)
