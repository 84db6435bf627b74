"""Classes that a registry names: the settings choose among its keys, and what none of them chooses never runs."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

GROW = """\
import lightning.pytorch as pl


class Grow(pl.Callback):
    def on_train_start(self, trainer, module):
        module.net.grow(trainer.current_epoch)
        print("the first stage begins")
"""
REGISTRY = 'callbacks = {"clock": "calls.clock.Clock", "grow": "calls.grow.Grow"}\n'
PROGRAM = """\
import lightning.pytorch as pl
from registry import callbacks
from tools import made


def main(config):
    chosen = [made(callbacks[name], given) for name, given in config.callbacks.items()]
    if config.callbacks.get("grow") is not None:
        config.callbacks.grow.stages = 3
    pl.Trainer(devices=4, callbacks=chosen).fit(made(config.model))


if __name__ == "__main__":
    main(read())
"""
FILES = {"registry.py": REGISTRY, "train.py": PROGRAM, "conf/clock.yaml": "callbacks:\n  clock:\n    every: 10\n"}


def test_a_key_that_no_setting_has() -> None:
    check_nothing(UnguardedPrint, GROW, files=FILES, path="calls/grow.py")
    noted = {**FILES, "conf/clock.yaml": FILES["conf/clock.yaml"] + "  # grow:\n  #   stages: 2\n"}
    check_nothing(UnguardedPrint, GROW, files=noted, path="calls/grow.py")


def test_a_class_that_the_registry_holds_itself() -> None:
    held = 'from calls.grow import Grow\n\ncallbacks = {"clock": 1, "grow": Grow}\n'
    check_nothing(UnguardedPrint, GROW, files={**FILES, "registry.py": held}, path="calls/grow.py")
    chosen = {**FILES, "registry.py": held, "conf/more.yaml": "callbacks:\n  grow:\n    stages: 2\n"}
    assert findings_of(UnguardedPrint, GROW, files=chosen, path="calls/grow.py")


@pytest.mark.parametrize(
    "more",
    [
        {"conf/grow.yaml": "callbacks:\n  grow:\n    stages: 2\n"},
        {"run.sh": "python train.py +callbacks.grow.stages=2\n"},
        {"README.md": "Add `grow` to the callbacks.\n"},
        {"more.py": "chosen = ['grow']\n"},
        {"more.py": "from registry import callbacks\n\nfirst = callbacks['grow']\n"},
        {
            "more.py": "from calls.grow import Grow\nimport lightning as pl\n\npl.Trainer(devices=2, callbacks=[Grow()])\n"
        },
        {"conf/clock.yaml": "callbacks: {}\n"},  # no key is chosen here: the settings stand elsewhere
        {"registry.py": 'def callbacks():\n    return {"clock": "calls.clock.Clock", "grow": "calls.grow.Grow"}\n'},
    ],
)
def test_a_key_that_may_be_chosen(more: dict[str, str]) -> None:
    (found,) = findings_of(UnguardedPrint, GROW, files={**FILES, **more}, path="calls/grow.py")
    assert "every rank prints in Grow.on_train_start" in found.message
