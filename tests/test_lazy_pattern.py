"""Patterns that are compiled where they are used: the same as compiled ones, and all of them can be compiled."""

from __future__ import annotations

import re
import sys

import pytest

from codemods.api.codemod import built_in
from codemods.runtime.lazy_pattern import LazyPattern, lazy


def collected(value: object) -> list[LazyPattern]:
    if isinstance(value, (tuple, list)):
        return [pattern for item in value for pattern in collected(item)]
    return [value] if isinstance(value, LazyPattern) else []


def test_every_pattern_of_the_codemods_can_be_compiled() -> None:
    assert built_in()
    modules = [module for name, module in sys.modules.items() if name.startswith("codemods.")]
    patterns = [pattern for module in modules for value in vars(module).values() for pattern in collected(value)]
    assert len(patterns) > 50
    for pattern in patterns:
        assert pattern.flags is not None, pattern  # compiled by the question


def test_it_is_a_pattern() -> None:
    pattern = lazy(r"(?P<word>[a-z]+)\d", re.I)
    assert (match := pattern.search("  AB1")) and match["word"] == "AB"
    assert pattern.match("  AB1") is None and pattern.fullmatch("x1") and pattern.sub("-", "a1 b2") == "- -"
    assert pattern.findall("a1 b2") == ["a", "b"] and [m.start() for m in pattern.finditer("a1 b2")] == [0, 3]
    assert pattern.pattern == r"(?P<word>[a-z]+)\d" and dict(pattern.groupindex) == {"word": 1} and pattern.flags & re.I
    assert lazy(rb"a+").split(b"1aa2") == [b"1", b"2"]


def test_what_is_wrong_with_it_is_said_at_its_first_use() -> None:
    pattern = lazy("(")
    with pytest.raises(re.error, match="unterminated"):
        pattern.match("a")
    with pytest.raises(AttributeError, match="marks"):
        lazy("a").marks  # type: ignore[attr-defined] # noqa: B018
