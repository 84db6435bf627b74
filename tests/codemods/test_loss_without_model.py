"""DDP314: a rank's loss that no parameter of the model is behind."""

from __future__ import annotations

import pytest

from codemods.sync.loss_without_model import LossWithoutModel
from ddpfix.testing import check_nothing, check_told

RULE = LossWithoutModel
WHY = "keep the loss on the model's graph"
WRAPPER = "from torch.nn.parallel import DistributedDataParallel as DDP\n"
HEAD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
"""


def loop(body: str, *, before: str = "", top: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    return f"""{HEAD}
{top}

def train(model, data, optimizer, scaler, criterion, args):
    dist.init_process_group("nccl")
    model = DDP(model)
    loader = DataLoader(data, sampler=DistributedSampler(data))
    {before or "pass"}
    for step, (x, y) in enumerate(loader):
        output = model(x)
        loss = (output - y).pow(2).mean()
{lines}"""


def step(body: str, *, name: str = "training_step", more: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    return f"""
import torch
import lightning.pytorch as pl

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def {name}(self, batch, batch_idx):
{lines}
{more}

def main(loader):
    pl.Trainer(devices=2, strategy="ddp").fit(Net(), loader)
"""


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    bad, good = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, bad, reason=WHY)
    check_nothing(RULE, good)


@pytest.mark.parametrize(
    "fresh",
    [
        "torch.zeros(1, requires_grad=True)",
        "torch.tensor(0.0, requires_grad=True, device=x.device)",
        "torch.tensor(0.0, requires_grad=True).to(x.device)",
        "torch.zeros_like(loss).requires_grad_()",
        "torch.zeros_like(loss, requires_grad=True)",
        "loss.new_tensor(0.0, requires_grad=True)",
        "loss.new_zeros(1, requires_grad=True).sum()",
        "torch.autograd.Variable(torch.zeros(1), requires_grad=True)",
        "loss.detach().requires_grad_(True) * 0.0",
    ],
)
def test_spellings_of_a_tensor_of_nothing(fresh: str) -> None:
    check_told(RULE, loop(f"if torch.isnan(loss):\n    loss = {fresh}\nloss.backward()"), reason=WHY)


@pytest.mark.parametrize(
    "body",
    [
        "if not torch.isfinite(loss):\n    loss = ZERO\nloss = loss / args.accumulation_steps\nloss.backward()",
        "if (y > 0).sum() == 0:\n    loss = ZERO\nscaler.scale(loss).backward()",
        "if (y > 0).any():\n    loss = loss + output.sum()\nelse:\n    loss = ZERO\noptimizer.zero_grad()\nloss.backward()",
        "loss = ZERO if torch.isnan(loss) else loss\nloss.backward()",
        "if torch.isnan(loss):\n    loss = torch.zeros(1)\n    loss.requires_grad = True\nloss.backward()",
        "try:\n    loss = criterion(output, y)\nexcept RuntimeError:\n    loss = ZERO\nloss.backward()",
        "total = ZERO\nif (y > 0).any():\n    total = total + loss\ntotal.backward()",
        "if args.amp:\n    if loss.isnan().any():\n        loss = ZERO\n(loss / args.steps).backward()",
        "if torch.isnan(loss):\n    loss = ZERO\nif step % 10 == 0:\n    print(step)\nloss.backward()",
    ],
)
def test_ways_to_the_backward_pass(body: str) -> None:
    check_told(RULE, loop(body.replace("ZERO", "torch.zeros(1, requires_grad=True)")), reason=WHY)


@pytest.mark.parametrize(
    ("top", "call"),
    [
        ("def loss_of(a, b):\n    if b.sum() == 0:\n        return ZERO\n    return (a - b).mean()",
         "loss = loss_of(output, y)\nloss.backward()"),
        ("def loss_of(a, b):\n    found = []\n    for i in range(len(a)):\n        hits = b[i] > 0\n        if hits.any():\n"
         "            found.append((a[i] - b[i])[hits].mean())\n"
         "    if len(found) > 0:\n        return torch.stack(found).mean()\n"
         "    return ZERO", "loss_of(output, y).backward()"),
        ("def loss_of(a, b):\n    if b.sum() == 0:\n        return ZERO, {}\n    return (a - b).mean(), {}",
         "loss, _ = loss_of(output, y)\nloss.backward()"),
        ("def loss_of(a, b):\n    hits = b > 0\n    if hits.any():\n        loss = (a - b)[hits].mean()\n    else:\n"
         "        loss = ZERO\n    return {'loss': loss, 'hits': hits}", "found = loss_of(output, y)\nfound['loss'].backward()"),
        ("def inner(a, b):\n    if b.sum() == 0:\n        return ZERO\n    return (a - b).mean()\n\n"
         "def loss_of(a, b):\n    return 2.0 * inner(a, b)", "loss_of(output, y).backward()"),
    ],
)  # fmt: skip
def test_losses_that_functions_give_back(top: str, call: str) -> None:
    check_told(RULE, loop(call, top=top.replace("ZERO", "torch.tensor(0.0, requires_grad=True)")), reason=WHY)


SUMS = {
    "a sum": "total = ZERO + part(output, y)\ntotal.backward()",
    "the other way round": "total = part(output, y) + ZERO\ntotal.backward()",
    "a loop": "total = ZERO\nfor a, b in zip(output, y):\n    one = part(a, b)\n    total = total + one\ntotal.backward()",
    "in place": "total = ZERO\nfor a, b in zip(output, y):\n    total += part(a, b)\ntotal.backward()",
}


@pytest.mark.parametrize("body", SUMS.values(), ids=SUMS)
def test_sums_of_nothing(body: str) -> None:
    top = "def part(a, b):\n    if (b > 0).any():\n        return (a - b).mean()\n    return ZERO"
    top, body = (text.replace("ZERO", "torch.zeros(1, requires_grad=True)") for text in (top, body))
    check_told(RULE, loop(body, top=top), reason=WHY)
    check_nothing(RULE, loop(body.replace("total.backward()", "total = total + loss\ntotal.backward()"), top=top))


def test_a_criterion() -> None:
    top = (
        "class Hits(nn.Module):\n    def forward(self, a, b):\n        hits = b > 0\n        if hits.sum() == 0:\n"
        "            return torch.tensor(0.0, requires_grad=True)\n        return (a - b)[hits].mean()"
    )
    check_told(RULE, loop("loss = hits(output, y)\nloss.backward()", before="hits = Hits()", top=top), reason=WHY)


@pytest.mark.parametrize(
    "body",
    [
        "x, y = batch\nloss = (self.net(x) - y).mean()\nif torch.isnan(loss):\n    return ZERO\nreturn loss",
        "x, y = batch\nif y.sum() == 0:\n    return {'loss': ZERO}\nreturn {'loss': self.net(x).mean()}",
        "x, y = batch\ntry:\n    return self.net(x).mean()\nexcept Exception:\n    return ZERO",
    ],
)  # fmt: skip
def test_a_step_of_lightning(body: str) -> None:
    check_told(RULE, step(body.replace("ZERO", "torch.tensor(0.0, requires_grad=True)")), reason=WHY)


def test_a_step_that_asks_a_helper() -> None:
    more = (
        "    def shared(self, batch):\n        x, y = batch\n        if y.sum() == 0:\n"
        "            return torch.tensor(0.0, requires_grad=True)\n        return self.net(x).mean()\n"
    )
    check_told(RULE, step("loss = self.shared(batch)\nself.log('loss', loss)\nreturn loss", more=more), reason=WHY)


def test_a_loss_of_the_trainer() -> None:
    check_told(
        RULE,
        "import torch\nfrom transformers import Trainer\n\nclass Mine(Trainer):\n"
        "    def compute_loss(self, model, inputs, return_outputs=False):\n"
        "        out = model(**inputs)\n        loss = out.loss\n"
        "        if torch.isnan(loss):\n            loss = torch.tensor(0.0, requires_grad=True, device=loss.device)\n"
        "        return (loss, out) if return_outputs else loss\n",
        reason=WHY,
    )


# Right programs


@pytest.mark.parametrize(
    "body",
    [
        "if torch.isnan(loss):\n    loss = loss * 0\nloss.backward()",
        "if torch.isnan(loss):\n    loss = torch.nan_to_num(loss)\nloss.backward()",
        "if (y > 0).sum() == 0:\n    loss = output.sum() * 0\nloss.backward()",
        "if (y > 0).sum() == 0:\n    loss = (output * torch.zeros_like(output)).sum()\nloss.backward()",
        "extra = ZERO\nif (y > 0).any():\n    extra = output.max()\nloss = loss + extra\nloss.backward()",
        "extra = ZERO\nif (y > 0).any():\n    extra = output.max()\n(loss + args.weight * extra).backward()",
        "if torch.isnan(loss):\n    extra = ZERO\n    loss = output.sum() * 0 + extra\nloss.backward()",
        "bad = torch.isnan(loss).float()\ndist.all_reduce(bad)\nif bad.item() > 0:\n    loss = ZERO\nloss.backward()",
        "dist.all_reduce(loss)\nif torch.isnan(loss):\n    loss = ZERO\nloss.backward()",
        "if step < args.warmup:\n    loss = ZERO\nloss.backward()",
        "if args.loss is None:\n    loss = ZERO\nloss.backward()",
        "shown = ZERO\nif (y > 0).any():\n    shown = loss\nprint(shown)\nloss.backward()",
        "if torch.isnan(loss):\n    loss = ZERO\n    continue\nloss.backward()",
        "if torch.isnan(loss):\n    loss = torch.zeros(1)\nloss.backward()",
        "total = ZERO\ntotal = total + loss\ntotal.backward()",
        "try:\n    import lpips\n    loss = lpips.loss(output)\nexcept Exception:\n    loss = ZERO\nloss.backward()",
        "if torch.isnan(loss):\n    loss = ZERO\nif loss.requires_grad:\n    loss.backward()",
        "if torch.isnan(loss):\n    loss = ZERO\nif loss > 0:\n    loss.backward()",
        "hits = (y > 0).any()\nif not hits:\n    loss = ZERO\nif hits:\n    loss.backward()",
        "if dist.get_world_size() == 1:\n    if torch.isnan(loss):\n        loss = ZERO\nloss.backward()",
        "if args.distributed:\n    pass\nelif torch.isnan(loss):\n    loss = ZERO\nloss.backward()",
        "total = ZERO\nif (y > 0).any():\n    total = total + loss\ntotal.add_(loss)\ntotal.backward()",
        "move = torch.zeros_like(x, requires_grad=True)\nif y.any():\n    move = move + x\nmodel(x + move).mean().backward()",
        "if torch.isnan(loss):\n    loss = ZERO\nfor p in model.parameters():\n    loss = loss + p.sum() * 0\nloss.backward()",
    ],
)  # fmt: skip
def test_losses_that_stay_on_the_graph(body: str) -> None:
    check_nothing(RULE, loop(body.replace("ZERO", "torch.zeros(1, requires_grad=True)")))


def test_one_process() -> None:
    text = loop("if torch.isnan(loss):\n    loss = torch.zeros(1, requires_grad=True)\nloss.backward()")
    alone = text.replace("import torch.distributed as dist", "").replace(WRAPPER, "")
    alone = alone.replace('    dist.init_process_group("nccl")\n    model = DDP(model)\n', "").replace(", DistributedSampler", "")
    check_nothing(RULE, alone.replace(", sampler=DistributedSampler(data)", ""))


def test_no_wrapper_at_all() -> None:
    text = loop("if torch.isnan(loss):\n    loss = torch.zeros(1, requires_grad=True)\nloss.backward()")
    text = text.replace("    model = DDP(model)\n", "").replace(WRAPPER, "")
    check_nothing(RULE, text)


def test_a_step_of_validation() -> None:
    body = "x, y = batch\nif y.sum() == 0:\n    return torch.tensor(0.0, requires_grad=True)\nreturn self.net(x).mean()"
    check_nothing(RULE, step(body, name="validation_step"))


def test_a_step_that_must_not_come() -> None:
    body = "x, y = batch\nif y.sum() == 0:\n    raise ValueError(y)\nreturn torch.tensor(0.0, requires_grad=True)"
    check_nothing(RULE, step(body))


def test_an_engine_that_reduces_what_is_missing() -> None:
    body = "if torch.isnan(loss):\n    loss = torch.zeros(1, requires_grad=True)\nengine.backward(loss)"
    check_nothing(RULE, loop(body))


def test_a_term_of_a_function_that_is_added() -> None:
    top = "def term(a, b):\n    if b.sum() == 0:\n        return torch.tensor(0.0, requires_grad=True)\n    return (a - b).mean()"
    check_nothing(RULE, loop("loss = loss + 0.1 * term(output, y)\nloss.backward()", top=top))
    check_nothing(RULE, loop("losses = [loss, term(output, y)]\nsum(losses).backward()", top=top))


def test_a_criterion_of_another_file() -> None:
    losses = (
        "import torch\nfrom torch import nn\n\nclass Hits(nn.Module):\n    def forward(self, a, b):\n"
        "        hits = b > 0\n        if hits.sum() == 0:\n            return torch.tensor(0.0, requires_grad=True)\n"
        "        return (a - b)[hits].mean()\n"
    )
    program = loop("loss = hits(output, y)\nloss.backward()", before="hits = Hits()", top="from losses import Hits")
    check_told(RULE, losses, reason=WHY, path="losses.py", files={"train.py": program})
    added = program.replace("hits(output, y)", "loss + hits(output, y)")
    check_nothing(RULE, losses, path="losses.py", files={"train.py": added})


def test_a_model_that_gives_its_loss() -> None:
    top = (
        "class Net(nn.Module):\n    def forward(self, x, y):\n        hits = y > 0\n        if not hits.any():\n"
        "            return torch.tensor(0.0, requires_grad=True)\n        return self.layer(x)[hits].mean()"
    )
    program = loop("model(x, y).backward()", top=top).replace("DDP(model)", "DDP(Net())")
    check_told(RULE, program.replace("output = model(x)", "output = x"), reason=WHY)
