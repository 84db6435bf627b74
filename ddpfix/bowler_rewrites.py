"""Bowler in memory: a team's own renames, and plugins written as a Bowler `Query`. Never its writer, never a process.

Bowler 0.9.0 is no longer developed and its grammar (fissix, about Python 3.9) fails on `match`, parenthesised `with`, `except*`,
PEP 695, 696 and 701, and positional-only parameters; its writer turns CRLF into LF, dies on latin-1, loses a missing final
newline and exits 0 after a failed patch (measured). So it gets a text and gives a text; a file that it cannot read is renamed
through `ast` and LibCST. Nothing of it is imported until a rewrite asks for it.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from codemods.analysis.mention_places import Rename
from codemods.analysis.mentions import mentions
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, RenameName, ReplaceExpression, ReplaceLines, Span
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix import answers

if TYPE_CHECKING:
    from bowler import Query

Places = Sequence[tuple[Span, str]]


class CannotRead(Exception):
    """A text that Bowler's grammar does not know. The text of the error says where."""


@cache
def _bowler() -> Any:  # noqa: ANN401 (it has no types)
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
    _bowler()
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


# Renames given as data


def renaming(places: Places) -> Query:
    """The query that puts the new names at these places. Columns are those of the text that it will be given."""
    starts = {(span.line, span.column): (span, new) for span, new in places}

    def meant(node: Any, capture: Mapping[str, Any], filename: str) -> bool:  # noqa: ANN401
        del capture, filename
        return any((leaf.lineno, leaf.column) in starts for leaf in node.leaves())

    def put(node: Any, capture: Mapping[str, Any], filename: str) -> None:  # noqa: ANN401
        del capture, filename
        inside: Span | None = None
        for leaf in node.leaves():
            at = (leaf.lineno, leaf.column)
            if at in starts:
                inside, leaf.value = starts[at]
                leaf.changed()
            elif inside and inside.line == at[0] and inside.column < at[1] < inside.end_column:
                leaf.value = leaf.prefix = ""  # the rest of a dotted name that was put whole

    query: Query = _bowler().Query()
    return query.select_root().filter(meant).modify(put)


class ProjectRename(DdpCodemod):
    """Renames that the project asks for in its own settings.

    ## What it does

    Makes the renames of `[tool.ddpfix.rewrites]`: `functions`, `methods`, `modules`, `attributes` and `keywords`, each a table
    of old names and new ones. A dotted old name narrows it: `utils.dist.is_main` is that function alone, wherever it is
    imported.

    ## Why it matters

    Repairs drag renames along, and a rename that misses a mention is a program that does not start.

    ## Safety

    Unsafe: it goes by names and imports, and Python finds names at run time, too. The renames of one table are made in all
    files or in none.

    ## Refuses

    A file in which the name has a second meaning; a method or attribute whose class cannot be told where the rename names one;
    a call that has the new keyword already. Each is told.
    """

    kind: ClassVar[str]
    name = "project-rename"
    must_show = "The program starts and its tests pass; a mention that was missed fails when its line is reached."

    def __init__(self, table: Mapping[str, str]) -> None:
        self.renames = tuple(Rename(self.kind, old, new) for old, new in table.items())
        self.TRIGGERS = (tuple(r.name.encode() for r in self.renames),)  # type: ignore[misc]

    @classmethod
    def topic(cls) -> str:
        return "project"

    @classmethod
    def sections(cls) -> dict[str, str]:
        """Its own, and those that hold for every table."""
        return super().sections() if cls is ProjectRename else {**ProjectRename.sections(), **super().sections()}

    @classmethod
    def commit_subject(cls, findings: Sequence[Finding]) -> str:
        pairs = renamed(findings)
        if not pairs:
            return cls.subject
        (old, new), more = pairs[0], len(pairs) - 1
        rest = f" and {more} more {cls.kind if more > 1 else cls.kind[:-1]}" if more else ""
        every = "Rename " + " and ".join(f"{a} to {b}" for a, b in pairs)
        return next((text for text in (every, f"Rename {old} to {new}{rest}") if len(text) <= 60), cls.subject)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        places: dict[Span, str] = {}
        asked: list[tuple[Span, Rename]] = []
        for rename in self.renames:
            if rename.name.encode() not in module.data:
                continue
            found = mentions(project, module, rename)
            for span, doubt in found.doubts:
                yield self.finding(module, span, _said(rename), reason=f"left as it is: {doubt}")
            asked += [(span, rename) for span, _ in found.places]
            places.update(found.places)
        if places:
            yield from self._renamed(module, project, sorted(places.items()), asked)

    def _renamed(
        self, module: SourceModule, project: Project, places: Places, asked: Sequence[tuple[Span, Rename]]
    ) -> Iterator[Finding]:
        edits, evidence = edits_for(module, places)
        for edit in edits:
            last = max(edit.span.line, edit.span.end_line - (edit.span.end_column == 0))
            there = [(s, r) for s, r in asked if edit.span.line <= s.line <= last]
            here = list(dict.fromkeys(r for s, r in there if s == edit.span) or dict.fromkeys(r for _, r in there))
            yield self.finding(
                module, edit.span, "; ".join(map(_said, here)), level=Applicability.UNSAFE, edits=[edit], evidence=evidence,
                group=self.kind, symbol="", reason="; ".join([RUN_TIME, *filter(None, (_to_move(project, r) for r in here))]),
            )  # fmt: skip


