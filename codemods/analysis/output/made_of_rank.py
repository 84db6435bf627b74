"""Is a value put together from the rank itself, as a dict, a text or a number: `{"": int(os.environ["LOCAL_RANK"])}`?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.runtime.lazy_pattern import lazy

_PUT_TOGETHER = frozenset({"str", "repr", "format", "join", "dict", "OrderedDict", "int", "update"})
# Whole names: `rank_loss` and `recall_rank5` are numbers of the work.
_RANK = lazy(
    r"(?:(?:global|local|node|world|proc|process|my|get|ddp|dist)_?)*rank|\w*process_index|getpid|gethostname", re.IGNORECASE
)
_VARIABLES = frozenset(
    {"RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}
)


def is_made_of_rank(node: ast.AST) -> bool:
    """True for an expression that shows the rank. What is worked out by a call of the work is not asked."""
    return any(is_rank_by_name(part) or _is_read_from_launcher(part) for part in shown_parts(node))


def is_rank_by_name(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and _RANK.fullmatch(end_of_name(node)) is not None


def end_of_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def shown_parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that a value shows. What a call of the work is given is not shown: `loss.to(device)`."""
    yield node
    if isinstance(node, ast.Call):
        yield node.func
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or end_of_name(node.func) not in _PUT_TOGETHER:
            return
    for below in ast.iter_child_nodes(node):
        yield from shown_parts(below)


def _is_read_from_launcher(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return dotted(node.value).endswith("environ") and _is_variable(node.slice)
    asks = isinstance(node, ast.Call) and dotted(node.func).endswith(("environ.get", "getenv"))
    return asks and isinstance(node, ast.Call) and bool(node.args) and _is_variable(node.args[0])


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _VARIABLES
