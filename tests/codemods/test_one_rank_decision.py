"""DDP305: one rank decides, and the others do not know."""

from __future__ import annotations

import textwrap

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.one_rank_decision import OneRankDecision
from codemods.sync.rank_local_training_state import RankLocalTrainingState
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of, project_of

RULE = OneRankDecision
PL = "import os\nimport time\nimport torch\nimport lightning.pytorch as pl\n"
DIST = "import math\nimport torch\nimport torch.distributed as dist; WORLD = dist.group.WORLD\n"
REDUCED = "trainer.should_stop = trainer.strategy.reduce_boolean_decision(trainer.should_stop, all=False)\n"


def hook(body: str, *, name: str = "on_train_batch_end", head: str = PL) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{head}\n\nclass C(pl.Callback):\n    def {name}(self, trainer, pl_module, outputs, batch, batch_idx):\n{lines}"


def loop(body: str, *, head: str = DIST, rank: str = "rank") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    top = f"{head}\n\ndef train(model, loader, optimizer, args, {rank}):\n    for batch in loader:\n        loss = model(batch)\n"
    return f"{top}{lines}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    "test",
    ["trainer.is_global_zero and self.bad()", "os.path.exists('stop')", "torch.isnan(outputs['loss'])", "batch.sum() > 3"],
)
def test_should_stop_of_one_rank(test: str) -> None:
    before = hook(f"if {test}:\n    print('enough')\n    trainer.should_stop = True")
    check_transformed(RULE, before, f"{before}        {REDUCED}", unsafe=True)


def test_should_stop_under_a_guard_with_more_in_it() -> None:
    body = "if trainer.is_global_zero:\n    n = self.read()\n    if n > 3:\n        trainer.should_stop = True\nself.n = 1"
    before = hook(body)
    check_transformed(RULE, before, before.replace("        self.n", f"        {REDUCED}        self.n"), unsafe=True)


@pytest.mark.parametrize(
    ("test", "asked"), [("torch.isnan(loss)", "torch.isnan(loss)"), ("not loss.isfinite().all()", "not loss.isfinite().all()")]
)
def test_a_loss_that_is_no_number_in_a_loop_of_raw_torch(test: str, asked: str) -> None:
    before = loop(f"if {test}:\n    continue\nloss.backward()\noptimizer.step()")
    after = loop(
        f"skip = torch.tensor(float({asked}), device=loss.device)\nif dist.is_initialized():\n"
        "    dist.all_reduce(skip, op=dist.ReduceOp.MAX)\nif skip.item() > 0:\n    continue\nloss.backward()\noptimizer.step()"
    )
    check_transformed(RULE, before, after, unsafe=True)


# Told


@pytest.mark.parametrize("head", ["    @pl.utilities.rank_zero_only\n"])
def test_a_decorated_hook(head: str) -> None:
    body = hook("trainer.should_stop = True").replace("    def", f"{head}    def")
    check_told(RULE, body, reason="where every rank comes")


def test_behind_an_early_exit() -> None:
    body = "if not trainer.is_global_zero:\n    return\ntrainer.should_stop = True"
    check_told(RULE, hook(body), reason="where every rank comes")


def test_an_old_lightning() -> None:
    old = PL.replace("lightning.pytorch", "pytorch_lightning")
    body = hook("if time.time() > self.end:\n    trainer.should_stop = True", head=old)
    check_told(RULE, body, reason="before Lightning 1.6", files={"requirements.txt": "pytorch-lightning==1.5.10\n"})


def test_the_control_of_transformers() -> None:
    source = """
    from transformers import TrainerCallback

    class C(TrainerCallback):
        def on_evaluate(self, args, state, control, metrics, **kwargs):
            if state.is_world_process_zero and metrics["eval_loss"] < 1:
                control.should_training_stop = True
    """
    check_told(RULE, source, reason="take the rank test off")


def stepped(*lines: str, base: str = "pl.LightningModule", head: str = PL) -> str:
    body = "".join(f"        {line}\n" for line in ("loss = self(batch)", *lines, "return loss"))
    return f"{head}\nclass M({base}):\n    def training_step(self, batch, batch_idx):\n{body}"


SKIP = ("if torch.isnan(loss):", "    return None")
SPIKE = ("if loss > 3 * self.mean:", "    self.skipped += 1", "    return None")
AGREED = "if self.trainer.strategy.reduce_boolean_decision(bool({}), all=False):"
EMPTY = "    return 0.0 * sum(p.sum() for p in self.parameters()) if self.trainer.world_size > 1 else None"


def test_a_training_step_without_a_loss() -> None:
    after = (AGREED.format("torch.isnan(loss)"), EMPTY)
    check_transformed(RULE, stepped(*SKIP), stepped(*after), unsafe=True)


def test_all_skips_of_a_training_step_are_agreed_on_together() -> None:
    after = (AGREED.format("torch.isnan(loss)"), EMPTY, AGREED.format("loss > 3 * self.mean"), SPIKE[1], EMPTY)
    source = stepped(*SKIP, *SPIKE)
    check_transformed(RULE, source, stepped(*after), unsafe=True)
    assert len(findings_of(RULE, source)) == 1


def test_a_return_that_all_ranks_take_may_stand_between_the_skips() -> None:
    first = ("if self.current_epoch == 0:", "    return loss")
    after = (AGREED.format("torch.isnan(loss)"), EMPTY, *first, AGREED.format("loss > 3 * self.mean"), SPIKE[1], EMPTY)
    check_transformed(RULE, stepped(*SKIP, *first, *SPIKE), stepped(*after), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("if torch.isnan(loss):", "    return"),
        ("if loss > 9:", "    return loss", *SKIP),  # the rank that leaves is missed by those that ask
        ("for part in batch:", "    if torch.isnan(part):", "        return None"),
        ("if self.checks:", *(f"    {line}" for line in SKIP)),
        (*SKIP, "if loss > 9:", "    return"),
        ("if torch.isnan(loss):", "    return None", "else:", "    self.n = 1"),
        ("if torch.isnan(loss):", "    if loss > 1:", "        return loss", "    return None"),
    ],
)
def test_a_training_step_without_a_loss_that_is_told(lines: tuple[str, ...]) -> None:
    check_told(RULE, stepped(*lines), reason="0.0 * sum")


@pytest.mark.parametrize(
    "files",
    [
        {"run.py": "import lightning.pytorch as pl\ntrainer = pl.Trainer(strategy='fsdp')\n"},
        {"run.py": "import lightning.pytorch as pl\ntrainer = pl.Trainer(strategy='deepspeed_stage_3')\n"},
        {"requirements.txt": "pytorch-lightning==1.5.10\n"},
    ],
)
def test_a_training_step_without_a_loss_where_a_loss_of_zeros_is_none(files: dict[str, str]) -> None:
    check_told(RULE, stepped(*SKIP), reason="0.0 * sum", files=files)


NAMED = PL + """
class M(pl.LightningModule):
    def training_step(self, graphs, number):
        edges = graphs.edges
        if TEST:
            return
        return self(graphs).mean()
"""


@pytest.mark.parametrize("test", ["graphs.edges.numel() == 0", "edges.numel() == 0", "not graphs['edges']", "graphs is None"])
def test_a_step_whose_batch_has_a_name_of_its_own(test: str) -> None:
    check_told(RULE, NAMED.replace("TEST", test), reason="0.0 * sum")


@pytest.mark.parametrize(
    "source",
    [
        NAMED.replace("TEST", "number % 2 == 0"),
        NAMED.replace("TEST", "self.frozen"),
        NAMED.replace("TEST", "graphs is None").replace("training_step", "validation_step"),
        NAMED.replace("TEST", "graphs is None").replace("pl.LightningModule", "object"),
    ],
)
def test_a_step_that_all_ranks_leave_out_or_that_has_no_loss(source: str) -> None:
    check_nothing(RULE, source)


def test_a_step_by_hand_that_skips_is_told() -> None:
    source = stepped(*SKIP).replace("    def training_step", "    automatic_optimization = False\n\n    def training_step")
    assert all(f.applicability.value == "display" for f in findings_of(RULE, source))


def test_a_loop_that_rank_0_leaves() -> None:
    check_told(RULE, loop("loss.backward()\nif rank == 0 and args.enough(loss):\n    break"), reason="broadcast")


def test_an_object_that_rank_0_alone_tells_the_loss() -> None:
    body = "loss.backward()\nif rank == 0:\n    stopper.update(loss)\nif stopper.stop:\n    break"
    found = check_told(RULE, loop(body), reason="broadcast")
    assert "`stopper`, which rank 0 alone sets in line" in found.message


@pytest.mark.parametrize(
    "body",
    ["if math.isnan(args.rate * loss):\n    continue\nloss.backward()", "if torch.isnan(loss):\n    return 0.0\nloss.backward()",
     "if torch.isnan(loss):\n    return\nloss.backward()",
     "if torch.isnan(loss):\n    continue\nelse:\n    print(1)\nloss.backward()"],
)  # fmt: skip
def test_a_test_that_cannot_be_taken_as_it_is(body: str) -> None:
    check_told(RULE, loop(body), reason="all_reduce")


def test_a_barrier_in_a_finally() -> None:
    body = f"{DIST}def main(args):\n    try:\n        train(args)\n    finally:\n        close()\n        dist.barrier()\n"
    found = check_told(RULE, f"{body}        dist.destroy_process_group()\n", reason="behind the `try`")
    assert found.span.line == 9


def test_a_checkpoint_of_deepspeed_in_a_finally() -> None:
    body = "def main(model, batches):\n    engine, *_ = deepspeed.initialize(model=model)\n    try:\n        for x in batches:\n"
    step = "            engine.backward(engine(x))\n            engine.step()\n    finally:\n"
    save = "        engine.save_checkpoint('out', tag='last')\n"
    source = f"import deepspeed\n\n\n{body}{step}{save}"
    assert "a rank that raised runs it" in check_told(RULE, source, reason="behind the `try`").message
    check_nothing(RULE, source.replace("    finally:\n    ", "").replace("try:", "if batches:"))


CLEAN_UP = (
    DIST + "def clean_up(group):\n    if dist.is_available() and dist.is_initialized():\n        dist.barrier()\n"
    "        dist.destroy_process_group()\n\n\ndef main(args):\n    try:\n        train(args)\n    finally:\n"
    "        clean_up(args.group)\n"
)


