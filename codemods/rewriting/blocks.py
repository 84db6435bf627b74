"""Statements in their place: guards, insertions, removals. LibCST node in, LibCST node out; a helper of run_writer.py."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from codemods.rewriting.layout import hashed
from codemods.runtime.record import record

Blank = Sequence[cst.EmptyLine]
Suite = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite


@record(frozen=False)
class Item:
    """A statement of a block: the original nodes that `ast` gives a span, and what it has become."""

    anchors: list[cst.CSTNode]
    new: cst.BaseStatement


class Sequel:
    """Statements one after the other; lines that a vanished one leaves go above the next, without a double gap."""

    def __init__(self) -> None:
        self.body: list[cst.BaseStatement] = []
        self.carried: list[cst.EmptyLine] = []

    def carry(self, lines: Blank) -> None:
        self.carried += lines

    def add(self, new: list[cst.BaseStatement]) -> None:
        if new and self.carried:
            lead = _joined(self.carried, lead_of(new[0]))
            new = [with_lead(new[0], lead if self.body else _from_comment(lead)), *new[1:]]
            self.carried = []
        self.body += new

    def at_end(self) -> list[cst.EmptyLine]:
        """What is left to stand at the end of the block."""
        lines = _from_comment(self.carried) if not self.body else self.carried
        return list(reversed(_from_comment(list(reversed(lines)))))


def _from_comment(lines: Blank) -> list[cst.EmptyLine]:
    """The lines from the first comment on."""
    start = next((i for i, line in enumerate(lines) if line.comment is not None), len(lines))
    return list(lines[start:])


def _joined(above: Blank, below: Blank) -> list[cst.EmptyLine]:
    """Lines above lines, with the gap above only where there is none below."""
    kept = list(above)
    while below and below[0].comment is None and kept and kept[-1].comment is None:
        kept.pop()
    return [*kept, *below]


def items_of(original: Suite, updated: Suite) -> list[Item]:
    """The statements of a block, or the line behind a colon as one."""
    if isinstance(original, cst.SimpleStatementSuite):
        assert isinstance(updated, cst.SimpleStatementSuite)
        line = cst.SimpleStatementLine(updated.body, trailing_whitespace=updated.trailing_whitespace)
        return [Item(list(original.body), line)]
    assert not isinstance(updated, cst.SimpleStatementSuite)
    return [Item(anchors(o), u) for o, u in zip(original.body, updated.body, strict=True)]


def anchors(statement: cst.BaseStatement) -> list[cst.CSTNode]:
    """The nodes whose span `ast` gives a statement of this line: each small statement, or the compound one."""
    return list(statement.body) if isinstance(statement, cst.SimpleStatementLine) else [statement]


def split(item: Item) -> list[Item]:
    """`a(); b()` as one line each; comments above stay above the first, the one behind stays behind the last."""
    line = item.new
    assert isinstance(line, cst.SimpleStatementLine)
    out = []
    for i, (anchor, small) in enumerate(zip(item.anchors, line.body, strict=True)):
        alone = cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
        if not i:
            alone = alone.with_changes(leading_lines=line.leading_lines)
        if i == len(line.body) - 1:
            alone = alone.with_changes(trailing_whitespace=line.trailing_whitespace)
        out.append(Item([anchor], alone))
    return out


def without(item: Item, gone: Collection[int]) -> list[cst.BaseStatement]:
    """The line without some of its small statements (by index), or nothing."""
    if not isinstance(item.new, cst.SimpleStatementLine):
        return []
    kept = [small for i, small in enumerate(item.new.body) if i not in gone]
    if not kept:
        return []
    kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return [item.new.with_changes(body=kept)]


class _Step(cst.CSTTransformer):
    """Gives the blocks of parsed code the file's own step of indentation."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node.with_changes(indent=self._unit)

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        return _hollow(updated_node)


def _hollow(line: cst.EmptyLine) -> cst.EmptyLine:
    """A blank line is empty wherever the statement below it goes."""
    return line if line.comment else line.with_changes(indent=False)


def statements(code: str, unit: str) -> list[cst.BaseStatement]:
    """Parsed statements, to stand in any block: LibCST gives the block's indentation from the place."""
    module = cst.parse_module(code if code.endswith("\n") else code + "\n").visit(_Step(unit))
    body: list[cst.BaseStatement] = list(module.body)
    if module.header and body:
        body[0] = with_lead(body[0], [*module.header, *lead_of(body[0])])
    return body


def lead_of(statement: cst.BaseStatement) -> Blank:
    """The blank and comment lines above a statement."""
    lead: Blank = statement.leading_lines  # type: ignore[attr-defined]
    return lead


def with_lead(statement: cst.BaseStatement, lead: Blank) -> cst.BaseStatement:
    return statement.with_changes(leading_lines=lead)


def with_comment(statement: cst.BaseStatement, lines: Sequence[str]) -> cst.BaseStatement:
    new = [cst.EmptyLine(indent=True, comment=cst.Comment(hashed(line))) for line in lines]
    return with_lead(statement, [*lead_of(statement), *new])


def detached(lead: Blank) -> list[cst.EmptyLine]:
    """The lines above a statement without the comments that touch it."""
    kept = list(lead)
    while kept and kept[-1].comment is not None:
        kept.pop()
    return kept


