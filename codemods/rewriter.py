"""Edits -> new text: LibCST on the smallest run of whole statements that changes, spliced into the file. Writes no file.

What is outside a run is untouched by construction. A run that LibCST does not give back as it was, an anchor that is not
found, and an output that does not compile where the input did are errors, never silence.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from codemods import layout
from codemods.findings import (
    AddComment,
    AddDecorator,
    DropDecorator,
    DropImport,
    DropKeyword,
    Edit,
    InsertAfter,
    InsertBefore,
    NeedImport,
    RemoveStatement,
    ReplaceExpression,
    SetKeyword,
    Span,
    Unwrap,
    WrapInGuard,
    claims,
)
from codemods.source import SourceModule

R = TypeVar("R")

STACK = 512 * 1024 * 1024  # LibCST's parser recurses in native code; a thread's stack can be chosen, the main one cannot


class RewriteError(Exception):
    """An edit that cannot be written. The text says which and why."""


@dataclass
class Run:
    """Whole lines `top`..`bottom` (1-based, inclusive) of statements that change together, and the edits inside."""

    top: int
    bottom: int
    edits: list[Edit] = field(default_factory=list)


def rewrite(module: SourceModule, edits: Sequence[Edit]) -> str:
    """The text of `module` with all `edits` made. Raises RewriteError."""
    if not edits:
        return module.text
    lines = list(module.lines)
    for top, bottom, new in reversed(replacements(module, edits)):
        lines[top - 1 : bottom] = [new]
    text = "".join(lines)
    _must_compile(module, text)
    return text


def replacements(module: SourceModule, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """(first line, last line, new text) of each run that the edits change, in order. Raises RewriteError."""
    out = []
    for run in find_runs(module, list(dict.fromkeys(edits))):
        new = _rewrite_run(module, run)
        top, bottom = (run.top, run.bottom) if new else _with_blank_lines(module.lines, run)
        out.append((top, bottom, new))
    return out


def rewrite_bytes(module: SourceModule, edits: Sequence[Edit]) -> bytes:
    """Like `rewrite`, encoded as the file is, byte order mark included."""
    return module.mark + rewrite(module, edits).encode(module.encoding)


def with_deep_stack(work: Callable[[], R]) -> R:
    """Run `work` in a thread whose stack is deep enough for nested expressions; its exception is raised here."""
    outcome: list[R] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


# Runs


def find_runs(module: SourceModule, edits: Iterable[Edit]) -> list[Run]:
    """The smallest runs of whole statements that hold the edits, joined where they overlap, in order."""
    whole = [(first_line(s), s.end_lineno or s.lineno, s) for s in _statements(module) if module.is_whole(s)]
    runs: list[Run] = []
    for edit in edits:
        region = claims(edit)
        if isinstance(edit, WrapInGuard) and _bounded(module, whole, edit):
            runs.append(Run(edit.span.line, edit.last.end_line, [edit]))
            continue
        holders = [(top, end) for top, end, _ in whole if top <= region.line and region.end_line <= end]
        if not holders:
            raise RewriteError(f"no whole statement holds line {region.line} of {module.path}")
        top, end = min(holders, key=lambda h: h[1] - h[0])
        if isinstance(edit, RemoveStatement):
            top, end = _with_comments_above(module, top), _with_comments_below(module, top, end)
        runs.append(Run(top, end, [edit]))
    runs.sort(key=lambda r: (r.top, -r.bottom))
    joined: list[Run] = []
    for run in runs:
        if joined and run.top <= joined[-1].bottom:
            joined[-1].bottom = max(joined[-1].bottom, run.bottom)
            joined[-1].edits += run.edits
        else:
            joined.append(run)
    return joined


def _statements(module: SourceModule) -> list[ast.stmt]:
    return [n for cls, nodes in module.buckets() if issubclass(cls, ast.stmt) for n in nodes if isinstance(n, ast.stmt)]


def first_line(statement: ast.stmt) -> int:
    """The line a statement begins at, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _bounded(module: SourceModule, whole: Sequence[tuple[int, int, ast.stmt]], edit: WrapInGuard) -> bool:
    starts = any(module.span(s) == edit.span for top, _, s in whole if top == edit.span.line)
    ends = any(module.span(s) == edit.last for _, end, s in whole if end == edit.last.end_line)
    return starts and ends


def _with_comments_above(module: SourceModule, line: int) -> int:
    """Comment lines that touch a statement go with it; so do the blank lines above, or a gap would be left.

    Comments that begin the file are its own (a coding line, a licence).
    """
    lines = module.lines
    indent = layout.indent_of(lines[line - 1])
    first = line
    while line > 1 and lines[line - 2].lstrip().startswith("#") and layout.indent_of(lines[line - 2]) == indent:
        line -= 1
    if line == 1:
        line = first
    while line > 1 and not lines[line - 2].strip():
        line -= 1
    return line


