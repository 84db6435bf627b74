"""The keys of a YAML or JSON file with their values and exact places, by mapping: from PyYAML's marks and our own reader's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.api.findings import Span
from codemods.files.json_values import JsonValue
from codemods.files.text_file import JSON_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

if TYPE_CHECKING:
    import yaml

PROPERTIES = lazy(r"(?:[&!][^\s,\[\]{}]*\s+)*")  # an anchor and a tag stand in front of their scalar
_TAGS = {"str": "text", "int": "number", "float": "number", "bool": "bool", "null": "null"}
_COMMENT_LINE = lazy(r"\s*#[^\r\n]*\s*$")


@record
class Entry:
    """One key of a mapping.

    kind: text, number, bool, null, list, mapping, other. value: the scalar as a text without its quotes, "" for the rest.
    quoted: it stands in quotes, or is a block of text. span: from the key to the end of the value, comments left out. shared: an
    anchor takes the value to other keys as well.
    """

    key: str
    kind: str
    value: str
    quoted: bool
    key_span: Span
    value_span: Span
    span: Span
    shared: bool = False


@record
class Table:
    """A mapping. uses: the keys that lead to it from the root; several where an anchor is used again. flow: in braces."""

    file: TextFile
    uses: tuple[tuple[str, ...], ...]
    entries: tuple[Entry, ...]
    flow: bool

    @property
    def path(self) -> tuple[str, ...]:
        return self.uses[0]

    def entry(self, key: str) -> Entry | None:
        return next((e for e in self.entries if e.key == key), None)

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(e.key for e in self.entries)


def tables(file: TextFile) -> tuple[Table, ...]:
    """Every mapping of the file, in order; nothing where it cannot be read."""
    if file.path.endswith(JSON_KINDS):
        return tuple(_json_tables(file, file.json, ())) if file.json else ()
    found: list[Table] = []
    for root in file.documents:
        found += _yaml_tables(file, root)
    return tuple(found)


# JSON


def _json_tables(file: TextFile, value: JsonValue, path: tuple[str, ...]) -> Iterator[Table]:
    if value.kind == "mapping":
        entries = tuple(_json_entry(file, key, held) for key, held in value.pairs)
        yield Table(file, (path,), entries, True)
    for key, held in value.pairs:
        yield from _json_tables(file, held, (*path, str(key.value)))
    for held in value.items:
        yield from _json_tables(file, held, (*path, ""))


def _json_entry(file: TextFile, key: JsonValue, value: JsonValue) -> Entry:
    scalar = value.kind not in ("list", "mapping")
    text = str(value.value) if value.kind == "text" else file.text[value.start : value.end] if scalar else ""
    return Entry(
        str(key.value),
        value.kind,
        text,
        value.kind == "text",
        file.span_between(key.start, key.end),
        file.span_between(value.start, value.end),
        file.span_between(key.start, value.end),
    )


# YAML


def _yaml_tables(file: TextFile, root: yaml.Node) -> list[Table]:
    nodes: dict[int, yaml.MappingNode] = {}
    uses: dict[int, list[tuple[str, ...]]] = {}
    given: dict[int, list[int]] = {}  # collection -> the nodes in it, each collection once
    stack: list[tuple[tuple[str, ...], yaml.Node, frozenset[int]]] = [((), root, frozenset())]
    visits = 0
    while stack and visits < 20_000:  # anchors within anchors multiply
        visits += 1
        path, node, above = stack.pop()
        if id(node) in above:
            continue
        inside = above | {id(node)}
        if node.id != "scalar":
            given[id(node)] = [id(n) for pair in node.value for n in (pair if node.id == "mapping" else (pair,))]
        if node.id == "mapping":
            nodes.setdefault(id(node), node)
            uses.setdefault(id(node), []).append(path)
            # a merged mapping (`<<: *base`) stands where it is merged into
            parts = [(path if _is_merge(k) else (*path, _key_text(k)), v) for k, v in node.value]
            stack += [(p, v, inside) for p, v in reversed(parts)]
        elif node.id == "sequence":
            stack += [((*path, ""), v, inside) for v in reversed(node.value)]
    times = Counter(n for held in given.values() for n in held)
    shared = frozenset(n for n, count in times.items() if count > 1)
    return [
        Table(file, tuple(dict.fromkeys(uses[at])), tuple(_yaml_entries(file, node, shared)), bool(node.flow_style))
        for at, node in nodes.items()
    ]


def _is_merge(key: yaml.Node) -> bool:
    return bool(key.id == "scalar" and key.value == "<<" and not key.style)


def _key_text(key: yaml.Node) -> str:
    return str(key.value) if key.id == "scalar" else ""


def _yaml_entries(file: TextFile, node: yaml.MappingNode, shared: frozenset[int]) -> Iterator[Entry]:
    for key, value in node.value:
        if key.id != "scalar":
            continue
        start, end = scalar_place(file, key)
        # what an alias means stands elsewhere: then the place of the value is not behind its key
        alias = value.start_mark.index < end
        first, last = (end, end) if alias else node_place(file, value)
        scalar = value.id == "scalar"
        yield Entry(
            str(key.value),
            "other"
            if alias
            else _TAGS.get(value.tag.rpartition(":")[2], "other")
            if scalar
            else value.id.replace("sequence", "list"),
            str(value.value) if scalar else "",
            bool(scalar and value.style),
            file.span_between(start, end),
            file.span_between(first, last),
            file.span_between(start, last),
            id(value) in shared,
        )


def scalar_place(file: TextFile, scalar: yaml.Node) -> tuple[int, int]:
    """(start, end) of the scalar alone, without its anchor and tag; of a block of text to the end of its last line."""
    start, end = scalar.start_mark.index, scalar.end_mark.index
    properties = PROPERTIES.match(file.text, start, end)
    start = properties.end() if properties and file.text[start : start + 1] in "&!" else start
    if scalar.style in ("|", ">"):
        end = start + len(file.text[start:end].rstrip())
    return start, end


def node_place(file: TextFile, node: yaml.Node) -> tuple[int, int]:
    """(start, end) of any node. The end mark of a block collection lies behind the comments that follow it: not here."""
    if node.id == "scalar":
        return scalar_place(file, node)
    start, end = node.start_mark.index, node.end_mark.index
    if node.flow_style:
        return start, end
    text = file.text[start:end]
    while True:
        shorter = text.rstrip()
        head, newline, last = shorter.rpartition("\n")
        if not newline or not _COMMENT_LINE.match(last):
            break
        text = head
    return start, start + len(_without_comment(file, node, start, shorter))


def _without_comment(file: TextFile, node: yaml.Node, start: int, text: str) -> str:
    """The text as far as the last node in it: a comment behind the last value is not part of it."""
    while node.id != "scalar" and not (node.id != "scalar" and node.flow_style) and node.value:
        last = node.value[-1]
        below = last[1] if isinstance(last, tuple) else last
        if below.start_mark.index < node.start_mark.index:  # an alias
            return text
        node = below
    _, end = scalar_place(file, node) if node.id == "scalar" else (0, node.end_mark.index)
    return text[: end - start] if start < end <= start + len(text) else text
