from __future__ import annotations

import pytest

from codemods.metrics.rank_local_epoch_mean import RankLocalEpochMean
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import lightning.pytorch as pl\nimport numpy as np\nimport torch\nimport wandb\nfrom torchmetrics import MeanMetric\n\n\n"


def net(*lines: str, put: str = "e", hook: str = "on_validation_epoch_end(self)", tail: str = "") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}class Net(pl.LightningModule):\n    def __init__(self):\n        super().__init__()\n        self.errors = []\n"
        "        self.hits = 0\n        self.seen = 0\n        self.metric = MeanMetric()\n\n"
        "    def validation_step(self, batch, batch_idx):\n        x, y = batch\n        e = (self(x) - y).abs().mean()\n"
        f"        self.errors.append({put})\n        self.hits += (y > 0).sum().item()\n        self.seen += len(y)\n"
        f"        return {{'val': e}}\n\n    def {hook}:\n{body}{tail}"
    )


def test_the_example_of_the_documentation() -> None:
    sections = RankLocalEpochMean.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RankLocalEpochMean, before, reason="self.all_gather(torch.stack(self.errors))")
    check_nothing(RankLocalEpochMean, after)


@pytest.mark.parametrize(
    ("lines", "how"),
    [
        (("self.print(f'{torch.stack(self.errors).mean():.3f}')",), "printed"),
        (("mean = torch.stack(self.errors).mean()", "print('error', mean.item())"), "printed"),
        (("print('%.3f' % (self.hits / self.seen))",), "printed"),
        (("print('{:.3f}'.format(np.mean([e.item() for e in self.errors])))",), "printed"),
        (("if self.trainer.is_global_zero:", "    print(sum(self.errors) / len(self.errors))"), "printed"),
        (("self.logger.log_metrics({'e': torch.stack(self.errors).mean()})",), "given to the logger"),
        (("wandb.log({'e': torch.cat(self.errors).mean().item()})",), "given to the logger"),
        (("self.logger.experiment.add_scalar('e', torch.stack(self.errors).mean(), 1)",), "given to the logger"),
    ],
)
def test_what_is_shown(lines: tuple[str, ...], how: str) -> None:
    assert how in check_told(RankLocalEpochMean, net(*lines), reason="gather").message


def test_outputs_that_are_returned_to_be_logged() -> None:
    lines = ("mean = torch.stack([o['val'] for o in outputs]).mean()", "logs = {'v': mean}", "return {'v': mean, 'log': logs}")
    source = net(*lines, hook="validation_epoch_end(self, outputs)")
    old = {"requirements.txt": "pytorch-lightning==0.9.0\n"}
    found = check_told(RankLocalEpochMean, source, files=old, reason="all_gather")
    assert "returned to be logged" in found.message
    check_nothing(RankLocalEpochMean, source)
    check_nothing(RankLocalEpochMean, source, files={"requirements.txt": "pytorch-lightning==1.5.0\n"})


def test_a_callback_is_advised_to_gather_through_the_module() -> None:
    source = (
        f"{HEAD}class Errors(pl.Callback):\n"
        "    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):\n"
        "        self.errors.append(outputs['e'])\n\n    def on_validation_epoch_end(self, trainer, pl_module):\n"
        "        print(torch.stack(self.errors).mean())\n"
    )
    check_told(RankLocalEpochMean, source, reason="pl_module.all_gather(torch.stack(self.errors))")


@pytest.mark.parametrize(
    "lines",
    [
        ("print(self.all_gather(torch.stack(self.errors)).mean())",),
        ("mean = self.all_gather(torch.stack(self.errors)).mean()", "print(f'{mean:.3f}')"),
        ("total = torch.stack(self.errors).sum()", "torch.distributed.all_reduce(total)", "print(total / 2)"),
        ("print(self.metric.compute())",),
        ("print(len(self.errors), 'batches')",),
        ("print(self.errors)",),
        ("print(f'rank {self.global_rank}: {torch.stack(self.errors).mean()}')",),
        ("self.log('e', torch.stack(self.errors).mean())",),
        ("print(self.current_epoch / 2)",),
        ("self.errors.clear()",),
        ("print(self.trainer.callback_metrics['val'].item())",),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(RankLocalEpochMean, net(*lines))


def test_nothing_of_entries_that_the_step_gathers() -> None:
    check_nothing(RankLocalEpochMean, net("print(torch.stack(self.errors).mean())", put="self.all_gather(e).mean()"))


def test_nothing_of_a_run_on_one_device() -> None:
    source = net("print(torch.stack(self.errors).mean())", tail="\n\ntrainer = pl.Trainer(devices=1)\n")
    check_nothing(RankLocalEpochMean, source)


def test_nothing_of_a_class_that_is_none_of_lightnings() -> None:
    check_nothing(RankLocalEpochMean, net("print(torch.stack(self.errors).mean())").replace("(pl.LightningModule)", ""))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(RankLocalEpochMean, net("print(torch.stack(self.errors).mean())"), path="tests/test_net.py")


STEP = "        self.errors.append(e)\n"


def measured(*lines: str, shows: str = "print('mean', np.mean(self.errors[1:]))") -> str:
    """The step takes a measurement in these lines, and fills the list by it."""
    source = net(shows).replace(STEP, "".join(f"        {line}\n" for line in lines))
    return source.replace("import torch\n", "import time\nimport torch\n")


@pytest.mark.parametrize(
    "lines",
    [
        ("began = time.perf_counter()", "self(x)", "self.errors.append(time.perf_counter() - began)"),
        ("took = 0.0", "began = time.time()", "took += time.time() - began", "self.errors.append(took)"),
        ("free, total = torch.cuda.mem_get_info()", "used = total - free", "self.errors.append(used)"),
        ("self.errors.append(torch.cuda.max_memory_allocated() / 2**20)",),
    ],
)
def test_times_and_memory_are_no_share_of_the_data(lines: tuple[str, ...]) -> None:
    check_nothing(RankLocalEpochMean, measured(*lines))
    check_nothing(RankLocalEpochMean, measured(*lines, shows="wandb.log({'mean': np.mean(self.errors) / 1024})"))


@pytest.mark.parametrize(
    "lines",
    [
        ("began = time.perf_counter()", "self.errors.append(e.item() / (time.perf_counter() - began))"),
        ("self.errors.append(time.time())", "self.errors.append(e)"),
        ("self.errors.append((time.time(), e))",),
    ],
)
def test_a_list_that_holds_more_than_times(lines: tuple[str, ...]) -> None:
    check_told(RankLocalEpochMean, measured(*lines), reason="gather")


def test_a_mean_of_times_beside_one_of_the_data() -> None:
    source = measured("self.errors.append(time.time())", "self.rows.append(e)", shows="print(sum(self.rows) / sum(self.errors))")
    check_told(RankLocalEpochMean, source, reason="gather")
