"""Which parameters reach the loss: every construct that carries a gradient, and every one that may lose it."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.class_index import ClassSite, local_class
from codemods.analysis.model.flow_values import Cause
from codemods.analysis.model.model_usage import Entry, Usage, Verdict, modules_of, usage_of
from codemods.store.project import Project

HEAD = """\
import random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
"""


def usage(source: str, entry: Entry = Entry.FORWARD, *, name: str = "Net", files: dict[str, str] | None = None) -> Usage:
    texts = {"net.py": HEAD + textwrap.dedent(source), **{p: HEAD + textwrap.dedent(t) for p, t in (files or {}).items()}}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("net.py")
    assert module is not None
    node = local_class(module, name)
    assert node is not None
    return usage_of(project, ClassSite(module, node), entry)


def net(forward: str, *, init: str = "", arguments: str = "x", more: str = "") -> str:
    """A model with two linear layers `a` and `b`, and whatever a test adds."""
    lines = ["class Net(nn.Module):", "    def __init__(self, flag=False, depth=2):", "        super().__init__()"]
    lines += ["        self.a = nn.Linear(4, 4)", "        self.b = nn.Linear(4, 4)"]
    lines += ["        " + line for line in textwrap.dedent(init).strip().splitlines()]
    lines += [f"    def forward(self, {arguments}):"]
    lines += ["        " + line for line in textwrap.dedent(forward).strip().splitlines()]
    lines += ["    " + line for line in textwrap.dedent(more).strip().splitlines()]
    return "\n".join(lines) + "\n"


ALL_USED = {
    "a straight line": net("return self.b(F.relu(self.a(x)))"),
    "two at once": net("return self.d(self.c(self.b(self.a(x))))", init="self.c, self.d = nn.Linear(4, 4), nn.Linear(4, 4)"),
    "plain values at once": net("return self.b(self.a(x))", init="self.seen, self.count = {}, 0"),
    "a residual": net("x = x + self.a(x)\nx += self.b(x)\nreturn x"),
    "both arms of a test": net("if x.shape[0] > 1:\n    y = self.b(self.a(x))\nelse:\n    y = self.a(self.b(x))\nreturn y"),
    "a test without modules": net(
        "y = self.b(self.a(x))\nif mask is not None:\n    y = y * mask\nreturn y", arguments="x, mask=None"
    ),
    "only the loss of several": net("h = self.a(x)\nreturn [self.b(h)]"),
    "a mask instead of a branch": net("keep = torch.rand(x.shape[0], 1) > 0.1\nreturn self.a(x) + self.b(x) * keep"),
    "torch.where": net("return torch.where(x > 0, self.a(x), self.b(x))"),
    "self.training": net("y = self.b(self.a(x))\nif not self.training:\n    return y.argmax(-1)\nreturn y"),
    "own method": net("return self._head(self.a(x))", more="def _head(self, h):\n    return self.b(h)"),
    "a nested function": net("def run(h):\n    return self.b(h)\nreturn run(self.a(x))"),
    "a sequence": net("return self.seq(x)", init="self.seq = nn.Sequential(self.a, nn.ReLU(), self.b)"),
    "a module list": net(
        "x = self.b(self.a(x))\nfor block in self.blocks:\n    x = block(x)\nreturn x",
        init="self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])",
    ),
    "a module list by index": net(
        "x = self.b(self.a(x))\nfor i in range(len(self.blocks)):\n    x = self.blocks[i](x)\nreturn x",
        init="self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])",
    ),
    "a list that is appended to": net(
        "x = self.b(self.a(x))\nfor block in self.blocks:\n    x = block(x)\nreturn x",
        init="self.blocks = nn.ModuleList()\nfor _ in range(depth):\n    self.blocks.append(nn.Linear(4, 4))",
    ),
    "a sequence from a local list": net(
        "return self.body(self.b(self.a(x)))",
        init="layers = []\nfor _ in range(depth):\n    layers += [nn.Linear(4, 4), nn.ReLU()]\n"
        "self.body = nn.Sequential(*layers)",
    ),
    "heads summed": net(
        "x = self.b(self.a(x))\nreturn sum(head(x) for head in self.heads)",
        init="self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])",
    ),
    "heads joined": net(
        "x = self.b(self.a(x))\nouts = [head(x) for head in self.heads]\nreturn torch.cat(outs, dim=1)",
        init="self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])",
    ),
    "heads by name": net(
        "x = self.b(self.a(x))\nreturn self.heads['p'](x) + self.heads['q'](x)",
        init="self.heads = nn.ModuleDict({'p': nn.Linear(4, 1), 'q': nn.Linear(4, 1)})",
    ),
    "zip of two lists": net(
        "x = self.b(self.a(x))\nfor block, norm in zip(self.blocks, self.norms):\n    x = norm(block(x))\nreturn x",
        init="self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])\n"
        "self.norms = nn.ModuleList([nn.LayerNorm(4) for _ in range(depth)])",
    ),
    "a parameter": net("return self.b(self.a(x)) + self.scale", init="self.scale = nn.Parameter(torch.zeros(4))"),
    "an optional module": net(
        "x = self.b(self.a(x))\nif self.extra is not None:\n    x = self.extra(x)\nreturn x",
        init="self.extra = nn.Linear(4, 4) if flag else None",
    ),
    "a module under the same setting": net(
        "x = self.b(self.a(x))\nif self.flag:\n    x = self.extra(x)\nreturn x",
        init="self.flag = flag\nif flag:\n    self.extra = nn.Linear(4, 4)",
    ),
    "one of three makes by two settings": net(
        "x = self.b(self.a(x))\nreturn self.table(x) if self.flag else self.project(x)",
        init="self.flag = flag\nif flag:\n    self.table = nn.Embedding(9, 4)\nelif depth > 1:\n"
        "    self.project = nn.Sequential(nn.Linear(4, 4), nn.ReLU())\nelse:\n    self.project = nn.Linear(4, 4)",
    ),
    "a module under two settings": net(
        "x = self.b(self.a(x))\nif self.flag:\n    if self.deep:\n        x = self.extra(x)\nreturn x",
        init="self.flag, self.deep = flag, depth > 1\nif flag:\n    if self.deep:\n        self.extra = nn.Linear(4, 4)",
    ),
    "a projection or nothing": net(
        "return self.proj(self.b(self.a(x)))", init="self.proj = nn.Linear(4, 4) if flag else nn.Identity()"
    ),
    "a frozen teacher": net(
        "with torch.no_grad():\n    t = self.teacher(x)\nreturn self.b(self.a(x)) - t",
        init="self.teacher = nn.Linear(4, 4)\nself.teacher.requires_grad_(False)",
    ),
    "a loop that freezes": net(
        "return self.b(self.a(x))",
        init="self.teacher = nn.Linear(4, 4)\nfor p in self.teacher.parameters():\n    p.requires_grad = False",
    ),
    "a norm by a local name": "from torch.nn.utils import spectral_norm, weight_norm\n" + net(
        "return self.c(self.b(self.a(x)))",
        init="norm = spectral_norm if flag else weight_norm\nself.c = norm(nn.Conv1d(4, 4, 1))",
    ),
    "a block by a local name": net(
        "return self.block(self.b(self.a(x)))", init="kind = First if flag else Second\nself.block = kind()"
    )
    + "".join(
        f"class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.p = nn.Linear(4, 4)\n"
        "    def forward(self, x):\n        return self.p(x)\n"
        for name in ("First", "Second")
    ),
    "a copy under a setting, frozen under the same": net(
        "return self.b(self.a(x))",
        init="if flag:\n    self.ema = nn.Linear(4, 4)\n    for p in self.ema.parameters():\n        p.requires_grad = False",
    ),
    "a value out of a configuration": net(
        "y = self.b(self.a(x))\nif self.momentum is not None:\n    y = y * self.momentum\nreturn y",
        init="config = dict(flag=flag)\nself.momentum = config.get('momentum', None)",
    ),
    "layers of timm, torchvision and einops": "from einops.layers.torch import Rearrange\nfrom timm.layers import DropPath, Mlp\n"
    "from torchvision.ops import StochasticDepth\n" + net(
        "x = self.turn(self.a(x) + self.drop(self.mlp(x)))\nreturn self.depth(self.b(x))",
        init="self.mlp = Mlp(4, 8)\nself.drop = DropPath(0.1) if flag else nn.Identity()\nself.turn = Rearrange('a b -> a b')\n"
        "self.depth = StochasticDepth(0.1, 'row')",
    ),
    "checkpointing of the new kind": net("return self.b(checkpoint(self.a, x, use_reentrant=False))"),
    "an embedding's weight": net(
        "return F.linear(self.b(self.a(x)) + self.emb(i), self.emb.weight)",
        arguments="x, i", init="self.emb = nn.Embedding(9, 4)",
    ),
    "weight norm": net("return self.c(self.b(self.a(x)))", init="self.c = nn.utils.weight_norm(nn.Conv1d(4, 4, 1))"),
    "attention": net(
        "y, _ = self.att(x, x, x)\nreturn self.b(self.a(y))", init="self.att = nn.MultiheadAttention(4, 2)"
    ),
    "a property": net("return self.b(self.first(x))", more="@property\ndef first(self):\n    return self.a"),
    "a test on a default that nobody gives": net(
        "return self._run(self.a(x))",
        more="def _run(self, h, bare=False):\n    if bare:\n        return h\n    return self.b(h)",
    ),
    "a stage by name": net(
        "return self._run(x, 'train')",
        more="def _run(self, x, stage):\n    if stage == 'train':\n        return self.b(self.a(x))\n    return x",
    ),
    "a logged value": net("y = self.b(self.a(x))\nself.last = y.detach().mean().item()\nreturn y"),
    "a flag that is always on": net("x = self.a(x)\nif self.on:\n    x = self.b(x)\nreturn x", init="self.on = True"),
    "a bound method handed on": net(
        "return self._through(self._inner, x)",
        more="def _inner(self, x):\n    return self.b(self.a(x))\ndef _through(self, run, x):\n    return run(x)",
    ),
    "losses added in a loop": net(
        "outs = [self.a(x), self.b(x)]\nloss = 0\nfor out in outs:\n    loss = loss + out.mean()\nreturn loss"
    ),
    "an autograd function": net("return Scale.apply(self.b(self.a(x)), 2)") + "class Scale(torch.autograd.Function):\n    pass\n",
    "an input multiplied by a parameter": net(
        "return self.b(self.a(x)) + x.matmul(self.w)", init="self.w = nn.Parameter(torch.zeros(4, 4))"
    ),
    "a torch layer with its own forward": net("return self.b(self.a(self.s(x)))", init="self.s = Sub(4)")
    + "class Sub(nn.LayerNorm):\n    def forward(self, x):\n        return super().forward(x.float()).type_as(x)\n",
    "a torch layer under another name": net("return self.b(self.a(self.s(x)))", init="self.s = Sub(4)")
    + "class Sub(nn.LayerNorm):\n    pass\n",
    "skip connections": net(
        "skips = []\nx = self.a(x)\nskips.append(x)\nx = self.b(x)\nreturn x + skips.pop()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(ALL_USED))
def test_every_parameter_reaches_the_loss(what: str) -> None:
    found = usage(ALL_USED[what])
    assert (found.verdict, found.reasons, found.never) == (Verdict.ALL, (), ())
    assert found.evidence


LEFT_OUT = {
    "a random branch": (net("x = self.a(x)\nif random.random() < 0.5:\n    x = self.b(x)\nreturn x"), Cause.RANDOM, "b"),
    "a random early return": (
        net("x = self.a(x)\nif np.random.rand() < 0.5:\n    return x\nreturn self.b(x)"), Cause.RANDOM, "b",
    ),
    "a random number with a name": (
        net("drop = torch.rand(1).item() < 0.5\nx = self.a(x)\nif not drop:\n    x = self.b(x)\nreturn x"), Cause.RANDOM, "b",
    ),
    "training and a random number": (
        net("x = self.a(x)\nif self.training and random.random() < 0.1:\n    return x\nreturn self.b(x)"), Cause.RANDOM, "b",
    ),
    "layer drop": (
        net(
            "x = self.b(self.a(x))\nfor block in self.blocks:\n    if self.training and random.random() < 0.1:\n"
            "        continue\n    x = block(x)\nreturn x",
            init="self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])",
        ), Cause.RANDOM, "blocks",
    ),
    "a conditional expression": (net("x = self.a(x)\nreturn x if random.random() < 0.1 else self.b(x)"), Cause.RANDOM, "b"),
    "an index from the batch": (
        net(
            "x = self.b(self.a(x))\nreturn self.heads[task](x)", arguments="x, task",
            init="self.heads = nn.ModuleDict({'p': nn.Linear(4, 1), 'q': nn.Linear(4, 1)})",
        ), Cause.INDEX, "heads",
    ),
    "an expert without tokens": (
        net("x = self.a(x)\nmask = x > 0\nif mask.any():\n    x = self.b(x)\nreturn x"), Cause.DATA, "b",
    ),
    "an argument that may be missing": (
        net("x = self.a(x)\nif image is not None:\n    x = x + self.b(image)\nreturn x", arguments="x, image=None"),
        Cause.ARGUMENT, "b",
    ),
    "the epoch": (net("x = self.a(x)\nif self.epoch > 3:\n    x = self.b(x)\nreturn x"), Cause.SCHEDULE, "b"),
    "the rank": (net("x = self.a(x)\nif torch.distributed.get_rank() == 0:\n    x = self.b(x)\nreturn x"), Cause.RANK, "b"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(LEFT_OUT))
def test_a_module_is_left_out_in_some_steps(what: str) -> None:
    source, cause, name = LEFT_OUT[what]
    found = usage(source)
    assert found.verdict is Verdict.SOMETIMES
    assert found.skipped[0].cause is cause
    assert name in modules_of(found.skipped[0])


NOT_ALL = {
    "a function of another package": "from kornia import warp\n" + net("return warp(self.b(self.a(x)))"),
    "detach": net("return self.b(self.a(x).detach())"),
    "data": net("return self.b(self.a(x).data)"),
    "no_grad": net("with torch.no_grad():\n    h = self.a(x)\nreturn self.b(h)"),
    "inference mode as a decorator": net(
        "return self.b(self._first(x))", more="@torch.inference_mode()\ndef _first(self, x):\n    return self.a(x)"
    ),
    "set_grad_enabled by a setting": net("with torch.set_grad_enabled(self.flag):\n    h = self.a(x)\nreturn self.b(h)"),
    "an unused head": net("return self.a(x)"),
    "an output that is kept, not returned": net("h = self.a(x)\nself.aux = self.b(h)\nreturn h"),
    "two outputs": net("h = self.a(x)\nreturn h, self.b(h)"),
    "a dispatch by name": net("return getattr(self, name)(self.a(x))", arguments="x, name"),
    "reentrant checkpointing": net("return self.b(checkpoint(self.a, x))"),
    "one of several results": net(
        "x = self.b(self.a(x))\nouts = [head(x) for head in self.heads]\nreturn outs[k]",
        arguments="x, k", init="self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])",
    ),
    "a slice of the blocks": net(
        "x = self.b(self.a(x))\nfor block in self.blocks[:1]:\n    x = block(x)\nreturn x",
        init="self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])",
    ),
    "a break": net(
        "x = self.b(self.a(x))\nfor block in self.blocks:\n    if x.max() > 3:\n        break\n    x = block(x)\nreturn x",
        init="self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])",
    ),
    "a condition in a comprehension": net(
        "x = self.b(self.a(x))\nreturn sum(h(x) for i, h in enumerate(self.heads) if i != k)",
        arguments="x, k", init="self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])",
    ),
    "a setting": net("x = self.a(x)\nif self.flag:\n    x = self.b(x)\nreturn x", init="self.flag = flag"),
    "a module under another setting": net(
        "x = self.b(self.a(x))\nif self.use:\n    x = self.extra(x)\nreturn x",
        init="self.use = flag and depth > 2\nif flag:\n    self.extra = nn.Linear(4, 4)",
    ),
    "another class's module of the same name": net(
        "x = self.b(self.a(x))\nif self.flag:\n    x = self.block(self.extra(x))\nreturn x",
        init="self.flag = flag\nself.block = Block()\nif flag:\n    self.extra = nn.Linear(4, 4)",
    )
    + "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.extra = nn.Linear(4, 4)\n"
    "    def forward(self, x):\n        return self.extra(x)\n",
    "an argument with the name of a setting": net(
        "x = self.b(self.a(x))\nif flag:\n    x = self.extra(x)\nreturn x",
        arguments="x, flag", init="if flag:\n    self.extra = nn.Linear(4, 4)",
    ),
    "a module where not both settings hold": net(
        "x = self.b(self.a(x))\nif not self.deep:\n    x = self.extra(x)\nreturn x",
        init="self.flag, self.deep = flag, depth > 1\nif self.flag and self.deep:\n    pass\nelse:\n"
        "    self.extra = nn.Linear(4, 4)",
    ),
    "a block by a local name that may be another's": "from other import Second\n" + net(
        "return self.block(self.b(self.a(x)))", init="kind = First if flag else Second\nself.block = kind()"
    )
    + "class First(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.p = nn.Linear(4, 4)\n"
    "    def forward(self, x):\n        return self.p(x)\n",
    "a norm by a local name, of a layer that is not called": "from torch.nn.utils import spectral_norm, weight_norm\n" + net(
        "return self.b(self.a(x))", init="norm = spectral_norm if flag else weight_norm\nself.c = norm(nn.Conv1d(4, 4, 1))"
    ),
    "a part frozen under another setting": net(
        "with torch.no_grad():\n    t = self.ema(x)\nreturn self.b(self.a(x)) - t",
        init="self.ema = nn.Linear(4, 4)\nif flag:\n    self.ema.requires_grad_(False)",
    ),
    "a module out of a table": net(
        "return self.b(self.a(self.net(x)))", init="tables = make_tables()\nself.net = tables.get('small')"
    ),
    "a layer of timm that is never called": "from timm.layers import Mlp\n" + net(
        "return self.b(self.a(x))", init="self.mlp = Mlp(4, 8)"
    ),
    "another class of timm": "from timm.models.beit import Block\n" + net(
        "return self.b(self.a(self.block(x)))", init="self.block = Block(4)"
    ),
    "a backbone from a hub": "import timm\n" + net(
        "return self.b(self.a(self.net(x)))", init="self.net = timm.create_model('x')"
    ),
    "a module that is handed in": net("return self.b(self.a(self.net(x)))", init="self.net = backbone"),
    "modules under computed names": net(
        "return self.b(self.a(x))", init="for i in range(depth):\n    setattr(self, f'l{i}', nn.Linear(4, 4))"
    ),
    "a module made later": net(
        "return self.b(self.a(x))", more="def setup(self, stage):\n    self.late = nn.Linear(4, 4)"
    ),
    "a freeze during training": net(
        "return self.b(self.a(x))", more="def on_epoch(self):\n    self.a.requires_grad_(False)"
    ),
    "a base outside the project": "from other import Base\n" + net("return self.b(self.a(x))").replace("nn.Module", "Base"),
    "an intercepted call": net("return self.b(self.a(x))", more="def __call__(self, x):\n    return x"),
    "an unknown decorator": "from other import lazy\n" + net(
        "return self._run(x)", more="@lazy\ndef _run(self, x):\n    return self.b(self.a(x))"
    ),
    "a part of a layer": net("return F.linear(self.a(x), self.b.weight)"),
    "the weights of attention": net(
        "_, w = self.att(x, x, x)\nreturn self.b(self.a(x)) + w.mean()", init="self.att = nn.MultiheadAttention(4, 2)"
    ),
    "an index by argmax": net("h = self.a(x)\nreturn self.b(x)[h.argmax()]"),
    "a comparison": net("return self.b(x) * (self.a(x) > 0)"),
    "a compiled block": net("return self.b(self.c(self.a(x)))", init="self.c = torch.compile(nn.Linear(4, 4))"),
    "a while loop": net("x = self.a(x)\nwhile x.norm() > 1:\n    x = self.b(x)\nreturn x"),
    "a handler": net("try:\n    x = self.b(self.a(x))\nexcept RuntimeError:\n    x = self.a(x)\nreturn x"),
    "a match": net("x = self.a(x)\nmatch kind:\n    case 'b':\n        x = self.b(x)\nreturn x", arguments="x, kind"),
    "a list of scalars": net("h = self.a(x)\nreturn self.b(x) + len(h)"),
    "a flag that another method sets": net(
        "x = self.a(x)\nif self.on:\n    x = self.b(x)\nreturn x",
        init="self.on = True", more="def off(self):\n    self.on = False",
    ),
    "a flag that other code sets": net("x = self.a(x)\nif self.on:\n    x = self.b(x)\nreturn x", init="self.on = True")
    + "def off(model):\n    model.on = False\n",
    "state of another method": net(
        "return self.b(x) + self.kept", more="def sample(self, x):\n    self.kept = self.a(x)"
    ),
    "a bound method handed to an unknown function": "from other import run\n" + net(
        "return run(self._inner, x)", more="def _inner(self, x):\n    return self.b(self.a(x))"
    ),
    "several outputs on one path only": net(
        "if reverse:\n    return self.b(self.a(x))\ny = self.a(x)\nreturn y, self.b(y)", arguments="x, reverse=False"
    ),
    "the last of a list": net("outs = []\nouts.append(self.a(x))\nouts.append(self.b(x))\nreturn outs.pop()"),
    "the last round of a loop": net("outs = [self.a(x), self.b(x)]\nfor out in outs:\n    y = F.relu(out)\nreturn y"),
    "a method of another object": net("return self.help.pick(self.a(x), self.b(x))", init="self.help = Helper()"),
    "the larger of two": net("return max(self.a(x), self.b(x))"),
    "one of two broadcast tensors": net("p, q = torch.broadcast_tensors(self.a(x), self.b(x))\nreturn p"),
    "the second of a module's outputs": net(
        "return self.pair(x)[1]",
        init="self.pair = Pair()",
    )
    + "class Pair(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.p = nn.Linear(4, 4)\n"
    "        self.q = nn.Linear(4, 4)\n    def forward(self, x):\n        return self.p(x), self.q(x)\n",
    "a torch layer whose parameters are not all read": net("return self.b(self.a(self.s(x)))", init="self.s = Sub(4)")
    + "class Sub(nn.LayerNorm):\n    def forward(self, x):\n        return x * self.weight\n",
    "a container of torch as a base": net("return self.b(self.a(self.s(x)))", init="self.s = Sub(nn.Linear(4, 4))")
    + "class Sub(nn.Sequential):\n    def forward(self, x):\n        return self[0](x)\n",
    "arguments that are spread": net(
        "return self._run(*inputs)", arguments="*inputs",
        more="def _run(self, x, bare=False):\n    x = self.a(x)\n    if bare:\n        return x\n    return self.b(x)",
    ),
    "a prototype layer": net(
        "return self.enc(self.b(self.a(x)))",
        init="self.layer = nn.TransformerEncoderLayer(4, 2)\nself.enc = nn.TransformerEncoder(self.layer, 2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(NOT_ALL))
def test_what_may_lose_a_gradient_is_never_called_used(what: str) -> None:
    assert usage(NOT_ALL[what]).verdict is not Verdict.ALL


def test_a_parameter_that_reaches_no_loss_is_named() -> None:
    found = usage(net("return self.a(x)"))
    assert found.verdict is Verdict.NEVER
    assert found.never == ("b",)


def test_a_parameter_used_without_a_gradient_says_where() -> None:
    found = usage(net("return self.a(x) + self.b(x).detach()"))
    assert found.verdict is Verdict.NEVER
    assert any("only without a gradient" in e.text for e in found.evidence)


def test_a_module_that_other_code_reads_is_not_called_unused() -> None:
    source = net("return self.a(x)")
    found = usage(source, files={"train.py": "def step(model, x):\n    return model.module.b(model(x))\n"})
    assert found.verdict is Verdict.UNKNOWN
    assert "b is read in train.py" in found.reasons


LAYERS = """\
class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.BatchNorm1d(4), nn.Linear(4, 4)
    def forward(self, x):
        return self.fc(self.norm(x))
