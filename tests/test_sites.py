"""A site is found wherever its pattern alone would match, and only the lines with a word are looked at."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from codemods.files.sites import Beside, Site
from ddpfix.catalog import all_codemods

_COMMENT = re.compile(rb"(?m)^[ \t]*#[^\r\n]*")
HERE = Path(__file__).parent.parent
SITES = {site: codemod.code for codemod in all_codemods() for site in codemod.SITES if isinstance(site, Site)}
SOURCES = sorted(p for folder in ("tests", "fixtures", "codemods") for p in (HERE / folder).rglob("*.py"))


@cache
def _sources() -> dict[Path, bytes]:
    """Each text once, without its comments."""
    texts = {_COMMENT.sub(b"", path.read_bytes()): path for path in SOURCES}
    return {path: data for data, path in texts.items()}


@pytest.mark.parametrize("site", SITES, ids=lambda s: f"{SITES[s]}-{s.words[0].decode()}")
def test_no_file_is_lost_by_the_words_of_a_site(site: Site) -> None:
    sources = _sources()
    if isinstance(site, Beside):
        sources = {path: data for path, data in sources.items() if any(_stands_in(b, data) for b in site.beside)}
    found = [data for data in sources.values() if site.search(data)]
    assert found and [path for path, data in sources.items() if _is_lost(site, data)] == []
    other_ends = [data.replace(b"\n", end) for data in found for end in (b"\r\n", b"\r")]
    assert [data for data in other_ends if _is_lost(site, data)] == []


def _is_lost(site: Site, data: bytes) -> bool:
    return not site.search(data) and bool(site.pattern.search(data))


def _stands_in(beside: bytes | Site, data: bytes) -> bool:
    return beside.search(data) if isinstance(beside, Site) else beside in data


def test_a_comment_is_no_place() -> None:
    site = Site(rb"save\(", b"save")
    assert not site.search(b"# save(x)\n    # save(y)\n") and site.search(b"# saved\nx = save(1)  # save(x)\n")
    assert list(site.lines(b"# save(x)\nsave(1)\n")) == [2]


def test_a_match_may_reach_into_the_lines_behind() -> None:
    site = Site(rb"finally:\n(?:[^\n]*\n){0,2}[^\n]*barrier\(", b"finally", behind=3)
    assert site.search(b"finally:\n  a\n  b\n  barrier()\n")
    assert site.search(b"x\nfinally:\n  barrier()")
    assert not site.search(b"finally:\n  a\n  b\n  c\n  barrier()\n")
    assert not site.search(b"")


def test_the_lines_of_all_matches_are_told_from_one() -> None:
    site = Site(rb"save\(", b"save")
    assert list(site.lines(b"save(1)\nsaved\nx = save(2), save(3)\n\nsave(")) == [1, 3, 5]


def test_what_stands_before_the_line_is_seen_by_a_pattern_that_looks_back() -> None:
    site = Site(rb"(?<!def )save\(", b"save")
    assert not site.search(b"def save(x):\n    pass\n")
    assert site.search(b"def load(x):\n    save(x)\n")


def test_a_site_beside_other_words_counts_where_one_of_them_stands_too() -> None:
    site = Beside((b"backward", b"training_step"), rb"isnan\(", b"isnan")
    assert site.search(b"if isnan(x):\n    pass\nloss.backward()\n")
    assert not site.search(b"if isnan(x):\n    pass\n")
    assert not site.search(b"loss.backward()\n")
    assert Beside((site,), rb"stop", b"stop").search(b"if isnan(x):\n    loss.backward()\nstop\n")
    assert not Beside((site,), rb"stop", b"stop").search(b"stop\nloss.backward()\n")
