"""A shell's text -> its simple commands as words with their places. What the shell would decide at run time stays unknown.

The rules are those of POSIX 2.2 and 2.3 (quoting, token recognition) as far as they bear on where a word begins and ends.
"""

from __future__ import annotations

import re

from codemods.late_pattern import late
from codemods.record import field, record

_BLANK = " \t"
_ENDS = ";&|()\n\r"
_PLAIN = late(r"[^\s'\"\\$`;&|()<>#]+")
_NUMBER = late(r"\d+")
_HEREDOC = late(r"<<-?[ \t]*(['\"]?)([\w.-]+)\1")
_CLOSING = {"(": ")", "{": "}"}
# an unquoted word with one of these is a pattern, a list or a home folder that the shell replaces
_EXPANDED = late(r"[*?\[]|\{[^{}]*(?:,|\.\.)[^{}]*\}|^~|\{\{")


@record
class Word:
    """One word. raw: as written; value: what the program is given, None where the shell decides; start, end: in the text."""

    raw: str
    value: str | None
    start: int
    end: int


def commands(text: str) -> list[tuple[Word, ...]]:
    """The simple commands of a script in order, redirections and comments left out; as far as the quotes are balanced."""
    reader = _Reader(text)
    try:
        reader.read()
    except _Unbalanced:
        reader.words.clear()
    return reader.commands


class _Unbalanced(Exception):
    """A quote or a bracket that is not closed: what follows means nothing."""


@record(frozen=False)
class _Reader:
    text: str
    at: int = 0
    words: list[Word] = field(default_factory=list)
    commands: list[tuple[Word, ...]] = field(default_factory=list)
    heredocs: list[str] = field(default_factory=list)

    def read(self) -> None:
        text, size = self.text, len(self.text)
        while self.at < size:
            char = text[self.at]
            if char in _BLANK:
                self.at += 1
            elif char == "\\" and (end := self._line_end(self.at + 1)):
                self.at = end
            elif char == "#":
                self.at = self._rest_of_line()
            elif char in "<>":
                self._redirection()
            elif char in _ENDS:
                self._end_command(char)
            else:
                self.words.append(self._word())
        self._finish()

    def _finish(self) -> None:
        if self.words:
            self.commands.append(tuple(self.words))
            self.words.clear()

    def _end_command(self, char: str) -> None:
        self._finish()
        self.at += 1
        if char in "\r\n":
            if char == "\r" and self.text.startswith("\n", self.at):
                self.at += 1
            for mark in self.heredocs:
                end = re.compile(rf"^[ \t]*{re.escape(mark)}[ \t]*\r?$", re.M).search(self.text, self.at)
                if end is None:
                    raise _Unbalanced
                self.at = end.end()
            self.heredocs.clear()

    def _line_end(self, at: int) -> int:
        """Behind the line end at `at`, 0 where there is none."""
        for end in ("\r\n", "\n", "\r"):
            if self.text.startswith(end, at):
                return at + len(end)
        return 0

    def _rest_of_line(self) -> int:
        ends = [end for mark in "\r\n" if (end := self.text.find(mark, self.at)) >= 0]
        return min(ends, default=len(self.text))

    def _redirection(self) -> None:
        if self.words and self.words[-1].end == self.at and _NUMBER.fullmatch(self.words[-1].raw):
            self.words.pop()
        if (heredoc := _HEREDOC.match(self.text, self.at)) and not self.text.startswith("<<<", self.at):
            self.heredocs.append(heredoc.group(2))
            self.at = heredoc.end()
            return
        while self.at < len(self.text) and self.text[self.at] in "<>&|":
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in _ENDS + "<>":
            self._word()

    def _word(self) -> Word:
        start, text = self.at, self.text
        value: str | None = ""
        while self.at < len(text) and text[self.at] not in _BLANK + _ENDS + "<>":
            part = self._part()
            value = None if value is None or part is None else value + part
        return Word(text[start : self.at], value, start, self.at)

    def _part(self) -> str | None:
        """One stretch of a word, quoted in one way; the value, or None where it is decided at run time."""
        text, at = self.text, self.at
        char = text[at]
        if char == "'":
            self.at = self._after("'", at + 1)
            return text[at + 1 : self.at - 1]
        if char == '"':
            return self._double_quoted()
        if char == "\\":
            end = self._line_end(at + 1)
            self.at = end or min(at + 2, len(text))
            return "" if end else text[at + 1 : at + 2]
        if char in "$`":
            self._substitution()
            return None
        plain = _PLAIN.match(text, at)
        self.at = plain.end() if plain else at + 1
        piece = text[at : self.at]
        return None if _EXPANDED.search(piece) else piece

    def _double_quoted(self) -> str | None:
        text, out, known = self.text, "", True
        self.at += 1
        while True:
            if self.at >= len(text):
                raise _Unbalanced
            char = text[self.at]
            if char == '"':
                self.at += 1
                return out if known else None
            if char in "$`":
                self._substitution()
                known = False
            elif char == "\\" and text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n", "\r"):
                end = self._line_end(self.at + 1)
                out += "" if end else text[self.at + 1]
                self.at = end or self.at + 2
            else:
                out += char
                self.at += 1

    def _substitution(self) -> None:
        """Past `$name`, `${…}`, `$(…)` or a pair of backticks."""
        text = self.text
        if text[self.at] == "`":
            self.at = self._after("`", self.at + 1)
            return
        self.at += 1
        opening = text[self.at : self.at + 1]
        if opening not in _CLOSING:
            name = re.compile(r"\w+|[@*#?$!-]").match(text, self.at)
            self.at = name.end() if name else self.at
            return
        depth = 0
        while self.at < len(text):
            char = text[self.at]
            if char in "'" + '"' and opening == "(":
                self.at = self._after(char, self.at + 1)
                continue
            depth += (char == opening) - (char == _CLOSING[opening])
            self.at += 1
            if not depth:
                return
        raise _Unbalanced

    def _after(self, mark: str, at: int) -> int:
        end = self.text.find(mark, at)
        if end < 0:
            raise _Unbalanced
        return end + 1
