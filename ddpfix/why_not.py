"""Why a line has no finding: which codemods looked at it, what they asked, and what the answers were.

Nothing is written down twice: the codemods run as they always do, and the calls of their own functions are watched. A question
is a function of `codemods` that was handed a node of the line, or the function round it; its docstring says what it asks.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import codemods
from codemods.analysis.ranks.bound_to_rank import bound_to_rank
from codemods.codemod import DdpCodemod
from codemods.deep_stack import with_deep_stack
from codemods.find import find_in
from codemods.findings import Finding, Span
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule
from codemods.text_file import TextFile
from ddpfix import asked_versions, engine, plugins
from ddpfix.discovery import Tree
from ddpfix.gate import Gate
from ddpfix.plain_answers import sentence
from ddpfix.settings import Settings

MOST = 12  # questions that are shown of a codemod: the last ones decided
_DEEPEST = 6  # calls below the codemod's own: what lies deeper is how an answer was worked out
_DEEPEST_IN_TEXT = 10  # entries are handed on, not the nodes that they are made of
_HOME = str(Path(codemods.__file__).parent)
_LOOKUPS = (str(Path(_HOME) / "source.py"), str(Path(_HOME) / "analysis" / "names.py"))  # they read the text, and judge nothing
_ABOUT = {"line": "", "function": "of the function: ", "version": ""}
_GENERATOR = 0x20  # inspect.CO_GENERATOR: importing inspect takes longer than a check of a file


@record
class Question:
    """What was asked about the line, with the answer. about: `line`, `function`, or `version` of a package."""

    about: str
    text: str


@record
class Looked:
    """What one codemod did. found: its findings whose span holds the line; questions: in the order they were asked."""

    codemod: DdpCodemod
    found: tuple[Finding, ...] = ()
    questions: tuple[Question, ...] = ()


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
    questions: list[Question] = []

    def found_heard() -> list[Finding]:
        with _listening(again, line, questions):  # in the thread that does the work
            return find_in(again, fresh, [codemod])

    found = with_deep_stack(found_heard)
    here = tuple(f for f in found if f.span.line <= line <= f.span.end_line)
    if not (any(q.about == "line" for q in questions) or _is_of(codemod, module, line)):
        questions = [q for q in questions if q.about != "version"]
    return Looked(codemod, here, _clear(questions)[-MOST:])


def _clear(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Each once, without those that were answered by yes and by no: they were asked of what stands beside it, too."""
    answers: dict[str, set[str]] = {}
    for question in questions:
        asked, _, answer = question.text.rpartition(": ")
        answers.setdefault(asked, set()).add(answer)
    return tuple(q for q in dict.fromkeys(questions) if not {"yes", "no"} <= answers[q.text.rpartition(": ")[0]])


def _is_of(codemod: DdpCodemod, module: SourceModule, line: int) -> bool:
    """True for a line that holds words which the codemod looks for: a pin that lets it be silent answers for them."""
    text = module.lines[line - 1].encode() if line <= len(module.lines) else b""
    words = codemod.TEXT if isinstance(module, TextFile) else codemod.TRIGGERS[0] if codemod.TRIGGERS else ()
    return any(word in text for word in words)


@contextmanager
def _listening(module: SourceModule, line: int, heard: list[Question]) -> Iterator[None]:
    """Writes down what functions of `codemods` are asked about the line, in the order of their answers."""
    about = _text_of_line(line) if isinstance(module, TextFile) else _of_line(_nodes_of(module, line))
    deepest = _DEEPEST_IN_TEXT if isinstance(module, TextFile) else _DEEPEST
    own: dict[CodeType, bool] = {}
    judges: dict[CodeType, bool] = {}
    depth = 0

    def listen(frame: FrameType, event: str, value: object) -> None:
        nonlocal depth
        code = frame.f_code
        if code not in own:
            own[code] = code.co_filename.startswith(_HOME) and not code.co_name.startswith("<")
            judges[code] = not code.co_flags & _GENERATOR and code.co_filename not in _LOOKUPS
        if not own[code]:
            return
        if event == "call":
            depth += 1
        elif event == "return":
            depth -= 1
            if code.co_name in asked_versions.METHODS:
                given = frame.f_locals
                said = asked_versions.answered(given.get("self"), code.co_name, given.get("version"), value)
                heard.extend([Question("version", said)] if said else [])
            elif depth <= deepest and judges[code] and (answer := _said(value)) and (what := _asked_about(frame, about)):
                said = sentence(_text_of(code), code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], answer)
                heard.extend([Question(what, said)] if said else [])

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        yield
    finally:
        sys.setprofile(before)


def _nodes_of(module: SourceModule, line: int) -> dict[int, str]:
    """id of a node -> what it is: a part of the line, or the function that the line stands in."""
    out: dict[int, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.stmt, ast.expr)) and node.lineno == line:
            out[id(node)] = "line"
            function = module.function_of(node)
            if function is not None:
                out.setdefault(id(function), "function")
    return out


def _of_line(nodes: dict[int, str]) -> Callable[[object], str]:
    return lambda value: nodes.get(id(value), "")


def _text_of_line(line: int) -> Callable[[object], str]:
    """What an argument is in a file without a tree: an entry, a setting, a flag that stands in the line."""

    def kind(value: object) -> str:
        if not type(value).__module__.startswith("codemods."):
            return ""
        span = getattr(value, "key_span", None) or getattr(value, "span", None)
        return "line" if isinstance(span, Span) and span.line <= line <= span.end_line else ""

    return kind


def _asked_about(frame: FrameType, about: Callable[[object], str]) -> str:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = {about(frame.f_locals.get(name)) for name in names}
    return "line" if "line" in kinds else "function" if "function" in kinds else ""


def _text_of(code: CodeType) -> str:
    """The docstring, which a function's constants begin with; "" where it has none."""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) and " " in first else ""


def _said(value: object) -> str:
    """The answer in a word; "" for a thing that was looked up: it decides nothing by itself."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, Collection) and not value):
        return "nothing"
    return ""


def page(answer: WhyNot) -> str:
    """The answer as text for a terminal."""
    lines = [f"{answer.path}:{answer.line}: {answer.source}", ""]
    if answer.unread:
        return "\n".join([*lines, f"The file is not read: {answer.unread}", ""])
    for looked in answer.looked:
        lines += _of_codemod(looked)
    silent = [c for c in answer.looked if not c.found and not c.questions]
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
    elif looked.questions:
        yield f"{head} looked at it, and reports nothing here. The last that it asked:"
        for question in looked.questions:
            yield f"    {_ABOUT[question.about]}{question.text}"
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


