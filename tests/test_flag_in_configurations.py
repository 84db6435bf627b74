"""DDP001 and DDP002 where the flag stands in a configuration: YAML, dicts in Python, options, fields, the framework's default."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability, Finding
from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters as Missing
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters as Needless
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

LIT = """\
import lightning.pytorch as pl
import torch
from torch import nn


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 2)
        self.text = nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.body(x) + self.text(x)
        return nn.functional.cross_entropy(out, y)
"""
DROPS = LIT.replace("        out = self.body(x) + self.text(x)\n", (
    "        out = self.body(x)\n        if torch.rand(1) < 0.9:\n            out = out + self.text(x)\n"
))  # fmt: skip
PLAIN = """\
import lightning.pytorch as pl
import yaml
from lit import Lit

config = yaml.safe_load(open("config.yaml"))
trainer = pl.Trainer(**config["trainer"])
trainer.fit(Lit(), None)
"""
HYDRA = """\
import hydra


@hydra.main(config_path="conf")
def main(cfg):
    trainer = hydra.utils.instantiate(cfg.trainer)
    trainer.fit(hydra.utils.instantiate(cfg.model))
"""
CLI = """\
from lightning.pytorch.cli import LightningCLI
from lit import Lit

LightningCLI(Lit)
"""
PIN = {"requirements.txt": "lightning>=2.2\n"}
COMMENT = [
    "# Off: every parameter of Lit reaches the loss (lit.py).",
    "# If that changes, p.grad is None in on_after_backward shows the parameters behind",
    '# "parameters that were not used in producing the loss". To roll back:',
    "# {back}.",
]


class Asked(Needless):
    TELLS_OPEN = True


def comment(indent: str, back: str = "ddp_find_unused_parameters_true") -> str:
    return "".join(f"{indent}{line.format(back=back)}\n" for line in COMMENT)


def files(lit: str, script: str = PLAIN, **more: str) -> dict[str, str]:
    return {"lit.py": lit, "train.py": script, **PIN, **{k.replace("__", "/") + ".yaml": v for k, v in more.items()}}


# YAML


@pytest.mark.parametrize("script", [PLAIN, CLI])
def test_a_strategy_in_yaml_is_offered_with_its_comment(script: str) -> None:
    before = "# the run\ntrainer:\n  devices: 2  # two\n  strategy: ddp_find_unused_parameters_true   # why?\n  max_epochs: 3\n"
    after = before.replace("  strategy", comment("  ") + "  strategy").replace("parameters_true   #", "\0").replace(
        "ddp_find_unused_\0", "ddp   #"
    )
    (found,) = check_transformed(Needless, before, after, files=files(LIT, script), path="config.yaml", unsafe=True)
    assert "used with Lit" in found.reason
    assert any(e.path == "lit.py" and "text reaches the loss" in e.text for e in found.evidence)


def test_hydra_names_the_model_in_another_file() -> None:
    before = "defaults:\n- default\nstrategy: 'ddp_find_unused_parameters_true'\ndevices: 2"
    after = before.replace("strategy: 'ddp_find_unused_parameters_true'", comment("") + "strategy: 'ddp'")
    check_transformed(
        Needless, before, after, files=files(LIT, HYDRA, conf__model__lit="_target_: lit.Lit\n"), path="conf/trainer/ddp.yaml",
        unsafe=True,
    )  # fmt: skip


def test_a_strategy_by_its_class() -> None:
    before = (
        "trainer:\n  strategy:\n    class_path: lightning.pytorch.strategies.DDPStrategy\n    init_args:\n"
        "      find_unused_parameters: true\n"
    )
    line = "      find_unused_parameters: "
    after = before.replace(line + "true", comment("      ", "true") + line + "false")
    after = after.replace('loss". To roll back:\n      # true.', 'loss". To roll back: true.')
    check_transformed(Needless, before, after, files=files(LIT), path="config.yaml", unsafe=True)
    flow = "strategy: {_target_: lightning.pytorch.strategies.DDPStrategy, find_unused_parameters: True}\n"
    (found,) = findings_of(Needless, flow, files(LIT), path="config.yaml")
    assert found.applicability is Applicability.UNSAFE


def test_the_flag_that_a_model_needs_is_left_and_a_missing_one_is_offered() -> None:
    on = "trainer:\n  strategy: ddp_find_unused_parameters_true\n"
    off = on.replace("ddp_find_unused_parameters_true", "ddp")
    check_nothing(Needless, on, files=files(DROPS), path="config.yaml")
    (found,) = check_transformed(Missing, off, on, files=files(DROPS), path="config.yaml", unsafe=True)
    assert "text of Lit" in found.message and "torch.rand(1) < 0.9" in found.message
    check_nothing(Missing, off, files=files(LIT), path="config.yaml")


def test_a_module_that_no_step_uses_is_named_with_the_better_way_and_offered_the_flag() -> None:
    dead = LIT.replace(" + self.text(x)", "")
    on = "trainer:\n  strategy: ddp_find_unused_parameters_true\n"
    off = on.replace("ddp_find_unused_parameters_true", "ddp")
    told = check_told(Needless, on, files=files(dead), path="config.yaml", reason="freeze it with requires_grad_(False)")
    assert "needed only because text of Lit never reaches the loss" in told.message
    warped = "from kornia import warp\n" + dead.replace("self.body(x)", "warp(self.body(x))")
    check_nothing(Needless, on, files=files(warped), path="config.yaml")
    open_end = check_told(Asked, on, files=files(warped), path="config.yaml", reason="whether the flag can go then")
    assert "needed as long as text of Lit never reaches the loss" in open_end.message and "warp" in open_end.reason
    (found,) = check_transformed(Missing, off, on, files=files(dead), path="config.yaml", unsafe=True)
    assert "text of Lit never reaches the loss" in found.message and "freezing it" in found.reason
    frozen = dead.replace("self.text = nn.Linear(8, 2)", "self.text = nn.Linear(8, 2)\n        self.text.requires_grad_(False)")
    check_nothing(Missing, off, files=files(frozen), path="config.yaml")
    old = {**files(dead), "requirements.txt": "lightning==1.9.5\n"}
    written = on.replace("_true", "_false")
    check_told(Missing, written, files=old, path="config.yaml", reason="Lightning 1 knows no name for it")


@pytest.mark.parametrize(
    ("text", "lit", "requirements", "reason"),
    [
        ("a: &s ddp_find_unused_parameters_true\ntrainer: {strategy: *s}\nb: {strategy: *s}\n", LIT, "lightning>=2.2", "anchor"),
        ("trainer: {strategy: ddp_find_unused_parameters_true}\n", LIT.replace("self.text(x)", "unknown(self.text(x))"),
         "lightning>=2.2", "gradients is not known"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_needless_one(text: str, lit: str, requirements: str, reason: str) -> None:
    check_told(Asked, text, files={**files(lit), "requirements.txt": requirements}, path="config.yaml", reason=reason)


def test_what_is_told_of_a_missing_one() -> None:
    off = "trainer:\n  strategy: ddp_find_unused_parameters_false\n"
    old = {**files(DROPS), "requirements.txt": "lightning==1.9.5\n"}
    check_told(Missing, off, files=old, path="config.yaml", reason="Lightning 1 knows no name")
    both = files(DROPS, PLAIN.replace("trainer.fit(Lit", "trainer.fit(Whole() if config['whole'] else Lit"))
    both["train.py"] = both["train.py"].replace("from lit import Lit", "from lit import Lit\nfrom whole import Whole")
    both["whole.py"] = LIT.replace("Lit(", "Whole(")
    check_told(Missing, off, files=both, path="config.yaml", reason="Whole may be trained with the same")
    still = "strategy: {_target_: x.DDPStrategy, find_unused_parameters: false, static_graph: true}\n"
    check_told(Missing, still, files=files(DROPS), path="config.yaml", reason="static_graph")


@pytest.mark.parametrize(
    "text",
    [
        "jobs:\n  build:\n    strategy:\n      matrix: {os: [ddp]}\n",
        "strategy: deepspeed_stage_2\n",
        "find_unused_parameters: true\n",
        "strategy: {{ strategy }}\n# ddp_find_unused_parameters_true\n",
        "text: |\n  strategy: ddp_find_unused_parameters_true\n",
        "trainer:\n  # strategy: ddp_find_unused_parameters_true\n  strategy: auto\n",
        "strategy: |\n  ddp_find_unused_parameters_true\n",
        "distributed:\n  find_unused_parameters: false\n",
    ],
)
def test_what_only_looks_like_the_flag(text: str) -> None:
    for rule, lit in ((Needless, LIT), (Missing, DROPS)):
        check_nothing(rule, text, files=files(lit), path="config.yaml")


def test_a_comment_silences_a_value_and_one_that_silences_nothing_is_told() -> None:
    text = "trainer:\n  strategy: ddp_find_unused_parameters_true  # ddpfix: ignore[{}] asked for\n"
    assert findings_of(Needless, text.format("DDP001"), files(LIT), path="config.yaml") == []
    codes = [f.code for f in findings_of(Needless, text.format("DDP001, DDP101"), files(LIT), path="config.yaml")]
    assert codes == []  # DDP101 was not looked for
    (unused,) = findings_of(Needless, text.format("DDP001"), files(DROPS), path="config.yaml")
    assert (unused.code, unused.span.line) == ("DDP000", 2)


def test_lightning_1_has_it_on_by_default() -> None:
    old = {**files(DROPS), "requirements.txt": "lightning==1.9.5\n"}
    check_nothing(Missing, "trainer:\n  strategy: ddp\n", files=old, path="config.yaml")


def test_a_key_that_code_reads_for_its_wrapper() -> None:
    net = as_net(LIT)
    train = """\
    from torch.nn.parallel import DistributedDataParallel as DDP
    from lit import Lit

    def train(cfg, batch):
        model = DDP(Lit(), find_unused_parameters=cfg.ddp.find_unused_parameters)
        model(batch).backward()
    """
    given = {"lit.py": net, "train.py": train}
    (found,) = findings_of(Needless, "ddp:\n  find_unused_parameters: true\n", given, path="config.yaml")
    assert found.applicability is Applicability.UNSAFE and "TORCH_DISTRIBUTED_DEBUG=INFO" in str(found.edits)


# Python


def as_net(lit: str) -> str:
    """The LightningModule as a plain one."""
    return lit.replace("pl.LightningModule", "nn.Module").replace("training_step(self, batch, batch_idx)", "forward(self, batch)")


def raw(*lines: str, drops: bool = False) -> tuple[str, dict[str, str]]:
    source = DROPS if drops else LIT
    net = as_net(source)
    head = "import argparse\nfrom dataclasses import dataclass, field\n\n"
    body = "\n".join(textwrap.dedent(line) for line in lines)
    head += "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom lit import Lit\n"
    return f"{head}\n{body}\nmodel(1).backward()\n", {"lit.py": net}


def written(wrap: str, value: str) -> str:
    """The wrap with the value in the place of the braces that stand for it."""
    for around in ("{})", "= {}\nmodel", ": {}}"):
        wrap = wrap.replace(around, around.replace("{}", value, 1))
    return wrap


def only(rule: type[Needless] | type[Missing], source: tuple[str, dict[str, str]]) -> Finding:
    (found,) = findings_of(rule, *source)
    return found


@pytest.mark.parametrize(
    "wrap",
    [
        "kw = {}\nkw.setdefault('find_unused_parameters', {})\nmodel = DDP(Lit(), **kw)",
        "kw = dict()\nkw.update(find_unused_parameters={})\nmodel = DDP(Lit(), **kw)",
        "kw = dict()\nkw.update({'find_unused_parameters': {}})\nmodel = DDP(Lit(), **kw)",
        "kw = {}\nkw['find_unused_parameters'] = {}\nmodel = DDP(Lit(), **kw)",
        "def wrap(net, **kw):\n    kw.setdefault('find_unused_parameters', {})\n    return DDP(net, **kw)\nmodel = wrap(Lit())",
    ],
)
def test_dicts_filled_by_hand(wrap: str) -> None:
    found = only(Needless, raw(written(wrap, "True")))
    assert found.applicability is Applicability.SAFE, found.reason
    found = only(Missing, raw(written(wrap, "False"), drops=True))
    assert found.applicability is not Applicability.DISPLAY, found.reason


OPTION = """\
parser = argparse.ArgumentParser()
parser.add_argument('--find-unused', type=bool, default={})
args = parser.parse_args()
"""
FIELD = "@dataclass\nclass Config:\n    search: bool = {}\n\n\ncfg = Config()"


@pytest.mark.parametrize(
    ("home", "read"),
    [(OPTION, "args.find_unused"), (FIELD, "cfg.search"), (FIELD.replace("= {}", "= field(default={})"), "cfg.search")],
)
def test_the_default_of_an_option_and_of_a_field(home: str, read: str) -> None:
    wrap = f"model = DDP(Lit(), find_unused_parameters={read})"
    source, given = raw(home.format("True"), wrap)
    found = only(Needless, (source, given))
    assert found.applicability is Applicability.UNSAFE and "gives" in found.reason
    assert found.span.line == next(i for i, line in enumerate(source.splitlines(), 1) if "True" in line)
    found = only(Missing, raw(home.format("False"), wrap, drops=True))
    assert found.applicability is Applicability.UNSAFE and "gives" in found.reason


def test_an_option_in_a_file_of_its_own() -> None:
    options = "def add(parser):\n    parser.add_argument('--find_unused_parameters', default=True)\n"
    source, given = raw("model = DDP(Lit(), find_unused_parameters=args.find_unused_parameters)")
    (found,) = findings_of(Needless, options, {**given, "train.py": source}, path="options.py")
    assert found.applicability is Applicability.UNSAFE and found.path == "options.py"
    assert findings_of(Needless, source, {**given, "options.py": options}) == []


def test_two_options_of_a_name_are_not_told_apart() -> None:
    twice = OPTION.format("True") + "\n" + OPTION.format("False")
    found = only(Needless, raw(twice, "model = DDP(Lit(), find_unused_parameters=args.find_unused)"))
    assert found.applicability is Applicability.DISPLAY and "left to the expression" in found.reason


def test_a_configuration_in_python() -> None:
    source = """\
    from lightning.pytorch.strategies import DDPStrategy

    trainer = dict(
        devices=2,
        strategy=DDPStrategy(find_unused_parameters={}),
    )
    """
    script = PLAIN.replace('yaml.safe_load(open("config.yaml"))', "load('config.py')")
    (found,) = findings_of(Needless, source.replace("{}", "True"), files(LIT, script), path="configs/base.py")
    assert found.applicability is Applicability.UNSAFE and "used with Lit" in found.reason
    check_nothing(Needless, source.replace("{}", "True"), files=files(DROPS, script), path="configs/base.py")
    (found,) = findings_of(Missing, source.replace("{}", "False"), files(DROPS, script), path="configs/base.py")
    assert found.applicability is Applicability.UNSAFE and "used with Lit" in found.reason


def test_values_that_nobody_is_seen_to_take() -> None:
    for line in ("find_unused_parameters = True", "cfg.find_unused_parameters = True", "cfg['find_unused_parameters'] = True",
                 "cfg.setdefault('find_unused_parameters', True)",
                 "model_wrapper_cfg = dict(type='MMDistributedDataParallel', find_unused_parameters=True)"):  # fmt: skip
        check_nothing(Needless, line + "\n")
        check_told(Asked, line + "\n", reason="what takes this value is not seen")


def test_two_wrappers_in_one_function_get_their_own_answers() -> None:
    both = {"whole.py": raw("")[1]["lit.py"].replace("Lit(", "Whole("), "lit.py": raw("", drops=True)[1]["lit.py"]}
    source = """\
    from torch.nn.parallel import DistributedDataParallel as DDP
    from lit import Lit
    from whole import Whole


    def train(batch):
        generator = DDP(Lit(), find_unused_parameters=True)
        critic = DDP(Whole(), find_unused_parameters=True)
        (generator(batch) + critic(batch)).backward()
    """
    (found,) = findings_of(Needless, source, both)
    assert (found.span.line, found.applicability) == (8, Applicability.SAFE)
    (found,) = findings_of(Missing, source.replace("True", "False"), both)
    assert (found.span.line, found.applicability) == (7, Applicability.SAFE)


# Defaults

TRAINER = """\
import pytorch_lightning as pl
from lit import Lit


