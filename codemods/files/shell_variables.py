"""The variables that a shell script gives a value itself, as far as it is known where a command stands.

A variable is known between an assignment of a literal that every run comes to and the next one. Numbers are left: how many
processes, which device and port are what people change from run to run. So are folders from the root of somebody's machine,
but for a script there: its name says which one is meant.
"""

from __future__ import annotations

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record

_ASSIGNED = lazy(r"(\w+)(\+?)=")
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_OPENS = frozenset({"if", "case", "for", "while", "until", "select", "{", "function"})
_CLOSES = frozenset({"fi", "esac", "done", "}"})
_WITHIN = frozenset({"then", "else", "elif", "do"})
_GIVES = frozenset({"for", "select", "read", "unset", "mapfile", "readarray"})  # names without an `=`
_NUMBER = lazy(r"[\d.,:]*$")
_ELSEWHERE = lazy(r"[/~](?!.*\.py$)")
# `method`, `{method}`, `{method:-unimatch}`: the text behind the dollar
_ASKED = lazy(r"(?:\{(\w+)(?::?[-=]([\w./@%+=-]*))?\}|(\w+))$")


@record(frozen=False)
class Variables:
    """known: by name, the value where it is known. lost: names that some runs give another value."""

    known: dict[str, str] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    depth: int = 0

    def value(self, asked: str) -> str | None:
        """What the text behind a dollar stands for; None where the script does not show it."""
        match = _ASKED.match(asked)
        if match is None:
            return None
        name = match[1] or match[3]
        if name in self.known:
            return self.known[name]
        return _kept(match[2]) if match[2] and name not in self.lost and not name.isdigit() else None

    def read(self, words: list[tuple[str, str | None]], *, always: bool) -> None:
        """Take note of a command: its words as (raw, value). always: no `&&`, `|` or bracket before it decides on it."""
        rest = words
        while rest and rest[0][0] in _OPENS | _CLOSES | _WITHIN:
            word = rest[0][0]
            self.depth += (word in _OPENS) - (word in _CLOSES)
            if word in _GIVES and len(rest) > 1:
                self._lose(rest[1][0])
            rest = rest[1:]
        if rest and rest[0][0] in _GIVES:
            for raw, _ in rest[1:]:
                self._lose(raw)
        if rest and rest[0][0] in _DECLARES:
            rest = [w for w in rest[1:] if not w[0].startswith("-")]
        if any(_ASSIGNED.match(raw) is None for raw, _ in rest):
            return  # `METHOD=b python train.py` gives it to that program alone
        for raw, value in rest:
            match = _ASSIGNED.match(raw)
            assert match is not None
            kept = _kept(value[match.end() :]) if value is not None and not match[2] else None
            if not always or self.depth > 0 or match[1] in self.lost:
                self._lose(match[1])
            elif kept is None:
                self.known.pop(match[1], None)
                self.lost.add(match[1])
            else:
                self.known[match[1]] = kept

    def _lose(self, name: str) -> None:
        self.known.pop(name, None)
        self.lost.add(name)


def _kept(value: str) -> str | None:
    return None if _NUMBER.match(value) or _ELSEWHERE.match(value) else value
