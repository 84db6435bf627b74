"""DDP507: averages of weights that go by name, and are handed the wrapper."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_transformed

RULE = AttributeOfWrapper
BY_TWO_DICTS = """    kept = OrderedDict(average.named_parameters())
    new = OrderedDict(model.named_parameters())
    for name, value in new.items():
        kept[name].mul_(rate).add_(value.data, alpha=1 - rate)
"""
BY_STATE = """    kept, new = average.state_dict(), None
    for name in kept:
        pass
    states = model.state_dict()
    here = average.state_dict()
    for key, value in here.items():
        value.copy_(value * rate + states[key] * (1 - rate))
"""
BY_KEYS = """    new = model.state_dict()
    kept = average.state_dict()
    for key in new.keys():
        kept[key].data.copy_(kept[key].data * rate + new[key].data * (1 - rate))
"""
BY_COMPREHENSION = """    kept = {n: p for n, p in average.named_parameters()}
    for name, value in model.named_parameters():
        if not value.requires_grad:
            continue
        kept[name].lerp_(value.data, 1 - rate)
"""
HEAD = """from collections import OrderedDict
from copy import deepcopy

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


"""
COPY = "average = deepcopy(model).to(device)"
WRAP = "model = DDP(model.to(device), device_ids=[rank])"


def program(
    call: str, body: str = BY_TWO_DICTS, made: tuple[str, ...] = (COPY, WRAP), before: str = "",
    loop: str = "model(x).sum().backward()",
) -> str:  # fmt: skip
    lines = "".join(f"    {line}\n" for line in made)
    return (
        f"{HEAD}class Net(torch.nn.Linear):\n    pass\n\n\n"
        f"@torch.no_grad()\ndef follow(average, model, rate=0.99):\n{body}\n\n{before}"
        f"def main(make, loader, device, rank):\n    model = make()\n{lines}    for x in loader:\n"
        f"        {loop}\n        {call}\n"
    )


@pytest.mark.parametrize("body", [BY_TWO_DICTS, BY_STATE, BY_KEYS, BY_COMPREHENSION])
def test_a_copy_of_the_bare_model(body: str) -> None:
    check_transformed(RULE, program("follow(average, model)", body), program("follow(average, model.module)", body))


def test_arguments_by_name_and_a_copy_that_is_moved() -> None:
    made = ("average = deepcopy(model)", "average = average.to(device)", WRAP)
    before = program("follow(model=model, average=average)", made=made)
    check_transformed(RULE, before, before.replace("(model=model,", "(model=model.module,"))


def test_a_copy_of_the_model_inside() -> None:
    made = (WRAP, "average = deepcopy(model.module)")
    before = program("follow(average, model)", made=made)
    check_transformed(RULE, before, before.replace("        follow(average, model)", "        follow(average, model.module)"))


def test_another_model_of_its_class() -> None:
    made = ("model = Net(2, 2)", "average = Net(2, 2).to(device)", WRAP)
    before = program("follow(average, model)", made=made).replace("    model = make()\n", "")
    check_transformed(RULE, before, before.replace("follow(average, model)\n", "follow(average, model.module)\n"))


def test_fields_of_a_trainer() -> None:
    source = HEAD + (
        "def follow(average, model, rate=0.99):\n" + BY_TWO_DICTS + "\n\nclass Trainer:\n    def __init__(self, model):\n"
        "        self.model = model\n        self.average = deepcopy(self.model)\n        self.model = DDP(self.model)\n\n"
        "    def step(self, x):\n        self.model(x).sum().backward()\n        follow(self.average, {})\n"
    )
    check_transformed(RULE, source.format("self.model"), source.format("self.model.module"))


def test_behind_prepare() -> None:
    made = (COPY, "accelerator = Accelerator()", "model = accelerator.prepare(model)", "model.train()")
    source = program("follow(average, {})", made=made)
    source = source.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n", 1)
    check_transformed(RULE, source.format("model"), source.format("accelerator.unwrap_model(model)"))


def test_a_wrap_under_a_test() -> None:
    made = (COPY, "if torch.distributed.get_world_size() > 1:", "    model = DDP(model)")
    before = program("follow(average, {})", made=made)
    check_transformed(RULE, before.format("model"), before.format('getattr(model, "module", model)'))


@pytest.mark.parametrize(
    "body",
    [
        "    for a, b in zip(average.parameters(), model.parameters()):\n        a.mul_(rate).add_(b.data, alpha=1 - rate)\n",
        BY_TWO_DICTS.replace("        kept", "        name = name.replace('module.', '')\n        kept"),
        BY_TWO_DICTS.replace("        kept", "        name = name[7:]\n        kept"),
        BY_TWO_DICTS.replace("        kept", "        if name not in kept:\n            continue\n        kept"),
        BY_TWO_DICTS.replace("        kept", "        if name in kept:\n            kept"),
        BY_TWO_DICTS.replace("kept[name]", "kept[strip(name)]"),
        "    model = getattr(model, 'mod' + 'ule', model)\n" + BY_TWO_DICTS,
        "    if isinstance(model, DDP):\n        model = model.module\n" + BY_TWO_DICTS,
        BY_TWO_DICTS.replace("model.named", "own_of(model).named"),
        "    kept = average.shadow\n    for name, value in model.named_parameters():\n        kept[name].mul_(rate)\n",
        "    try:\n" + "".join(f"    {line}\n" for line in BY_TWO_DICTS.splitlines()) + "    except KeyError:\n        pass\n",
    ],
)
def test_ways_that_find_the_names(body: str) -> None:
    check_nothing(RULE, program("follow(average, model)", body))


@pytest.mark.parametrize(
    "made",
    [
        (WRAP, "average = deepcopy(model)"),
        (COPY, WRAP, "average = DDP(average)"),
        ("average = AveragedModel(model)", WRAP),
        (COPY, "model = add_adapters(model)", WRAP),
        (COPY, WRAP, "model = model.module"),
        (COPY,),
        ("average = load_average()", WRAP),
    ],
)
def test_networks_that_are_wrapped_alike_or_not_known(made: tuple[str, ...]) -> None:
    check_nothing(RULE, program("follow(average, model)", made=made))


def test_what_is_handed_the_model_inside() -> None:
    check_nothing(RULE, program("follow(average, model.module)"))
    check_nothing(RULE, program("follow(average, model)", made=("follow(average, model)", COPY, WRAP, "model = model.module")))


def test_a_parameter_that_one_caller_gives_a_wrapped_average() -> None:
    step = "def step(average, model, x):\n    model(x).sum().backward()\n    follow(average, model)\n\n\n"
    found = program("step(average, model, x)", before=step, loop="pass")
    check_transformed(RULE, found, found.replace("    follow(average, model)\n", "    follow(average, model.module)\n"))
    check_nothing(RULE, found + "        other = deepcopy(model)\n        step(other, model, x)\n")
