"""The texts of a file that a shell may read: a whole script, the fenced blocks of a document, or the scalars of a YAML or JSON
file, folded as YAML folds them.

A `Passage` knows where each of its characters stands, so that a word in a `command: >-` text can be changed in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from codemods.api.findings import Span
from codemods.files.json_values import JsonValue, read_json
from codemods.files.shell_words import Word
from codemods.files.text_entries import scalar_place
from codemods.files.text_file import DOCUMENT_KINDS, IMAGE_KINDS, JSON_KINDS, SHELL_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

if TYPE_CHECKING:
    import yaml

_HEADER = lazy(r"[|>](?:[+-]?(\d)?|(\d)?[+-]?)[ \t]*(?:#[^\r\n]*)?(?=[\r\n]|$)")

_INSTRUCTION = lazy(r"^[ \t]*(?:CMD|ENTRYPOINT|RUN)[ \t]+(?P<list>\[[^\r\n]*\])[ \t]*(?=\r?$)", re.M | re.I)


@record
class Passage:
    """A text in a file. places: where each character stands there. style: how YAML writes it, "" for a plain one or a script."""

    file: TextFile
    text: str
    places: Sequence[int]
    style: str = ""

    def span(self, start: int, end: int) -> Span:
        """Where `text[start:end]` stands in the file."""
        if start == end:
            at = self.places[start] if start < len(self.places) else self.places[-1] + 1
            return self.file.span_between(at, at)
        return self.file.span_between(self.places[start], self.places[end - 1] + 1)

    def between(self, first: Word, second: Word) -> str:
        """What stands in the file between two of its words."""
        return self.file.text[self.places[first.end - 1] + 1 : self.places[second.start]]


@record
class WordList:
    """A list of scalars: a command given word by word. words: without their quotes, their places in the file with them."""

    file: TextFile
    words: tuple[Word, ...]


def passages(file: TextFile) -> tuple[Passage, ...]:
    """The texts of a file, in order."""
    if file.path.endswith(SHELL_KINDS):
        return (Passage(file, file.text, range(len(file.text))),)
    if file.path.endswith(JSON_KINDS):
        return tuple(_in_json(file, file.json)) if file.json else ()
    if file.path.endswith(DOCUMENT_KINDS):
        return tuple(Passage(file, file.text[start:end], range(start, end), "|") for start, end in file.fenced if start < end)
    if file.path.endswith(IMAGE_KINDS):
        return (Passage(file, file.text, range(len(file.text)), "|"),)
    found = (_in_yaml(file, node) for node in _nodes(file) if node.id == "scalar")
    return tuple(p for p in found if p is not None)


def word_lists(file: TextFile) -> tuple[WordList, ...]:
    """The lists of a YAML file whose elements are all scalars of one line, and those of a Dockerfile's instructions."""
    if file.path.endswith(IMAGE_KINDS):
        return tuple(_of_instructions(file))
    found = []
    for node in _nodes(file):
        if node.id == "sequence" and node.value and all(n.id == "scalar" and n.style not in ("|", ">") for n in node.value):
            places = [scalar_place(file, n) for n in node.value]
            inside = all(node.start_mark.index <= start for start, _ in places)  # no alias
            words = tuple(Word(str(n.value), str(n.value), a, b) for n, (a, b) in zip(node.value, places, strict=True))
            if inside and all(file.text.find("\n", w.start, w.end) < 0 for w in words):
                found.append(WordList(file, words))
    return tuple(found)


def _of_instructions(file: TextFile) -> Iterator[WordList]:
    """`CMD ["python", "train.py"]`."""
    for match in _INSTRUCTION.finditer(file.text):
        value = read_json(match["list"])
        if value is None or value.kind != "list" or not all(item.kind == "text" for item in value.items):
            continue
        at = match.start("list")
        yield WordList(file, tuple(Word(str(i.value), str(i.value), at + i.start, at + i.end) for i in value.items))