class Spare(nn.Module):
    def __init__(self, wide=4):
        super().__init__()
        self.norm, self.fc = nn.BatchNorm1d(wide), nn.Linear(wide, wide)
    def forward(self, x):
        return self.fc(x)
"""
STACK = "return self.stack(self.b(self.a(x)))"
MAYBE_SPARE = {
    "an expression": "self.stack = Spare() if flag else Normed()",
    "both arms": "if flag:\n    self.stack = Spare()\nelse:\n    self.stack = Normed()",
    "appended": "made = []\nfor _ in range(depth):\n    if flag:\n        made.append(Spare())\n    else:\n"
                "        made.append(Normed())\nself.stack = nn.Sequential(*made)",
    "appended by one arm": "made = [Normed()]\nif flag:\n    made.append(Spare())\nself.stack = nn.Sequential(*made)",
    "appended to a field": "self.stack = nn.Sequential()\nif flag:\n    self.stack.append(Spare())\nelse:\n"
                           "    self.stack.append(Normed())",
    "one of three": "made = []\nif depth > 3:\n    made += [Normed()]\nelif flag:\n    made += [Spare()]\nelse:\n"
                    "    made += [Normed()]\nself.stack = nn.Sequential(*made)",
    "by a method": "self.stack = self.build(flag)",
}  # fmt: skip
BUILDS = "def build(self, flag):\n    made = []\n    made.append(Spare() if flag else Normed())\n    return nn.Sequential(*made)"


@pytest.mark.parametrize("init", MAYBE_SPARE.values(), ids=MAYBE_SPARE)
def test_a_layer_that_may_never_be_made_is_not_called_unused(init: str) -> None:
    found = usage(LAYERS + net(STACK, init=init, more=BUILDS))
    assert found.verdict is Verdict.UNKNOWN
    assert any("is decided when the model is built" in r for r in found.reasons)


SURELY_SPARE = {
    "no test": "made = []\nfor _ in range(depth):\n    made.append(Spare())\nself.stack = nn.Sequential(*made)",
    "each arm": "made = []\nif flag:\n    made.append(Spare())\nelse:\n    made.append(Spare(wide=4))\n"
                "self.stack = nn.Sequential(*made)",
    "beside a test": "made = [Spare()]\nif flag:\n    made.append(Normed())\nself.stack = nn.Sequential(*made)",
}  # fmt: skip


@pytest.mark.parametrize("init", SURELY_SPARE.values(), ids=SURELY_SPARE)
def test_a_layer_that_each_way_makes_is_named(init: str) -> None:
    found = usage(LAYERS + net(STACK, init=init))
    assert found.verdict is Verdict.NEVER
    assert found.never and all(path.endswith("norm") for path in found.never)


def test_a_loop_that_counts_is_an_assumption() -> None:
    found = usage(net("for _ in range(self.n):\n    x = self.b(self.a(x))\nreturn x"))
    assert found.verdict is Verdict.ALL
    assert any("at least once" in a for a in found.assumptions)


def test_parallel_lists_by_one_index_are_an_assumption() -> None:
    init = "self.p = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])\n"
    init += "self.q = nn.ModuleList()\nfor i in range(depth):\n    self.q.append(nn.Linear(4, 4) if i else nn.Identity())"
    found = usage(
        net("x = self.b(self.a(x))\nfor i in range(len(self.p)):\n    x = self.q[i](self.p[i](x))\nreturn x", init=init)
    )
    assert found.verdict is Verdict.ALL
    assert any("every element of q" in a for a in found.assumptions)


def test_base_class_and_blocks_in_other_files() -> None:
    block = "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
    block += "    def forward(self, x):\n        return x + self.fc(x)\n"
    base = "from .block import Block\nclass Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    base += "        self.block = Block()\n    def forward(self, x):\n        return self.head(self.block(x))\n"
    source = "from base import Base\nclass Net(Base):\n    def __init__(self):\n        "
    source += "super().__init__()\n        self.head = nn.Linear(4, 1)\n"
    found = usage(source, files={"base.py": base, "block.py": block})
    assert found.verdict is Verdict.ALL
    broken = usage(source, files={"base.py": base.replace("self.head(self.block(x))", "self.block(x)"), "block.py": block})
    assert broken.never == ("head",)


def test_a_branch_inside_a_block_is_found_from_the_root() -> None:
    block = "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
    block += "    def forward(self, x):\n        if torch.rand(1) < 0.1:\n            return x\n        return self.fc(x)\n"
    source = "from block import Block\n" + net("return self.c(self.b(self.a(x)))", init="self.c = Block()")
    found = usage(source, files={"block.py": block})
    assert found.verdict is Verdict.SOMETIMES
    assert found.skipped[0].path == "block.py"
    assert modules_of(found.skipped[0]) == "c.fc"


def test_a_helper_function_in_another_file_is_followed() -> None:
    source = "from helpers import mix\n" + net("return mix(self.a(x), self.b(x))")
    assert usage(source, files={"helpers.py": "def mix(p, q):\n    return p + q\n"}).verdict is Verdict.ALL
    assert usage(source, files={"helpers.py": "def mix(p, q):\n    return p\n"}).never == ("b",)


LIGHT = """\
import lightning.pytorch as pl
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 1)
        self.loss = nn.MSELoss()
    def forward(self, x):
        return self.b(self.a(x))
    def _shared(self, batch, stage):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log(f"{stage}/loss", loss)
        return loss
    def training_step(self, batch, batch_idx):
        return self._shared(batch, "train")
