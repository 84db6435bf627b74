"""Edits -> new text: LibCST on the smallest run of whole statements that changes, spliced into the file. Writes no file.

What is outside a run is untouched by construction. A run that LibCST does not give back as it was, an anchor that is not
found, and an output that does not compile where the input did are errors, never silence.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from codemods.api.findings import DropImport, Edit, RemoveStatement, ReplaceLines, Span
from codemods.files.notebook import NotebookModule, cannot_be_written
from codemods.files.source import SourceModule, child_nodes
from codemods.files.text_file import TextFile
from codemods.rewriting import blocks, text_edits
from codemods.rewriting.neighbour_guards import joined_guards
from codemods.rewriting.run_writer import RunWriter
from codemods.rewriting.runs import RewriteError, Run, find_runs, indent_of, is_blank, newline_of, steps, with_blank_lines
from codemods.runtime.deep_stack import with_deep_stack

# LibCST copies a chain once for each of its links: at 20,000 of them that can take minutes (1.9, measured).
DEEPEST = 2500
SHORT = 5_000  # characters: the tree of a longer run is not kept
TOO_DEEP = "an expression here is nested too deeply to be written anew"
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
        if isinstance(module, NotebookModule) and (why := cannot_be_written(module, text)):
            raise RewriteError(why)
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
    taken = steps(module)
    joined = joined_guards(module, edits)
    for run in find_runs(module, list(dict.fromkeys(edits)), joined):
        try:
            new = _Rewriting(module, run, taken.at(run.top), joined).text(edits)
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
        return TOO_DEEP
    if isinstance(error, cst.ParserSyntaxError):
        return f"LibCST cannot read it: {error.message}"
    return " ".join(str(error).split()) or type(error).__name__


def _depth(text: str) -> int:
    """How many levels deep the deepest expression is; 0 for what only LibCST reads."""
    try:
        level: list[ast.AST] = [ast.parse(text)]
    except SyntaxError:
        return 0
    depth = 0
    while level:
        level = [child for node in level for child in child_nodes(node)]
        depth += 1
    return depth


def _must_compile(module: SourceModule, text: str) -> None:
    """`ast.parse` alone accepts a repeated keyword; compiling does not."""
    if (error := _compile_error(module.path, text)) and not _compile_error(module.path, module.text):
        raise RewriteError(f"the new text of {module.path} would not compile: {error}")


def _must_be_read(module: SourceModule, text: str) -> None:
    """What somebody else wrote is held against LibCST, which is to write in it the next time."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # LibCST does not give back lines that end in a lone \r
    if _depth(text) > DEEPEST:
        raise RewriteError(f"{module.path}: {TOO_DEEP}")
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


class _TooDeep(Exception):
    """A text that LibCST would take minutes for."""


class _OtherText(Exception):
    """LibCST does not give back the text as it is."""


def _tree(text: str) -> tuple[cst.Module, Mapping[cst.CSTNode, object]]:
    """The text as LibCST reads it, with the places of its nodes."""
    if _depth(text) > DEEPEST:
        raise _TooDeep
    tree = cst.parse_module(text)
    if tree.code != text:
        raise _OtherText
    if tree.header and tree.body:  # comments above the first statement are its own here, not the module's
        first, *rest = tree.body
        lead = [*tree.header, *blocks.lead_of(first)]
        tree = tree.with_changes(header=[], body=[blocks.with_lead(first, lead), *rest])
    return tree, MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)


# A run is written again for each commit that an `apply` makes, and for each fix that is shown alone; no tree is ever changed.
_short_tree = lru_cache(maxsize=16)(_tree)


class _Rewriting:
    """One run: read by LibCST under `if 1:` where it is indented, so that every line keeps its form."""

    def __init__(self, module: SourceModule, run: Run, unit: str, joined: Mapping[Span, Span]) -> None:
        self.module, self.run, self.unit, self.joined = module, run, unit, joined

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
        whole = header + text
        try:
            tree, positions = _short_tree(whole) if len(whole) < SHORT else _tree(whole)
        except _TooDeep:
            raise RewriteError(f"{self.module.path}:{self.run.top}: {TOO_DEEP}") from None
        except _OtherText:
            where = f"{self.module.path}:{self.run.top}-{self.run.bottom}"
            raise RewriteError(f"LibCST does not give back {where} as it is") from None
        shift = self.run.top - 1 - (1 if header else 0)
        taken_from = tree.body[0] if header else None
        writer = RunWriter(self.run.edits, positions, shift, self.unit, taken_from, self.joined)
        new = tree.visit(writer)
        writer.all_made(self.module.path)
        return new.code[len(header) :] if _statements_of(new, header) else ""

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
