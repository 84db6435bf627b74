"""What a proof says of the fixes themselves: what they brought in, what they took away, and what was never seen."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ddpfix.prove.compare import lines_lost
from ddpfix.prove.launchers import Training
from ddpfix.prove.proof import Bounds, Proof
from ddpfix.prove.ranks import Ended, Outcome
from ddpfix.prove.report import verdict
from ddpfix.prove.seen import Seen, Wrong, look
from tests.proofs.harness import TORCH, forked
from tests.prove.programs import needs_torch, run

WEIGHTS = "the ranks end with other weights"


def seen(*wrong: str | Wrong, outcome: str = "completes", observed: bool = True) -> Seen:
    told = tuple(w if isinstance(w, Wrong) else Wrong(w) for w in wrong)
    return Seen(outcome, outcome, 1.0, 2, (0, 0), wrong=told, observed=observed)


def proof(before: Seen, after: Seen | None, lost: tuple[str, ...] = ()) -> Proof:
    training = Training(("python", "train.py"))
    return Proof(("python", "train.py"), training, Bounds(), "", False, ("DDP203",), "", before, after, lost=lost)


def ended(*lines: tuple[int, str], outcome: Outcome = "completes") -> Ended:
    told = tuple((rank, "stdout", text) for rank, text in lines)
    return Ended(outcome, (), (), 1.0, told)


def test_what_was_fine_before_is_introduced_by_the_fixes() -> None:
    made = proof(seen(), seen(WEIGHTS))
    assert verdict(made) == f"Introduced by the fixes: {WEIGHTS}."
    assert not made.right


def test_what_was_wrong_before_is_still_wrong_and_told_apart() -> None:
    made = proof(seen("logged metrics differ"), seen("logged metrics differ", WEIGHTS))
    assert verdict(made) == f"Introduced by the fixes: {WEIGHTS}; still wrong: logged metrics differ."


def test_a_metric_that_is_left_is_not_introduced_where_another_is_repaired() -> None:
    loss, accuracy = (f"the logged metric {name} differs between the ranks" for name in ("train_loss", "val_acc"))
    assert verdict(proof(seen(loss, accuracy), seen(loss))) == f"After the fixes something is still wrong: {loss}."


def test_another_cause_of_what_was_wrong_is_not_introduced() -> None:
    made = proof(
        seen(Wrong(WEIGHTS, "rank 0 made 3 optimizer steps")), seen(Wrong(WEIGHTS, "their collectives part at number 9"))
    )
    assert verdict(made) == f"After the fixes something is still wrong: {WEIGHTS} (their collectives part at number 9)."


def test_what_follows_a_hang_is_not_introduced() -> None:
    made = proof(seen("hangs", outcome="hang"), seen(WEIGHTS))
    assert verdict(made) == f"After the fixes something is still wrong: {WEIGHTS}."


def test_a_line_that_no_rank_prints_any_more_is_a_loss() -> None:
    before = ended((0, "epoch 1 loss 0.52"), (1, "epoch 1 loss 0.61"), (1, "skipped 3 images"))
    after = ended((0, "epoch 1 loss 0.565"))
    assert lines_lost(before, after) == ("skipped 3 images",)
    made = proof(seen(), seen(), lines_lost(before, after))
    assert verdict(made) == "Introduced by the fixes: no rank prints 'skipped 3 images' any more."
    assert not made.right


def test_a_repetition_and_a_run_that_hung_lose_nothing() -> None:
    twice = ended((0, "start"), (1, "start"))
    assert lines_lost(twice, ended((0, "start"))) == ()
    assert lines_lost(ended((0, "start"), outcome="hang"), ended()) == ()


def test_the_names_of_a_run_are_no_loss() -> None:
    before = ended((0, "saved /tmp/ddpfix-prove-iqri4fkt/w/last.pt, /tmp/tmpq1x_a9bz"), (1, "run 3f2a9c1e7b, 6f1b0c9e-1f2a-4c3d"))
    after = ended((0, "saved /tmp/ddpfix-prove-zc9alpka/w/last.pt, /tmp/tmpw_0bcdef"), (1, "run b81c04e9aa, 0a1b2c3d-9e8f-aaaa"))
    assert lines_lost(before, after) == ()


def test_the_width_of_a_number_is_no_loss() -> None:
    assert lines_lost(ended((0, "loss:   0.52, top1:   0.00")), ended((0, "loss:    nan, top1:  12.50"))) == ()


def test_nothing_observed_is_called_so() -> None:
    blind = seen(observed=False)
    words = "nothing was observed: the ranks issued no collective, wrapped no model and logged no metric"
    assert verdict(proof(blind, None)) == f"ddpfix changes nothing here; {words}."
    assert verdict(proof(blind, blind)) == f"After the fixes {words}."


LOGS = """\
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("train/loss", loss)
        self.log_dict({"train/both": loss}, on_step=True, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("val/of_the_rank", loss, sync_dist=False)
        self.log_dict({"val/loss": loss})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


pl.seed_everything(0)
data = TensorDataset(torch.arange(64.0).reshape(16, 4) / 64)
trainer = pl.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Regressor(), DataLoader(data, batch_size=2), DataLoader(data, batch_size=2))
"""


@pytest.mark.proof
@pytest.mark.torch
@needs_torch
@pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="needs lightning")
def test_a_step_and_what_is_kept_for_each_rank_are_no_disagreement(tmp_path: Path) -> None:
    done = run(tmp_path, LOGS, start=forked(*TORCH, "lightning.pytorch"))
    assert done.outcome == "completes", done.marked()
    assert look(done, tmp_path).wrong == (Wrong("the logged metric val/loss differs between the ranks"),)
