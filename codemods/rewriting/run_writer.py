"""The edits of one run, made on LibCST's tree of it: children first, so that fixes on nested nodes all survive."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import libcst as cst
from libcst.metadata import CodeRange

from codemods.api.findings import (
    STATEMENT_EDITS,
    AddComment,
    AddDecorator,
    DropDecorator,
    DropImport,
    DropKey,
    DropKeyword,
    DropParameter,
    Edit,
    ExtendImport,
    InsertAfter,
    InsertBefore,
    NeedImport,
    RemoveStatement,
    RenameKeyword,
    RenameName,
    ReplaceExpression,
    SetKeyword,
    Span,
    Unwrap,
    WrapInGuard,
)
from codemods.rewriting import blocks, import_names, layout
from codemods.rewriting.blocks import Item, Suite
from codemods.rewriting.runs import RewriteError


def _goes_before(edit: Edit) -> bool:
    return isinstance(edit, InsertBefore) or (isinstance(edit, NeedImport) and edit.before)


class RunWriter(cst.CSTTransformer):
    """Makes the edits of one run, children first; each edit is looked up by the span of the node it is anchored at."""

    def __init__(
        self, edits: Iterable[Edit], positions: object, shift: int, unit: str, taken_from: object, joined: Container[Span]
    ) -> None:
        super().__init__()
        self._joined = joined  # where guards begin that become one with the guard right above
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
        for edit in self._edits(original, AddDecorator, DropDecorator, DropParameter):
            decorators = list(function.decorators)
            if isinstance(edit, AddDecorator):
                function = layout.with_decorator(function, edit.code)
            elif isinstance(edit, DropDecorator):
                kept = [d for d in decorators if layout.code_of(d.decorator) != edit.code]
                if len(kept) == len(decorators):
                    continue
                function = function.with_changes(decorators=kept)
            elif isinstance(edit, DropParameter):
                function = layout.drop_parameter(function, edit.name)
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
            behind = self._after(items[j])
            if guard is not None:
                body = self._guarded(guard, body, ends=j == len(items) - 1 and not behind) if body else []
                self._done(guard)
            if not body:
                out.carry(held.carried)
            new = [*self._before(items[i], body), *behind]
            if self._span(items[i].anchors[0]) in self._joined and not out.carried:
                new = blocks.into_guard_above(out.body, new)
            out.add(new)
            if body:
                out.carry(held.carried)
            i = j + 1
        return out.body, out.at_end()

    def _guarded(self, guard: WrapInGuard, body: list[cst.BaseStatement], *, ends: bool) -> list[cst.BaseStatement]:
        """The statements for those alone that pass the test. ends: nothing follows them in their block."""
        if guard.otherwise and ends and guard.span not in self._joined:
            return blocks.behind_return(body, guard.otherwise, self._unit)
        return [blocks.under_guard(body, guard.test, self._unit, comments_inside=guard.comments_inside)]

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
