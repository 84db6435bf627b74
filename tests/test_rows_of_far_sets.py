"""DDP404 where the set is made far from the data set whose rows it gives."""

from __future__ import annotations

import pytest

from codemods.data_loading.unordered_labels import UnorderedLabels
from ddpfix.testing import check_nothing, check_transformed

RULE = UnorderedLabels
HEAD = """\
import functools
import os
from pathlib import Path

import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Rows(Dataset):
    def __init__(self, rows, folder):
        self.rows = rows
        self.folder = folder

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return load(os.path.join(self.folder, self.rows[index]))


def stems(folder):
    return {f.stem for f in Path(folder).iterdir()}


"""
TRAIN = """\
def main(model, folder, other):
    dist.init_process_group("nccl")
    data = Rows(GIVEN, folder)
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for epoch in range(3):
        for x in loader:
            model(x).mean().backward()
"""
NAMES = "def names(*folders):\n    return RETURNED\n\n\n"
PATHS = "def paths(folder, names):\n    return [os.path.join(folder, n + '.png') for n in names]\n\n\n"


def program(helpers: str, given: str) -> str:
    return f"{HEAD}{helpers}{TRAIN.replace('GIVEN', given)}"


def returned(expression: str) -> str:
    return program(NAMES.replace("RETURNED", expression), "names(folder, other)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("list(stems(folders[0]))", "sorted(stems(folders[0]))"),
        ("list(stems(folders[0]) & stems(folders[1]))", "sorted(stems(folders[0]) & stems(folders[1]))"),
        ("list(stems(folders[0]).union(stems(folders[1])))", "sorted(stems(folders[0]).union(stems(folders[1])))"),
        ("list(set.intersection(*[stems(f) for f in folders]))", "sorted(set.intersection(*[stems(f) for f in folders]))"),
        (
            "list(functools.reduce(lambda a, b: a & b, [stems(f) for f in folders]))",
            "sorted(functools.reduce(lambda a, b: a & b, [stems(f) for f in folders]))",
        ),
    ],
)
def test_rows_that_a_function_makes_of_a_set(before: str, after: str) -> None:
    check_transformed(RULE, returned(before), returned(after), unsafe=True)


def test_a_set_that_is_handed_on() -> None:
    check_transformed(
        RULE,
        program(PATHS, "paths(folder, stems(folder) - stems(other))"),
        program(PATHS.replace("in names]", "in sorted(names)]"), "paths(folder, stems(folder) - stems(other))"),
        unsafe=True,
    )


def test_a_set_of_another_file() -> None:
    filled = "def found(folder):\n    names = set()\n    for f in os.listdir(folder):\n        names.add(f[:-4].strip())\n"
    files = {"names.py": f"import os\n\n\n{filled}    return names\n"}
    source = program("", "list(found(folder))").replace("import os\n", "import os\nfrom names import found\n", 1)
    after = source.replace("list(found(folder))", "sorted(found(folder))")
    check_transformed(RULE, source, after, files=files, unsafe=True)


@pytest.mark.parametrize(
    "expression",
    [
        "sorted(stems(folders[0]))",
        "list(dict.fromkeys(f.stem for f in sorted(Path(folders[0]).iterdir())))",
        "list({int(f.stem) for f in Path(folders[0]).iterdir()})[0:3] + [1]",
        "open(folders[0]).read().split()",
        "list(stems(folders[0])) if folders[1] else open(folders[0]).read().split()",
    ],
)
def test_rows_in_an_order(expression: str) -> None:
    check_nothing(RULE, returned(expression))


def test_rows_that_are_sorted_before_they_are_given_back() -> None:
    helper = "def names(folder):\n    found = list(stems(folder))\n    found.sort()\n    return found\n\n\n"
    check_nothing(RULE, program(helper, "names(folder)"))


def test_a_helper_that_is_handed_a_set_elsewhere() -> None:
    helpers = f"{PATHS}def count(folder):\n    return len(paths(folder, list(stems(folder))))\n\n\n"
    check_nothing(RULE, program(helpers, "paths(folder, sorted(stems(folder)))"))


def test_rows_that_are_not_dealt_out() -> None:
    source = returned("list(stems(folders[0]))").replace("sampler=DistributedSampler(data)", "shuffle=False")
    check_nothing(RULE, source)


@pytest.mark.parametrize(
    ("made", "fires"),
    [("list({r['label'] for r in rows})", True), ("sorted({r['label'] for r in rows})", False), ("list(rows[0])", False)],
)
def test_the_place_in_a_list_as_a_number(made: str, fires: bool) -> None:
    source = (
        "import torch.distributed as dist\n\n\n"
        f"def encode(rows):\n    classes = {made}\n    return [classes.index(r['label']) for r in rows], dist.get_rank()\n"
    )
    if fires:
        check_transformed(RULE, source, source.replace("list(", "sorted("), unsafe=True)
    else:
        check_nothing(RULE, source)
