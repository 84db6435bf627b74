"""The renames that a project asks for in its own settings, given as data: which mentions count is in analysis/mentions.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from codemods.analysis.mention_places import Rename
from codemods.analysis.mentions import mentions
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, RenameName, ReplaceExpression, Span
from codemods.files.source import SourceModule
from codemods.runtime.record import replace
from codemods.store.project import Project
from ddpfix.bowler_rewrites import CannotRead, Places, bowler_module, changed_lines, new_text

if TYPE_CHECKING:
    from bowler import Query


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

    query: Query = bowler_module().Query()
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
                left = self.finding(module, span, _said(rename), reason=f"left as it is: {doubt}")
                yield replace(left, renames=((rename.old, rename.new),))
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
            found = self.finding(
                module, edit.span, "; ".join(map(_said, here)), level=Applicability.UNSAFE, edits=[edit], evidence=evidence,
                group=self.kind, symbol="", reason="; ".join([RUN_TIME, *filter(None, (_to_move(project, r) for r in here))]),
            )  # fmt: skip
            yield replace(found, renames=tuple((r.old, r.new) for r in here))


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
    return list(dict.fromkeys(pair for f in findings for pair in f.renames))


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
