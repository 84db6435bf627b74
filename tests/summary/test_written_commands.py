"""A launcher above the scripts that it is meant for."""

from __future__ import annotations

import pytest

from ddpfix.summary import launches

RAW = b"import torch.distributed as dist\ndist.init_process_group('gloo')\n"
LAUNCH = "python -m torch.distributed.launch --nproc_per_node=4"


def shown(text: str) -> list[tuple[int, str]]:
    files = {"one.py": RAW, "two.py": RAW, "README.md": text.encode()}
    found = launches(files, files.get, {"one.py": RAW, "two.py": RAW})
    return [(launch.line, launch.command) for launch in found if launch.command]


@pytest.mark.parametrize("launcher", ["torchrun --nproc_per_node=4", LAUNCH])
def test_each_script_has_the_launcher(launcher: str) -> None:
    text = f"Run:\n```sh\n{launcher}\n  # plain\n  one.py  --x 1\n\n  # with labels\n  two.py --y 2\n```\n"
    here = launcher.replace("4", "2")
    assert shown(text) == [(5, f"{here} one.py --x 1"), (8, f"{here} two.py --y 2")]


def test_a_whole_command_is_left() -> None:
    assert shown(f"```sh\n{LAUNCH} one.py\ntwo.py is the other\n```\n") == [(2, f"{LAUNCH.replace('4', '2')} one.py")]
    assert shown("```sh\ntorchrun --nproc_per_node=4 \\\n  one.py --x 1\n```\n")[0][0] == 2
    assert shown("```sh\ntorchrun --help\necho one.py\n```\n") == []


@pytest.mark.parametrize(
    ("given", "shown_as"),
    [
        ("{folder of the model}/last", "your-folder-of-the-model/last"),
        ("{a b..c}", "{a b..c}"),
        ("x <in >out", None),
    ],
)
def test_a_placeholder_in_a_job_file(given: str, shown_as: str | None) -> None:
    files = {"one.py": RAW, "run.sh": f"torchrun one.py --load {given}\n".encode()}
    found = [f.command for f in launches(files, files.get, {"one.py": RAW}) if f.command]
    assert found == ([f"torchrun --nproc_per_node=2 one.py --load {shown_as}"] if shown_as else [])
