"""Which calls are collectives, and which project functions come to one."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.names import last
from codemods.analysis.ranks.collectives import collective_at, collective_call, collective_read
from codemods.analysis.ranks.reached_collectives import Reached, reached_by
from ddpfix.testing import MAIN, project_of

DIST = "import torch.distributed as dist\n"


def found_in(source: str, **files: str) -> list[str]:
    """The texts of all collectives of the text."""
    project = project_of(source, {f"{name}.py": text for name, text in files.items()})
    module = project.module(MAIN)
    assert module is not None
    nodes = [*module.nodes(ast.Call), *module.nodes(ast.Attribute)]
    return [c.text for n in nodes if (c := collective_at(module, n, project))]


def reached(source: str, **files: str) -> Reached | None:
    project = project_of(source, {f"{name}.py": text for name, text in files.items()})
    module = project.module(MAIN)
    assert module is not None
    call = next(c for c in module.nodes(ast.Call) if last(module.text_of(c.func)) == "go")
    return reached_by(project, module, call)


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("import torch.distributed as dist", "dist.barrier()"),
        ("import torch", "torch.distributed.all_reduce(t)"),
        ("from torch.distributed import all_gather_object as gather", "gather(out, x)"),
        ("from torch import distributed", "distributed.broadcast(t, 0)"),
        ("from torch.nn.parallel import DistributedDataParallel as DDP", "DDP(model)"),
        ("import torch.distributed.checkpoint as dcp", "dcp.save(state)"),
        ("import horovod.torch as hvd", "hvd.allreduce(t)"),
        ("from accelerate.utils import gather_object", "gather_object(x)"),
        ("from accelerate import PartialState", "PartialState().wait_for_everyone()"),
        ("import accelerate", "accelerator.gather(x)"),
        ("import accelerate", "self.accelerator.gather_for_metrics(x)"),
        ("import accelerate", "accelerator.save_state(p)"),
        ("import accelerate", "accelerator.check_trigger()"),
        ("import lightning.pytorch as pl", "trainer.fit_loop.setup_data()"),
        ("import lightning.pytorch as pl", "trainer.strategy.barrier()"),
        ("import lightning.pytorch as pl", "trainer.save_checkpoint(p)"),
        ("import pytorch_lightning as pl", "self.trainer.training_type_plugin.barrier()"),
        ("import pytorch_lightning as pl", "trainer.fit(model)"),
        ("import pytorch_lightning as pl", "self.all_gather(x)"),
        ("import pytorch_lightning as pl", "pl_module.log('a', x, sync_dist=True)"),
        ("import pytorch_lightning as pl", "self.log_dict(d, sync_dist=flag)"),
        ("from lightning.fabric import Fabric", "fabric.save(p, state)"),
        ("from lightning.fabric import Fabric", "fabric.all_reduce(x)"),
        ("from transformers import Trainer", "trainer.evaluate()"),
        ("from trl import SFTTrainer", "trainer.train()"),
    ],
)
def test_collectives(head: str, call: str) -> None:
    assert len(found_in(f"{head}\n{call}\n")) == 1


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("import torch", "torch.gather(x, 0, i)"),
        ("import torch", "x.gather(0, i)"),
        ("import torch", "x.scatter(0, i, y)"),
        ("import numpy as np", "np.add.reduce(x)"),
        ("import numpy as np", "np.broadcast(a, b)"),
        ("import tensorflow as tf", "tf.gather(x, i)"),
        ("from functools import reduce", "reduce(f, x)"),
        ("import asyncio", "asyncio.gather(a, b)"),
        ("import threading", "threading.Barrier(2)"),
        ("import torch.distributed as dist", "dist.get_rank()"),
        ("import torch.distributed as dist", "dist.destroy_process_group()"),
        ("import torch.distributed as dist", "dist.send(t, 1)"),
        ("import torch", "torch.save(x, p)"),
        ("import torch", "trainer.save_checkpoint(p)"),
        ("import torch", "trainer.train()"),
        ("import torch", "strategy.reduce(x)"),
        ("import torch", "self.all_gather(x)"),
        ("import pyspark", "spark.broadcast(x)"),
        ("import accelerate", "accelerator.save(x, p)"),
        ("import accelerate", "accelerator.print(x)"),
        ("import pytorch_lightning as pl", "self.log('a', x)"),
        ("import pytorch_lightning as pl", "self.log('a', x, sync_dist=False)"),
        ("import pytorch_lightning as pl", "self.log('a', x, sync_dist=True, rank_zero_only=True)"),
        ("import pytorch_lightning as pl", "self.logger.log('a', x, sync_dist=True)"),
        ("from transformers import Trainer", "trainer.save_model()"),
        ("from transformers import Trainer", "trainer.log_dir"),
        ("import pytorch_lightning as pl", "self.logger.log_dir"),
        ("import pytorch_lightning as pl", "trainer.callback_metrics = {}"),
        ("import fabric", "fabric.save(p)"),
    ],
)
def test_no_collectives(head: str, call: str) -> None:
    assert found_in(f"{head}\n{call}\n") == []


@pytest.mark.parametrize("name", ["callback_metrics", "logged_metrics", "progress_bar_metrics", "log_dir"])
def test_properties_of_the_trainer(name: str) -> None:
    assert found_in(f"import lightning.pytorch as pl\nx = self.trainer.{name}\n") == [f"self.trainer.{name}"]


def test_a_callback_whose_base_is_in_another_file() -> None:
    base = "import lightning.pytorch as pl\nclass Base(pl.Callback):\n    pass\n"
    source = """
    from base import Base
    class C(Base):
        def on_fit_end(self, trainer, m):
            return trainer.callback_metrics
    """
    assert found_in(source, base=base) == ["trainer.callback_metrics"]


def test_a_trainer_of_the_project_is_not_lightnings() -> None:
    source = "import lightning\nfrom mine import Trainer\ntrainer = Trainer()\ntrainer.fit(x)\ntrainer.save_checkpoint(p)\n"
    assert found_in(source, mine="class Trainer:\n    pass\n") == []


def test_a_log_method_of_the_class_itself() -> None:
    source = """
    import lightning
    class T:
        def log(self, *args, **kwargs): ...
        def f(self):
            self.log("a", 1, sync_dist=True)
    """
    assert found_in(source) == []


def test_a_metric_object() -> None:
    source = """
    import lightning.pytorch as pl
    import torchmetrics

    class M(pl.LightningModule):
        def __init__(self):
            self.acc = torchmetrics.Accuracy(task="binary")
            self.head = Head()

        def on_validation_epoch_end(self):
            self.acc.compute()
            self.log("acc", self.acc)
            self.head.compute()
    """
    assert found_in(source) == ["self.acc.compute", "self.log(self.acc)"]


def test_the_wrappers_forward_where_gradients_are_on() -> None:
    source = "import lightning.pytorch as pl\nclass C(pl.Callback):\n    def {}(self, trainer, m):\n        trainer.model(1)\n"
    assert found_in(source.format("on_train_batch_end")) == ["trainer.model"]
    assert found_in(source.format("on_validation_end")) == []


def test_a_metric_that_is_reduced_in_every_call() -> None:
    source = """
    import lightning.pytorch as pl
    from torchmetrics import MeanMetric

    class M(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.each = MeanMetric(dist_sync_on_step=True)
            self.once = MeanMetric()

        def training_step(self, batch):
            self.once(batch)
            self.each(batch)
    """
    assert found_in(source) == ["self.each"]


def test_a_group_of_some_ranks() -> None:
    source = "dist.barrier(group=g)\ndist.all_reduce(t, op, g)\ndist.barrier(dist.group.WORLD)\n"
    project = project_of(f"{DIST}{source}")
    module = project.module(MAIN)
    assert module is not None
    found = [collective_at(module, c) for c in module.nodes(ast.Call)]
    assert [c.grouped for c in found if c] == [True, True, False]


def test_the_functions_others_call() -> None:
    project = project_of("import lightning\nlightning.Trainer\ntrainer.strategy.barrier()\ntrainer.log_dir\n")
    module = project.module(MAIN)
    assert module is not None
    assert [collective_call(module, c) for c in module.nodes(ast.Call)] == ["trainer.strategy.barrier"]
    assert [r for a in module.nodes(ast.Attribute) if (r := collective_read(module, a))] == ["trainer.log_dir"]



def test_a_function_that_comes_to_a_collective() -> None:
    found = reached(f"{DIST}def go():\n    work()\n    dist.barrier()\ngo()\n")
    assert found is not None and found.text == "go() -> torch.distributed.barrier"


def test_through_files_and_methods() -> None:
    source = """
    from tools import sync

    class T:
        def finish(self):
            sync(1)

        def save(self):
            self.finish()

        def step(self):
            self.go()

        def go(self):
            self.save()
    """
    found = reached(source, tools=f"{DIST}def sync(x):\n    for y in x:\n        dist.all_reduce(y)\n")
    assert found is not None
    texts = [s.text for s in found.steps]
    assert texts == ["self.go()", "self.save()", "self.finish()", "sync()", "torch.distributed.all_reduce"]
    assert found.steps[-1].path == "tools.py" and found.steps[-1].line == 4


def test_cycles_end() -> None:
    assert reached("def go():\n    other()\ndef other():\n    go()\ngo()\n") is None
    assert reached(f"{DIST}def go():\n    other()\ndef other():\n    go()\n    dist.barrier()\ngo()\n") is not None


def test_a_collective_under_a_guard_of_the_function_is_its_own_matter() -> None:
    assert reached(f"{DIST}def go():\n    if dist.get_rank() == 0:\n        dist.barrier()\ngo()\n") is None


def test_what_is_passed_decides() -> None:
    source = """
    def go(rank):
        if rank != 0:
            dist.barrier()
        work()
        if rank == 0:
            dist.barrier()
    go(1)
    """
    assert reached(DIST + textwrap.dedent(source)) is None


def test_a_test_for_several_processes_is_no_condition() -> None:
    assert reached(f"{DIST}def go():\n    if dist.is_initialized():\n        dist.barrier()\ngo()\n") is not None
    assert reached(f"{DIST}def go(fsdp):\n    if fsdp:\n        dist.barrier()\ngo(0)\n") is None


def test_a_function_that_only_starts_the_process_group() -> None:
    assert reached(f"{DIST}def go():\n    dist.init_process_group('nccl')\ngo()\n") is None


def test_a_decorated_function_runs_on_rank_zero_only() -> None:
    assert reached(f"{DIST}@rank_zero_only\ndef go():\n    dist.barrier()\ngo()\n") is None


def test_a_group_of_some_ranks_is_left_to_its_members() -> None:
    assert reached(f"{DIST}def go(g):\n    dist.barrier(group=g)\ngo(1)\n") is None


def test_a_function_that_leads_out_of_the_project() -> None:
    assert reached("from elsewhere import go\ngo()\n") is None


OF_PACKAGES = [
    ("from transformers.trainer_pt_utils import distributed_concat", "distributed_concat(x)"),
    ("from timm.utils import reduce_tensor", "reduce_tensor(x, 2)"),
    ("from timm import utils", "utils.distribute_bn(model, 2, True)"),
    ("import ignite.distributed as idist", "idist.all_reduce(x)"),
    ("from mmengine.dist import collect_results", "collect_results(x, 8)"),
    ("from mmdet.apis import multi_gpu_test", "multi_gpu_test(model, loader)"),
    ("from composer.utils import dist", "dist.all_gather_object(x)"),
    ("from monai.utils import evenly_divisible_all_gather", "evenly_divisible_all_gather(x)"),
    ("from torchmetrics.utilities.distributed import gather_all_tensors", "gather_all_tensors(x)"),
]


@pytest.mark.parametrize(("head", "call"), OF_PACKAGES)
def test_helpers_of_other_packages(head: str, call: str) -> None:
    assert found_in(f"{head}\n{call}\n") == [call.partition("(")[0]]


@pytest.mark.parametrize(
    "source",
    [
        "from tools import reduce_tensor\nreduce_tensor(x, 2)\n",
        "from timm.utils import accuracy\naccuracy(x, y)\n",
        "import ignite.distributed as idist\nidist.get_rank()\n",
        "from transformers.trainer_pt_utils import nested_concat\nnested_concat(a, b)\n",
        "from mmdet.apis import single_gpu_test\nsingle_gpu_test(model, loader)\n",
    ],
)
def test_other_functions_of_these_packages_wait_for_nobody(source: str) -> None:
    assert not found_in(source)
