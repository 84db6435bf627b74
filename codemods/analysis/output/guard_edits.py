"""How a run of output is kept to rank 0: by its logger's level, a print that is quiet elsewhere, a return, or a test round it.

The shortest of them that a person would write. A logger with many lines gets its level by the rank, prints go through the
function that the project has for it, or the one that the framework offers, a test that stands there already takes the one for
rank 0, a function that does nothing but this is left at its top, and the rest goes under an `if` of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.output.effects import Kind, does_nothing
from codemods.analysis.output.guard_spelling import tests_for_zero
from codemods.analysis.output.logger_levels import level_by_rank
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.own_printers import own_printer
from codemods.analysis.output.spelled_test import Spelling
from codemods.analysis.whole_body import is_idle
from codemods.api.findings import Edit, ReplaceExpression, WrapInGuard
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_WIDE = 120  # columns up to which a test takes one more
_LONG = 4  # lines of a body that are better left alone than moved to the right
_OPPOSITES = {ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is", ast.LtE: ">"}


@record
class Kept:
    """The edits that keep a run of output to rank 0, how they do it, in words, and what they rest on where that is not shown."""

    edits: tuple[Edit, ...]
    how: str
    assumes: str = ""


def kept_to_zero(project: Project, module: SourceModule, run: Run, spelled: Spelling) -> Kept:
    """The shortest way for this run; `spelled`: the test for rank 0 at its place."""
    if (level := level_by_rank(project, module, run)) is not None:
        return Kept(level.edits, f"the level of `{level.logger}` is set in line {level.line}", spelled.assumes)
    if calls := _prints_of(module, run):
        may_import = not spelled.printer and not tests_for_zero(project, module, run.first)
        if (own := own_printer(project, module, run.first, calls, may_import=may_import)) is not None:
            assumes = f"assumes that `{own.name}` knows the rank by then" if spelled.assumes else ""
            how = "once on each node" if own.by_node else "on rank 0 alone"
            return Kept((*_renamed(module, calls, own.name), *own.edits), f"`{own.name}` of the project prints {how}", assumes)
        if spelled.printer and (spelled.takes_keywords or not any(c.keywords for c in calls)):
            return Kept(_renamed(module, calls, spelled.printer), _said_of(spelled.printer), spelled.assumes)
    guard = guard_edit(project, module, run.first, run.last, spelled.test)
    return Kept((guard, *spelled.edits), f"only output goes under `{spelled.test}`", spelled.assumes)


def _said_of(printer: str) -> str:
    """The `print` of a LightningModule goes by the global rank, those of Accelerate, Fabric and the Trainer by the local one."""
    once = "for one process" if printer == "self.print" else "once on each node"
    return f"`{printer}` prints {once}"


def guard_edit(
    project: Project, module: SourceModule, first: ast.stmt, last: ast.stmt, test: str, *, alone: bool = True
) -> Edit:
    """The guard round the statements from `first` to `last`.

    In the test of an `if` that they are, or that holds them alone, where there is one; as a return at the top where they are what
    the function does. alone: nothing else is put beside them.
    """
    if (joined := _in_a_test(module, first, last, test, alone=alone)) is not None:
        return joined
    leaving = opposite(test) if _is_all_that_is_done(project, module, first, last) else ""
    return WrapInGuard(module.path, module.span(first), test, module.span(last), otherwise=leaving)


def _in_a_test(module: SourceModule, first: ast.stmt, last: ast.stmt, test: str, *, alone: bool) -> ReplaceExpression | None:
    """`if rank == 0 and asked:` for an `if asked:` that is to be guarded, `if asked and rank == 0:` where all it holds is."""
    up = module.parent(first)
    if first is last and isinstance(first, ast.If):
        outer, holder = True, first
    elif alone and isinstance(up, ast.If) and up.body[0] is first and up.body[-1] is last:
        outer, holder = False, up
    else:
        return None
    asked = module.text_of(holder.test)
    if holder.orelse or "\n" in asked or "__name__" in asked or "TYPE_CHECKING" in asked:
        return None
    if isinstance(holder.test, (ast.IfExp, ast.Lambda, ast.NamedExpr)) or _is_either(holder.test):
        asked = f"({asked})"
    ranks = f"({test})" if _is_either(ast.parse(test, mode="eval").body) else test
    code = f"{ranks} and {asked}" if outer else f"{asked} and {ranks}"
    if len(module.lines[holder.test.lineno - 1].rstrip()) + len(code) - len(asked) > _WIDE:
        return None
    return ReplaceExpression(module.path, module.span(holder.test), code)


def _is_either(test: ast.expr) -> bool:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)


def _prints_of(module: SourceModule, run: Run) -> list[ast.Call]:
    """The calls of `print` that make all of a run's output, if they keep their layout under a longer name; else none."""
    calls = [n for s in run.statements for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    prints = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
    lines = {c.lineno for c in prints}
    if any(e.kind is not Kind.PRINT or e.path != module.path or e.line not in lines for e in run.effects.output):
        return []
    return prints if all(_may_be_renamed(module, c) for c in prints) else []


def _renamed(module: SourceModule, calls: Sequence[ast.Call], name: str) -> tuple[Edit, ...]:
    return tuple(ReplaceExpression(module.path, module.span(c.func), name) for c in calls)


def _may_be_renamed(module: SourceModule, call: ast.Call) -> bool:
    """False for a `print` that is not Python's, and where lines that stand under the first argument would move."""
    if not isinstance(call.func, ast.Name) or bindings_of(module, call.func) or "print" in module.imports:
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    aligned = bool(given) and given[0].lineno == call.lineno and (call.end_lineno or call.lineno) > call.lineno
    return not aligned


def _is_all_that_is_done(project: Project, module: SourceModule, first: ast.stmt, last: ast.stmt) -> bool:
    """True where a function does nothing but what stands from `first` to `last`, in several lines, and gives nothing back."""
    function = module.function_of(first)
    if function is None or function.body[-1] is not last or not any(s is first for s in function.body):
        return False
    if function.name.startswith("__") or module.span(last).end_line - first.lineno + 1 < _LONG:
        return False
    gives = (ast.Yield, ast.YieldFrom)
    if any(isinstance(n, gives) or (isinstance(n, ast.Return) and n.value is not None) for n in walk_scope(function)):
        return False
    above = function.body[: next(i for i, s in enumerate(function.body) if s is first)]
    return all(_prepares(project, module, s) for s in above)


def _prepares(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    if is_idle([statement]) or isinstance(statement, (ast.Import, ast.ImportFrom)):
        return True
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and does_nothing(project, module, statement)


def opposite(test: str) -> str:
    """The opposite of a test for rank 0, as one would write it; a rank is a whole number."""
    node = ast.parse(test, mode="eval").body
    if isinstance(node, ast.BoolOp) and not any(isinstance(v, ast.BoolOp) for v in node.values):
        parts = [opposite(ast.get_source_segment(test, v) or ast.unparse(v)) for v in node.values]
        return (" and " if isinstance(node.op, ast.Or) else " or ").join(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and (sign := _OPPOSITES.get(type(node.ops[0]))):
        left, right = (ast.get_source_segment(test, side) for side in (node.left, node.comparators[0]))
        return f"{left} {sign} {right}"
    return f"not {test}" if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"not ({test})"
