"""`make quick`: which tests belong to a change, and that its end comes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import quick

RULE = "from codemods.analysis.steps import steps\nclass WrongStep(DdpCodemod):\n    pass\n"
FILES = {
    "codemods/data/wrong_step.py": RULE,
    "codemods/data/no_step.py": "from codemods.analysis import steps\nclass NoStep(DdpCodemod): ...\n",
    "codemods/analysis/steps.py": "from codemods.analysis.loops import loops\n",
    "codemods/analysis/loops.py": "loops = 1\n",
    "tests/codemods/test_wrong_step.py": "from codemods.data.wrong_step import WrongStep\n",
    "tests/codemods/test_no_step.py": "",
    "tests/test_counted.py": "import codemods.analysis.steps\n",
    "tests/test_loops.py": "",
    "tests/kit.py": "",
    "tests/test_far.py": "from tests import kit\n",
}


@pytest.fixture
def files(tmp_path: Path) -> quick.Files:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return quick.Files(tmp_path)


def test_a_codemod_has_its_own_tests_and_the_audits_of_it(files: quick.Files) -> None:
    choice = quick.chosen(["codemods/data/wrong_step.py"], files)
    assert choice.files == [*quick.AUDITS, "tests/codemods/test_wrong_step.py"]
    assert choice.words == {"codemods.data.wrong_step", "-wrong-step]"}


def test_a_module_has_those_of_its_name_then_who_imports_it_then_those_above(files: quick.Files) -> None:
    assert quick.chosen(["codemods/analysis/loops.py"], files).files == [
        quick.LAYERS, "tests/test_loops.py", "tests/test_counted.py", "tests/codemods/test_no_step.py",
        "tests/codemods/test_wrong_step.py",
    ]  # fmt: skip


def test_there_is_an_end_to_it(files: quick.Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "MOST", 2)
    choice = quick.chosen(["codemods/analysis/loops.py"], files)
    assert choice.files == [quick.LAYERS, "tests/test_loops.py", "tests/test_counted.py"]


def test_a_test_a_helper_of_tests_a_proof_and_a_page(files: quick.Files) -> None:
    changed = ["docs/x.md", "fixtures/proofs/ddp410-x/train.py", "tests/kit.py", "tests/test_loops.py", "Makefile"]
    choice = quick.chosen(changed, files)
    assert choice.files == ["tests/test_loops.py", "tests/test_far.py", "tests/test_docs.py"]
    assert choice.proofs == ["ddp410-x"]


def test_a_change_is_what_the_branch_did_what_is_not_committed_and_what_git_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sh(*words: str) -> None:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.test"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(quick, "ROOT", tmp_path)
    monkeypatch.delenv("BASE", raising=False)
    sh("init", "-qb", "main")
    for name in ("old", "edited"):
        (tmp_path / name).write_text("1\n")
    sh("add", ".")
    sh("commit", "-qm", "a")
    assert quick.changed_files() == []
    sh("switch", "-qc", "topic")
    (tmp_path / "committed").write_text("1\n")
    sh("add", ".")
    sh("commit", "-qm", "b")
    (tmp_path / "edited").write_text("2\n")
    (tmp_path / "new").write_text("1\n")
    assert quick.changed_files() == ["committed", "edited", "new"]
    monkeypatch.setenv("BASE", "topic")
    assert quick.changed_files() == ["edited", "new"]


def test_after_its_time_no_test_is_begun_and_they_are_counted() -> None:
    limits = quick.Limits(quick.Choice(), until=0.0)
    item = type("Item", (), {"nodeid": "tests/test_x.py::test_y"})()
    assert limits.pytest_runtest_protocol(item) is True
    assert limits.late == ["tests/test_x.py"]
    assert quick.Limits(quick.Choice(), until=1e12).pytest_runtest_protocol(item) is None
