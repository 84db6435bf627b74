from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.store.project import Project
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of
from tests.lightning_sources import METRICS, fixed, module, offered, step


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


def test_test_step() -> None:
    fixed('self.log("test/loss", loss)', hook="test_step(self, batch, batch_idx)")


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
    check_transformed(UnsyncedMetric, before, before.replace("loss)\n", "loss, sync_dist=True)\n"))
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
    check_transformed(UnsyncedMetric, shared, shared.replace('/loss", loss)', '/loss", loss, sync_dist=stage != "train")'))
    epoch = shared.replace('/loss", loss)', '/loss", loss, on_step=False, on_epoch=True)')
    check_transformed(UnsyncedMetric, epoch, epoch.replace("on_epoch=True)", "on_epoch=True, sync_dist=True)"))


def staged(parameter: str, training: str, evaluation: str, call: str = 'self.log("loss", loss)', more: str = "") -> str:
    return module(f"""
        def _step(self, batch, {parameter}):
            loss = F.mse_loss(self(batch[0]), batch[1])
            {call}
            return loss

        def training_step(self, batch, batch_idx):
            return self._step({training})

        def validation_step(self, batch, batch_idx):
            self._step({evaluation})
        {more}""")


@pytest.mark.parametrize(
    ("parameter", "training", "evaluation", "test"),
    [
        ("train=True", "batch", "batch, False", "not train"),
        ("train", "batch, train=True", "batch, train=False", "not train"),
        ("*, quiet=False", "batch", "batch, quiet=True", "quiet"),
        ("stage", "batch, 'fit'", "batch, 'val'", 'stage != "fit"'),
        ("name, train", "batch, 'a', True", "batch, 'a', False", "not train"),
    ],
)
def test_a_helper_that_is_told_the_stage(parameter: str, training: str, evaluation: str, test: str) -> None:
    before = staged(parameter, training, evaluation)
    check_transformed(UnsyncedMetric, before, before.replace('"loss", loss)', f'"loss", loss, sync_dist={test})'))


@pytest.mark.parametrize(
    ("parameter", "training", "evaluation", "call", "more"),
    [
        ("train=True", "batch", "batch", "", ""),
        ("train", "batch, True", "batch, self.training", "", ""),
        ("train", "batch, True", "batch, False", "train = bool(train); self.log('loss', loss)", ""),
        ("index", "batch, 0", "batch, 1", "", ""),
        ("train", "batch, True", "batch, False", "",
         "\n        def test_step(self, batch, batch_idx):\n            self._step(batch, True)"),
        ("train", "batch, True", "batch, False", "", "\n        def on_train_batch_start(self, batch, batch_idx):\n"
         "            self._step(batch, False)"),
        ("train", "batch, True", "batch, False",
         "self.log('loss', loss, prog_bar=True); self.log('loss', loss, sync_dist=True)", ""),
    ],
)  # fmt: skip
def test_a_helper_whose_stage_is_not_told(parameter: str, training: str, evaluation: str, call: str, more: str) -> None:
    source = staged(parameter, training, evaluation, call or 'self.log("loss", loss)', more)
    found = findings_of(UnsyncedMetric, source)
    assert len(found) == 1 and found[0].applicability is not Applicability.SAFE
    assert 'value=\'True\'' in repr(found[0])


def test_a_monitor_of_what_the_training_logs_wants_every_step_reduced() -> None:
    watched = "\n\nstop = pl.callbacks.EarlyStopping(monitor='{}')\npl.Trainer(callbacks=[stop]).fit(Model())\n"
    offered(staged("train", "batch, True", "batch, False") + watched.format("loss"), "at every training step")
    named = staged("stage", "batch, 'fit'", "batch, 'val'", 'self.log(f"{stage}_loss", loss)')
    offered(named + watched.format("fit_loss"), "at every training step")
    before = named + watched.format("val_loss")
    after = before.replace('_loss", loss)', '_loss", loss, sync_dist=stage != "fit")')
    check_transformed(UnsyncedMetric, before, after)


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


def test_a_key_that_lightning_keeps_equal() -> None:
    fixed('self.log(f"{self.trainer.state.stage}/loss", loss)')


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


