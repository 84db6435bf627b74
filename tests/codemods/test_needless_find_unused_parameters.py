"""DDP001: every spelling of the flag, what proves it needless, and every refusal."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from codemods.api.findings import Applicability, Finding
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters as Rule
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
"""
DROPS = NET.replace("        return self.head", "        if torch.rand(1) < 0.1:\n            return x\n        return self.head")
UNUSED = NET.replace("self.head(torch.relu(self.body(x)))", "self.body(x)")
LIT = """\
import lightning.pytorch as pl
import torch
from torch import nn


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.body(x), y)
"""
HF_NET = NET.replace("x):", "x, labels=None):").replace(
    "return self.head(torch.relu(self.body(x)))", 'h = self.head(torch.relu(self.body(x)))\n        return {"loss": h.mean()}'
)
RAW = """\
# Off: every parameter of Net takes part in each output (net.py).
# If that changes, TORCH_DISTRIBUTED_DEBUG=INFO names the parameters behind
# "Expected to have finished reduction in the prior iteration". To roll back: True.
"""
OF_LOSS = RAW.replace("takes part in each output", "reaches the loss in every step")
LIGHT = """\
# Off: every parameter of Lit reaches the loss of training_step (lit.py).
# If that changes, p.grad is None in on_after_backward shows the parameters behind
# "parameters that were not used in producing the loss". To roll back:
# {back}.
"""
TWO = {"lit.py": LIT, "requirements.txt": "lightning==2.5.0\n"}


class Asked(Rule):
    TELLS_OPEN = True


def check_open(source: str, *, reason: str, files: Mapping[str, str] | None = None) -> Finding:
    """Nothing is said, because the source leaves it open; what a log or a probe would be told beside."""
    check_nothing(Rule, source, files=files)
    return check_told(Asked, source, files=files, reason=reason)


def script(wrap: str) -> str:
    """A training script at module level round one line (or several) of wrapping."""
    head = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\nfrom net import Net\n\nmodel = Net()\n"
    return f"{head}{wrap}loss = model(torch.zeros(1, 8)).sum()\nloss.backward()\n"


def trainer(body: str) -> str:
    head = "import lightning.pytorch as pl\nfrom lightning.pytorch.strategies import DDPStrategy\n\nfrom lit import Lit\n\n\n"
    return f"{head}def main(args, loader):\n{body}    trainer.fit(Lit(), loader)\n"


def hugging(body: str, head: str = "from transformers import Trainer, TrainingArguments") -> str:
    return f"{head}\n\nfrom net import Net\n\n\ndef main(data):\n{body}"


def test_the_example_of_the_documentation() -> None:
    sections = Rule.sections()
    code = [sections[s].split("```python\n")[1].split("```")[0] for s in ("Example", "Use instead")]
    check_transformed(Rule, *code)


def test_the_argument_goes_where_leaving_it_out_is_off() -> None:
    before = script("model = DDP(model, find_unused_parameters=True)\n")
    after = script("model = DDP(model)\n")
    found = check_transformed(Rule, before, after, files={"net.py": NET})
    assert "every parameter of Net takes part in what its forward returns" in found[0].message
    assert any(e.text.startswith("head reaches the loss") and e.path == "net.py" for e in found[0].evidence)


def test_one_argument_a_line_gets_the_comment_above_the_argument() -> None:
    before = script("model = DDP(\n    model,\n    device_ids=[0],  # one\n    find_unused_parameters=True,  # slow\n)\n")
    comment = "".join("    " + line + "\n" for line in RAW.splitlines())
    after = script(
        "model = DDP(\n    model,\n    device_ids=[0],  # one\n" + comment + "    find_unused_parameters=False,  # slow\n)\n"
    )
    check_transformed(Rule, before, after, files={"net.py": NET})


