"""Findings that say the same are told once, and no more is claimed of the others than is true."""

from __future__ import annotations

from dataclasses import replace

from codemods.api.findings import Finding, Span
from ddpfix.summary.told_alike import alike

ONE = Finding("DDP203", "unguarded-print", "a.py", Span(3, 0, 3, 9), "main", "every rank prints in main: twice")


def test_the_name_of_the_function_is_no_difference() -> None:
    other = replace(ONE, symbol="fit", message="every rank prints in fit: twice", span=Span(9, 0, 9, 9))
    (kind,) = alike([ONE, other])
    assert kind.same_words
    assert kind.others(6) == "The same: `a.py` 9."


def test_other_names_are_said_to_be_others() -> None:
    (kind,) = alike([replace(ONE, message="every rank makes `a`"), replace(ONE, message="every rank makes `b`", path="b.py")])
    assert not kind.same_words
    assert kind.others(6) == "The same with other names: `b.py` 3."


def test_equal_messages_are_the_same() -> None:
    (kind,) = alike([ONE, replace(ONE, path="b.py")])
    assert kind.others(6) == "The same: `b.py` 3."
    assert alike([ONE])[0].others(6) == ""


def test_another_fault_is_another_kind() -> None:
    assert len(alike([ONE, replace(ONE, message="every rank waits in main: twice")])) == 2
    # a word that only holds the function's name is none
    assert len(alike([ONE, replace(ONE, message="every rank prints in mainland: twice")])) == 2