TESTS_ALONE = "test_step(self, batch, batch_idx)"
WATCHER = {"train.py": "import lightning as L\nfrom module import Model\n\nsave = L.ModelCheckpoint(monitor='acc')\n"}


@pytest.mark.parametrize(("more", "decides"), [("save_top_k=0, save_last=True", 0), ("save_top_k=1", 1), ("save_top_k=-1", 1)])
def test_a_checkpoint_that_keeps_no_best_ones_decides_nothing(more: str, decides: int) -> None:
    source = step('self.log("loss", loss)', hook="training_step(self, batch, batch_idx)")
    files = {"train.py": f"import lightning as L\nfrom module import Model\n\nsave = L.ModelCheckpoint(monitor='loss', {more})\n"}
    assert len(findings_of(UnsyncedMetric, source, files)) == decides


def test_no_monitor_reads_what_a_test_logs() -> None:
    source = step('self.log("acc", loss)', hook=TESTS_ALONE)
    found = findings_of(UnsyncedMetric, source, path="module.py", files=WATCHER)
    assert len(found) == 1
    assert "decides on each rank" not in found[0].message
    shared = step('self.log("acc", loss)')
    assert "decides on each rank" in findings_of(UnsyncedMetric, shared, path="module.py", files=WATCHER)[0].message


def test_a_promised_test_value_is_left_alone() -> None:
    source = step('self.log("acc", loss, rank_zero_only=True)', hook=TESTS_ALONE)
    assert findings_of(UnsyncedMetric, source, path="module.py", files=WATCHER) == []
    shared = step('self.log("acc", loss, rank_zero_only=True)')
    assert findings_of(UnsyncedMetric, shared, path="module.py", files=WATCHER) != []


def test_the_monitor_of_the_same_file_comes_first() -> None:
    other = "import lightning as L\n\nsave = L.ModelCheckpoint(monitor='val/loss')\n"
    source = step('self.log("val/loss", loss)') + "\n\nsave = L.ModelCheckpoint(monitor='val/loss')\n"
    found = findings_of(UnsyncedMetric, source, {"a_train.py": other, "z_train.py": other})
    assert "ModelCheckpoint(monitor=…) at module.py:" in found[0].message


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


HELD = "\ndef __init__(self):\n    super().__init__()\n    self.spread = Spread()\n"
SPREAD = """\
import scipy.stats
from torchmetrics import CatMetric


class Spread:
    def __init__(self):
        self.seen = CatMetric()
        self.own = []

    def result(self):
        found = scipy.stats.describe(self.seen.compute().numpy())
        return found.minmax, found.variance
"""


def test_a_metric_that_an_object_of_the_project_asks() -> None:
    head = "import scipy.stats\nfrom spread import Spread\n"
    lines = ("minmax, variance = self.spread.result()", 'self.log("val/spread", variance)')
    source = head + step(*lines, hook="validation_step(self, batch, batch_idx)", more=HELD)
    check_nothing(UnsyncedMetric, source, files={"spread.py": SPREAD})
    own = SPREAD.replace("self.seen.compute().numpy()", "self.own")
    assert findings_of(UnsyncedMetric, source, {"spread.py": own})


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


def test_an_upgrade_loses_the_forced_reduction() -> None:
    source = step('self.log("val/loss", loss)').encode()
    project = Project.of({"train.py": source, "requirements.txt": b"pytorch-lightning==1.5.10\n"}, targets={"lightning": "2"})
    module = project.module("train.py")
    assert module is not None
    (found,) = UnsyncedMetric().find(module, project)
    assert found.fix is not None and found.applicability is Applicability.SAFE


# Two options that do not go together


def test_rank_zero_only_switches_sync_dist_off() -> None:
    told = step('self.log("val/loss", loss, sync_dist=True, rank_zero_only=True)')
    check_told(UnsyncedMetric, told, reason="leave rank_zero_only out")
    many = step('self.log_dict({"val/loss": loss}, rank_zero_only=True, sync_dist=True)')
    check_told(UnsyncedMetric, many, reason="leave rank_zero_only out")


