"""DDP002: a module that some steps leave out, the default of each framework and version, and every refusal."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters as Rule
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

NET = """\
import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.text = nn.Linear(4, 8)

    def forward(self, x, tokens):
        h = self.body(x)
        if {test}:
            h = h + self.text(tokens)
        return h
"""
RANDOM = NET.format(test="random.random() > 0.1")
LIT = """\
import random

import pytorch_lightning as pl
import torch
from torch import nn


class Lit(pl.LightningModule):
    def __init__(self, p=0.1):
        super().__init__()
        self.p = p
        self.encoder = nn.Linear(4, 8)
        self.null = nn.Parameter(torch.zeros(8))
        self.body = nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        if random.random() < self.p:
            cond = self.null.expand(len(x), -1)
        else:
            cond = self.encoder(x)
        return nn.functional.cross_entropy(self.body(cond), y)
"""
TWO = {"lit.py": LIT, "requirements.txt": "pytorch-lightning>=2.1\n"}
WRAP = (
    "from net import Net\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    "\nmodel = DDP(Net(){})\nmodel(1, 2).mean().backward()\n"
)


def trainer(body: str) -> str:
    head = "import pytorch_lightning as pl\nfrom pytorch_lightning.strategies import DDPStrategy\n\nfrom lit import Lit\n\n\n"
    return f"{head}def main(args, loader):\n{body}    trainer.fit(Lit(), loader)\n"


def test_the_example_of_the_documentation() -> None:
    sections = Rule.sections()
    code = [sections[s].split("```python\n")[1].split("```")[0] for s in ("Example", "Use instead")]
    check_transformed(Rule, *code)


def test_a_random_branch_switches_the_flag_on() -> None:
    after = WRAP.format(", find_unused_parameters=True")
    found = check_transformed(Rule, WRAP.format(""), after, files={"net.py": RANDOM})
    assert "text of Net" in found[0].message
    assert "random.random() > 0.1" in found[0].message
    assert "net.py:15" in found[0].message
    check_transformed(Rule, WRAP.format(", find_unused_parameters=False"), after, files={"net.py": RANDOM})


def test_several_lines_with_comments_and_a_trailing_comma() -> None:
    before = WRAP.format(",\n    device_ids=[0],  # one\n").replace("DDP(Net()", "DDP(\n    Net()")
    after = before.replace("# one\n", "# one\n    find_unused_parameters=True,\n")
    check_transformed(Rule, before, after, files={"net.py": RANDOM})


@pytest.mark.parametrize("indent", ["  ", "\t"])
def test_indentation_and_an_alias_of_the_module(indent: str) -> None:
    source = (
        "import torch.nn as nn\nfrom net import Net\n\n\ndef wrap(model):\n"
        f"{indent}if ready():\n{indent}{indent}model = nn.parallel.DistributedDataParallel(model.cuda())\n"
        f"{indent}return model\n\n\n"
        "model = wrap(Net())\nmodel(1, 2).mean().backward()\n"
    )
    after = source.replace("model.cuda())", "model.cuda(), find_unused_parameters=True)")
    check_transformed(Rule, source, after, files={"net.py": RANDOM})


@pytest.mark.parametrize("test", ["torch.rand(1) > 0.1", "self.training and random.random() > 0.1", "not (torch.rand(()) < 0.2)"])
def test_literal_random_numbers_are_safe(test: str) -> None:
    found = findings_of(Rule, WRAP.format(""), {"net.py": NET.format(test=test)})
    assert [f.applicability for f in found] == [Applicability.SAFE]


def test_layer_drop_in_a_block_of_another_file() -> None:
    block = (
        RANDOM.replace("class Net", "class Block").replace("forward(self, x, tokens)", "forward(self, x)").replace("tokens", "x")
    )
    net = (
        "from torch import nn\n\nfrom block import Block\n\n\nclass Net(nn.Module):\n    "
        "def __init__(self):\n        super().__init__()\n"
        "        self.blocks = nn.ModuleList(Block() for _ in range(3))\n\n    def forward(self, x):\n"
        "        for block in self.blocks:\n            x = block(x)\n        return x\n"
    )
    found = findings_of(Rule, WRAP.format(""), {"net.py": net, "block.py": block})
    assert [f.applicability for f in found] == [Applicability.SAFE]
    assert "blocks.text" in found[0].message
    assert "block.py" in found[0].message


def test_a_conditional_strategy_changes_only_its_arm_and_keeps_its_quotes() -> None:
    line = "    strategy = 'ddp' if args.gpus > 1 or args.gpus == -1 else 'auto'  # {}\n"
    body = line + "    trainer = pl.Trainer(devices=args.gpus, strategy=strategy)\n"
    before = trainer(body)
    found = check_transformed(Rule, before, before.replace("'ddp'", "'ddp_find_unused_parameters_true'"), files=TWO)
    assert any(e.kind == "version" and e.path == "requirements.txt" for e in found[0].evidence)


def test_a_strategy_written_in_the_call() -> None:
    before = trainer('    trainer = pl.Trainer(devices=2, strategy="ddp")\n')
    check_transformed(Rule, before, before.replace('"ddp"', '"ddp_find_unused_parameters_true"'), files=TWO)
    before = trainer("    trainer = pl.Trainer(devices=2, strategy='ddp_find_unused_parameters_false')\n")
    check_transformed(Rule, before, before.replace("_false", "_true"), files=TWO)


def test_a_strategy_object() -> None:
    before = trainer("    trainer = pl.Trainer(devices=2, strategy=DDPStrategy(process_group_backend='gloo'))\n")
    after = before.replace("='gloo')", "='gloo', find_unused_parameters=True)")
    check_transformed(Rule, before, after, files=TWO)


def test_a_trainer_that_a_function_returns() -> None:
    before = (
        "import pytorch_lightning as pl\nfrom lit import Lit\n\n\ndef create(config):\n    "
        "strategy = 'ddp' if config.n > 1 else 'auto'\n"
        "    trainer = pl.Trainer(strategy=strategy)\n    return trainer\n"
    )
    main = "from lit import Lit\nfrom module import create\n\n\ndef main(c, data):\n    model = Lit()\n    "
    main += "t = create(c)\n    t.fit(model, data)\n"
    check_transformed(Rule, before, before.replace("'ddp'", "'ddp_find_unused_parameters_true'"), files={**TWO, "main.py": main})


def test_training_arguments_that_say_false() -> None:
    net = RANDOM.replace("x, tokens", "x, tokens, labels=None").replace("return h", "return {'loss': h.mean()}")
    before = (
        "from net import Net\nfrom transformers import Trainer, TrainingArguments\n\n"
        "args = TrainingArguments('out', ddp_find_unused_parameters=False)\nTrainer(model=Net(), args=args).train()\n"
    )
    check_transformed(Rule, before, before.replace("=False", "=True"), files={"net.py": net})


# Lower levels


def test_an_index_of_the_batch_is_unsafe() -> None:
    net = NET.format(test="True").replace(
        "self.text = nn.Linear(4, 8)", 'self.text = nn.ModuleDict({"a": nn.Linear(4, 8), "b": nn.Linear(4, 8)})'
    )
    net = net.replace("forward(self, x, tokens)", "forward(self, x, tokens, kind)").replace(
        "self.text(tokens)", "self.text[kind](tokens)"
    )
    check_transformed(Rule, WRAP.format(""), WRAP.format(", find_unused_parameters=True"), files={"net.py": net}, unsafe=True)


HEADS = """\
import pytorch_lightning as pl
from torch import nn