def test_a_function_in_a_finally_that_waits_wherever_there_is_a_group() -> None:
    found = check_told(RULE, CLEAN_UP, reason="behind the `try`")
    assert "which comes to dist.barrier" in found.message and found.span.line == CLEAN_UP.splitlines().index("    finally:") + 2


@pytest.mark.parametrize(
    ("old", "new"),
    [("if dist.is_available() and dist.is_initialized():", "if group.ended_well:"),  # a flag may say that all came here
     ("if dist.is_available() and dist.is_initialized():",
      "if not group.ended_well:\n        return\n    if dist.is_initialized():"),
     ("        dist.barrier()\n", ""),
     ("    finally:\n        clean_up", "    finally:\n        if args.rank == 0:\n            clean_up"),
     ("    finally:\n        clean_up(args.group)", "    finally:\n        close()\n    clean_up(args.group)"),
     ("    finally:", "    except Exception:\n        os._exit(1)\n    finally:")],
)  # fmt: skip
def test_functions_in_a_finally_that_may_wait_for_nobody(old: str, new: str) -> None:
    check_nothing(RULE, CLEAN_UP.replace(old, new))


# Nothing to say


@pytest.mark.parametrize(
    "end",
    ["finally:\n        dist.destroy_process_group()\n", "finally:\n        close()\n    dist.barrier()\n",
     "    yield\n    finally:\n        dist.barrier()\n", "finally:\n        if args.rank == 0:\n            dist.barrier()\n"],
)  # fmt: skip
def test_a_finally_that_waits_for_nobody(end: str) -> None:
    check_nothing(RULE, f"{DIST}def main(args):\n    try:\n        train(args)\n    {end}")


@pytest.mark.parametrize(
    "body",
    ["if trainer.current_epoch > 3:\n    trainer.should_stop = True",
     "if trainer.callback_metrics['val_loss'] < 1:\n    trainer.should_stop = True",
     "bad = trainer.strategy.reduce_boolean_decision(time.time() > self.end)\nif bad:\n    trainer.should_stop = True",
     "trainer.should_stop = True",
     "trainer.should_stop = False"],
)  # fmt: skip
def test_what_every_rank_decides_alike(body: str) -> None:
    check_nothing(RULE, hook(body))


@pytest.mark.parametrize(
    "body",
    ["dist.all_reduce(loss)\nif torch.isnan(loss):\n    continue\nloss.backward()",
     "loss = reduce_dict(loss)\nif torch.isnan(loss):\n    break\nloss.backward()",
     "if torch.isnan(loss):\n    continue\nprint(loss)",
     "if rank == 0 and args.enough(loss):\n    break",
     "loss.backward()\nif args.early_stop:\n    break",
     "loss.backward()\nif rank == 0:\n    stopper.update(loss)\ndist.broadcast_object_list([stopper])\n"
     "if stopper.stop:\n    break"],
)  # fmt: skip
def test_loops_that_are_right_or_wait_for_nobody(body: str) -> None:
    check_nothing(RULE, loop(body))


def test_a_step_that_returns_nothing_by_configuration() -> None:
    source = f"{PL}class M(pl.LightningModule):\n    def training_step(self, batch, batch_idx):\n"
    source += "        if self.hparams.gan:\n"
    check_nothing(RULE, f"{source}            return None\n        return self(batch)\n")


def test_the_tests_of_a_repository_are_left_alone() -> None:
    source = hook("if time.time() > self.end:\n    trainer.should_stop = True")
    check_nothing(RULE, source, path="tests/test_stop.py")


# What may be missing on a rank


def test_a_batch_that_may_be_missing() -> None:
    source = (
        f"{DIST}\n\ndef train(model, optimizer, epoch_iterator):\n    for batch in epoch_iterator:\n        if batch is None:\n"
        "            continue\n        model(batch).backward()\n        optimizer.step()\n"
    )
    assert "does not call" in check_told(RULE, source, reason="reduce the deciding number").message


NET = (
    "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\nclass Net(nn.Module):\n"
    "    def forward(self, x):\n        {head}\n"
    "        return x.sum()\n\n\nclass Fit:\n    def __init__(self, loader):\n"
    "        self.net = DDP(Net())\n        self.loader = loader\n\n    def train(self):\n        for batch in self.loader:\n"
    "            out = self.net(batch)\n            if out is None:\n                continue\n            out.backward()\n"
)


def test_an_output_that_may_be_missing() -> None:
    check_told(RULE, NET.format(head="if len(x) == 0:\n            return None"), reason="reduce the deciding number")
    check_nothing(RULE, NET.format(head="x = x * 2"))


def test_a_number_among_measured_ones() -> None:
    source = (
        f"{DIST}from torch.utils.data import DataLoader, DistributedSampler\n\n\ndef scores(batch):\n"
        f"    found = torch.tensor([rate(x) for x in batch])\n    if -1 in found:\n        return None\n"
        "    return found\n\n\ndef train(model, data):\n    for batch in DataLoader(data, sampler=DistributedSampler(data)):\n"
        "        found = scores(batch)\n"
        "        if found is not None:\n            model(batch, found).backward()\n"
    )
    check_told(RULE, source, reason="reduce the deciding number")
    check_nothing(RULE, source.replace("-1 in found", "'score' in found"))


def test_an_exit_as_if_all_were_done_in_an_inner_loop() -> None:
    source = (
        f"{DIST}\n\ndef train(model, loader, writer, rank):\n    for batch in loader:\n        model(batch).backward()\n"
        "        if rank == 0:\n            for name, p in model.named_parameters():\n                try:\n"
        "                    writer.add_histogram(name, p)\n                except ValueError:\n                    {end}\n"
    )
    assert "ends as if all were done" in check_told(RULE, source.format(end="exit()"), reason="let every rank end").message
    check_nothing(RULE, source.format(end="raise"))
    check_nothing(RULE, source.format(end="exit(1)"))


def test_an_exit_in_the_forward_of_a_model() -> None:
    source = (
        f"{DIST}from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        try:\n"
        f"            return solve(x)\n"
        "        except RuntimeError:\n            {end}\n"
    )
    check_told(RULE, source.format(end="exit()"), reason="let every rank end")
    check_nothing(RULE, source.format(end="return x"))
    check_nothing(RULE, source.format(end="exit()").replace("nn.Module", "object"))


WORN = """\
import torch
from accelerate import Accelerator


class Trainer:
    def __init__(self, model, accelerator, args):
        self.model = model
        self.accelerator = accelerator
        self.args = args
        self.worn_out = False

    def step(self, number):
        loss = self.model(number)
        self.accelerator.backward(loss)
        mean = self.accelerator.gather(loss).mean().item()
        if self.args["log"] and self.accelerator.is_main_process:
            if mean > self.args["most"]:
                self.worn_out = True
"""
LOOP = """\
from accelerate import Accelerator

from loop import Trainer


def main(net, args, count):
    accelerator = Accelerator()
    net = accelerator.prepare(net)
    trainer = Trainer(net, accelerator, args)
    for number in range(count):
        trainer.step(number)
        accelerator.wait_for_everyone()
        if trainer.worn_out:
            break
"""


def test_a_flag_of_an_object_that_rank_zero_alone_sets() -> None:
    check_told(RULE, LOOP, reason="gather the deciding number first", files={"loop.py": WORN})


def test_a_flag_that_all_ranks_set_or_that_another_file_writes() -> None:
    everyone = WORN.replace(" and self.accelerator.is_main_process", "")
    check_nothing(RULE, LOOP, files={"loop.py": everyone})
    agreed = "def agree(trainer):\n    trainer.worn_out = False\n"
    check_nothing(RULE, LOOP, files={"loop.py": WORN, "other.py": agreed})


def test_a_loss_that_is_no_number_ends_the_rank() -> None:
    source = (
        f"{DIST}import math\nimport sys\nfrom torch.utils.data import DataLoader, DistributedSampler\n\n\n"
        "def train(model, data):\n    for batch in DataLoader(data, sampler=DistributedSampler(data)):\n"
        "        loss = model(batch).mean()\n        if not math.isfinite(loss.item()):\n            sys.exit(STATUS)\n"
        "        loss.backward()\n"
    )
    for status in ("", "0"):
        check_told(RULE, source.replace("STATUS", status), reason="let every rank end")
    for status in ("1", "'no number'", "-1"):  # the launcher ends the others
        check_nothing(RULE, source.replace("STATUS", status))
        job = {"job.sh": "torchrun --nproc_per_node=8 module.py\n"}
        check_nothing(RULE, source.replace("STATUS", status), files=job)


def test_an_exception_that_a_server_catches() -> None:
    source = (
        f"{DIST}IMPORT\n\n\ndef train(model, batches):\n    for batch in batches:\n        try:\n"
        "            rows = load(batch)\n        except RuntimeError:\n            continue\n"
        "        loss = model(rows)\n        loss.backward()\n"
    )
    check_told(RULE, source.replace("IMPORT", "import math"), reason="let the exception end the process")
    check_nothing(RULE, source.replace("IMPORT", "from flask import Flask"))


def test_a_time_among_the_numbers_of_a_dict() -> None:
    source = (
        f"{DIST}import time\n\n\ndef train(model, batches, limit):\n    numbers = {{}}\n    for batch in batches:\n"
        "        LINE\n        if numbers['seconds'] > limit:\n            break\n        model(batch).backward()\n"
    )
    check_nothing(RULE, source.replace("LINE", "numbers.update(measured(time.time()))"))


LOOP_OF_ALL = (
    "import torch.distributed as dist\n\n\ndef train(model, loader, rank, last):\n    dist.init_process_group('nccl')\n"
    "    rank = dist.get_rank()\n    epoch = 0\n    while epoch < last:\n        for x in loader:\n"
    "            dist.all_reduce(model(x))\n        if rank == 0:\n            if plateau():\n                epoch = {0}\n"
    "{1}        epoch += 1\n"
)


def test_what_rank_zero_sets_is_told_where_it_sets_it() -> None:
    [found] = findings_of(RULE, LOOP_OF_ALL.format("last - 5", ""))
    assert found.span.line == 13 and "only some ranks set this, and in line 8" in found.message


def test_what_is_handed_to_all_ranks_is_no_decision_of_one() -> None:
    source = LOOP_OF_ALL.format("last - 5", "        epoch = comm.bcast(epoch)\n")
    check_nothing(RULE, source)


