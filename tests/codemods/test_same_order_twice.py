from __future__ import annotations

import pytest

from codemods.data_loading.same_order_twice import SameOrderTwice
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = (
    "import torch\nfrom torch.utils.data import DataLoader, RandomSampler\n"
    "from torch.utils.data.distributed import DistributedSampler\n\n\n"
)


def program(zipped: str = "zip(loader, loader)", sampler: str = "DistributedSampler(data)") -> str:
    return (
        f"{HEAD}def main(data, other, step, shuffle):\n    sampler = {sampler}\n"
        f"    loader = DataLoader(data, batch_size=4, sampler=sampler, drop_last=True)\n    rest = DataLoader(other)\n"
        f"    for parts in {zipped}:\n        step(parts)\n"
    )


def test_the_example_of_the_documentation() -> None:
    sections = SameOrderTwice.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(SameOrderTwice, before, reason="sampler of its own seed")
    check_nothing(SameOrderTwice, after)


@pytest.mark.parametrize("zipped", ["zip(loader, loader)", "zip(rest, loader, loader)", "enumerate(zip(loader, rest, loader))"])
def test_a_loader_beside_itself(zipped: str) -> None:
    check_told(SameOrderTwice, program(zipped), reason="sampler of its own seed")


def test_a_loader_that_another_function_makes() -> None:
    source = (
        f"{HEAD}def make(data):\n    return DataLoader(data, sampler=DistributedSampler(data, shuffle=True))\n\n\n"
        "def main(data, step):\n    loader = make(data)\n    pairs = zip(loader, loader)\n    for one, other in pairs:\n"
        "        step(one, other)\n"
    )
    check_told(SameOrderTwice, source, reason="sampler of its own seed")


@pytest.mark.parametrize("zipped", ["zip(loader, rest)", "zip(data, data)", "loader", "zip(loader)"])
def test_nothing_of_other_passes(zipped: str) -> None:
    check_nothing(SameOrderTwice, program(zipped))


@pytest.mark.parametrize(
    "sampler",
    ["DistributedSampler(data, shuffle=False)", "DistributedSampler(data, shuffle=shuffle)", "RandomSampler(data)", "None"],
)
def test_nothing_of_other_orders(sampler: str) -> None:
    check_nothing(SameOrderTwice, program(sampler=sampler))


def test_nothing_of_a_loader_whose_maker_is_not_seen() -> None:
    source = f"{HEAD}def main(loader, step):\n    for one, other in zip(loader, loader):\n        step(one, other)\n"
    check_nothing(SameOrderTwice, source)


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(SameOrderTwice, program(), path="tests/test_main.py")
