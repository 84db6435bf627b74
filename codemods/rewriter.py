"""Edits -> new text: LibCST on the smallest run of whole statements that changes, spliced into the file. Writes no file.

What is outside a run is untouched by construction. A run that LibCST does not give back as it was, an anchor that is not
found, and an output that does not compile where the input did are errors, never silence.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from codemods import blocks, import_names, layout, text_edits
from codemods.blocks import Item, Suite
from codemods.deep_stack import with_deep_stack
from codemods.findings import (
    STATEMENT_EDITS,
    AddComment,
    AddDecorator,
    DropDecorator,
    DropImport,
    DropKey,
    DropKeyword,
    Edit,
    ExtendImport,
    InsertAfter,
    InsertBefore,
    NeedImport,
    RemoveStatement,
    RenameKeyword,
    RenameName,
    ReplaceExpression,
    ReplaceLines,
    SetKeyword,
    Span,
    Unwrap,
    WrapInGuard,
)
from codemods.runs import RewriteError, Run, Steps, find_runs, indent_of, is_blank, newline_of, with_blank_lines
from codemods.source import SourceModule
from codemods.text_file import TextFile

__all__ = ["RewriteError", "replacements", "rewrite", "rewrite_bytes", "with_deep_stack"]


def rewrite(module: SourceModule, edits: Sequence[Edit]) -> str:
    """The text of `module` with all `edits` made. Raises RewriteError."""
    if not edits:
        return module.text
    lines = list(module.lines)
    for top, bottom, new in reversed(replacements(module, edits)):
        lines[top - 1 : bottom] = [new]
    text = "".join(lines)
    if not isinstance(module, TextFile):  # text_edits holds its own result against what was there
        _must_compile(module, text)
        if any(isinstance(e, ReplaceLines) for e in edits):
            _must_be_read(module, text)
    return text


def rewrite_bytes(module: SourceModule, edits: Sequence[Edit]) -> bytes:
    """Like `rewrite`, encoded as the file is, byte order mark included."""
    text = rewrite(module, edits)
    try:
        return module.mark + text.encode(module.encoding)
    except UnicodeEncodeError:
        raise RewriteError(f"{module.path} is written in {module.encoding}, which cannot hold the new code") from None


def replacements(module: SourceModule, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """(first line, last line, new text) of each run that the edits change, in order. Raises RewriteError."""
    by_hand = [e for e in dict.fromkeys(edits) if isinstance(e, ReplaceLines)]
    others = [e for e in edits if not isinstance(e, ReplaceLines)]
    made = text_edits.replacements(module, others) if isinstance(module, TextFile) else _replacements(module, others)
    return _merged(module, made, by_hand) if by_hand else made


def _merged(module: SourceModule, made: list[tuple[int, int, str]], by_hand: list[ReplaceLines]) -> list[tuple[int, int, str]]:
    """With the lines that a person wrote, which may share none with what is written here."""
    for edit in by_hand:
        made.append((edit.span.line, edit.span.end_line - 1, edit.code))
    made.sort()
    for (_, bottom, _), (top, _, _) in pairwise(made):
        if top <= bottom:
            raise RewriteError(f"{module.path}:{top}: another fix changes the same lines")
    if isinstance(module, TextFile):
        text_edits.must_be_read(module, made)
    return made


def _replacements(module: SourceModule, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    made: list[tuple[Run, str]] = []
    steps = Steps(module)
    for run in find_runs(module, list(dict.fromkeys(edits))):
        try:
            new = _Rewriting(module, run, steps.at(run.top)).text(edits)
        except (RewriteError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # LibCST's own errors have no common base, and a panic of its parser is no Exception
            raise RewriteError(f"{module.path}:{run.top}: {_one_line(error)}") from error
        between = module.lines[made[-1][0].bottom : run.top - 1] if made else []
        if made and not new and not made[-1][1] and all(is_blank(line) for line in between):
            made[-1][0].bottom = run.bottom  # neighbours that vanish leave one gap
        else:
            made.append((run, new))
    out: list[tuple[int, int, str]] = []
    for i, (run, new) in enumerate(made):
        following = made[i + 1][0] if i + 1 < len(made) else None
        top, bottom = (run.top, run.bottom) if new else with_blank_lines(module.lines, run, following)
        out.append((top, bottom, new))
    return out


def _one_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "an expression here is nested too deeply to be written anew"
    if isinstance(error, cst.ParserSyntaxError):
        return f"LibCST cannot read it: {error.message}"
    return " ".join(str(error).split()) or type(error).__name__


def _must_compile(module: SourceModule, text: str) -> None:
    """`ast.parse` alone accepts a repeated keyword; compiling does not."""
    if (error := _compile_error(module.path, text)) and not _compile_error(module.path, module.text):
        raise RewriteError(f"the new text of {module.path} would not compile: {error}")


def _must_be_read(module: SourceModule, text: str) -> None:
    """What somebody else wrote is held against LibCST, which is to write in it the next time."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # LibCST does not give back lines that end in a lone \r
    try:
        if cst.parse_module(text).code == text:
            return
    except cst.ParserSyntaxError as error:
        raise RewriteError(f"LibCST cannot read the new text of {module.path}: {error.message}") from error
    raise RewriteError(f"LibCST does not give back the new text of {module.path} as it is")


