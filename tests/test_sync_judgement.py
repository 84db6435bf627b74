"""What DDP101 refuses or offers under an assumption, each with its reason."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability
from codemods.metrics.logged_batch_value import LoggedBatchValue
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of
from tests.lightning_sources import METRICS, fixed, module, offered, step, told

# What is refused, with its reason


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("if loss > 0:", '    self.log("val/loss", loss)'), "`if loss > 0`"),
        (("for name in y:", '    self.log("val/loss", loss)'), "a loop over y"),
        (("while True:", '    self.log("val/loss", loss)', "    break"), "a loop"),
        (("try:", '    self.log("val/loss", loss)', "except ValueError:", "    pass"), "a `try` block"),
        (("if y.numel() == 0:", "    return", 'self.log("val/loss", loss)'), "the `return` under `if y.numel() == 0`"),
        (("match y:", "    case 1:", '        self.log("val/loss", loss)'), "`match y`"),
        (('[self.log("val/loss", part) for part in loss]',), "a comprehension"),
        (("def inner():", '    self.log("val/loss", loss)', "inner()"), "the inner function inner"),
        (('(lambda: self.log("val/loss", loss))()',), "a lambda"),
        (("with contextlib.suppress(KeyError):", '    self.log("val/loss", loss)'), "`with contextlib.suppress(KeyError)`"),
        (('y.any() and self.log("val/loss", loss)',), "`and` or `or`"),
        (('self.log(f"val/{y}", loss)',), "the key is built from y"),
        (('self.log_dict({f"val/{y}": loss})',), "the key is built from y"),
        (('self.log(f"val/{batch.name}", loss)',), "the key is built from batch.name"),
        (('self.log("val/{}".format(y), loss)',), "the key is built from y"),
        (('self.log("val/" + y.name.lower(), loss)',), "the key is built from y.name"),
        (('self.log("val/" + pick(y), loss)',), "the key is built from pick(y)"),
        (('self.log(self.names[y], loss)',), "the key is built from y"),
        (('self.log(f"val/loss_{self.global_rank}", loss)',), "the key is built from self.global_rank"),
        (("yield x", 'self.log("val/loss", loss)'), "the generator validation_step"),
        (('self.log("val/loss", loss, **options)',), "unpacked collection"),
        (('self.log("val/loss", loss, True)',), "given by position"),
        (('self.log("val/loss", torch.tensor(loss.item()))',), "NCCL cannot reduce a CPU tensor"),
        (('self.log("val/loss", loss.cpu())',), "log it as a float, with sync_dist=True"),
        (('self.log("val/loss", loss, reduce_fx=torch.median)',), "reduce_fx=torch.median"),
    ],
)
def test_a_rank_may_not_come_here_or_log_another_key(lines: tuple[str, ...], reason: str) -> None:
    told(*lines, reason=reason)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("cer = torchmetrics.text.CharErrorRate()", 'self.log("val/cer", cer(texts, words))'), "never moved to the device"),
        (('self.log("val/cer", torchmetrics.text.CharErrorRate()(texts, words))',), "never moved to the device"),
        (('self.log("val/wer", torchmetrics.functional.text.word_error_rate(texts, words))',), "of texts, on the CPU: NCCL"),
    ],
)
def test_a_metric_that_nobody_moves(lines: tuple[str, ...], reason: str) -> None:
    told("texts, words = x.texts, y.texts", *lines, reason=reason)


@pytest.mark.parametrize(
    "lines",
    [
        ("cer = torchmetrics.text.CharErrorRate()", 'self.log("val/cer", float(cer(x.texts, y.texts)))'),
        ("cer = torchmetrics.text.CharErrorRate()", 'self.log("val/cer", cer(x.texts, y.texts).to(self.device))'),
        ("cer = torchmetrics.text.CharErrorRate()", "value = cer(x.texts, y.texts)", 'self.log("val/cer", value.item())'),
        ('self.log("val/acc", torchmetrics.functional.accuracy(self(x), y, task="binary"))',),
    ],
)
def test_the_value_of_a_local_metric_on_the_device(lines: tuple[str, ...]) -> None:
    fixed(*lines)


def test_a_local_metric_that_is_moved() -> None:
    lines = ("cer = torchmetrics.text.CharErrorRate()", "cer.to(self.device)", 'self.log("val/cer", cer(x.texts, y.texts))')
    offered(step(*lines), "a tensor on the module's device")


def test_a_coroutine() -> None:
    source = step('self.log("val/loss", loss)').replace("    def val", "    async def val")
    check_told(UnsyncedMetric, source, reason="the coroutine validation_step")


def test_an_own_log_of_the_class_or_of_a_subclass() -> None:
    own = "def log(self, name, value):\n    super().log(name, value)\n"
    told('self.log("val/loss", loss)', reason="the class has its own log (Model, module.py:", more=own)
    another = own.replace("super().log(name, value)", "self.rows += [value]")
    check_nothing(UnsyncedMetric, step('self.log("val/loss", loss)', more=another))
    files = {"sub.py": "from module import Model\n\n\nclass Sub(Model):\n    def log(self, name, value):\n        pass\n"}
    check_told(UnsyncedMetric, step('self.log("val/loss", loss)'), reason="(Sub, sub.py:5)", files=files)


def test_what_a_metric_returned_for_the_batch() -> None:
    told("scores = self.val_metrics(self(x), y)", "self.log_dict(scores)", reason="what the metric returned", more=METRICS)
    for lines in (('self.log("acc", self.acc(self(x), y))',), ("value = self.acc(self(x), y)", 'self.log("a", value)')):
        check_nothing(UnsyncedMetric, step(*lines, more=METRICS))  # DDP104 logs the object
        assert findings_of(LoggedBatchValue, step(*lines, more=METRICS))


def test_numbers_that_are_read_back_from_the_trainer() -> None:
    """The best so far of another key is as good as that key, which is judged by itself."""
    source = """
        def __init__(self):
            super().__init__()
            self.history = {"loss": [], "acc": []}
            self.best = []

        def on_validation_epoch_end(self):
            self.history["loss"].append(self.trainer.callback_metrics["val/loss"])
            self.best.append(self.trainer.callback_metrics.get("val/acc").item())
            self.log("val/loss_best", min(self.history["loss"]))
            self.log("val/acc_best", max(self.best))
        """
    check_nothing(UnsyncedMetric, module(source))
    mixed = source.replace("self.best.append(", "self.best.append(self.seen.mean())\n            self.best.append(")
    check_told(UnsyncedMetric, module(mixed), reason="self.best is filled step by step on each rank")


def test_lists_that_the_steps_fill() -> None:
    source = module("""
        def __init__(self):
            super().__init__()
            self.losses = []

        def validation_step(self, batch, batch_idx):
            self.losses.append(self(batch))

        def on_validation_epoch_end(self):
            self.log("val/worst", torch.stack(self.losses).max())
        """)
    check_transformed(UnsyncedMetric, source, source.replace(".max())", '.max(), sync_dist=True, reduce_fx="max")'))
    check_told(UnsyncedMetric, source.replace(".max()", ".median()"), reason="self.losses is filled step by step")
    offered(source.replace(".max()", ".mean()"), "only if every rank has as many")
    check_told(UnsyncedMetric, source.replace(".max()", ".mean().exp()"), reason="gather it over the ranks")


def test_a_queue_that_the_loss_of_a_step_looks_at() -> None:
    more = "def __init__(self):\n    super().__init__()\n    self.queue = []\n\n"
    more += "def training_step(self, batch, batch_idx):\n    self.queue.append(batch)\n"
    offered(step('self.log("val/loss", self.criterion(self(x), self.queue))', more=more), "the value of this batch: self.queue")


def test_numbers_that_the_steps_add_up() -> None:
    source = module("""
        def __init__(self):
            super().__init__()
            self.right = 0

        def validation_step(self, batch, batch_idx):
            self.right += (self(batch[0]) == batch[1]).sum()

        def on_validation_epoch_end(self):
            self.log("val/right", self.right)
        """)
    check_told(UnsyncedMetric, source, reason="self.right is worked on step by step")


def test_a_helper_that_works_on_a_list_of_the_steps() -> None:
    files = {"means.py": "import torch\n\n\ndef worst(values):\n    return torch.stack(values).max()\n"}
    source = module("""
        def __init__(self):
            super().__init__()
            self.losses = []

        def validation_step(self, batch, batch_idx):
            self.losses.append(self(batch))

        def on_validation_epoch_end(self):
            self.log("val/worst", worst(self.losses))
        """).replace("import torch\n", "import torch\nfrom means import worst\n")
    check_told(UnsyncedMetric, source, reason="filled step by step", files=files)


def test_an_epoch_value_whose_source_is_not_seen() -> None:
    source = module('def on_validation_epoch_end(self):\n    self.log("val/map", self.evaluator.summarize()["map"])\n')
    check_told(UnsyncedMetric, source, reason="need not be the value of all the data")


def test_a_helper_that_nobody_is_seen_to_call_or_that_is_handed_on() -> None:
    source = module("""
        def report(self, batch):
            self.log("val/loss", self(batch).mean())

        def validation_step(self, batch, batch_idx):
            run(self.report)
        """)
    check_told(UnsyncedMetric, source, reason="report is passed on as a value")
    check_told(UnsyncedMetric, source.replace("run(self.report)", "pass"), reason="nobody in the project is seen to call")


def test_nothing_is_said_where_neither_value_nor_place_is_seen() -> None:
    check_nothing(UnsyncedMetric, step("for name in y:", "    self.log(name, unheard_of(name))"))


def test_a_metric_that_reduces_whenever_it_is_called() -> None:
    own = """\
        class Sum(torchmetrics.Metric):
            def __init__(self, dist_sync_on_step=True):
                super().__init__(dist_sync_on_step=dist_sync_on_step)


        """
    more = "    def __init__(self):\n    super().__init__()\n    self.total = Sum()\n".replace("    def", "def", 1)
    source = step('self.log("total", self.total(loss))', more=more)
    check_nothing(UnsyncedMetric, source.replace("class Model", textwrap.dedent(own) + "class Model"))


def test_a_hook_that_a_guard_calls_by_hand() -> None:
    files = {
        "watch.py": """\
            import lightning as L


            class Watch(L.Callback):
                def on_train_end(self, trainer, pl_module):
                    if trainer.is_global_zero:
                        pl_module.validation_step(self.batch, 0)
            """
    }
    check_told(UnsyncedMetric, step('self.log("val/loss", loss)'), reason="watch.py:7 calls it on some ranks only", files=files)


def test_a_helper_called_under_a_guard_or_a_condition() -> None:
    source = module("""
        def report(self, loss):
            self.log("val/loss", loss)

        def validation_step(self, batch, batch_idx):
            loss = self(batch).mean()
            if loss > 1:
                self.report(loss)
        """)
    check_told(UnsyncedMetric, source, reason="`if loss > 1`")
    guarded = source.replace("if loss > 1:", "if self.trainer.is_global_zero:")
    check_told(UnsyncedMetric, guarded, reason="calls it on some ranks only")


def test_a_helper_that_forward_calls_too() -> None:
    source = module("""
        def report(self, x):
            self.log("val/size", x.mean())
            return x

        def forward(self, x):
            return self.report(self.net(x))

        def validation_step(self, batch, batch_idx):
            self.report(self.net(batch))
        """)
    check_told(UnsyncedMetric, source, reason="forward comes here too")


def test_helpers_that_call_each_other() -> None:
    source = module("""
        def one(self, loss):
            self.log("val/loss", loss)
            if loss > 1:
                self.two(loss / 2)

        def two(self, loss):
            self.one(loss)

        def validation_step(self, batch, batch_idx):
            self.one(self(batch).mean())
        """)
    check_told(UnsyncedMetric, source, reason="`if loss > 1`")


# The same key twice: Lightning refuses two calls with different options (measured on 2.6.6)


def test_the_same_key_in_two_branches_is_all_or_nothing() -> None:
    told("if y.any():", '    self.log("val/loss", loss)', "else:", '    self.log("val/loss", 0 * loss)', reason="`if y.any()`")
    source = step('self.log("val/loss", loss)', "if y.any():", '    self.log("val/loss", loss.detach())')
    found = findings_of(UnsyncedMetric, source)
    assert [f.applicability for f in found] == [Applicability.DISPLAY] * 2
    assert "logs the same key in the same hook" in found[0].reason


def test_the_same_key_with_a_constant_elsewhere_in_the_hook() -> None:
    source = step('self.log("val/loss", loss)', 'self.log("val/loss", 0.0)')
    check_told(UnsyncedMetric, source, reason="both need sync_dist=True, or neither")


def test_the_same_key_logged_with_sync_dist_in_another_branch() -> None:
    source = step(
        "if self.trainer.world_size > 1:",
        '    self.log("val/loss", loss, sync_dist=True)',
        "else:",
        '    self.log("val/loss", loss)',
    )
    offered(source, "right if leaving it out here was not meant")


def test_the_same_key_in_the_base_that_super_runs() -> None:
    base = module("""
        def validation_step(self, batch, batch_idx):
            if batch.empty:
                self.log("val/loss", self(batch).mean())
        """)
    child = """\
        from base import Model


        class Child(Model):
            def validation_step(self, batch, batch_idx):
                super().validation_step(batch, batch_idx)
                self.log("val/loss", self(batch).mean())
        """
    check_told(UnsyncedMetric, child, reason="base.py:", files={"base.py": base})
    alone = child.replace("        super().validation_step(batch, batch_idx)\n", "")
    check_transformed(UnsyncedMetric, alone, alone.replace(".mean())", ".mean(), sync_dist=True)"), files={"base.py": base})


def arms(test: str, other: str = "else:", last: str = '    self.log("val/loss", 0.0)') -> str:
    return step(test, '    self.log("val/loss", loss)', other, last)


@pytest.mark.parametrize(
    ("test", "other"),
    [("if self.args.wide and not self.args.deep:", "else:"), ("if self.hparams.loss == 'l1':", "elif self.hparams.deep:")],
)
def test_the_same_key_in_arms_of_a_test_of_the_settings(test: str, other: str) -> None:
    for found in findings_of(UnsyncedMetric, arms(test, other)):
        assert "logs the same key" not in found.reason, found.reason


@pytest.mark.parametrize("test", ["if batch_idx % 2:", "if self.current_epoch > 3:"])
def test_the_same_key_in_arms_that_one_run_may_take_both(test: str) -> None:
    reasons = [f.reason for f in findings_of(UnsyncedMetric, arms(test))]
    assert any("logs the same key" in r for r in reasons), reasons


# Training values


EPOCH_LOSS = 'self.log("train/loss", loss, on_step=False, on_epoch=True)'
TRAIN = "training_step(self, batch, batch_idx)"


def test_training_values() -> None:
    fixed(EPOCH_LOSS, hook=TRAIN)
    check_nothing(UnsyncedMetric, step('self.log("train/loss", loss, on_epoch=True)', hook=TRAIN))  # a curve, drawn in each step
    monitored = {"m.py": "import lightning as L\n\nstop = L.EarlyStopping(monitor='train/loss_epoch')\n"}
    offered(step('self.log("train/loss", loss, on_epoch=True)', hook=TRAIN), "a monitor reads this key", monitored)


@pytest.mark.parametrize("hook", ["training_step(self, batch, batch_idx)", "validation_step(self, batch, batch_idx)"])
def test_a_helper_that_evaluations_call_as_well(hook: str) -> None:
    shared = "\ndef validation_step(self, batch, batch_idx):\n    self.show(batch, 'val')\n" if hook == TRAIN else ""
    helper = "\ndef show(self, batch, stage):\n    self.log(f'{stage}/loss', self(batch).mean(), on_step=True, on_epoch=True)\n"
    source = module(f"def {hook}:\n    self.show(batch, 'a')\n{shared}{helper}")
    assert findings_of(UnsyncedMetric, source)
    assert not findings_of(UnsyncedMetric, module(f"def {TRAIN}:\n    self.show(batch, 'a')\n{helper}"))


@pytest.mark.parametrize("value", ["self.margin_at(self.current_epoch)", "float(self.schedule.frozen)", "compute(self.stage)"])
def test_between_the_epochs_of_a_training(value: str) -> None:
    hook = "on_train_epoch_start(self)"
    check_nothing(UnsyncedMetric, module(f'def {hook}:\n    self.log("train/margin", {value}, on_step=False, on_epoch=True)\n'))


def test_the_losses_of_an_epoch_that_the_steps_have_kept() -> None:
    source = module("""
        def __init__(self):
            super().__init__()
            self.losses = []

        def training_step(self, batch, batch_idx):
            loss = self(batch).mean()
            self.losses.append(loss.item())
            return loss

        def on_train_epoch_end(self):
            self.log("train/loss", sum(self.losses) / len(self.losses))
        """)
    assert findings_of(UnsyncedMetric, source)


def test_an_entry_of_a_collection_of_metrics() -> None:
    start = (
        "def __init__(self):\n    super().__init__()\n"
        "    self.scores = torchmetrics.MetricCollection({'acc': torchmetrics.Accuracy(task='binary')}, prefix='val/')\n"
    )
    update = "    self.scores.acc(self(batch[0]), batch[1])\n"
    used = f"def validation_step(self, batch, batch_idx):\n{update}    self.log('val', self.scores.{{}})\n"
    check_nothing(UnsyncedMetric, module(f"{start}\n{used.format('acc')}"))
    assert findings_of(UnsyncedMetric, module(f"{start}\n{used.format('mean_of(batch)')}"))


def test_training_values_and_a_metric_read_under_a_guard() -> None:
    files = {
        "watch.py": """\
            import lightning as L


            class Watch(L.Callback):
                def on_train_epoch_end(self, trainer, pl_module):
                    if trainer.is_global_zero:
                        print(trainer.callback_metrics["train/loss"])
            """
    }
    check_told(UnsyncedMetric, step(EPOCH_LOSS, hook=TRAIN), reason="callback_metrics is read on some ranks only", files=files)
    before = step('self.log("val/loss", loss)')
    check_transformed(UnsyncedMetric, before, before.replace('/loss", loss)', '/loss", loss, sync_dist=True)'), files=files)


def test_training_values_and_a_metric_read_under_a_guard_while_an_evaluation_runs() -> None:
    """The Trainer's results are those of the evaluation then, in which nothing of the training waits."""
    files = {
        "watch.py": """\
            import lightning as L


            class Watch(L.Callback):
                @L.pytorch.utilities.rank_zero_only
                def on_validation_epoch_end(self, trainer, pl_module):
                    print(trainer.callback_metrics["val/loss"])
            """
    }
    before = step(EPOCH_LOSS, hook=TRAIN)
    check_transformed(UnsyncedMetric, before, before.replace("on_epoch=True)", "on_epoch=True, sync_dist=True)"), files=files)


