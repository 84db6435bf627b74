"""Hears what codemods ask about one line, and finds the question that decided.

The calls of the codemods' own functions are watched as they run. Of what a function asks, the last answer decided its own: a
codemod goes on to the next place as soon as one answer lets it, and so does every function below it. So only the last question
of each call is kept, with the one that it rests on.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import CodeType, FrameType

from codemods.analysis.variance.settling import Settling
from codemods.api.codemod import DdpCodemod
from codemods.engine.find import find_in
from codemods.files.left_alone import Left, hearing
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix import asked_answers, asked_versions
from ddpfix.asked_places import LINE, NONE, OTHER, ROUND, Places
from ddpfix.plain_answers import asks_what_is_not, sentence, sentence_of_name

_FIND = find_in.__code__.co_filename  # of what it is asked only yes and no are answers: the rest are findings


def _memo_of(module: SourceModule) -> int:
    """Any function of a module: what `once_a_module` makes of all of them is the same code."""
    return len(module.lines)


_FIRST = 2  # open calls: that of the listener, and the function that was called first
_CONTAINING = Project.files_containing.__code__
_REMEMBERING = {Project.memo.__code__, Project.keep.__code__, Settling.answer.__code__, once_a_module(_memo_of).__code__}


@record
class Asked:
    """A question and its answer. because: the last that was asked to answer it. kind: as in `asked_places`.

    of: the function that was asked. is_new: nothing has asked it of the line before. by_itself: its answer is a yes, a no or a
    None, and no list that happens to be empty. is_thing: something was found, of which more is asked.
    recognises: the answer is a yes, or a thing that is more than a part of the tree, of what codemods look for.
    """

    text: str
    kind: str
    of: CodeType
    path: str = ""
    line: int = 0
    because: Asked | None = None
    is_new: bool = True
    by_itself: bool = True
    is_thing: bool = False
    recognises: bool = False


class Call:
    """What one running function has heard so far.

    last: the last question that was answered below it. best: kind -> the last question asked of the line, of what stands round
    it, of the line on behalf of another place (OTHER), and of no place at all (NONE). now: the kind of place it looks at.
    since: how many questions of the line, and of versions, had been heard when it began.
    """

    __slots__ = ("best", "kind", "last", "line", "now", "path", "since")

    def __init__(self, kind: str = NONE, path: str = "", line: int = 0, since: tuple[int, int] = (0, 0)) -> None:
        self.kind, self.path, self.line, self.since = kind, path, line, since
        self.last: Asked | None = None
        self.best: dict[str, Asked] = {}
        self.now = NONE

    @property
    def decided(self) -> Asked | None:
        """The question that let the line be."""
        return next((self.best[kind] for kind in (LINE, ROUND, NONE, OTHER) if kind in self.best), None)

    def take(self, below: Call, said: Asked | None, *, gave: bool) -> None:
        """The call that ended, with its own question if it was one. gave: it gave something back."""
        if said is None or not said.is_thing:
            self.last = said or below.last or self.last
        if below.kind == LINE:
            self.now = LINE
            self._put(LINE, said or below.best.get(LINE) or (None if gave else below.last))
        elif below.kind == OTHER:
            self.now = OTHER
            self._put(OTHER, below.best.get(LINE) or below.best.get(OTHER))
        elif said is not None and (said.by_itself or LINE not in below.best):
            self._put(LINE if self.now == LINE else below.kind, said)
        else:
            for kind, asked in below.best.items():
                self._put(kind, asked)
            if below.now:  # who was given nothing goes on to the next place
                self.now = below.now if gave else OTHER

    def _put(self, kind: str, asked: Asked | None) -> None:
        """Of several things in the line the one counts that came furthest: what was asked before of another decides nothing."""
        held = self.best.get(kind)
        if asked is not None and (held is None or asked.is_new or asked.of is held.of or kind != LINE):
            self.best[kind] = asked


class Heard:
    """What was heard while each remembered answer was worked out: the call, the questions of the line, those of versions, and
    the places that were left alone.
    """

    def __init__(self) -> None:
        self.calls: dict[Hashable, tuple[Call, list[Asked], list[str], dict[Left, None]]] = {}


class Listener:
    """Watches the calls of one thread. rules: what decided in each method of the codemod that looked at the line in vain.

    before: what listeners of the same project have heard: it remembers their answers, too.
    """

    def __init__(self, places: Places, before: Heard | None = None) -> None:
        self.root = Call()
        self.versions: list[str] = []
        self.left: dict[Left, None] = {}
        self._left = [self.left]  # of the whole, and of each answer that is being worked out, to be remembered
        self.rules: dict[CodeType, Asked | None] = {}
        self._open = [self.root]
        self._places = places
        self._known = before or Heard()
        self._own: dict[CodeType, bool] = {}
        self._texts: dict[CodeType, str] = {}
        self.trail: list[Asked] = []  # all that was asked of the line for its own sake
        self._asked_of_line: set[CodeType] = set()
        self.others: dict[int, set[str]] = {}  # other lines of the file that were asked of -> modules that got an answer
        self.refused: list[Asked] = []  # what the function that was called first asked itself, with a no or nothing for an answer
        self.absent: list[bytes] = []  # of that, the words that no file of the project holds
        self._within = 0  # running calls that are about the line, or about another place

    def __call__(self, frame: FrameType, event: str, value: object) -> Listener | None:
        """As `sys.settrace` wants it: of frames that are not watched only the call comes here, of C functions nothing."""
        code = frame.f_code
        if event == "call":
            own = self._own.get(code)
            if own is None:
                own = self._own[code] = asked_answers.is_of_catalogue(code)
            if not own:
                return None
            frame.f_trace_lines = False
            self._open.append(self._called(frame, code))
        elif event == "return" and len(self._open) > 1:
            self._returned(frame, code, self._open.pop(), value)
        return self

    def _called(self, frame: FrameType, code: CodeType) -> Call:
        if code in _REMEMBERING:
            self._left.append({})
        if code in _REMEMBERING or code.co_name == "__init__":
            return Call(since=(len(self.trail), len(self.versions)))
        given = frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        place = self._places.of_all([v for n in names if n in given and not isinstance(v := given[n], DdpCodemod)])
        self._within += place.kind in (LINE, OTHER)
        if place.kind == OTHER and place.path in ("", self._places.module.path):
            self.others.setdefault(place.line, set())
        return Call(place.kind, place.path or self._open[-1].path, place.line)

    def _returned(self, frame: FrameType, code: CodeType, call: Call, value: object) -> None:
        self._within -= call.kind in (LINE, OTHER)
        if code in _REMEMBERING:
            call = self._remembered(frame, call)
        said, gave = self._said(frame, code, call, value), asked_answers.gives(value)
        if call.kind == LINE and not gave and not code.co_flags & asked_answers.GENERATOR and self._is_of_codemod(frame, code):
            self.rules[code] = said or call.best.get(LINE) or call.last
        if gave and call.line in self.others and call.kind == OTHER:
            self.others[call.line].add(code.co_filename)
        asked = said or call.last
        if asked is not None and not gave and len(self._open) == _FIRST and code is not _CONTAINING:
            self.refused.append(asked)
        self._open[-1].take(call, said, gave=gave)

    def hear(self, left: Left) -> None:
        """A place that was left alone: an answer that is remembered has each once, however often it was asked for."""
        self._left[-1][left] = None

    def _is_of_codemod(self, frame: FrameType, code: CodeType) -> bool:
        """True for a method of the codemod itself: of several that are asked about a place each looks for something else."""
        return bool(code.co_argcount) and isinstance(frame.f_locals.get(code.co_varnames[0]), DdpCodemod)

    def _remembered(self, frame: FrameType, call: Call) -> Call:
        """What was heard when the answer was worked out, which may have been for another place."""
        given = frame.f_locals
        key = (id(given["self"]), given["key"]) if "key" in given else (id(given["build"]), id(given["module"]))
        trail, versions = call.since
        left = self._left.pop() if len(self._left) > 1 else {}
        if call.last is not None or call.best or left:
            self._known.calls[key] = call, self.trail[trail:], self.versions[versions:], left
            self._left[-1].update(left)
            return call
        before, asked, versions_then, left_then = self._known.calls.get(key, (call, (), (), {}))
        self.trail += asked
        self.versions += versions_then
        self._left[-1].update(left_then)
        self._asked_of_line.update(a.of for a in asked)
        return before

    def _said(self, frame: FrameType, code: CodeType, call: Call, value: object) -> Asked | None:
        if code.co_name in asked_versions.METHODS:
            return self._of_version(frame, code, call, value)
        if code is _CONTAINING:
            return None if value else self._of_word(frame.f_locals["word"], code)
        text = self._texts.get(code)
        if text is None:
            text = self._texts[code] = "" if code in _REMEMBERING else asked_answers.question(code)
        judges = code.co_argcount > 1 and isinstance(value, bool) and not asked_answers.reads_only(code)
        named = not text and bool(call.kind) and judges
        if not (text or named) or (isinstance(value, list) and code.co_filename == _FIND) or _lets_go_on(frame, call, value):
            return None
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if names and isinstance(frame.f_locals.get(names[0]), Enum):
            return None  # a word of the answer before it
        if asked_answers.spells((frame.f_locals.get(name) for name in names), value):
            return None
        answer = asked_answers.in_words(value) or ("found" if call.kind == LINE else "")
        said = sentence_of_name(code.co_name, answer) if named else answer and sentence(text, names, answer)
        if not said:
            return None
        is_new = call.kind != LINE or code not in self._asked_of_line
        by_itself = asked_answers.is_by_itself(value)
        is_thing = answer == "found"
        because = None if is_thing else call.last
        is_topic = (value is True and not asks_what_is_not(text)) or (is_thing and not asked_answers.is_syntax(value))
        recognises = is_topic and not asked_answers.is_of_structure(code)
        asked = Asked(said, call.kind, code, call.path, call.line, because, is_new, by_itself, is_thing, recognises)
        if call.kind == LINE and not self._within:
            self._asked_of_line.add(code)
            self.trail.append(asked)
        return asked

    def _of_word(self, word: bytes, code: CodeType) -> Asked:
        if len(self._open) == _FIRST:
            self.absent.append(word)
        return Asked(no_file_holds([word]), NONE, code, by_itself=False)

    def _of_version(self, frame: FrameType, code: CodeType, call: Call, value: object) -> Asked | None:
        given = frame.f_locals
        said = asked_versions.answered(given.get("self"), code.co_name, given.get("version"), value)
        if not said:
            return None
        self.versions.append(said)
        call.kind = NONE  # the pin has a place, and the question has none
        return Asked(said, NONE, code)


@contextmanager
def listening(places: Places, before: Heard | None = None) -> Iterator[Listener]:
    """Writes down what functions of `codemods` are asked about the line, in this thread."""
    listener = Listener(places, before)
    traced = sys.gettrace()
    sys.settrace(listener)
    try:
        with hearing(listener.hear):
            yield listener
    finally:
        sys.settrace(traced)


def _lets_go_on(frame: FrameType, call: Call, value: object) -> bool:
    """True for what is asked of the file in front of all codemods, and stops none of them."""
    return value is False and not call.kind and frame.f_back is not None and frame.f_back.f_code.co_filename == _FIND


def no_file_holds(words: Sequence[bytes]) -> str:
    return "no file of the project holds " + " or ".join(f"`{word.decode(errors='replace')}`" for word in words)