@pytest.mark.parametrize(
    "lines",
    [
        ('self.log("val/loss", loss, sync_dist=False, rank_zero_only=True)',),
        ('self.log("val/loss", loss, sync_dist=True, rank_zero_only=False)',),
        ('self.log("epoch", float(self.current_epoch), sync_dist=True, rank_zero_only=True)',),
        ('self.log("acc", self.acc, sync_dist=True, rank_zero_only=True)',),
        ('self.log("val/loss", self.all_gather(loss).mean(), sync_dist=True, rank_zero_only=True)',),
        ("if self.trainer.is_global_zero:", '    self.log("val/loss", loss, sync_dist=True, rank_zero_only=True)'),
    ],
)
def test_rank_zero_only_where_nothing_is_lost(lines: tuple[str, ...]) -> None:
    check_nothing(UnsyncedMetric, step(*lines, more=METRICS))


DECLINED = module("""
    def training_step(self, batch, batch_idx):
        return self.shared(batch, "train")

    def validation_step(self, batch, batch_idx):
        self.shared(batch, "val")

    def shared(self, batch, stage):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        scores = {f"{stage}_acc": loss, f"{stage}_gap": 2 * loss}
        self.log_dict(scores, sync_dist=False, on_step=True, on_epoch=True)
        return loss
    """)


def test_a_reduction_declined_for_what_a_monitor_reads() -> None:
    alone = step('self.log("acc", loss, sync_dist=False)')
    found = findings_of(UnsyncedMetric, alone, path="module.py", files=WATCHER)
    assert [f.fix for f in found] == [None] and "sync_dist=False keeps" in found[0].message
    assert "if every rank comes here" in found[0].reason
    watcher = {"train.py": WATCHER["train.py"].replace("'acc'", "'val_acc'")}
    shared = findings_of(UnsyncedMetric, DECLINED, path="module.py", files=watcher)
    assert [f.fix for f in shared] == [None] and "not self.training" in shared[0].reason


@pytest.mark.parametrize(
    "lines",
    [
        ('self.log("val/other", loss, sync_dist=False)',),
        ('self.log("acc", self.all_gather(loss).mean(), sync_dist=False)',),
        ("torch.distributed.all_reduce(loss)", 'self.log("acc", loss, sync_dist=False)'),
        ('self.log("acc", self.acc, sync_dist=False)',),
        ('self.log("acc", self.results["acc"], sync_dist=False)',),
    ],
)
def test_a_reduction_declined_where_nothing_is_lost(lines: tuple[str, ...]) -> None:
    assert findings_of(UnsyncedMetric, step(*lines, more=METRICS), path="module.py", files=WATCHER) == []


def test_a_reduction_declined_in_the_training_or_a_test_alone() -> None:
    for hook in ("training_step(self, batch, batch_idx)", TESTS_ALONE):
        source = step('self.log("acc", loss, sync_dist=False)', hook=hook)
        assert findings_of(UnsyncedMetric, source, path="module.py", files=WATCHER) == []


LOGGED = module("""
    def validation_step(self, batch, batch_idx):
        loss = self(batch).mean()
        self.log("val/loss", loss)
    """)
OWN_LOOP = "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef train(m, x):\n    DDP(m)(x).mean().backward()\n"
FIT = "import pytorch_lightning as pl\n\n\ndef main(model):\n    trainer = pl.Trainer(devices=2, {})\n    trainer.fit(model)\n"


def test_a_module_that_a_loop_of_the_project_trains_around() -> None:
    check_nothing(UnsyncedMetric, LOGGED, files={"solver.py": OWN_LOOP})
    assert findings_of(UnsyncedMetric, LOGGED, files={"solver.py": OWN_LOOP, "main.py": FIT.format("")})
    assert findings_of(UnsyncedMetric, LOGGED, files={"solver.py": OWN_LOOP.replace("backward()", "item()")})


def test_ranks_that_each_evaluate_the_whole_set() -> None:
    off = "use_distributed_sampler=False"
    shares = (
        "from torch.utils.data import DistributedSampler\n\n\n"
        "def {}_loader(data):\n    return DataLoader(data, sampler=DistributedSampler(data))\n"
    )
    train = {"main.py": FIT.format(off), "data.py": shares.format("train")}
    check_nothing(UnsyncedMetric, LOGGED, files=train)
    assert findings_of(UnsyncedMetric, LOGGED, files={**train, "data.py": shares.format("any")})
    assert findings_of(UnsyncedMetric, LOGGED, files={**train, "a.yaml": "use_distributed_sampler: true\n"})
    assert findings_of(UnsyncedMetric, LOGGED, files={"main.py": FIT.format("")})