@pytest.mark.parametrize(
    "call",
    [
        "self.all_gather(self.seen)",
        "self.trainer.strategy.barrier()",
        "self.share()",
        "if self.odd: self.share()",
        "print(self.handed_in.compute())",
    ],
)
def test_training_values_and_a_collective_at_the_end_of_the_epoch(call: str) -> None:
    more = f"\ndef share(self):\n    self.trainer.strategy.barrier()\n\ndef on_train_epoch_end(self):\n    {call}\n"
    told(EPOCH_LOSS, reason="rank 0's progress bar starts the reduction before", hook=TRAIN, more=more)
    fixed('self.log("val/loss", loss)', more=more)


def test_a_callback_s_epoch_value_and_a_collective_of_the_module() -> None:
    """Lightning's progress bars do not read the metrics there (run on 2.6.6): every rank reduces them behind both hooks."""
    callback = """\
        import lightning as L
        import numpy as np


        class Watch(L.Callback):
            def on_validation_epoch_end(self, trainer, pl_module):
                pl_module.log("val/last", np.mean([1.0]))
        """
    files = {"model.py": module("def on_validation_epoch_end(self):\n    self.all_gather(self.seen)\n")}
    after = callback.replace("[1.0]))", "[1.0]), sync_dist=True)")
    check_transformed(UnsyncedMetric, callback, after, files=files)


