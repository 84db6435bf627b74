"""What a comparison says of ranks: a rank beside 0, 1, -1 or None, as a number or as the text that the environment holds."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, name_or_field_bindings
from codemods.analysis.names import dotted, end_of, last
from codemods.analysis.ranks.rank_sets import Ranks, Split, negated
from codemods.analysis.ranks.rank_sources import imported_value, rank_source
from codemods.files.source import SourceModule
from codemods.store.project import Project

_NOT_SHOWN = object()
_UNKNOWN = Split(Ranks.UNKNOWN, Ranks.UNKNOWN)
# A text is never equal to a number: nobody passes.
_NEVER = Split(Ranks.UNKNOWN, Ranks.ALL, False)
_ONE_PROCESS = (-1, None, "")
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def comparison(
    module: SourceModule, left: ast.expr, op: ast.cmpop, right: ast.expr, project: Project | None, depth: int
) -> Split | None:
    """What `left op right` says of ranks; None where it has nothing to do with them.

    `rank in (-1, 0)` and `rank <= 0` count as rank 0, -1 and None being how a run without a process group is written;
    `rank != -1` asks whether there is one, with the same answer on every rank.
    """
    if isinstance(op, (ast.In, ast.NotIn)):
        found = _membership(module, left, right, project, depth)
        return found.turned if found and isinstance(op, ast.NotIn) else found
    value, kind = constant_of(module, right), type(op)
    if value is _NOT_SHOWN and isinstance(left, (ast.Constant, ast.UnaryOp)):
        left, value, kind = right, constant_of(module, left), _OPPOSITE.get(kind, kind)
    if value is not _NOT_SHOWN and not _may_be_rank(value):
        return None
    source = rank_source(module, left, project, depth)
    if source is None and value is _NOT_SHOWN:
        source = rank_source(module, right, project, depth)
    if source is None:
        return None
    if isinstance(value, int) and is_text(module, left, project):
        return _NEVER.turned if kind in (ast.NotEq, ast.IsNot) else _NEVER
    if source is Ranks.UNKNOWN or value is _NOT_SHOWN:
        return _UNKNOWN
    return _beside(source, kind, str(value))


def _may_be_rank(value: object) -> bool:
    """False for what no rank is compared with, and for what only tells a run with one process."""
    if value in _ONE_PROCESS or isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and value.isdigit())


def _beside(source: Ranks, kind: type[ast.cmpop], value: str) -> Split | None:
    here = Split(source, negated(source))
    if value == "0":
        if kind in (ast.Eq, ast.Is, ast.LtE):
            return here
        return here.turned if kind in (ast.NotEq, ast.IsNot, ast.Gt) else None  # `rank >= 0`: is this run distributed?
    if value == "1" and kind in (ast.Lt, ast.GtE):
        return here if kind is ast.Lt else here.turned
    return _UNKNOWN


def _membership(
    module: SourceModule, left: ast.expr, right: ast.expr, project: Project | None, depth: int
) -> Split | None:
    source = rank_source(module, left, project, depth)
    if isinstance(right, ast.Name) and source is not None:
        bound = bindings_of(module, right)
        right = bound[0].value if len(bound) == 1 and bound[0].value is not None and not bound[0].part else right
    values = [constant_of(module, e) for e in getattr(right, "elts", [])]
    if source is None:  # `rank in (-1, 0)` speaks of processes only, whatever else the file shows
        said = last(dotted(left)).lstrip("_") == "rank" and len(values) == 2 and set(map(str, values)) == {"-1", "0"}
        return Split(Ranks.ZERO, Ranks.OTHERS) if said else None
    named = {str(v) for v in values}
    if values and named <= {"-1", "None", ""}:
        return None
    numbers = [v for v in values if v is not None]
    if numbers and all(isinstance(v, int) for v in numbers) and is_text(module, left, project):
        return _NEVER
    return Split(source, negated(source)) if values and named <= {"-1", "0", "None", ""} else _UNKNOWN


def constant_of(module: SourceModule, node: ast.AST) -> object:
    """The value of a literal, or of a name that is bound to one literal only; `_NOT_SHOWN` for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, (int, float)) else _NOT_SHOWN
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        if len(bound) == 1 and isinstance(bound[0].value, (ast.Constant, ast.UnaryOp)) and not bound[0].part:
            return constant_of(module, bound[0].value)
    return _NOT_SHOWN


# The environment holds texts


def is_text(module: SourceModule, node: ast.AST, project: Project | None = None, depth: int = 0) -> bool:
    """True for a rank that is a text where it is set: `os.environ["RANK"]` without `int`, and names bound to that."""
    if depth > 4:
        return False
    if isinstance(node, ast.Subscript):
        return end_of(node.value) == "environ"
    if isinstance(node, ast.Call):
        name = end_of(node.func)
        holder = end_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        return name in ("getenv", "str") or (name == "get" and holder == "environ")
    if isinstance(node, ast.BoolOp):
        return is_text(module, node.values[0], project, depth + 1)
    if isinstance(node, ast.NamedExpr):
        return is_text(module, node.value, project, depth + 1)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    bound = name_or_field_bindings(module, node)
    if not bound and isinstance(node, ast.Name) and (imported := imported_value(module, node, project)) is not None:
        return is_text(imported[0], imported[1], project, depth + 1)
    values = [b.value for b in bound]
    given = [v for v in values if v is not None and not isinstance(v, ast.Constant)]
    return bool(given) and None not in values and all(is_text(module, v, project, depth + 1) for v in given)


def text_rank_compared_with_number(
    module: SourceModule, test: ast.AST, project: Project | None = None
) -> ast.Compare | None:
    """The comparison within a test that never holds: `os.environ["RANK"] == 0`, a text beside a number. None without one."""
    if isinstance(test, ast.BoolOp):
        found = [text_rank_compared_with_number(module, v, project) for v in test.values]
        return next((f for f in found if f is not None), None)
    if isinstance(test, ast.UnaryOp):
        return text_rank_compared_with_number(module, test.operand, project)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    split = comparison(module, test.left, test.ops[0], test.comparators[0], project, 0)
    return test if split in (_NEVER, _NEVER.turned) else None