@pytest.mark.parametrize("indent", ["  ", "\t"])
def test_indentation_is_kept(indent: str) -> None:
    body = f"def wrap(model):\n{indent}return nn.parallel.DistributedDataParallel(model, find_unused_parameters={{}})\n\n\n"
    head = "from torch import nn\nfrom net import Net\n\n\n"
    tail = "model = wrap(Net().to('cuda'))\nmodel(1).sum().backward()\n"
    found = findings_of(Rule, head + body.format("True") + tail, {"net.py": NET})
    assert [f.applicability for f in found] == [Applicability.SAFE]
    comment = "".join(indent + line + "\n" for line in RAW.splitlines())
    body = body.replace("\n\n\n", "  # slow\n\n\n")  # with a comment of its own the argument stays, and says why
    check_transformed(
        Rule, head + body.format("True") + tail,
        head + body.format("False").replace(indent + "return", comment + indent + "return") + tail, files={"net.py": NET},
    )  # fmt: skip


def test_a_name_and_a_dict() -> None:
    before = script("search = True\nmodel = DDP(model, find_unused_parameters=search)\n")
    check_transformed(Rule, before, before.replace("search = True\n", RAW + "search = False\n"), files={"net.py": NET})
    before = script('options = {"find_unused_parameters": True}\nmodel = DDP(model, **options)\n')
    check_transformed(Rule, before, before.replace("options =", RAW + "options =").replace("True", "False").replace(
        "back: False", "back: True"), files={"net.py": NET})  # fmt: skip
    before = script("options = dict(find_unused_parameters=True)\nmodel = DDP(model, **options)\n")
    check_transformed(
        Rule, before, before.replace("options =", RAW + "options =").replace("=True)", "=False)"), files={"net.py": NET}
    )


def test_a_dict_that_a_function_returns() -> None:
    before = "def options():\n    return {'find_unused_parameters': True}\n\n\n" + script("model = DDP(model, **options())\n")
    comment = "".join("    " + line + "\n" for line in RAW.splitlines())
    after = before.replace("    return {", comment + "    return {").replace(
        "'find_unused_parameters': True", "'find_unused_parameters': False"
    )
    check_transformed(Rule, before, after, files={"net.py": NET})


def test_static_graph_beside_the_flag_is_left_to_another() -> None:
    check_nothing(Rule, script("model = DDP(model, find_unused_parameters=True, static_graph=True)\n"), files={"net.py": NET})


def test_the_name_of_a_lightning_strategy() -> None:
    before = trainer("    trainer = pl.Trainer(devices=2, strategy='ddp_find_unused_parameters_true')\n")
    comment = "".join("    " + line + "\n" for line in LIGHT.format(back="'ddp_find_unused_parameters_true'").splitlines())
    after = trainer(comment + "    trainer = pl.Trainer(devices=2, strategy='ddp')\n")
    check_transformed(Rule, before, after, files=TWO)


def test_a_conditional_strategy_changes_only_its_arm_and_keeps_its_quotes() -> None:
    line = '    strategy = "{}" if args.gpus > 1 else "auto"\n'
    tail = "    trainer = pl.Trainer(strategy=strategy)\n"
    comment = "".join("    " + row + "\n" for row in LIGHT.format(back='"ddp_find_unused_parameters_true"').splitlines())
    check_transformed(
        Rule,
        trainer(line.format("ddp_find_unused_parameters_true") + tail),
        trainer(comment + line.format("ddp") + tail),
        files=TWO,
    )


@pytest.mark.parametrize("name", ["DDPStrategy", "DDPPlugin"])
def test_a_strategy_object(name: str) -> None:
    old = "lightning==2.5.0\n" if name == "DDPStrategy" else "lightning==1.5.0\n"
    before = trainer(f"    trainer = pl.Trainer(strategy={name}(find_unused_parameters=True))\n").replace(
        "DDPStrategy\n", f"{name}\n"
    )
    found = findings_of(Rule, before, {**TWO, "requirements.txt": old})
    assert [f.applicability for f in found] == [Applicability.SAFE]
    if name == "DDPStrategy":  # off by default in Lightning 2
        check_transformed(Rule, before, before.replace("find_unused_parameters=True", ""), files=TWO)
    else:
        assert any("TORCH_DISTRIBUTED_DEBUG" in line for edit in found[0].edits for line in getattr(edit, "lines", ()))
    unpinned = {**TWO, "requirements.txt": "lightning\n"}
    assert all("DropKeyword" not in str(f.edits) for f in findings_of(Rule, before, unpinned))