class Rows(nn.Module):
    def __init__(self, rows: nn.Module):
        super().__init__()
        self.rows = rows


class Lit(pl.LightningModule):
    def __init__(self, several):
        super().__init__()
        self.body, self.several = nn.Linear(8, 8), several
        self.heads = Rows(rows=nn.ModuleList([nn.Linear(8, 1) for _ in range(several)]))

    def training_step(self, batch, batch_idx):
        x, kind = batch
        h, loss = self.body(x), 0
        for place in range(self.several):
            loss = loss + self.heads.rows[{index}](h).mean()
        return loss
"""


def test_the_counter_of_a_loop_picks_the_same_in_each_step() -> None:
    fit = trainer("    trainer = pl.Trainer(devices=2, strategy='ddp')\n").replace("Lit()", "Lit(3)")
    files = {"requirements.txt": "pytorch-lightning>=2.1\n"}
    check_nothing(Rule, fit, files={**files, "lit.py": HEADS.format(index="place")})


SCORED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.text = nn.Linear(8, 8), nn.Linear(4, 8)

    def forward(self, x, tokens):
        h = self.body(x) + self.text(tokens)
        best = h.argmax(-1)
        return {returned}
"""


def test_an_output_that_nothing_reaches_is_not_what_is_trained() -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": SCORED.format(returned="torch.zeros(len(best))")})


@pytest.mark.parametrize("test", ["tokens.any()", "self.epoch > 3", "torch.distributed.get_rank() == 0"])
def test_data_schedule_and_rank_are_unsafe(test: str) -> None:
    found = findings_of(Rule, WRAP.format(""), {"net.py": NET.format(test=test)})
    assert [f.applicability for f in found] == [Applicability.UNSAFE]
    assert "assumes" in found[0].reason


@pytest.mark.parametrize("pin", ["", "pytorch-lightning\n", "pytorch-lightning>=1.9\n"])
def test_a_version_that_is_not_pinned_is_unsafe(pin: str) -> None:
    found = findings_of(Rule, trainer("    trainer = pl.Trainer(devices=2, strategy='ddp')\n"), {**TWO, "requirements.txt": pin})
    assert [f.applicability for f in found] == [Applicability.UNSAFE]
    assert "Lightning 2.0" in found[0].reason


def test_a_module_from_outside_may_be_frozen() -> None:
    lit = "from clip import load\n" + LIT.replace("nn.Linear(4, 8)", "load('x')").replace(
        "nn.Parameter(torch.zeros(8))", "zeros(8)"
    )
    found = findings_of(Rule, trainer("    trainer = pl.Trainer(strategy='ddp')\n"), {**TWO, "lit.py": lit})
    assert not [f for f in found if f.applicability is Applicability.SAFE]