MODULE = "import torch\nimport lightning.pytorch as pl\n\n\nclass M(pl.LightningModule):\n"
STEP = "    def training_step(self, batch, i):\n        out = self.safely(batch, i)\n        self.count()\n        return out\n\n"
SAFELY = (
    "    def safely(self, batch, i):\n        try:\n            return self.step(batch, i)\n        except RuntimeError as e:\n"
    "            if 'out of memory' in str(e):\n                return None\n            raise e\n\n"
)
INNER = (
    "    def step(self, batch, i):\n        if batch['size'].sum() == 1:\n            return None\n"
    "        return self.net(batch).mean()\n"
)


def test_a_loss_that_a_helper_of_the_step_leaves_out() -> None:
    source = MODULE + STEP + SAFELY + INNER
    assert [f.span.line for f in findings_of(RULE, source)] == [16, 21]


def test_an_exception_of_the_backward_hook() -> None:
    hook_ = "    def backward(self, loss):\n        try:\n            loss.backward()\n        except RuntimeError:\n"
    hook_ += "            {}\n"
    [found] = findings_of(RULE, MODULE + hook_.format("self.free()"))
    assert found.span.line == 9 and "goes on without" in found.message
    check_nothing(RULE, MODULE + hook_.format("raise"))


@pytest.mark.parametrize(
    "source",
    [
        MODULE + STEP.replace("training_step", "validation_step") + SAFELY + INNER,
        MODULE + STEP.replace("return out", "return self.loss") + SAFELY + INNER,  # what the helper gives is dropped
        MODULE + STEP + SAFELY.replace("return None", "raise") + INNER.replace("return None", "batch = self.padded(batch)"),
        MODULE.replace("pl.LightningModule", "torch.nn.Module") + STEP + SAFELY + INNER,
    ],
)
def test_helpers_that_make_no_loss(source: str) -> None:
    check_nothing(RULE, source)


# Values under keys

STORED = (
    f"{DIST}from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n\n\n"
    "class Store:\n    def __init__(self):\n        self.rows = {}\n\n"
    "    def put(self, key, value):\n        self.rows[key] = value\n\n"
    "    def get(self, key):\n        return self.rows[key]\n\n\n"
    "def train(net, rows, store=None):\n    store = Store()\n    model = DDP(net)\n    store.put('step', 0)\n"
    "    for batch in DataLoader(rows, sampler=DistributedSampler(rows)):\n        loss = model(batch).mean()\n"
    "        store.put('loss', loss.item())\n        if store.get('KEY') > 3:\n            break\n        loss.backward()\n"
)


def test_a_value_that_a_store_keeps_under_the_key_that_is_asked_for() -> None:
    check_told(RULE, STORED.replace("KEY", "loss"), reason="reduce the deciding number")


def test_another_value_of_the_store() -> None:
    check_nothing(RULE, STORED.replace("KEY", "step"))


HANDED = (
    f"{DIST}from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n\n\n"
    "class Run:\n    def __init__(self, board):\n        self.board = board\n\n"
    "    def train(self, net, rows):\n        model = DDP(net)\n"
    "        for batch in DataLoader(rows, sampler=DistributedSampler(rows)):\n            loss = model(batch).mean()\n"
    "            self.board.update(TOLD, loss.item())\n            self.board.plus_one('step')\n"
    "            if ASKED > 3:\n                break\n            loss.backward()\n"
)


@pytest.mark.parametrize("told", ["'loss'", "['loss']", "('now', 'loss')"])
@pytest.mark.parametrize("asked", ["self.board.get('step')", "self.board['step']"])
def test_another_value_of_a_store_whose_class_is_not_seen(told: str, asked: str) -> None:
    check_nothing(RULE, HANDED.replace("TOLD", told).replace("ASKED", asked))


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("['loss']", "self.board.get('loss')"),
        ("('now', 'loss')", "self.board.get('now', 'loss')"),
        ("['loss']", "self.board.get(self.watched)"),
        ("['loss']", "self.board.get('step') - self.board.get('loss')"),
        ("self.watched", "self.board.get('loss')"),
    ],
)
def test_the_value_of_a_store_whose_class_is_not_seen(told: str, asked: str) -> None:
    check_told(RULE, HANDED.replace("TOLD", told).replace("ASKED", asked), reason="reduce the deciding number")


def test_of_several_waits_the_one_under_the_test_is_named() -> None:
    source = loop(
        "value = loss.item()\nloss.backward()\nif not math.isnan(value):\n    print(value)\n    dist.barrier()\n"
        "if args.step % 10 == 0:\n    dist.barrier()",
        head=f"{DIST}from torch.nn.parallel import DistributedDataParallel\n",
    )
    assert "barrier (line 14)" in findings_of(RULE, source)[0].message


# What a callback collects

WATCH = (
    "import torch\nimport lightning.pytorch as pl\n\n\nclass Watch(pl.Callback):\n    def __init__(self, patience):\n"
    "        self.scores, self.seen, self.patience = [], [], patience\n\n    def on_validation_start(self, trainer, pl_module):\n"
    "        self.seen = []\n\n"
    "    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):\n"
    "        self.seen.append(GIVEN)\n\n"
    "    def worse(self):\n        for score in self.scores[-self.patience:]:\n            if score > self.scores[0]:\n"
    "                return False\n        return True\n\n    def on_validation_epoch_end(self, trainer, pl_module):\n"
    "        self.scores.append(torch.mean(torch.tensor(self.seen)))\n        if self.worse():\n            exit(STATUS)\n"
)


def test_an_end_by_what_was_collected_of_own_batches() -> None:
    found = check_told(RULE, WATCH.replace("GIVEN", "outputs['loss']").replace("STATUS", "0"), reason="reduce the test")
    assert "leaves the others waiting" in found.message


@pytest.mark.parametrize(("given", "status"), [("batch_idx", "0"), ("outputs['loss']", "1"), ("trainer.current_epoch", "0")])
def test_what_was_collected_is_the_same_or_the_launcher_ends_the_others(given: str, status: str) -> None:
    check_nothing(RULE, WATCH.replace("GIVEN", given).replace("STATUS", status))


SINCE = (
    f"{DIST}import time\n\n\ndef train(net, batches):\n    rank, since = dist.get_rank(), None\n    for batch in batches:\n"
    "        loss = net(batch)\n        if since is not None:\n            dist.all_reduce(loss)\nALL"
    "        if rank == 0:\n            since = time.time()\n"
)


def test_a_name_that_rank_0_alone_gives_something() -> None:
    """The test of the name is one of the rank, and DDP301 tells it."""
    check_nothing(RULE, SINCE.replace("ALL", ""))
    check_told(CollectiveUnderRankGuard, SINCE.replace("ALL", ""), reason="")


def test_a_name_that_every_rank_gives_something_and_rank_0_again() -> None:
    check_nothing(RULE, SINCE.replace("ALL", "        since = time.time()\n"))


def test_an_object_that_is_told_the_rank_is_not_made_of_it() -> None:
    """A checkpointer that only rank 0 lets write gives all ranks the same epoch to begin with."""
    source = (
        "import torch.distributed as dist\nfrom savers import Checkpointer\n\n\ndef main(model, rounds):\n"
        "    saver = Checkpointer(model, save_to_disk=dist.get_rank() == 0)\n    first = saver.resume_or_load().get('epoch', 0)\n"
        "    if first > 3:\n        dist.all_reduce(rounds)\n"
    )
    check_nothing(OneRankDecision, source)


# Draws under a seed of the rank's own

PASSES = (
    f"{DIST}import random\nimport numpy as np\n\n\ndef train(model, loader, rank, seed):\n    SEED\n    for batch in loader:\n"
    "        model(batch).mean().backward()\n        if DRAW < 0.3:\n            model(batch + 1).mean().backward()\n\n\n"
    "def main(net, loader, seed):\n    train(torch.nn.parallel.DistributedDataParallel(net), loader, dist.get_rank(), seed)\n"
)


def passes(seed: str, draw: str) -> str:
    return PASSES.replace("SEED", seed).replace("DRAW", draw)


OWN_SEEDS = [
    ("random.seed(seed + rank)", "random.random()"),
    ("np.random.seed(seed * 100 + rank)", "np.random.rand()"),
    ("torch.manual_seed(seed + rank)", "torch.rand(1).item()"),
    ("draw = random.Random(rank)", "draw.random()"),
    ("draw = np.random.default_rng(seed + rank)", "draw.uniform()"),
    ("draw = torch.Generator().manual_seed(seed + rank)", "torch.rand(1, generator=draw).item()"),
    ("draw = torch.Generator()\n    draw.manual_seed(seed + rank)", "torch.rand(1, generator=draw).item()"),
]


@pytest.mark.parametrize(("seed", "draw"), OWN_SEEDS)
def test_a_draw_under_a_seed_of_the_rank(seed: str, draw: str) -> None:
    found = check_told(RULE, passes(seed, draw), reason="so that all decide alike")
    assert found.message.startswith("each process decides on its own over")


@pytest.mark.parametrize(("seed", "draw"), [(s.replace(" + rank", "").replace("(rank)", "(seed)"), d) for s, d in OWN_SEEDS])
def test_a_draw_under_one_seed(seed: str, draw: str) -> None:
    check_nothing(RULE, passes(seed, draw))


def test_draws_of_another_library_or_under_several_seeds() -> None:
    check_nothing(RULE, passes("random.seed(seed + rank)", "np.random.rand()"))
    check_nothing(RULE, passes("random.seed(seed)\n    random.seed(seed + rank)", "random.random()"))
    check_nothing(RULE, passes("pass", "random.random()"))


def test_a_draw_that_decides_over_no_collective() -> None:
    source = passes("random.seed(seed + rank)", "random.random()")
    check_nothing(RULE, source.replace("model(batch + 1).mean().backward()", "batch = batch + 1"))


# Objects that are handed a wrapper, or only stand on one rank

STEPS = f"""{DIST}from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.body(x)


class Steps:
    def __init__(self, model):
        self.model = model

    def step(self, batch):
        each = self.model(batch).mean(1)
        if (each > 1).any():
            each = each + self.model(batch * 2).mean(1)
        each.mean().backward()


def main(data):
    loader = DataLoader(data, sampler=DistributedSampler(data))
    steps = Steps(DistributedDataParallel(Net()))
    for batch in loader:
        steps.step(batch)
"""


def test_a_second_forward_of_a_wrapper_that_an_object_is_handed() -> None:
    found = check_told(RULE, STEPS, reason="reduce the deciding number")
    assert "self.model(), the forward of the wrapper" in found.message
    check_nothing(RULE, STEPS.replace("nn.BatchNorm1d(3)", "nn.Linear(3, 3)"))
    check_nothing(RULE, STEPS.replace("DistributedDataParallel(Net())", "Net()"))


