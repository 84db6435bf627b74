from __future__ import annotations

import textwrap

import pytest

from codemods.findings import Applicability, Finding
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import contextlib
import lightning.pytorch as pl
import numpy as np
import torch
import torch.nn.functional as F
import torchmetrics


class Model(pl.LightningModule):
"""


def module(body: str) -> str:
    """A LightningModule with these methods."""
    return HEAD + textwrap.indent(textwrap.dedent(body), "    ")


def step(*lines: str, hook: str = "validation_step(self, batch, batch_idx)", more: str = "") -> str:
    """A LightningModule with one hook, whose first lines make a loss; `more` holds other methods."""
    body = "".join(f"    {line}\n" for line in lines)
    return module(f"def {hook}:\n    x, y = batch\n    loss = F.cross_entropy(self(x), y)\n{body}{textwrap.dedent(more)}")


def fixed(*lines: str, **kwargs: str) -> None:
    """The last line's call gets sync_dist=True, safely."""
    before = step(*lines, **kwargs)
    old = lines[-1]
    new = old.rstrip(")") + ")" * (_closing(old) - 1) + ", sync_dist=True)"
    check_transformed(UnsyncedMetric, before, before.replace(old, new))


def _closing(line: str) -> int:
    return len(line) - len(line.rstrip(")"))


def told(*lines: str, reason: str, **kwargs: str) -> Finding:
    return check_told(UnsyncedMetric, step(*lines, **kwargs), reason=reason)


def offered(source: str, reason: str, files: dict[str, str] | None = None) -> Finding:
    """Exactly one finding, unsafe, with this reason."""
    found = findings_of(UnsyncedMetric, source, files)
    assert [f.applicability for f in found] == [Applicability.UNSAFE], [(f.applicability.value, f.reason) for f in found]
    assert reason in found[0].reason, found[0].reason
    return found[0]


def test_example_of_the_page() -> None:
    sections = UnsyncedMetric.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnsyncedMetric, before, after)


# What is fixed, and how it is written


@pytest.mark.parametrize(
    "call",
    [
        'self.log("val/loss", loss)',
        'self.log("val/loss", loss, prog_bar=True)',
        'self.log(name="val/loss", value=loss)',
        'self.log("val/loss", loss.detach().mean())',
        'self.log("val/loss", loss.item())',
        'self.log("val/loss", float(loss), batch_size=len(y))',
        'self.log("val/loss", loss, on_step=True, on_epoch=True)',
        'self.log("val/loss", loss, reduce_fx="max")',
        'self.log("val/loss", loss, reduce_fx=torch.min)',
        'self.log("val/acc", (self(x).argmax(1) == y).float().mean())',
        'self.log("val/mae", np.abs(np.asarray([1.0]) - loss.item()).mean())',
        'self.log_dict({"val/loss": loss, "val/two": 2 * loss})',
        'self.log("val/acc", torchmetrics.functional.accuracy(self(x), y, task="binary"))',
    ],
)
def test_every_spelling(call: str) -> None:
    fixed(call)


def test_test_step_and_epoch_hooks_and_times() -> None:
    fixed('self.log("test/loss", loss)', hook="test_step(self, batch, batch_idx)")
    source = module("""
        def on_validation_epoch_start(self):
            self.started = time.time()

        def on_validation_epoch_end(self):
            self.log("val_time", time.time() - self.started)
        """).replace("import torch\n", "import time\nimport torch\n")
    check_transformed(UnsyncedMetric, source, source.replace("self.started)", "self.started, sync_dist=True)"))


def test_a_call_over_several_lines_keeps_its_comments() -> None:
    before = """\
        import pytorch_lightning as ptl
        import torch.nn.functional as F


        class Model(ptl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = F.mse_loss(self(batch[0]), batch[1])
                self.log(
                    "val/loss",  # shown
                    loss,
                    prog_bar=True,  # in the bar
                )
        """
    after = """\
        import pytorch_lightning as ptl
        import torch.nn.functional as F


        class Model(ptl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = F.mse_loss(self(batch[0]), batch[1])
                self.log(
                    "val/loss",  # shown
                    loss,
                    prog_bar=True,  # in the bar
                    sync_dist=True,
                )
        """
    check_transformed(UnsyncedMetric, before, after)


