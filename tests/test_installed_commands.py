"""A function that a command runs which the project installs."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import findings_of

RUN = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(rank, net):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    save(DistributedDataParallel(net))


def save(net):
    torch.save(net.module.state_dict(), "last.pt")


def run():
    mp.spawn(work, args=(torch.nn.Linear(1, 1),), nprocs=2)
"""
OTHER = {"other.py": "if __name__ == '__main__':\n    print('a program')\n"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", '[project.scripts]\nfit = "nets.cli:run"\n'),
        ("pyproject.toml", "[tool.poetry.scripts]\nfit='nets.cli:run'\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    fit = nets.cli:run\n"),
        ("setup.py", "setup(entry_points={'console_scripts': ['fit=nets.cli:run']})\n"),
    ],
)
@pytest.mark.parametrize("decorator", ["", "@click.command()\n"])
def test_a_command_that_the_project_installs(path: str, text: str, decorator: str) -> None:
    source = RUN.replace("def run", f"{decorator}def run")
    assert findings_of(UnguardedSave, source, {path: text, **OTHER}, path="src/nets/cli.py")


@pytest.mark.parametrize(
    "text", ['fit = "nets.cli:start"', 'fit = "nets.other:run"', 'cli = "run"', "", 'url = "https://nets.cli:run"']
)
def test_other_commands(text: str) -> None:
    files = {"pyproject.toml": f"[project.scripts]\n{text}\n", **OTHER}
    assert not findings_of(UnguardedSave, RUN.replace("def run", "def start_all"), files, path="src/nets/cli.py")
    assert not findings_of(UnguardedSave, RUN, files, path="src/nets/cli.py")