def test_hooks_of_a_test_that_only_the_repository_makes() -> None:
    source = LOGGED.replace("validation_step", "test_step")
    own = {"tests/test_model.py": "def test_it(trainer, model):\n    trainer.test(model)\n", "main.py": FIT.format("")}
    check_nothing(UnsyncedMetric, source, files=own)
    assert findings_of(UnsyncedMetric, source, files={**own, "run.py": "def run(trainer, model):\n    trainer.test(model)\n"})


# Keys that are put together

SCORES = """
    def on_validation_epoch_start(self):
        self.hits = []

    def validation_step(self, batch, batch_idx):
        self.hits.append(self(batch).mean().item())

    def on_validation_epoch_end(self):
        {0}
"""
HELPER = "self.finish('val')\n\n    def finish(self, stage):\n        "
MEAN = "sum(self.hits) / len(self.hits)"


@pytest.mark.parametrize(
    "end",
    [
        HELPER + f"self.log(f'{{stage}}/acc', {MEAN})",
        HELPER + f"self.log(stage + '/acc', {MEAN})",
        f"for name, value in {{'val/acc': {MEAN}}}.items():\n            self.log(name, value)",
        f"scores = {{'acc': {MEAN}}}\n        for name in scores:\n            self.log(f'val/{{name}}', scores[name])",
        f"scores = {{'acc': {MEAN}}}\n        self.log_dict({{f'val/{{k}}': v for k, v in scores.items()}})",
    ],
)
def test_a_monitor_of_a_key_that_is_put_together(end: str) -> None:
    watcher = {"train.py": "import lightning as L\nfrom module import Model\n\nsave = L.ModelCheckpoint(monitor='val/acc')\n"}
    found = findings_of(UnsyncedMetric, module(SCORES.format(end)), watcher)
    assert "ModelCheckpoint(monitor=…) at train.py:4 decides" in found[0].message
    assert (
        "decides"
        not in findings_of(UnsyncedMetric, module(SCORES.format(end)), {"train.py": watcher["train.py"].replace("/acc", "")})[
            0
        ].message
    )


def test_a_key_of_which_a_part_is_not_seen_names_no_monitor() -> None:
    watcher = {"train.py": "import lightning as L\nfrom module import Model\n\nsave = L.ModelCheckpoint(monitor='val/acc')\n"}
    for key in ("f'{self.stage}/acc'", "f'val/{self.hparams.name}'", "f'{stage()}/acc'", "self.key"):
        found = findings_of(UnsyncedMetric, module(SCORES.format(f"self.log({key}, {MEAN})")), watcher)
        assert found and "decides" not in found[0].message
    other = "\n\nclass Other(L.LightningModule):\n    pass\n\n"
    stranger = {"train.py": watcher["train.py"].replace("from module import Model\n", other)}
    end = HELPER + f"self.log(f'{{stage}}/acc', {MEAN})"
    assert "decides" not in findings_of(UnsyncedMetric, module(SCORES.format(end)), stranger)[0].message


SAVES = "from lightning.pytorch.callbacks import ModelCheckpoint\n\nkept = ModelCheckpoint(monitor='val/loss')\n"
ANOTHER = "import lightning as L\n\n\nclass Another(L.LightningModule):\n    pass\n"


def decided_by(files: dict[str, str]) -> str:
    """The message on `val/loss` of Model, beside these files."""
    return findings_of(UnsyncedMetric, module("""
        def validation_step(self, batch, batch_idx):
            loss = F.mse_loss(self(batch[0]), batch[1])
            self.log("val/loss", loss)
        """), files)[0].message  # fmt: skip


def test_a_monitor_decides_for_the_model_that_its_script_names() -> None:
    assert "train.py:4 decides on each rank" in decided_by({"train.py": "from module import Model\n" + SAVES, "b.py": ANOTHER})
    config = "trainer:\n  callbacks:\n    - init_args:\n        monitor: val/loss\nmodel:\n  class_path: module.Model\n"
    assert "`monitor: val/loss` at run.yaml:4 decides" in decided_by({"run.yaml": config, "b.py": ANOTHER})
    assert "train.py:3 decides on each rank" in decided_by({"train.py": SAVES})