def test_two_spaces_and_tabs() -> None:
    for indent in ("  ", "\t"):
        before = step('self.log("val/loss", loss)').replace("    ", indent)
        check_transformed(UnsyncedMetric, before, before.replace("loss)\n", "loss, sync_dist=True)\n"))


def test_a_log_whose_value_holds_a_call_and_two_logs_in_a_row() -> None:
    before = step('self.log("a", torch.mean(self(x)))', 'self.log("b", loss)')
    after = before.replace("self(x)))", "self(x)), sync_dist=True)").replace('"b", loss)', '"b", loss, sync_dist=True)')
    check_transformed(UnsyncedMetric, before, after)


def test_a_decorated_hook() -> None:
    before = step('self.log("val/loss", loss)').replace("    def ", "    @torch.no_grad()\n    def ")
    check_transformed(UnsyncedMetric, before, before.replace('loss)\n', 'loss, sync_dist=True)\n'))
    offered(before.replace("@torch.no_grad()", "@sometimes"), "@sometimes")


def test_a_base_class_behind_a_package_and_a_mixin() -> None:
    files = {
        "core/__init__.py": "from .base import Base\n",
        "core/base.py": "import lightning as L\n\n\nclass Base(L.LightningModule):\n    pass\n",
        "mix.py": "class Helpers:\n    pass\n",
    }
    before = """\
        from core import Base
        from mix import Helpers


        class Model(Helpers, Base):
            def validation_step(self, batch, batch_idx):
                self.log("val/loss", self(batch).mean())
        """
    check_transformed(UnsyncedMetric, before, before.replace(".mean())", ".mean(), sync_dist=True)"), files=files)


def test_a_value_from_a_tuple_that_another_file_returns() -> None:
    files = {"losses.py": "def score(model, batch):\n    out = model(batch)\n    return out, out.float().mean()\n"}
    before = """\
        import lightning as L
        from losses import score


        class Model(L.LightningModule):
            def validation_step(self, batch, batch_idx):
                out, mean = score(self, batch)
                self.log("val/mean", mean)
        """
    found = findings_of(UnsyncedMetric, before, files)
    assert [f.applicability for f in found] == [Applicability.UNSAFE]
    files["losses.py"] = "def score(out, y):\n    return out, (out - y).abs().mean()\n"
    before = before.replace("score(self, batch)", "score(self(batch[0]), batch[1])")
    check_transformed(UnsyncedMetric, before, before.replace(", mean)\n", ", mean, sync_dist=True)\n"), files=files)


def test_a_helper_of_validation_with_a_literal_stage() -> None:
    before = module("""
        def _shared_step(self, batch, stage):
            x, y = batch
            loss = F.cross_entropy(self(x), y)
            self.log(f"{stage}/loss", loss)
            return loss

        def validation_step(self, batch, batch_idx):
            self._shared_step(batch, "val")

        def test_step(self, batch, batch_idx):
            return self._shared_step(batch, stage="test")
        """)
    check_transformed(UnsyncedMetric, before, before.replace('/loss", loss)', '/loss", loss, sync_dist=True)'))
    shared = before + '\n    def training_step(self, batch, batch_idx):\n        return self._shared_step(batch, "train")\n'
    offered(shared, "at every training step")
    epoch = shared.replace('/loss", loss)', '/loss", loss, on_step=False, on_epoch=True)')
    check_transformed(UnsyncedMetric, epoch, epoch.replace("on_epoch=True)", "on_epoch=True, sync_dist=True)"))


def test_a_branch_that_only_some_callers_take() -> None:
    before = module("""
        def _step(self, batch, train):
            loss = F.mse_loss(self(batch[0]), batch[1])
            if train:
                self.log("train/loss", loss)
            else:
                self.log("val/loss", loss)
            return loss

        def training_step(self, batch, batch_idx):
            return self._step(batch, train=True)

        def validation_step(self, batch, batch_idx):
            self._step(batch, train=False)
        """)
    check_transformed(UnsyncedMetric, before, before.replace('"val/loss", loss)', '"val/loss", loss, sync_dist=True)'))
    named = before.replace("train):", "stage):").replace("if train:", 'if stage == "train":')
    named = named.replace("train=True", '"train"').replace("train=False", '"val"')
    check_transformed(UnsyncedMetric, named, named.replace('"val/loss", loss)', '"val/loss", loss, sync_dist=True)'))


