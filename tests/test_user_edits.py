"""LightningModules that optimise by hand: what one backward pass leaves out to another needs the flag."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability, Finding
from codemods.flags.conflicting_static_graph import ConflictingStaticGraph
from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters as Missing
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters as Needless
from ddpfix.testing import check_nothing, check_transformed, findings_of

GAN = """\
import lightning.pytorch as pl
import torch
from other import divergence
from torch import nn


class Gan(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Linear(4, 8)
        self.critic = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))

    def training_step(self, batch, batch_idx):
        x, real = batch
        opt_g, opt_d = self.optimizers()
        fake = self.generator(x)
        d_loss = self.critic(fake.detach()).mean() - self.critic(real).mean()
        self.manual_backward(d_loss)
        opt_d.step()
        g_loss = -self.critic(fake).mean()
        self.manual_backward(g_loss)
        opt_g.step()
"""
TRAIN = """\
import lightning.pytorch as pl
from gan import Gan

trainer = pl.Trainer(devices=2, strategy="{}")
trainer.fit(Gan(), loader)
"""
PIN = "lightning>=2.2\n"


def said(codemod: type[Missing] | type[Needless], strategy: str, gan: str = GAN, pin: str = PIN) -> list[Finding]:
    return list(findings_of(codemod, TRAIN.format(strategy), {"gan.py": gan, "requirements.txt": pin}))


def test_a_pass_that_leaves_the_other_network_out_switches_the_flag_on() -> None:
    files = {"gan.py": GAN, "requirements.txt": PIN}
    after = TRAIN.format("ddp_find_unused_parameters_true")
    (found,) = check_transformed(Missing, TRAIN.format("ddp"), after, files=files, unsafe=True)
    assert "generator of Gan takes no part in the backward pass of `self.manual_backward(d_loss)` (gan.py:19)" in found.message
    assert not said(Needless, "ddp_find_unused_parameters_true")
    yaml = "trainer:\n  strategy: ddp\n"
    script = TRAIN.replace('devices=2, strategy="{}"', "**load('config.yaml')['trainer']")
    (found,) = findings_of(Missing, yaml, {**files, "train.py": script}, path="config.yaml")
    assert found.applicability is Applicability.UNSAFE and "self.manual_backward(d_loss)" in found.message


def test_a_static_graph_does_not_help() -> None:
    source = TRAIN.replace('"{}"', "DDPStrategy(static_graph=True)").replace(
        "from gan", "from lightning.pytorch.strategies import DDPStrategy\nfrom gan"
    )
    (found,) = findings_of(ConflictingStaticGraph, source, {"gan.py": GAN, "requirements.txt": PIN})
    assert "in the backward pass of" in found.message and "silently not averaged" in found.reason and not found.edits


OPEN = {
    "both losses reach both": GAN.replace("fake.detach()", "fake"),
    "one pass": GAN.replace("        self.manual_backward(d_loss)\n", ""),
    "one loss for both": GAN.replace("self.manual_backward(d_loss)", "pass").replace("g_loss = -", "g_loss = d_loss - "),
    "an unknown function": GAN.replace("self.critic(fake.detach()).mean()", "divergence(self, fake)"),
    "a generator made elsewhere": GAN.replace("nn.Linear(4, 8)", "divergence()"),
    "losses by index": GAN.replace("self, batch, batch_idx", "self, batch, batch_idx, optimizer_idx"),
    "a generator that is frozen": GAN.replace("nn.Linear(4, 8)", "nn.Linear(4, 8)\n        self.generator.requires_grad_(False)"),
}


@pytest.mark.parametrize("gan", list(OPEN.values()), ids=list(OPEN))
def test_what_does_not_show_is_never_switched(gan: str) -> None:
    assert not said(Missing, "ddp", gan)
    assert not said(Needless, "ddp_find_unused_parameters_true", gan)


def test_lightning_that_forces_the_flag_on_is_left_alone() -> None:
    source = TRAIN.format("ddp_find_unused_parameters_false").replace("lightning.pytorch", "pytorch_lightning")
    gan = GAN.replace("lightning.pytorch", "pytorch_lightning")
    check_nothing(Missing, source, files={"gan.py": gan, "requirements.txt": "pytorch-lightning==1.5.10\n"})
    (found,) = findings_of(Missing, source, {"gan.py": gan, "requirements.txt": "pytorch-lightning==1.9.5\n"})
    assert found.applicability is Applicability.DISPLAY and "Lightning 1 knows no name for it" in found.reason


def test_a_configuration_for_a_gan_and_another_model_says_which_one_needs_the_flag() -> None:
    config = "from lightning.pytorch.strategies import DDPStrategy\n\n"
    config += "trainer = dict(strategy=DDPStrategy(find_unused_parameters=True))\n"
    script = TRAIN.replace('devices=2, strategy="{}"', "**load('config.py')['trainer']")
    plain = GAN.replace("class Gan", "class Plain").replace("        self.automatic_optimization = False\n", "")
    plain = plain[: plain.index("        opt_g, opt_d")] + "        return self.critic(self.generator(x)).mean()\n"
    second = script.partition("\n")[2].replace("gan import Gan", "plain import Plain").replace("Gan()", "Plain()")
    both = f"{script}\n{second}"
    files = {"gan.py": GAN, "plain.py": plain, "train.py": both, "requirements.txt": PIN}
    (found,) = findings_of(Needless, config, files, path="configs/base.py")
    assert found.applicability is Applicability.DISPLAY and "Gan needs it: generator takes no part" in found.message
    assert "the value depends on the model: for Plain" in found.reason
    check_nothing(Needless, config, files={"gan.py": GAN, "train.py": script, "requirements.txt": PIN}, path="configs/base.py")
