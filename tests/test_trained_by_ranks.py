"""A program that trains on a launcher's ranks, where the texts start it as one process."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.trained_by_ranks import is_of_training_ranks
from codemods.api.codemod import DdpCodemod
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.engine.find import find_in
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project

README = "Train it:\n\n```\npython train.py --data here\n```\n"
SAVE = "import torch\n\n\ndef save(model):\n    torch.save(model.state_dict(), 'last.pt')\n"
GROUP = "    if args.distributed:\n        dist.init_process_group('nccl')\n"
WRAP = "        model = DistributedDataParallel(model)\n"
HEAD = (
    "import argparse\nimport torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
    "from torch.utils.data import DataLoader, DistributedSampler\nfrom files import save\nfrom net import Net, Rows\n\n\n"
    "def main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--distributed', action='store_true')\n"
    "    args = parser.parse_args()\n"
)
LOADER = (
    "    sampler = DistributedSampler(Rows()) if args.distributed else None\n"
    "    loader = DataLoader(Rows(), sampler=sampler)\n"
)
LOOP = "    for x in loader:\n        model(x).mean().backward()\n    save(model)\n\n\nif __name__ == '__main__':\n    main()\n"
NET = "import torch\n\n\nclass Net(torch.nn.Linear):\n    pass\n\n\nclass Rows(torch.utils.data.Dataset):\n    pass\n"

PLAIN = f"{HEAD}{GROUP}    model = Net(1, 1)\n    if args.distributed:\n{WRAP}{LOADER}{LOOP}"
BY_ACCELERATE = (
    "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\nfrom files import save\n"
    "from net import Net, Rows\n\n\ndef main():\n    accelerator = Accelerator()\n"
    "    model, loader = accelerator.prepare(Net(1, 1), DataLoader(Rows()))\n"
    "    for x in loader:\n        accelerator.backward(model(x).mean())\n    save(model)\n\n\n"
    "if __name__ == '__main__':\n    main()\n"
)


def project_of(train: str, **more: str) -> Project:
    files = {"README.md": README, "train.py": train, "files.py": SAVE, "net.py": NET}
    files |= {name.replace("__", "/") + ".py": text for name, text in more.items()}
    return Project.of({path: text.encode() for path, text in files.items()})


def comes(project: Project) -> bool:
    module = project.module("files.py")
    assert module is not None
    call = next(n for n in module.nodes(ast.Call) if module.text_of(n).startswith("torch.save"))
    return is_of_training_ranks(project, module, call)


@pytest.mark.parametrize("train", [PLAIN, BY_ACCELERATE])
def test_a_program_that_is_written_for_ranks(train: str) -> None:
    assert comes(project_of(train))


@pytest.mark.parametrize(
    "train",
    [
        PLAIN.replace(GROUP, ""),  # nothing joins anybody
        PLAIN.replace(WRAP, "        model.train()\n"),  # and nothing wraps
        PLAIN.replace("DistributedSampler(Rows())", "None"),  # each would take all rows
        PLAIN.replace(".backward()", ".item()"),  # it evaluates
        BY_ACCELERATE.replace("accelerator.prepare(Net(1, 1), DataLoader(Rows()))", "Net(1, 1), DataLoader(Rows())"),
    ],
)
def test_a_program_that_only_takes_over_an_option(train: str) -> None:
    assert not comes(project_of(train))


def test_parts_that_a_program_loads_by_their_names() -> None:
    train = (
        "import importlib\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
        "from files import save\nfrom net import Net\n\n\ndef main(args):\n    dist.init_process_group('nccl')\n"
        "    model = DistributedDataParallel(Net(1, 1))\n    loop = importlib.import_module(args.loop)\n    loop.run(model)\n"
        "    save(model)\n\n\nif __name__ == '__main__':\n    main(None)\n"
    )
    loop = "from torch.utils.data import DataLoader, DistributedSampler\n\n\ndef run(model):\n"
    loop += "    for x in DataLoader(model.rows, sampler=DistributedSampler(model.rows)):\n        model(x).mean().backward()\n"
    assert comes(project_of(train, loops__plain=loop))
    without = loop.replace(", sampler=DistributedSampler(model.rows)", "").replace(", DistributedSampler", "")
    assert not comes(project_of(train, loops__plain=without))


def levels(train: str, codemod: type[DdpCodemod]) -> list[str]:
    """Of what is found in the program and in the file that writes."""
    project = project_of(train)
    modules = [m for path in ("train.py", "files.py") if (m := project.module(path)) is not None]
    return [f.applicability.value for m in modules for f in find_in(m, project, [codemod()])]


def test_a_torn_file_is_offered_and_noise_is_not() -> None:
    printed = PLAIN.replace("    for x in loader", "    print('go')\n    for x in loader")
    assert levels(printed, UnguardedSave) == ["unsafe"]
    assert levels(printed, UnguardedPrint) == []
    assert levels(printed.replace(".backward()", ".item()"), UnguardedSave) == []