def test_a_monitor_of_another_model_is_no_reason() -> None:
    script = "from b import Another\n" + SAVES
    assert "decides" not in decided_by({"train.py": script, "b.py": ANOTHER})
    config = "callbacks:\n  - init_args:\n      monitor: val/loss\nmodel:\n  class_path: b.Another\n"
    assert "decides" not in decided_by({"run.yaml": config, "b.py": ANOTHER})
    own = ANOTHER.replace("    pass", "    def configure_optimizers(self):\n        return {'monitor': 'val/loss'}")
    assert "decides" not in decided_by({"b.py": own + "\n\nfrom module import Model\n"})


@pytest.mark.parametrize(
    "value",
    [
        "time.time() - self.started",
        "round(time.perf_counter() - self.started, 2)",
        "torch.cuda.max_memory_allocated() / 2**20",
        "psutil.virtual_memory().used / 2**30",
        "psutil.Process().memory_info().rss",
        "torch.tensor(time.time() - self.started)",
        "np.round(torch.cuda.memory_reserved() / 1e9, 1)",
        "gauge()",
    ],
)
def test_nothing_of_clocks_and_gauges(value: str) -> None:
    source = module(f"""
        def on_validation_epoch_start(self):
            self.started = time.time()

        def on_validation_epoch_end(self):
            self.log("val/gauge", {value})
        """)
    head = "import time\nimport numpy as np\nimport psutil\n"
    check_nothing(UnsyncedMetric, head + source + "\n\ndef gauge():\n    return torch.cuda.max_memory_allocated() / 2**20\n")


def test_a_number_of_the_batch_beside_a_clock_is_still_told() -> None:
    source = module("""
        def validation_step(self, batch, batch_idx):
            loss = F.mse_loss(self(batch[0]), batch[1])
            self.log("val/weighted", loss * time.time())
        """)
    assert findings_of(UnsyncedMetric, "import time\n" + source)


def test_a_monitor_of_another_heir_of_the_same_base_is_no_reason() -> None:
    base = "import lightning as L\n\n\nclass Base(L.LightningModule):\n    pass\n"
    source = "import torch\nimport torch.nn.functional as F\nfrom base import Base\n\n\nclass Model(Base):\n"
    source += "    def validation_step(self, batch, batch_idx):\n"
    source += "        self.log('val/loss', F.mse_loss(self(batch[0]), batch[1]))\n"
    other = "from base import Base\n\n\nclass Second(Base):\n    pass\n"
    config = "callbacks:\n  - init_args:\n      monitor: val/loss\nmodel:\n  class_path: b.Second\n"
    alone = {"base.py": base, "run.yaml": config.replace("b.Second", "module.Model")}
    assert "decides" in findings_of(UnsyncedMetric, source, alone)[0].message
    assert "decides" not in findings_of(UnsyncedMetric, source, {"base.py": base, "b.py": other, "run.yaml": config})[0].message


# What can only be an object

_CHOSEN = """
    def __init__(self, task):
        super().__init__()
        self.f1 = torchmetrics.F1Score(task="multiclass", num_classes=3) if task == "classes" else None
        self.error = None if task == "classes" else torchmetrics.MeanMetric()
        self.made = built(task)
        self.share = 0.5
"""


@pytest.mark.parametrize(
    "lines",
    [
        ("self.f1(self(x), y)", 'self.log("val/f1", self.f1, on_step=False, on_epoch=True)'),
        ("self.error.update(loss)", 'self.log("val/error", self.error)'),
        ("self.made(self(x), y)", 'self.log("val/made", self.made)'),
        ("self.gone.update(self(x), y)", 'self.log("val/gone", self.gone, on_epoch=True)'),
        ("self.gone(self(x), y)", 'self.log_dict({"val/gone": self.gone, "val/made": self.gone})'),
    ],
)
def test_an_object_that_reduces_itself_is_logged(lines: tuple[str, ...]) -> None:
    check_nothing(UnsyncedMetric, step(*lines, more=_CHOSEN))


def test_a_number_beside_such_objects() -> None:
    fixed('self.log("val/loss", self.share * loss)', more=_CHOSEN)


