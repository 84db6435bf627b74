"""For tests of edits: nodes found by their own text, and what comes of edits at them."""

from __future__ import annotations

import ast
import textwrap

from codemods.api.findings import Edit, Span
from codemods.files.source import SourceModule, walk
from codemods.rewriting.rewriter import rewrite, with_deep_stack

PATH = "module.py"


def module_of(source: str | bytes) -> SourceModule:
    return SourceModule(PATH, source if isinstance(source, bytes) else textwrap.dedent(source).encode())


def node(module: SourceModule, text: str, kind: type[ast.AST] = ast.AST, *, nth: int = 0) -> ast.AST:
    """The nth node of that kind that reads `text`, or else begins so, outermost first."""
    placed = [n for n in walk(module.tree) if isinstance(n, kind) and hasattr(n, "lineno")]
    exact = [n for n in placed if module.text_of(n) == text]
    return (exact or [n for n in placed if module.text_of(n).startswith(text)])[nth]


def span(module: SourceModule, text: str, kind: type[ast.AST] = ast.AST, *, nth: int = 0) -> Span:
    return module.span(node(module, text, kind, nth=nth))


def call(module: SourceModule, text: str, *, nth: int = 0) -> Span:
    return span(module, text, ast.Call, nth=nth)


def statement(module: SourceModule, text: str, *, nth: int = 0) -> Span:
    return span(module, text, ast.stmt, nth=nth)


def written(module: SourceModule, *edits: Edit) -> str:
    return with_deep_stack(lambda: rewrite(module, edits))