def test_training_arguments_are_set_to_false_not_left_out() -> None:
    body = "    args = TrainingArguments('out', ddp_find_unused_parameters={})\n    "
    body += "Trainer(Net(), args, train_dataset=data).train()\n"
    comment = "".join("    " + line + "\n" for line in OF_LOSS.splitlines())
    check_transformed(
        Rule,
        hugging(body.format("True")),
        hugging(comment + body.format("False")),
        files={"net.py": HF_NET},
    )


def test_arguments_of_a_subclass_and_a_trainer_of_the_project() -> None:
    head = "from arguments import MyArguments\nfrom transformers import Trainer\n\n\nclass Mine(Trainer):\n    pass"
    body = "    args = MyArguments('out', ddp_find_unused_parameters=True)\n    trainer = Mine(model=Net(), args=args)\n"
    files = {
        "net.py": HF_NET,
        "arguments.py": "from transformers import TrainingArguments\nclass MyArguments(TrainingArguments):\n    pass\n",
    }
    found = findings_of(Rule, hugging(body, head), files)
    assert [f.applicability for f in found] == [Applicability.SAFE]


def test_accelerate_kwargs() -> None:
    source = (
        "from accelerate import Accelerator, DistributedDataParallelKwargs\nfrom net import Net\n\nmodel = Net()\n"
        "handler = DistributedDataParallelKwargs(find_unused_parameters=True)\n"
        "accelerator = Accelerator(kwargs_handlers=[handler])\nmodel, data = accelerator.prepare(model, load())\n"
        "accelerator.backward(model(data))\n"
    )
    check_transformed(Rule, source, source.replace("find_unused_parameters=True", ""), files={"net.py": NET})


def test_twin_scripts_are_judged_each_on_its_own_model() -> None:
    before = script("model = DDP(model, find_unused_parameters=True)\n")
    assert findings_of(Rule, before, {"net.py": NET})[0].fix is not None
    check_nothing(Rule, before, files={"net.py": DROPS})


def test_a_freeze_elsewhere_lowers_the_level() -> None:
    before = script("model = DDP(model, find_unused_parameters=True)\n")
    files = {"net.py": NET, "tune.py": "def freeze(m):\n    for p in m.parameters():\n        p.requires_grad = False\n"}
    found = findings_of(Rule, before, files)
    assert found[0].applicability is Applicability.UNSAFE
    assert "tune.py:3" in found[0].reason


def test_a_loop_that_must_run_lowers_the_level() -> None:
    looped = NET.replace(
        "return self.head(torch.relu(self.body(x)))",
        "for _ in range(self.n):\n            x = self.body(x)\n        return self.head(x)",
    )
    found = findings_of(Rule, script("model = DDP(model, find_unused_parameters=True)\n"), {"net.py": looped})
    assert found[0].applicability is Applicability.UNSAFE
    assert "at least once" in found[0].reason


# Refusals


def test_a_model_that_needs_the_flag_is_left_alone() -> None:
    check_nothing(Rule, script("model = DDP(model, find_unused_parameters=True)\n"), files={"net.py": DROPS})


def test_a_flag_that_is_off_or_absent_is_left_alone() -> None:
    for flag in ("", ", find_unused_parameters=False"):
        check_nothing(Rule, script(f"model = DDP(model{flag})  # find_unused_parameters\n"), files={"net.py": NET})


def test_a_hub_model_is_left_open() -> None:
    body = "    args = TrainingArguments('out', ddp_find_unused_parameters=True)\n    "
    body += "Trainer(AutoModel.from_pretrained('x'), args)\n"
    head = "from transformers import AutoModel, Trainer, TrainingArguments"
    check_open(hugging(body, head), reason="is not part of the project")


def test_a_family_that_drops_layers_is_left_open() -> None:
    body = "    args = TrainingArguments('out', ddp_find_unused_parameters=True)\n    "
    body += "Trainer(Wav2Vec2ForCTC.from_pretrained('x'), args)\n"
    head = "from transformers import Trainer, TrainingArguments, Wav2Vec2ForCTC"
    check_open(hugging(body, head), reason="drop layers at random by default")