def test_a_field_that_other_code_sets_and_nobody_calls() -> None:
    source = step('self.log("val/kept", self.kept)') + "\n\ndef start(model, x):\n    model.kept = x.mean()\n"
    offered(source, "where self.kept comes from is not seen")


def test_a_field_that_nobody_calls_and_a_function_makes() -> None:
    offered(step('self.log("val/made", self.made)', more=_CHOSEN.replace("built(task)", "built(task).mean()")), "right if")


# Which scheduler reads a monitor

PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)"
COSINE = "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)"


def scheduled(result: str, *, above: str = "", rest: str = "") -> str:
    return f"""
        def validation_step(self, batch, batch_idx):
            loss = F.mse_loss(self(batch[0]), batch[1])
            self.log("val/loss", loss)

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters())
            {above or "pass"}
            return {result}
        {rest}
        """


def decided(result: str, *, above: str = "", rest: str = "", files: dict[str, str] | None = None) -> str:
    source = "import torch\nimport transformers\n" + module(scheduled(result, above=above, rest=rest))
    return findings_of(UnsyncedMetric, source, files or {})[0].message


@pytest.mark.parametrize(
    ("result", "above"),
    [
        (f"{{'optimizer': optimizer, 'lr_scheduler': {PLATEAU}, 'monitor': 'val/loss'}}", ""),
        (f"[optimizer], [{{'scheduler': {PLATEAU}, 'monitor': 'val/loss'}}]", ""),
        ("[optimizer], [{'scheduler': plan, 'monitor': 'val/loss'}]", f"plan = {PLATEAU}"),
        ("[optimizer], [{'scheduler': plan, 'monitor': 'val/loss'}]", f"plan = {PLATEAU} if self.slow else {COSINE}"),
        ("[optimizer], [dict(scheduler=plan, monitor='val/loss')]", f"plan = {PLATEAU}"),
        ("{'optimizer': optimizer, 'lr_scheduler': {'scheduler': self.plan(optimizer), 'monitor': 'val/loss', "
         "'reduce_on_plateau': True}}", ""),
    ],
)  # fmt: skip
def test_a_plateau_scheduler_decides(result: str, above: str) -> None:
    message = decided(result, above=above)
    assert "decides on each rank" in message
    assert "scheduler's monitor" in message or "the monitor of ReduceLROnPlateau" in message


@pytest.mark.parametrize(
    ("result", "above"),
    [
        (f"{{'optimizer': optimizer, 'lr_scheduler': {COSINE}, 'monitor': 'val/loss'}}", ""),
        (f"[optimizer], [{{'scheduler': {COSINE}, 'interval': 'step', 'monitor': 'val/loss'}}]", ""),
        ("[optimizer], [{'scheduler': plan, 'monitor': 'val/loss'}]", f"plan = {COSINE}"),
        ("[optimizer], [{'scheduler': self.plan(optimizer), 'monitor': 'val/loss'}]", ""),
        ("[optimizer], [dict(scheduler=plan, monitor='val/loss')]", f"plan = {COSINE}"),
        ("[optimizer], [{'scheduler': plan, 'monitor': 'val/loss'}]",
         "plan = transformers.get_linear_schedule_with_warmup(optimizer, 1, 9)"),
        ("[optimizer], [{'scheduler': self.unseen(optimizer), 'monitor': 'val/loss'}]", ""),
    ],
)  # fmt: skip
def test_any_other_scheduler_reads_no_monitor(result: str, above: str) -> None:
    rest = "\n        def plan(self, optimizer):\n            return torch.optim.lr_scheduler.LambdaLR(optimizer, self.factor)\n"
    assert "decides" not in decided(result, above=above, rest=rest)


def test_a_scheduler_of_the_project_goes_by_its_base() -> None:
    head = "import torch\n\n\nclass Slower(torch.optim.lr_scheduler.{}):\n    pass\n"
    result = "[optimizer], [{'scheduler': Slower(optimizer), 'monitor': 'val/loss'}]"
    for base, decides in (("ReduceLROnPlateau", True), ("StepLR", False)):
        source = "import torch\nfrom plans import Slower\n" + module(scheduled(result))
        found = findings_of(UnsyncedMetric, source, {"plans.py": head.format(base)})
        assert ("decides" in found[0].message) is decides