def test_a_value_that_the_callers_hand_to_a_helper() -> None:
    before = module("""
        def report(self, name, value):
            self.log("val/" + name, value)

        def validation_step(self, batch, batch_idx):
            self.report("loss", F.mse_loss(self(batch[0]), batch[1]))
        """)
    check_transformed(UnsyncedMetric, before, before.replace("name, value)\n\n", "name, value, sync_dist=True)\n\n"))
    check_told(UnsyncedMetric, before.replace('"loss", F', "batch.name, F"), reason="built from name")


def test_a_callback() -> None:
    before = """\
        from lightning.pytorch.callbacks import Callback


        class Watch(Callback):
            def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
                pl_module.log("val/out", outputs["loss"])
        """
    check_transformed(UnsyncedMetric, before, before.replace('"])', '"], sync_dist=True)'))
    own = "import lightning as L\n\n\nclass Odd(L.LightningModule):\n    def log(self, name, value):\n        pass\n"
    offered(before, "Odd", {"odd.py": own})


def test_what_lightning_itself_keeps_equal_is_no_condition() -> None:
    before = step("if self.trainer.sanity_checking:", "    return", 'self.log("val/loss", loss)')
    check_transformed(UnsyncedMetric, before, before.replace("loss)\n", "loss, sync_dist=True)\n"))


def test_a_loop_over_literals() -> None:
    before = step('for name in ("a", "b"):', '    self.log(f"val/{name}", loss)')
    check_transformed(UnsyncedMetric, before, before.replace('}", loss)', '}", loss, sync_dist=True)'))


def test_the_monitor_that_decides_is_named() -> None:
    files = {"train.py": "import lightning as L\n\nsave = L.ModelCheckpoint(monitor='val/loss')\n"}
    found = findings_of(UnsyncedMetric, step('self.log("val/loss", loss)'), files)
    assert "ModelCheckpoint(monitor=…) at train.py:3 decides on each rank" in found[0].message
    files = {"conf/callbacks.yaml": "early_stopping:\n  monitor: val/loss  # the key\n"}
    found = findings_of(UnsyncedMetric, step('self.log("val/loss", loss)'), files)
    assert "conf/callbacks.yaml:2" in found[0].message


# Where nothing is said


@pytest.mark.parametrize(
    "lines",
    [
        ('self.log("val/loss", loss, sync_dist=False)',),
        ('self.log("val/loss", loss, sync_dist=True)',),
        ('self.log("val/loss", loss, rank_zero_only=True)',),
        ('self.log("val/loss", loss, on_step=True, on_epoch=False)',),
        ('self.log("lr", self.optimizers().param_groups[0]["lr"])',),
        ('self.log("lr", self.lr_schedulers().get_last_lr()[0])',),
        ('self.log("epoch", float(self.current_epoch))',),
        ('self.log("step", torch.tensor(self.trainer.global_step, dtype=torch.float32))',),
        ('self.log("beta", self.hparams.beta)',),
        ('self.log("one", 1.0)',),
        ('self.log("val/loss", self.all_gather(loss).mean())',),
        ("torch.distributed.all_reduce(loss)", 'self.log("val/loss", loss)'),
        ("loss = self.trainer.strategy.reduce(loss)", 'self.log("val/loss", loss)'),
        ("if self.trainer.is_global_zero:", '    self.log("val/loss", loss)'),
        ("if self.global_rank != 0:", "    return", 'self.log("val/loss", loss)'),
    ],
)
def test_decided_or_equal_or_reduced_values(lines: tuple[str, ...]) -> None:
    check_nothing(UnsyncedMetric, step(*lines))


METRICS = """\
    def __init__(self, weight):
        super().__init__()
        metrics = torchmetrics.MetricCollection([torchmetrics.MeanSquaredError()])
        self.val_metrics = metrics.clone(prefix="val/")
        self.acc = torchmetrics.Accuracy(task="binary")
        self.by_name = torch.nn.ModuleDict({"a": torchmetrics.MeanMetric()})
        self.weight = weight
"""