def test_an_output_class_of_its_own_is_unsafe() -> None:
    net = RANDOM.replace("class Net", "class Out:\n    def __init__(self, h):\n        self.h = h\n\n\nclass Net").replace(
        "return h\n", "return Out(h=h)\n"
    )
    found = findings_of(Rule, WRAP.format(""), {"net.py": net})
    assert [f.applicability for f in found] == [Applicability.UNSAFE]
    assert "Out" in found[0].reason


def test_several_strategies_in_one_trainer_are_unsafe() -> None:
    body = "    strategy = 'ddp' if args.a else 'ddp_spawn'\n    trainer = pl.Trainer(strategy=strategy)\n"
    found = findings_of(Rule, trainer(body), TWO)
    assert {f.applicability for f in found} == {Applicability.UNSAFE}


# Refusals


@pytest.mark.parametrize("pin", ["pytorch-lightning==1.9.5\n", "pytorch-lightning>=1.6,<2\n"])
def test_lightning_1_has_the_flag_on(pin: str) -> None:
    check_nothing(Rule, trainer("    trainer = pl.Trainer(gpus=2, strategy='ddp')\n"), files={**TWO, "requirements.txt": pin})


def test_hugging_face_has_the_flag_on() -> None:
    net = RANDOM.replace("return h", "return {'loss': h.mean()}")
    source = "from net import Net\nfrom transformers import Trainer, TrainingArguments\n\n"
    source += "args = TrainingArguments('ddp')\nTrainer(model=Net(), args=args)\n"
    check_nothing(Rule, source, files={"net.py": net})


def test_a_flag_that_is_on_is_left_alone() -> None:
    check_nothing(Rule, WRAP.format(", find_unused_parameters=True"), files={"net.py": RANDOM})
    check_nothing(Rule, trainer("    trainer = pl.Trainer(strategy='ddp_find_unused_parameters_true')\n"), files=TWO)


def test_static_graph_is_told() -> None:
    check_told(Rule, WRAP.format(", static_graph=True"), files={"net.py": RANDOM}, reason="static_graph=True")


def test_static_graph_of_a_strategy_or_by_a_setting_is_told() -> None:
    body = "    trainer = pl.Trainer(strategy=DDPStrategy(static_graph=True))\n"
    check_told(Rule, trainer(body), files=TWO, reason="static_graph=True")
    check_told(Rule, WRAP.format(", static_graph=flag"), files={"net.py": RANDOM}, reason="static_graph=flag")


CHECKPOINTED = "from torch.utils.checkpoint import checkpoint\n" + RANDOM.replace("self.body(x)", "checkpoint(self.body, x)")


def test_reentrant_checkpointing_goes_along_with_the_flag() -> None:
    other = "from torch.utils import checkpoint as c\n\n\ndef run(layers, x):\n    return c.checkpoint_sequential(layers, 2, x)\n"
    files = {"net.py": CHECKPOINTED, "deep.py": other, "requirements.txt": "torch==1.13.0\n"}
    changed = {
        "net.py": CHECKPOINTED.replace("(self.body, x)", "(self.body, x, use_reentrant=False)"),
        "deep.py": other.replace("2, x)", "2, x, use_reentrant=False)"),
    }
    after = WRAP.format(", find_unused_parameters=True")
    (found,) = check_transformed(Rule, WRAP.format(""), after, files=files, changed=changed, unsafe=True)
    assert "net.py:15 and 1 more) fails with the flag on" in found.reason and "torch 1.11" not in found.reason
    (found,) = findings_of(Rule, WRAP.format(""), {"net.py": CHECKPOINTED})
    assert found.applicability is Applicability.UNSAFE and "assumes torch 1.11 or newer" in found.reason


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "torch==1.10.2\n"},
        {"net.py": CHECKPOINTED.replace("self.body, x", "self.body, x, use_reentrant=self.kind")},
        {"net.py": CHECKPOINTED.replace("self.body, x", "self.body, x, **self.options")},
        {f"deep{i}.py": "from torch.utils.checkpoint import checkpoint\ny = checkpoint(f, x)\n" for i in range(8)},
    ],
)  # fmt: skip
def test_reentrant_checkpointing_that_cannot_be_changed_is_told(files: dict[str, str]) -> None:
    check_told(Rule, WRAP.format(""), files={"net.py": CHECKPOINTED, **files}, reason="use_reentrant=False first")


def test_checkpointing_of_the_new_kind_is_left_alone() -> None:
    new = CHECKPOINTED.replace("self.body, x", "self.body, x, use_reentrant=False")
    check_transformed(Rule, WRAP.format(""), WRAP.format(", find_unused_parameters=True"), files={"net.py": new})


def test_a_name_that_lightning_1_does_not_know_is_told() -> None:
    files = {**TWO, "requirements.txt": "pytorch-lightning==1.9.5\n"}
    body = "    trainer = pl.Trainer(strategy='ddp_find_unused_parameters_false')\n"
    check_told(Rule, trainer(body), files=files, reason="DDPStrategy(find_unused_parameters=True)")


