"""A model with several outputs: its loss is followed through the code that wraps it and calls backward."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability, Finding
from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters as Missing
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters as Needless
from ddpfix.testing import findings_of

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.aux = nn.Linear(8, 1)

    def forward(self, x):
        h = self.body(x)
        return {"out": self.head(h), "aux": self.aux(h)}
"""
TRAIN = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from losses import Balanced, weighted
from net import Net


def epoch(model, loader, criterion, optimizer, args, step=0):
    model.train()
    for x, y in loader:
        made = model(x)
        LOSS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, loader):
    with torch.no_grad():
        return [model(x)["out"].argmax(-1) for x, _ in loader]


def main(args, loader):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    model = Net().to(args.device)
    if args.sync_bn:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if args.distributed:
        model = DDP(model, device_ids=[args.rank], find_unused_parameters=FLAG)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(args.epochs):
        epoch(model, loader, criterion, optimizer, args, step)
        print(evaluate(model, loader))
"""
LOSSES = """\
from torch import nn


def weighted(made, y, weight=0.1):
    first = nn.functional.cross_entropy(made["out"], y)
    return first + weight * made["aux"].mean()


class Balanced(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.CrossEntropyLoss()

    def forward(self, made, y):
        return self.first(made["out"], y) + made["aux"].mean()
"""
BOTH = 'loss = criterion(made["out"], y) + 0.1 * made["aux"].mean()'
ONE = 'loss = criterion(made["out"], y)'


class Asked(Needless):
    TELLS_OPEN = True


def said(codemod: type[Needless] | type[Missing], loss: str, *, flag: str, net: str = NET, train: str = TRAIN) -> list[Finding]:
    source = train.replace("LOSS", textwrap.indent(loss, " " * 8).strip()).replace("FLAG", flag)
    return list(findings_of(codemod, source, {"net.py": net, "losses.py": LOSSES}, path="train.py"))


EVERYTHING = {
    "added up": BOTH,
    "by a function of another file": "loss = weighted(made, y)",
    "by a module of the project that is made here": "loss = Balanced()(made, y)",
    "taken apart": 'out, aux = made["out"], made["aux"]\nloss = nn.functional.cross_entropy(out, y) + aux.mean()',
    "summed over a dict": 'parts = {"a": criterion(made["out"], y), "b": made["aux"].mean()}\nloss = sum(parts.values())',
    "under autocast": f"with torch.autocast('cuda'):\n    {BOTH}",
    "of a batch that may be skipped": f"{BOTH}\nif not torch.isfinite(loss):\n    continue",
}


@pytest.mark.parametrize("loss", list(EVERYTHING.values()), ids=list(EVERYTHING))
def test_the_flag_is_offered_off_where_every_output_enters_the_loss(loss: str) -> None:
    (found,) = said(Needless, loss, flag="True")
    assert found.applicability is Applicability.UNSAFE, found.reason
    assert "the backward pass at train.py:" in found.reason
    assert any(e.text == "the loss that backward() is called on" for e in found.evidence)


SCALED = "args.scaler.scale(loss).backward()"
EITHER = f"if args.amp:\n            {SCALED}\n        else:\n            loss.backward()"
WRAP = "DDP(model, device_ids=[args.rank], find_unused_parameters=FLAG)"
HELPER = "def wrap(model, args):\n    return DDP(model, find_unused_parameters=FLAG)\n\n\ndef main(args, loader):"


@pytest.mark.parametrize(
    "train",
    [
        TRAIN.replace("loss.backward()", SCALED),
        TRAIN.replace("loss.backward()", EITHER),
        TRAIN.replace("def main(args, loader):", HELPER).replace(WRAP, "wrap(model, args)"),
        TRAIN.replace("def main(args, loader):", "def main(args, loader):\n    pass\n\n\nif True:"),
    ],
    ids=["a scaler", "both kinds", "a helper that wraps", "no function"],
)
def test_other_ways_to_train(train: str) -> None:
    (found,) = said(Needless, BOTH, flag="True", train=train)
    assert found.applicability is Applicability.UNSAFE, found.reason


def test_an_output_that_no_loss_takes_is_found_dead() -> None:
    (found,) = said(Missing, ONE, flag="False")
    assert found.applicability is Applicability.UNSAFE
    assert "aux of Net never reaches the loss" in found.message and "freezing it" in found.reason
    (found,) = said(Needless, ONE, flag="True")
    assert "is needed only because aux of Net never reaches the loss" in found.message and not found.edits


def test_an_output_that_some_steps_take_needs_the_flag() -> None:
    loss = f'{ONE}\nif step > 3:\n    loss = loss + made["aux"].mean()'
    (found,) = said(Missing, loss, flag="False")
    assert found.applicability is Applicability.UNSAFE and "`step > 3`" in found.message
    assert not said(Needless, loss, flag="True")


OPEN = {
    "an unknown function": 'loss = args.criterion(made["out"], made["aux"])',
    "a loss that is detached in part": 'loss = criterion(made["out"], y) + made["aux"].detach().mean()',
    "by a setting": f'{ONE}\nif args.aux_weight > 0:\n    loss = loss + args.aux_weight * made["aux"].mean()',
    "two backward passes": f'{ONE}\nloss.backward(retain_graph=True)\nloss = made["aux"].mean()',
    "a method of several values": "loss = made.mean()",
    "another model": 'made = args.other(x)\nloss = criterion(made["out"], y)',
    "an element by a variable": "loss = made[args.which].mean()",
}


@pytest.mark.parametrize("loss", list(OPEN.values()), ids=list(OPEN))
def test_what_the_loop_does_not_show_changes_nothing(loss: str) -> None:
    found = [*said(Needless, loss, flag="True"), *said(Missing, loss, flag="False")]
    if "detach" in loss:
        assert all("aux of Net never reaches" in f.message for f in found)
    else:
        assert all(f.applicability is Applicability.DISPLAY for f in found)


def test_a_wrapper_that_only_evaluates_and_a_loop_elsewhere_stay_open() -> None:
    (found,) = said(Asked, "loss = made", flag="True", train=TRAIN.replace("        loss.backward()\n", ""))
    assert found.applicability is Applicability.DISPLAY and "several outputs" in found.reason
    (found,) = said(Asked, BOTH, flag="True", train=TRAIN.replace("    epoch(model", "    args.epoch(model"))
    assert found.applicability is Applicability.DISPLAY and "several outputs" in found.reason


def test_a_model_under_a_compiler_is_not_followed() -> None:
    train = TRAIN.replace("    if args.distributed:", "    model = torch.compile(model)\n    if args.distributed:")
    assert not said(Needless, BOTH, flag="True", train=train)


TWICE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.aux = nn.Linear(8, 4)

    def losses(self, boxes, wanted):
        near = nn.functional.l1_loss(boxes, wanted)
        if (boxes < wanted).any():
            wide = torch.zeros(8)
        else:
            wide = (boxes - wanted).square()
        return near, wide.mean()

    def forward(self, x, wanted):
        boxes = self.aux(self.body(x))
        near, wide = self.losses(boxes, wanted)
        return boxes, near, wide
"""
TAKEN = TRAIN.replace("made = model(x)", "boxes, near, wide = model(x, y)")


@pytest.mark.parametrize(
    "loss", ["loss = near + wide", "loss = near", "loss = wide + 2 * boxes.mean()", "loss = sum([near, wide])"]
)
def test_another_output_of_the_loss_has_the_module_in_every_step(loss: str) -> None:
    assert not said(Missing, loss, flag="False", net=TWICE, train=TAKEN)


@pytest.mark.parametrize(
    "loss", ["loss = wide", "loss = wide + 2", "loss = args.whichever(near, wide)", "loss = near.detach() + wide"]
)
def test_no_other_output_of_the_loss_is_seen_to_have_it(loss: str) -> None:
    (found,) = said(Missing, loss, flag="False", net=TWICE, train=TAKEN)
    assert "aux" in found.message and "decides" in found.message


def test_outputs_of_a_model_whose_parts_are_not_seen() -> None:
    net = TWICE.replace("self.body = nn.Linear(8, 8)", "self.body = build(8)")
    assert not said(Missing, "loss = near + wide", flag="False", net=net, train=TAKEN)
    (found,) = said(Missing, "loss = wide", flag="False", net=net, train=TAKEN)
    assert "aux, body of Net takes no part" in found.message
