"""What a codemod is: a class that reads one module and says what it finds. It never imports LibCST."""

from __future__ import annotations

import ast
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, ClassVar

from codemods.api.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from codemods.files.quotes import with_its_quotes
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.files.spelling import as_written, own_names
from codemods.files.text_file import YAML_KINDS, TextFile
from codemods.runtime.record import replace
from codemods.store.project import Project

SECTIONS = ("What it does", "Why it matters", "Example", "Use instead", "Safety", "Refuses", "References")
TOPICS = ("flags", "metrics", "ranks", "sync", "data_loading", "checkpoints", "trainer", "launch", "upgrades", "tuning")

# Words that show a file has to do with several processes. Common words of a codemod count only beside one of these.
DISTRIBUTED: tuple[bytes, ...] = (
    b"rank", b"lightning", b"torch.distributed", b"DistributedDataParallel", b"ccelerat", b"TrainingArguments",
    b"TrainerCallback",
)  # fmt: skip


def built_in() -> list[type[DdpCodemod]]:
    """Every codemod in the topic folders: a new file there is all it takes."""
    classes: list[type[DdpCodemod]] = []
    for topic in TOPICS:
        package = import_module(f"codemods.{topic}")
        files = sorted(os.listdir(package.__path__[0]))  # pkgutil would do it with `inspect`, for 10 ms
        for name in (file.removesuffix(".py") for file in files if file.endswith(".py") and file != "__init__.py"):
            module = import_module(f"codemods.{topic}.{name}")
            classes += [
                value for value in vars(module).values()  # an ABC asks all of its classes about one that is none of them: 28 ms
                if isinstance(value, type) and value.__module__ == module.__name__ and issubclass(value, DdpCodemod)
            ]  # fmt: skip
    return classes


def _doc(cls: type) -> str:
    import inspect

    return inspect.getdoc(cls) or ""


