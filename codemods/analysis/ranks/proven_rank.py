"""Is an expression shown to be the number of a process among all nodes, over names, fields, helpers, options and callers?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import end_of, qualified
from codemods.analysis.ranks.counted_among import environment, is_node_index, sets_environment
from codemods.analysis.ranks.values_behind import Value, values_behind
from codemods.data.rank_names import HOLDERS, LOCAL_NAMES
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_GLOBAL = frozenset({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_LOCAL = frozenset(n for n in LOCAL_NAMES if n.isupper())
_OPTIONS = 8  # a project with more scripts that take the option says nothing of the one in question


def is_proven_global(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where every value that the expression may have is the rank of the process group, or what a launcher calls it."""
    if "rank" not in _word(node).lower():
        return False
    found = _values(project, module, node)
    return bool(found) and all(_is_global(project, value) for value in found)


@record
class WorkedOut:
    """local: the number of the process on its node, in the sum that makes the global rank of it."""

    module: SourceModule
    local: ast.expr


def worked_out(project: Project, module: SourceModule, node: ast.expr) -> WorkedOut | None:
    """The first sum behind an expression, where each of its values is `node_rank * gpus + gpu`."""
    if "rank" not in _word(node).lower():
        return None
    found = [_local_in(value) for value in _values(project, module, node)]
    return found[0] if found and None not in found else None


def _local_in(value: Value) -> WorkedOut | None:
    total = value.node
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add):
        return None
    for product, local in ((total.left, total.right), (total.right, total.left)):
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and not isinstance(local, ast.Constant):
            if any(is_node_index(value.module, side) for side in (product.left, product.right)):
                return WorkedOut(value.module, local)
    return None


def local_beside(project: Project, module: SourceModule, node: ast.expr) -> str | None:
    """`args.local_rank` beside `args.rank`, where every value that it may have is the number on the node."""
    if not isinstance(node, ast.Attribute):
        return None
    other = ast.copy_location(ast.Attribute(node.value, "local_rank", ast.Load()), node)
    found = _values(project, module, other)
    if not found or not all(environment(v.module, v.node) in _LOCAL for v in found):
        return None
    return f"{module.text_of(node.value)}.local_rank"


def _word(node: ast.expr) -> str:
    return end_of(node.func if isinstance(node, ast.Call) else node)


def _values(project: Project, module: SourceModule, node: ast.expr) -> list[Value]:
    """The values behind an expression but constants, which stand for a run of one process."""
    found: list[Value] = []
    for value in values_behind(project, module, node):
        option = list(_of_option(project, value.node))
        found += [v for home, given in option for v in values_behind(project, home, given)] or [value]
    return [v for v in found if not isinstance(v.node, ast.Constant)]


def _of_option(project: Project, node: ast.expr) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What `--rank` is where nobody gives it: a launcher gives no options to the ranks, but variables that the default reads."""
    if not isinstance(node, ast.Attribute) or end_of(node.value) not in HOLDERS - {"self", "cls", "dist"}:
        return
    name = f"--{node.attr}"
    paths = [p for p in project.files_containing(name.encode()) if not is_test_file(p)]
    for path in paths if len(paths) <= _OPTIONS else ():
        module = project.module(path)
        for call in module.calls_named("add_argument") if module is not None else ():
            if module is None or not any(isinstance(a, ast.Constant) and a.value == name for a in call.args):
                continue
            default = next((k.value for k in call.keywords if k.arg == "default"), None)
            yield module, default if default is not None else call.func  # without a default it is whatever is given


def _is_global(project: Project, value: Value) -> bool:
    if variable := environment(value.module, value.node):
        return variable in _GLOBAL and not sets_environment(project, variable)
    node = value.node
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return qualified(value.module, node.func) == "torch.distributed.get_rank"