def test_a_module_that_never_takes_part_is_offered_the_flag_and_the_better_way_is_said() -> None:
    files = {"net.py": NET.format(test="False")}
    after = WRAP.format(", find_unused_parameters=True")
    (found,) = check_transformed(Rule, WRAP.format(""), after, files=files, unsafe=True)
    assert "text of Net never reaches the loss" in found.message
    assert "requires_grad_(False)" in found.reason


def test_a_module_that_never_takes_part_is_told_where_the_flag_would_not_help() -> None:
    lit = LIT.replace("random.random() < self.p", "False")
    body = "    trainer = pl.Trainer(strategy='ddp_find_unused_parameters_false')\n"
    files = {"lit.py": lit, "requirements.txt": "pytorch-lightning==1.9.5\n"}
    told = check_told(Rule, trainer(body), files=files, reason="DDPStrategy(find_unused_parameters=True)")
    assert "null of Lit never reaches the loss" in told.message and "freezing it" in told.reason
    check_nothing(Rule, WRAP.format(", static_graph=True"), files={"net.py": NET.format(test="False")})
    frozen = NET.format(test="False").replace("(4, 8)", "(4, 8)\n        self.text.requires_grad_(False)")
    check_nothing(Rule, WRAP.format(""), files={"net.py": frozen})


@pytest.mark.parametrize("test", ["tokens is not None", "self.use_text", "x.shape[0] > 1 or True"])
def test_an_argument_a_setting_and_a_known_test_say_nothing(test: str) -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": NET.format(test=test)})


def test_a_mask_keeps_the_graph_whole() -> None:
    for line in (
        "h = h + self.text(tokens) * (torch.rand(1) > 0.1)",
        "h = torch.where(torch.rand(1) > 0.1, h, self.text(tokens))",
    ):
        net = NET.format(test="True").replace("h = h + self.text(tokens)", line)
        check_nothing(Rule, WRAP.format(""), files={"net.py": net})


def test_random_numbers_outside_training_say_nothing() -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": NET.format(test="self.training or random.random() < 0.5")})


def test_a_trainer_without_a_ddp_strategy_is_left_alone() -> None:
    check_nothing(Rule, trainer("    trainer = pl.Trainer(devices=2, strategy='deepspeed')  # not ddp\n"), files=TWO)
    check_nothing(Rule, trainer("    trainer = pl.Trainer(accelerator='cpu')\n"), files=TWO)
    check_nothing(Rule, trainer("    trainer = pl.Trainer(**config)\n"), files=TWO)
    check_nothing(Rule, trainer("    trainer = pl.Trainer(devices=2)\n"), files={"lit.py": LIT, "requirements.txt": OLD})
    used = LIT.replace("random.random() < self.p", "self.p")
    check_nothing(Rule, trainer("    trainer = pl.Trainer(devices=2)\n"), files={**TWO, "lit.py": used})


OLD = "pytorch-lightning==1.9.5\n"


@pytest.mark.parametrize(
    ("given", "assumed"),
    [
        ("devices=2", "there are as many devices"),
        ("devices=args.gpus", "devices=args.gpus comes to several devices"),
        ("accelerator='cpu', devices=2", "there are as many devices"),
        ("accelerator='gpu'", "the machine has several devices"),
        ("devices=1, num_nodes=4", "several nodes or devices are used"),
    ],
)
def test_a_trainer_that_may_use_several_devices_without_naming_a_strategy(given: str, assumed: str) -> None:
    before = trainer(f"    trainer = pl.Trainer({given})\n")
    after = before.replace(given, f'{given}, strategy="ddp_find_unused_parameters_true"')
    (found,) = check_transformed(Rule, before, after, files=TWO, unsafe=True)
    assert assumed in found.reason


@pytest.mark.parametrize("count", ["int(text)", "len(gpus)", "torch.cuda.device_count()"])
def test_one_device_keeps_its_strategy_where_the_number_is_a_number(count: str) -> None:
    before = trainer(f"    n = {count}\n    trainer = pl.Trainer(devices=n)\n").replace("import py", "import torch\nimport py", 1)
    strategy = 'strategy="ddp_find_unused_parameters_true" if n > 1 else "auto"'
    check_transformed(Rule, before, before.replace("devices=n", f"devices=n, {strategy}"), files=TWO, unsafe=True)


def test_a_trainer_kept_to_one_device_is_left_alone() -> None:
    check_nothing(Rule, trainer("    trainer = pl.Trainer(devices=1)\n"), files=TWO)


def test_a_model_that_is_not_in_the_project_is_left_alone() -> None:
    check_nothing(Rule, "from hub import Net\n" + WRAP.format(""))


def test_manual_optimization_is_left_alone() -> None:
    lit = LIT.replace("        self.p = p", "        self.p = p\n        self.automatic_optimization = False")
    check_nothing(Rule, trainer("    trainer = pl.Trainer(strategy='ddp')\n"), files={**TWO, "lit.py": lit})


TAKES = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.heads = nn.ModuleList([nn.Linear(8, 2) for _ in range(count)])

    def forward(self, x, hidden):
        x = self.body[0](x)
        BODY