"""


def test_training_step_through_a_shared_helper() -> None:
    assert usage(LIGHT, Entry.TRAINING_STEP).verdict is Verdict.ALL


def test_training_step_that_returns_a_dict() -> None:
    source = LIGHT.replace(
        'return self._shared(batch, "train")', 'loss = self._shared(batch, "train")\n        return {"loss": loss}'
    )
    assert usage(source, Entry.TRAINING_STEP).verdict is Verdict.ALL


def test_a_skipped_step_is_no_unused_parameter() -> None:
    step = 'loss = self._shared(batch, "train")\n        if torch.isnan(loss):\n            return None\n        return loss'
    assert usage(LIGHT.replace('return self._shared(batch, "train")', step), Entry.TRAINING_STEP).verdict is Verdict.ALL


def test_an_own_backward_is_not_followed() -> None:
    found = usage(LIGHT + "    def backward(self, loss):\n        pass\n", Entry.TRAINING_STEP)
    assert found.verdict is Verdict.UNKNOWN


def test_the_loss_of_a_hugging_face_model() -> None:
    forward = "h = self.b(self.a(x))\nloss = None\nif labels is not None:\n    loss = F.mse_loss(h, labels)\n"
    forward += "return {'loss': loss, 'h': h}"
    assert usage(net(forward, arguments="x, labels=None"), Entry.HF).verdict is Verdict.ALL
    only = "h = self.a(x)\nreturn {'loss': h.mean(), 'extra': self.b(h)}"
    assert usage(net(only), Entry.HF).never == ("b",)


def test_an_output_class_of_its_own_is_told() -> None:
    source = "from dataclasses import dataclass\n@dataclass\nclass Out:\n    loss: object\n    h: object\n"
    found = usage(source + net("h = self.b(self.a(x))\nreturn Out(loss=h.mean(), h=h)"), Entry.HF)
    assert found.wrapped == "Out"


def test_a_model_too_large_to_follow_is_unknown() -> None:
    lines = "\n".join(f"x = self.b(self.a(x)) + {i}" for i in range(20000))
    assert usage(net(lines + "\nreturn x")).verdict is Verdict.UNKNOWN


def test_recursion_ends() -> None:
    assert (
        usage(net("return self._run(self.a(x))", more="def _run(self, x):\n    return self._run(self.b(x))")).verdict
        is Verdict.UNKNOWN
    )


FROZEN = """\
import lightning.pytorch as pl


