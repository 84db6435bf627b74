from __future__ import annotations

import pytest

from codemods.metrics.averaged_metric import AveragedMetric
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = """\
import torch
import torch.distributed as dist
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


"""
REDUCE = """\
def reduced(value):
    value = value.clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


"""
SHARED = "DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))"
GATHER = "gather predictions"


def evaluate(*step: str, end: str = "", loader: str = SHARED, name: str = "evaluate", more: str = "") -> str:
    body = "".join(f"        {line}\n" for line in step)
    tail = "".join(f"    {line}\n" for line in end.splitlines())
    return (
        f"{HEAD}{REDUCE}{more}def {name}(model, data, meter, task):\n    seen, guessed = [], []\n    loader = {loader}\n"
        f"    for x, y in loader:\n{body}{tail}    return meter.avg\n"
    )


F1 = "score = torch.tensor(f1_score(y, model(x).argmax(1)))"
TAKES = "meter.update(score.item())"


@pytest.mark.parametrize(
    "step",
    [
        (F1, "dist.all_reduce(score)", TAKES),
        (F1, "score = reduced(score)", TAKES),
        (F1.replace("f1_score", "matthews_corrcoef"), "score = reduced(score)", TAKES),
        ("r, p = pearsonr(y, model(x))", "score = reduced(torch.tensor(r))", TAKES),
    ],
)
def test_a_metric_of_each_batch(step: tuple[str, ...]) -> None:
    found = check_told(AveragedMetric, evaluate(*step), reason=GATHER)
    assert "of each batch over the ranks" in found.message


def test_metrics_in_a_dictionary_of_a_function_of_the_project() -> None:
    more = (
        "def metrics_of(task, guess, y):\n    if task == 'cola':\n        return {'mcc': matthews_corrcoef(y, guess)}\n"
        "    return {'acc': accuracy_score(y, guess)}\n\n\n"
    )
    step = (
        "scores = metrics_of(task, model(x).argmax(1), y)",
        "for k, v in scores.items():",
        "    scores[k] = reduced(torch.tensor(scores[k]))",
        "meter.update(scores)",
    )
    found = check_told(AveragedMetric, evaluate(*step, more=more), reason=GATHER)
    assert "`matthews_corrcoef` of each batch" in found.message
    assert [e.text for e in found.evidence] == ["it is worked out of this rank's own data", "`matthews_corrcoef` is called here"]


def test_the_entry_of_a_dictionary_that_is_no_such_metric() -> None:
    more = "def scores_of(y, guess):\n    return {'f1': f1_score(y, guess), 'acc': accuracy_score(y, guess)}\n\n\n"
    step = ("scores = scores_of(y, model(x).argmax(1))", "meter.update(reduced(torch.tensor(scores['{}'])).item())")
    check_told(AveragedMetric, evaluate(step[0], step[1].format("f1"), more=more), reason=GATHER)
    check_nothing(AveragedMetric, evaluate(step[0], step[1].format("acc"), more=more))


@pytest.mark.parametrize(
    "source",
    [
        evaluate(F1.replace("f1_score", "accuracy_score"), "dist.all_reduce(score)", TAKES),
        evaluate(F1, TAKES),
        evaluate(F1, "dist.all_reduce(score, op=dist.ReduceOp.MAX)", TAKES),
        evaluate(F1, "dist.all_reduce(score)", TAKES, loader="DataLoader(data, 8)"),
        evaluate(F1, "dist.all_reduce(score)", TAKES, name="train"),
        evaluate(F1, "score.backward()", "dist.all_reduce(score)", TAKES),
        evaluate("y, guess = gather(y), gather(model(x))", "score = torch.tensor(f1_score(y, guess))", "dist.all_reduce(score)"),
        evaluate(F1, "loss = model(x).mean()", "dist.all_reduce(loss)", "meter.update(loss.item())"),
        evaluate(F1, "score = other(score)", TAKES, more="def other(value):\n    return value\n\n\n"),
    ],
)
def test_what_is_right_or_not_seen(source: str) -> None:
    check_nothing(AveragedMetric, source)