FOLDER = f"""{DIST}from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.body(x)


class Reports:
    def __init__(self, folder):
        self.folder = folder if dist.get_rank() == 0 else None

    @property
    def active(self):
        return self.folder is not None

    def show(self, model, rows):
        torch.save(model(rows), self.folder)


def main(loader, folder, rows):
    model = DistributedDataParallel(Net())
    reports = Reports(folder)
    for batch in loader:
        model(batch).mean().backward()
        if reports.active:
            reports.show(model, rows)
"""


def test_an_object_that_has_something_on_one_rank_alone() -> None:
    found = check_told(CollectiveUnderRankGuard, FOLDER, reason="")
    assert "by `if reports.active` only some ranks come to model(), the forward of the wrapper" in found.message
    for rule in (RULE, CollectiveUnderRankGuard):
        check_nothing(rule, FOLDER.replace("folder if dist.get_rank() == 0 else None", "folder"))
        check_nothing(rule, FOLDER.replace("reports.show(model, rows)", "reports.show(model.module, rows)"))


# Callbacks that others hand what they look at

STOPS = """\
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments


class Losses(Trainer):
    last_loss = None

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss = super().compute_loss(model, inputs, **kwargs)
        self.last_loss = loss.item()
        return loss


class Stop(TrainerCallback):
    def __init__(self, target):
        self.target, self.trainer = target, None

    def on_step_end(self, args, state, control, **kwargs):
        if self.trainer.last_loss < self.target:
            control.should_training_stop = True


def main(model, rows):
    stop = Stop(0.5)
    trainer = Losses(model=model, args=TrainingArguments("out"), train_dataset=rows, callbacks=[stop])
    stop.trainer = trainer
    trainer.train()
"""


def test_a_callback_that_is_handed_the_trainer_later() -> None:
    found = check_told(RULE, STOPS, reason="reduce the decision over the ranks first")
    assert "a rank that stops leaves the others in the next backward" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [("stop.trainer = trainer", "other.trainer = trainer"),
     ("self.last_loss = loss.item()", "self.last_loss = self.accelerator.gather(loss).mean().item()"),
     ("self.last_loss = loss.item()", "self.last_loss = 0.1"),
     ("self.trainer.last_loss < self.target", "state.global_step > self.target")],
)  # fmt: skip
def test_a_callback_that_all_ranks_decide_alike(old: str, new: str) -> None:
    check_nothing(RULE, STOPS.replace(old, new))


JOINS = (
    f"{DIST}import os\n\n\ndef own():\n    return int(os.environ.get('RANK', '0'))\n\n\n"
    "def join():\n    try:\n        rank = own()\n        if int(os.environ['WORLD_SIZE']) < 2:\n            return None\n"
    "    except KeyError:\n        return None\n    dist.init_process_group('nccl', rank=rank)\n    return rank\n\n\n"
    "def main(model, loader):\n    place = join()\n    parallel = TEST\n    if parallel:\n        dist.barrier()\n"
)


def test_whether_there_is_a_rank_is_the_same_on_all() -> None:
    check_nothing(RULE, JOINS.replace("TEST", "place is not None"))
    check_nothing(RULE, JOINS.replace("parallel = TEST\n    if parallel", "if place is not None"))
    assert findings_of(RULE, JOINS.replace("TEST", "place > 1"))


BAR = (
    f"{DIST}from tqdm import tqdm, trange\n\n\ndef train(model, loader, n, loss_of):\n    model = DDP(model)\n"
    "    rounds = ONE if dist.get_rank() == 0 else OTHER\n    for epoch in rounds:\n"
    "        loss = loss_of(model(epoch))\n        dist.all_reduce(loss)\n"
)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("trange(n, colour='red')", "range(n)", False), ("range(n)", "trange(n)", False),
        ("tqdm(range(1, n))", "range(1, n)", False), ("tqdm(range(n))", "range(n + 1)", True),
        ("trange(n)", "range(2 * n)", True),
    ],
)  # fmt: skip
def test_a_bar_on_rank_0_has_as_many_rounds(one: str, other: str, told: bool) -> None:
    source = BAR.replace("ONE", one).replace("OTHER", other)
    assert bool(findings_of(RULE, source)) is told


def test_a_bar_by_statements_has_as_many_rounds() -> None:
    chosen = "    if dist.get_rank() == 0:\n        rounds = trange(n)\n    else:\n        rounds = range(n)\n"
    given = "    rounds = ONE if dist.get_rank() == 0 else OTHER\n"
    check_nothing(RULE, BAR.replace(given, chosen))
    assert findings_of(RULE, BAR.replace(given, chosen.replace(" range(n)\n", " range(2 * n)\n")))


def test_a_method_is_equal_to_no_number() -> None:
    """Written without its call: the test is the same on all ranks, whatever the rows are."""
    body = "if TEST == 0:\n    break\nloss.backward()\noptimizer.step()"
    wrap = "    model = torch.nn.parallel.DistributedDataParallel(model)\n"
    wrap += "    loader = DataLoader(loader, 8, sampler=Share(loader))\n"
    names = "from torch.utils.data import DataLoader, DistributedSampler as Share\n"
    source = loop(body, head=names + DIST).replace("    for batch in", f"{wrap}    for batch in")
    check_nothing(RULE, source.replace("TEST", "batch.__len__"))
    assert findings_of(RULE, source.replace("TEST", "batch.sum()"))


FULL = (
    f"{DIST}\n\ndef train(model, batches):\n    for batch in batches:\n        try:\n            loss = model(batch).mean()\n"
    "            loss.backward()\n        except RuntimeError as e:\n{handler}            torch.cuda.empty_cache()\n"
)


def full(*handler: str) -> str:
    return FULL.replace("{handler}", "".join(f"            {line}\n" for line in handler))


@pytest.mark.parametrize(
    "handler",
    [
        ("if 'out of memory' in str(e):", "    print('left out')", "    continue", "raise"),
        ("if 'out of memory' not in str(e):", "    raise e"),
        ("if 'CUDA' in str(e):", "    print(e)", "else:", "    raise"),
        ("if len(batch) > 3:", "    raise", "print(e)"),
    ],
)
def test_a_batch_that_is_left_out_where_the_memory_is_full(handler: tuple[str, ...]) -> None:
    check_told(RULE, full(*handler), reason="let the exception end the process")


def test_a_backward_pass_that_is_caught_alone() -> None:
    both = "        try:\n            loss = model(batch).mean()\n"
    alone = full("print(e)").replace(both, "        loss = model(batch).mean()\n        try:\n")
    found = check_told(RULE, alone, reason="let the exception end the process")
    assert "goes on without loss.backward()" in found.message
    check_nothing(RULE, alone.replace("            torch.cuda.empty_cache()", "            raise"))
    check_nothing(RULE, alone.replace("loss.backward()", "dist.all_reduce(loss)"))  # its errors meet all ranks


@pytest.mark.parametrize(
    "handler",
    [
        ("raise",),
        ("if 'out of memory' in str(e):", "    print(torch.cuda.memory_summary())", "raise e"),
        ("if 'out of memory' in str(e):", "    raise MemoryError from e", "else:", "    raise"),
        ("if 'size mismatch' in str(e):", "    continue", "raise"),  # an error of all ranks
        ("if 'out of memory' in str(e):", "    os._exit(1)", "raise"),
    ],
)
def test_an_error_that_ends_the_rank(handler: tuple[str, ...]) -> None:
    check_nothing(RULE, full(*handler))


def test_the_way_out_is_shown() -> None:
    found = findings_of(RULE, full("if 'out of memory' in str(e):", "    continue", "raise"))
    assert any(e.text == "goes on by `continue`" for e in found[0].evidence)


HELPER = (
    f"{DIST}\n\ndef loss_of(model, batch):\n    try:\n        return model(batch).mean()\n    except RuntimeError as e:\n"
    "        print(e)\n        return None\n\n\ndef train(model, data):\n"
    "    for batch in torch.utils.data.DataLoader(data, sampler=torch.utils.data.DistributedSampler(data)):\n"
    "        loss = loss_of(model, batch)\n        if loss is None:\n            continue\n        loss.backward()\n"
)


def test_a_loss_that_a_helper_gives_up() -> None:
    check_told(RULE, HELPER, reason="reduce the deciding number over the ranks first")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("except RuntimeError", "except ImportError"),  # of all ranks
        ("        return None\n", "        raise\n"),
        ("model(batch).mean()", "torch.zeros(1)"),  # of nothing that is the rank's own
        (
            "        if loss is None:\n",
            "        bad = torch.tensor(float(loss is None))\n        dist.all_reduce(bad)\n        if bad.item() > 0:\n",
        ),
    ],
)
def test_a_helper_that_gives_nothing_up(old: str, new: str) -> None:
    assert old in HELPER
    check_nothing(RULE, HELPER.replace(old, new))


def test_an_error_in_a_loop_over_a_share_is_told_beside_the_loop() -> None:
    source = (
        f"{DIST}\n\ndef train(model, files, rank, world_size):\n    for name in files[rank::world_size]:\n        try:\n"
        "            rows = torch.load(name)\n        except Exception as e:\n            print(e)\n            continue\n"
        "        model(rows).backward()\n"
    )
    check_told(RULE, source, reason="let the exception end the process")
    check_nothing(RULE, source.replace("            continue\n", "            raise\n"))


@pytest.mark.parametrize("name", ["use_render_loss", "log_losses", "loss_weight", "loss_type"])
def test_nothing_of_a_setting_that_is_named_after_a_loss(name: str) -> None:
    lines = f"{name} = np.random.rand() < args.share\nloss.backward()\nif {name}:\n    dist.all_reduce(args.seen)"
    check_nothing(RULE, loop(lines, head=f"import numpy as np\n{DIST}"))


def test_told_of_a_loss_that_only_its_name_shows() -> None:
    lines = "aux_loss = args.aux(batch)\nloss.backward()\nif aux_loss > 3:\n    dist.all_reduce(args.seen)"
    check_told(RULE, loop(lines), reason="reduce the deciding number")


PLATEAU = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, DistributedSampler


def train(rank, model, data, optimizer):
    dist.init_process_group("nccl", rank=rank)
    model, scheduler = DDP(model), ReduceLROnPlateau(optimizer)
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for epoch in range(9):
        total = 0.0
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if rank == 0:
            scheduler.step(total)