class Voice(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)

    def forward(self, x):
        return self.out(x)


"""


def test_a_part_that_lightning_freezes_needs_no_gradient() -> None:
    source = FROZEN + net("return self.b(self.a(x))", init="self.voice = Voice()\nself.voice.freeze()")
    assert usage(source).verdict is Verdict.ALL
    thawed = FROZEN + net("return self.b(self.a(x))", init="self.voice = Voice()")
    assert usage(thawed).verdict is Verdict.NEVER


def test_a_part_from_several_classes_that_lightning_freezes_needs_no_gradient() -> None:
    other = FROZEN.partition("\n\n\n")[2].replace("Voice", "Singer")
    init = "self.voice = Voice() if flag else Singer()\nself.voice.freeze()"
    assert usage(FROZEN + other + net("return self.b(self.a(x))", init=init)).verdict is Verdict.ALL
    own = other.replace("    def forward", "    def freeze(self):\n        pass\n\n    def forward")
    assert usage(FROZEN + own + net("return self.b(self.a(x))", init=init)).verdict is not Verdict.ALL


def test_a_freeze_of_the_projects_own_is_not_known() -> None:
    own = FROZEN.replace("    def forward", "    def freeze(self):\n        pass\n\n    def forward")
    found = usage(own + net("return self.b(self.a(self.voice(x)))", init="self.voice = Voice()\nself.voice.freeze()"))
    assert found.verdict is Verdict.UNKNOWN and "self.voice.freeze() freezes" in found.reasons[0]


def test_a_list_that_is_filled_where_nothing_has_made_it() -> None:
    found = usage("""\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.blocks.append(nn.Linear(4, 4))

        def forward(self, x):
            return self.a(x)
    """)
    assert found.verdict is Verdict.ALL


MANY = "self.heads = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])"
KEEPS = {
    "a chain": "h = self.b(self.a(x))\nfor head in self.heads:\n    h = head(h)\nreturn h",
    "a sum": "h, out = self.b(self.a(x)), 0\nfor head in self.heads:\n    out = out + head(h)\nreturn out",
    "a list": "h, o = self.b(self.a(x)), []\nfor head in self.heads:\n    y = head(h)\n    o.append(y)\nreturn torch.cat(o)",
    "two in a row": "h = self.b(self.a(x))\nfor i, head in enumerate(self.heads):\n    y = head(h)\n    h = h + y\nreturn h",
}
FORGETS = {
    "the last answer": "h = self.b(self.a(x))\nfor head in self.heads:\n    out = head(h)\nreturn out",
    "the last of an index": "h = self.b(self.a(x))\nfor i in range(len(self.heads)):\n    out = self.heads[i](h)\nreturn out",
    "the last module": "h = self.b(self.a(x))\nfor head in self.heads:\n    h = h + 1\nreturn head(h)",
    "the last of pairs": "h = self.b(self.a(x))\nfor i, head in enumerate(self.heads):\n    h = h + i\nreturn head(h)",
}


@pytest.mark.parametrize("forward", KEEPS.values(), ids=KEEPS)
def test_a_loop_over_modules_that_keeps_what_each_gives(forward: str) -> None:
    assert usage(net(forward, init=MANY)).verdict is Verdict.ALL


@pytest.mark.parametrize("forward", FORGETS.values(), ids=FORGETS)
def test_a_loop_over_modules_of_which_only_the_last_is_used(forward: str) -> None:
    assert usage(net(forward, init=MANY)).verdict is not Verdict.ALL
