"""A call whose literal argument leads past a statement brings no rank to it."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.store.project import Project

SOURCE = """
import os
import torch.distributed as dist


def make(path):
    if not os.path.isdir(path):
        os.makedirs(path)


def folders(out, create=DEFAULT):
    if TEST:
        make(out)
    return out


def main(out):
    if dist.get_rank() == 0:
        folders(out, FIRST)
    folders(out, SECOND)
"""


@pytest.mark.parametrize(
    ("default", "test", "first", "second", "comes"),
    [
        ("True", "create", "create=True", "create=False", Ranks.ZERO),
        ("True", "create", "True", "False", Ranks.ZERO),
        ("False", "create", "create=True", "", Ranks.ZERO),
        ("True", "not create", "create=False", "", Ranks.ZERO),
        ("True", "create", "create=True", "", Ranks.ALL),
        ("True", "create", "create=True", "create=bool(out)", Ranks.ALL),
        ("True", "create", "**{}", "**{}", Ranks.ALL),
    ],
)
def test_literal_arguments(default: str, test: str, first: str, second: str, comes: Ranks) -> None:
    source = SOURCE.replace("DEFAULT", default).replace("TEST", test).replace("FIRST", first).replace("SECOND", second)
    project = Project.of({"train.py": source.encode()})
    module = project.module("train.py")
    assert module is not None
    (makes,) = module.calls_named("makedirs")
    assert ranks_reaching(project, module, makes) is comes


def test_a_parameter_that_is_bound_again() -> None:
    source = SOURCE.replace("DEFAULT", "True").replace("TEST", "create").replace("FIRST", "").replace("SECOND", "False")
    source = source.replace("    if create:", "    create = create or bool(out)\n    if create:")
    project = Project.of({"train.py": source.encode()})
    module = project.module("train.py")
    assert module is not None and isinstance(module.tree, ast.Module)
    (makes,) = module.calls_named("makedirs")
    assert ranks_reaching(project, module, makes) is Ranks.ALL


DATASET = """
import os
import torch.distributed as dist
from torchvision.datasets import ImageFolder


class Images(ImageFolder):
    def __init__(self, root, download=False):
        if download:
            self.download(root)

    def download(self, root):
        sort_into_folders(root)


def sort_into_folders(root):
    os.mkdir(root)


def main(args):
    dist.init_process_group("nccl")
    Images(args.data)
    CALL


if __name__ == "__main__":
    main(read())
"""


@pytest.mark.parametrize(
    ("call", "alone"),
    [
        ("pass", True),
        ("Images(args.data, download=False)", True),
        ("Images(args.data, download=True)", False),
        ("Images(args.data, args.fresh)", False),
        ("Images(args.data, **args.more)", False),
        ("make(Images)", False),
        ("Images(args.data).download(args.data)", False),
    ],
)
def test_a_branch_that_no_call_asks_for(call: str, alone: bool) -> None:
    project = Project.of({"train.py": DATASET.replace("CALL", call).encode()})
    module = project.module("train.py")
    assert module is not None
    (made,) = module.calls_named("mkdir")
    assert is_run_by_nobody(project, module, made) is alone