def test_an_epoch_end_value_and_a_guarded_read_in_an_epoch_end_hook() -> None:
    source = module("""
        def on_validation_epoch_end(self):
            self.log("val/last", self.losses[-1].item())
            if self.trainer.is_global_zero:
                print(self.trainer.callback_metrics)
        """)
    check_told(UnsyncedMetric, source, reason="callback_metrics is read on some ranks only")


# What is offered under an assumption


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (('self.log("val/loss", unheard_of(loss))',), "right if the value is a number or a tensor on the module's device"),
        (("scores = unheard_of(loss)", "self.log_dict(scores)"), "scores has the same keys, in the same order"),
        (('self.log_dict({"val/loss": loss, **unheard_of(loss)})',), "has the same keys"),
        (('self.log("val/loss", loss, enable_graph=True)',), "enable_graph keeps it in the graph"),
        (("if self.hparams.verbose:", '    self.log("val/loss", loss)'), "`if self.hparams.verbose`"),
        (("for name in self.hparams.names:", '    self.log(f"val/{self.tag}", loss)'), "a loop over self.hparams.names"),
        (("for name in self.hparams.names:", '    self.log(f"val/{name}", loss)'), "a loop over self.hparams.names"),
        (('self.log(f"{self.tag}/loss", loss)',), "right if self.tag is the same on every rank"),
        (('self.log("val/score", self.loss_metric(x))',), "a metric or a function, is not seen"),
        (('self.log("val/right", (y == 1).sum(), reduce_fx="sum")',), "counts this rank's own batch"),
    ],
)
def test_assumptions(lines: tuple[str, ...], reason: str) -> None:
    offered(step(*lines), reason)


