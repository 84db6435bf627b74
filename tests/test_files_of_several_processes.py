"""Which files several processes run, though they do not say so themselves."""

from __future__ import annotations

import pytest

from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.variance.parallel_files import is_parallel
from codemods.store.project import Project

NET = "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n\n\nclass Other:\n    pass\n"
RUN = "import torch.distributed as dist\n{}\n\ndist.init_process_group('gloo')\n"


def parallel(path: str, **sources: str) -> bool:
    project = Project.of({name: text.encode() for name, text in sources.items()})
    module = project.module(path)
    assert module is not None
    return is_parallel(project, module)


@pytest.mark.parametrize(
    ("package", "used"),
    [
        ("from .net import Net\n", "from nets import Net"),
        ("from .net import Net as Model\n", "from nets import Model"),
        ("from .net import *\n", "from nets import Net"),
        ("from .net import Net\n", "from nets import *"),
        ("from nets.net import Net\n", "from nets import Net"),
    ],
)
def test_a_package_hands_it_on(package: str, used: str) -> None:
    assert parallel("nets/net.py", **{"nets/__init__.py": package, "nets/net.py": NET, "run.py": RUN.format(used)})


@pytest.mark.parametrize(
    ("package", "used"),
    [
        ("from .net import Net\nfrom .tools import size\n", "from nets import size"),  # another name of the package
        ("from .tools import size\n", "from nets import size"),
        ("", "from nets import size"),
        ("from .net import Net\n", "import json"),
    ],
)
def test_the_package_hands_on_something_else(package: str, used: str) -> None:
    files = {"nets/__init__.py": package, "nets/net.py": NET, "nets/tools.py": "def size():\n    return 3\n"}
    assert not parallel("nets/net.py", **files, **{"run.py": RUN.format(used)})


def test_one_process_has_it_from_the_package() -> None:
    files = {"nets/__init__.py": "from .net import Net\n", "nets/net.py": NET, "run.py": "from nets import Net\nNet()\n"}
    assert not parallel("nets/net.py", **files)
    files["run.py"] = ""
    assert not parallel("nets/net.py", **files, **{"tests/test_it.py": RUN.format("from nets import Net")})


@pytest.mark.parametrize(
    "base",
    ["import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    pass\n",
     "import torch.distributed as dist\n\n\nclass Base:\n    def wait(self):\n        dist.barrier()\n"],
)  # fmt: skip
def test_an_heir_of_what_several_processes_run(base: str) -> None:
    heir = "from parts.base import Base\n\n\nclass Heir(Base):\n    def step(self):\n        pass\n"
    files = {"parts/base.py": base, "parts/heir.py": heir}
    assert parallel("parts/heir.py", **files)
    assert not parallel("parts/heir.py", **{**files, "parts/base.py": "class Base:\n    pass\n"})
    assert not parallel("parts/heir.py", **{**files, "parts/heir.py": heir.replace("(Base)", "")})


CUT = """\
import torch
{imports}


def main(model, mode):
    if mode == "several":
        {end}
        model = {wrap}
    return model
"""
BY_PATH, BY_NAME = "torch.nn.parallel.DistributedDataParallel(model)", "DDP(model)"
IMPORTED = "from torch.nn.parallel import DistributedDataParallel as DDP"


@pytest.mark.parametrize(
    ("imports", "wrap"), [("", BY_PATH), (IMPORTED, BY_NAME), ("import torch.distributed as dist", "dist.x(model)")]
)
def test_what_no_run_comes_to_shows_no_processes(imports: str, wrap: str) -> None:
    def shown(end: str) -> bool:
        text = CUT.format(imports=imports, end=end, wrap=wrap)
        project = Project.of({"run.py": text.encode()})
        module = project.module("run.py")
        assert module is not None
        return ranks_in_file(project, module) is not None

    assert not shown("raise NotImplementedError")
    assert not shown("return model")
    assert shown("print(mode)")
    assert shown("if not model:\n            raise ValueError")
    assert shown("raise ValueError\n    else:")


def test_a_checked_folder_that_is_a_package_itself() -> None:
    """What it is called outside, no file of it says."""
    assert not parallel("net.py", **{"__init__.py": "from .net import Net\n", "net.py": NET, "run.py": RUN.format("import math")})


JOINING = """\
import json
import torch.distributed as dist


def join(args):
    dist.init_process_group("gloo")


def set_up(args):
    {below}
    return args


def read(path):
    return json.load(open(path))
"""
STARTS = "from parts.start import set_up\n\n\ndef main(args):\n    set_up(args)\n"


@pytest.mark.parametrize(
    "below",
    ["join(args)", "if args.rank >= 0:\n        join(args)", "from parts.deep import enter\n    enter(args)"],
)  # fmt: skip
def test_a_program_whose_start_leaves_the_join_to_another_function(below: str) -> None:
    deep = "import torch.distributed as dist\n\n\ndef enter(args):\n    dist.init_process_group()\n"
    assert parallel("run.py", **{"run.py": STARTS, "parts/start.py": JOINING.format(below=below), "parts/deep.py": deep})


@pytest.mark.parametrize("below", ["read(args)", "print(join)", "args.join(args)"])
def test_a_start_that_joins_nothing(below: str) -> None:
    assert not parallel("run.py", **{"run.py": STARTS, "parts/start.py": JOINING.format(below=below)})
