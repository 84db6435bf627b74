"""Why a line has no finding: which codemods looked at it, what they asked, and what the answers were.

Nothing is written down twice: the codemods run as they always do, and the calls of their own functions are watched. A question
is a function of `codemods` that was handed a node of the line, or the function round it; its docstring says what it asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from codemods.analysis.ranks.bound_to_rank import bound_to_rank
from codemods.codemod import DdpCodemod
from codemods.deep_stack import with_deep_stack
from codemods.find import find_in
from codemods.findings import Finding
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule
from codemods.text_file import TextFile
from ddpfix import engine, plugins
from ddpfix.asked_places import NONE, Places
from ddpfix.discovery import Tree
from ddpfix.gate import Gate
from ddpfix.listening import Asked, Listener, listening
from ddpfix.settings import Settings

MOST = 4  # questions that are shown of a codemod: the one that decided, and what it rests on


@record
class Looked:
    """What one codemod did. found: its findings whose span holds the line; reasons: the question that decided, and those it rests on."""

    codemod: DdpCodemod
    found: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


@record
class WhyNot:
    """The answer for one line. closed: codemods without any of their words in the file; passed: those that leave the file out."""

    path: str
    line: int
    source: str
    looked: tuple[Looked, ...]
    passed: tuple[DdpCodemod, ...]
    closed: tuple[DdpCodemod, ...]
    unread: str = ""


def why_not(tree: Tree, settings: Settings, path: str, line: int) -> WhyNot:
    """What each codemod that the settings select makes of a line of a Python or YAML file. `path` is that of the tree."""
    tree, chosen = plugins.with_codemods(tree, settings)
    read = engine.disk_reader(tree.root)
    project = engine.project_of(tree, settings, read).seen_from(path)
    data = project.read(path) or b""
    ranks = bound_to_rank(project)
    opened = [c for c in chosen if Gate([c], ranks).open_for(data, path)]
    asking = [c for c in opened if c.is_worth_parsing(path, project)]
    closed = tuple(c for c in chosen if c not in opened)
    passed = tuple(c for c in opened if c not in asking)
    module = project.module(path)
    if module is None:
        return WhyNot(path, line, "", (), passed, closed, unread=project.why_unreadable(path))
    text = module.lines[line - 1].strip() if line <= len(module.lines) else ""
    looked = tuple(_watched(codemod, module, project, line) for codemod in asking)
    return WhyNot(path, line, text, looked, passed, closed)


def _watched(codemod: DdpCodemod, module: SourceModule, project: Project, line: int) -> Looked:
    """A run of one codemod over the file, with answers that earlier ones left behind taken away."""
    fresh = Project(project.files, project.raw, observed=project.observed, targets=project.targets).seen_from(module.path)
    again = fresh.module(module.path)
    assert again is not None

    def found_heard() -> tuple[list[Finding], Listener]:
        with listening(Places(again, line)) as heard:  # in the thread that does the work
            return find_in(again, fresh, [codemod]), heard

    found, heard = with_deep_stack(found_heard)
    here = tuple(f for f in found if f.span.line <= line <= f.span.end_line)
    return Looked(codemod, here, _reasons(heard, module.path, _is_of(codemod, module, line)))


def _reasons(heard: Listener, path: str, is_of: bool) -> tuple[str, ...]:
    """The question that decided, and what it rests on."""
    chain: list[str] = []
    asked = heard.root.decided
    of_line = asked is not None and asked.kind != NONE
    while asked is not None:
        chain.append(_line_of(asked, path))
        asked = asked.because
    return tuple(dict.fromkeys(chain))


def _line_of(asked: Asked, path: str) -> str:
    return f"[{asked.kind} {asked.path if asked.path != path else ''}:{asked.line}] {asked.text}"


def _is_of(codemod: DdpCodemod, module: SourceModule, line: int) -> bool:
    """True for a line that holds words which the codemod looks for: a pin that lets it be silent answers for them."""
    text = module.lines[line - 1].encode() if line <= len(module.lines) else b""
    words = codemod.TEXT if isinstance(module, TextFile) else codemod.TRIGGERS[0] if codemod.TRIGGERS else ()
    return any(word in text for word in words)


def page(answer: WhyNot) -> str:
    """The answer as text for a terminal."""
    lines = [f"{answer.path}:{answer.line}: {answer.source}", ""]
    if answer.unread:
        return "\n".join([*lines, f"The file is not read: {answer.unread}", ""])
    for looked in answer.looked:
        lines += _of_codemod(looked)
    silent = [c for c in answer.looked if not c.found and not c.reasons]
    nothing = "look at the file, and ask nothing about the line: what they look for does not stand there"
    lines += _names(nothing, [s.codemod for s in silent])
    lines += _names("leave the file out: its kind, or what the project holds, is not theirs", answer.passed)
    lines += _names("find none of their words in the file", answer.closed)
    return "\n".join(lines) + "\n"


def _of_codemod(looked: Looked) -> Iterator[str]:
    codemod = looked.codemod
    head = f"{codemod.code} {codemod.rule_name()}"
    for finding in looked.found:
        yield f"{head} reports it ({finding.applicability.value}): {finding.message}"
        if finding.reason:
            yield f"    {finding.reason}"
    if looked.found:
        yield ""
    elif looked.reasons:
        yield f"{head} looked at it, and reports nothing here. The last that it asked:"
        for question in looked.reasons:
            yield f"    {question}"
        yield ""


def _names(what: str, those: Sequence[DdpCodemod]) -> list[str]:
    if not those:
        return []
    return [f"{len(those)} {what}:", f"    {', '.join(c.code for c in those)}", ""]


def place(given: str) -> tuple[Path, int]:
    """`FILE:LINE` as its two parts. Raises ValueError."""
    file, _, number = given.rpartition(":")
    if not file or not number.isdigit() or int(number) < 1:
        raise ValueError(given)
    return Path(file), int(number)