def test_an_unsafe_fix_is_made_only_when_asked_for() -> None:
    before = step('self.log("val/loss", loss.cpu())')
    pins = {"requirements.txt": "lightning==2.0.9\n"}  # it moves the tensor to the device
    after = before.replace(".cpu())", ".cpu(), sync_dist=True)")
    check_transformed(UnsyncedMetric, before, after, files=pins, unsafe=True)


def test_a_base_that_cannot_be_looked_into() -> None:
    source = step('self.log("val/loss", loss)').replace("(pl.LightningModule)", "(Unseen, pl.LightningModule)")
    offered(source, "the base Unseen")


@pytest.mark.parametrize(
    "data",
    [
        "from torch.utils.data import IterableDataset\n\n\nclass Stream(IterableDataset):\n    pass\n",
        "import lightning as L\nfrom torch.utils.data import DistributedSampler\nfrom model import x\n\n"
        "trainer = L.Trainer(use_distributed_sampler=False)\n\n\ndef parts(d):\n    return DistributedSampler(d)\n",
        "import webdataset as wds\n",
        "from datasets import load_dataset\n\ndata = load_dataset('x', streaming=True)\n",
        "from torch.utils.data import DataLoader\n\n\ndef val_dataloader(d):\n    return DataLoader(d, sampler=Own(d))\n",
    ],
)
def test_data_that_ranks_may_get_unevenly(data: str) -> None:
    files = {"data.py": data, "train.py": "import data\nfrom data import Stream\nfrom module import Model\n"}
    offered(step('self.log("val/loss", loss)'), "right if every rank has at least one batch", files)
    told_files = check_told(
        UnsyncedMetric, step('self.log("val/loss", loss, on_step=True, on_epoch=True)'), reason="with on_step=True", files=files
    )
    assert "data.py" in told_files.reason


