"""Which values are the global rank, the answer to a test of it, or only the text of a variable."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, qualified
from codemods.analysis.output.minus_one import writes_minus_one
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.rank_tests import asks_the_rank
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

RANK_NAMES = frozenset({"rank", "global_rank", "world_rank"})


def asks_for_zero(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for the answer to a plain test of the global rank: `is_main = dist.get_rank() == 0`."""
    if not isinstance(value, ast.Compare) or writes_minus_one(module) or "-1" in module.text_of(value):
        return False
    asks = not is_text(module, value.left) and asks_the_rank(module, value, project)
    return asks and ranks_of_test(module, value, project=project) is Ranks.ZERO


def stands_for_zero(module: SourceModule, value: ast.expr) -> bool:
    """True where the group is asked, and the value is another one without a group."""
    return not isinstance(value, ast.Call) and asks_the_group(module, value)


def asks_the_group(module: SourceModule, value: ast.expr) -> bool:
    """True where the group itself is asked: whatever the name is, it holds the rank."""
    return any(isinstance(n, ast.Call) and qualified(module, n.func) == "torch.distributed.get_rank" for n in walk(value))


def is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 0


def is_global_rank(module: SourceModule, value: ast.expr) -> bool:
    text = module.text_of(value)
    if isinstance(value, ast.IfExp):  # `dist.get_rank() if dist.is_initialized() else 0`
        arms = (value.body, value.orelse)
        return all(is_zero(a) or is_global_rank(module, a) for a in arms) and not all(map(is_zero, arms))
    if is_text(module, value):
        return False
    if isinstance(value, ast.Call) and qualified(module, value.func) == "torch.distributed.get_rank":
        return True
    return "RANK" in text and "LOCAL" not in text and "environ" in text and isinstance(value, ast.Call)


def is_text(module: SourceModule, node: ast.expr, depth: int = 0) -> bool:
    """True for what may be the text of an environment variable: `os.environ["RANK"]` without `int(…)`."""
    if isinstance(node, ast.Subscript):
        return dotted(node.value).endswith("environ")
    if isinstance(node, ast.Call):
        return dotted(node.func).endswith(("environ.get", "getenv"))
    if isinstance(node, ast.BoolOp):
        return any(is_text(module, value, depth) for value in node.values)
    if isinstance(node, (ast.Name, ast.Attribute)) and depth < 3:
        return any(is_text(module, value, depth + 1) for value in values_of(module, node))
    return False