def _compile_error(path: str, text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return str(error)
        except (RecursionError, MemoryError):  # too deep for the compiler, before and after
            return ""
    return ""


class _Rewriting:
    """One run: read by LibCST under `if 1:` where it is indented, so that every line keeps its form."""

    def __init__(self, module: SourceModule, run: Run, unit: str) -> None:
        self.module, self.run, self.unit = module, run, unit

    def text(self, all_edits: Sequence[Edit]) -> str:
        """The new lines. `all_edits`: those of the whole file, which say whether a block loses its last statement."""
        text = "".join(self.module.lines[self.run.top - 1 : self.run.bottom])
        newline = newline_of(self.module.lines, self.run.top)
        ends = text.endswith(("\n", "\r"))
        if not ends:  # the last line of a file
            text += newline
        lone = "\n" not in text  # LibCST does not give back lines that end in a lone \r
        if lone:
            text, newline = text.replace("\r", "\n"), "\n"
        indent = indent_of(text)
        code = self._written(text, f"if 1:{newline}" if indent else "")
        if not code and indent and self._empties_block(all_edits):
            code = f"{indent}pass{newline}"
        if not ends:
            code = code.removesuffix("\n").removesuffix("\r")
        return code.replace("\n", "\r") if lone else code

    def _written(self, text: str, header: str) -> str:
        wrapper = MetadataWrapper(self._read(header + text), unsafe_skip_copy=True)
        shift = self.run.top - 1 - (1 if header else 0)
        taken_from = wrapper.module.body[0] if header else None
        writer = _Writer(self.run.edits, wrapper.resolve(PositionProvider), shift, self.unit, taken_from)
        new = wrapper.module.visit(writer)
        writer.all_made(self.module.path)
        return new.code[len(header) :] if _statements_of(new, header) else ""

    def _read(self, text: str) -> cst.Module:
        tree = cst.parse_module(text)
        if tree.code != text:
            raise RewriteError(f"LibCST does not give back {self.module.path}:{self.run.top}-{self.run.bottom} as it is")
        if tree.header and tree.body:  # comments above the first statement are its own here, not the module's
            first, *rest = tree.body
            lead = [*tree.header, *blocks.lead_of(first)]
            tree = tree.with_changes(header=[], body=[blocks.with_lead(first, lead), *rest])
        return tree

    def _empties_block(self, all_edits: Sequence[Edit]) -> bool:
        """True where the removed statements, here and in other runs, are all of a block, and its first stood here."""
        gone = {e.span for e in all_edits if isinstance(e, (RemoveStatement, DropImport))}
        here = {e.span for e in self.run.edits}
        for _, block in self.module.blocks():
            if self.module.span(block[0]) in here and all(self.module.span(s) in gone for s in block):
                return True
        return False


def _statements_of(tree: cst.Module, header: str) -> Sequence[cst.BaseStatement | cst.BaseSmallStatement]:
    if not header:
        return tree.body
    head = tree.body[0]
    assert isinstance(head, cst.If)
    return head.body.body


def _goes_before(edit: Edit) -> bool:
    return isinstance(edit, InsertBefore) or (isinstance(edit, NeedImport) and edit.before)


class _Writer(cst.CSTTransformer):
    """Makes the edits of one run, children first; each edit is looked up by the span of the node it is anchored at."""

    def __init__(self, edits: Iterable[Edit], positions: object, shift: int, unit: str, taken_from: object) -> None:
        super().__init__()
        self._taken_from = taken_from  # the `if 1:` in the place of the block that the run was cut out of, if any
        self._positions: dict[cst.CSTNode, CodeRange] = positions  # type: ignore[assignment]
        self._shift, self._unit = shift, unit
        self._by_span: dict[Span, list[Edit]] = {}
        self._guard_ends: set[Span] = set()
        for edit in edits:
            self._by_span.setdefault(edit.span, []).append(edit)
            if isinstance(edit, WrapInGuard):
                self._guard_ends.add(edit.last)
        self._left = {id(e): e for e in edits}
        self._adrift: list[AddComment] = []  # comments for arguments that share their line: they go above the statement
        self._path: list[cst.CSTNode] = []

    def all_made(self, path: str) -> None:
        for edit in [*self._left.values(), *self._adrift]:
            raise RewriteError(f"nothing at {path}:{edit.span.line}:{edit.span.column + 1} for {type(edit).__name__}")

    def _span(self, node: cst.CSTNode) -> Span | None:
        """Where `ast` sees the node: the brackets of a tuple and of a generator are its own, others are not."""
        first = last = node
        if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar:
            first, last = node.lpar[-1], node.rpar[0]
        start, end = self._positions.get(first), self._positions.get(last)
        if start is None or end is None:
            return None
        return Span(start.start.line + self._shift, start.start.column, end.end.line + self._shift, end.end.column)

    def _edits(self, node: cst.CSTNode, *kinds: type[Edit]) -> list[Edit]:
        span = self._span(node)
        if span is None:
            return []
        return [e for e in self._by_span.get(span, ()) if isinstance(e, kinds) and id(e) in self._left]

    def _done(self, edit: Edit) -> None:
        self._left.pop(id(edit))

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._path.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        self._path.pop()
        updated = updated_node
        if isinstance(original_node, cst.Call) and isinstance(updated, cst.Call):
            updated = self._call(original_node, updated)
        elif isinstance(original_node, cst.Dict) and isinstance(updated, cst.Dict):
            for edit in self._edits(original_node, DropKey):
                assert isinstance(edit, DropKey)
                updated = layout.drop_key(updated, edit.name)
                self._done(edit)
        elif isinstance(original_node, cst.FunctionDef) and isinstance(updated, cst.FunctionDef):
            updated = self._function(original_node, updated)
        elif isinstance(original_node, Suite):
            assert isinstance(updated, Suite)
            updated = self._suite(original_node, updated)
        if isinstance(updated, (cst.Name, cst.Attribute, cst.ImportAlias)):
            for edit in self._edits(original_node, RenameName):
                if isinstance(edit, RenameName) and (" as " in edit.code) == isinstance(updated, cst.ImportAlias):
                    updated = layout.renamed(updated, edit.code)
                    self._done(edit)
        if isinstance(original_node, cst.BaseExpression) and isinstance(updated, cst.BaseExpression):
            for edit in self._edits(original_node, ReplaceExpression):
                assert isinstance(edit, ReplaceExpression)
                updated = layout.expression_in_place_of(updated, edit.code, self._path[-1] if self._path else None)
                self._done(edit)
        return updated

    def _call(self, original: cst.Call, call: cst.Call) -> cst.Call:
        for edit in self._edits(original, SetKeyword, DropKeyword, RenameKeyword, AddComment):
            if isinstance(edit, RenameKeyword):
                call = layout.rename_keyword(call, edit.name, edit.new)
            elif isinstance(edit, SetKeyword):
                call = layout.set_keyword(call, edit.name, edit.value)
            elif isinstance(edit, DropKeyword):
                call = layout.drop_keyword(call, edit.name)
            elif isinstance(edit, AddComment) and edit.keyword:
                commented = layout.comment_argument(call, edit.keyword, edit.lines)
                if commented is None:
                    self._adrift.append(edit)
                call = commented or call
            else:
                continue
            self._done(edit)
        return call

    def _function(self, original: cst.FunctionDef, function: cst.FunctionDef) -> cst.FunctionDef:
        for edit in self._edits(original, AddDecorator, DropDecorator):
            decorators = list(function.decorators)
            if isinstance(edit, AddDecorator):
                function = layout.with_decorator(function, edit.code)
            elif isinstance(edit, DropDecorator):
                kept = [d for d in decorators if layout.code_of(d.decorator) != edit.code]
                if len(kept) == len(decorators):
                    continue
                function = function.with_changes(decorators=kept)
            self._done(edit)
        return function

    # Statements

    def _suite(self, original: Suite, updated: Suite) -> cst.CSTNode:
        items = blocks.items_of(original, updated)
        if isinstance(original, cst.SimpleStatementSuite):
            if not any(self._edits(anchor, *STATEMENT_EDITS) for anchor in items[0].anchors):
                return updated
            body, _ = self._block(items)
            return cst.IndentedBlock(body or blocks.statements("pass", self._unit), indent=self._unit)
        body, footer = self._block(items)
        whole = isinstance(original, cst.Module) or self._path[-1] is self._taken_from
        if not body and not whole:
            body = blocks.statements("pass", self._unit)
        below = updated.footer if isinstance(updated, (cst.Module, cst.IndentedBlock)) else ()
        return updated.with_changes(body=body, footer=[*footer, *below])

    def _block(self, items: Sequence[Item]) -> tuple[list[cst.BaseStatement], Sequence[cst.EmptyLine]]:
        """(the statements of one block after every edit anchored at one of them, comment lines left at its end)."""
        items = [part for item in items for part in (blocks.split(item) if self._must_split(item) else [item])]
        out = blocks.Sequel()
        i = 0
        while i < len(items):
            j, guard = self._guard_at(items, i)
            held = blocks.Sequel()
            for k in range(i, j + 1):
                above, new, below = self._changed(items[k])
                held.carry(above)
                held.add(self._before(items[k], new) if k > i else new)
                held.carry(below)
                held.add(self._after(items[k]) if k < j else [])
            body = held.body
            if guard is not None:
                body = [blocks.under_guard(body, guard.test, self._unit, comments_inside=guard.comments_inside)] if body else []
                self._done(guard)
            if not body:
                out.carry(held.carried)
            out.add([*self._before(items[i], body), *self._after(items[j])])
            if body:
                out.carry(held.carried)
            i = j + 1
        return out.body, out.at_end()

    def _must_split(self, item: Item) -> bool:
        """True where a line of several statements has an edit that is for one of them and not for the line."""
        for i, anchor in enumerate(item.anchors):
            first, last = i == 0, i == len(item.anchors) - 1
            if first and last:
                return False
            inserts = self._edits(anchor, InsertAfter, InsertBefore, NeedImport)
            if not last and (self._span(anchor) in self._guard_ends or any(not _goes_before(e) for e in inserts)):
                return True
            if not first and (self._edits(anchor, WrapInGuard) or any(_goes_before(e) for e in inserts)):
                return True
        return False

    def _guard_at(self, items: Sequence[Item], i: int) -> tuple[int, WrapInGuard | None]:
        """(index of the last statement of the guard that begins here, the guard), or (i, None)."""
        for edit in self._edits(items[i].anchors[0], WrapInGuard):
            assert isinstance(edit, WrapInGuard)
            for j in range(i, len(items)):
                if self._span(items[j].anchors[-1]) == edit.last:
                    return j, edit
        return i, None

    def _changed(self, item: Item) -> tuple[blocks.Blank, list[cst.BaseStatement], blocks.Blank]:
        """(lines left of a statement that vanished, what the statement itself becomes, lines behind it)."""
        gone: set[int] = set()
        new = item.new
        for i, anchor in enumerate(item.anchors):
            for edit in self._edits(anchor, Unwrap, RemoveStatement):
                self._done(edit)
                if isinstance(edit, Unwrap):
                    return (), *blocks.unwrapped(new)
                gone.add(i)
            for edit in self._edits(anchor, ExtendImport):
                assert isinstance(edit, ExtendImport) and isinstance(new, cst.SimpleStatementLine)
                more = import_names.with_import(new.body[i], edit.name, self._unit, edit.span.column)
                new = new.with_changes(body=[*new.body[:i], more, *new.body[i + 1 :]])
                self._done(edit)
            if drops := [e for e in self._edits(anchor, DropImport) if isinstance(e, DropImport)]:
                assert isinstance(new, cst.SimpleStatementLine)
                small = import_names.without_import(new.body[i], {e.name for e in drops})
                if small is None:
                    gone.add(i)
                else:
                    new = new.with_changes(body=[*new.body[:i], small, *new.body[i + 1 :]])
                for edit in drops:
                    self._done(edit)
        if not gone:
            return (), [new], ()
        kept = blocks.without(Item(item.anchors, new), gone)
        return (() if kept else blocks.detached(blocks.lead_of(item.new))), kept, ()

    def _before(self, item: Item, new: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Comments above what the item has become, and what is put in front of it."""
        above: list[cst.BaseStatement] = []
        for edit in self._comments_for(item):
            if new:
                new = [blocks.with_comment(new[0], edit.lines), *new[1:]]
        for anchor in item.anchors:
            for insert in self._edits(anchor, InsertBefore, NeedImport):
                if isinstance(insert, (InsertBefore, NeedImport)) and _goes_before(insert):
                    above += blocks.statements(insert.code, self._unit)
                    self._done(insert)
        if above and new:
            above, new = blocks.comments_to_first(above, new)
        return [*above, *new]

    def _comments_for(self, item: Item) -> list[AddComment]:
        found = []
        for anchor in item.anchors:
            for edit in self._edits(anchor, AddComment):
                if isinstance(edit, AddComment) and not edit.keyword:
                    self._done(edit)
                    found.append(edit)
            span = self._span(anchor)
            held = [e for e in self._adrift if span and span.holds(e.span)]
            self._adrift = [e for e in self._adrift if e not in held]
            found += held
        return found

    def _after(self, item: Item) -> list[cst.BaseStatement]:
        below: list[cst.BaseStatement] = []
        for anchor in item.anchors:
            for edit in self._edits(anchor, InsertAfter, NeedImport):
                if isinstance(edit, (InsertAfter, NeedImport)) and not _goes_before(edit):
                    below += blocks.statements(edit.code, self._unit)
                    self._done(edit)
        return below
