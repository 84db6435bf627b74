"""The guarded block of a rank test, whichever arm of an `if` or a `match` it is, where the other arms do nothing."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.rank_guards import Guard
from codemods.analysis.whole_body import is_idle
from codemods.files.source import SourceModule, walk


def guarded_block(guard: Guard, node: ast.AST) -> list[ast.stmt]:
    """The arm that holds `node`; empty where another arm does something, or the guard is no statement with arms."""
    arms = _arms(guard)
    held = next((arm for arm in arms if any(part is node for s in arm for part in walk(s))), None)
    if held is None or not all(is_idle(arm) for arm in arms if arm is not held):
        return []
    return held


def _arms(guard: Guard) -> list[list[ast.stmt]]:
    if isinstance(guard.node, ast.If):
        return [guard.node.body, guard.node.orelse]
    return [case.body for case in guard.node.cases] if isinstance(guard.node, ast.Match) else []


def ends_in_comment(module: SourceModule, block: list[ast.stmt], guard: ast.stmt) -> bool:
    """True if comment lines of the block stand behind its last statement."""
    below = module.lines[block[-1].end_lineno or 0 :]
    indent = block[-1].col_offset
    line = next((text for text in below if text.strip()), "")
    return line.lstrip().startswith("#") and len(line) - len(line.lstrip()) >= indent > guard.col_offset


def is_commented(module: SourceModule, statement: ast.stmt) -> bool:
    """True where a comment touches a statement or may stand in it."""
    above = module.lines[statement.lineno - 2].lstrip() if statement.lineno > 1 else ""
    return above.startswith("#") or "#" in "".join(module.lines[statement.lineno - 1 : statement.end_lineno])
