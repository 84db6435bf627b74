from __future__ import annotations

import pytest

from codemods.checkpoints.state_saved_by_one_rank import StateSavedByOneRank
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "from accelerate import Accelerator, DistributedType\n\n\n"


def train(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"{HEAD}def train(accelerator: Accelerator, loader, folder):\n    for step, x in enumerate(loader):\n{body}"


def test_the_example_of_the_documentation() -> None:
    sections = StateSavedByOneRank.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(StateSavedByOneRank, before, reason="let every rank call")
    check_nothing(StateSavedByOneRank, after)


@pytest.mark.parametrize(
    "test", ["accelerator.is_main_process", "accelerator.is_local_main_process", "accelerator.process_index == 0"]
)
def test_a_test_for_one_rank(test: str) -> None:
    check_told(StateSavedByOneRank, train(f"if {test}:", "    accelerator.save_state(folder)"), reason="every rank")


def test_behind_an_early_return() -> None:
    source = (
        f"{HEAD}def save(accelerator, folder):\n    if not accelerator.is_main_process:\n        return\n"
        "    accelerator.save_state(folder)\n"
    )
    check_told(StateSavedByOneRank, source, reason="every rank")


def test_told_at_the_call_that_stands_under_the_test() -> None:
    source = (
        f"{HEAD}class Run:\n    def __init__(self):\n        self.accelerator = Accelerator()\n\n    def save(self):\n"
        "        self.accelerator.save_state('state')\n\n    def train(self):\n        if self.accelerator.is_main_process:\n"
        "            self.save()\n"
    )
    found = check_told(StateSavedByOneRank, source, reason="every rank")
    assert found.span.line == 13 and any(e.text == "saves the state" for e in found.evidence)


def test_told_in_the_file_of_the_test() -> None:
    files = {"saving.py": "def save(accelerator, folder):\n    accelerator.save_state(folder)\n"}
    source = (
        f"{HEAD}from saving import save\n\n\ndef train(accelerator: Accelerator):\n    if accelerator.is_main_process:\n"
        "        save(accelerator, 'state')\n"
    )
    assert len(findings_of(StateSavedByOneRank, source, files)) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("accelerator.save_state(folder)",),
        ("if step % 100 == 0:", "    accelerator.save_state(folder)"),
        ("if accelerator.is_main_process:", "    print(step)", "accelerator.save_state(folder)"),
        (
            "if accelerator.is_main_process or accelerator.distributed_type == DistributedType.DEEPSPEED:",
            "    accelerator.save_state(folder)",
        ),
        ("if accelerator.is_main_process:", "    trainer.save_state()"),
        ("if accelerator.is_main_process:", "    accelerator.save_model(x, folder)"),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(StateSavedByOneRank, train(*lines))


def test_nothing_where_the_caller_is_not_under_a_test() -> None:
    source = (
        f"{HEAD}def save(accelerator):\n    accelerator.save_state('a')\n\n\ndef train(accelerator):\n    save(accelerator)\n"
        "    if accelerator.is_main_process:\n        print('saved')\n"
    )
    check_nothing(StateSavedByOneRank, source)


def test_nothing_of_the_repositorys_own_tests() -> None:
    source = train("if accelerator.is_main_process:", "    accelerator.save_state(folder)")
    assert not findings_of(StateSavedByOneRank, source, path="tests/test_train.py")