def _with_comments_below(module: SourceModule, top: int, line: int) -> int:
    """Comment lines behind the last statement of a block, as deep as that block, belong to it."""
    lines = module.lines
    indent = layout.indent_of(lines[top - 1])
    for number in range(line + 1, len(lines) + 1):
        text = lines[number - 1]
        own = layout.indent_of(text)
        if text.strip() and not (text.lstrip().startswith("#") and own.startswith(indent) and len(own) > len(indent)):
            break
        if text.strip():
            line = number
    return line


def _with_blank_lines(lines: Sequence[str], run: Run) -> tuple[int, int]:
    """The lines to take out with a run that vanished: of blank lines on both sides, or below the head of a block, one part."""
    top, bottom = run.top, run.bottom
    if bottom == len(lines) or lines[bottom].strip() or top == 1:
        return top, bottom
    gone = next(line for line in lines[top - 1 :] if line.strip())
    opened = len(layout.indent_of(lines[top - 2])) < len(layout.indent_of(gone))
    while not opened and top > 1 and not lines[top - 2].strip():
        top -= 1
    while opened and bottom < len(lines) and not lines[bottom].strip():
        bottom += 1
    return top, bottom


# One run


def _rewrite_run(module: SourceModule, run: Run) -> str:
    text = "".join(module.lines[run.top - 1 : run.bottom])
    newline = layout.newline_of(module.lines, run.top)
    ends = text.endswith(("\n", "\r"))
    if not ends:  # the last line of a file without a final newline
        text += newline
    blank, body = _split_blank_lines(text)
    indent = layout.indent_of(body)
    header = f"if 1:{newline}" if indent else ""
    config = cst.PartialParserConfig(default_newline=newline, default_indent=layout.unit_of(module, run.top))
    try:
        tree = cst.parse_module(header + body, config=config)
    except cst.ParserSyntaxError as error:
        raise RewriteError(f"LibCST cannot read {module.path}:{run.top}: {error.message}") from None
    if tree.code != header + body:
        raise RewriteError(f"LibCST does not give back {module.path}:{run.top}-{run.bottom} as it is")
    if tree.header and tree.body:  # comments above the first statement are its own here, not the module's
        lead = [*tree.header, *tree.body[0].leading_lines]
        tree = tree.with_changes(header=[], body=[tree.body[0].with_changes(leading_lines=lead), *tree.body[1:]])
    skipped = len(blank.splitlines()) if blank else 0
    shift = run.top - 1 + skipped - (1 if header else 0)
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    writer = _Writer(run.edits, wrapper.resolve(PositionProvider), shift, newline)
    new = wrapper.module.visit(writer)
    writer.all_made(module.path)
    code = new.code
    if header:
        block = new.body[0]
        assert isinstance(block, cst.If)
        emptied = not block.body.body
        code = code[len(header) :]
        if emptied:
            code = ""
    if not code.strip():
        blank = ""
        code = _keep_block(module, run, indent, newline)
    if not ends and code.endswith(newline):
        code = code[: -len(newline)]
    return blank + code


def _split_blank_lines(text: str) -> tuple[str, str]:
    """Blank lines at the head of a run stay out of LibCST's sight: it would take them for the header of the module."""
    end = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            break
        end += len(line)
    return text[:end], text[end:]


def _keep_block(module: SourceModule, run: Run, indent: str, newline: str) -> str:
    """`pass` where the removed statements were all that their block held."""
    removed = {e.span for e in run.edits}
    for statement in _statements(module):
        if module.span(statement) in removed and indent:
            block = module.block_of(statement)
            if all(module.span(s) in removed for s in block):
                return f"{indent}pass{newline}"
    return ""


Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Body = Sequence[cst.BaseStatement]


