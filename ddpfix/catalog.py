"""The codemods there are: found by walking the topic folders of `codemods` and the entry points of `ddpfix.codemods`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from codemods.codemod import TOPICS, DdpCodemod, built_in

ENTRY_POINTS = "ddpfix.codemods"


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
    for cls in (*built_in(), *_plugged_in()):
        if cls.code in found:
            raise ValueError(f"two codemods have the code {cls.code}: {cls.__qualname__} and {found[cls.code]!r}")
        found[cls.code] = cls()
    return tuple(found[code] for code in sorted(found))


def _plugged_in() -> list[type[DdpCodemod]]:
    from importlib.metadata import entry_points

    return [point.load() for point in entry_points(group=ENTRY_POINTS)]


def is_plugged_in(codemod: DdpCodemod) -> bool:
    """True for a codemod of another distribution."""
    return not type(codemod).__module__.startswith("codemods.")


@dataclass(frozen=True, slots=True)
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
    if word.upper().startswith("DDP"):
        return codemod.code.startswith(word.upper())
    plain = word.lower().replace("_", "-")
    return plain in (codemod.rule_name(), codemod.topic().replace("_", "-"), "all")


def check_words(words: Iterable[str]) -> None:
    """Raises UnknownSelector for a word nothing answers to. A topic may still be empty; DDP000 is nobody's codemod."""
    codemods = all_codemods()
    known = [*topic_words(), "all", "DDP000", *(w for c in codemods for w in (c.code, c.rule_name()))]
    for word in words:
        plain = word.strip().lower().replace("_", "-")
        code = word.strip().upper()
        if plain in topic_words() or plain == "all" or (code.startswith("DDP") and "DDP000".startswith(code)):
            continue
        if not any(matches(c, word) for c in codemods):
            raise UnknownSelector(word, difflib.get_close_matches(word, known, n=1, cutoff=0.5))


def selected(selection: Selection) -> tuple[DdpCodemod, ...]:
    """The codemods to run: opt-in ones only where select or extend names them. Raises UnknownSelector."""
    check_words((*selection.select, *selection.ignore, *selection.extend))
    chosen = []
    for codemod in all_codemods():
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
    raise UnknownSelector(word, difflib.get_close_matches(word, known, n=1, cutoff=0.5))
