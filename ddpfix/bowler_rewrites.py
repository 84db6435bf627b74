"""Bowler in memory: a team's own renames, and plugins written as a Bowler `Query`. Never its writer, never a process.

Bowler 0.9.0 is no longer developed and its grammar (fissix, about Python 3.9) fails on `match`, parenthesised `with`, `except*`,
PEP 695, 696 and 701, and positional-only parameters; its writer turns CRLF into LF, dies on latin-1, loses a missing final
newline and exits 0 after a failed patch (measured). So it gets a text and gives a text; a file that it cannot read is renamed
through `ast` and LibCST. Nothing of it is imported until a rewrite asks for it.
"""

from __future__ import annotations

import ast
import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding, ReplaceLines, Span
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix import answers

if TYPE_CHECKING:
    from bowler import Query

Places = Sequence[tuple[Span, str]]


class CannotRead(Exception):
    """A text that Bowler's grammar does not know. The text of the error says where."""


@cache
def bowler_module() -> Any:  # noqa: ANN401 (it has no types)
    """Bowler, with its grammar's cache in our folder; where that cannot be written, in a folder that goes with the process."""
    before = os.environ.get("XDG_CACHE_HOME")
    place = Path(answers.folder()) / "bowler"
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / "writable").touch()
    except OSError:
        place = Path(tempfile.mkdtemp(prefix="ddpfix-bowler-"))
    os.environ["XDG_CACHE_HOME"] = str(place)  # read once, when its grammar is imported
    try:
        import bowler
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before
    return bowler


def new_text(query: Query, text: str, path: str) -> str:
    """What the query makes of a text. Raises CannotRead; any other error is the query's own."""
    bowler_module()
    from fissix.pgen2.parse import ParseError
    from fissix.pgen2.tokenize import TokenError
    from fissix.refactor import RefactoringTool

    class InMemory(RefactoringTool):  # type: ignore[misc]
        def get_fixers(self) -> tuple[list[Any], list[Any]]:
            made = [fixer(self.options, self.fixer_log) for fixer in query.compile()]
            return [f for f in made if f.order == "pre"], [f for f in made if f.order == "post"]

    whole = text if text.endswith("\n") else f"{text}\n"
    tool = InMemory([], {"print_function": getattr(query, "python_version", 3) == 3})
    try:
        tree = tool.driver.parse_string(whole)
    except (ParseError, TokenError, IndentationError, UnicodeDecodeError) as error:
        raise CannotRead(_where(error)) from error
    tree.future_features = frozenset()
    tool.refactor_tree(tree, path)
    made = str(tree)
    return made if text.endswith("\n") else made.removesuffix("\n")


def _where(error: Exception) -> str:
    """`line 11, at 'kind'`: the parser gives a context, the tokenizer a place behind its message, Python a line."""
    context = getattr(error, "context", None) or error.args[1:] or ("",)
    place = context[-1]
    line = getattr(error, "lineno", None) or (place[0] if isinstance(place, tuple) and isinstance(place[0], int) else 0)
    word = str(getattr(error, "value", None) or "").strip()
    if not line:
        return " ".join(str(error).split())
    return f"line {line}, at {word!r}" if word else f"line {line}"


class BowlerCodemod(DdpCodemod):
    """A codemod whose edits a Bowler `Query` makes. A subclass gives the query and, in its docstring, the reasons.

    level: how far its fixes may be trusted. Each changed run of lines is a finding; those of a file are made together or not at
    all. What the query makes must be Python that both `ast` and LibCST read, or nothing is changed and that is told.
    """

    level: ClassVar[Applicability] = Applicability.UNSAFE

    @abstractmethod
    def query(self) -> Query:
        """A new query, without paths: `Query().select_function("old").rename("new")`."""

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        del project
        lines = [line.rstrip("\r\n") + "\n" for line in module.lines]
        ends = not module.lines or module.lines[-1].endswith(("\n", "\r"))
        text = "".join(lines) if ends else "".join(lines).removesuffix("\n")
        top = Span(1, 0, 1, 0)
        try:
            made = new_text(self.query(), text, module.path)
        except CannotRead as error:
            yield self.finding(module, top, self.summary(), reason=f"Bowler's grammar cannot read this file: {error}")
            return
        if made == text:
            return
        try:
            ast.parse(made)
        except SyntaxError as error:
            yield self.finding(module, top, self.summary(), reason=f"what the query makes of this file is no Python: {error}")
            return
        for edit in changed_lines(module, made):
            yield self.finding(
                module, edit.span, self.summary(), level=self.level, edits=[edit], group=module.path, symbol="",
                reason="a Bowler query goes by names and shapes: look at what it makes",
            )  # fmt: skip


def changed_lines(module: SourceModule, text: str) -> Iterator[ReplaceLines]:
    """The runs of lines in which `text` (its lines end in \\n) differs from the module's, in the line ends of their place."""
    old = module.lines
    new = text.splitlines(keepends=True) if "\f" not in text and "\v" not in text else _lines(text)
    plain = [line.rstrip("\r\n") for line in old]
    for word, i, j, k, m in SequenceMatcher(None, plain, [n.rstrip("\n") for n in new], autojunk=False).get_opcodes():
        if word == "equal":
            continue
        if i == j:  # only new lines: they go behind the line before
            i, k = (i - 1, k - 1) if i else (i, k)
            j, m = (j, m) if i < j else (j + 1, m + 1)
        first = old[i]
        end = first[len(first.rstrip("\r\n")) :] or "\n"
        code = "".join(line.rstrip("\n") + end for line in new[k:m])
        if j == len(old) and not old[-1].endswith(("\n", "\r")):
            code = code.removesuffix(end)
        yield ReplaceLines(module.path, Span(i + 1, 0, j + 1, 0), code)


def _lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [text.rpartition("\n")[2]] * (not text.endswith("\n"))


def only_bowler_reads(data: bytes) -> bool:
    """True for a text that Python cannot read any more, and Bowler's grammar can: Python 2."""
    try:
        new_text(bowler_module().Query(python_version=2).select_root(), data.decode("utf-8"), "")
    except (CannotRead, UnicodeDecodeError):
        return False
    return True
