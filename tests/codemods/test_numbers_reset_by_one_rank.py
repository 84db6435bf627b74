"""DDP414: random numbers that rank 0 alone sets back."""

from __future__ import annotations

import pytest

from codemods.data_loading.numbers_reset_by_one_rank import NumbersResetByOneRank
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = NumbersResetByOneRank
HEAD = "import torch\nimport torch.distributed as dist\n\n\n"
SHOW = "def show(model, step):\n    {}\n    return model(torch.randn(1, 4))\n\n\n"
NOISE = "noise = torch.randn_like(x)"
GUARD = "if dist.get_rank() == 0:"


def program(seed: str, *, guard: str = GUARD, noise: str = NOISE, behind: bool = False) -> str:
    call = f"        {guard}\n            show(model, step)\n"
    if behind:
        call = call.replace("        ", "    ")
    return (
        f"{HEAD}{SHOW.format(seed)}def train(model, loader):\n    for step, x in enumerate(loader):\n        {noise}\n"
        f"        (model(x + noise) - noise).square().mean().backward()\n{call}"
    )


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize("guard", [GUARD, "if step % 100 == 0 and dist.get_rank() == 0:"])
def test_a_generator_of_its_own(guard: str) -> None:
    before, after = (program(f"g = torch.{s}(42)", guard=guard) for s in ("manual_seed", "Generator().manual_seed"))
    check_transformed(RULE, before, after, unsafe=True)


def test_a_seed_whose_result_is_not_used() -> None:
    check_told(RULE, program("torch.manual_seed(42)"), reason="draw from a generator of its own")


@pytest.mark.parametrize(
    "seed",
    ["torch.manual_seed(step)", "state = torch.get_rng_state(); torch.manual_seed(42)", "pass",
     "g = torch.Generator().manual_seed(42)", "torch.manual_seed(torch.initial_seed())"],
)  # fmt: skip
def test_seeds_that_repeat_nothing(seed: str) -> None:
    check_nothing(RULE, program(seed))


@pytest.mark.parametrize("guard", ["if step % 100 == 0:", "if dist.get_world_size() == 1:", "if dist.get_rank() < 4:"])
def test_ranks_that_are_set_back_alike(guard: str) -> None:
    check_nothing(RULE, program("torch.manual_seed(42)", guard=guard))


def test_a_seed_behind_the_training() -> None:
    check_nothing(RULE, program("torch.manual_seed(42)", behind=True))


@pytest.mark.parametrize("noise", ["noise = x * 2", "noise = torch.randn(x.shape, generator=step.generator)"])
def test_a_training_that_draws_nothing_from_these_numbers(noise: str) -> None:
    check_nothing(RULE, program("torch.manual_seed(42)", noise=noise))


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program("torch.manual_seed(42)"), path="tests/test_show.py")
