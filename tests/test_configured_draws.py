"""The noise of a model that only a configuration names, under a seed of the script that fits it."""

from __future__ import annotations

import pytest

from codemods.data_loading.same_random_numbers import SameRandomNumbers
from ddpfix.testing import check_nothing, check_told

MAIN = """\
import importlib
import sys

import lightning as L
import yaml


def build(text):
    home, _, name = text.rpartition(".")
    return getattr(importlib.import_module(home), name)()


def main(args):
    L.seed_everything(args.seed)
    net = build(yaml.safe_load(open(args.file))["net"])
    L.Trainer(strategy="ddp", devices=4).fit(net, args.loader)
"""
NET = """\
import lightning as L
import torch


class Waves(L.LightningModule):
    def training_step(self, batch, number):
        return self.score(batch)

    def score(self, x):
        noise = torch.randn_like(x)
        return (self.net(x + noise) - noise).square().mean()
"""
HEIR = "from nets.waves import Waves\n\n\nclass Calm(Waves):\n    {body}\n"
SETTING = "net: nets.waves.Waves\nmodel: {}\n"
REASON = "on_fit_start"


def files(**more: str) -> dict[str, str]:
    return {"nets/__init__.py": "", "nets/waves.py": NET, "conf/long.yaml": SETTING, **more}


def test_a_model_that_a_configuration_names() -> None:
    told = check_told(SameRandomNumbers, MAIN, reason=REASON, files=files())
    assert [e.path for e in told.evidence] == ["nets/waves.py"]
    as_json = {k: v for k, v in files().items() if k != "conf/long.yaml"}
    check_told(SameRandomNumbers, MAIN, reason=REASON, files={**as_json, "conf/a.json": '{"model": {"is": "nets.waves.Waves"}}'})


@pytest.mark.parametrize(
    ("body", "told"), [("depth = 3", True), ("def score(self, x):\n        return self.net(x).mean()", False)]
)
def test_a_model_that_derives_from_the_one_that_draws(body: str, told: bool) -> None:
    more = files(**{"nets/calm.py": HEIR.format(body=body), "conf/long.yaml": SETTING.replace("waves.Waves", "calm.Calm")})
    if told:
        check_told(SameRandomNumbers, MAIN, reason=REASON, files=more)
    else:
        check_nothing(SameRandomNumbers, MAIN, files=more)


@pytest.mark.parametrize(
    "more",
    [
        {"conf/long.yaml": "net: torch.nn.Linear\nmodel: {}\n"},
        {"conf/long.yaml": "net: other.waves.Waves\nmodel: {}\n"},
        {"nets/waves.py": NET + "\n    def on_fit_start(self):\n        torch.manual_seed(3 + self.global_rank)\n"},
        {"nets/waves.py": NET.replace("torch.randn_like(x)", "self.drift")},
        {"nets/waves.py": NET.replace("L.LightningModule", "torch.nn.Module")},
    ],
)
def test_models_that_draw_nothing_alike(more: dict[str, str]) -> None:
    check_nothing(SameRandomNumbers, MAIN, files=files(**more))


def test_a_script_beside_another() -> None:
    second = {"tune.py": MAIN.replace("L.seed_everything(args.seed)", "args.start()")}
    check_nothing(SameRandomNumbers, MAIN, files=files(**second))  # which of the two fits it?
    started = {"README.md": "    python module.py \\\n        --file conf/long.yaml\n    python tune.py\n"}
    check_told(SameRandomNumbers, MAIN, reason=REASON, files=files(**second, **started))
    check_told(SameRandomNumbers, MAIN.replace("args.file", "'conf/long.yaml'"), reason=REASON, files=files(**second))
    other = {"run.sh": "python tune.py --file conf/long.yaml\npython module.py\n"}
    check_nothing(SameRandomNumbers, MAIN, files=files(**second, **other))


def test_a_script_whose_model_is_seen() -> None:
    seen = MAIN.replace("import yaml\n", "import yaml\n\nfrom nets.still import Still\n").replace(".fit(net,", ".fit(Still(),")
    still = "import lightning as L\n\n\nclass Still(L.LightningModule):\n"
    still += "    def training_step(self, x, number):\n        return x.mean()\n"
    check_nothing(SameRandomNumbers, seen, files=files(**{"nets/still.py": still}))