def test_a_parameter_that_reaches_no_loss_is_told() -> None:
    told = check_told(
        Rule,
        script("model = DDP(model, find_unused_parameters=True)\n"),
        files={"net.py": UNUSED},
        reason="requires_grad_(False)",
    )
    assert "head" in told.message


def test_an_unknown_function_on_the_way_is_left_open() -> None:
    unknown = "from kornia import warp\n" + NET.replace("torch.relu(", "warp(")
    check_open(script("model = DDP(model, find_unused_parameters=True)\n"), files={"net.py": unknown}, reason="warp")


def test_a_parameter_that_reaches_no_loss_decides_over_what_is_not_known() -> None:
    wrap = script("model = DDP(model, find_unused_parameters=True)\n")
    unknown = "from kornia import warp\n" + UNUSED.replace("self.body(x)", "warp(self.body(x))")
    told = check_open(wrap, files={"net.py": unknown}, reason="whether the flag can go then")
    assert "needed as long as head of Net never reaches the loss" in told.message and "warp" in told.reason
    given = unknown.replace("warp(self.body(x))", "warp(self, x)")
    asked = check_open(wrap, files={"net.py": given}, reason="warp")
    assert "the source does not show whether the model needs it" in asked.message
    made = unknown.replace("        self.head =", "        if depth:\n            self.head =")
    asked = check_open(wrap, files={"net.py": made}, reason="warp")
    assert "the source does not show whether the model needs it" in asked.message


def test_reentrant_checkpointing_is_left_open() -> None:
    source = "from torch.utils.checkpoint import checkpoint\n" + NET.replace(
        "torch.relu(self.body(x))", "checkpoint(self.body, x)"
    )
    check_open(script("model = DDP(model, find_unused_parameters=True)\n"), files={"net.py": source}, reason="reentrant")


def test_a_setting_is_left_open() -> None:
    source = (
        NET.replace("        self.head = nn", "        self.deep = deep\n        self.head = nn")
        .replace("        return", "        if self.deep:\n            x = self.body(x)\n        return")
        .replace("self.head(torch.relu(self.body(x)))", "self.head(x)")
    )
    check_open(script("model = DDP(model, find_unused_parameters=True)\n"), files={"net.py": source}, reason="a setting")


def test_an_argument_of_forward_is_left_open() -> None:
    source = NET.replace("x):", "x, extra=None):").replace(
        "        return self.head(torch.relu(self.body(x)))",
        "        h = self.body(x)\n        if extra is not None:\n            h = h + self.head(extra)\n        return h",
    )
    check_open(
        script("model = DDP(model, find_unused_parameters=True)\n"),
        files={"net.py": source},
        reason="whether head of Net takes part is up to `extra is not None`",
    )


def test_a_method_of_a_model_that_is_handed_in_is_left_open() -> None:
    wrapper = NET.replace("__init__(self):", "__init__(self, inner):")
    wrapper = wrapper.replace("self.body = nn.Linear(8, 8)", "self.inner = inner")
    wrapper = wrapper.replace("self.head(torch.relu(self.body(x)))", "self.head(self.inner.score(x))")
    check_open(
        script("model = DDP(Net(load()), find_unused_parameters=True)\n"),
        files={"net.py": wrapper},
        reason="whether inner of Net takes part is up to `inner.score` (net.py:12)",
    )


def test_several_outputs_are_left_open() -> None:
    source = NET.replace("return self.head(torch.relu(self.body(x)))", "h = self.body(x)\n        return h, self.head(x)")
    check_open(
        script("model = DDP(model, find_unused_parameters=True)\n"), files={"net.py": source}, reason="several outputs"
    )


def test_a_trainer_with_its_own_loss_is_left_open() -> None:
    head = "from transformers import Trainer, TrainingArguments\n\n\nclass Mine(Trainer):\n    "
    head += "def compute_loss(self, model, inputs):\n        return model(**inputs)"
    body = "    args = TrainingArguments('out', ddp_find_unused_parameters=True)\n    Mine(model=Net(), args=args).train()\n"
    check_open(hugging(body, head), files={"net.py": HF_NET}, reason="compute_loss")