def main(args):
    strategy = "ddp" if args.gpus > 1 else None
    trainer = pl.Trainer(gpus=args.gpus, strategy=strategy)
    trainer.fit(Lit(), None)
"""


def test_lightning_1_is_told_to_switch_it_off() -> None:
    back = '"ddp"'
    lines = [
        "# Off: every parameter of Lit reaches the loss of training_step (lit.py).",
        "# If that changes, TORCH_DISTRIBUTED_DEBUG=INFO names the parameters behind",
        f'# "Expected to have finished reduction in the prior iteration". To roll back: {back}.',
    ]
    above = "".join(f"    {line}\n" for line in lines)
    after = TRAINER.replace('    strategy = "ddp"', above + '    strategy = "ddp_find_unused_parameters_false"')
    given = {"lit.py": LIT, "requirements.txt": "pytorch-lightning==1.5.10\n"}
    (found,) = check_transformed(Needless, TRAINER, after, files=given)
    assert "on by default in pytorch-lightning ==1.5.10" in found.message
    check_told(Needless, TRAINER, reason="Lightning 2 leaves it off", files={**given, "lit.py": DROPS})
    check_nothing(Needless, TRAINER, files={**given, "requirements.txt": "pytorch-lightning>=1.5\n"})
    check_nothing(Needless, TRAINER, files={**given, "requirements.txt": "pytorch-lightning>=2.0\n"})
    unread = {**given, "lit.py": LIT.replace("self.text(x)", "unknown(self.text(x))")}
    check_nothing(Needless, TRAINER, files=unread)
    check_told(Asked, TRAINER, files=unread, reason="gradients is not known")


def test_a_trainer_from_arguments() -> None:
    source = TRAINER.replace("pl.Trainer(gpus=args.gpus, ", "pl.Trainer.from_argparse_args(args, ")
    (found,) = findings_of(Needless, source, {"lit.py": LIT, "requirements.txt": "pytorch-lightning==1.5.10\n"})
    assert found.applicability is Applicability.SAFE


HF = """\
from transformers import Trainer, TrainingArguments
from net import Net


