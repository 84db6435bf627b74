"""What the variables of a shell script hold where a command stands, for a reader who pastes the command alone.

Other than `files/shell_variables`, which an edit trusts, this puts in numbers, folders of one machine, and the values of the
branch that the command stands in: the reader sees them, and may change them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codemods.files.passages import Passage, WordList
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import DOCUMENT_KINDS
from codemods.runtime.record import field, record

_ASKED = re.compile(r"\$(?:\{(\w+)(?::?[-=]([\w./@%+=:,-]+))?\}|([A-Za-z_]\w*))")
_COUNTED = re.compile(r"\$\(\(([^()]*)\)\)")
_NAME = re.compile(r"\$?\{?\b([A-Za-z_]\w*)\}?")
_SUM = re.compile(r"\d+(?:[ ]*[*/+-][ ]*\d+)*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.S)
_PLAIN = re.compile(r"[\w./@%+=:,\- ]*")
_OF_ANOTHER = re.compile(r"\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)")  # a variable that is set elsewhere, for the reader to give
_QUOTED = re.compile(r"([\"'])([^\"']*)\1")
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_OPENS = frozenset({"if", "case", "for", "while", "until", "select", "{"})
_CLOSES = frozenset({"fi", "esac", "done", "}"})
_OTHER_ARM = frozenset({"else", "elif"})
_WITHIN = frozenset({"then", "do", "else", "elif"})
_TAKES = frozenset({"read", "unset", "mapfile", "readarray", "getopts"})


@record(frozen=False)
class _Block:
    """before: what was known where it begins. given: each value that it gives a variable, None for one that is not known."""

    before: dict[str, str]
    given: dict[str, set[str | None]] = field(default_factory=dict)


@record(frozen=False)
class _Values:
    known: dict[str, str] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)

    def give(self, name: str, value: str | None) -> None:
        for block in self.blocks:
            block.given.setdefault(name, set()).add(value)
        if value is None:
            self.known.pop(name, None)
        else:
            self.known[name] = value

    def other_arm(self) -> None:
        if self.blocks:
            self.known = dict(self.blocks[-1].before)

    def close(self) -> None:
        """Behind a block a variable is known where each way gives it the same value, or where the block alone gives it one."""
        block = self.blocks.pop()
        self.known = dict(block.before)
        for name, values in block.given.items():
            only = next(iter(values)) if len(values) == 1 else None
            if only is None or self.known.get(name, only) != only:
                self.known.pop(name, None)
            else:
                self.known[name] = only

    def read(self, words: Sequence[Word]) -> None:
        rest = list(words)
        while rest and rest[0].raw in _OPENS | _CLOSES | _WITHIN:
            opening = rest.pop(0).raw
            if opening in _OPENS:
                self.blocks.append(_Block(dict(self.known)))
                if opening in ("for", "select") and rest:
                    self._loop(rest)
            elif opening in _CLOSES and self.blocks:
                self.close()
            elif opening in _OTHER_ARM:
                self.other_arm()
        if rest and rest[0].raw in _TAKES:
            for word in rest[1:]:
                self.give(word.raw, None)
        if rest and rest[0].raw in _DECLARES:
            rest = [w for w in rest[1:] if not w.raw.startswith("-")]
        found = [match for w in rest if (match := _ASSIGNED.fullmatch(w.raw))]
        for match in found if len(found) == len(rest) else ():  # `X=1 python a.py` gives it to that program alone
            name, added, raw = match.groups()
            before = self.known.get(name) if added else ""
            value = self._value(raw) if before is not None else None
            self.give(name, value if before is None or value is None else before + value)

    def _loop(self, rest: list[Word]) -> None:
        """`for size in small large`: the first round."""
        name, *given = rest
        rest.clear()
        self.give(name.raw, self._value(given[1].raw, whole=True) if len(given) > 1 and given[0].raw == "in" else None)

    def _value(self, raw: str, *, whole: bool = False) -> str | None:
        """Of a word; whole: no variable that is set elsewhere may be left in it."""
        quoted = _QUOTED.fullmatch(raw)
        inner = quoted[2] if quoted else raw
        if quoted and quoted[1] == "'":
            return inner if _PLAIN.fullmatch(inner) else None
        text = with_shown_values(inner, self.known)
        return text if _PLAIN.fullmatch(text if whole else _OF_ANOTHER.sub("", text)) else None


def with_shown_values(raw: str, known: Mapping[str, str]) -> str:
    """A piece of a command with the values that are known, and the rest as it stands: `${x:-y}` is `y` where nothing gives x."""

    def shown(match: re.Match[str]) -> str:
        return known.get(match[1] or match[3], match[2] or match.group())

    return _ASKED.sub(shown, _COUNTED.sub(lambda m: _result(m[1], known) or m.group(), raw))


def _result(counted: str, known: Mapping[str, str]) -> str:
    """Of `$((BATCH / GPUS))`, from left to right as a shell does; "" where a number is not known, or the order would matter."""
    text = _NAME.sub(lambda m: known.get(m[1], m.group()), counted).strip()
    if not _SUM.fullmatch(text) or (re.search(r"[*/]", text) and re.search(r"[+-]", text)):
        return ""
    first, *more = re.findall(r"\d+|[*/+-]", text)
    value = int(first)
    for operator, number in zip(more[::2], map(int, more[1::2]), strict=True):
        if operator == "/" and not number:
            return ""
        value = {"+": value + number, "-": value - number, "*": value * number, "/": value // (number or 1)}[operator]
    return str(value)


def shown_values(source: Passage | WordList, at: int) -> dict[str, str]:
    """The values where the command begins that stands at `at` of the text; of a document, also those of the blocks above."""
    if not isinstance(source, Passage):
        return {}
    values = _Values()
    if source.file.path.endswith(DOCUMENT_KINDS) and len(source.places):
        for start, end in source.file.fenced:
            if end <= source.places[0]:
                _follow(values, source.file.text[start:end], end - start)
                values.blocks.clear()
    _follow(values, source.text, at)
    return values.known


def _follow(values: _Values, text: str, at: int) -> None:
    last = 0
    for words in commands(text):
        if words[0].start >= at:
            if words[0].start == at and words[0].raw in _OTHER_ARM:
                values.other_arm()
            return
        if ";;" in text[last : words[0].start]:
            values.other_arm()
        values.read(words)
        last = words[-1].end
