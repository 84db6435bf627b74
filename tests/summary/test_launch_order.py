"""Of several commands the one to test a change by."""

from __future__ import annotations

import pytest

from ddpfix.summary import launches

RAW = b"import torch.distributed as dist\nimport shared\ndist.init_process_group('gloo')\n"
SPAWNS = b"import torch.multiprocessing as mp\nimport shared\nmp.spawn(print, nprocs=2)\n"
SHARED = {"shared.py": b"x = 1\n"}


def first(files: dict[str, bytes]) -> tuple[str, int]:
    every = {**SHARED, **files}
    (found,) = launches(every, every.get, {"shared.py": every["shared.py"]})
    return found.path, found.line


def test_a_launcher_comes_before_plain_python() -> None:
    readme = b"```\npython run.py --a 1\n```\n\n```\naccelerate launch run.py --a 1\n```\n"
    assert first({"run.py": RAW, "README.md": readme}) == ("README.md", 6)


def test_a_script_that_starts_its_processes_needs_no_launcher() -> None:
    files = {"run.py": SPAWNS, "other.py": RAW, "README.md": b"```\npython run.py\n```\n", "z.sh": b"torchrun other.py\n"}
    assert first(files) == ("README.md", 2)


@pytest.mark.parametrize("flags", ["--is_train", "--do_train True", "--train"])
def test_a_flag_tells_training(flags: str) -> None:
    assert first({"run.py": RAW, "jobs.sh": f"torchrun run.py --x 1\ntorchrun run.py {flags}\n".encode()}) == ("jobs.sh", 2)


@pytest.mark.parametrize("flags", ["--do_test", "--eval_only", "--do_eval true", "--test"])
def test_a_flag_tells_evaluation(flags: str) -> None:
    assert first({"run.py": RAW, "jobs.sh": f"torchrun run.py {flags}\ntorchrun run.py --x 1\n".encode()}) == ("jobs.sh", 2)


def test_a_flag_that_is_off_or_of_training_tells_nothing() -> None:
    jobs = b"torchrun run.py --evaluate_during_training\ntorchrun run.py --do_train False --x 1\n"
    assert first({"run.py": RAW, "jobs.sh": jobs}) == ("jobs.sh", 1)


def test_the_name_of_the_job_tells_what_it_is_for() -> None:
    files = {"run.py": RAW, "jobs_eval/a.sh": b"torchrun run.py --x 1\n", "jobs_train/a.sh": b"torchrun run.py --x 1\n"}
    assert first(files) == ("jobs_train/a.sh", 1)
    assert first({"run.py": RAW, "a_test.sh": b"torchrun run.py\n", "b_latest.sh": b"torchrun run.py\n"}) == ("b_latest.sh", 1)


def test_the_heading_above_tells_what_it_is_for() -> None:
    block = b"```\ntorchrun run.py --x 1\n```\n"
    readme = b"# Tool\n## Evaluation of pretrained models\n" + block + b"## Usage\n" + block
    assert first({"run.py": RAW, "README.md": readme}) == ("README.md", 8)


def test_a_place_of_somebody_s_machine_comes_later() -> None:
    jobs = b"torchrun run.py --data /scratch/of/one/data\ntorchrun run.py --data=/home/one/x\ntorchrun run.py --out /tmp/o\n"
    assert first({"run.py": RAW, "jobs.sh": jobs}) == ("jobs.sh", 3)


def test_a_program_that_several_changes_share_comes_first() -> None:
    files = {**SHARED, "one.py": RAW, "two.py": RAW + b"import more\n", "more.py": b""}
    files["a.sh"] = b"torchrun one.py\ntorchrun two.py\n"
    found = launches(files, files.get, {path: files[path] for path in ("shared.py", "more.py")})
    assert [launch.line for launch in found] == [2]