def _nodes(file: TextFile) -> list[yaml.Node]:
    """Every node once, in order of its place."""
    return sorted(file.yaml_nodes(), key=lambda n: int(n.start_mark.index))


def _in_json(file: TextFile, value: JsonValue) -> Iterator[Passage]:
    if value.kind == "text" and file.text[value.start + 1 : value.end - 1] == value.value:
        yield Passage(file, str(value.value), range(value.start + 1, value.end - 1), '"')
    for _, held in value.pairs:
        yield from _in_json(file, held)
    for held in value.items:
        yield from _in_json(file, held)


def _in_yaml(file: TextFile, scalar: yaml.ScalarNode) -> Passage | None:
    """The scalar's value with the place of each character; None where escapes make it another text than what is written."""
    start, end = scalar_place(file, scalar)
    raw = file.text[start:end]
    style = scalar.style or ""
    if style in ("|", ">"):
        text, places = _block(file.text, start, int(scalar.end_mark.index), folded=style == ">")
    elif style:
        text, places = _folded(raw[1:-1], start + 1)
    else:
        text, places = _folded(raw, start)
    return Passage(file, text, places, style) if text == scalar.value and len(text) == len(places) else None


def _folded(raw: str, start: int) -> tuple[str, Sequence[int]]:
    """A plain or quoted scalar over several lines: blanks at the ends of lines go, one line end is a blank, more are one less."""
    if "\n" not in raw and "\r" not in raw:
        return raw, range(start, start + len(raw))
    out: list[tuple[str, int]] = []
    at = start
    breaks: list[int] = []
    lines = re.split(r"(\r\n|\r|\n)", raw)
    for i in range(0, len(lines), 2):
        line = lines[i]
        bare = line.strip(" \t") if i else line.rstrip(" \t")
        if i + 1 == len(lines) and i:
            bare = line.lstrip(" \t")
        if bare and breaks:
            out += [(" ", breaks[0])] if len(breaks) == 1 else [("\n", b) for b in breaks[1:]]
            breaks = []
        if bare:
            first = at + line.index(bare)
            out += [(char, first + n) for n, char in enumerate(bare)]
        at += len(line)
        if i + 1 < len(lines):
            breaks.append(at)
            at += len(lines[i + 1])
    return "".join(char for char, _ in out), [place for _, place in out]


def _block(text: str, start: int, end: int, *, folded: bool) -> tuple[str, Sequence[int]]:
    """A block scalar, as PyYAML's scanner puts it together."""
    header = _HEADER.match(text, start)
    if header is None:
        return "", ()
    keep, strip = "+" in header.group(), "-" in header.group().partition("#")[0]
    out: list[tuple[str, int]] = []
    breaks: list[int] = []  # empty lines that are not yet written
    before: tuple[int, bool] | None = None  # the end of the line before: its place, and whether it may fold
    indent = -1
    at = header.end()
    at += 2 if text.startswith("\r\n", at) else 1
    while at < end:
        line_end = min((n for mark in "\r\n" if (n := text.find(mark, at)) >= 0), default=len(text))
        line = text[at:line_end]
        bare = line.strip(" ")
        if indent < 0 and bare:
            indent = len(line) - len(line.lstrip(" "))
        if not bare and (indent < 0 or len(line) <= indent):
            breaks.append(line_end)
        else:
            content = line[indent:]
            starts_plain = not content.startswith((" ", "\t"))
            if before is not None:
                place, may_fold = before
                if folded and may_fold and starts_plain:
                    out += [] if breaks else [(" ", place)]
                else:
                    out.append(("\n", place))
            out += [("\n", b) for b in breaks]
            breaks = []
            out += [(char, at + indent + n) for n, char in enumerate(content)]
            before = (line_end, starts_plain)
        at = line_end + (2 if text.startswith("\r\n", line_end) else 1)
    if before is not None and not strip and before[0] < len(text):
        out.append(("\n", before[0]))
    if keep:
        out += [("\n", b) for b in breaks]
    return "".join(char for char, _ in out), [place for _, place in out]