WHOLE = "import lightning as L\n\ntrainer = L.Trainer(use_distributed_sampler=False)\n"


def test_an_evaluation_of_the_whole_set_on_every_rank() -> None:
    source = step('self.log("val/loss", loss)')
    check_nothing(UnsyncedMetric, source, files={"train.py": WHOLE})
    after = source.replace('/loss", loss)', '/loss", loss, sync_dist=True)')
    check_transformed(UnsyncedMetric, source, after, files={"train.py": "import lightning\n"})


def test_what_fabric_is_told_of_one_loader_says_nothing_of_the_trainer() -> None:
    script = "def run(fabric, loader):\n    return fabric.setup_dataloaders(loader, use_distributed_sampler=False)\n"
    source = step('self.log("val/loss", loss)')
    after = source.replace('/loss", loss)', '/loss", loss, sync_dist=True)')
    check_transformed(UnsyncedMetric, source, after, files={"other/loop.py": script, "train.py": "import lightning\n"})
    check_nothing(UnsyncedMetric, source, files={"other/loop.py": script, "train.py": WHOLE})


ENTRIES = """import torch


class Pair(torch.nn.Module):
    def forward(self, x, factor):
        log = {"val/pair": x.mean(), "val/factor": MADE}
        return x.sum(), log
"""


