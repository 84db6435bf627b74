"""What a Trainer gave back is each rank's own, and so is a line about it, unless the metric is reduced."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

MODEL = """\
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def training_step(self, batch, i):
        loss = self(batch).mean()
        self.log("loss", loss, on_step=True{synced})
        return loss

    def test_step(self, batch, i):
        self.log("score", self(batch).mean(){synced})
"""
PROGRAM = """\
import lightning.pytorch as pl
import pandas as pd

from net import Net


def main(loaders, names):
    model = Net()
    trainer = pl.Trainer(devices=2, strategy="ddp")
    rows, table = [], pd.DataFrame()
    for name, loader in zip(names, loaders):
        {answer}
        rows.append({{"name": name, "value": value}})
        table = pd.concat([table, pd.DataFrame([{{"name": name, "value": value}}])])
    if trainer.is_global_zero:
        model.note()
    {shown}


if __name__ == "__main__":
    main(read(), names())
"""
TEST = 'value = trainer.test(model, loader)[0]["score"]'
PREDICT = "value = sum(len(p) * p for p in trainer.predict(model, loader))"
REDUCED = ", sync_dist=True"


def lines(answer: str, shown: str, *, synced: str = "") -> int:
    files = {"net.py": MODEL.format(synced=synced)}
    return len(findings_of(UnguardedPrint, PROGRAM.format(answer=answer, shown=shown), files=files))


@pytest.mark.parametrize("answer", [TEST, TEST.replace("test", "validate"), PREDICT])
@pytest.mark.parametrize("shown", ["print(value)", "print(rows)", "print(table)", "print(f'{table}')"])
def test_an_answer_for_the_rank_s_own_samples(answer: str, shown: str) -> None:
    assert lines(answer, shown) == 0


@pytest.mark.parametrize("shown", ["print(value)", "print(table)"])
def test_a_reduced_metric_is_the_same_everywhere(shown: str) -> None:
    assert lines(TEST, shown, synced=REDUCED) == 1


@pytest.mark.parametrize(("logged", "found"), [("self.score", 1), ("self.score(batch)", 0), ("self.score.compute()", 1)])
def test_a_metric_object_is_reduced_and_what_its_call_gave_is_not(logged: str, found: int) -> None:
    files = {"net.py": MODEL.format(synced="").replace('"score", self(batch).mean()', f'"score", {logged}')}
    assert len(findings_of(UnguardedPrint, PROGRAM.format(answer=TEST, shown="print(value)"), files=files)) == found


@pytest.mark.parametrize("shown", ["print('tested', len(rows))", "print('tested', names)"])
def test_what_tells_nothing_of_the_answers(shown: str) -> None:
    assert lines(TEST, shown) == 1


CALLBACK = """\
import lightning.pytorch as pl


class Slower(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, i):
        loss = trainer.callback_metrics{key}
        if loss < {below}:
            print("the rate is halved")
            self.rate = self.rate / 2
"""


@pytest.mark.parametrize("key", ['["loss_step"]', '.get("loss_step")', '["loss"]'])
def test_a_decision_by_the_rank_s_own_loss(key: str) -> None:
    found = [
        len(findings_of(UnguardedPrint, CALLBACK.format(key=key, below="self.bound"), files={"net.py": MODEL.format(synced=s)}))
        for s in ("", REDUCED)
    ]
    assert found == [0, 1]


def test_a_decision_by_what_all_have() -> None:
    source = CALLBACK.format(key='["loss_step"]', below="1").replace("if loss < 1:", "if trainer.current_epoch > self.bound:")
    assert findings_of(UnguardedPrint, source, files={"net.py": MODEL.format(synced="")})