def test_manual_optimization_is_left_open() -> None:
    manual = LIT.replace("        self.body", "        self.automatic_optimization = False\n        self.body")
    before = trainer("    trainer = pl.Trainer(strategy='ddp_find_unused_parameters_true')\n")
    check_open(before, files={**TWO, "lit.py": manual}, reason="optimises by hand")


def test_an_expression_is_left_to_decide_and_told() -> None:
    source = script("model = DDP(model, find_unused_parameters=args.search)\n")
    check_told(Rule, source, files={"net.py": NET}, reason="left to the expression")
    check_nothing(Rule, source, files={"net.py": DROPS})
    check_nothing(Rule, script("model = DDP(load(), find_unused_parameters=args.search)\n"))


def test_a_name_that_is_read_twice_is_left_alone() -> None:
    wrap = "search = True\nmodel = DDP(model, find_unused_parameters=search)\nother = DDP(Net(), find_unused_parameters=search)\n"
    check_told(Rule, script(wrap), files={"net.py": NET}, reason="left to the expression")


def test_a_dict_that_nothing_in_the_file_takes_is_left_open() -> None:
    source = "class Task:\n    def ddp_kwargs(self):\n        return {'find_unused_parameters': True}\n"
    check_open(source, reason="what takes this value is not seen")


def test_a_strategy_in_a_config_file_is_left_open() -> None:
    source = "from lightning.pytorch.strategies import DDPStrategy\n\n"
    source += "trainer = dict(strategy=DDPStrategy(find_unused_parameters=True))\n"
    check_open(source, reason="the Trainer that takes this strategy is not seen")


def test_a_dict_in_a_test_file_is_left_alone() -> None:
    check_nothing(Rule, "assert options() == {'find_unused_parameters': True}\n", path="tests/test_options.py")


def test_a_model_changed_after_it_is_made_is_left_open() -> None:
    wrap = "model.head = torch.nn.Linear(8, 3)\nmodel = DDP(model, find_unused_parameters=True)\n"
    check_open(script(wrap), files={"net.py": NET}, reason="changes the model")


COPY = NET.replace("import torch\n", "import copy\nimport torch\n", 1)
SELF = "        self.head = nn.Linear(8, 2)\n"


@pytest.mark.parametrize("copied", ["copy.deepcopy(self.body)", "nn.ModuleList([copy.deepcopy(self.body) for _ in range(2)])"])
def test_an_average_copied_from_a_used_module_has_parameters_of_its_own(copied: str) -> None:
    net = COPY.replace(SELF, f"{SELF}        self.average = {copied}\n")
    source = script("model = DDP(model, find_unused_parameters=True)\n")
    check_told(Rule, source, files={"net.py": net}, reason="average")


@pytest.mark.parametrize(
    "more",
    [
        "        self.average = copy.deepcopy(self.body).requires_grad_(False)\n",
        "        self.average = copy.deepcopy(self.body)\n        self.average.requires_grad_(False)\n",
        "        self.size = 8\n        self.first_size = copy.deepcopy(self.size)\n",
    ],
)
def test_a_frozen_copy_and_a_copied_number_need_no_gradient(more: str) -> None:
    source = script("model = DDP(model, find_unused_parameters=True)\n")
    found = findings_of(Rule, source, {"net.py": COPY.replace(SELF, SELF + more)})
    assert [f.applicability for f in found] == [Applicability.SAFE]


def test_a_copy_that_is_used_like_its_original_reaches_the_loss() -> None:
    net = COPY.replace(SELF, f"{SELF}        self.second = copy.deepcopy(self.body)\n")
    net = net.replace("torch.relu(self.body(x))", "torch.relu(self.second(self.body(x)))")
    found = findings_of(Rule, script("model = DDP(model, find_unused_parameters=True)\n"), {"net.py": net})
    assert [f.applicability for f in found] == [Applicability.SAFE]