if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(1, 2, 3), nprocs=2)
"""


def test_a_schedule_that_rank_0_alone_steps_is_told_as_that() -> None:
    check_nothing(RULE, PLATEAU)
    found = check_told(RankLocalTrainingState, PLATEAU, reason="let every rank do it")
    assert "rank 0 alone changes the schedule" in found.message
    everybody = PLATEAU.replace("        if rank == 0:\n            scheduler", "        scheduler")
    check_told(RULE, everybody, reason="reduce the deciding number")


SCORED = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torch.nn.parallel import DistributedDataParallel


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total += value * n
        self.count += n

    @property
    def mean(self):
        return self.total / self.count


def scores_of(output, target, most=(1,)):
    found = []
    order = output.topk(max(most))[1].t()
    hits = order.eq(target.view(1, -1))
    for k in most:
        right = hits[:k].float().sum()
        found.append(right / target.size(0))
    return found


def validate(val_loader, model):
    scores = Meter()
    for images, target in val_loader:
        images = images.cuda()
        output = model(images)
        first, fifth = scores_of(output, target, most=(1, 5))
        scores.update(first[0], images.size(0))
    return scores.mean


def main(model, train_data, data, args):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(model.cuda())
    loader = DataLoader(train_data, 8, sampler=DistributedSampler(train_data))
    {line}
    best = 0.0
    for epoch in range(9):
        for x, y in loader:
            out = model(x)
            first, fifth = scores_of(out, y, most=(1, 5))
            (out - y).sum().backward()
        score = validate(val_loader, model)
        best = max(score, best)
        if best >= args.enough:
            break


if __name__ == "__main__":
    main(None, None, None, None)
"""


@pytest.mark.parametrize(
    "line",
    [
        "val_loader = DataLoader(folder(args.root), 8, shuffle=False)",
        "val_loader = DataLoader(folder(args.root), batch_size=8)",
        "val_loader = DataLoader(data, 8)",
    ],
)
def test_a_score_of_the_whole_set_far_from_its_loader(line: str) -> None:
    check_nothing(RULE, SCORED.format(line=line))


def test_a_score_of_a_share_far_from_its_loader() -> None:
    line = "val_loader = DataLoader(folder(args.root), 8, sampler=DistributedSampler(folder(args.root)))"
    assert findings_of(RULE, SCORED.format(line=line))


def test_a_whole_set_and_buffers_of_each_rank() -> None:
    """apex's wrapper sends no buffers: the ranks' models, and so their scores, differ a little, and one may end alone."""
    sampler = "DistributedSampler(data) if shared else None"
    made = f"def loader_of(data, shared=False):\n    return DataLoader(data, 8, sampler={sampler})"
    text = SCORED.format(line="val_loader = loader_of(data)").replace("\n\ndef main(", f"\n\n{made}\n\n\ndef main(", 1)
    check_nothing(RULE, text)
    assert findings_of(RULE, text.replace("from torch.nn.parallel", "from apex.parallel"))


EPOCH_END = """\
import pytorch_lightning as pl
import torch


class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).sum()
        MADE

    def training_epoch_end(self, outputs):
        TEST
            self.trainer.strategy.barrier()


pl.Trainer(devices=2, strategy="ddp").fit(Net())
"""
V1 = {"requirements.txt": "pytorch-lightning==1.6.2\n"}


@pytest.mark.parametrize(
    ("made", "test", "count"),
    [
        ("return loss", "if torch.stack([o['loss'] for o in outputs]).mean() > 3:", 1),
        ("return {'loss': loss}", "worst = max(o['loss'] for o in outputs)\n        if worst > 3:", 1),
        ("return self.all_gather(loss).mean()", "if outputs[-1]['loss'] > 3:", 0),
        ("return loss", "if len(outputs) > 3:", 0),
        ("return loss", "if self.current_epoch > 3:", 0),
    ],
)
def test_what_the_steps_gave_back_is_this_ranks_own(made: str, test: str, count: int) -> None:
    source = EPOCH_END.replace("MADE", made).replace("TEST", test)
    assert len(findings_of(OneRankDecision, source, files=V1)) == count


# Two roles

ROLES = """
    import argparse
    import torch
    import torch.distributed as dist

    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--helpers", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    among = dist.new_group(list(range(args.helpers)))

    if args.local_rank < args.helpers:
        while True:
            order = [None]
            dist.scatter_object_list(order, [None] * (args.helpers + 1), src=args.helpers)
            if order[0] is None:
                break
            dist.barrier(group=among)
    else:
        held = list()
        for row in open("rows.txt"):
            held.append(row)
            if len(held) == args.helpers:
                dist.scatter_object_list([None], held, src=args.helpers)
                held = list()
    """


def test_what_one_role_sets_and_asks_parts_nobody() -> None:
    check_nothing(RULE, ROLES)
    check_nothing(RULE, ROLES.replace("    else:", "    elif args.local_rank == args.helpers:"))


def test_what_one_role_sets_still_decides_below() -> None:
    below = "    if len(held) == 2:\n        dist.barrier()\n"
    [found] = findings_of(RULE, textwrap.dedent(ROLES) + textwrap.dedent(below))
    assert "only some ranks set this" in found.message


@pytest.mark.parametrize("given", ["epoch", "epoch + 1", "total / (epoch + 1)"])
def test_the_number_of_the_pass_is_no_score(given: str) -> None:
    source = PLATEAU.replace("        if rank == 0:\n            scheduler.step(total)", f"        scheduler.step({given})")
    source = source.replace("range(9)", "range(first(loader), 9)")
    assert bool(findings_of(RULE, source)) is ("total" in given)


CONTRAST = (
    "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
    "class Net(torch.nn.Module):\n    def forward(self, a, b):\n        a, b = self.embed(a), self.embed(b)\n{made}"
    "        return (a @ b.T).logsumexp(1).mean()\n\n\ndef build(args):\n    net = Net()\n"
    "    net.to(args.device)\n    return net\n\n\n"
    "def run(model, loader, optimizer, rank):\n    for a, b in loader:\n        loss = model(a, b)\n"
    "        if not torch.isfinite(loss):\n            continue\n        loss.backward()\n        optimizer.step()\n\n\n"
    "def main(args):\n    dist.init_process_group('nccl')\n    model = build(args)\n    model = DDP(model)\n"
    "    run(model, args.loader, args.optimizer, dist.get_rank())\n"
)


def test_a_loss_of_what_forward_gathers_is_the_same_on_all() -> None:
    check_nothing(RULE, CONTRAST.format(made="        a, b = all_gathered(a), all_gathered(b)\n"))


@pytest.mark.parametrize("made", ["", "        a = a.gather(1, self.order)\n", "        self.fill(all_gathered(a))\n"])
def test_a_loss_of_the_own_batch(made: str) -> None:
    assert findings_of(RULE, CONTRAST.format(made=made))


TRAINED = (
    f"{DIST}from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef train(net, train_loader, optimizer, loss_of):\n"
    "    model = DDP(net)\n    for step, (rows, labels) in enumerate(train_loader):\n        out = model(rows)\n"
    "        known = labels >= 0\n        if not known.any():\n            continue\n"
    "        loss_of(out[known], labels[known]).backward()\n        optimizer.step()\n"
)


@pytest.mark.parametrize("test", ["not known.any()", "known.sum() == 0", "labels.max() < 1"])
def test_a_backward_that_is_left_out_for_what_the_batch_holds(test: str) -> None:
    found = check_told(RULE, TRAINED.replace("not known.any()", test), reason="reduce the deciding number")
    assert "does not call loss_of(out[known], labels[known]).backward()" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [("not known.any()", "len(labels) < 2"), ("not known.any()", "rows.shape[0] < 2"),  # the sampler pads: as many on all
     ("not known.any()", "rows.size(0) == 1"), ("not known.any()", "step < 3"),
     ("model = DDP(net)", "model = net"),  # no wrapper: the backward waits for nobody
     ("        known = labels >= 0\n", "        known = labels >= 0\n        dist.all_reduce(known)\n"),
     (".backward()", "")],
)  # fmt: skip
def test_batches_that_are_left_out_on_all_ranks_or_wait_for_nobody(old: str, new: str) -> None:
    assert old in TRAINED
    check_nothing(RULE, TRAINED.replace(old, new))


def test_a_builtin_is_no_object_that_rank_0_tells_anything() -> None:
    body = (
        "if rank == 0:\n    shown = int(args.shown)\n    print(shown)\nloss.backward()\n"
        "if args.limit and int(args.limit) < 3:\n    break"
    )
    check_nothing(RULE, loop(body))


# A counter of rank 0


COUNTS = f"""{DIST}

def train(model, loader, args, rank):
    step = 0
    while step < args.steps:
        for batch in loader:
            model(batch).mean().backward()
            dist.barrier()
            if rank == 0:
                print(step)
                step += 1
                if step > args.steps:
                    break
"""


def test_a_counter_that_rank_0_alone_advances_is_counted_on_all() -> None:
    found = check_told(RULE, COUNTS, reason="count on all ranks: move `step +=` (line 14) and this break with its test out of")
    assert "the `while` in line 8 goes by it, and never ends on the other ranks" in found.reason
    assert found.message.startswith("rank 0 alone decides whether to take this break")
    check_told(RULE, COUNTS.replace("while step < args.steps:", "while True:"), reason="with its test out of the rank branch")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("                step += 1\n", "                step += args.every(batch)\n"),  # no count
        ("            dist.barrier()\n", "            dist.barrier()\n            step = args.now()\n"),  # given on all ranks
        ("            dist.barrier()\n", "            dist.barrier()\n            step += 1\n"),  # all ranks count
        ("if step > args.steps:", "if args.enough():"),
    ],
)
def test_what_rank_0_decides_otherwise_is_broadcast(old: str, new: str) -> None:
    check_told(RULE, COUNTS.replace(old, new), reason="broadcast the decision of rank 0 first")


# What the ranks answer together


ASKED = f"""{DIST}
import os


class Engine:
    def __init__(self, model, context):
        self.model, self.context = model, context

    def train(self, loader):
        for batch in loader:
            self.model(batch).mean().backward()
            dist.barrier()
            if QUESTION:
                return


def main(model, loader, preempter):
    try:
        context = preempter.connect(model)
    except Exception:
        context = None
    Engine(model, context).train(loader)
"""