class RenamedFunctions(ProjectRename):
    """Functions that have a new name in this project.

    ## What it does

    Renames the definition at the top of a file, its imports, every use of the name they bind, `module.name` and `__all__`.
    """

    kind, code = "functions", "PRJ001"
    subject = "Rename functions as the project asks"
    printed = ("ImportError: cannot import name", "NameError: name")


class RenamedMethods(ProjectRename):
    """Methods that have a new name in this project.

    ## What it does

    Renames the definitions in classes, and `.name` on anything that is no module; with a class before the dot, that of the
    class and its heirs alone.
    """

    kind, code = "methods", "PRJ002"
    subject = "Rename methods as the project asks"
    printed = ("object has no attribute",)


class RenamedModules(ProjectRename):
    """Modules that have a new name in this project.

    ## What it does

    Renames imports of every form, and `package.module.x`. Moving the file is left to people.
    """

    kind, code = "modules", "PRJ003"
    subject = "Rename modules as the project asks"
    printed = ("ModuleNotFoundError: No module named",)


class RenamedAttributes(ProjectRename):
    """Attributes that have a new name in this project.

    ## What it does

    Renames what classes declare, and `.name` on anything that is no module.
    """

    kind, code = "attributes", "PRJ004"
    subject = "Rename attributes as the project asks"
    printed = ("object has no attribute",)


class RenamedKeywords(ProjectRename):
    """Keyword arguments that have a new name in this project.

    ## What it does

    Renames the argument where it is given; the parameter itself is left to people.
    """

    kind, code = "keywords", "PRJ005"
    subject = "Rename keyword arguments as the project asks"
    printed = ("got an unexpected keyword argument",)


RUN_TIME = "a rename goes by names and imports: what is looked up at run time is not seen"


def _to_move(project: Project, rename: Rename) -> str:
    """What is left to do by hand: mentions that are told; and a module's file, moved with git, which keeps its history."""
    if rename.kind in ("methods", "attributes") and rename.owner:
        return f"`.{rename.name}` on an object whose class is not known keeps its name, is reported, and is yours to rename"
    if rename.kind != "modules":
        return ""
    old = project.resolve(rename.old, "")
    if old is None or old.rest:
        return ""
    stem = old.path.removesuffix("/__init__.py").removesuffix(".py")
    tail = "" if old.path.endswith("/__init__.py") else ".py"
    new = f"{stem.removesuffix(rename.name)}{rename.new.rpartition('.')[2]}{tail}"
    return f"the file is yours to move: git mv {stem}{tail} {new}"


def _said(rename: Rename) -> str:
    return f"`{rename.old}` is called `{rename.new}` in this project"


def renamed(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """The (old, new) names that findings of a rename speak of, in their order."""
    said = (pair for f in findings for pair in re.findall(r"`([^`]+)` is called `([^`]+)` in this project", f.message))
    return list(dict.fromkeys(said))


def edits_for(module: SourceModule, places: Places) -> tuple[Sequence[Edit], tuple[Evidence, ...]]:
    """The edits of a rename, through Bowler; where its grammar cannot read the file, through LibCST, and that is said."""
    lines = [line.rstrip("\r\n") + "\n" for line in module.lines]
    text = "".join(lines)
    try:
        made = new_text(renaming(places), text, module.path)
        if made != _spliced(lines, places):
            raise CannotRead("an f-string is one word to it")
    except CannotRead as error:
        why = f"Bowler's grammar cannot read this file ({error}): renamed through LibCST"
        return _one_by_one(module, places), (Evidence("static", why, module.path, 0),)
    return list(changed_lines(module, made)), ()


def _spliced(lines: Sequence[str], places: Places) -> str:
    """The text with the new names in it."""
    out = list(lines)
    for span, new in sorted(places, reverse=True):
        out[span.line - 1] = out[span.line - 1][: span.column] + new + out[span.line - 1][span.end_column :]
    return "".join(out)


def _one_by_one(module: SourceModule, places: Places) -> list[Edit]:
    texts = ("'", '"')
    return [
        ReplaceExpression(module.path, span, new) if new.endswith(texts) else RenameName(module.path, span, new)
        for span, new in places
    ]


TABLES = {cls.kind: cls for cls in (RenamedFunctions, RenamedMethods, RenamedModules, RenamedAttributes, RenamedKeywords)}


def project_renames(tables: Mapping[str, Mapping[str, str]]) -> tuple[DdpCodemod, ...]:
    """The codemods of `[tool.ddpfix.rewrites]`, one for each table that holds something."""
    return tuple(TABLES[kind](table) for kind, table in tables.items() if table)


def kind_of(code: str) -> DdpCodemod | None:
    """The codemod of a code, without renames: for its reasons. The name, which is no code, means all of them."""
    if code == "PROJECT-RENAME":
        return _AnyRename({})
    return next((cls({}) for cls in TABLES.values() if cls.code == code), None)


class _AnyRename(ProjectRename):
    __doc__ = ProjectRename.__doc__
    kind, code = "functions", "PRJ"


def only_bowler_reads(data: bytes) -> bool:
    """True for a text that Python cannot read any more, and Bowler's grammar can: Python 2."""
    try:
        new_text(_bowler().Query(python_version=2).select_root(), data.decode("utf-8"), "")
    except (CannotRead, UnicodeDecodeError):
        return False
    return True