def test_a_scheduler_that_is_not_seen_may_be_one_that_a_configuration_names() -> None:
    result = "[optimizer], [{'scheduler': self.hparams.scheduler(optimizer), 'monitor': 'val/loss'}]"
    named = {"conf/plan.yaml": "scheduler:\n  _target_: torch.optim.lr_scheduler.ReduceLROnPlateau\n  _partial_: true\n"}
    assert "a learning-rate scheduler's monitor" in decided(result, files=named)
    assert "decides" not in decided(result)


def test_a_callback_that_monitors_is_named_beside_a_scheduler_that_does_not() -> None:
    result = f"[optimizer], [{{'scheduler': {COSINE}, 'monitor': 'val/loss'}}]"
    saves = {"train.py": "from module import Model\n" + SAVES}
    assert "ModelCheckpoint(monitor=…) at train.py:4 decides" in decided(result, files=saves)


RATES = """
import torch
from torchmetrics import SumMetric


def rate(part, whole):
    if whole.value == 0:
        return torch.tensor(-1)
    return (part / whole).compute()


class Rates:
    def __init__(self, name):
        self.name = name
        self.wrong = SumMetric()
        self.seen = SumMetric()

    def __call__(self, wrong, seen):
        self.wrong.update(wrong)
        self.seen.update(seen)

    def take(self):
        found = {f"{self.name}_rate": rate(self.wrong, self.seen), f"{self.name}_share": (self.wrong / self.seen).compute()}
        self.wrong.reset()
        return found
"""
KEEPS = """
    def __init__(self):
        super().__init__()
        self.rates = Rates("val")

    def validation_step(self, batch, batch_idx):
        self.rates(self(batch), len(batch))

    def on_validation_epoch_end(self):
        self.log_dict(self.rates.take())
"""
OWN = (
    RATES.replace("rate(self.wrong, self.seen)", "self.last")
    .replace("(self.wrong / self.seen).compute()", "self.last / 2")
    .replace("self.seen.update(seen)", "self.last = wrong / seen")
)


def test_what_an_object_of_the_project_computes_with_its_metrics() -> None:
    source = "from rates import Rates\n" + module(KEEPS)
    check_nothing(UnsyncedMetric, source, files={"rates.py": RATES})
    one = source.replace("self.log_dict(self.rates.take())", "self.log('rate', self.rates.take()['val_rate'])")
    check_nothing(UnsyncedMetric, one, files={"rates.py": RATES})


@pytest.mark.parametrize(
    ("rates", "old", "new"),
    [
        (OWN, "", ""),  # a number of the rank, beside the metrics
        (RATES.replace("torchmetrics", "sums"), "", ""),  # what another package's compute() gives is not known
        (RATES, 'self.rates = Rates("val")', 'self.rates = Rates("val") if self.fine else Plain()'),  # one of two
    ],
)
def test_what_an_object_gives_may_be_the_number_of_the_rank(rates: str, old: str, new: str) -> None:
    source = "from rates import Rates\n" + module(KEEPS)
    assert findings_of(UnsyncedMetric, source.replace(old, new) if old else source, {"rates.py": rates})


WHOLE = """import torch
import lightning.pytorch as pl
from torch.nn import functional as F


class Net(pl.LightningModule):
    def both(self, batch):
        out = torch.squeeze(self.net(batch[0]))
        error = F.mse_loss(out / batch[1], torch.ones_like(out))
        return out, error

    def validation_step(self, batch, batch_idx):
        {}
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('out, error = self.both(batch)\n        self.log("out", out)', False),
        ('out = self(batch[0])\n        self.log("out", out)\n        return F.l1_loss(out, batch[1])', False),
        ('out, error = self.both(batch)\n        self.log("error", error)', True),
        ('out, error = self.both(batch)\n        self.log("out", out.mean())', True),
        ('loss = self.net(batch)\n        self.log("loss", loss)', True),  # the network works the loss out itself
        ('out = self(batch[0])\n        out = out.mean()\n        self.log("out", out)\n        F.l1_loss(out, batch[1])', True),
    ],
)
def test_all_outputs_for_a_batch_are_no_number(lines: str, *, told: bool) -> None:
    assert bool(findings_of(UnsyncedMetric, WHOLE.format(lines))) is told