def main():
    arguments = TrainingArguments("out", logging_steps=10)
    Trainer(Net(), arguments).train()
"""
NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 2)

    def forward(self, x, labels=None):
        return {"loss": self.body(x).mean()}
"""


def test_the_hugging_face_trainer_is_given_false_where_the_model_is_shown() -> None:
    (found,) = findings_of(Needless, HF, {"net.py": NET})
    assert found.applicability is Applicability.SAFE
    assert "left out (on by default in the Hugging Face Trainer)" in found.message
    assert "ddp_find_unused_parameters" in str(found.edits) and "'False'" in str(found.edits)


def test_the_hugging_face_trainer_is_left_alone_elsewhere() -> None:
    check_nothing(Needless, HF.replace("Net()", "load()"))
    check_nothing(Needless, HF, files={"net.py": NET.replace("self.body(x)", "unknown(self.body(x))")})
    check_nothing(Needless, HF, files={"net.py": NET}, path="tests/test_train.py")
    check_nothing(Needless, HF.replace("logging_steps=10", "ddp_find_unused_parameters=False"), files={"net.py": NET})


# What a setting decides


def test_off_for_every_configuration_and_a_module_that_a_setting_uses() -> None:
    net = """\
    from torch import nn


    class Net(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.body = nn.Linear(8, 2)
            self.aux = nn.Linear(8, 2)
            self.weight = weight

        def forward(self, x):
            loss = self.body(x).mean()
            if self.weight > 0:
                loss = loss + self.weight * self.aux(x).mean()
            return loss
    """
    source = """\
    from torch.nn.parallel import DistributedDataParallel as DDP
    from net import Net

    model = DDP(Net(weight), find_unused_parameters=False)
    model(1).backward()
    """
    check_nothing(Missing, source, files={"net.py": net})
    check_nothing(Missing, source.replace(", find_unused_parameters=False", ""), files={"net.py": net})


