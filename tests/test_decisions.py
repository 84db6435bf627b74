"""The decisions file: what it holds, and what ddpfix says of one that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codemods.engine.user_edits import EditedLines
from ddpfix.decisions import BadDecisions, Decision, Decisions, Keeper, from_json, read, to_json, write

A, B, C, D = "0" * 12, "1" * 12, "2" * 12, "abcdef012345"
BASE = "0123456789abcdef0123456789abcdef01234567"


def test_the_file_as_it_is_promised() -> None:
    text = json.dumps(
        {"version": 1, "base": BASE, "decisions": {A: "accept", B: "reject", C: {"verdict": "reject", "reason": "on purpose"}}}
    )
    found = from_json(text)
    assert found == Decisions(BASE, {A: Decision("accept"), B: Decision("reject"), C: Decision("reject", "on purpose")})
    assert found.accepted() == (A,) and found.rejected() == (B, C) and found.verdict(D) is None
    assert json.loads(to_json(found)) == json.loads(text)


def test_the_base_may_be_left_out() -> None:
    found = from_json('{"version": 1, "decisions": {}}')
    assert found == Decisions()
    assert "base" not in json.loads(to_json(found))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    lines = EditedLines("a.py", 3, "x\r\n", "äy\r\n")
    kept = Decisions(BASE, {D: Decision("accept", "", (lines,)), A: Decision("reject", "ß")})
    write(tmp_path / "d.json", kept)
    assert read(tmp_path / "d.json") == kept
    assert [p.name for p in tmp_path.iterdir()] == ["d.json"]


def test_the_same_decisions_are_the_same_bytes() -> None:
    one = Decisions("", {A: Decision("accept"), B: Decision("reject")})
    other = Decisions("", {B: Decision("reject"), A: Decision("accept")})
    assert to_json(one) == to_json(other)


def decided(value: Any, **more: Any) -> str:
    return json.dumps({"version": 1, "decisions": {A: value}, **more})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", 'it has no "decisions"'),
        ('{"decisions": {}}', 'its "version" is null'),
        ('{"version": 2, "decisions": {}}', 'its "version" is 2, this ddpfix knows 1'),
        ('{"version": true, "decisions": {}}', 'its "version" is true'),
        ('{"version": 1, "decisions": []}', '"decisions" is no object'),
        ('{"version": 1, "decisions": {"DDP101": "accept"}}', '"DDP101" is not the id of a finding'),
        (f'{{"version": 1, "decisions": {{"{A}": "accept", "{A}": "reject"}}}}', f'"{A}" is in it twice'),
        (decided("accept", base="main"), 'its "base" is "main", not the whole id of a commit'),
        (decided("accept", bases=""), 'it has an unknown key "bases"'),
        (decided("yes"), f'the verdict of {A} is "yes", not "accept" or "reject"'),
        (decided(True), f'{A} is true, not "accept", "reject" or an object'),
        (decided({"reason": "x"}), f"the verdict of {A} is null"),
        (decided({"verdict": "reject", "because": "x"}), f'{A} has an unknown key "because"'),
        (decided({"verdict": "reject", "reason": 1}), f"the reason of {A} is 1, not a text"),
        (decided({"verdict": "reject", "edited": [{}]}), f"the edited lines of {A} are no list, or not of an accepted fix"),
        (decided({"verdict": "accept", "edited": [{"path": "a.py"}]}), f"edited lines of {A} are not path, line, before and"),
        (decided({"verdict": "accept", "edited": [{"path": "a", "line": 0, "before": "", "after": ""}]}), "begin at line 0"),
    ],
)
def test_a_bad_file_is_one_line_that_names_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(BadDecisions) as error:
        from_json(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadDecisions, match="does not exist: no decisions were saved there; make one with `ddpfix review`"):
        read(tmp_path / "no.json")
    (tmp_path / "bin.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(BadDecisions, match="cannot be read"):
        read(tmp_path / "bin.json")


# Two views of one file


def test_what_another_view_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    yes, no = Decision("accept"), Decision("reject")
    write(path, Decisions(BASE, {A: yes, B: yes}))
    keeper = Keeper(path, read(path))
    keeper.save(Decisions(BASE, {A: yes, B: no}))
    write(path, Decisions(BASE, {A: no, B: no, C: yes}))
    keeper.save(Decisions(BASE, {A: yes, B: no, D: no}))
    assert read(path).of == {A: no, B: no, C: yes, D: no}
    keeper.save(Decisions(BASE, {B: no, D: no}))
    assert read(path).of == {B: no, C: yes, D: no}


def test_what_was_dropped_as_stale_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    write(path, Decisions(BASE, {A: Decision("accept"), B: Decision("accept")}))
    keeper = Keeper(path, Decisions("f" * 40, {A: Decision("accept")}))
    keeper.save(Decisions("f" * 40, {A: Decision("accept"), C: Decision("reject")}))
    assert read(path) == Decisions("f" * 40, {A: Decision("accept"), C: Decision("reject")})


def test_a_file_that_was_spoilt_meanwhile_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    keeper = Keeper(path, Decisions())
    path.write_text("{")
    keeper.save(Decisions("", {A: Decision("accept")}))
    assert read(path).of == {A: Decision("accept")}
