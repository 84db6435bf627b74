"""DDP704: an all-reduce in each micro-batch of an accumulation."""

from __future__ import annotations

import pytest

from codemods.tuning.accumulation_without_no_sync import AccumulationWithoutNoSync
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = AccumulationWithoutNoSync
HEAD = "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
LOOP = """\
def train(net, loader, optimizer, scaler, args):
    model = DDP(net)
    count = 0
    for i, (x, y) in enumerate(loader):
        loss = ((model(x) - y) ** 2).mean() / args.every
        loss.backward()
        if (i + 1) % args.every == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
LINE = "        model.require_backward_grad_sync = {}  # what model.no_sync() switches\n"
FIRST = "        loss = ((model(x)"


def program(loop: str = LOOP) -> str:
    return HEAD + loop


def switched(loop: str = LOOP, test: str = "(i + 1) % args.every == 0", first: str = FIRST) -> str:
    return program(loop.replace(first, LINE.format(test) + first, 1))


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("old", "new", "test"),
    [
        ("(i + 1) % args.every == 0", "(i + 1) % args.every == 0 or i + 1 == len(loader)", ""),
        ("(i + 1) % args.every == 0", "i % 4 == 3", ""),
        ("loss.backward()", "scaler.scale(loss).backward()", "(i + 1) % args.every == 0"),
        ("            optimizer.step()", "            scaler.unscale_(optimizer)\n            scaler.step(optimizer)",
         "(i + 1) % args.every == 0"),
        ("        loss.backward()\n", "        if args.half:\n            scaler.scale(loss).backward()\n        else:\n"
         "            loss.backward()\n", "(i + 1) % args.every == 0"),
        ("model = DDP(net)", "model = DDP(net) if args.many else net", "(i + 1) % args.every == 0"),
    ],
)  # fmt: skip
def test_loops_that_accumulate(old: str, new: str, test: str) -> None:
    loop = LOOP.replace(old, new)
    check_transformed(RULE, program(loop), switched(loop, test or new), unsafe=True)


def test_a_forward_in_a_block_of_its_own() -> None:
    loop = LOOP.replace(FIRST, "        with args.cast():\n            loss = ((model(x)")
    check_transformed(RULE, program(loop), switched(loop, first="        with args.cast"), unsafe=True)


def test_another_training_finds_the_wrapper_as_it_was() -> None:
    after = switched() + "    model.require_backward_grad_sync = True\n"
    check_transformed(RULE, program(), after, files={"second.py": "def second(loss):\n    loss.backward()\n"}, unsafe=True)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("DDP(net)", "DDP(net, static_graph=True)", "static_graph"),
        ("    count = 0\n", "    model = compile(model)\n", "compiled"),
        ("            optimizer.zero_grad()\n",
         "            optimizer.zero_grad()\n    optimizer.step()\n", "another step"),
        ("        loss.backward()\n", "        loss.backward()\n        clip_grad_norm_(model.parameters(), 1)\n", ""),
        ("        loss.backward()\n", "        loss.backward()\n        print(net.weight.grad)\n", "line 10 works"),
        ("        loss.backward()\n", "        loss.backward()\n        i += 1\n", "`i` of the test gets its value"),
        ("(i + 1) % args.every == 0", "(i + 1) % args.every == 0 or args.due()", "`args.due()` in the test"),
    ],
)
def test_what_one_line_does_not_mend(old: str, new: str, reason: str) -> None:
    new = new.replace("clip_grad_norm_(model", "args.torch.clip_grad_norm_(model")
    new = new.replace("compile(model)", "args.torch.compile(model)")
    check_told(RULE, program(LOOP.replace(old, new)), reason=reason or "works on the gradients")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    count = 0\n", "    count = model.no_sync\n"),
        ("    count = 0\n", "    count = accelerator\n"),
        ("model = DDP(net)", "model = net"),
        ("        loss.backward()\n", "        optimizer.zero_grad()\n        loss.backward()\n"),
        ("        loss.backward()\n", "        loss.backward()\n        (loss * 2).backward()\n"),
        ("if (i + 1) % args.every == 0", "if i > 3"),
        ("if (i + 1) % args.every == 0", "if i % 1 == 0"),
        ("            optimizer.step()\n", "            optimizer.scheduler.step()\n"),
    ],
)
def test_loops_that_need_nothing(old: str, new: str) -> None:
    check_nothing(RULE, program(LOOP.replace(old, new)))


METHOD = """\
class Run:
    def __init__(self, net, every):
        self.net, self.every, self.count = DDP(net), every, 0

    def batch(self, x, y, optimizer):
        loss = ((self.net(x) - y) ** 2).mean() / self.every
        loss.backward()
        if (self.count + 1) % self.every == 0:
            optimizer.step()
            optimizer.zero_grad()
        self.count += 1

    def add(self):
        self.count += 1
"""


def test_a_method_for_each_batch() -> None:
    loop = METHOD.replace("self.net, self.every, self.count = DDP(net), every, 0", "self.net = DDP(net)")
    test = "(self.count + 1) % self.every == 0"
    line = LINE.replace("model", "self.net").format(test)
    forward = "        loss = ((self"
    check_transformed(RULE, program(loop), program(loop.replace(forward, line + forward)), unsafe=True)
    guarded = loop.replace("optimizer):\n", "optimizer):\n        with every():\n").replace("        self.count += 1\n\n", "\n")
    body = guarded[guarded.index("        loss =") : guarded.index("    def add")]
    inner = "".join(f"    {line}\n" if line else "\n" for line in body.rstrip().split("\n")) + "\n"
    after = guarded.replace(body, f"    {line}{inner}")
    check_transformed(RULE, program(guarded.replace(body, inner)), program(after), unsafe=True)
    counted = loop.replace("        loss.backward()\n", "        self.add()\n        loss.backward()\n")
    check_told(RULE, program(counted), reason="`self.count` of the test is set by a method")


def test_two_wrappers_in_one_loop() -> None:
    two = LOOP.replace("    count = 0\n", "    other = DDP(args.other)\n").replace("model(x) - y", "other(model(x)) - y")
    check_nothing(RULE, program(two))


def test_own_tests_stay() -> None:
    check_nothing(RULE, program(), path="tests/test_train.py")
