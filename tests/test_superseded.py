"""A copy that is kept beside the file that took its place says nothing to anybody."""

from __future__ import annotations

import pytest

from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

SOURCE = """\
import torch.distributed as dist
from tqdm import tqdm


def main(rows):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    print("begin")
    for row in tqdm(rows):
        row.work(rank)
    dist.barrier()


main(read())
"""


def found(path: str, files: dict[str, str]) -> list[int]:
    return [len(findings_of(c, SOURCE, files=files, path=path)) for c in (UnguardedPrint, ProgressBarOnEveryRank)]


@pytest.mark.parametrize("name", ["train_bak", "train_old", "train-old2", "train copy", "train - copy (2)", "train_backup"])
def test_a_copy_that_nobody_names(name: str) -> None:
    assert found(f"tools/{name}.py", {"tools/train.py": SOURCE}) == [0, 0]
    assert found(f"tools/{name}.py", {"tools/train.py": SOURCE, "README.md": "start tools/train.py\n"}) == [0, 0]


@pytest.mark.parametrize(
    "folder", ["legacy", "src/deprecated", "tools/old", "oldPy", "old_scripts", "OLD", "old-code", "scripts_old", "legacy_models"]
)
def test_what_was_put_aside(folder: str) -> None:
    assert found(f"{folder}/run.py", {"main.py": SOURCE, f"{folder}/README.md": "run.py is not used any more\n"}) == [0, 0]


def test_a_command_for_a_script_that_has_moved_away() -> None:
    """The job file starts `run.py` of its folder or the root, which is gone."""
    assert found("old_py/run.py", {"scripts/start.sh": "torchrun --nproc_per_node 4 run.py\n"}) == [0, 0]


@pytest.mark.parametrize(
    "files",
    [
        {"archived/start.sh": "deepspeed run.py\n"},
        {"archived/jobs/start.sh": "deepspeed ../run.py\n", "README.md": "bash new.sh\n"},
        {"archived/start.sh": "deepspeed run.py\n", "start.sh": "torchrun main.py\n", "README.md": "bash start.sh\n"},
    ],
)
def test_a_job_file_that_was_put_away_with_its_script(files: dict[str, str]) -> None:
    assert found("archived/run.py", {"main.py": SOURCE, **files}) == [0, 0]


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("attic/run.py", {"main.py": SOURCE, "attic/start.sh": "torchrun run.py\n", "README.md": "bash attic/start.sh\n"}),
        ("attic/run.py", {"main.py": SOURCE, "attic/start.sh": "torchrun run.py\n", "all.sh": "cd attic\nbash start.sh\n"}),
        ("attic/run.py", {"main.py": SOURCE, "attic/README.md": "```\ntorchrun run.py\n```\n"}),  # people are told to
        ("legacy/run.py", {"start.sh": "torchrun legacy/run.py\n"}),
        ("legacy/run.py", {"main.py": "from legacy.run import main\n"}),
        ("legacy/run.py", {"README.md": "```\ntorchrun --nproc_per_node 4 legacy/run.py\n```\n"}),
        ("old_py/run.py", {"start.sh": "cd old_py\ntorchrun run.py\n"}),
        ("old_py/run.py", {"old_py/start.sh": "torchrun run.py\n"}),  # the repository has nothing else
        ("old_py/run.py", {"README.md": "```\ntorchrun --nproc_per_node 4 run.py\n```\n"}),  # it may mean this one
        ("scaffold/run.py", {}),
        ("old_faithful/run.py", {}),
        ("golden/run.py", {}),
        ("model_archives/run.py", {}),
        ("train_bak.py", {"run.py": SOURCE}),
        ("train_bak.py", {"tools/train.py": SOURCE}),
        ("train_bak.py", {"train.py": SOURCE, "run.sh": "torchrun train_bak.py\n"}),
        ("train_bak.py", {"train.py": SOURCE, "README.md": "the first results: train_bak.py\n"}),
        ("train_bak.py", {"train.py": "from train_bak import main\n"}),
        ("train_bold.py", {"train.py": SOURCE}),
        ("train_copying.py", {"train.py": SOURCE}),
        ("train.py", {"train_bak.py": SOURCE}),
    ],
)
def test_a_file_that_may_be_run(path: str, files: dict[str, str]) -> None:
    assert found(path, files) == [1, 1]


CALLED = SOURCE.replace("def main(rows)", "def work(rows)").replace("main(read())\n", "")
PROGRAM = "from parts import work\n\nif __name__ == '__main__':\n    work(read())\n"


def called(files: dict[str, str]) -> list[int]:
    return [len(findings_of(c, CALLED, files=files, path="parts.py")) for c in (UnguardedPrint, ProgressBarOnEveryRank)]


def test_a_program_that_was_put_aside_comes_to_nothing() -> None:
    alive = {"run.py": "if __name__ == '__main__':\n    print(1)\n"}
    assert called({**alive, "assets/old/run_all.py": PROGRAM}) == [0, 0]
    assert called({**alive, "assets/run_all.py": PROGRAM}) == [1, 1]
    assert called({**alive, "assets/old/run_all.py": PROGRAM, "start.sh": "torchrun assets/old/run_all.py\n"}) == [1, 1]
    # a folder of functions whose only programs are old ones is run by somebody else's
    assert called({"assets/old/run_all.py": PROGRAM}) == [1, 1]
