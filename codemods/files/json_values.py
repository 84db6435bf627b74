"""JSON with the place of every value, which the standard library's reader does not keep."""

from __future__ import annotations

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_SPACE = lazy(r"[ \t\n\r]*")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
_WORD = lazy(r"true|false|null")
_NUMBER = lazy(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


@record
class JsonValue:
    """A value and where it stands. kind: text, number, bool, null, list, mapping. items: elements; pairs: key and value."""

    kind: str
    value: object
    start: int
    end: int
    items: tuple[JsonValue, ...] = ()
    pairs: tuple[tuple[JsonValue, JsonValue], ...] = ()


def read_json(text: str) -> JsonValue | None:
    """The one value of a JSON text, None where it is no JSON (comments, a trailing comma, several values)."""
    try:
        value, end = _value(text, _skip(text, 0))
    except (ValueError, IndexError, RecursionError):
        return None
    return value if _skip(text, end) == len(text) else None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> tuple[JsonValue, int]:
    char = text[at]
    if char == '"':
        from json.decoder import scanstring  # type: ignore[attr-defined]

        value, end = scanstring(text, at + 1, True)
        return JsonValue("text", value, at, end), end
    if char == "{":
        return _mapping(text, at)
    if char == "[":
        return _list(text, at)
    if word := _WORD.match(text, at):
        known = _WORDS[word.group()]
        return JsonValue("null" if known is None else "bool", known, at, word.end()), word.end()
    number = _NUMBER.match(text, at)
    if number is None:
        raise ValueError(at)
    whole = number.group(1) is None and number.group(2) is None
    return JsonValue("number", (int if whole else float)(number.group()), at, number.end()), number.end()


def _list(text: str, start: int) -> tuple[JsonValue, int]:
    items: list[JsonValue] = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        if items:
            at = _comma(text, at)
        value, at = _value(text, at)
        items.append(value)
        at = _skip(text, at)
    return JsonValue("list", None, start, at + 1, items=tuple(items)), at + 1


def _mapping(text: str, start: int) -> tuple[JsonValue, int]:
    pairs: list[tuple[JsonValue, JsonValue]] = []
    at = _skip(text, start + 1)
    while text[at] != "}":
        if pairs:
            at = _comma(text, at)
        key, at = _value(text, at)
        at = _skip(text, at)
        if key.kind != "text" or text[at] != ":":
            raise ValueError(at)
        value, at = _value(text, _skip(text, at + 1))
        pairs.append((key, value))
        at = _skip(text, at)
    return JsonValue("mapping", None, start, at + 1, pairs=tuple(pairs)), at + 1


def _comma(text: str, at: int) -> int:
    if text[at] != ",":
        raise ValueError(at)
    return _skip(text, at + 1)