MODULE = """\
import lightning.pytorch as pl
import torchmetrics
from pycocotools.cocoeval import COCOeval
from sklearn.metrics import f1_score
from torchmetrics.functional import auroc, mean_squared_error


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.f1 = torchmetrics.MetricCollection([torchmetrics.F1Score(task="binary")])
        self.acc = torchmetrics.Accuracy(task="binary")

    def {hook}:
        x, y = batch
        {line}


def main(data):
    pl.Trainer(devices={devices}).fit(Model(), data)
"""


def hook(line: str, name: str = "validation_step(self, batch, batch_idx)", devices: str = "4") -> str:
    return MODULE.format(hook=name, line=line, devices=devices)


LOG = 'self.log("val/f1", f1_score(y, self(x)), sync_dist=True)'


@pytest.mark.parametrize(
    "line",
    [
        LOG,
        'self.log("val/auc", auroc(self(x), y, task="binary"), sync_dist=True)',
        'self.log_dict({"f1": f1_score(y, self(x))}, sync_dist=True)',
        "self.log_dict(self.f1(self(x), y), sync_dist=True)",
    ],
)
def test_a_metric_of_each_batch_that_lightning_averages(line: str) -> None:
    found = check_told(AveragedMetric, hook(line), reason="torchmetrics object")
    assert "of each batch over the ranks" in found.message


def test_boxes_of_one_rank_against_all_of_coco() -> None:
    line = (
        'found = COCOeval(self.truth, self.truth.loadRes(self.seen), "bbox")\n        found.summarize()\n'
        '        self.log("val/ap", found.stats[0], sync_dist=True)'
    )
    found = check_told(AveragedMetric, hook(line, "on_validation_epoch_end(self, batch=())"), reason=GATHER)
    assert "the average precisions of COCOeval of each rank's own share" in found.message


@pytest.mark.parametrize(
    "source",
    [
        hook(LOG.replace(", sync_dist=True", "")),
        hook(LOG.replace("sync_dist=True", "sync_dist=self.many")),
        hook(LOG, "training_step(self, batch, batch_idx)"),
        hook(LOG, devices="1"),
        hook(LOG.replace("sync_dist=True", "sync_dist=True, reduce_fx=max")),
        hook('self.log("val/mse", mean_squared_error(self(x), y), sync_dist=True)'),
        hook('self.log("val/acc", self.acc(self(x), y), sync_dist=True)'),
        hook('self.log("val/f1", f1_score(self.all_gather(y), self.all_gather(self(x))), sync_dist=True)'),
    ],
)
def test_what_lightning_logs_rightly(source: str) -> None:
    check_nothing(AveragedMetric, source)


def test_tests_of_a_repository() -> None:
    check_nothing(AveragedMetric, evaluate(F1, "dist.all_reduce(score)", TAKES), path="tests/test_eval.py")


KEPT = """\
import lightning.pytorch as pl
import torch
from sklearn.metrics import f1_score
from torchmetrics import Accuracy, F1Score
from torchmetrics.classification import BinaryAUROC


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.kept = []
        self.scores = {"acc": Accuracy(task="binary"), "f1": F1Score(task="binary")}

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.kept.append((self(x), y))

    def numbers(self, stage):
        guesses, labels = (torch.cat(part) for part in zip(*self.kept))
        NUMBERS

    def on_validation_epoch_end(self):
        found = self.numbers("val")
        self.log_dict(found, sync_dist=True)
        self.kept.clear()


def main(data):
    pl.Trainer(devices=4).fit(Model(), data)
"""
EACH = (
    "found = {}",
    "for name, score in self.scores.items():",
    '    found[f"{stage}_{name}"] = score(guesses, labels)',
    "return found",
)


