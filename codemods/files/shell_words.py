"""A shell's text -> its simple commands as words with their places. What the shell would decide at run time stays unknown.

The rules are those of POSIX 2.2 and 2.3 (quoting, token recognition) as far as they bear on where a word begins and ends.
"""

from __future__ import annotations

import contextlib
import re

from codemods.files.shell_variables import Variables
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record

_BLANK = " \t"
_ENDS = ";&|()\n\r"
_PLAIN = lazy(r"[^\s'\"\\$`;&|()<>#]+")
_NUMBER = lazy(r"\d+")
_HEREDOC = lazy(r"<<-?[ \t]*(?:(['\"])([^'\"\n]+)\1|\\?([^\s'\"\\$`;&|()<>]+))")  # `<<EOF`, `<<"the end"`, `: <<!`
_SPLIT = lazy(r"[\s*?\[]|^$")  # a value without quotes: several words, a pattern, or none
_ARRAY = lazy(r"\w+\+?=")
_CLOSING = {"(": ")", "{": "}"}
# an unquoted word with one of these is a pattern, a list or a home folder that the shell replaces
_EXPANDED = lazy(r"[*?\[]|\{[^{}]*(?:,|\.\.)[^{}]*\}|^~|\{\{")


@record
class Word:
    """One word. raw: as written; value: what the program is given, None where the shell decides; start, end: in the text.

    settled: the same with the values of variables that the script gives itself, where they are known. It is for reading alone:
    an edit would part the command from the line that gives the value.
    """

    raw: str
    value: str | None
    start: int
    end: int
    settled: str | None = None

    @property
    def text(self) -> str:
        """What stands there, as far as it is known."""
        return self.value if self.value is not None else self.settled if self.settled is not None else self.raw.strip("\"'")


def commands(text: str) -> list[tuple[Word, ...]]:
    """The simple commands of a script in order, redirections and comments left out; as far as the quotes are balanced.

    The words of an array count as one: `run=(torchrun train.py)` is there for `"${run[@]}"`.
    """
    reader = _Reader(text)
    try:
        reader.read()
    except _Unbalanced:
        reader.words.clear()
    return reader.commands


def with_values(text: str) -> str:
    """A script with the values of variables that it gives itself in the place of their names, line by line as it was."""
    reader = _Reader(text)
    with contextlib.suppress(_Unbalanced):
        reader.read()
    out, at = "", 0
    for start, end, value in reader.replaced:
        out += text[at:start] + value
        at = end
    return out + text[at:]


class _Unbalanced(Exception):
    """A quote or a bracket that is not closed: what follows means nothing."""


@record(frozen=False)
class _Reader:
    text: str
    at: int = 0
    words: list[Word] = field(default_factory=list)
    commands: list[tuple[Word, ...]] = field(default_factory=list)
    heredocs: list[str] = field(default_factory=list)
    variables: Variables = field(default_factory=Variables)
    replaced: list[tuple[int, int, str]] = field(default_factory=list)
    in_array: bool = False

    def read(self) -> None:
        text, size = self.text, len(self.text)
        while self.at < size:
            char = text[self.at]
            if char in _BLANK or (self.in_array and char in "\r\n"):
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
            before = self.text[: self.words[0].start].rstrip(_BLANK)[-1:]
            given = [(w.raw, w.value if w.value is not None else w.settled) for w in self.words]
            self.variables.read(given, always=before not in ("&", "|", "("))
            self.words.clear()

    def _end_command(self, char: str) -> None:
        self.in_array = char == "(" and self._names_array()
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

    def _names_array(self) -> bool:
        return bool(self.words) and self.words[-1].end == self.at and _ARRAY.fullmatch(self.words[-1].raw) is not None

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
            self.heredocs.append(heredoc.group(2) or heredoc.group(3))
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
        settled: str | None = ""
        while self.at < len(text) and text[self.at] not in _BLANK + _ENDS + "<>":
            part, given = self._part()
            value = None if value is None or part is None else value + part
            settled = None if settled is None or given is None else settled + given
        return Word(text[start : self.at], value, start, self.at, settled if value is None else None)

    def _part(self) -> tuple[str | None, str | None]:
        """One stretch of a word, quoted in one way; the value, or None where it is decided at run time; the settled value."""
        text, at = self.text, self.at
        char = text[at]
        if char == "'":
            self.at = self._after("'", at + 1)
            return (text[at + 1 : self.at - 1],) * 2
        if char == '"':
            return self._double_quoted()
        if char == "\\":
            end = self._line_end(at + 1)
            self.at = end or min(at + 2, len(text))
            return ("" if end else text[at + 1 : at + 2],) * 2
        if char in "$`":
            given = self._substitution()
            return None, given if given is not None and not _SPLIT.search(given) else None
        plain = _PLAIN.match(text, at)
        self.at = plain.end() if plain else at + 1
        piece = text[at : self.at]
        return (None if _EXPANDED.search(piece) else piece,) * 2

    def _double_quoted(self) -> tuple[str | None, str | None]:
        text, out, known = self.text, "", True
        settled: str | None = ""
        self.at += 1
        while True:
            if self.at >= len(text):
                raise _Unbalanced
            char = text[self.at]
            if char == '"':
                self.at += 1
                return out if known else None, settled
            piece = char
            if char in "$`":
                given = self._substitution()
                settled = None if settled is None or given is None else settled + given
                known = False
                continue
            if char == "\\" and text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n", "\r"):
                end = self._line_end(self.at + 1)
                piece = "" if end else text[self.at + 1]
                self.at = end or self.at + 2
            else:
                self.at += 1
            out += piece
            settled = None if settled is None else settled + piece

    def _substitution(self) -> str | None:
        """Past `$name`, `${…}`, `$(…)` or a pair of backticks; the value that the script gives the variable, if it is known."""
        start = self.at
        self._pass_substitution()
        given = self.variables.value(self.text[start + 1 : self.at]) if self.text[start] == "$" else None
        if given is not None and "\n" not in given:
            self.replaced.append((start, self.at, given))
        return given

    def _pass_substitution(self) -> None:
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
