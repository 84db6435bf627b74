"""What is told once for a repository: findings over which the same line elsewhere would decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.trainer.removed_training_argument import RemovedTrainingArgument
from ddpfix import engine
from ddpfix.discovery import discover
from ddpfix.settings import Settings

CALL = "from transformers import TrainingArguments\nargs = TrainingArguments('o', {})\n"
OPEN = "transformers>=4.38\n"


def told(folder: Path, files: dict[str, str], settings: Settings | None = None) -> list[tuple[str, str]]:
    """(path, message) of what `check` says; a fix that makes nothing says the same."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    settings = settings or Settings()
    (tree,) = discover([folder])
    codemods = [RemovedTrainingArgument()]
    report = engine.check(tree, settings, codemods, use_cache=False)
    fixed = engine.fix(tree, settings, codemods, lambda f: f.fix is not None)
    assert [f.id for f in fixed.report.findings] == [f.id for f in report.findings]
    return [(f.path, f.message) for f in report.findings]


def test_an_open_pin_is_told_once_with_all_its_places(tmp_path: Path) -> None:
    calls = {f"{name}.py": CALL.format("evaluation_strategy='no'") for name in "abcde"}
    found = told(tmp_path, {**calls, "f.py": CALL.format("warmup_ratio=0.1"), "requirements.txt": OPEN})
    assert [path for path, _ in found] == ["a.py"]
    message = found[0][1]
    assert message.count("evaluation_strategy was last known") == 1
    assert "f.py:2: warmup_ratio was last known" in message
    assert message.endswith("; the same doubt at b.py:2, c.py:2, d.py:2 and 1 more")


def test_each_pin_is_a_doubt_of_its_own(tmp_path: Path) -> None:
    calls = {f"{name}.py": CALL.format("warmup_ratio=0.1") for name in ("a", "b", "old/c", "old/d")}
    found = told(tmp_path, {**calls, "requirements.txt": OPEN, "old/requirements.txt": "transformers>=4.20\n"})
    assert [path for path, _ in found] == ["a.py", "old/c.py"]


@pytest.mark.parametrize("pins", ["transformers>=5.20\n", "transformers==4.40\n"])
def test_what_is_fixed_or_right_is_no_doubt(tmp_path: Path, pins: str) -> None:
    calls = {f"{name}.py": CALL.format("warmup_ratio=0.1") for name in "ab"}
    found = told(tmp_path, {**calls, "requirements.txt": pins})
    assert [path for path, _ in found] == (["a.py", "b.py"] if "5" in pins else [])


def test_another_reason_beside_it_is_told_by_itself(tmp_path: Path) -> None:
    both = CALL.format("warmup_ratio=0.1")
    other = CALL.format("warmup_ratio=0.1, save_safetensors=False")
    found = told(tmp_path, {"a.py": both, "b.py": other, "requirements.txt": "transformers>=5.3\n"})
    assert [path for path, _ in found] == ["a.py", "b.py"]


def test_a_file_that_is_left_out_does_not_take_the_finding_along(tmp_path: Path) -> None:
    calls = {f"{name}.py": CALL.format("warmup_ratio=0.1") for name in "abc"}
    calls["b.py"] = calls["b.py"].replace(")\n", ")  # ddpfix: ignore[DDP602] on purpose\n")
    settings = Settings(per_file_ignores={"a.py": ("DDP602",)})
    found = told(tmp_path, {**calls, "requirements.txt": OPEN}, settings)
    assert [path for path, _ in found] == ["c.py"]
