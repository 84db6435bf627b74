"""The codemods there are: found by walking the topic folders of `codemods` and the entry points of `ddpfix.codemods`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from importlib.machinery import PathFinder

from codemods.api.codemod import TOPICS, DdpCodemod, built_in
from codemods.runtime.record import record

ENTRY_POINTS = "ddpfix.codemods"
OTHER_TOPICS = ("project", "plugins")  # of renames given as data, and of plug-ins


class UnknownSelector(Exception):
    """A code, name or topic that nothing answers to."""

    def __init__(self, word: str, near: Sequence[str]) -> None:
        hint = f"; did you mean {near[0]}?" if near else ""
        super().__init__(f"no codemod, name or topic is called {word!r}{hint}")
        self.word = word


@cache
def all_codemods() -> tuple[DdpCodemod, ...]:
    """One instance of every codemod, by code. Raises ValueError where two share a code."""
    found: dict[str, DdpCodemod] = {}
    for cls in (*built_in(), *installed()[0]):
        if cls.code in found:
            raise ValueError(f"two codemods have the code {cls.code}: {cls.__qualname__} and {found[cls.code]!r}")
        found[cls.code] = cls()
    return tuple(found[code] for code in sorted(found))


@cache
def installed() -> tuple[tuple[type[DdpCodemod], ...], tuple[tuple[str, str], ...]]:
    """(the codemods of other distributions, the entry points that could not be used with the reason)."""
    if not any_plugged_in():
        return (), ()
    from importlib.metadata import entry_points  # with email, zipfile and socket: 25 to 45 ms

    classes: list[type[DdpCodemod]] = []
    failed: list[tuple[str, str]] = []
    codes = {c.code for c in built_in()}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            cls = point.load()
            if why := misfit(cls, codes):
                failed.append((point.value, why))
            else:
                cls()  # an abstract one fails here
                classes.append(cls)
                codes.add(cls.code)
        except Exception as error:  # somebody else's code: whatever it raises, the run goes on without it
            failed.append((point.value, f"{type(error).__name__}: {error}"))
    return tuple(classes), tuple(failed)


def any_plugged_in() -> bool:
    """False if no distribution can hold an entry point of ours, told from the folders of sys.path alone."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for place in sys.path:
        try:
            if any(ENTRY_POINTS.encode() in text for text in _entry_points(place or ".")):
                return True
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            pass  # not there, or not to be read: importlib.metadata passes over it, too
    return False


def _entry_points(place: str) -> Iterator[bytes]:
    """The texts in which the distributions of a folder name their entry points."""
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.lower().endswith((".dist-info", ".egg-info")) or entry.name == "EGG-INFO":
                try:
                    with open(os.path.join(entry.path, "entry_points.txt"), "rb") as file:
                        yield file.read()
                except OSError:
                    pass  # it has none


def misfit(cls: object, taken: Container[str]) -> str:
    """Why something cannot be used as a codemod, "" where it can."""
    if not (isinstance(cls, type) and issubclass(cls, DdpCodemod)):
        return "it is no DdpCodemod"
    code = getattr(cls, "code", None)
    if not isinstance(code, str) or not re.fullmatch(r"[A-Z]{2,}\d+", code):
        return f"{cls.__name__} has no code such as ACME001"
    if code.startswith("PRJ") or code in taken:
        return f"the code {code} of {cls.__name__} is taken"
    if not getattr(cls, "TRIGGERS", ()):
        return f"{cls.__name__} has no TRIGGERS: the words without which a file need not be read"
    return ""


def is_plugged_in(codemod: DdpCodemod) -> bool:
    """True for a codemod that is not this distribution's own."""
    return not type(codemod).__module__.startswith(("codemods.", "ddpfix."))


@record
class Selection:
    """What the user asked for: words are code prefixes, names or topics."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend: tuple[str, ...] = ()


def topic_words() -> tuple[str, ...]:
    return tuple(topic.replace("_", "-") for topic in TOPICS)


def matches(codemod: DdpCodemod, word: str) -> bool:
    """True if the word is the codemod's code or a prefix of it, its name, its topic, or `all`."""
    word = word.strip()
    letters = re.match(r"[A-Z]+", codemod.code)
    if letters and word.upper().startswith(letters[0]):
        return codemod.code.startswith(word.upper())
    plain = word.lower().replace("_", "-")
    return plain in (codemod.rule_name(), codemod.topic().replace("_", "-"), "all")


def check_words(words: Iterable[str], codemods: Sequence[DdpCodemod]) -> None:
    """Raises UnknownSelector for a word nothing answers to. A topic may still be empty; DDP000 is nobody's codemod."""
    known = [*topic_words(), "all", "DDP000", *(w for c in codemods for w in (c.code, c.rule_name()))]
    for word in words:
        plain = word.strip().lower().replace("_", "-")
        code = word.strip().upper()
        if plain in (*topic_words(), *OTHER_TOPICS, "all") or code.startswith("PRJ"):
            continue
        if code.startswith("DDP") and "DDP000".startswith(code):
            continue
        if not any(matches(c, word) for c in codemods):
            raise UnknownSelector(word, _near(word, known))


def selected(selection: Selection, *more: DdpCodemod) -> tuple[DdpCodemod, ...]:
    """The codemods to run: opt-in ones only where select or extend names them. Raises UnknownSelector.

    more: what only this project has.
    """
    among = (*all_codemods(), *more)
    check_words((*selection.select, *selection.ignore, *selection.extend), among)
    chosen = []
    for codemod in among:
        by_default = not codemod.opt_in if not selection.select else any(matches(codemod, w) for w in selection.select)
        named = by_default or any(matches(codemod, w) for w in selection.extend)
        if named and not any(matches(codemod, w) for w in selection.ignore):
            chosen.append(codemod)
    return tuple(chosen)


def lookup(word: str) -> DdpCodemod:
    """The codemod of that code or name. Raises UnknownSelector."""
    for codemod in all_codemods():
        if word.upper() == codemod.code or word.lower().replace("_", "-") == codemod.rule_name():
            return codemod
    known = [w for c in all_codemods() for w in (c.code, c.rule_name())]
    raise UnknownSelector(word, _near(word, known))


def _near(word: str, known: Sequence[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(word, known, n=1, cutoff=0.5)