"""


@pytest.mark.parametrize(
    "body",
    ["for part in self.body[1:]:\n            x = part(x)\n        return sum(head(x) for head in self.heads)",
     "x = self.body[2](x)\n        return sum(self.heads[i](x + h) for i, h in enumerate(hidden))",
     "x = self.body[2](x)\n        out = 0\n        for i in range(hidden.shape[1]):\n"
     "            out = out + self.heads[i](x)\n        return out",
     "x = self.body[2](x)\n        maps = [h + x for h in hidden]\n        count = len(maps)\n"
     "        return sum(self.heads[i](maps[i]) for i in range(count))"],
)  # fmt: skip
def test_elements_that_a_loop_or_a_slice_goes_through(body: str) -> None:
    source = "from net import Net\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
    source += "model = DDP(Net(3), find_unused_parameters=False)\nmodel(1, 2).sum().backward()\n"
    check_nothing(Rule, source, files={"net.py": TAKES.replace("BODY", body)})


def test_everything_used_is_left_alone() -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": NET.format(test="True")})


def test_a_model_that_is_only_evaluated_is_left_alone() -> None:
    check_nothing(Rule, WRAP.format("").replace("mean().backward()", "mean().item()"), files={"net.py": RANDOM})


def test_a_backward_pass_in_an_imported_file_counts() -> None:
    source = "from steps import train\n" + WRAP.format("").replace("model(1, 2).mean().backward()", "train(model)")
    files = {"net.py": RANDOM, "steps.py": "def train(model):\n    model(1, 2).mean().backward()\n"}
    assert [f.applicability for f in findings_of(Rule, source, files)] == [Applicability.SAFE]


def test_a_repository_s_own_tests() -> None:
    example = Rule.sections()["Example"].removeprefix("```python\n").removesuffix("```")
    assert findings_of(Rule, example)
    check_nothing(Rule, example, path="tests/test_net.py")


@pytest.mark.parametrize("test", ["x.shape[1] == 3", "x.size(1) != 1", "x.ndim == 4"])
def test_how_the_model_is_called_is_no_matter_of_the_batch(test: str) -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": NET.format(test=test)})


def test_a_branch_whose_module_may_have_no_parameters() -> None:
    net = RANDOM.replace("self.text = nn.Linear(4, 8)", "self.text = nn.Linear(4, 8) if wide else nn.Identity()")
    net = net.replace("def __init__(self)", "def __init__(self, wide=False)")
    check_nothing(Rule, WRAP.format(""), files={"net.py": net})


def test_a_name_that_is_bound_again_behind_its_last_use() -> None:
    """What the loss is made of was worked out above the branch, which binds the name again for a line of the log."""
    judge = (
        "class Loss(nn.Module):\n    def __init__(self, score=None):\n        super().__init__()\n"
        "        self.net = nn.Linear(8, 1)\n        self.score = score\n\n"
        "    def forward(self, x, step, weight):\n        real = self.net(x)\n        loss = self.score(real)\n"
        "        if step % 100 == 0:\n            real = real.detach().mean()\n            print(real)\n        return loss\n"
    )
    source = WRAP.format("").replace("Net", "Loss")
    check_nothing(Rule, source, files={"net.py": f"import torch\nfrom torch import nn\n\n\n{judge}"})
    read = judge.replace("        loss = self.score(real)\n", "").replace("return loss", "return self.score(real)")
    assert findings_of(Rule, source, {"net.py": f"import torch\nfrom torch import nn\n\n\n{read}"})


GRID = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, setup, kinds):
        super().__init__()
        self.setup, self.kinds = setup, kinds
        self.layers = nn.ModuleDict()
        for a in range(setup["deep"]):
            for b in range(setup["wide"]):
                self.layers["a" + str(a) + "b" + str(b)] = nn.Linear(4, 4)
        self.heads = nn.ModuleDict({{kind: nn.Linear(4, 4) for kind in kinds}})

    def forward(self, blocks, gone, which):
        out = []
        for a in range(self.setup["deep"]):
            for b in range(self.setup["wide"]):
                rows = self.layers["a" + str(a) + "b" + str({index})](blocks[a][b])
                blocks[a + 1][b].held["rows"] = rows
                out.append(rows)
        for kind in self.kinds:
            part = self.heads[{kind}](blocks[0][0])
            part[gone == kind] = torch.zeros_like(part[gone == kind])
            out.append(part)
        return sum(out)
"""


def test_an_index_over_all_that_the_settings_name_leaves_none_out() -> None:
    """A place that the index fills is no source of the index, and rows set to zero are rows that were made."""
    check_nothing(Rule, WRAP.format(""), files={"net.py": GRID.format(index="b", kind="kind")})


@pytest.mark.parametrize(("index", "kind"), [("which", "kind"), ("b", "which"), ("int(gone[b])", "kind")])
def test_an_index_by_what_forward_is_given_may_leave_one_out(index: str, kind: str) -> None:
    found = findings_of(Rule, WRAP.format(""), {"net.py": GRID.format(index=index, kind=kind)})
    assert found and "takes no part in steps" in found[0].message