def test_a_tensor_on_the_cpu_in_a_dict_that_is_not_followed() -> None:
    source = step("self.log_dict(unheard_of(loss)[1])")
    files = {"pair.py": ENTRIES.replace("MADE", "torch.tensor(factor)"), "train.py": "import lightning\n"}
    check_told(UnsyncedMetric, source, reason="NCCL cannot reduce a CPU tensor", files=files)
    for made in ("torch.tensor(factor, device=x.device)", "x.std()"):
        offered(source, "has the same keys", {**files, "pair.py": ENTRIES.replace("MADE", made)})


@pytest.mark.parametrize(
    ("pin", "stays"), [("1.0.8", True), ("1.3.8", True), ("1.7.7", False), ("2.0.9", False), ("2.1.0", True)]
)
def test_a_tensor_on_the_cpu_by_what_the_pinned_lightning_does_with_it(pin: str, stays: bool) -> None:
    pins = {"requirements.txt": f"pytorch-lightning=={pin}\n", "train.py": "import lightning\n"}
    for line, files in (
        ('self.log("val/loss", loss.cpu())', {}),
        ("self.log_dict(unheard_of(loss)[1])", {"pair.py": ENTRIES.replace("MADE", "torch.tensor(factor)")}),
    ):
        if stays:
            check_told(UnsyncedMetric, step(line), reason="NCCL cannot reduce a CPU tensor", files={**pins, **files})
        else:
            offered(step(line), "right if", {**pins, **files})


