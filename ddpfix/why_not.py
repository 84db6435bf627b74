"""Why a line has no finding: which codemods looked at it, what they asked, and what the answers were.

Nothing is written down twice: the codemods run as they always do, and the calls of their own functions are watched. A question
is a function of `codemods` that was handed a node of the line, or the function round it; its docstring says what it asks.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from codemods.analysis.ranks.gate_names import gate_names
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding, Span
from codemods.engine.find import find_in
from codemods.files.left_alone import Left
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.runtime.deep_stack import with_deep_stack
from codemods.runtime.record import record, replace
from codemods.store.project import Project
from ddpfix import engine, plugins
from ddpfix.asked_places import LINE, NONE, ROUND, Places
from ddpfix.discovery import Tree
from ddpfix.gate import Gate
from ddpfix.listening import Asked, Heard, Listener, listening, no_file_holds
from ddpfix.nearest_rules import MOST as MOST_NEAR
from ddpfix.nearest_rules import missing_words, nearest
from ddpfix.place_facts import facts
from ddpfix.settings import Settings
from ddpfix.stated import Stated, concerning
from ddpfix.told_elsewhere import LIGHT, at_callers, in_function, lines_round, said_elsewhere

MOST_JUDGED = 2  # lines of the same function that a codemod is followed to: each is a run
MOST = 4  # questions that are shown of a codemod: the one that decided, and what it rests on
MOST_ELSEWHERE = 5
FEW = 3  # codemods; where so few are asked, what they asked of the file as a whole is an answer, too


@record
class Judged:
    """A line that holds the words of a codemod, and what decided there."""

    line: int
    reason: str


@record
class Looked:
    """What one codemod did. found: its findings whose span holds the line, every: all of the file; reasons: the question that
    decided, and those it rests on; beside: its findings of other lines whose evidence or fix names this one; asks: it asked
    something of the line itself; recognised: it found something there, or a pin let it be; judged: where it asked nothing here,
    lines of the same function; said: what its code said of places that it left alone.
    """

    codemod: DdpCodemod
    found: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    beside: tuple[Finding, ...] = ()
    asks: bool = False
    recognised: bool = False
    judged: tuple[Judged, ...] = ()
    every: tuple[Finding, ...] = ()
    said: tuple[Left, ...] = ()

    @property
    def is_silent(self) -> bool:
        return not (self.found or self.reasons or self.beside or self.judged)


@record
class Passed:
    """A codemod that leaves the file out before it reads it, and why."""

    codemod: DdpCodemod
    reasons: tuple[str, ...] = ()


@record
class WhyNot:
    """The answer for one line. closed: codemods without any of their words in the file; passed: those that leave the file out.

    copy: the file lies in a copy of a package, which a check of the project leaves alone. stated: what the code said that left
    the place alone; elsewhere: findings of other lines that may be the same fault; facts: how the place is read; nearest: rules
    that speak of what stands there, with the words for want of which they do not look at the file.
    """

    path: str
    line: int
    source: str
    looked: tuple[Looked, ...]
    passed: tuple[Passed, ...]
    closed: tuple[DdpCodemod, ...]
    unread: str = ""
    copy: str = ""
    stated: tuple[Stated, ...] = ()
    elsewhere: tuple[Finding, ...] = ()
    facts: tuple[str, ...] = ()
    nearest: tuple[tuple[DdpCodemod, str], ...] = ()


def why_not(tree: Tree, settings: Settings, path: str, line: int) -> WhyNot:
    """What each codemod that the settings select makes of a line of a Python or YAML file. `path` is that of the tree."""
    tree, chosen = plugins.with_codemods(tree, settings)
    read = engine.disk_reader(tree.root)
    project = engine.project_of(tree, settings, read, Project).seen_from(path)
    data = project.read(path) or b""
    ranks = gate_names(project)
    opened = [c for c in chosen if Gate([c], ranks).open_for(data, path)]
    module = project.module(path)
    entered = [(c, *_entered(c, module, project, path, line)) for c in opened]
    closed = tuple(c for c in chosen if c not in opened)
    passed = tuple(Passed(c, reasons) for c, enters, reasons, _ in entered if not enters)
    if module is None:
        return WhyNot(path, line, "", (), passed, closed, unread=project.why_unreadable(path))
    text = module.lines[line - 1].strip() if line <= len(module.lines) else ""
    few = len(chosen) <= FEW
    fresh, before = _anew(project, path), Heard()
    looked = tuple(_looked(c, fresh, before, path, line, few=few) for c, enters, _, _ in entered if enters)
    said = [*((one.codemod, one.said) for one in looked), *((c, places) for c, enters, _, places in entered if not enters)]
    beside = _anew(project, path)  # what is asked unheard must not be known to who is heard
    near = nearest(beside, chosen, module, line)
    silent = [c for c in near if all(one.codemod is not c or one.is_silent for one in looked)]
    said += said_elsewhere(beside, module, [] if isinstance(module, TextFile) else silent)
    return with_deep_stack(
        lambda: WhyNot(
            path, line, text, looked, passed, closed, copy=tree.copy_round(path),
            stated=concerning(said, path, line, lines_round(module, line)),
            elsewhere=_elsewhere(looked, beside, module, line, chosen),
            facts=facts(beside, module, line),
            nearest=tuple((c, missing_words(c, data)) for c in near[:MOST_NEAR]),
        )
    )  # fmt: skip


def _elsewhere(
    looked: Sequence[Looked], project: Project, module: SourceModule, line: int, chosen: Sequence[DdpCodemod]
) -> tuple[Finding, ...]:
    """Findings of the function and of who calls it; none where the line has a grave one of its own."""
    if any(f.severity not in LIGHT for one in looked for f in one.found):
        return ()
    found = [f for one in looked for f in one.every]
    near = [*in_function(module, line, found), *at_callers(project, module, line, chosen)]
    return tuple({(f.code, f.path, f.span): f for f in near}.values())[:MOST_ELSEWHERE]


def _entered(
    codemod: DdpCodemod, module: SourceModule | None, project: Project, path: str, line: int
) -> tuple[bool, tuple[str, ...], tuple[Left, ...]]:
    """Whether the codemod looks at the file at all, what it asked to know that, and what it said."""
    if module is None:
        return codemod.is_worth_parsing(path, project), (), ()
    fresh = _anew(project, path)
    with listening(Places(module, line)) as heard:
        enters = codemod.is_worth_parsing(path, fresh)
    if enters:
        return True, (), ()
    words = tuple(dict.fromkeys(heard.absent))
    reasons = [*(_told(asked, path) for asked in heard.refused), *([no_file_holds(words)] if words else [])]
    return False, tuple(dict.fromkeys(reasons)) or _chain(heard.root.last, path)[:1], tuple(heard.left)


def _anew(project: Project, path: str) -> Project:
    """The project without any answer that was left behind."""
    return Project(
        project.files, project.raw, observed=project.observed, targets=project.targets, launched=project.launched
    ).seen_from(path)


def _looked(codemod: DdpCodemod, project: Project, before: Heard, path: str, line: int, *, few: bool) -> Looked:
    """What a codemod did with the line; where it asked nothing of it, what it did with its own lines of the same function."""
    looked, others = _watched(codemod, project, before, path, line, few=few)
    module = project.module(path)
    if module is None or looked.asks or looked.found or looked.beside:
        return looked
    judged = []
    for other in _own_lines(codemod, module, line, others):
        there, _ = _watched(codemod, project, before, path, other, few=False)
        if there.recognised and there.reasons and not (there.found or there.beside):
            judged.append(Judged(other, there.reasons[0]))
    return replace(looked, judged=tuple(judged)) if judged else looked


def _own_lines(codemod: DdpCodemod, module: SourceModule, line: int, asked: Mapping[int, Set[str]]) -> list[int]:
    """The lines of the function round `line` that the codemod judged: it asked about them, and they hold its words, or its own
    module found something there.
    """
    own = type(codemod).find.__code__.co_filename
    spans = [(f.lineno, f.end_lineno or f.lineno) for f in (*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef))]
    first, last = max((span for span in spans if span[0] <= line <= span[1]), default=(0, 0))
    inside = [n for n in asked if first < n <= last and n != line]
    worded = [n for n in inside if _is_of(codemod, module, n)]
    near = worded or [n for n in inside if own in asked[n]]
    return sorted(near, key=lambda n: (abs(n - line), n))[:MOST_JUDGED]


def _watched(
    codemod: DdpCodemod, project: Project, before: Heard, path: str, line: int, *, few: bool
) -> tuple[Looked, Mapping[int, Set[str]]]:
    """A run of one codemod over the file. What was heard of an answer that an earlier one left behind counts as heard again.

    With it come the other lines of the file that it asked something of.
    """
    module = project.module(path)
    assert module is not None

    def found_heard() -> tuple[list[Finding], Listener]:
        with listening(Places(module, line), before) as heard:  # in the thread that does the work
            return find_in(module, project, [codemod]), heard

    found, heard = with_deep_stack(found_heard)
    here = tuple(f for f in found if f.span.line <= line <= f.span.end_line)
    beside = tuple(f for f in found if f not in here and _names(f, module, line))
    decided = heard.root.decided
    is_of = few or _is_of(codemod, module, line)
    if decided is not None and decided.kind == NONE and not is_of:
        decided = None
    reasons = _chain(decided, module.path)
    others = [_told(rule, module.path) for rule in heard.rules.values() if rule is not None]
    first, rest = reasons[:1], reasons[1:]
    rules = others[::-1] if len(others) > 1 else []
    earlier = [_told(asked, module.path) for asked in reversed(heard.trail) if not asked.is_thing] if decided is not None else []
    reasons = tuple(dict.fromkeys([*first, *rules, *rest, *earlier]))[:MOST]
    if is_of and heard.versions and heard.versions[-1] not in reasons:
        reasons = (*reasons[: MOST - 1], heard.versions[-1])
    asks = bool(heard.trail) or (decided is not None and decided.kind == LINE)
    recognised = any(asked.recognises for asked in heard.trail) or (is_of and bool(heard.versions))
    looked = Looked(codemod, here, reasons, beside, asks, recognised, every=tuple(found), said=tuple(heard.left))
    return looked, heard.others


def _names(finding: Finding, module: SourceModule, line: int) -> bool:
    """True where the finding is of another line, and shows this one or changes it."""
    shown = any(e.path == module.path and e.line == line for e in finding.evidence)
    spans = (getattr(e, "span", None) for e in finding.edits if e.path == module.path)
    return shown or any(isinstance(s, Span) and s.line <= line <= s.end_line for s in spans)


def _chain(asked: Asked | None, path: str) -> tuple[str, ...]:
    """The question that decided, and what it rests on."""
    chain: list[str] = []
    while asked is not None:
        chain.append(_told(asked, path))
        asked = asked.because
    return tuple(dict.fromkeys(chain))[:MOST]


def _told(asked: Asked, path: str) -> str:
    """The question, with the place that it was asked of where that is another one."""
    if asked.kind in (LINE, NONE) or not asked.line:
        return asked.text
    place = f"line {asked.line}" if asked.path in ("", path) else f"{asked.path}:{asked.line}"
    return f"{place}, round it: {asked.text}" if asked.kind == ROUND else f"{place}: {asked.text}"


def _is_of(codemod: DdpCodemod, module: SourceModule, line: int) -> bool:
    """True for a line that holds words which the codemod looks for: a pin that lets it be silent answers for them."""
    text = module.lines[line - 1].encode() if line <= len(module.lines) else b""
    words = codemod.TEXT if isinstance(module, TextFile) else codemod.TRIGGERS[0] if codemod.TRIGGERS else ()
    return any(word in text for word in words)


def place(given: str) -> tuple[Path, int]:
    """`FILE:LINE` as its two parts. Raises ValueError."""
    file, _, number = given.rpartition(":")
    if not file or not number.isdigit() or int(number) < 1:
        raise ValueError(given)
    return Path(file), int(number)