def test_an_answer_of_what_one_rank_may_not_have() -> None:
    found = check_told(RULE, ASKED.replace("QUESTION", "self.context.enough.asked()"), reason="reduce the deciding number")
    assert any("a rank on which this fails comes here" in e.text for e in found.evidence)


@pytest.mark.parametrize("question", ["self.context.preempt.should_preempt()", "self.context.check_trigger()",
                                      "any(self.context.signals_received())"])  # fmt: skip
def test_questions_that_the_ranks_answer_together(question: str) -> None:
    check_nothing(RULE, ASKED.replace("QUESTION", question))


def test_ranks_that_ask_the_master_each_by_itself() -> None:
    source = ASKED.replace("QUESTION", "self.context.preempt.should_preempt()")
    assert findings_of(RULE, source.replace("import os", "import os\nMODE = 'PreemptMode.WorkersAskMaster'"))


BRANCHES = """\
import torch
import torch.distributed as dist


def train(model, loader, args):
    for epoch in range(args.epochs):
        for batch in loader:
            loss = model(batch.cuda())
            loss.backward()
        stop = torch.tensor(0)
        if {test}:
            stop += int(loss.item() > 3)
            dist.all_reduce(stop)
            if stop > 0:
                break
        else:
            if loss.item() > 3:
                break
        if args.distributed:
            dist.barrier()
"""


def test_the_branch_of_one_process_parts_nobody() -> None:
    check_nothing(RULE, BRANCHES.format(test="args.distributed"))


def test_a_branch_that_several_processes_take_does() -> None:
    assert findings_of(RULE, BRANCHES.format(test="not args.distributed").replace("dist.all_reduce(stop)", "pass"))


PATIENT = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Learner:
    def __init__(self, args, net, data):
        self.args, self.net = args, net
        self.loader = DataLoader(data, sampler=DistributedSampler(data))

    def judge(self):
        return sum(self.net(batch).mean().item() for batch in self.loader)

    def run(self):
        best = waited = 0.0
        for epoch in range(9):
            score = self.judge()
            waited = 0.0 if score > best else waited + 1
            best = max(score, best)
            if self.args.distributed:
                WAIT
                if enough.item() > 0:
                    break
            else:
                if waited > 3:
                    break
            dist.barrier()
"""
AGREES = "enough = torch.tensor(float(waited > 3))\n                dist.all_reduce(enough)"
ALONE = "enough = torch.tensor(float(waited > 3))"


def test_the_arm_that_one_process_alone_takes() -> None:
    check_nothing(RULE, PATIENT.replace("WAIT", AGREES))
    found = check_told(RULE, PATIENT.replace("WAIT", ALONE), reason="reduce the deciding number")
    assert found.span.line == PATIENT.splitlines().index("                if enough.item() > 0:") + 1


STARTS = "import torch.distributed as dist\n\n\ndef start_ranks():\n    dist.init_process_group('gloo')\n"
FITTED = """\
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def fit(net, data):
    net = DDP(net)
    total = 0.0
    for batch in DataLoader(data, sampler=DistributedSampler(data)):
        loss = net(batch).mean()
        loss.backward()
        total += loss.item()
    return total
"""
JOINED = """\
import torch

from passes import fit
from starts import start_ranks


def main(data):
    START
    net = torch.nn.Linear(2, 1)
    best = waited = 0.0
    for epoch in range(9):
        total = fit(net, data)
        waited = 0.0 if total < best else waited + 1
        best = min(total, best)
        stop_early = waited > 3
        if stop_early:
            break


if __name__ == "__main__":
    main([])
"""


def test_a_program_that_joins_by_a_function_of_the_project() -> None:
    files = {"starts.py": STARTS, "passes.py": FITTED}
    check_told(RULE, JOINED.replace("START", "start_ranks()"), reason="reduce the deciding number", files=files)
    check_nothing(RULE, JOINED.replace("START", "torch.manual_seed(1)"), files=files)  # one process runs it
    named = {**files, "starts.py": STARTS.replace("dist.init_process_group('gloo')", "'init_process_group(...)'")}
    check_nothing(RULE, JOINED.replace("START", "start_ranks()"), files=named)


STOPPER = """\
import torch
import torch.distributed as dist


class Patience:
    def __init__(self, limit, place=None):
        self.limit, self.count, self.best = limit, 0, None
        self.place = place
        self.enough = False

    def __call__(self, loss):
        if EXIT:
            return
        self.count = 0 if self.best is None or loss < self.best else self.count + 1
        self.best = loss if self.best is None else min(loss, self.best)
        if self.count > self.limit:
            self.enough = True


def fit(net, loader, rank):
    patience = Patience(5, GIVEN)
    for epoch in range(9):
        loss = torch.zeros(1)
        for batch in loader:
            loss += net(batch).mean()
        loss.backward()
        dist.all_reduce(loss)
        patience(loss.item())
        BETWEEN
        if patience.enough:
            break


def main(net, loader):
    fit(net, loader, dist.get_rank())
"""


def stopper(exit_: str = "self.place != 0", *, given: str = "place=rank", between: str = "loss.detach()") -> str:
    return STOPPER.replace("EXIT", exit_).replace("GIVEN", given).replace("BETWEEN", between)


@pytest.mark.parametrize(
    "exit_", ["self.place != 0", "self.place is not None and self.place != 0", "self.place and self.place > 0"]
)
def test_an_object_that_goes_on_with_what_it_is_told_on_rank_zero_alone(exit_: str) -> None:
    found = check_told(RULE, stopper(exit_), reason="broadcast the decision of rank 0 first")
    assert "`patience`, which rank 0 alone sets" in found.message


@pytest.mark.parametrize(
    "source",
    [stopper(given="place=0"),  # it is told on every rank
     stopper(given=""),
     stopper("self.limit == 0"),  # a setting
     stopper("self.place != 0 and self.limit > 1"),  # not the rank alone
     stopper("self.best != 0"),
     stopper(between="dist.broadcast_object_list([patience], src=0)"),
     stopper().replace("self.enough = True", "self.done = True"),  # what is asked for is not what it sets
     stopper().replace("if patience.enough:", "if patience.limit > 9:")],
)  # fmt: skip
def test_objects_that_say_the_same_on_all_ranks(source: str) -> None:
    check_nothing(RULE, source)


LAUNCHED = """\
import os
import torch.distributed as dist


def local_rank():
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    return int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", -1))


def launched():
    return INSTALLED and local_rank() {test}


def from_leader(make):
    if not launched():
        return make()
    if not dist.is_initialized():
        dist.init_process_group("nccl")
    found = [make() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found, src=0)
    return found[0]
"""


@pytest.mark.parametrize(("test", "told"), [(">= 0", False), ("> -1", False), ("!= -1", False), ("- 1 >= 0", True)])
def test_whether_a_launcher_has_set_the_rank(test: str, told: bool) -> None:
    assert bool(findings_of(RULE, LAUNCHED.replace("{test}", test))) is told


IN_TURN = """\
import os
import torch.distributed as dist


def fetched(name):
    if dist.get_rank() == 0:
        found = fetch(name)
    dist.barrier()
    if dist.get_rank() != 0:
        found = {second}
    return found


def prepare(name):
    found = fetched(name)
    if {test}:
        dist.barrier()
"""


@pytest.mark.parametrize(
    ("second", "test", "told"),
    [
        ("fetch(name)", "found.ready", False),
        ("fetch(name + '.part')", "found.ready", True),
    ],
)
def test_what_each_side_of_a_test_of_the_rank_gives_by_the_same_words(second: str, test: str, told: bool) -> None:
    assert bool(findings_of(RULE, IN_TURN.replace("{second}", second).replace("{test}", test))) is told


BY_CLOCK = """\
import datetime
from pathlib import Path
import torch.distributed as dist


def main(args):
    dist.init_process_group("nccl")
    folder = Path("runs") / datetime.datetime.now().strftime("%H%M%S")
    first = second = folder / "a"
    if args.two:
        second = folder / "b"
    if {test}:
        dist.barrier()
"""


@pytest.mark.parametrize("test", ["first.is_file()", "folder.exists()", "first == second", "first != second"])
def test_a_folder_that_is_called_by_the_clock(test: str) -> None:
    check_nothing(RULE, BY_CLOCK.format(test=test))


def test_the_clock_itself() -> None:
    source = BY_CLOCK.format(test="datetime.datetime.now().minute > args.end")
    assert findings_of(RULE, source)


PAST = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, optimizer, rank):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net)
    for batch in loader:
        losses = {call}
        if is_bad(losses) and rank == 0 and losses["total"].isnan():
            continue
        losses["total"].backward()
"""


@pytest.mark.parametrize(("call", "told"), [("model(batch)", True), ("model.module.losses_of(batch)", False)])
def test_a_backward_past_the_wrapper(call: str, told: bool) -> None:
    assert bool(findings_of(RULE, PAST.format(call=call))) is told


ITSELF = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def fit(self, loader, optimizer, loss_of):
        dist.init_process_group("nccl")
        model = self.to("cuda")
        WRAP
        try:
            for rows, labels in loader:
                found = model(rows)
                loss = loss_of(found, labels)
                loss.backward()
                optimizer.step()
            dist.barrier()
        except RuntimeError as error:
            print(error)
"""


def test_a_module_that_calls_itself_without_a_wrapper() -> None:
    (told,) = findings_of(RULE, ITSELF.replace("WRAP", "pass"))
    assert "without torch.distributed.barrier" in told.message
    (told,) = findings_of(RULE, ITSELF.replace("WRAP", "model = DistributedDataParallel(model)"))
    assert "without loss.backward()" in told.message


def test_a_module_that_makes_its_steps_itself() -> None:
    step = "    def training_step(self, batch, batch_idx):\n        loss = self.net(batch).sum()\n"
    step += "        if torch.isnan(loss):\n            return None\n        self.manual_backward(loss)\n"
    init = "    def __init__(self):\n        super().__init__()\n        self.automatic_optimization = False\n\n"
    check_told(RULE, f"{PL}\n\nclass M(pl.LightningModule):\n{init}{step}", reason="let all ranks skip it together")


CLEARED = """\
import shutil
import torch.distributed as dist


def save(folder, state):
    rank = dist.get_rank()
    try:
        if rank == 0:
            {clear}
        if dist.is_available() and dist.is_initialized():
            dist.barrier()
    except Exception:
        print("not cleared")
    write(state, folder)
