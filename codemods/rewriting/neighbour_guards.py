"""Guards of one test that stand one under the other: which of them become one `if`. On `ast` and on the lines.

A person who sees `if rank == 0:` twice in a row writes it once. So a new guard goes into one that stands right above or below it,
new or old. A comment between them goes along only where it is of the lower guard alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from codemods.analysis.names import dotted
from codemods.api.findings import Edit, Span, WrapInGuard
from codemods.files.source import SourceModule, walk
from codemods.rewriting.runs import indent_of, is_blank, is_comment, statements
from codemods.runtime.record import record

# What changes the answer of a test that asks the group, and what is no work of rank 0 but half of a meeting.
_STAND_ALONE = ("destroy_process_group", "init_process_group", "barrier(", "wait_for_everyone(")
_LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Raise)


@record
class _Guard:
    """first, last: the statements under a new test, or the `if` of an old one."""

    test: str
    first: ast.stmt
    last: ast.stmt
    new: bool

    @property
    def held(self) -> list[ast.stmt]:
        return [self.first, self.last] if self.new or not isinstance(self.first, ast.If) else self.first.body


def joined_guards(module: SourceModule, edits: Iterable[Edit]) -> Mapping[Span, Span]:
    """Where the lower of two guards that become one begins -> where the upper one begins."""
    new = [g for e in edits if isinstance(e, WrapInGuard) and (g := _new_guard(module, e)) is not None]
    by_end = {id(g.last): g for g in new}
    by_start = {id(g.first): g for g in new}
    found: dict[Span, Span] = {}
    for guard in new:
        block = module.block_of(guard.first)
        start, end = (next(i for i, s in enumerate(block) if s is one) for one in (guard.first, guard.last))
        above = by_end.get(id(block[start - 1])) or _old_guard(module, block[start - 1]) if start else None
        if above is not None and _become_one(module, above, guard):
            found[module.span(guard.first)] = module.span(above.first)
        below = _old_guard(module, block[end + 1]) if end + 1 < len(block) and id(block[end + 1]) not in by_start else None
        if below is not None and _become_one(module, guard, below):
            found[module.span(below.first)] = module.span(guard.first)
    return found


def _new_guard(module: SourceModule, edit: WrapInGuard) -> _Guard | None:
    known = statements(module).by_span
    first, last = known.get(edit.span), known.get(edit.last)
    if first is None or last is None or len(first.statements) > 1 or len(last.statements) > 1 or first.block != last.block:
        return None
    return _Guard(_text(edit.test), first.statements[0], last.statements[0], new=True)


def _old_guard(module: SourceModule, statement: ast.stmt) -> _Guard | None:
    """An `if` without another arm, whose body stands in lines of its own and no comment behind its colon."""
    if not isinstance(statement, ast.If) or statement.orelse or module.span(statement) not in statements(module).by_span:
        return None
    first = statement.body[0].lineno
    head = "".join(module.lines[(statement.test.end_lineno or statement.lineno) - 1 : first - 1])
    if first == statement.lineno or "#" in head or len(statements(module).by_span[module.span(statement)].statements) > 1:
        return None
    return _Guard(_text(module.text_of(statement.test)), statement, statement, new=False)


def _text(test: str) -> str:
    """The test as it reads whatever its layout."""
    return ast.unparse(ast.parse(f"({test})", mode="eval"))


def _become_one(module: SourceModule, upper: _Guard, lower: _Guard) -> bool:
    if upper.test != lower.test or ":=" in upper.test or (upper.new, lower.new) == (False, False):
        return False
    between = module.lines[module.span(upper.last).end_line : lower.first.lineno - 1]
    if any(map(is_comment, between)) and not (lower.new and _is_of_it_alone(module, between, lower.last)):
        return False
    block = module.block_of(upper.first)
    held = upper.held if not upper.new else [s for s in block if upper.first.lineno <= s.lineno <= upper.last.lineno]
    if isinstance(held[-1], _LEAVING):
        return False
    for guard in (upper, lower):
        text = "".join(module.lines[guard.first.lineno - 1 : guard.last.end_lineno])
        if any(word in text for word in _STAND_ALONE):
            return False
    return not _bound(held) & _read(lower.test)


def _is_of_it_alone(module: SourceModule, above: list[str], statement: ast.stmt) -> bool:
    """False for a heading, behind a gap, and where more than the statement follows: the comment may speak of that, too."""
    if any(map(is_blank, above)):
        return False
    end = module.span(statement).end_line
    below = module.lines[end] if end < len(module.lines) else ""
    return is_blank(below) or len(indent_of(below)) < len(indent_of(module.lines[statement.lineno - 1]))


def _bound(held: Iterable[ast.stmt]) -> set[str]:
    """The names, and the first parts of the attributes, that statements set."""
    nodes = (n for s in held for n in walk(s) if isinstance(n, (ast.Name, ast.Attribute)))
    return {dotted(n).partition(".")[0] for n in nodes if isinstance(n.ctx, (ast.Store, ast.Del))}


def _read(test: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(test, mode="eval")) if isinstance(n, ast.Name)}
