"""JSON with places: the values are those of the standard library, the places hold what is written."""

from __future__ import annotations

import json

import pytest

from codemods.files.json_values import JsonValue, read_json

TEXT = ' {"a": [1, -2.5e3, true, null, "x\\n\\u00e9"], "b": {}, "a b": {"c": false, "d": []}}\n'


def plain(value: JsonValue) -> object:
    if value.kind == "mapping":
        return {str(k.value): plain(v) for k, v in value.pairs}
    return [plain(v) for v in value.items] if value.kind == "list" else value.value


def places(value: JsonValue) -> list[tuple[int, int]]:
    inner = [*value.items, *(v for pair in value.pairs for v in pair)]
    return [(value.start, value.end), *(p for v in inner for p in places(v))]


def test_the_values_and_their_places() -> None:
    value = read_json(TEXT)
    assert value is not None and plain(value) == json.loads(TEXT)
    for start, end in places(value):
        json.loads(TEXT[start:end])


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a": 1,}', "// c\n{}", "{} {}", "{a: 1}", "[1 2]", "nul", "[" * 100_000])
def test_what_is_no_json_is_nothing(text: str) -> None:
    assert read_json(text) is None
