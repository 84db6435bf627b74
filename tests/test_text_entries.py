"""Keys of YAML and JSON with their values and places."""

from __future__ import annotations

import pytest

from codemods.api.findings import AddEntry, DropEntry, Edit, ReplaceExpression
from codemods.files.text_entries import Entry, tables
from codemods.files.text_file import TextFile
from codemods.rewriting.rewriter import rewrite_bytes
from codemods.rewriting.runs import RewriteError


def found(file: TextFile, key: str) -> Entry:
    return next(e for table in tables(file) for e in table.entries if e.key == key)


def edited(text: str, key: str, how: str, path: str = "a.yaml") -> str:
    file = TextFile(path, text.encode())
    entry = found(file, key)
    edits: dict[str, Edit] = {
        "drop": DropEntry(path, entry.span),
        "add": AddEntry(path, entry.span, "new", "5"),
        "rename": ReplaceExpression(path, entry.key_span, "new"),
        "value": ReplaceExpression(path, entry.value_span, "7"),
    }
    return rewrite_bytes(file, [edits[how]]).decode()


@pytest.mark.parametrize(
    ("before", "key", "how", "after"),
    [
        ("a: 1  # one\nb: 2\n", "a", "drop", "b: 2\n"),
        ("a: 1\nb:\n  - x\n  # of b\n  - y  # y\n\n# of c\nc: 3\n", "b", "drop", "a: 1\n\n# of c\nc: 3\n"),
        ("a: 1\nb: |\n  x\n  y\nc: 3\n", "b", "drop", "a: 1\nc: 3\n"),
        ("a: 1\nb: 2", "b", "drop", "a: 1"),
        ("x: {a: 1, b: 2, c: 3}\n", "b", "drop", "x: {a: 1, c: 3}\n"),
        ("x: {a: 1, b: 2}\n", "b", "drop", "x: {a: 1}\n"),
        ("- name: n\n  a: 1\n", "a", "drop", "- name: n\n"),
        ("- name: n\n  a: 1 # one\n- b\n", "a", "add", "- name: n\n  a: 1 # one\n  new: 5\n- b\n"),
        ("- name: n\n  a: 1\n", "name", "add", "- name: n\n  new: 5\n  a: 1\n"),
        ("a: 1\r\nb: 2", "b", "add", "a: 1\r\nb: 2\r\nnew: 5"),
        ("x: {a: 1}\n", "a", "add", "x: {a: 1, new: 5}\n"),
        ("'a': 1  # c\n", "a", "rename", "'new': 1  # c\n"),
        ("a: &k 1\nb: *k\n", "a", "value", "a: &k 7\nb: *k\n"),
    ],
)
def test_yaml(before: str, key: str, how: str, after: str) -> None:
    assert edited(before, key, how) == after


@pytest.mark.parametrize(
    ("before", "key", "how", "after"),
    [
        ('{\n  "a": 1,\n  "b": [1, 2],\n  "c": "x"\n}\n', "b", "drop", '{\n  "a": 1,\n  "c": "x"\n}\n'),
        ('{\n  "a": 1,\n  "c": "x"\n}\n', "c", "drop", '{\n  "a": 1\n}\n'),
        ('{"a": 1}', "a", "drop", "{}"),
        ('{\r\n\t"a": 1,\r\n\t"c": "x"\r\n}', "a", "add", '{\r\n\t"a": 1,\r\n\t"new": 5,\r\n\t"c": "x"\r\n}'),
        ('{"a": 1}', "a", "add", '{"a": 1, "new": 5}'),
        ('{"a": 1}', "a", "rename", '{"new": 1}'),
        ('{"a": 1}', "a", "value", '{"a": 7}'),
        ('{"a": "x"}', "a", "value", '{"a": "7"}'),
    ],
)
def test_json(before: str, key: str, how: str, after: str) -> None:
    assert edited(before, key, how, "a.json") == after


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ("x:\n  a: 1\n", "a", "no key left"),
        ("- a: 1\n  b: 2\n", "a", "first in the element"),
        ("a: &k 1\nb: *k\n", "a", "alias|same YAML"),
    ],
)
def test_a_key_that_cannot_go_is_an_error(text: str, key: str, why: str) -> None:
    with pytest.raises(RewriteError, match=why):
        edited(text, key, "drop")


def test_a_mapping_knows_every_way_that_leads_to_it() -> None:
    text = "base: &b\n  lr: 1\nrun:\n  <<: *b\n  x: 2\nother: *b\nlist:\n- y: 1\n"
    uses = {table.entries[0].key: table.uses for table in tables(TextFile("a.yaml", text.encode())) if table.path}
    assert uses["lr"] == (("base",), ("run",), ("other",))
    assert uses["y"] == (("list", ""),)


def test_a_value_that_an_anchor_takes_elsewhere_is_shared() -> None:
    text = "a: &one 1\nb: *one\nc: 1\nd: &m {e: 2}\nf: *m\n"
    shared = {e.key: e.shared for table in tables(TextFile("a.yaml", text.encode())) for e in table.entries}
    assert shared == {"a": True, "b": True, "c": False, "d": True, "f": True, "e": False}


def test_kinds_and_quotes() -> None:
    text = "a: no\nb: 'no'\nc: 1.5\nd:\ne: [1]\nf: >-\n  x\n"
    (table,) = tables(TextFile("a.yaml", text.encode()))
    assert [(e.key, e.kind, e.value, e.quoted) for e in table.entries] == [
        ("a", "bool", "no", False), ("b", "text", "no", True), ("c", "number", "1.5", False), ("d", "null", "", False),
        ("e", "list", "", False), ("f", "text", "x", True),
    ]  # fmt: skip
