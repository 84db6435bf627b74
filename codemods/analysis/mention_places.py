"""What a rename is, and where the names that it is about stand in a text."""

from __future__ import annotations

import ast
import re

from codemods.api.findings import Span
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record

KINDS = ("functions", "methods", "modules", "attributes", "keywords")
Found = tuple[Span, str, str]  # where, what it becomes, the doubt


@record
class Rename:
    """`old` -> `new`. kind: one of KINDS. A dotted `old` names the module, class or callee that it belongs to."""

    kind: str
    old: str
    new: str

    @property
    def name(self) -> str:
        """The word that is looked for."""
        return self.old.rpartition(".")[2]

    @property
    def owner(self) -> str:
        return self.old.rpartition(".")[0]


def place(module: SourceModule, node: ast.Name | ast.Attribute | ast.keyword, rename: Rename) -> Found:
    """Where the name of a node stands. Before Python 3.12 `ast` misplaces what stands in an f-string: there the text is read."""
    span = module.span(node)
    where = last_of(span, rename.name) if isinstance(node, ast.Attribute) else first_of(span, rename.name)
    texts = [up for up in module.ancestors(node) if isinstance(up, ast.JoinedStr)]
    if not texts:
        return where, rename.new, ""
    mentioned = [n for n in walk(texts[-1]) if rename.name in (getattr(n, "id", 0), getattr(n, "attr", 0), getattr(n, "arg", 0))]
    written = _in_fields(module, module.span(texts[-1]), rename.name)
    if len(written) != len(mentioned):
        return module.span(texts[-1]), "", "where it stands in this f-string is not known"
    return written[mentioned.index(node)], rename.new, ""


def _in_fields(module: SourceModule, text: Span, name: str) -> list[Span]:
    """Where a word stands in the replacement fields of an f-string."""
    out = []
    depth = 0
    for number in range(text.line, text.end_line + 1):
        line = module.lines[number - 1]
        start = text.column if number == text.line else 0
        end = text.end_column if number == text.end_line else len(line)
        for found in re.compile(rf"\{{\{{|\}}\}}|[{{}}]|(?<!\w){re.escape(name)}(?!\w)").finditer(line, start, end):
            if found[0] == name:
                out += [Span(number, found.start(), number, found.end())] if depth else []
            elif len(found[0]) == 1 or depth:
                depth += found[0].count("{") - found[0].count("}")
    return out


def first_of(span: Span, name: str) -> Span:
    """The place of a name that a span begins with."""
    return Span(span.line, span.column, span.line, span.column + len(name))


def last_of(span: Span, name: str) -> Span:
    """The place of a name that a span ends with."""
    return Span(span.end_line, span.end_column - len(name), span.end_line, span.end_column)


def name_of(module: SourceModule, function: FunctionNode) -> Span:
    """Where the name of a `def` stands; `ast` does not say."""
    start = module.span(function)
    line = module.lines[start.line - 1]
    found = re.compile(rf"(?:async\s+)?def\s+({re.escape(function.name)})\b").match(line, start.column)
    at = found.start(1) if found else start.column
    return Span(start.line, at, start.line, at + len(function.name))


def behind(module: SourceModule, node: ast.AST, word: str, text: str) -> Span | None:
    """The text behind the first word of a statement, on the statement's first line."""
    start = module.span(node)
    line = module.lines[start.line - 1]
    at = line.find(text, start.column + len(word))
    return Span(start.line, at, start.line, at + len(text)) if at >= 0 else None