class _Continued(cst.CSTTransformer):
    """Moves with their statement what is text and not structure: lines that a backslash continues, and comments that stand
    further left than their block. A comment in the first column, code that is switched off, stays there.
    """

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit
        self._inside: set[int] = set()

    def leave_SimpleWhitespace(
        self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace
    ) -> cst.BaseParenthesizableWhitespace:
        value = updated_node.value
        if "\\" not in value:
            return updated_node
        head, *rest = value.splitlines(keepends=True)
        return updated_node.with_changes(value=head + "".join(self._unit + line for line in rest))

    def visit_ParenthesizedWhitespace(self, node: cst.ParenthesizedWhitespace) -> None:
        self._inside.update(id(line) for line in node.empty_lines)  # inside of brackets every line keeps its place

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        left = updated_node.whitespace.value
        if updated_node.indent or updated_node.comment is None or not left or id(original_node) in self._inside:
            return updated_node
        return updated_node.with_changes(whitespace=cst.SimpleWhitespace(self._unit + left))


def under_guard(held: Sequence[cst.BaseStatement], test: str, unit: str, *, comments_inside: bool = False) -> cst.If:
    """`if test:` over statements; comments above the first stay above the guard, or go along where they touch it."""
    moved = [_shifted(one, unit) for one in held]
    above = detached(lead_of(held[0])) if comments_inside else lead_of(held[0])
    body = [with_lead(moved[0], lead_of(moved[0])[len(above) :]), *moved[1:]]
    return cst.If(test=cst.parse_expression(test), body=cst.IndentedBlock(body, indent=unit), leading_lines=above)


def behind_return(held: Sequence[cst.BaseStatement], test: str, unit: str) -> list[cst.BaseStatement]:
    """`if test: return` above statements, and below the gap above them; their comments stay with them."""
    lead = lead_of(held[0])
    gap = list(lead[: len(lead) - len(_from_comment(lead))])
    leaves = cst.IndentedBlock([cst.SimpleStatementLine([cst.Return()])], indent=unit)
    first = with_lead(held[0], lead[len(gap) :])
    return [cst.If(test=cst.parse_expression(test), body=leaves, leading_lines=gap), first, *held[1:]]


def into_guard_above(above: list[cst.BaseStatement], new: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """What is left of `new` once a guard that begins it stands in the guard of the same test that `above` ends with.

    Both may have changed or gone by now: then all of it.
    """
    upper, lower = above[-1] if above else None, new[0] if new else None
    if not isinstance(upper, cst.If) or not isinstance(lower, cst.If) or upper.orelse or lower.orelse:
        return new
    if not isinstance(upper.body, cst.IndentedBlock) or not isinstance(lower.body, cst.IndentedBlock):
        return new
    if not upper.test.deep_equals(lower.test):
        return new
    first, *rest = lower.body.body
    lead = [_hollow(line) for line in (*upper.body.footer, *lower.leading_lines, *lead_of(first))]
    body = [*upper.body.body, with_lead(first, lead), *rest]
    above[-1] = upper.with_changes(body=upper.body.with_changes(body=body, footer=lower.body.footer))
    return new[1:]


def _shifted(statement: cst.BaseStatement, unit: str) -> cst.BaseStatement:
    moved = statement.visit(_Continued(unit))
    assert isinstance(moved, cst.BaseStatement)
    return moved


def _does_nothing(orelse: cst.If | cst.Else | None) -> bool:
    """True without an `else`, and for one of `pass`."""
    if orelse is None:
        return True
    if not isinstance(orelse, cst.Else):
        return False
    lines = [orelse.body] if isinstance(orelse.body, cst.SimpleStatementSuite) else orelse.body.body
    held = (cst.SimpleStatementLine, cst.SimpleStatementSuite)
    return all(isinstance(line, held) and all(isinstance(small, cst.Pass) for small in line.body) for line in lines)


def comments_of(node: cst.CSTNode) -> list[cst.EmptyLine]:
    """The comments of what goes, as lines."""
    found: list[cst.EmptyLine] = []

    class Comments(cst.CSTVisitor):
        def visit_Comment(self, node: cst.Comment) -> None:
            found.append(cst.EmptyLine(comment=node))

    node.visit(Comments())
    return found


def unwrapped(statement: cst.BaseStatement) -> tuple[list[cst.BaseStatement], Blank]:
    """(the body of an `if` in its place, the comment lines that end it and its `else`); comments above the `if` stay above."""
    if not isinstance(statement, cst.If) or not _does_nothing(statement.orelse):
        raise ValueError("only an if without else can be unwrapped")
    said = comments_of(statement.orelse) if statement.orelse is not None else []
    if isinstance(statement.body, cst.SimpleStatementSuite):
        suite = statement.body
        line = cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)
        return [with_lead(line, statement.leading_lines)], said
    assert isinstance(statement.body, cst.IndentedBlock)
    behind = statement.body.header.comment
    beside = [cst.EmptyLine(comment=behind)] if behind is not None else []
    first, *rest = statement.body.body
    first = with_lead(first, [*statement.leading_lines, *beside, *lead_of(first)])
    return [first, *rest], [*statement.body.footer, *said]


def comments_to_first(
    above: list[cst.BaseStatement], new: list[cst.BaseStatement]
) -> tuple[list[cst.BaseStatement], list[cst.BaseStatement]]:
    """Blank lines and comments above a statement stay above what is put in front of it."""
    first = with_lead(above[0], [*lead_of(new[0]), *lead_of(above[0])])
    return [first, *above[1:]], [with_lead(new[0], []), *new[1:]]