DECODER = """\
import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.inlet = nn.Linear(4, 8)
        self.cell = nn.Linear(8, 4)

    def forward(self, x, tokens):
        frames, step = [], self.inlet(x[0])
        while len(frames) < x.size(0) - 1:
            frame = self.cell(step)
            frames.append(frame)
            if self.rate < random.random():
                step = {one}
            else:
                step = self.inlet(x[len(frames)])
        return torch.stack(frames)
"""


def test_a_number_that_picks_the_next_input_leaves_nothing_out() -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": DECODER.format(one="self.inlet(frame)")})


def test_a_number_that_decides_whether_the_loop_calls_a_module() -> None:
    extra = DECODER.replace("        self.cell =", "        self.other = nn.Linear(4, 8)\n        self.cell =")
    counted = extra.replace("while len(frames) < x.size(0) - 1:", "for at in range(x.size(0) - 1):")
    for source in (extra, counted):
        found = findings_of(Rule, WRAP.format(""), {"net.py": source.format(one="self.other(frame)")})
        assert found and "other of Net takes no part in steps that `self.rate < random.random()` decides" in found[0].message
        always = source.replace("            if self.rate < random.random():\n    ", "").replace(
            "            else:\n                step = self.inlet(x[len(frames)])\n", "")  # fmt: skip
        check_nothing(Rule, WRAP.format(""), files={"net.py": always.format(one="self.other(frame)")})


def test_a_flag_that_an_expression_chooses_is_left_to_it() -> None:
    for written in ("True if args.several else False", "False if args.one else True"):
        found = check_told(Rule, WRAP.format(f", find_unused_parameters={written}"), reason="left to the expression",
                           files={"net.py": RANDOM})  # fmt: skip
        assert f"find_unused_parameters={written} decides" in found.message
    flag = "flag = True if args.several else False\nmodel = DDP(Net(), find_unused_parameters=flag)"
    named = WRAP.replace("model = DDP(Net(){})", flag)
    check_told(Rule, named, reason="left to the expression", files={"net.py": RANDOM})


def test_lightning_before_it_first_switched_the_flag_off() -> None:
    pins = {"lit.py": LIT, "requirements.txt": "pytorch-lightning==1.0.3\n"}
    check_nothing(Rule, trainer("    trainer = pl.Trainer(gpus=2)\n"), files=pins)
    check_nothing(Rule, trainer('    trainer = pl.Trainer(gpus=2, accelerator="ddp")\n'), files=pins)
    later = {**pins, "requirements.txt": "pytorch-lightning==1.2.1\n"}
    start = trainer("    trainer = pl.Trainer(gpus=2)\n")
    found = check_told(Rule, start, reason="DDPPlugin(find_unused_parameters=True)", files=later)
    assert "DDPStrategy" not in (found.reason or "")


def test_what_no_step_uses_is_named_before_what_an_index_leaves_out() -> None:
    spare = "self.text = nn.Linear(4, 8)\n        self.spare = nn.Linear(2, 2)"
    net = NET.format(test="tokens.any()").replace("self.text = nn.Linear(4, 8)", spare)
    (found,) = check_transformed(
        Rule, WRAP.format(""), WRAP.format(", find_unused_parameters=True"), files={"net.py": net}, unsafe=True
    )
    assert "spare of Net never reaches the loss: with the flag off" in found.message and "freezing it" in found.reason
    drawn = RANDOM.replace("self.text = nn.Linear(4, 8)", spare)  # sure as well, and the flag is what mends it
    (found,) = findings_of(Rule, WRAP.format(""), {"net.py": drawn})
    assert "text of Net takes no part" in found.message and found.applicability is Applicability.SAFE


WITH_ACCELERATE = """
from accelerate import Accelerator
from net import Whole


def main(args, loader, optimizer):
    accelerator = Accelerator({options})
    model = Whole(args)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x in loader:
        accelerator.backward(model(x).mean())
        optimizer.step()
"""
PARTS = """
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.late = nn.LayerNorm(4)

    def forward(self, x):
        y = self.mix(x)
        z = self.late(y)
        return {out}


class Whole(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(args.layers)])
        {more}
        self.forward = self.plain if args.plain else self.other

    def plain(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def other(self, x):
        return self.plain(x.squeeze(1))
"""


def _parts(out: str = "x + y", more: str = "self.layers = args.layers") -> dict[str, str]:
    return {"net.py": PARTS.format(out=out, more=more)}


def test_a_part_whose_layer_is_run_for_nothing() -> None:
    found = check_told(Rule, WITH_ACCELERATE.format(options=""), reason="DistributedDataParallelKwargs", files=_parts())
    assert "late of Block never reaches the loss: with the flag off DDP stops in the second step" in found.message
    wrap = WRAP.replace("Net()", "Whole(args)").replace("import Net", "import Whole")
    on = wrap.format(", find_unused_parameters=True")
    (found,) = check_transformed(Rule, wrap.format(""), on, files=_parts(), unsafe=True)
    assert "late of Block never reaches the loss" in found.message and "freezing it" in found.reason


