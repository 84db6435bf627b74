"""DDP605: an evaluation that is called for each of several prepared loaders."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told

HEAD = """\
import torch
from accelerate import Accelerator


@torch.no_grad()
def evaluate(accelerator, model, loader):
    errors = []
    for x, y in loader:
        errors += [abs(p - t).item() for p, t in zip(model(x), y)]
    return accelerator.gather(torch.tensor(errors).mean()).mean()


"""
DICTIONARY = "    sets = {'near': near, 'far': far}\n"


def program(sets: str, loop: str, given: str = "near, far") -> str:
    return (
        f"{HEAD}def main(model, near, far, wanted):\n    accelerator = Accelerator()\n"
        f"    {given} = accelerator.prepare({given})\n{sets}    {loop}\n        print(name, evaluate(accelerator, model, each))\n"
    )


@pytest.mark.parametrize(
    ("sets", "loop"),
    [
        (DICTIONARY + "    runs = [(sets[n], n) for n in wanted]\n", "for each, name in runs:"),
        (DICTIONARY, "for name, each in sets.items():"),
        (DICTIONARY, "for each in sets.values():"),
        (DICTIONARY, "for each in [sets[n] for n in wanted]:"),
        ("", "for each in (near, far):"),
        ("", "for name, each in [('near', near), ('far', far)]:"),
    ],
)
def test_each_of_several_prepared_loaders(sets: str, loop: str) -> None:
    check_told(GatheredDuplicates, program(sets, loop), reason="inside the loop")


@pytest.mark.parametrize(
    ("sets", "loop", "given"),
    [
        (DICTIONARY, "for name, each in sets.items():", "near"),  # the other one is not prepared
        ("", "for each in (near, far):", "near"),
        (DICTIONARY + "    sets['all'] = wanted\n", "for name, each in sets.items():", "near, far"),
        (DICTIONARY, "for each, name in sets.items():", "near, far"),  # the key
        ("    sets = dict(near=near, **wanted)\n", "for name, each in sets.items():", "near, far"),
        ("", "for each in wanted:", "near, far"),
    ],
)
def test_nothing_where_one_may_not_be_prepared(sets: str, loop: str, given: str) -> None:
    check_nothing(GatheredDuplicates, program(sets, loop, given))