@pytest.mark.parametrize(
    "lines",
    [
        ('self.log("acc", self.acc)',),
        ("self.log_dict(self.val_metrics)",),
        ('self.log("a", self.by_name["a"])',),
        ('self.log("acc", self.acc.compute())',),
        ("value = self.acc.compute()", 'self.log("acc", value)'),
        ("scores = self.val_metrics.compute()", "self.log_dict(scores)"),
        ('self.log("acc", getattr(self, f"{self.stage}acc"))',),
        ('self.log("weight", self.weight)',),
    ],
)
def test_metric_objects_their_results_and_configuration(lines: tuple[str, ...]) -> None:
    check_nothing(UnsyncedMetric, step(*lines, more=METRICS))


def test_per_step_training_values() -> None:
    check_nothing(UnsyncedMetric, step('self.log("loss", loss)', hook="training_step(self, batch, batch_idx)"))


@pytest.mark.parametrize(
    "base",
    ["logging.Handler", "transformers.Trainer", "object", "torch.nn.Module"],
)
def test_log_of_other_classes(base: str) -> None:
    check_nothing(UnsyncedMetric, step('self.log("val/loss", loss)').replace("pl.LightningModule", base))


def test_places_lightning_does_not_log_from() -> None:
    check_nothing(UnsyncedMetric, module('def __init__(self):\n    self.log("a", compute_it())\n'))
    check_nothing(UnsyncedMetric, module('def on_fit_start(self):\n    self.log("a", compute_it())\n'))


def test_the_repository_s_own_tests() -> None:
    check_nothing(UnsyncedMetric, step('self.log("val/loss", loss)'), path="tests/test_model.py")


def test_rank_guards_of_the_project_and_decorators() -> None:
    check_nothing(
        UnsyncedMetric,
        step('self.log("val/loss", loss)')
        .replace("import torch\n", "import torch\nfrom lightning.pytorch.utilities import rank_zero_only\n")
        .replace("    def val", "    @rank_zero_only\n    def val"),
    )


def test_lightning_before_1_7_reduces_epoch_values_by_itself() -> None:
    source = step('self.log("val/loss", loss)')
    check_nothing(UnsyncedMetric, source, files={"requirements.txt": "pytorch-lightning==1.5.10\n"})
    assert findings_of(UnsyncedMetric, source, {"requirements.txt": "pytorch-lightning>=1.5\n"})
    assert findings_of(UnsyncedMetric, source, {"requirements.txt": "pytorch-lightning==1.2.0\n"})


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
        (('self.log("val/loss", loss, **options)',), "unpacked collection"),
        (('self.log("val/loss", loss, True)',), "given by position"),
        (('self.log("val/loss", loss, reduce_fx=torch.median)',), "reduce_fx=torch.median"),
    ],
)
def test_a_rank_may_not_come_here_or_log_another_key(lines: tuple[str, ...], reason: str) -> None:
    told(*lines, reason=reason)


def test_a_coroutine() -> None:
    source = step('self.log("val/loss", loss)').replace("    def val", "    async def val")
    check_told(UnsyncedMetric, source, reason="the coroutine validation_step")


def test_an_own_log_of_the_class_or_of_a_subclass() -> None:
    own = "def log(self, name, value):\n    pass\n"
    told('self.log("val/loss", loss)', reason="the class has its own log (Model, module.py:", more=own)
    files = {"sub.py": "from module import Model\n\n\nclass Sub(Model):\n    def log(self, name, value):\n        pass\n"}
    check_told(UnsyncedMetric, step('self.log("val/loss", loss)'), reason="(Sub, sub.py:5)", files=files)


def test_what_a_metric_returned_for_the_batch() -> None:
    told('self.log("acc", self.acc(self(x), y))', reason="the value is what the metric returned", more=METRICS)
    told("scores = self.val_metrics(self(x), y)", "self.log_dict(scores)", reason="what the metric returned", more=METRICS)
    told("value = self.acc(self(x), y)", 'self.log("a", value)', reason="what the metric returned", more=METRICS)


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
    check_told(UnsyncedMetric, source, reason="self.losses is filled step by step")
    offered(source.replace(".max()", ".mean()"), "only if every rank has as many")


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


# Training values