"""


@pytest.mark.parametrize(
    ("clear", "told"), [("shutil.rmtree(folder, ignore_errors=True)", False), ("shutil.rmtree(folder)", True)]
)
def test_a_body_in_which_nothing_fails_on_one_rank(clear: str, told: bool) -> None:
    assert bool(findings_of(RULE, CLEARED.replace("{clear}", clear))) is told


READ = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def setup():
    dist.init_process_group("nccl")


def main(args, net, loader):
    {first}
    try:
        config = Config(args.config)
    except Exception:
        return
    {second}
    model = DistributedDataParallel(net)
    for batch in loader:
        model(batch).sum().backward()
"""


@pytest.mark.parametrize(("first", "second", "told"), [("setup()", "pass", True), ("pass", "setup()", False)])
def test_an_exception_above_the_start_of_the_group(first: str, second: str, told: bool) -> None:
    assert bool(findings_of(RULE, READ.replace("{first}", first).replace("{second}", second))) is told


GIVEN_UP = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def cut(batch, tell):
    found = []
    try:
        for sample in batch:
            found.append(sample.window())
    except Exception as error:
        if tell.wants:
            print(error)
        return []
    return found


def train(net, rows, optimizer, tell):
    dist.init_process_group("nccl")
    model = DDP(net)
    for batch in DataLoader(rows, sampler=DistributedSampler(rows)):
        windows = cut(batch, tell)
        if len(windows) == 0:
            continue
        model(windows).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "asked"),
    [("[]", "len(windows) == 0"), ("[]", "not windows"), ("None", "windows is None"), ("None", "not isinstance(windows, list)")],
)
def test_a_result_that_an_error_leaves_empty(given: str, asked: str) -> None:
    source = GIVEN_UP.replace("return []", f"return {given}").replace("len(windows) == 0", asked)
    check_told(RULE, source, reason="an error on one rank decides")


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("the error ends the run", "        return []", "        raise"),
        ("a test of the error raises", "            print(error)", "            raise"),
        ("another kind of the result is asked for", "len(windows) == 0", "isinstance(windows, list)"),
        ("a file that all ranks read", "    except Exception as error:", "    except FileNotFoundError as error:"),
        ("nothing of the rank's own is tried", "in batch:", "in tell.all():"),
        ("an empty one is trained on, too", "            continue\n", "            windows = batch\n"),
    ],
)  # fmt: skip
def test_a_result_that_all_ranks_have(what: str, old: str, new: str) -> None:
    check_nothing(RULE, GIVEN_UP.replace(old, new))


COUNTED = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, rows, args, epochs):
    model, step = DistributedDataParallel(net), 0
    own = rows[dist.get_rank()::dist.get_world_size()]
    for epoch in range(epochs):
        for row in own:
            loss = model(row).sum()
            {meets}
            step += 1
        if step > args.most:
            break
        dist.barrier()
"""


def test_a_counter_of_steps_that_all_ranks_make_together_decides_alike() -> None:
    check_nothing(RULE, COUNTED.format(meets="loss.backward()"))


def test_a_counter_of_own_rows_decides_otherwise() -> None:
    check_told(RULE, COUNTED.format(meets="seen = loss"), reason="reduce the deciding number")


def test_an_exit_of_what_rank_0_alone_runs_is_to_be_an_error() -> None:
    head = f"{PL}\n\nclass Rows(pl.LightningDataModule):\n    def prepare_data(self):\n        if not os.path.exists('rows'):\n"
    check_told(RULE, f"{head}            exit()\n", reason="end with an error")
    check_nothing(RULE, f"{head}            raise FileNotFoundError('rows')\n")


SHARED_OUT = (
    "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader\nfrom torch.utils.data.distributed import DistributedSampler\n\n\n"
    "def score(model, held, most=3):\n    if {test}:\n        return None\n    dist.barrier()\n    return model\n\n\n"
    "def made(rows):\n    return DataLoader(rows, sampler=DistributedSampler(rows)), 3\n\n\n"
    "def main(net, rows):\n    dist.init_process_group('nccl')\n    model = DDP(net)\n    held, _ = made(rows)\n"
    "    for batch in held:\n        model(batch).backward()\n        score(model, {given})\n"
)


@pytest.mark.parametrize("test", ["not held", "most <= 0 or not held"])
def test_whether_a_loader_has_batches_is_the_same_on_all_ranks(test: str) -> None:
    check_nothing(RULE, SHARED_OUT.format(test=test, given="held"))
    assert findings_of(RULE, SHARED_OUT.format(test=test, given="batch.sum() > 3"))


@pytest.mark.parametrize("test", ["next(iter(held)).sum() > 3", "any(batch.sum() > 3 for batch in held)"])
def test_what_a_loader_hands_out_is_not(test: str) -> None:
    assert findings_of(RULE, SHARED_OUT.format(test=test, given="held"))


PROBE = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def probe(net, optimizer, rank):
    {guard}
    try:
        net(torch.zeros(4, 8)).mean().backward()
    except {kind} as error:
        print("no probe", error)


def main(net, optimizer, rows):
    dist.init_process_group("nccl")
    net = DDP(net)
    probe(net, optimizer, dist.get_rank())
"""


def test_an_error_in_a_step_that_one_rank_alone_makes() -> None:
    alone = "if rank != 0:\n        return"
    assert not [f for f in findings_of(OneRankDecision, PROBE.format(guard=alone, kind="RuntimeError")) if f.span.line > 8]
    assert findings_of(OneRankDecision, PROBE.format(guard="print(rank)", kind="RuntimeError"))


SAMPLES = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(args):
    dist.init_process_group("nccl")
    rows = Rows(args)
    loader = DataLoader(rows, batch_size=4, {shared}, collate_fn=lists)
    model = DistributedDataParallel(build(args))
    run(model, loader, torch.optim.SGD(model.parameters(), 0.1))


def run(model, loader, optimizer):
    for images, targets in loader:
        if {test}:
            continue
        optimizer.zero_grad()
        model(images, targets).backward()
        optimizer.step()


main(parse())
"""
SHARED = "sampler=DistributedSampler(rows)"


@pytest.mark.parametrize("test", ["any(len(t) < 1 for t in targets)", "not all(t['boxes'].size(0) > 0 for t in targets)"])
def test_a_sample_without_rows(test: str) -> None:
    check_told(RULE, SAMPLES.format(shared=SHARED, test=test), reason="reduce the deciding number over the ranks first")


@pytest.mark.parametrize("test", ["len(targets) < 1", "any(len(t) < 32 for t in targets)", "images.size(0) == 0"])
def test_what_no_sample_can_lack(test: str) -> None:
    check_nothing(RULE, SAMPLES.format(shared=SHARED, test=test))


def test_samples_that_all_ranks_draw_alike() -> None:
    check_nothing(RULE, SAMPLES.format(shared="shuffle=False", test="any(len(t) < 1 for t in targets)"))


LEFT_OVER = """
import torch
import torch.distributed as dist


def share(files, rank_rows, ratio):
    train, held_out = 0, 0
    for file in files:
        rows = rank_rows(file)
        first = int(ratio * len(rows) + 1)
        train += first
        total = len(rows)
        held_out += total - first
    {test}
        sent = torch.tensor(held_out, dtype=torch.int32).cuda()
        dist.all_reduce(sent, op=dist.ReduceOp.SUM)
        print(sent.item())
    dist.barrier()
    return train
"""


@pytest.mark.parametrize("test", ["if held_out > 0:", "if held_out != 0:"])
def test_a_sum_that_a_rank_with_nothing_leaves_out(test: str) -> None:
    (found,) = findings_of(RULE, LEFT_OVER.format(test=test))
    assert found.span.line == LEFT_OVER[: LEFT_OVER.index("{test}")].count("\n") + 1
    assert not found.edits and "make the call on every rank" in (found.reason or "")


@pytest.mark.parametrize("test", ["if ratio > 0:", "if True:"])
def test_a_sum_that_a_setting_leaves_out(test: str) -> None:
    assert not findings_of(RULE, LEFT_OVER.format(test=test))


REGISTERED = """
from tasks.base import Task, register


@register("small")
class Small(Task):
    def attempt(self, batch):
        try:
            loss = self.criterion(self.model(batch))
        except:
            loss = None
        return loss

    def training_step(self, batch, batch_idx):
        loss = self.attempt(batch)
        if loss is None:
            print("left out")
            return
        return {"loss": loss}
"""
TASKS = {
    "tasks/__init__.py": "",
    "tasks/base.py": "import lightning.pytorch as pl\n\n\nclass Task(pl.LightningModule):\n    pass\n\n\n"
    "def register(name):\n    return lambda c: c\n",
    "main.py": "import hydra\nimport lightning.pytorch as pl\n\n"
    "pl.Trainer(devices=4, strategy='ddp').fit(hydra.utils.instantiate({}))\n",
}


def test_no_loss_in_a_class_that_only_a_registry_names() -> None:
    path = "tasks/small.py"
    assert RULE().is_worth_parsing(path, project_of(REGISTERED, TASKS, path=path))
    (found,) = findings_of(RULE, REGISTERED, TASKS, path=path)
    assert found.span.line == 18 and "a rank without a loss skips the backward" in found.message


def test_a_step_of_a_class_that_is_no_module_of_lightning() -> None:
    plain = {**TASKS, "tasks/base.py": "class Task:\n    pass\n\n\ndef register(name):\n    return lambda c: c\n"}
    assert not findings_of(RULE, REGISTERED, plain, path="tasks/small.py")


KEEPER = """\
import torch


def keep(args, name, net):
    if not args.zero:
        torch.save(net.state_dict(), name)
    else:
        net.save_checkpoint(args.folder, tag=name, client_state={"name": name})
"""
KEPT = """\
import deepspeed
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from keeper import keep


def score(loader, net):
    right = []
    for x, y in loader:
        right.append((net(x).argmax(-1) == y).float().mean().item())
    return {"accuracy": sum(right) / len(right)}


def main(args, net, rows):
    dist.init_process_group("nccl")
    loader = DataLoader(rows, sampler=DistributedSampler(rows))
    engine, optimizer, _, _ = deepspeed.initialize(args=args, model=net)
    best = 0
    for epoch in range(args.epochs):
        for x, y in loader:
            engine.backward(engine(x).sum())
            engine.step()
        stats = score(loader, engine)
        if best < stats["accuracy"]:
            best = stats["accuracy"]
            keep(args, "best", engine)
