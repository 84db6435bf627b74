"""What a value that a question was handed has to do with the line that is asked about.

Codemods hand each other nodes of the tree, and records that hold nodes, a span, or a path and a line: a save, a call site, a run
of statements, a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codemods.api.findings import Span
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project

LINE, OTHER, ROUND, NONE = "line", "other", "round", ""
_MOST = 12  # entries of a tuple that are looked at
_DEEPEST = 3  # records within records


class Place(NamedTuple):
    """kind: LINE; ROUND for what stands round the line; OTHER for another place; NONE for what is no place. line: where it is."""

    kind: str
    line: int = 0
    path: str = ""


_NOWHERE = Place(NONE)
_RANKED = {NONE: 0, ROUND: 1, OTHER: 2, LINE: 3}


class Places:
    """Tells what is of the line, for one file that was parsed once."""

    def __init__(self, module: SourceModule, line: int) -> None:
        self.module, self.line = module, line
        self._here = {} if isinstance(module, TextFile) else _nodes_of(module, line)
        self._records: dict[int, tuple[object, Place]] = {}  # with the record itself, so that no other gets its id
        self._kinds: dict[type, bool] = {}

    def of_all(self, values: Iterable[object]) -> Place:
        """The place that speaks most of the line, with the path of the module that is handed on beside it."""
        best, path = _NOWHERE, ""
        for value in values:
            if isinstance(value, SourceModule):
                path = path or value.path
                continue
            found = self.of(value, 0)
            if _RANKED[found.kind] > _RANKED[best.kind]:
                best = found
        if best.kind == LINE and path and path != self.module.path and not best.path:
            best = Place(OTHER, best.line)  # a span or a line number of another file
        return Place(best.kind, best.line, best.path or path) if best.kind else best

    def of(self, value: object, depth: int) -> Place:
        if isinstance(value, ast.AST):
            return self._of_node(value)
        if isinstance(value, (tuple, list)):
            return self._of_many(value, depth) if value and depth < _DEEPEST else _NOWHERE
        if isinstance(value, Span):
            return self._of_span(value)
        if not self._may_have_place(value.__class__):
            return _NOWHERE
        if depth or not hasattr(value, "__record_fields__"):
            return self._of_record(value, depth)
        if (known := self._records.get(id(value))) is None:
            known = self._records[id(value)] = value, self._of_record(value, depth)
        return known[1]

    def _may_have_place(self, kind: type) -> bool:
        if (known := self._kinds.get(kind)) is None:
            known = kind.__module__.startswith("codemods.") and not issubclass(kind, (SourceModule, Project))
            self._kinds[kind] = known
        return known

    def _of_many(self, values: Sequence[object], depth: int) -> Place:
        """A block of statements is what the line stands in; fewer things are themselves."""
        first = values[0]
        if not isinstance(first, ast.stmt):
            return self._best(values[:_MOST], depth)
        here = (v for v in values if isinstance(v, ast.AST) and id(v) in self._here)
        found = self._of_node(next(here, first))
        return Place(ROUND, found.line, found.path) if found.kind == LINE and not depth and len(values) > 1 else found

    def _of_node(self, node: ast.AST) -> Place:
        kind = self._here.get(id(node))
        if kind is not None:
            return Place(kind, self.line if kind == LINE else getattr(node, "lineno", 0), self.module.path)
        line = getattr(node, "lineno", 0)
        return Place(OTHER, line) if line else _NOWHERE

    def _of_span(self, span: Span) -> Place:
        return Place(LINE, self.line) if span.line <= self.line <= span.end_line else Place(OTHER, span.line)

    def _of_record(self, value: object, depth: int) -> Place:
        path, line = getattr(value, "path", None), getattr(value, "line", None)
        span = getattr(value, "key_span", None) or getattr(value, "span", None)
        if isinstance(span, Span):
            found = self._of_span(span)
        elif isinstance(path, str) and isinstance(line, int) and line:
            found = Place(LINE if line == self.line else OTHER, line)
        else:
            fields = getattr(value, "__record_fields__", ())
            if depth >= _DEEPEST or not fields:
                return _NOWHERE
            return self._best([getattr(value, name, None) for name in fields], depth)
        if isinstance(path, str) and path:
            return Place(OTHER if path != self.module.path else found.kind, found.line, path)
        return found

    def _best(self, values: Iterable[object], depth: int) -> Place:
        best = _NOWHERE
        for value in values:
            found = self.of(value, depth + 1)
            if _RANKED[found.kind] > _RANKED[best.kind]:
                best = found
        return best


def _nodes_of(module: SourceModule, line: int) -> dict[int, str]:
    """id of a node -> LINE, of what begins in the line or is a plain statement over it; ROUND, of what the line stands in."""
    out: dict[int, str] = {}
    for node in ast.walk(module.tree):
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if not first or not first <= line <= last:
            continue
        opens = isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)) and hasattr(node, "body")
        out[id(node)] = ROUND if opens and first != line else LINE
    return out