EPOCH_LOSS = 'self.log("train/loss", loss, on_step=False, on_epoch=True)'
TRAIN = "training_step(self, batch, batch_idx)"


def test_training_values() -> None:
    fixed(EPOCH_LOSS, hook=TRAIN)
    offered(step('self.log("train/loss", loss, on_epoch=True)', hook=TRAIN), "at every training step")
    monitored = {"m.py": "import lightning as L\n\nstop = L.EarlyStopping(monitor='train/loss_epoch')\n"}
    offered(step('self.log("train/loss", loss, on_epoch=True)', hook=TRAIN), "a monitor reads this key", monitored)


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


@pytest.mark.parametrize("call", ["self.all_gather(self.seen)", "self.trainer.strategy.barrier()", "self.share()"])
def test_training_values_and_a_collective_at_the_end_of_the_epoch(call: str) -> None:
    more = f"\ndef share(self):\n    self.trainer.strategy.barrier()\n\ndef on_train_epoch_end(self):\n    {call}\n"
    told(EPOCH_LOSS, reason="rank 0's progress bar starts the reduction before", hook=TRAIN, more=more)
    fixed('self.log("val/loss", loss)', more=more)


def test_a_callback_s_epoch_value_and_a_collective_of_the_module() -> None:
    callback = """\
        import time
        import lightning as L


        class Watch(L.Callback):
            def on_validation_epoch_end(self, trainer, pl_module):
                pl_module.log("val/time", time.time())
        """
    files = {"model.py": module("def on_validation_epoch_end(self):\n    self.all_gather(self.seen)\n")}
    check_told(UnsyncedMetric, callback, reason="on_validation_epoch_end runs self.all_gather", files=files)


def test_an_epoch_end_value_and_a_guarded_read_in_an_epoch_end_hook() -> None:
    source = module("""
        def on_validation_epoch_end(self):
            self.log("val/time", time.time())
            if self.trainer.is_global_zero:
                print(self.trainer.callback_metrics)
        """).replace("import torch\n", "import time\nimport torch\n")
    check_told(UnsyncedMetric, source, reason="callback_metrics is read on some ranks only")


# What is offered under an assumption


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (('self.log("val/loss", torch.tensor(loss.item()))',), "NCCL cannot reduce a CPU tensor"),
        (('self.log("val/loss", loss.cpu())',), "NCCL cannot reduce a CPU tensor"),
        (('self.log("val/loss", unheard_of(loss))',), "right if the value is a number or a tensor on the module's device"),
        (("scores = unheard_of(loss)", "self.log_dict(scores)"), "scores has the same keys, in the same order"),
        (('self.log_dict({"val/loss": loss, **unheard_of(loss)})',), "has the same keys"),
        (("if self.hparams.verbose:", '    self.log("val/loss", loss)'), "`if self.hparams.verbose`"),
        (("for name in self.hparams.names:", '    self.log(f"val/{self.tag}", loss)'), "a loop over self.hparams.names"),
        (('self.log(f"{self.tag}/loss", loss)',), "right if self.tag is the same on every rank"),
        (('self.log("val/right", (y == 1).sum(), reduce_fx="sum")',), "counts this rank's own batch"),
    ],
)
def test_assumptions(lines: tuple[str, ...], reason: str) -> None:
    offered(step(*lines), reason)


def test_an_unsafe_fix_is_made_only_when_asked_for() -> None:
    before = step('self.log("val/loss", loss.cpu())')
    check_transformed(UnsyncedMetric, before, before.replace(".cpu())", ".cpu(), sync_dist=True)"), unsafe=True)


def test_a_base_that_cannot_be_looked_into() -> None:
    source = step('self.log("val/loss", loss)').replace("(pl.LightningModule)", "(Unseen, pl.LightningModule)")
    offered(source, "the base Unseen")


@pytest.mark.parametrize(
    "data",
    [
        "from torch.utils.data import IterableDataset\n\n\nclass Stream(IterableDataset):\n    pass\n",
        "import lightning as L\nfrom model import x\n\ntrainer = L.Trainer(use_distributed_sampler=False)\n",
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
    found = offered(step('self.log(f"{self.tag}/loss", loss.cpu(), reduce_fx="sum")'), "self.tag")
    assert found.reason.count("; ") <= 2