"""


def test_a_best_of_each_rank_that_an_engine_saves_in_another_file() -> None:
    check_told(RULE, KEPT, files={"keeper.py": KEEPER}, reason="reduce the deciding number")


@pytest.mark.parametrize(
    "keeper",
    [
        KEEPER.replace(', client_state={"name": name}', ""),
        KEEPER.replace("net.save_checkpoint", "self.save_checkpoint"),
        KEEPER + "\n\nclass Net:\n    def save_checkpoint(self, folder, tag, client_state):\n        print(folder)\n",
    ],
)
def test_a_save_that_is_not_seen_to_be_an_engines(keeper: str) -> None:
    check_nothing(RULE, KEPT, files={"keeper.py": keeper})


@pytest.mark.parametrize(
    ("pinned", "severity"),
    [
        ({"requirements.txt": "lightning==2.2.1\n"}, "hang"),  # the others wait in the backward pass
        ({"requirements.txt": "lightning>=2.4\n"}, "crash"),  # Lightning refuses None there
        ({"requirements.txt": "lightning\n"}, "risk"),
        ({}, "risk"),
    ],
)
def test_what_comes_of_a_step_without_a_loss_depends_on_lightning(pinned: dict[str, str], severity: str) -> None:
    for lines in (SKIP, ("if torch.isnan(loss):", "    if loss > 1:", "        return loss", "    return None")):
        (found,) = findings_of(RULE, stepped(*lines), files=pinned)
        assert found.severity == severity


def test_a_module_that_steps_by_itself_leaves_the_others_waiting() -> None:
    by_hand = stepped(*SKIP).replace("    def training_step", "    automatic_optimization = False\n\n    def training_step")
    (found,) = findings_of(RULE, by_hand, files={"requirements.txt": "lightning>=2.4\n"})
    assert found.severity == "hang"


STEPPED = """
import torch
from torch.nn.parallel import DistributedDataParallel

def train(model, loader, optimizer, device):
    model = DistributedDataParallel(model, device_ids=[device])
    for batch in loader:
        loss = model(batch)
        {first}
        if loss.item() < 9:
            {second}
"""


def test_other_weights_are_no_hang() -> None:
    (found,) = findings_of(RULE, STEPPED.format(first="loss.backward()", second="optimizer.step()"))
    assert "the weights are not" in found.message and found.severity == "data"
    found_all = findings_of(RULE, STEPPED.format(first="optimizer.zero_grad()", second="loss.backward()"))
    assert [f.severity for f in found_all] == ["hang"]


WORKER = """\
from abc import ABC, abstractmethod

import torch.distributed as dist


class Patient(ABC):
    def __init__(self, model, rows, rank):
        self.model, self.rows, self.rank, self.early_stop = model, rows, rank, 0

    @abstractmethod
    def one_round(self, number):
        raise NotImplementedError

    def work(self, rounds):
        for number in range(rounds):
            total = self.one_round(number)
            if self.rank == 0 and number % 2 == 0:
                self.early_stop = self.early_stop + 1 if total > 3 else 0
                if self.early_stop > 5:
                    break
"""
HEIR = """\
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from patient import Patient


class Worker(Patient):
    def one_round(self, number):
        total = 0.0
        for batch in self.rows:
            loss = self.model(batch).mean()
            STEP
            total += loss.item()
        return total


def main(net, rows):
    dist.init_process_group("gloo")
    model = WRAPPED
    rows = DataLoader(rows, 8, sampler=DistributedSampler(rows))
    Worker(model, rows, dist.get_rank()).work(9)


if __name__ == "__main__":
    main(torch.nn.Linear(2, 2), torch.rand(8, 2))
"""
WRAPS = "DistributedDataParallel(net)"
BOTH_ARMS = "if self.scaler:\n    self.scaler.scale(loss).backward()\nelse:\n    loss.backward()"


def heir_that(*, step: str, wrapped: str = "DistributedDataParallel(net)") -> str:
    return HEIR.replace("            STEP", textwrap.indent(step, " " * 12)).replace("WRAPPED", wrapped)


@pytest.mark.parametrize(
    "step",
    ["loss.backward()", BOTH_ARMS, "with torch.enable_grad():\n    learn(loss)"],
)
def test_rank_0_leaves_the_rounds_in_which_an_heir_trains(step: str) -> None:
    heir = f"{heir_that(step=step)}\n\ndef learn(loss):\n    loss.backward()\n"
    found = check_told(RULE, WORKER, reason="broadcast", files={"run.py": heir}, path="patient.py")
    assert "rank 0 alone decides whether to take this break" in found.message


@pytest.mark.parametrize(
    ("step", "wrapped"),
    [("total += 1", WRAPS),  # nothing is trained
     ("if self.trains:\n    loss.backward()", WRAPS),  # a test decides
     ("if self.rank == 0:\n    loss.backward()", WRAPS),
     ("loss.backward()", "net")],  # each rank trains for itself
)  # fmt: skip
def test_rank_0_leaves_rounds_in_which_nobody_waits(step: str, wrapped: str) -> None:
    heir = heir_that(step=step, wrapped=wrapped)
    check_nothing(RULE, WORKER, files={"run.py": heir}, path="patient.py")


def test_rank_0_leaves_rounds_of_which_one_heir_does_not_train() -> None:
    heir = heir_that(step="loss.backward()")
    other = "from patient import Patient\n\n\nclass Judge(Patient):\n    def one_round(self, number):\n        return 0.0\n"
    check_nothing(RULE, WORKER, files={"run.py": heir, "judge.py": other}, path="patient.py")
    check_nothing(RULE, WORKER, files={}, path="patient.py")


ROUNDS = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def one_round(model, rows):
    for batch in rows:
        loss = model(batch).mean()
        loss.backward()
    return loss.item()


def main(net, data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    rows = DataLoader(data, 8, sampler=DistributedSampler(data))
    for number in range(9):
        score = one_round(model, rows)
        if dist.get_rank() == 0 and number % 2 == 0:
            print(number)
            if score > 3:
                break
        BELOW


if __name__ == "__main__":
    main(torch.nn.Linear(2, 2), torch.rand(8, 2))
"""


def test_rank_0_leaves_the_rounds_of_a_function_that_trains() -> None:
    check_told(RULE, ROUNDS.replace("BELOW", "print(number)"), reason="broadcast")
    told = findings_of(RULE, ROUNDS.replace("BELOW", "if score > 3:\n            break"))
    assert not any("rank 0 alone decides" in found.message for found in told)  # all of them leave there, by the same test


# Each process measures by its own clock; what it calls there keeps the collective to rank 0, or does not.
BY_THE_CLOCK = """\
import time
import torch
import torch.distributed as dist; WORLD = dist.group.WORLD
from measuring import measure


class Job:
    def __init__(self, rank, total):
        self.rank, self.total = rank, total

    def train(self, batches):
        since = time.time()
        for batch in batches:
            if time.time() - since > 60:
                since = time.time()
                CALL
            self.step(batch)

    def look(self):
        self.begin()
        INNER

    def begin(self):
        self.seen = 1

    def deeper(self):
        dist.all_reduce(self.total)
"""
MEASURING = "import torch.distributed as dist\n\n\ndef measure(total, rank):\n    INNER\n"


def by_the_clock(inner: str, call: str = "self.look()") -> str:
    return BY_THE_CLOCK.replace("CALL", call).replace("INNER", inner.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "inner",
    ["if self.rank == 0:\n    dist.all_reduce(self.total)",
     "if dist.get_rank() != 0:\n    return\ndist.all_reduce(self.total)",
     "if self.rank == 0 and self.seen:\n    self.deeper()"],
)  # fmt: skip
def test_a_collective_that_the_called_method_keeps_to_rank_0(inner: str) -> None:
    check_nothing(RULE, by_the_clock(inner))


@pytest.mark.parametrize(
    "inner",
    ["dist.all_reduce(self.total)",
     "self.deeper()",
     "if self.rank == 0:\n    self.begin()\ndist.all_reduce(self.total)",
     "if self.rank == 0:\n    dist.all_reduce(self.total)\nelse:\n    dist.all_reduce(self.total)"],
)  # fmt: skip
def test_a_collective_of_all_ranks_behind_a_clock(inner: str) -> None:
    assert "each process decides on its own" in check_told(RULE, by_the_clock(inner), reason="so that all decide alike").message


def test_a_collective_that_a_function_of_another_file_keeps_to_rank_0() -> None:
    source = by_the_clock("pass", "measure(self.total, self.rank)")
    kept = MEASURING.replace("INNER", "if rank == 0:\n        dist.all_reduce(total)")
    check_nothing(RULE, source, files={"measuring.py": kept})
    check_told(RULE, source, files={"measuring.py": MEASURING.replace("INNER", "dist.all_reduce(total)")}, reason="decide alike")


# A `try` in front of the training, whose handler leaves.
TRIED = DIST + """

def train(model, optimizer, loader, path):
    rank = dist.get_rank()
    mine = path[rank::2]
    try:
        BODY
    except Exception as error:
        print(error)
        return
    for batch in loader:
        loss = model(batch)
        dist.all_reduce(loss)
"""


def tried(*lines: str, head: str = "") -> str:
    return head + TRIED.replace("BODY", "\n        ".join(lines))


@pytest.mark.parametrize(
    "lines",
    [("from mixed import halves", "model, optimizer = halves.initialize(model, optimizer, level='O2')"),
     ("import kernels.fast as fast", "fast.patch(model)", "model = fast.Wrapped(model)"),
     ("from mixed import halves", "from mixed.parallel import Parallel", "model = Parallel(halves.prepare(model), gpus=[rank])")],
)  # fmt: skip
def test_a_package_that_all_ranks_have_or_none(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, tried(*lines))


@pytest.mark.parametrize(
    "lines",
    [("from mixed import halves", "model = halves.prepare(model)", "rows = torch.load(path)"),  # reads a file, too
     ("model = build(path)", "from mixed import halves", "halves.prepare(model)"),  # more than the import can fail
     ("import torch", "rows = torch.load(path)"),  # every process has that one
     ("from mixed import halves", "halves.prepare(mine)")],  # its own share of the data
)  # fmt: skip
def test_a_try_that_does_more_than_to_set_up_a_package(lines: tuple[str, ...]) -> None:
    check_told(RULE, tried(*lines), reason="let the exception end the process")


def test_a_package_that_lies_in_the_project() -> None:
    files = {"mixed.py": "def prepare(model):\n    return work(model)\n"}
    source = tried("from mixed import prepare", "model = prepare(model)")
    check_told(RULE, source, files=files, reason="let the exception end")