def test_what_a_program_that_trains_nothing_reads() -> None:
    looks = "from net import Whole\n\n\nif __name__ == '__main__':\n    print(Whole(None).blocks[0].late.weight)\n"
    check_told(Rule, WITH_ACCELERATE.format(options=""), reason="freezing it", files={**_parts(), "look.py": looks})
    used = "def regular(block):\n    return block.late.weight.norm()\n"
    check_nothing(Rule, WITH_ACCELERATE.format(options=""), files={**_parts(), "regular.py": used})


@pytest.mark.parametrize(
    "options",
    [
        "kwargs_handlers=handlers",
        "deepspeed_plugin=args.plugin",
        "fsdp_plugin=args.plugin",
        "**args.options",
    ],
)
def test_an_accelerator_that_may_look_for_them(options: str) -> None:
    check_nothing(Rule, WITH_ACCELERATE.format(options=options), files=_parts())


@pytest.mark.parametrize(
    "files",
    [
        _parts("x + z"),  # it is used
        _parts(more="self.requires_grad_(args.train)"),  # it may be frozen
        _parts(more="self.blocks[0].late = nn.Identity()"),
        _parts(more="delattr(self.blocks[0], 'late')"),
        _parts(more="self.blocks[0].register_forward_hook(print)"),  # its result may be taken out
        _parts("x + self.again(y)\n\n    def again(self, y):\n        return self.late(y)"),
        {**_parts(), "launch.yaml": "distributed_type: DEEPSPEED\n"},
        {"net.py": PARTS.format(out="x + y", more="pass").replace("nn.ModuleList([Block() for _ in range(args.layers)])",
                                                                  "Block() if args.block else nn.Linear(4, 4)")},
    ],
)  # fmt: skip
def test_a_part_of_which_it_is_not_sure(files: dict[str, str]) -> None:
    check_nothing(Rule, WITH_ACCELERATE.format(options=""), files=files)


IN_PLACE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 8)
        self.body = nn.Linear(8, 8)

    def forward(self, x, y):
        best, where = self.gate(y).topk(2, dim=-1)
        masked = torch.zeros(len(x), 8)
        {write}
        return self.body(x) * masked.softmax(-1)
"""


@pytest.mark.parametrize(
    "write", ["masked.scatter_(-1, where, best)", "masked[:, :2].copy_(best)", "masked.index_copy_(1, where[0], best)"]
)
def test_what_is_written_into_a_tensor_in_place_reaches_the_loss(write: str) -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": IN_PLACE.format(write=write)})


def test_what_is_written_nowhere_reaches_no_loss() -> None:
    assert findings_of(Rule, WRAP.format(""), files={"net.py": IN_PLACE.format(write="where.zero_()")})


GRAPH = """\
import torch
from dgl import function as fn
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.edge = nn.Linear(8, 8)
        self.leave = nn.Linear(8, 8)

    def message(self, edges):
        return {{"m": self.edge(edges.src["h"])}}

    def forward(self, graph, x):
        {lines}
        return self.leave(graph.dstdata["out"])
"""


@pytest.mark.parametrize(
    "lines",
    [
        "graph.srcdata['h'] = self.enter(x)\n        graph.update_all(self.message, fn.mean('m', 'out'))",
        "graph.srcdata['h'] = self.edge(self.enter(x))\n        graph.update_all(fn.copy_u('h', 'm'), fn.mean('m', 'out'))",
        "graph.srcdata['h'] = self.enter(x)\n        graph.update_all(lambda e: {'m': self.edge(e.src[0])}, fn.sum('m', 'out'))",
    ],
)
def test_what_a_graph_library_calls_and_keeps_is_not_known(lines: str) -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": GRAPH.format(lines=lines)})


def test_a_layer_that_no_graph_is_handed_reaches_no_loss() -> None:
    assert findings_of(Rule, WRAP.format(""), files={"net.py": GRAPH.format(lines="x = self.edge(x).detach()")})


SHOWN = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, turned=True):
        super().__init__()
        self.turned = turned
        self.turn = nn.Linear(8, 8)
        self.body = nn.Linear(8, 8)

    def forward(self, x, y):
        turn = self.turn(x)
        h = self.body(x){use}
        speed = None
        if x.size(1) > 2:
            speed = turn.norm(dim=-1)
        return {{"out": h, "speed": speed}}
"""
SETTING = "\n        if getattr(self, 'turned', y):\n            h = h * turn"


def test_a_test_that_decides_over_a_shown_number_alone_leaves_nothing_out() -> None:
    check_nothing(Rule, WRAP.format(""), files={"net.py": SHOWN.format(use=SETTING)})


MASKED = "mask = None\n        if self.p{}:\n            drawn = torch.rand(8) < self.p\n            mask = drawn"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        # a tensor of random numbers is never None: whether the text is asked does not change from step to step
        (MASKED.format(""), False),
        (MASKED.format(" > 0 and self.training"), False),
        (MASKED.format(" > random.random()"), True),  # chance decides
    ],
)
def test_a_random_tensor_that_is_asked_for_none(lines: str, said: bool) -> None:
    net = NET.format(test="mask is not None").replace("h = self.body(x)", f"h = self.body(x)\n        {lines}")
    net = net.replace("super().__init__()", "super().__init__()\n        self.p = 0.1")
    found = findings_of(Rule, WRAP.format(""), {"net.py": net})
    assert any(f.applicability is Applicability.SAFE for f in found) is said