def kept(*lines: str) -> str:
    return KEPT.replace("NUMBERS", "\n        ".join(lines))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (EACH, "F1Score"),
        (('return {"f1": self.scores["f1"](guesses, labels)}',), "F1Score"),
        (("area = BinaryAUROC().to(self.device)", 'return {"auc": area(guesses, labels)}'), "BinaryAUROC"),
        (("found = {}", 'found["f1"] = f1_score(labels, guesses)', "return found"), "f1_score"),
    ],
)
def test_a_metric_of_what_the_steps_kept(lines: tuple[str, ...], words: str) -> None:
    found = check_told(AveragedMetric, kept(*lines), reason=GATHER)
    assert f"`{words}` of each rank's own share" in found.message


@pytest.mark.parametrize(
    "source",
    [
        kept('return {"acc": self.scores["acc"](guesses, labels)}'),
        kept("area = BinaryAUROC(dist_sync_on_step=True)", 'return {"auc": area(guesses, labels)}'),
        kept("area = BinaryAUROC()", "area.update(guesses, labels)", 'return {"auc": area.compute()}'),
        kept(*EACH).replace("append((self(x), y))", "append(self.all_gather((self(x), y)))"),
        kept(*EACH).replace("zip(*self.kept)", "zip(*self.all_gather(self.kept))"),
        kept(*EACH).replace("on_validation_epoch_end", "on_train_epoch_end"),
        kept("found = {}", 'found["f1"] = f1_score(labels, guesses)', 'found["loss"] = labels.sum()', "return found").replace(
            "self.log_dict(found,", 'self.log("loss", found["loss"],'
        ),
    ],
)
def test_what_was_gathered_in_the_steps_or_is_put_together(source: str) -> None:
    check_nothing(AveragedMetric, source)


def test_an_object_of_a_loop_by_hand() -> None:
    head = "from torchmetrics.classification import BinaryF1Score\n\n"
    step = ("f1 = BinaryF1Score().cuda()", "score = f1(model(x), y)", "dist.all_reduce(score)", TAKES)
    found = check_told(AveragedMetric, head + evaluate(*step), reason=GATHER)
    assert "`BinaryF1Score` of each batch" in found.message
    check_nothing(AveragedMetric, head + evaluate(step[0], "f1.update(model(x), y)", "score = f1.compute()", *step[2:]))


MAXIMUM = 'self.log("reward/max", y.max(), sync_dist=True)'


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (MAXIMUM, "max"),
        ('self.log("max_reward", torch.max(y).item(), sync_dist=True)', "max"),
        ('low = y.amin()\n        self.log(f"{self.name}-min", low, on_step=True, sync_dist=True)', "min"),
    ],
)
def test_the_largest_of_each_rank(line: str, word: str) -> None:
    source = "import torch\n" + hook(line, "training_step(self, batch, batch_idx)")
    check_transformed(
        AveragedMetric, source, source.replace("sync_dist=True)", f'sync_dist=True, reduce_fx="{word}")'), unsafe=True
    )


@pytest.mark.parametrize(
    "line",
    [
        MAXIMUM.replace(", sync_dist=True", ""),
        MAXIMUM.replace("sync_dist=True", 'sync_dist=True, reduce_fx="max"'),
        MAXIMUM.replace("reward/max", "reward"),
        MAXIMUM.replace("y.max()", "y.mean()"),
        MAXIMUM.replace("y.max()", "y.max(dim=1).values.mean()"),
        MAXIMUM.replace("y.max()", "max(y, x)"),
        MAXIMUM.replace("reward/max", "reward/min"),
    ],
)
def test_numbers_that_are_no_extremes_by_their_key_and_value(line: str) -> None:
    check_nothing(AveragedMetric, hook(line, "training_step(self, batch, batch_idx)"))
    check_nothing(AveragedMetric, hook(MAXIMUM, "training_step(self, batch, batch_idx)", devices="1"))
