"""Hears what codemods ask about one line, and finds the question that decided.

The calls of the codemods' own functions are watched as they run. Of what a function asks, the last answer decided its own: a codemod
goes on to the next place as soon as one answer lets it, and so does every function below it. So only the last question of each call
is kept, with the one that it rests on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import CodeType, FrameType

import codemods
from codemods.codemod import DdpCodemod
from codemods.find import find_in
from codemods.project import Project
from codemods.record import record
from codemods.source import once_a_module
from ddpfix import asked_versions
from ddpfix.asked_places import LINE, NONE, OTHER, ROUND, Places
from ddpfix.plain_answers import sentence

_HOME = str(Path(codemods.__file__).parent)
# They read files and texts, and judge nothing.
_LOOKUPS = frozenset(str(Path(_HOME) / n) for n in ("source.py", "project.py", "corpus.py", "findings.py", "analysis/names.py"))
_FIND = find_in.__code__.co_filename  # of what it is asked only yes and no are answers: the rest are findings
_GENERATOR = 0x20  # inspect.CO_GENERATOR: importing inspect takes longer than a check of a file
_REMEMBERING = {Project.memo.__code__, Project.keep.__code__, once_a_module(len).__code__}


@record
class Asked:
    """A question and its answer. because: the last that was asked to answer it. kind: as in `asked_places`."""

    text: str
    kind: str
    path: str = ""
    line: int = 0
    because: Asked | None = None


class Call:
    """What one running function has heard so far.

    last: the last question that was answered below it. best: kind -> the last question asked of the line, of what stands round it,
    of the line on behalf of another place (OTHER), and of no place at all (NONE). now: the kind of place it looks at.
    """

    __slots__ = ("best", "kind", "last", "line", "now", "path")

    def __init__(self, kind: str = NONE, path: str = "", line: int = 0) -> None:
        self.kind, self.path, self.line = kind, path, line
        self.last: Asked | None = None
        self.best: dict[str, Asked] = {}
        self.now = NONE

    @property
    def decided(self) -> Asked | None:
        """The question that let the line be."""
        return next((self.best[kind] for kind in (LINE, OTHER, ROUND, NONE) if kind in self.best), None)

    def take(self, below: Call, said: Asked | None) -> None:
        """The call that ended, with its own question if it was one."""
        self.last = said or below.last or self.last
        question = said or (below.last if below.kind else None)
        if below.kind == LINE:
            self.now = LINE
            if question is not None:
                self.best[LINE] = question
            return
        if below.kind == OTHER:
            self.now = OTHER
            for kind in (OTHER, LINE):
                if kind in below.best:
                    self.best[OTHER] = below.best[kind]
            return
        of_line = self.now == LINE
        self.best |= below.best
        self.now = below.now or self.now
        if said is not None:
            kind = LINE if of_line and self.now == LINE else below.kind
            self.best[kind] = said


class Listener:
    """Watches the calls of one thread."""

    def __init__(self, places: Places) -> None:
        self.root = Call()
        self.versions: list[str] = []
        self._open = [self.root]
        self._places = places
        self._known: dict[Hashable, Call] = {}
        self._own: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, value: object) -> None:
        if event != "call" and event != "return":
            return
        code = frame.f_code
        own = self._own.get(code)
        if own is None:
            own = self._own[code] = code.co_filename.startswith(_HOME) and not code.co_name.startswith("<")
        if not own:
            return
        if event == "call":
            self._open.append(self._called(frame, code))
        elif len(self._open) > 1:
            self._returned(frame, code, self._open.pop(), value)

    def _called(self, frame: FrameType, code: CodeType) -> Call:
        if code in _REMEMBERING or code.co_name == "__init__":
            return Call()
        given = frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        place = self._places.of_all([v for n in names if not isinstance(v := given.get(n), DdpCodemod)])
        return Call(place.kind, place.path or self._open[-1].path, place.line)

    def _returned(self, frame: FrameType, code: CodeType, call: Call, value: object) -> None:
        if code in _REMEMBERING:
            call = self._remembered(frame, call)
        self._open[-1].take(call, self._said(frame, code, call, value))

    def _remembered(self, frame: FrameType, call: Call) -> Call:
        """What was heard when the answer was worked out, which may have been for another place."""
        given = frame.f_locals
        key = (id(given["self"]), given["key"]) if "key" in given else (id(given["build"]), id(given["module"]))
        if call.last is not None or call.best:
            self._known[key] = call
        return self._known.get(key, call)

    def _said(self, frame: FrameType, code: CodeType, call: Call, value: object) -> Asked | None:
        if code.co_name in asked_versions.METHODS:
            given = frame.f_locals
            text = asked_versions.answered(given.get("self"), code.co_name, given.get("version"), value)
            if text:
                self.versions.append(text)
                call.kind = NONE  # the pin has a place, and the question has none
                return Asked(text, NONE)
            return None
        if code.co_flags & _GENERATOR or code.co_filename in _LOOKUPS or code in _REMEMBERING:
            return None
        if isinstance(value, list) and code.co_filename == _FIND:
            return None
        if code.co_argcount and isinstance(frame.f_locals.get(code.co_varnames[0]), Enum):
            return None  # a word of the answer before it
        answer = _answer(value)
        text = answer and sentence(_text_of(code), code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], answer)
        return Asked(text, call.kind, call.path, call.line, call.last) if text else None


@contextmanager
def listening(places: Places) -> Iterator[Listener]:
    """Writes down what functions of `codemods` are asked about the line, in this thread."""
    listener = Listener(places)
    before: Callable[[FrameType, str, object], object] | None = sys.getprofile()
    sys.setprofile(listener)
    try:
        yield listener
    finally:
        sys.setprofile(before)


def _text_of(code: CodeType) -> str:
    """The docstring, which a function's constants begin with; "" where it has none."""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) and " " in first else ""


def _answer(value: object) -> str:
    """The answer in words; "" for a thing that was looked up: it decides nothing by itself."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, (str, tuple, list, dict, set, frozenset)) and not value):
        return "nothing"
    if isinstance(value, Enum) and isinstance(value.value, str) and " " in value.value:
        return value.value
    return ""
