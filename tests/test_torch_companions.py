"""The torch of a repository that pins its companions, or names the image it runs in."""

from __future__ import annotations

import pytest

from codemods.analysis.frameworks import torch_pin
from codemods.analysis.job_files.said_torch import said_torch
from codemods.files.source import SourceModule
from codemods.flags.reentrant_checkpoint_with_find_unused import ReentrantCheckpointWithFindUnused
from codemods.launch.torch_distributed_launch import TorchDistributedLaunch
from codemods.store.project import Project
from codemods.sync.missing_destroy_process_group import MissingDestroyProcessGroup
from ddpfix.testing import check_nothing, check_told, findings_of


def project(files: dict[str, str]) -> Project:
    return Project.of({path: text.encode() for path, text in {"train.py": "import torch\n", **files}.items()})


@pytest.mark.parametrize(
    ("pinned", "minimum", "below"),
    [
        ("torchvision==0.9.0", (1, 8, 0), (1, 9, 0)),
        ("torchaudio==0.8.0", (1, 8, 0), (1, 9, 0)),
        ("torchvision==0.14.1+cu117", (1, 13, 0), (2, 0, 0)),
        ("torchvision>=0.15", (2, 0, 0), None),
        ("torchvision<0.11", None, (1, 10, 0)),
        ("torchaudio==2.1.2", (2, 1, 0), (2, 2, 0)),
        ("torch\ntorchvision==0.9.0", (1, 8, 0), (1, 9, 0)),
        ("torch>=1.7\ntorchvision==0.9.0", (1, 8, 0), (1, 9, 0)),
    ],
)
def test_a_companion_goes_with_one_torch(pinned: str, minimum: tuple[int, ...] | None, below: tuple[int, ...] | None) -> None:
    for path in ("requirements.txt", "docker/requirement.txt", "envs/requirements.txt"):
        pin = torch_pin(project({path: pinned}), near="train.py")
        assert pin is not None and (pin.minimum, pin.below, pin.path) == (minimum, below, path)


def test_what_says_nothing_of_torch() -> None:
    for pinned in ("torchvision", "torchvision==0.2.2", "torchvision!=0.9.0", "torchtext==0.6.0", "timm==0.4.12"):
        assert torch_pin(project({"requirements.txt": pinned}), near="train.py") is None


def test_torch_itself_says_more() -> None:
    for pinned in ("torch==2.1.0\ntorchvision==0.9.0", "torch>=2.0\ntorchvision==0.9.0"):  # the second fits no torch
        pin = torch_pin(project({"requirements.txt": pinned}), near="train.py")
        assert pin is not None and pin.minimum is not None and pin.minimum >= (2, 0, 0)
    elsewhere = project({"requirements.txt": "torch>=1.7\n", "old/requirements.txt": "torchvision==0.9.0\n"})
    pin = torch_pin(elsewhere, near="train.py")
    assert pin is not None and pin.below is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docker/build.bash", "docker build -t me_1.8.0-cuda11.1-cudnn8_py3.8 .\n"),
        ("run.sh", "docker run pytorch/pytorch:1.9.0-cuda11.1-cudnn8-devel python train.py\n"),
        ("job.sbatch", "srun --container-image=nvcr.io/nvidia/pytorch:21.02-py3 python train.py\n"),
        ("job.sbatch", "singularity exec nvidia+pytorch+20.12-py3.sqsh python train.py\n"),
        ("start.py", '"""shifter --image=site/pytorch:ngc-21.02-v2 ./train.py"""\n'),
    ],
)
def test_an_image_says_which_torch_it_holds(path: str, text: str) -> None:
    found = project({path: text})
    said = said_torch(found, SourceModule("train.py", b"import torch\n"))
    assert said.surely_below((2, 0)) and said.names_below((1, 10)) == path


def test_an_image_between_two_releases_says_neither() -> None:
    said = said_torch(project({"job.sbatch": "# nvcr.io/nvidia/pytorch:21.08-py3\n"}), SourceModule("train.py", b""))
    assert said.surely_below((2, 4)) and said.allows_below((1, 10)) and not said.names_below((1, 10))


NEWER = ["nvcr.io/nvidia/pytorch:25.03-py3", "pytorch/pytorch:latest", "my/app:1.8.0", "pytorch:2.4.1-cuda12.1"]


@pytest.mark.parametrize("text", NEWER)
def test_images_that_are_new_or_say_nothing(text: str) -> None:
    assert not said_torch(project({"job.sbatch": f"# {text}\n"}), SourceModule("train.py", b"")).surely_below((2, 0))


LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2 train.py\n"
PARSER = (
    "import argparse\nimport torch\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--local_rank', type=int, default=0)\n"
    "args = parser.parse_args()\ntorch.cuda.set_device(args.local_rank)\n"
)


def test_no_torchrun_where_a_companion_means_a_torch_without_it() -> None:
    files, vision = {"train.py": PARSER}, "torchvision==0.9.0\n"
    assert findings_of(TorchDistributedLaunch, LAUNCH, files, path="run.sh")
    check_nothing(TorchDistributedLaunch, LAUNCH, files={**files, "docker/requirement.txt": vision}, path="run.sh")
    check_nothing(TorchDistributedLaunch, f"# pytorch:1.8.0-cuda11.1\n{LAUNCH}", files=files, path="run.sh")


GROUP = (
    "import torch.distributed as dist\n\n\n"
    "def main():\n    dist.init_process_group('nccl')\n    train()\n\n\n"
    "if __name__ == '__main__':\n    main()\n"
)


def test_an_open_pin_beside_the_command_that_installs() -> None:
    setup = "from setuptools import setup\n\nsetup(install_requires=['torch>=1.1'])\n"
    said = "pip install torch==1.7.1+cu110 torchvision==0.8.2+cu110\n"
    assert findings_of(MissingDestroyProcessGroup, GROUP, {"setup.py": setup})
    assert findings_of(MissingDestroyProcessGroup, GROUP, {"setup.py": setup, "README.md": "Tested with PyTorch 1.7.1\n"})
    check_nothing(MissingDestroyProcessGroup, GROUP, files={"setup.py": setup, "README.md": said})


def test_checkpoint_of_a_torch_that_knows_one_kind() -> None:
    net = (
        "from torch import nn\nfrom torch.utils.checkpoint import checkpoint\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.stem = nn.Linear(8, 8)\n"
        "        self.body = nn.Linear(8, 8)\n\n"
        "    def forward(self, x):\n        return checkpoint(self.body, self.stem(x))\n"
    )
    train = (
        "from net import Net\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef train(loader):\n"
        "    model = DDP(Net(), find_unused_parameters=True)\n    for x in loader:\n        model(x).mean().backward()\n"
    )
    rule = ReentrantCheckpointWithFindUnused
    for files in ({"requirements.txt": "torchvision==0.9.0\n"}, {"README.md": "Needs PyTorch 1.8.1.\n"}):
        check_told(rule, net, files={"train.py": train, **files}, path="net.py", reason="knows no other kind")