def test_a_compiled_or_adapted_model_is_left_open() -> None:
    for change in ("torch.compile(model)", "get_peft_model(model, config)"):
        check_open(
            script(f"model = {change}\nmodel = DDP(model, find_unused_parameters=True)\n"),
            files={"net.py": NET},
            reason="changes the model",
        )


def test_every_finding_is_suppressible() -> None:
    source = script("model = DDP(model, find_unused_parameters=True)  # ddpfix: ignore[DDP001] measured\n")
    check_nothing(Rule, source, files={"net.py": NET})


def test_a_freeze_in_a_folder_of_its_own_does_not_count() -> None:
    source = script("model = DDP(model, find_unused_parameters=True)\n")
    freeze = "def freeze(m):\n    for p in m.parameters():\n        p.requires_grad = False\n"
    found = findings_of(Rule, source, {"a/net.py": NET, "b/tune.py": freeze}, path="a/train.py")
    assert [f.applicability for f in found] == [Applicability.SAFE]


def test_lightnings_finetuning_callback_lowers_the_level() -> None:
    body = "    trainer = pl.Trainer(strategy='ddp_find_unused_parameters_true', callbacks=[pl.callbacks.BackboneFinetuning()])\n"
    found = findings_of(Rule, trainer(body), TWO)
    assert [f.applicability for f in found] == [Applicability.UNSAFE]


FLAGGED = "model = DDP(model, find_unused_parameters=True)\n"


@pytest.mark.parametrize("between", ["", "if torch.cuda.is_available():\n    "])
def test_a_model_that_is_wrapped_twice_is_another_defect(between: str) -> None:
    check_nothing(Rule, script(FLAGGED + between + FLAGGED), files={"net.py": NET})


@pytest.mark.parametrize(
    ("wraps", "found"),
    [
        (FLAGGED + "other = Net()\nother = DDP(other, find_unused_parameters=True)\n", 2),
        (FLAGGED + "model = Net()\n" + FLAGGED, 2),
        (FLAGGED + "model = model.module\n" + FLAGGED, 2),
        ("if torch.cuda.is_available():\n    " + FLAGGED + "else:\n    " + FLAGGED, 2),
    ],
)
def test_models_that_are_wrapped_once_each(wraps: str, found: int) -> None:
    assert len(findings_of(Rule, script(wraps), {"net.py": NET})) == found


KEPT = """\
import torch
from net import Net
from torch.nn.parallel import DistributedDataParallel


def main(loader, args):
    net = DistributedDataParallel(Net())
    former = DistributedDataParallel(Net(), find_unused_parameters=True)
    for x, y in loader:
        {line}
        torch.nn.functional.cross_entropy(net(x), y).backward()
    torch.save({{"net": net.state_dict(), "former": former.state_dict()}}, args.out)
    del former
"""


def test_a_wrapper_that_nobody_runs_has_no_steps() -> None:
    check_nothing(Rule, KEPT.format(line="net.train()"), files={"net.py": NET})
    for line in ("x = x + former(x)", "x = args.mix(x, former)"):
        assert findings_of(Rule, KEPT.format(line=line), {"net.py": NET})


SCORES = (
    "import torch\nfrom net import Net\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
    "def score(loader):\n    net = DDP(Net(), find_unused_parameters=True)\n    for x in loader:\n        show(net(x).sum())\n"
)
MAIN_BLOCK = "\n\nif __name__ == '__main__':\n    score(make())\n"
HOME = {"net.py": NET, "steps.py": "def step(loss):\n    loss.backward()\n"}


def test_a_script_that_makes_no_backward_pass_is_left_alone() -> None:
    check_nothing(Rule, SCORES + MAIN_BLOCK, files=HOME)


@pytest.mark.parametrize(
    "source",
    [
        SCORES.replace("show(net(x).sum())", "net(x).sum().backward()") + MAIN_BLOCK,
        SCORES.replace("import torch\n", "import torch\nfrom steps import step\n").replace("show(", "step(") + MAIN_BLOCK,
        SCORES,  # another program may train what this wraps
    ],
)
def test_a_program_that_may_make_one_is_judged(source: str) -> None:
    assert findings_of(Rule, source, files=HOME)
