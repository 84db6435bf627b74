"""Rows of what was seen, on their way through JSON and through a project."""

from __future__ import annotations

import json

import pytest

from codemods.api.evidence import BadEvidence, EvidenceFile, Observed, from_json, named, to_json
from codemods.store.project import Project

LOG = Observed("log", "train.log", 7, "T02", "stopped", 1, ("head.weight",), (2, 3), (("train.py", 9),))
PROBE = Observed("probe", "", text="50 steps", framework="torch", model="Net", steps=50, sometimes=("head.weight",),
                 counts=(("head.weight", 4),), flag=False, missed=((0.1, 0.005),))  # fmt: skip


def test_rows_come_back_as_they_were() -> None:
    text = to_json(EvidenceFile((LOG, PROBE), "python train.py", {"torch": "2.13.0"}, "abc"))
    assert from_json(text) == EvidenceFile((LOG, PROBE), "python train.py", {"torch": "2.13.0"}, "abc")


def test_the_name_of_the_file_is_the_one_it_was_read_under() -> None:
    (row,) = from_json(to_json(EvidenceFile((PROBE,))), file="seen.json").observed
    assert row.file == "seen.json" and row.row().text == "seen.json: 50 steps"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("[]", "no document of the format"),
        ('{"format": "ddpfix evidence", "version": 99}', "this program reads version 1"),
        ('{"format": "ddpfix evidence", "version": 1}', "no list of observations"),
        ('{"format": "ddpfix evidence", "version": 1, "observed": [{"kind": "log", "who": 1}]}', "not understood"),
        ('{"format": "ddpfix evidence", "version": 1, "observed": [{"kind": "log", "steps": "many"}]}', "steps is 'many'"),
        ('{"format": "ddpfix evidence", "version": 1, "observed": [{"kind": "log", "never": "a"}]}', "never is 'a'"),
    ],
)
def test_what_is_no_evidence_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadEvidence, match=why):
        from_json(text)


def test_rows_say_no_more_than_they_have_to() -> None:
    (row,) = json.loads(to_json(EvidenceFile((PROBE,))))["observed"]
    assert "rank" not in row and "indices" not in row and row["flag"] is False


def test_a_project_keeps_them_between_rounds() -> None:
    project = Project.of({"a.py": b"x = 1\n"}, [LOG, PROBE])
    assert project.with_overlay({"a.py": b"x = 2\n"}).observed == (LOG, PROBE)
    assert named(project.observed, "T02", "L01") == (LOG,)