RUN_FOR_NOTHING = """import pytorch_lightning as pl
from torch import nn

from parts import odd


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.words = nn.Linear(8, 99)

    def forward(self, x):
        hidden = self.body(x)
        return {"words": self.words(hidden), "hidden": odd(hidden)}


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.language = Language()
        self.head = nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.head(self.language(x)["hidden"]), y)
"""
SCRIPTED = "import torch\n\n\n@torch.jit.script\ndef odd(x):\n    return x * 2\n"
HEADS_OFF = {"lit.py": RUN_FOR_NOTHING, "parts.py": SCRIPTED, "requirements.txt": "pytorch-lightning>=2.1\n"}
ON_DEVICES = trainer("    trainer = pl.Trainer(devices=args.gpus, max_epochs=3)\n")
SLOWLY = """from pytorch_lightning.callbacks import BaseFinetuning


class Slowly(BaseFinetuning):
    def freeze_before_training(self, module):
        for p in module.language.parameters():
            p.requires_grad = False
"""


@pytest.mark.parametrize(
    "devices", ["devices=args.gpus", "devices=-1", 'devices="auto"', "devices=[0, 1]", "devices=1, num_nodes=4"]
)
def test_a_layer_that_no_step_uses_under_a_trainer_that_names_its_devices(devices: str) -> None:
    before = ON_DEVICES.replace("devices=args.gpus", devices)
    on = 'max_epochs=3, strategy="ddp_find_unused_parameters_true"'
    (found,) = check_transformed(Rule, before, before.replace("max_epochs=3", on), files=HEADS_OFF, unsafe=True)
    assert "language.words of Lit never reaches the loss" in found.message


def test_a_layer_that_no_step_uses_beside_a_function_that_is_not_seen() -> None:
    (found,) = findings_of(Rule, ON_DEVICES, {**HEADS_OFF, "parts.py": "from fast import odd\n"})
    assert "language.words of Lit never reaches the loss" in found.message


def test_a_callback_that_a_test_adds_may_freeze_the_layer() -> None:
    files = {**HEADS_OFF, "slowly.py": SLOWLY}
    source = ON_DEVICES.replace("from lit", "from slowly import Slowly\nfrom lit")
    more = "    more = []\n    if args.slow:\n        more.append(Slowly())\n    trainer ="
    tested = source.replace("    trainer =", more).replace("max_epochs=3", "callbacks=more")
    (found,) = findings_of(Rule, tested, files)
    assert "assumes that no Slowly freezes it" in found.reason
    check_nothing(Rule, source.replace("max_epochs=3", "callbacks=[Slowly()]"), files=files)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("devices=args.gpus, ", ""),  # nobody thought of several
        ("devices=args.gpus", "devices=1"),
        ("    trainer.fit", "    for p in lit.parameters():\n        p.requires_grad = False\n    trainer.fit"),
        ("    trainer.fit", "    lit.language.words.requires_grad_(False)\n    trainer.fit"),
        ("    trainer.fit", "    args.language.freeze()\n    trainer.fit"),
        ("from lit", "from peft import get_peft_model\nfrom lit"),
        ("trainer.fit(Lit(), loader)", "trainer.fit(args.model, loader)"),
    ],
)
def test_a_layer_that_may_be_frozen_or_meet_one_device(old: str, new: str) -> None:
    source = ON_DEVICES.replace(old, new)
    assert source != ON_DEVICES
    check_nothing(Rule, source, files=HEADS_OFF)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('(x)["hidden"]', '(x)["words"]'),
        ('self.language(x)["hidden"]', 'self.more(self.language(x))["hidden"]'),  # what that makes of the words is not seen
        ("self.words = nn.Linear(8, 99)", "self.words = nn.Linear(8, 99).requires_grad_(False)"),
        ("self.words = nn.Linear(8, 99)", "self.words = nn.Linear(8, 99) if WIDE else None"),
        ("self.words = nn.Linear(8, 99)", "self.words = nn.Linear(8, 99) if WIDE else nn.Identity()"),
        ("self.words = nn.Linear(8, 99)", "if WIDE:\n            self.words = nn.Sequential(nn.Linear(8, 99))"),
        ("x, y = batch", "x, y = batch\n        self.language.words.requires_grad_(False)"),
    ],
)
def test_a_layer_that_may_take_part(old: str, new: str) -> None:
    assert old in RUN_FOR_NOTHING
    lit = RUN_FOR_NOTHING.replace(old, new).replace("import odd", "import WIDE, odd")
    check_nothing(Rule, ON_DEVICES, files={**HEADS_OFF, "lit.py": lit})


def test_lightning_1_looks_for_unused_layers_by_itself() -> None:
    check_nothing(Rule, ON_DEVICES, files={**HEADS_OFF, "requirements.txt": OLD})
