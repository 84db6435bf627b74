"""Going through findings: what a key decides, what waits, and what saved decisions come to on another commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.api.findings import Applicability, Finding, Fix, Span
from ddpfix.decisions import Decision, Decisions
from ddpfix.review.items import Review, ReviewItem
from ddpfix.review.session import Session, carried, levels

YES, NO = Decision("accept"), Decision("reject", "why")


def item(name: str, *, path: str = "a.py", code: str = "DDP101", level: str = "safe", mates: tuple[str, ...] = ()) -> ReviewItem:
    fix = None if level == "display" else Fix(Applicability(level), ())
    finding = Finding(code, "x", path, Span(1, 0, 1, 1), "", "m", reason="r", fix=fix, id=name)
    return ReviewItem(finding, fix is not None, "" if fix else "r", mates)


ITEMS = (
    item("one"), item("two", level="unsafe"), item("told", level="display"), item("mate1", code="DDP201", mates=("mate2",)),
    item("mate2", code="DDP201", path="b.py", mates=("mate1",)), item("last", path="b.py"),
)  # fmt: skip


def session(saved: dict[str, Decision] | None = None, *, again: bool = False) -> tuple[Session, list[Decisions]]:
    written: list[Decisions] = []
    return Session(Review(Path(), "c0", ITEMS), Decisions("c0", saved or {}), written.append, again=again), written


def here(at: Session) -> str:
    return at.current.id if at.current else ""


def get(name: str) -> ReviewItem:
    return next(i for i in ITEMS if i.id == name)


def test_it_begins_at_what_is_not_decided_and_saves_each_decision() -> None:
    at, written = session({"one": YES, "elsewhere": NO})
    assert here(at) == "two"
    at.decide([get("two")], YES)
    at.go_on()
    assert here(at) == "told"
    assert written == [Decisions("c0", {"one": YES, "elsewhere": NO, "two": YES})]


def test_what_is_left_open_is_not_asked_again_in_this_session() -> None:
    at, written = session()
    shown = []
    while at.current:
        shown.append(here(at))
        at.leave_open(at.current)
    assert shown == [i.id for i in ITEMS] and not written


def test_again_asks_about_what_is_decided_and_enter_changes_nothing() -> None:
    at, written = session({i.id: NO for i in ITEMS}, again=True)
    assert here(at) == "one"
    at.pass_by(ITEMS[0])
    assert here(at) == "two" and not written and at.decisions.of["one"] == NO


def test_mates_are_decided_together() -> None:
    at, _ = session()
    assert at.decide([get("mate2")], YES) == 2
    assert at.decisions.of == {"mate2": YES, "mate1": YES}


def test_told_ones_cannot_be_accepted_but_rejected() -> None:
    at, written = session()
    assert at.decide([get("told")], YES) == 0 and not written
    assert at.decide([get("told")], NO) == 1


def test_all_that_is_left_accepts_the_safe_ones_and_the_one_that_is_looked_at() -> None:
    at, _ = session({"last": NO})
    at.decide(at.rest(get("two"), "accept"), YES)
    assert at.decisions.of == {"last": NO, "two": YES, "one": YES, "mate1": YES, "mate2": YES}
    at, _ = session()
    at.decide(at.rest(get("one"), "accept"), YES)
    assert "two" not in at.decisions.of


def test_a_file_and_a_kind() -> None:
    at, _ = session({"last": NO})
    assert [i.id for i in at.in_file(get("one"))] == ["one", "two", "mate1"]
    assert [i.id for i in at.of_kind(get("one"))] == ["one", "two"]
    assert [i.id for i in at.of_kind(get("told"))] == ["told", "one", "two"]
    assert [i.id for i in at.rest(get("one"), "reject")] == ["one", "two", "mate1", "mate2"]
    assert levels(at.in_file(get("one"))) == "3 findings, 1 of them unsafe"


def test_back_goes_the_way_that_was_come() -> None:
    at, _ = session({"two": YES})
    assert not at.back()
    at.decide([get("one")], YES)
    at.go_on()
    at.leave_open(get("told"))
    assert here(at) == "mate1"
    assert at.back() and here(at) == "told"
    assert at.back() and here(at) == "one"
    at.decide([get("one")], NO)
    at.go_on()
    assert here(at) == "mate1"


def test_counts() -> None:
    at, _ = session({"one": YES, "told": NO, "last": NO})
    assert at.counts() == {"accepted": 1, "rejected": 2, "open": 3, "reported": 0}


@pytest.mark.parametrize(
    ("base", "found", "keeps", "stale"),
    [
        ("c0", "c0", {"one", "gone"}, ""),
        ("", "c0", {"one", "gone"}, ""),
        ("c1", "c0", {"one"}, "c1"),
        ("c1", "", {"one", "gone"}, ""),
    ],
)
def test_saved_decisions_on_another_commit(base: str, found: str, keeps: set[str], stale: str) -> None:
    over = carried(Decisions(base, {"one": YES, "gone": NO}), Review(Path(), found, ITEMS))
    assert set(over.decisions.of) == keeps and over.stale_base == stale
    assert over.dropped == (("gone",) if stale else ())
    assert over.decisions.base == (found or base)