@pytest.mark.parametrize("value", ["loss.item()", "float(loss)"])
def test_a_number_under_a_lightning_that_reduces_tensors_alone(value: str) -> None:
    source = step(f'self.log("val/loss", {value})')
    check_told(UnsyncedMetric, source, reason="raises on a number", files={"requirements.txt": "pytorch-lightning==1.0.8\n"})
    after = source.replace(f"{value})", f"{value}, sync_dist=True)")
    check_transformed(UnsyncedMetric, source, after, files={"requirements.txt": "pytorch-lightning==1.1.8\n"})


def test_a_stream_that_gives_each_rank_its_part() -> None:
    stream = "from torch.utils.data import IterableDataset\n\n\nclass Stream(IterableDataset):\n    pass\n"
    files = {"train.py": "from data import Stream\nfrom module import Model\n" + WHOLE, "data.py": stream}
    offered(step('self.log("val/loss", loss)'), "right if every rank has at least one batch", files)


def test_an_iterable_data_set_of_another_script_does_not_matter() -> None:
    script = "from torch.utils.data import IterableDataset\n\n\nclass Stream(IterableDataset):\n    pass\n"
    before = step('self.log("val/loss", loss)')
    after = before.replace('/loss", loss)', '/loss", loss, sync_dist=True)')
    check_transformed(UnsyncedMetric, before, after, files={"other/script.py": script})


def test_a_batch_sampler_and_a_value_of_each_batch() -> None:
    loader = "def make(d):\n    return DataLoader(d, batch_sampler=Own(d))\n"
    files = {"data.py": "from torch.utils.data import DataLoader\n\n\n" + loader}
    offered(step('self.log("val/loss", loss, on_step=True, on_epoch=True)'), "reduces in each of them", files)


def test_at_most_two_reasons_are_given() -> None:
    found = offered(step('self.log(f"{self.tag}/loss", unheard_of(loss), reduce_fx="sum")'), "self.tag")
    assert found.reason.count("; ") <= 2


@pytest.mark.parametrize(
    ("devices", "alone"), [("devices=1, num_nodes=1", True), ("devices=2", False), ("devices=1, num_nodes=2", False)]
)
def test_a_test_that_every_program_runs_on_one_device(devices: str, alone: bool) -> None:
    program = (
        "import lightning.pytorch as pl\nfrom module import Model\n\n\ndef made():\n"
        f"    return pl.Trainer({devices})\n\n\ntrainer = made()\ntrainer.test(Model())\n"
    )
    source = step('self.log("test/loss", loss)', hook="test_step(self, batch, batch_idx)")
    assert bool(findings_of(UnsyncedMetric, source, {"evaluate.py": program})) is not alone
    assert findings_of(UnsyncedMetric, step('self.log("val/loss", loss)'), {"evaluate.py": program})


def test_a_score_of_what_was_gathered_above() -> None:
    source = module("""
        def on_validation_epoch_end(self):
            scores = gather(self.scores)
            self.log("val/auc", torch.tensor(np.mean([s["auc"] for s in scores])))
        """)
    check_nothing(UnsyncedMetric, source)
    assert findings_of(UnsyncedMetric, source.replace("gather(self.scores)", "self.scores"))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("sum(o['n'] for o in outputs) / len(outputs)", True),
        ("sum(o['n'] for o in outputs) / (len(outputs) + 1e-8)", True),
        ("2 * outputs[0] * outputs[1] / (outputs[0] + outputs[1])", False),
        ("outputs[0] / (outputs[0] + outputs[1] + 1e-8)", False),
    ],
)
def test_a_ratio_of_sums_is_no_mean(value: str, plain: bool) -> None:
    source = module(f"""
        def test_epoch_end(self, outputs):
            score = {value}
            self.log("test/score", score)
        """)
    if plain:
        offered(source, "only if every rank has as many")
    else:
        check_told(UnsyncedMetric, source, reason="gather it over the ranks")