def test_an_expression_over_a_model_that_needs_the_flag_is_told() -> None:
    source, given = raw("model = DDP(Lit(), find_unused_parameters=args.search)", drops=True)
    check_told(Missing, source, files=given, reason="has to come to True")


def test_what_no_step_uses_is_named_before_what_some_steps_leave_out() -> None:
    off = "trainer:\n  strategy: ddp\n"
    layer = "self.text = nn.Linear(8, 2)\n        self.layer = nn.TransformerDecoderLayer(2, 1)\n"
    kept = DROPS.replace("self.text = nn.Linear(8, 2)\n", f"{layer}        self.decoder = nn.TransformerDecoder(self.layer, 2)\n")
    kept = kept.replace("out = self.body(x)\n", "out = self.decoder(self.body(x), x)\n")
    index = kept.replace("torch.rand(1) < 0.9", "batch_idx > 3")
    for source in (kept, index):
        (found,) = findings_of(Missing, off, files(source), path="config.yaml")
        assert "layer of Lit never reaches the loss; nn.TransformerDecoder works with copies of layer" in found.message
        assert found.applicability is Applicability.UNSAFE and "freezing it" in found.reason
    given = kept.replace("TransformerDecoder(self.layer, 2)", "TransformerDecoder(nn.TransformerDecoderLayer(2, 1), 2)")
    (found,) = findings_of(Missing, off, files(given), path="config.yaml")
    assert "layer of Lit never reaches the loss:" in found.message  # left over, but nobody copies it


def test_a_module_of_data_that_nobody_trains() -> None:
    off = "trainer:\n  strategy: ddp\nmodel:\n  _target_: lit.Lit\ndata:\n  _target_: data.Data\n"
    data = "import lightning.pytorch as pl\n\n\nclass Data(pl.LightningModule):\n    def prepare_data(self):\n        pass\n"
    made = {"train.py": HYDRA, "lit.py": DROPS, "data.py": data, **PIN}
    (found,) = findings_of(Missing, off, made, path="config.yaml")
    assert found.applicability is Applicability.UNSAFE and "Data" not in found.reason
    trains = data + "\n    def training_step(self, batch, i):\n        return self.net(batch).mean()\n"
    (found,) = findings_of(Missing, off, {**made, "data.py": trains}, path="config.yaml")
    assert "Data" in found.reason
