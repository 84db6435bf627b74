"""The file of a review, without a browser: one piece, nothing from elsewhere, the same bytes for the same input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from codemods.api.findings import Evidence, Finding, Span
from ddpfix import engine
from ddpfix.decisions import Decision, Decisions
from ddpfix.results import Failure
from ddpfix.review.items import Review, ReviewItem
from ddpfix.review.page import HERE, SCRIPTS, island, page
from ddpfix.review.rank_flow import picture
from ddpfix.summary.rank_flow import flow_of
from tests.summary.test_rank_flow import GUARDED, SKIPS, found

NASTY = "</script><img src=x onerror=alert(1)><!--"


def text_of(review: Review, **more: Decisions) -> str:
    return page(review, read=engine.disk_reader(review.root), **more)  # type: ignore[arg-type]


def data_of(text: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match
    data: dict[str, object] = json.loads(match[1])
    return data


class Elements(HTMLParser):
    """Names of the elements, and all places that name another file."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]


def nasty() -> Review:
    finding = Finding(
        "DDP203", "unguarded-print", f"a{NASTY}.py", Span(1, 0, 1, 9), NASTY, f"it says `{NASTY}` and {NASTY}",
        (Evidence("static", NASTY, NASTY, 3),), reason=NASTY, id="0123456789ab",
    )  # fmt: skip
    root = Path("/nowhere") / NASTY.replace("/", "")
    return Review(root, "a" * 40, (ReviewItem(finding, False, NASTY),), (Failure(NASTY, NASTY),))


def test_it_is_one_file_that_loads_nothing(whole: Review) -> None:
    text = text_of(whole)
    parsed = Elements()
    parsed.feed(text)
    assert [link for link in parsed.links if not link.startswith(("#", "data:,"))] == []
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", text)
    rules = unescape(text)
    assert "default-src 'none'" in rules and "connect-src 'none'" in rules and "require-trusted-types-for 'script'" in rules
    assert len(text) < 200_000


def test_the_same_review_gives_the_same_bytes(whole: Review) -> None:
    assert text_of(whole) == text_of(whole)


def test_no_text_of_the_repository_is_markup() -> None:
    review = nasty()
    text = page(review, read=lambda _: f"x = '{NASTY}'\n".encode())
    parsed = Elements()
    parsed.feed(text)
    assert "img" not in parsed.names and parsed.names.count("script") == 2
    assert NASTY in json.dumps(data_of(text)["items"])


def test_the_island_can_end_neither_its_element_nor_its_line() -> None:
    data = {"a": "</script><!--\u2028\u2029&\udc80"}
    text = island(data)
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff]", text)
    assert json.loads(text) == data


def test_script_and_style_end_no_element_and_read_no_html() -> None:
    for name in (*SCRIPTS, "review.css"):
        text = (HERE / name).read_text(encoding="utf-8")
        assert "</" not in text, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), name


def test_what_was_decided_before_is_in_it(whole: Review) -> None:
    first, second = whole.items[0].id, whole.items[1].id
    of = {first: Decision("accept"), second: Decision("reject", "its own logger"), "f" * 12: Decision("accept")}
    decided = Decisions(whole.base, of)
    assert data_of(text_of(whole, decided=decided))["decisions"] == {
        first: {"verdict": "accept"},
        second: {"verdict": "reject", "reason": "its own logger"},
    }


def test_files_that_were_not_read_are_named(whole: Review) -> None:
    text = text_of(replace(whole, failed=(Failure("broken.py", "line 3: invalid syntax"),)))
    assert "broken.py" in text and "line 3: invalid syntax" in text


def test_a_picture_is_drawn_of_the_evidence(tmp_path: Path) -> None:
    finding = found(tmp_path, GUARDED, "DDP301")
    flow = flow_of(finding)
    assert flow
    drawn = picture(flow)
    assert [(d.kind, d.x < 60) for d in drawn.stops] == [("parts", True), ("waits", True), ("ends", False)]
    assert drawn.ends[0] == drawn.stops[1].y and drawn.ends[1] == drawn.stops[2].y
    review = Review(tmp_path, "", (ReviewItem(finding, False, "why"),))
    svg = re.search(r"<template id=\"flow-[0-9a-f]+\">(<svg.*?</svg>)", text_of(review), re.S)
    assert svg
    root = ElementTree.fromstring(svg[1])
    words = [e.text for e in root.iter("text")]
    assert words[:3] == ["rank 0", "other ranks", "dist.get_rank() == 0"]
    assert "rank 0 waits here for other ranks" in words
    assert "torch.distributed.barrier (rank 0 waits here for other ranks) in train.py:8" in (root.findtext("desc") or "")


def test_the_lane_of_those_who_leave_goes_down_to_the_end_of_the_picture(tmp_path: Path) -> None:
    flow = flow_of(found(tmp_path, SKIPS, "DDP305"))
    assert flow is not None
    drawn = picture(flow)
    assert drawn.parts < drawn.ends[1] == drawn.stops[-1].y
