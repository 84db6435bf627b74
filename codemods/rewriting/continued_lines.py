"""The further lines of an expression that was copied: LibCST counts them from the block, the file from its margin."""

from __future__ import annotations

import libcst as cst


def as_deep_as(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """`new`, whose lines all stand further in than those of `old` by the same step, without that step."""
    before, after = _Margins(), _Margins()
    old.visit(before)
    new.visit(after)
    steps = {len(a) - len(b) for b, a in zip(before.found, after.found, strict=False)}
    if len(before.found) != len(after.found) or len(steps) != 1 or min(steps) <= 0:
        return new
    moved = new.visit(_Moved(steps.pop()))
    assert isinstance(moved, cst.BaseExpression)
    return moved


class _Margins(cst.CSTVisitor):
    """What stands in front of each further line."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_ParenthesizedWhitespace(self, node: cst.ParenthesizedWhitespace) -> None:
        self.found.append(node.last_line.value)


class _Moved(cst.CSTTransformer):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        lines = [e.with_changes(whitespace=self._back(e.whitespace)) for e in updated_node.empty_lines]
        return updated_node.with_changes(last_line=self._back(updated_node.last_line), empty_lines=lines)

    def _back(self, space: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        return cst.SimpleWhitespace(space.value[self.step :])