def _as_quoted(module: SourceModule, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits of a Python file with the strings that they write in the quotes of the file."""
    if isinstance(module, TextFile):
        return edits
    out = []
    for edit in edits:
        for name in ("code", "test", "value") if edit.path == module.path else ():
            given = getattr(edit, name, "")
            if '"' in given and (code := with_its_quotes(module, given, edit.span)) != given:
                changed: dict[str, Any] = {name: code}
                edit = replace(edit, **changed)
        out.append(edit)
    return tuple(out)


def _as_named(module: SourceModule, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits with the name that the methods they stand in have for `self`."""
    if not edits or not getattr(module, "own_objects", None):
        return edits
    methods = [(module.span(method), own) for method, own in module.own_objects.items()]
    out = []
    for edit in edits:
        own = next((own for span, own in methods if edit.path == module.path and span.holds(edit.span)), "")
        for name in ("code", "test", "value") if own else ():
            if hasattr(edit, name):
                changed: dict[str, Any] = {name: as_written(getattr(edit, name), own)}
                edit = replace(edit, **changed)
        out.append(edit)
    return tuple(out)


class DdpCodemod(ABC):
    """One rule and its repair.

    code: `DDP101`. TRIGGERS: byte words, an AND of ORs; a file that does not hold one word of each group is never parsed
    for this codemod. SITES: where the words are common, patterns of which one must be found as well. READS_TESTS: False where
    a repository's own tests, which run on one process, are left out. severity: what the error does to a run that nobody repaired,
    one of `findings.SEVERITIES`; "" is not known. ends_each_run: no run of several processes gets past what it finds, so it is
    reported of a program that is written for a launcher's processes, though no text launches it. takes_several: what rank 0
    does there alone is right, so that it takes a program in which a second rank comes there. names_failure: it finds what makes
    each run end, so that a place no run gets past is no reason against it. names_end_of_others: it finds where the other ranks
    end, so that rank 0 alone comes there. names_number: it names one number that is not reduced, so that another number of the
    same function that is shows that ranks are meant. TEXT: words of which a file that
    is no Python must hold one to be looked at, none where the codemod reads Python only; TEXT_KINDS: how the names of such files
    end.
    subject: what the commit of its fixes does, in at most sixty characters. must_show: what a test on two processes must show.
    printed: the exact messages where a fix is wrong, empty where nothing is printed, None where that is not known.
    name: for people, where it is not that of the file. The docstring holds a summary line and the sections of SECTIONS, each
    under `## `.
    """

    code: ClassVar[str]
    TRIGGERS: ClassVar[tuple[tuple[bytes, ...], ...]]
    SITES: ClassVar[tuple[re.Pattern[bytes] | Site, ...]] = ()
    READS_TESTS: ClassVar[bool] = True
    severity: ClassVar[Severity] = ""
    ends_each_run: ClassVar[bool] = False
    takes_several: ClassVar[bool] = False
    names_failure: ClassVar[bool] = False
    names_end_of_others: ClassVar[bool] = False
    names_number: ClassVar[bool] = False
    subject: ClassVar[str] = ""
    must_show: ClassVar[str] = "The changed lines run on two processes; the paragraphs on safety above say what must hold."
    printed: ClassVar[tuple[str, ...] | None] = None
    TEXT: ClassVar[tuple[bytes, ...]] = ()
    TEXT_KINDS: ClassVar[tuple[str, ...]] = YAML_KINDS
    opt_in: ClassVar[bool] = False
    name: ClassVar[str] = ""

    @classmethod
    def file_name(cls) -> str:
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def rule_name(cls) -> str:
        """The name for people: that of the file, with hyphens."""
        return cls.name or cls.file_name().replace("_", "-")

    @classmethod
    def topic(cls) -> str:
        return cls.__module__.split(".")[-2] if cls.__module__.startswith("codemods.") else "plugins"

    @classmethod
    def summary(cls) -> str:
        return _doc(cls).partition("\n")[0]

    @classmethod
    def sections(cls) -> dict[str, str]:
        """The docstring by heading."""
        parts = re.split(r"^## (.+)$", _doc(cls), flags=re.M)
        return {parts[i].strip(): parts[i + 1].strip() for i in range(1, len(parts) - 1, 2)}

    @classmethod
    def appendix(cls) -> str:
        """Markdown for the end of the page: what is kept as data, not in the docstring."""
        return ""

    @classmethod
    def commit_subject(cls, findings: Sequence[Finding]) -> str:
        """What the commit of these fixes does, in at most sixty characters: `Train on NCCL`. "" for `Fix` and the name."""
        del findings
        return cls.subject

    @classmethod
    def nodes(cls, findings: Sequence[Finding]) -> int:
        """On how many machines a test of these fixes must run: 2 where one machine cannot tell the old code from the new."""
        del findings
        return 1

    def concerns(self, data: bytes) -> bool:
        """False where the bytes lack the words or the site, so that nothing can be found in them."""
        data = own_names(data)
        if not all(any(word in data for word in group) for group in self.TRIGGERS):
            return False
        return not self.SITES or any(site.search(data) for site in self.SITES)

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        """False where what is known of other files already shows that nothing can be found in this one. Parses no file for it
        that is not parsed anyway.
        """
        del path, project
        return True

    @abstractmethod
    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """What is wrong in `module`. Reads other files through `project` only."""

    def finding(
        self,
        module: SourceModule,
        at: ast.AST | Span,
        message: str,
        *,
        level: Applicability = Applicability.DISPLAY,
        edits: Iterable[Edit] = (),
        evidence: Iterable[Evidence] = (),
        reason: str = "",
        group: str = "",
        symbol: str | None = None,
        severity: Severity = "",
    ) -> Finding:
        """A finding at a node. With DISPLAY there is no fix, and `reason` says why. severity: where it is not the codemod's, as
        of what may happen only.
        """
        made = _as_quoted(module, _as_named(module, tuple(edits)))
        fix = Fix(level, made, group) if made and level is not Applicability.DISPLAY else None
        where = at if isinstance(at, Span) else module.span(at)
        if symbol is None:
            symbol = "" if isinstance(at, Span) else module.symbol(at)
        return Finding(
            self.code, self.rule_name(), module.path, where, symbol, message, tuple(evidence), reason, fix,
            severity=severity or self.severity,
        )  # fmt: skip