class _Writer(cst.CSTTransformer):
    """Makes the edits of one run, children first; each edit is looked up by the span of the node it is anchored at."""

    def __init__(
        self, edits: Iterable[Edit], positions: object, shift: int, newline: str
    ) -> None:
        super().__init__()
        self._positions: dict[cst.CSTNode, CodeRange] = positions  # type: ignore[assignment]
        self._shift, self._newline = shift, newline
        self._by_span: dict[Span, list[Edit]] = {}
        for edit in edits:
            self._by_span.setdefault(edit.span, []).append(edit)
        self._left = {id(e): e for e in edits}

    def all_made(self, path: str) -> None:
        for edit in self._left.values():
            raise RewriteError(f"nothing at {path}:{edit.span.line}:{edit.span.column + 1} for {type(edit).__name__}")

    def _span(self, node: cst.CSTNode) -> Span | None:
        at = self._positions.get(node)
        if at is None:
            return None
        return Span(at.start.line + self._shift, at.start.column, at.end.line + self._shift, at.end.column)

    def _edits(self, node: cst.CSTNode, *kinds: type[Edit]) -> list[Edit]:
        span = self._span(node)
        if span is None:
            return []
        return [e for e in self._by_span.get(span, ()) if isinstance(e, kinds) and id(e) in self._left]

    def _done(self, edit: Edit) -> None:
        self._left.pop(id(edit))

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        updated = super().on_leave(original_node, updated_node)
        if isinstance(updated, cst.Call) and isinstance(original_node, cst.Call):
            updated = self._call(original_node, updated)
        if isinstance(updated, cst.FunctionDef):
            updated = self._function(original_node, updated)
        if isinstance(original_node, cst.BaseExpression) and isinstance(updated, cst.BaseExpression):
            for edit in self._edits(original_node, ReplaceExpression):
                assert isinstance(edit, ReplaceExpression)
                updated = layout.expression_in_place_of(updated, edit.code)
                self._done(edit)
        if isinstance(updated, (cst.Module, cst.IndentedBlock)):
            assert isinstance(original_node, (cst.Module, cst.IndentedBlock))
            updated = updated.with_changes(body=self._block(original_node.body, updated.body))
        return updated  # type: ignore[return-value]

    def _call(self, original: cst.Call, call: cst.Call) -> cst.Call:
        for edit in self._edits(original, SetKeyword, DropKeyword, AddComment):
            if isinstance(edit, SetKeyword):
                call = layout.set_keyword(call, edit.name, edit.value)
            elif isinstance(edit, DropKeyword):
                call = layout.drop_keyword(call, edit.name)
            elif isinstance(edit, AddComment) and edit.keyword:
                call = layout.comment_argument(call, edit.keyword, edit.lines)
            else:
                continue
            self._done(edit)
        return call

    def _function(self, original: cst.CSTNode, function: cst.FunctionDef) -> cst.FunctionDef:
        for edit in self._edits(original, AddDecorator, DropDecorator):
            decorators = list(function.decorators)
            if isinstance(edit, AddDecorator):
                decorators.append(cst.Decorator(cst.parse_expression(edit.code)))
            elif isinstance(edit, DropDecorator):
                kept = [d for d in decorators if layout.code_of(d.decorator) != edit.code]
                if len(kept) == len(decorators):
                    continue
                decorators = kept
            function = function.with_changes(decorators=decorators)
            self._done(edit)
        return function

    # Statements

    def _block(self, originals: Body, body: Body) -> list[cst.BaseStatement]:
        """The statements of one block after every edit anchored at one of them."""
        out: list[cst.BaseStatement] = []
        i = 0
        while i < len(originals):
            guard = self._guard_at(originals, i)
            if guard is None:
                out += self._statement(originals[i], [body[i]])
                i += 1
                continue
            edit, j = guard
            held = list(body[i : j + 1])
            wrapped = layout.under_guard(held, edit.test)
            self._done(edit)
            out += self._around(originals[i], originals[j], [wrapped])
            i = j + 1
        return out

    def _guard_at(self, originals: Body, i: int) -> tuple[WrapInGuard, int] | None:
        for anchor in _anchors(originals[i]):
            for edit in self._edits(anchor, WrapInGuard):
                assert isinstance(edit, WrapInGuard)
                for j in range(i, len(originals)):
                    if any(self._span(a) == edit.last for a in _anchors(originals[j])):
                        return edit, j
        return None

    def _statement(self, original: cst.BaseStatement, new: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        for anchor in _anchors(original):
            for edit in self._edits(anchor, Unwrap, RemoveStatement, DropImport):
                if isinstance(edit, Unwrap):
                    new = layout.unwrapped(new[0])
                elif isinstance(edit, RemoveStatement):
                    new = layout.without(original, anchor, new)
                elif isinstance(edit, DropImport):
                    new = layout.without_import(new, edit.name)
                self._done(edit)
        return self._around(original, original, new)

    def _around(
        self, first: cst.BaseStatement, last: cst.BaseStatement, new: list[cst.BaseStatement]
    ) -> list[cst.BaseStatement]:
        """Comments and insertions round what one statement, or the guard over several, has become."""
        above: list[cst.BaseStatement] = []
        below: list[cst.BaseStatement] = []
        for anchor in _anchors(first):
            for edit in self._edits(anchor, AddComment, InsertBefore, NeedImport):
                if isinstance(edit, AddComment) and not edit.keyword and new:
                    new = [layout.with_comment(new[0], edit.lines), *new[1:]]
                elif isinstance(edit, InsertBefore) or (isinstance(edit, NeedImport) and edit.before):
                    above += layout.statements(edit.code, self._newline)
                else:
                    continue
                self._done(edit)
        for anchor in _anchors(last):
            for edit in self._edits(anchor, InsertAfter, NeedImport):
                if isinstance(edit, InsertAfter) or (isinstance(edit, NeedImport) and not edit.before):
                    below += layout.statements(edit.code, self._newline)
                    self._done(edit)
        if above and new:
            above, new = layout.comments_to_first(above, new)
        return [*above, *new, *below]


def _anchors(statement: cst.BaseStatement) -> list[cst.CSTNode]:
    """The nodes whose span `ast` gives a statement of this line: each small statement, or the compound one."""
    return list(statement.body) if isinstance(statement, cst.SimpleStatementLine) else [statement]


def _must_compile(module: SourceModule, text: str) -> None:
    """`ast.parse` alone accepts a repeated keyword; compiling does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, module.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            try:
                compile(module.text, module.path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                return
            raise RewriteError(f"the new text of {module.path} would not compile: {error}") from None
        except RecursionError:
            return  # too deep for the compiler, before and after
