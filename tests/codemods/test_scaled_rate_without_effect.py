"""DDP416: a learning rate that is scaled by the number of processes, and that no optimizer gets."""

from __future__ import annotations

import pytest

from codemods.data_loading.scaled_rate_without_effect import ScaledRateWithoutEffect
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = ScaledRateWithoutEffect
HEAD = "import torch\nfrom accelerate import Accelerator\n\n\n"
ABOVE = "work out the rate above the optimizer"
SCALED = "if scale:\n    lr = lr * batch * accelerator.num_processes"
MADE = "optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.1)"


def train(*lines: str, end: str = "return optimizer") -> str:
    body = "".join(f"    {line}\n" for part in (*lines, end) for line in part.splitlines())
    return f"{HEAD}def train(model, args, lr, scale, batch, schedule):\n    accelerator = Accelerator()\n{body}"


def test_the_example_of_the_page() -> None:
    sections = RULE.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize("scaled", [SCALED, "lr *= accelerator.num_processes", "if scale:\n    lr = lr * world_size / 256"])
def test_an_optimizer_that_is_made_above(scaled: str) -> None:
    found = check_told(RULE, train(MADE, scaled), reason=ABOVE)
    assert "does nothing" in found.message


def test_a_setting_that_is_scaled_too_late() -> None:
    source = train(MADE.replace("lr=lr", "lr=args.lr"), "args.lr = args.lr * accelerator.num_processes")
    check_told(RULE, source, reason=ABOVE)
    check_nothing(RULE, source.replace("return optimizer", "return schedule(optimizer, args)"))
    check_nothing(RULE, source.replace("return optimizer", "return schedule(optimizer, args.lr)"))


def test_the_optimizer_is_given_the_setting() -> None:
    rate = "rate_lr = args.lr"
    scaled = "if args.scale:\n    rate_lr = rate_lr * accelerator.num_processes * batch"
    before = train(rate, scaled, MADE.replace("lr=lr", "lr=args.lr"))
    check_transformed(RULE, before, before.replace("lr=args.lr", "lr=rate_lr"), unsafe=True)


def test_a_name_that_has_no_value_where_the_setting_is_off() -> None:
    scaled = "if args.scale:\n    rate_lr = args.lr * accelerator.num_processes"
    check_told(RULE, train(scaled, MADE.replace("lr=lr", "lr=args.lr")), reason="give the optimizer the product")


def test_an_optimizer_made_below_gets_the_product() -> None:
    check_nothing(RULE, train(SCALED, MADE))


@pytest.mark.parametrize(
    "use",
    [
        "for group in optimizer.param_groups:\n    group['lr'] = lr",
        "schedule(optimizer, max_lr=lr)",
        "print(lr)",
        "schedule(optimizer, **locals())",
    ],
)
def test_a_product_that_something_reads(use: str) -> None:
    check_nothing(RULE, train(MADE, SCALED, use))


def test_a_product_that_a_function_inside_reads() -> None:
    check_nothing(RULE, train("def rate():\n    return lr", MADE, SCALED, "schedule(optimizer, rate)"))


@pytest.mark.parametrize("product", ["lr * batch", "lr * args.gamma", "batch * accelerator.num_processes"])
def test_a_product_of_something_else(product: str) -> None:
    check_nothing(RULE, train(MADE, f"lr = {product}"))


def test_several_optimizers() -> None:
    other = "other = torch.optim.SGD(model.parameters(), lr=args.other_lr)"
    check_nothing(RULE, train(MADE, other, SCALED))


def test_a_rate_in_a_loop() -> None:
    check_nothing(RULE, train("for _ in range(9):", *(f"    {s}" for s in (MADE, "lr = lr * accelerator.num_processes"))))


def test_another_rate_is_handed_over() -> None:
    check_nothing(RULE, train(MADE.replace("lr=lr", "lr=args.own_lr"), SCALED))


def test_a_repository_s_own_tests() -> None:
    check_nothing(RULE, train(MADE, SCALED), path="tests/test_train.py")


@pytest.mark.parametrize("use", ["schedule(optimizer, args.optim)", "schedule(optimizer, args.optim.lr)", "schedule(args)"])
def test_a_field_of_a_field(use: str) -> None:
    made = MADE.replace("lr=lr", "lr=args.optim.lr")
    scaled = "args.optim.lr = args.optim.lr * accelerator.num_processes"
    check_told(RULE, train(made, scaled, "schedule(optimizer, args.optim.steps)"), reason=ABOVE)
    check_nothing(RULE, train(made, scaled, use))
