"""DDP301: a collective under a rank guard."""

from __future__ import annotations

from textwrap import indent

import pytest

from codemods.analysis.ranks.matching import mismatches
from codemods.api.findings import Applicability
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of, project_of

RULE = CollectiveUnderRankGuard
DIST = "import torch\nimport torch.distributed as dist\n\n"
START = f"{DIST}def f(rank, x):\n    dist.init_process_group('gloo')\n"
PINNED = {"requirements.txt": "lightning>=2.1\n"}


def lightning(body: str, *, base: str = "Callback", head: str = "import lightning.pytorch as pl") -> str:
    lines = "\n".join(f"    {line}" if line else "" for line in body.strip("\n").split("\n"))
    return f"{head}\n\n\nclass C(pl.{base}):\n{lines}\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


# Nothing else under the guard


def test_a_barrier_alone() -> None:
    check_transformed(
        RULE,
        f"{DIST}def f():\n    work()\n    if not dist.get_rank():\n        # wait\n        dist.barrier()  # all\n    go()\n",
        f"{DIST}def f():\n    work()\n    # wait\n    dist.barrier()  # all\n    go()\n",
    )


def test_a_barrier_on_the_line_of_the_guard() -> None:
    check_transformed(
        RULE, f"{START}    if rank == 0: dist.barrier()\n", f"{START}    dist.barrier()\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if rank == 0:\n    a(); dist.barrier()  # all\n", "if rank == 0:\n    a()  # all\ndist.barrier()\n"),
        ("if rank == 0: a(); dist.barrier()\n", "if rank == 0:\n    a()\ndist.barrier()\n"),
        ("if rank != 0:\n    pass\nelse:\n    dist.barrier()\n", "dist.barrier()\n"),
        (
            "if rank != 0:\n    pass\nelse:\n    a()\n    # all\n    dist.barrier()\n",
            "if rank != 0:\n    pass\nelse:\n    a()\n# all\ndist.barrier()\n",
        ),
        (
            "if rank == 0:\n    a()\n    dist.barrier()\nelse:\n    pass\n",
            "if rank == 0:\n    a()\nelse:\n    pass\ndist.barrier()\n",
        ),
        (
            "match rank:\n    case 0:\n        a()\n        dist.barrier()\n",
            "match rank:\n    case 0:\n        a()\ndist.barrier()\n",
        ),
        ("match rank:\n    case 0:\n        dist.barrier()\n    case _:\n        pass\n", "dist.barrier()\n"),
    ],
)
def test_the_guard_in_other_spellings(before: str, after: str) -> None:
    head = f"{START}    go()\n"
    check_transformed(RULE, f"{head}{indent(before, '    ')}", f"{head}{indent(after, '    ')}")


def test_functions_that_are_brought_under_other_names() -> None:
    head = "import torch\nfrom torch.distributed import get_rank as r, barrier as b\n\ndef f(x):\n    rank = r()\n"
    before = f"{head}    if rank == 0:\n        torch.save(x, 'a')\n        b()\n"
    check_transformed(RULE, before, f"{head}    if rank == 0:\n        torch.save(x, 'a')\n    b()\n")


def test_the_process_group_is_shown_beside_the_guard() -> None:
    head = "import torch.distributed as dist\n\nif __name__ == '__main__':\n    rank = dist.get_rank()\n"
    check_transformed(RULE, f"{head}    if rank == 0:\n        dist.barrier()\n", f"{head}    dist.barrier()\n")


def test_a_rank_that_may_mean_no_process_group() -> None:
    before = f"{DIST}def f(rank):\n    if rank == 0:\n        dist.barrier()\n"
    fixed = check_transformed(RULE, before, f"{DIST}def f(rank):\n    dist.barrier()\n", unsafe=True)
    assert "process group" in fixed[0].reason


def test_a_name_that_is_false_without_a_process_group() -> None:
    head = f"{DIST}def f():\n    first = dist.is_initialized() and dist.get_rank() == 0\n"
    check_transformed(RULE, f"{head}    if first:\n        dist.barrier()\n", f"{head}    dist.barrier()\n", unsafe=True)


def test_the_test_for_a_process_group_stays() -> None:
    check_transformed(
        RULE,
        f"{DIST}def f():\n    if dist.is_initialized() and dist.get_rank() == 0:\n        dist.barrier()\n",
        f"{DIST}def f():\n    if dist.is_initialized():\n        dist.barrier()\n",
    )


def test_a_barrier_behind_a_test_for_the_process_group() -> None:
    head = f"{DIST}def f(model, rank, path):\n"
    check_transformed(
        RULE,
        f"{head}    if rank == 0:\n        torch.save(model, path)\n        # whole\n"
        "        if dist.is_initialized():\n            dist.barrier()\n    go()\n",
        f"{head}    if rank == 0:\n        torch.save(model, path)\n    # whole\n"
        "    if dist.is_initialized():\n        dist.barrier()\n    go()\n",
    )
    check_transformed(
        RULE,
        f"{head}    if rank == 0:\n        if dist.get_world_size() > 1:\n            dist.barrier()\n",
        f"{head}    if dist.get_world_size() > 1:\n        dist.barrier()\n",
    )


@pytest.mark.parametrize("test", ["path", "not dist.is_initialized()", "dist.is_initialized() and path"])
def test_a_barrier_behind_another_test_is_told(test: str) -> None:
    lines = f"    if rank == 0:\n        torch.save(model, path)\n        if {test}:\n            dist.barrier()\n"
    check_told(RULE, f"{DIST}def f(model, rank, path):\n{lines}    go()\n", reason="middle of the guarded block")


def test_a_log_that_every_rank_can_make() -> None:
    check_transformed(
        RULE,
        lightning(
            """
def validation_step(self, batch, batch_idx):
    loss = self.loss(batch)
    if self.trainer.is_global_zero:
        self.log(
            "val/loss",
            loss,
            sync_dist=True,  # all
        )
""",
            base="LightningModule",
        ),
        lightning(
            """
def validation_step(self, batch, batch_idx):
    loss = self.loss(batch)
    self.log(
        "val/loss",
        loss,
        sync_dist=True,  # all
    )
""",
            base="LightningModule",
        ),
    )


def test_a_checkpoint_under_a_guard_where_it_is_a_collective() -> None:
    before = "def on_fit_end(self, trainer, m):\n    if trainer.is_global_zero:\n        trainer.save_checkpoint('last.ckpt')\n"
    after = "def on_fit_end(self, trainer, m):\n    trainer.save_checkpoint('last.ckpt')\n"
    check_transformed(RULE, lightning(before), lightning(after), files=PINNED)


def test_a_checkpoint_without_a_pinned_version() -> None:
    before = "def on_fit_end(self, trainer, m):\n    if trainer.is_global_zero:\n        trainer.save_checkpoint('last.ckpt')\n"
    after = "def on_fit_end(self, trainer, m):\n    trainer.save_checkpoint('last.ckpt')\n"
    fixed = check_transformed(RULE, lightning(before), lightning(after), unsafe=True)
    assert "2.1.0 or newer" in fixed[0].reason


def test_a_checkpoint_of_an_old_lightning_is_no_collective() -> None:
    source = (
        "def on_fit_end(self, trainer, m):\n    if trainer.is_global_zero:\n"
        "        trainer.save_checkpoint('last.ckpt')\n"
    )
    check_nothing(RULE, lightning(source), files={"requirements.txt": "lightning<2.1\n"})


def test_the_rank_is_taken_out_of_a_longer_test() -> None:
    check_transformed(
        RULE,
        f"{DIST}def f(args):\n"
        "    if args.rank == 0 and args.distributed and (args.step or args.epoch):\n        dist.barrier()\n",
        f"{DIST}def f(args):\n    if args.distributed and (args.step or args.epoch):\n        dist.barrier()\n",
    )


@pytest.mark.parametrize(
    ("test", "outer"),
    [
        ("dist.is_initialized() and dist.get_rank() == 0", "dist.is_initialized()"),
        ("dist.get_rank() == 0 and args.save and epoch % args.every == 0", "args.save and epoch % args.every == 0"),
    ],
)
def test_operands_that_are_the_same_on_every_rank_stay_outside(test: str, outer: str) -> None:
    check_transformed(
        RULE,
        f"{DIST}def f(args, epoch):\n    if {test}:\n        # one\n        a()\n        b()\n        dist.barrier()\n",
        f"{DIST}def f(args, epoch):\n    if {outer}:\n        # one\n        if dist.get_rank() == 0:\n"
        "            a()\n            b()\n        dist.barrier()\n",
    )


ON_FSDP = {"configs/accelerate.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"}


def test_save_state_is_meant_for_all_processes() -> None:
    source = (
        "import accelerate\ndef f(accelerator, p):\n    if accelerator.is_main_process:\n"
        "        accelerator.save_state(p)\n"
    )
    after = "import accelerate\ndef f(accelerator, p):\n    accelerator.save_state(p)\n"
    fixed = check_transformed(RULE, source, after, unsafe=True, files=ON_FSDP)
    assert "random state" in fixed[0].message and "automatic_checkpoint_naming" in fixed[0].reason


def test_what_save_state_of_one_process_leaves_out() -> None:
    source = "import accelerate\ndef f(accelerator, p):\n    if accelerator.is_main_process:\n        accelerator.save_state(p)\n"
    resumes = {"resume.py": "def g(accelerator, p):\n    accelerator.load_state(p)\n"}
    (resumed,) = findings_of(RULE, source, {**resumes, **ON_FSDP})
    (alone,) = findings_of(RULE, source, ON_FSDP)
    assert "after a resume the other ranks go on with other random numbers" in resumed.message
    assert "the checkpoint lacks the others'" in alone.message


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"ds.yaml": "distributed_type: 'DEEPSPEED'\n"}, True),
        ({"default_config.json": '{"distributed_type": "FSDP"}\n'}, True),
        ({"run.sh": "accelerate launch --use_deepspeed train.py\n"}, True),
        ({"README.md": "    accelerate launch --deepspeed_config_file ds.json train.py\n"}, True),
        ({"main.py": "from accelerate import Accelerator, DeepSpeedPlugin\nplugin = DeepSpeedPlugin(zero_stage=2)\n"}, True),
        ({"main.py": "import accelerate\na = accelerate.Accelerator(fsdp_plugin=read())\n"}, True),
        ({"options.py": "parser.add_argument('--deepspeed', action='store_true')\n"}, True),
        ({}, False),
        ({"ddp.yaml": "distributed_type: MULTI_GPU\ndeepspeed: \n"}, False),
        ({"README.md": "We tried DeepSpeed and FSDP, and they were slower.\n"}, False),
        ({"names.json": '["xFSDP_config1", "distributed"]\n'}, False),
        ({"requirements.txt": "accelerate\ndeepspeed\n"}, False),
        ({"tests/test_plugin.py": "from accelerate import DeepSpeedPlugin\nDeepSpeedPlugin()\n"}, False),
    ],
)
def test_save_state_of_one_process_where_no_engine_shards(files: dict[str, str], told: bool) -> None:
    """With plain DDP the random states of the others are all that is missing."""
    source = "import accelerate\ndef f(accelerator, p):\n    if accelerator.is_main_process:\n        accelerator.save_state(p)\n"
    assert bool(findings_of(RULE, source, files)) is told
    field = source.replace("def f(accelerator, p):\n    if accelerator", "def f(run, p):\n    if run.accelerator")
    field = field.replace("        accelerator.", "        run.accelerator.")
    assert bool(findings_of(RULE, field, files)) is told


@pytest.mark.parametrize("first", ["DistributedType.DEEPSPEED", "DistributedType.FSDP"])
def test_save_state_of_all_processes_where_the_engine_asks_for_it(first: str) -> None:
    source = (
        "from accelerate.utils import DistributedType\ndef f(accelerator, p):\n"
        f"    if accelerator.distributed_type == {first} or accelerator.is_main_process:\n        accelerator.save_state(p)\n"
    )
    check_nothing(RULE, source)


ENGINE = """
import accelerate
from accelerate.utils import DistributedType


def f(accelerator, p):
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        accelerator.save_state(p)
    elif accelerator.is_main_process:
        accelerator.save_state(p)
"""


def test_save_state_of_rank_0_beside_that_of_the_engine() -> None:
    check_nothing(RULE, ENGINE)
    check_nothing(RULE, ENGINE.replace("    elif", "    if accelerator.distributed_type != DistributedType.DEEPSPEED and"))
    other = ENGINE.replace("== DistributedType.DEEPSPEED", "== DistributedType.MULTI_GPU")
    check_told(RULE, other, reason="elif", files=ON_FSDP)
    check_nothing(RULE, other)  # nothing shows another engine than DDP
    assert findings_of(RULE, ENGINE.replace("        accelerator.save_state(p)\n    elif", "        prepare(p)\n    elif"))


def test_save_state_that_every_process_cannot_call() -> None:
    naming = "config = accelerate.utils.ProjectConfiguration(automatic_checkpoint_naming={})\n"
    source = "import accelerate\n{}def f(accelerator):\n    if accelerator.is_main_process:\n        accelerator.save_state()\n"
    old, new = {"requirements.txt": "accelerate==0.17\n"}, {"requirements.txt": "accelerate>=0.23\n"}
    told = check_told(RULE, source.format(naming.format("True")), reason="require accelerate>=0.23", files=ON_FSDP)
    assert "hang" not in told.message and "random state" in told.message
    for text in ("", naming.format("True")):
        check_nothing(RULE, source.format(text), files=old)  # the random state of the others is all that is lost
    after = "import accelerate\n{}def f(accelerator):\n    accelerator.save_state()\n"
    for setting, files in (("True", {**new, **ON_FSDP}), ("False", ON_FSDP)):
        named = naming.format(setting)
        check_transformed(RULE, source.format(named), after.format(named), unsafe=True, files=files)


# At the head or the end of the block


def test_a_barrier_at_the_end_with_its_comment() -> None:
    check_transformed(
        RULE,
        """
        import torch.distributed as dist

        def f(model, path):
          if dist.get_rank() == 0:
            write(model)
            # the others
            # read it
            dist.barrier()
          # behind
          read(path)
        """,
        """
        import torch.distributed as dist

        def f(model, path):
          if dist.get_rank() == 0:
            write(model)
          # the others
          # read it
          dist.barrier()
          # behind
          read(path)
        """,
    )


def test_tabs_and_several_lines() -> None:
    check_transformed(
        RULE,
        "from accelerate import Accelerator\n\ndef f(accelerator, x):\n\tif accelerator.is_main_process:\n"
        "\t\tx = accelerator.gather(\n\t\t\tx,  # all\n\t\t)\n\t\tprint(x)\n",
        "from accelerate import Accelerator\n\ndef f(accelerator, x):\n\tx = accelerator.gather(\n\t\tx,  # all\n\t)\n"
        "\tif accelerator.is_main_process:\n\t\tprint(x)\n",
    )


def test_head_and_end() -> None:
    check_transformed(
        RULE,
        f"{DIST}def f(t):\n    if dist.get_rank() == 0:\n        dist.all_reduce(t)\n"
        "        print(t)\n        dist.barrier()\n",
        f"{DIST}def f(t):\n    dist.all_reduce(t)\n    if dist.get_rank() == 0:\n"
        "        print(t)\n    dist.barrier()\n",
    )


def test_a_reduction_whose_result_stays_inside() -> None:
    check_transformed(
        RULE,
        f"{START}    if rank == 0:\n        dist.all_reduce(x)\n        x /= 2\n        print(x)\n",
        f"{START}    dist.all_reduce(x)\n    if rank == 0:\n        x /= 2\n        print(x)\n",
    )


def test_aliases_and_fabric() -> None:
    check_transformed(
        RULE,
        "from lightning.fabric import Fabric as F\ndef f(fabric, s):\n"
        "    if fabric.is_global_zero:\n        log()\n        fabric.save('a', s)\n",
        "from lightning.fabric import Fabric as F\ndef f(fabric, s):\n"
        "    if fabric.is_global_zero:\n        log()\n    fabric.save('a', s)\n",
    )


@pytest.mark.parametrize("head", ["if acc > best:", "while loss > best:", "if args.save:\n        if acc > best:"])
def test_a_condition_round_the_guard_that_may_differ(head: str) -> None:
    space = " " * (8 if head.count("\n") == 0 else 12)
    guarded = f"{space}if dist.get_rank() == 0:\n{space}    save()\n{space}    dist.barrier()\n"
    told = check_told(RULE, f"{DIST}def f(acc, best, loss, args):\n    {head}\n{guarded}", reason="may differ between the ranks")
    assert f"> best` (line {head.count(chr(10)) + 5})" in told.reason


def test_a_condition_round_the_guard_that_is_the_same_everywhere() -> None:
    body = "    if args.save:\n        if dist.get_rank() == 0:\n            save()\n"
    before = f"{DIST}def f(args):\n{body}            dist.barrier()\n"
    check_transformed(RULE, before, f"{DIST}def f(args):\n{body}        dist.barrier()\n")


# Reads of Trainer properties


@pytest.mark.parametrize(
    ("pin", "told"), [("==0.8.1", False), ("<1.0", False), ("==1.1.7", False), ("==1.2.10", True), (">=0.9", True)]
)
def test_metrics_of_an_old_trainer_are_a_plain_dict(pin: str, told: bool) -> None:
    source = lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    if trainer.is_global_zero:
        self.send(trainer.callback_metrics)
""")
    assert bool(findings_of(RULE, source, {"requirements.txt": f"pytorch-lightning{pin}\n"})) is told


def test_a_read_that_is_a_statement_moves() -> None:
    check_transformed(
        RULE,
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    if trainer.is_global_zero:
        # now
        logs = trainer.callback_metrics
        self.send(logs)
    trainer.strategy.barrier()
"""),
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    # now
    logs = trainer.callback_metrics
    if trainer.is_global_zero:
        self.send(logs)
    trainer.strategy.barrier()
"""),
    )


def test_a_read_in_an_expression_gets_a_name() -> None:
    check_transformed(
        RULE,
        lightning("""
def on_train_start(self):
    if self.global_rank == 0:
        write(self.trainer.log_dir, "a")
        write(self.trainer.log_dir, "b")
""", base="LightningModule"),
        lightning("""
def on_train_start(self):
    log_dir = self.trainer.log_dir
    if self.global_rank == 0:
        write(log_dir, "a")
        write(log_dir, "b")
""", base="LightningModule"),
    )  # fmt: skip


def test_a_callback_whose_base_is_in_another_file() -> None:
    source = "from base import Base\nclass C(Base):\n    def on_fit_start(self, trainer, m):\n        {}\n"
    before = "if trainer.is_global_zero:\n            print(trainer.log_dir)"
    after = "log_dir = trainer.log_dir\n        if trainer.is_global_zero:\n            print(log_dir)"
    base = {"base.py": "import pytorch_lightning as pl\nclass Base(pl.Callback):\n    pass\n"}
    check_transformed(RULE, source.format(before), source.format(after), files=base)


def test_a_read_in_the_head_of_a_with_is_under_no_more_conditions() -> None:
    check_transformed(
        RULE,
        lightning(
            "def on_train_end(self, trainer, m):\n    if trainer.is_global_zero:\n"
            "        with open(join(trainer.log_dir, 'a'), 'w') as f:\n            f.write('x')"
        ),
        lightning(
            "def on_train_end(self, trainer, m):\n    log_dir = trainer.log_dir\n    if trainer.is_global_zero:\n"
            "        with open(join(log_dir, 'a'), 'w') as f:\n            f.write('x')"
        ),
    )


@pytest.mark.parametrize(
    "line",
    [
        "print({k: float(v) for k, v in {read}.items()})",
        "print([k for k in {read} if k != 'loss'])",
        "for key in {read}: print(key)",
        "if {read}: print('metrics')",
    ],
)
def test_what_a_loop_or_a_test_begins_with_is_read_each_time(line: str) -> None:
    head = "def on_train_epoch_end(self, trainer, m):\n"
    rest = "    if trainer.is_global_zero:\n        {}\n    trainer.strategy.barrier()"
    check_transformed(
        RULE,
        lightning(head + rest.format(line.replace("{read}", "trainer.callback_metrics"))),
        lightning(
            head + "    callback_metrics = trainer.callback_metrics\n" + rest.format(line.replace("{read}", "callback_metrics"))
        ),
    )


@pytest.mark.parametrize(
    "line",
    [
        "print([n for n in self.names if n in trainer.callback_metrics])",
        "print([n for n in self.names for k in trainer.callback_metrics])",
        "for n in self.names: print(trainer.callback_metrics)",
    ],
)
def test_what_a_loop_does_in_each_round_may_never_be_read(line: str) -> None:
    head, end = "def on_train_epoch_end(self, trainer, m):\n    if trainer.is_global_zero:\n", "    trainer.strategy.barrier()"
    found = findings_of(RULE, lightning(f"{head}        {line}\n{end}"))
    assert [f.applicability for f in found] == [Applicability.UNSAFE]


def test_a_read_under_more_conditions_is_not_safe() -> None:
    fixed = check_transformed(
        RULE,
        lightning(
            "def on_train_end(self, trainer, m):\n"
            "    if trainer.is_global_zero and self.on:\n        print(trainer.log_dir)"
        ),
        lightning(
            "def on_train_end(self, trainer, m):\n    log_dir = trainer.log_dir\n"
            "    if trainer.is_global_zero and self.on:\n        print(log_dir)"
        ),
        unsafe=True,
    )
    assert "each time" in fixed[0].reason


def test_a_read_behind_the_evaluation_before_a_barrier() -> None:
    source = (
        "def on_validation_epoch_end(self, trainer, m):\n{0}    if trainer.is_global_zero:\n"
        "        write(trainer.callback_metrics)\n"
    )
    barrier = "    trainer.strategy.barrier()\n"
    logged = source.format("    m.log('gap', self.gap, sync_dist=True)\n")
    assert [f.applicability for f in findings_of(RULE, lightning(logged + barrier))] == [Applicability.SAFE]
    check_nothing(RULE, lightning(logged))
    check_nothing(RULE, lightning(source.format("") + barrier))  # what the steps logged is reduced by then
    check_nothing(RULE, lightning(source.format("    m.log('gap', float(self.gap))\n") + barrier))


@pytest.mark.parametrize(
    ("step", "setting", "waits"),
    [
        ("self.log('loss', loss, sync_dist=True)", "2", True),
        ("self.note(loss)", "2", True),
        ("self.log('loss', loss)", "2", False),
        ("self.log('loss', loss, sync_dist=True)", "0", False),
    ],
)
def test_a_read_behind_the_sanity_check_before_a_barrier(step: str, setting: str, waits: bool) -> None:
    read = "    if trainer.is_global_zero:\n        write(trainer.callback_metrics)\n    trainer.strategy.barrier()\n"
    hook = "def on_validation_epoch_end(self, trainer, m):\n"
    model = (
        "import lightning.pytorch as pl\n\nclass M(pl.LightningModule):\n"
        f"    def validation_step(self, batch, i):\n        loss = self.loss(batch)\n        {step}\n"
        "    def note(self, loss):\n        self.log('note', loss, sync_dist=True)\n"
    )
    files = {"model.py": model, "train.py": f"import lightning.pytorch as pl\npl.Trainer(num_sanity_val_steps={setting})\n"}
    found = findings_of(RULE, lightning(hook + read), files)
    assert [f.applicability for f in found] == ([Applicability.SAFE] if waits else [])
    asked = "    if trainer.sanity_checking:\n        return\n"
    assert not findings_of(RULE, lightning(hook + asked + read), files)


@pytest.mark.parametrize(
    ("base", "own", "found"),
    [
        ("Callback", "self.show(self.all_gather(self.seen))", True),
        ("Callback", "self.seen.clear()", False),
        ("LightningModule", "self.show(self.all_gather(self.seen))", False),  # its hook comes behind those of the callbacks
    ],
)
def test_a_read_behind_the_sanity_check_beside_a_collective_of_the_module(base: str, own: str, found: bool) -> None:
    """Measured: rank 0 reduces what the steps logged while rank 1 is in the gather of the module's own hook."""
    read = "def on_validation_epoch_end(self, trainer, m):\n{0}    if trainer.is_global_zero:\n        write({1})\n"
    model = (
        "import lightning.pytorch as pl\n\nclass M(pl.LightningModule):\n    def validation_step(self, batch, i):\n"
        f"        self.log('loss', self.loss(batch), sync_dist=True)\n    def on_validation_epoch_end(self):\n        {own}\n"
    )
    before = lightning(read.format("", "trainer.callback_metrics"), base=base)
    after = lightning(read.format("    callback_metrics = trainer.callback_metrics\n", "callback_metrics"), base=base)
    if found:
        check_transformed(RULE, before, after, files={"model.py": model})
    else:
        check_nothing(RULE, before, files={"model.py": model})


PENDING = "class M(pl.LightningModule):\n    def training_step(self, batch, i):\n        loss = self.loss(batch)\n        {0}\n"


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("self.log('loss', loss, sync_dist=True)", True),
        ("self.log('loss', loss, sync_dist=self.several)", True),
        ("self.log('acc', self.acc, on_epoch=True)", True),
        ("self.log_dict(self.metrics)", True),
        ("self.log_dict({'loss': loss, 'acc': self.acc})", True),
        ("self.log('loss', loss, on_epoch=True)", False),
        ("self.log('loss', loss, sync_dist=False)", False),
        ("self.log_dict({'loss': loss, 'twice': loss * 2})", False),
    ],
)
def test_a_read_at_the_end_of_an_epoch_waits_where_something_does(line: str, waits: bool) -> None:
    read = "def on_train_epoch_end(self, trainer, m):\n    if trainer.is_global_zero:\n        write(trainer.callback_metrics)\n"
    found = findings_of(RULE, lightning(read), {"model.py": "import lightning.pytorch as pl\n" + PENDING.format(line)})
    assert bool(found) is waits
    evaluated = PENDING.format(line).replace("training_step", "validation_step")
    model = f"import lightning.pytorch as pl\n{evaluated}    def training_step(self, x):\n        self.log('a', x.b())\n"
    files = {"model.py": model}
    assert not findings_of(RULE, lightning(read), files)


# Told


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if rank == 0:\n    a()\n    dist.barrier()\n    b()\n", "in the middle"),
        ("if rank == 0:\n    a()\n    if x:\n        dist.barrier()\n", "in the middle"),
        ("if rank == 0:\n    a()\n    dist.barrier()\n    # end\n", "comment ends"),
        ("if rank == 0:\n    dist.all_reduce(x)\n    print(x)\nuse(x)\n", "changes it in place"),
        ("try:\n    a()\nexcept OSError:\n    if rank == 0:\n        dist.barrier()\n", "exception handler"),
        ("if rank == 0:\n    import b\n    dist.all_reduce(b)\n", "`b`, which is made inside"),
        ("if rank == 0:\n    t = make()\n    dist.all_reduce(t)\n", "`t`, which is made inside"),
        ("if rank == 0:\n    self.t = make()\n    dist.all_reduce(self.t)\n", "`self.t`, which is set inside"),
        ("if rank == 0:\n    if x:\n        return\n    a()\n    dist.barrier()\n", "can be left before"),
        ("if rank == 0:\n    out = dist.all_reduce(x)\n    a()\nuse(out)\n", "used outside the guard"),
        ("if rank == 1 or x:\n    y = 1\nif y:\n    t = 2\nif rank == 0:\n    dist.all_reduce(t)\n", ""),
        ("if x:\n    pass\nelif rank == 0:\n    dist.barrier()\n", "elif"),
        ("if rank == 0:\n    dist.barrier()\nelse:\n    print(1)\n", "has an else"),
        ("if rank == 0:\n    pass  # wait\nelse:\n    dist.barrier()\n", "more than the rank"),
        ("if rank == 0:\n    if args.local_rank == 0:\n        dist.barrier()\n", "more than one rank test"),
        ("y = dist.all_reduce(x) if rank == 0 else None\n", "plain `if`"),
        ("if rank == 0 and x > 1:\n    a()\n    dist.barrier()\n", "more than the rank"),
        ("if rank == 0 and x > 1:\n    dist.barrier()\n", "only once that comes out the same on every rank"),
        ("if rank == 0:\n    x = torch.nn.parallel.DistributedDataParallel(x)\n", "train with"),
    ],
)
def test_guards_that_are_told(body: str, reason: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    if not reason:
        source = f"{START}{lines}"
        check_transformed(RULE, source, _unwrapped(source))
        return
    check_told(RULE, f"{DIST}def f(rank, args, x, self):\n{lines}", reason=reason)


def _unwrapped(source: str) -> str:
    return source.replace("    if rank == 0:\n        dist.all_reduce(t)\n", "    dist.all_reduce(t)\n")


def test_a_name_that_other_ranks_may_not_have() -> None:
    source = (
        f"{DIST}def f(rank):\n    if rank == 0:\n        t = make()\n    if rank == 0:\n"
        "        dist.all_reduce(t)\n"
    )
    check_told(RULE, source, reason="may not have `t`")


def test_a_function_of_another_file_that_reaches_one() -> None:
    found = check_told(
        RULE,
        "from tools import save\ndef f(rank, trainer):\n    if trainer.is_global_zero:\n        save(1)\n",
        reason="does other work besides",
        files={"tools.py": f"{DIST}def save(x):\n    write(x)\n    finish()\ndef finish():\n    dist.barrier()\n"},
    )
    assert "save() -> finish() -> torch.distributed.barrier" in found.message
    assert [(e.path, e.line) for e in found.evidence] == [
        ("module.py", 3), ("module.py", 4), ("tools.py", 6), ("tools.py", 8), ("module.py", 4),
    ]  # fmt: skip
    assert found.evidence[-1].text == "the other ranks come to the end of f without it"


WAITING = f"""{DIST}
def synchronize():
    if not dist.is_initialized():
        return
    dist.barrier()

def reduce_mean(x):
    x = x.clone()
    dist.all_reduce(x)
    return x / dist.get_world_size()

def announce():
    print("here")
    dist.barrier()
"""


def test_a_function_of_another_file_that_only_waits() -> None:
    body = "from tools import synchronize\ndef f(rank, x):\n    if rank == 0:\n        write(x)\n{}    read(x)\n"
    head = "import torch.distributed\n"
    fixed = check_transformed(
        RULE,
        head + body.format("        synchronize()\n"),
        head + body.format("    synchronize()\n"),
        files={"tools.py": WAITING},
    )
    assert [e.path for e in fixed[0].evidence] == ["module.py", "module.py", "tools.py", "module.py"]


def test_a_function_that_only_reduces() -> None:
    head = f"{DIST}from tools import reduce_mean\ndef f(loss):\n    rank = dist.get_rank()\n"
    check_transformed(
        RULE,
        f"{head}    if rank == 0:\n        mean = reduce_mean(loss)\n        print(mean)\n",
        f"{head}    mean = reduce_mean(loss)\n    if rank == 0:\n        print(mean)\n",
        files={"tools.py": WAITING},
    )


def test_a_function_that_prints_before_it_waits() -> None:
    source = f"{DIST}from tools import announce\ndef f(x):\n    if dist.get_rank() == 0:\n        announce()\n"
    check_told(RULE, source, reason="does other work besides", files={"tools.py": WAITING})


def test_calls_that_save_state_are_told_once_a_function() -> None:
    source = """
    from tools import save

    def train(accelerator):
        for step in range(9):
            if accelerator.is_main_process:
                save(accelerator)
        if accelerator.is_main_process:
            save(accelerator)
    """
    tools = "def save(accelerator):\n    accelerator.save_state('a')\n    upload()\n"
    found = findings_of(RULE, source, {"tools.py": tools, **ON_FSDP})
    assert len(found) == 1 and "so do lines 9" in found[0].message


def test_a_whole_evaluation_is_a_decision() -> None:
    head = "from transformers import Trainer\ndef f(trainer, args):\n"
    check_told(RULE, f"{head}    if trainer.is_world_process_zero():\n        trainer.evaluate()\n", reason="has to be decided")


def test_a_decorated_function() -> None:
    source = lightning("@rank_zero_only\ndef on_train_epoch_end(self, trainer, m):\n    write(trainer.callback_metrics)")
    check_told(RULE, source, reason="the decorator keeps")


def test_a_function_that_is_called_under_a_guard_itself() -> None:
    source = (
        f"{DIST}def f(rank):\n    if rank == 0:\n        dist.barrier()\ndef main(rank):\n"
        "    if rank == 0:\n        f(rank)\n"
    )
    check_told(RULE, source, reason="called on some ranks only")


def test_prepare_data_runs_on_one_process() -> None:
    source = lightning("def prepare_data(self):\n    if self.trainer.is_global_zero:\n        a(self.trainer.log_dir)")
    check_told(RULE, source.replace("Callback", "LightningDataModule"), reason="does not run on every rank")


def test_a_read_in_a_function_that_is_no_hook() -> None:
    source = lightning("def helper(self, trainer):\n    if trainer.is_global_zero:\n        print(trainer.log_dir)")
    check_told(RULE, source, reason="is no hook")


def test_a_read_without_a_free_name() -> None:
    body = "    log_dir = 1\n    if trainer.is_global_zero:\n        f(trainer.log_dir, log_dir)"
    source = lightning(f"def on_fit_end(self, trainer, m):\n{body}")
    check_told(RULE, source, reason="no free name")


# As often as the others?


FILLED = """
def on_train_epoch_start(self):
    logs = {{"a": 0.0}}
    if self.global_rank == 0:
        logs = self.evaluate()
    for k, v in logs.items():
        {}
"""


def test_a_loop_over_what_only_rank_zero_filled() -> None:
    before = lightning(FILLED.format('self.log(k, v, sync_dist=True, reduce_fx="max")'), base="LightningModule")
    after = lightning(FILLED.format('self.log(k, v, reduce_fx="max", rank_zero_only=True)'), base="LightningModule")
    fixed = check_transformed(RULE, before, after, unsafe=True)
    assert "`logs` decides" in fixed[0].message and "nothing monitors it" in fixed[0].reason


def test_a_loop_with_other_collectives_in_it() -> None:
    body = FILLED.format("self.log(k, self.all_gather(v).mean(), sync_dist=True)")
    check_told(RULE, lightning(body, base="LightningModule"), reason="give every rank the same value first")


def test_a_value_that_only_rank_zero_has_is_logged_for_rank_zero() -> None:
    body = """
def on_validation_epoch_end(self):
    if self.trainer.is_global_zero:
        score = self.score()
        self.log("score", score, {})
"""
    before = lightning(body.format("sync_dist=True"), base="LightningModule")
    after = lightning(body.format("rank_zero_only=True"), base="LightningModule")
    fixed = check_transformed(RULE, before, after, unsafe=True)
    assert "nothing monitors it" in fixed[0].reason
    (old,) = findings_of(RULE, before, {"requirements.txt": "pytorch-lightning==1.3.8\n"})
    assert old.fix is None


@pytest.mark.parametrize(
    "loop",
    [
        "for p in files[rank::world]:",
        "mine = files[rank::world]\n    for p in tqdm(mine):",
        "for i in range(rank, len(files), world):",
        "for p in islice(files, dist.get_rank(), None, world):",
    ],
)
def test_a_collective_for_each_item_of_a_share(loop: str) -> None:
    source = f"{DIST}def f(rank, files, world, x):\n    {loop}\n        dist.all_reduce(x)\n"
    found = check_told(RULE, source, reason="as many rounds")
    assert "wait for those that are done" in found.message


@pytest.mark.parametrize(
    "loop", ["for p in files[:rank]:", "for p in files:", "for i in range(rank):", "for p in files[rank::world]:\n        if p:"]
)
def test_other_loops(loop: str) -> None:
    indent = "            " if loop.endswith("if p:") else "        "
    check_nothing(RULE, f"{DIST}def f(rank, files, world, x):\n    {loop}\n{indent}dist.all_reduce(x)\n")


@pytest.mark.parametrize(
    "body",
    [
        "stop = torch.zeros(1)\nif rank == 0:\n    stop = ask()\ndist.broadcast(stop, 0)\nif stop:\n    dist.barrier()\n",
        "bar = loader\nif rank == 0:\n    bar = tqdm(bar)\nfor x in bar:\n    dist.all_reduce(x)\n",
        "if rank == 0:\n    n = 1\nelse:\n    n = 2\nfor x in n:\n    dist.all_reduce(x)\n",
        "n = 3\nif rank == 0:\n    n = 1\nn = 2\nfor i in range(n):\n    dist.barrier()\n",
    ],
)
def test_as_often_on_every_rank(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    check_nothing(RULE, f"{DIST}def f(rank, loader):\n{lines}")


WRAPPED = """
def evaluate(model, args, rank):
    if rank != 0:
        return
    model.eval()
    {}
    if args.distributed:
        model = model.module
    model(1)
"""


def test_a_model_that_is_unwrapped_too_late() -> None:
    found = check_told(RULE, f"{DIST}{WRAPPED.format('zero_shot(model, 1)')}", reason="take `model.module` before this line")
    assert "zero_shot gets `model`" in found.message


def test_a_model_that_is_unwrapped_in_time() -> None:
    check_nothing(RULE, f"{DIST}{WRAPPED.format('hasattr(model, 1)')}")


UNWRAPPING = [
    "if args.distributed:\n        net = net.module",
    "net = net.module if hasattr(net, 'module') else net",
    "net = getattr(net, 'module', net)",
    "net = unwrap_model(net)",
    "assert hasattr(net, 'eval')\n    net.eval()\n    net = args.accelerator.unwrap_model(net)",
]
USED_BEFORE = ["net(1)\n    net = net.module", "log(net)\n    net = unwrap_model(net)", "net = compiled(net)"]


def evaluated_by(statement: str) -> str:
    return f"def zero_shot(net, args):\n    {statement}\n    return net(args)\n"


@pytest.mark.parametrize("statement", UNWRAPPING)
def test_a_function_that_unwraps_its_model_first(statement: str) -> None:
    source = f"{DIST}from evaluation import zero_shot\n{WRAPPED.format('zero_shot(model, 1)')}"
    check_nothing(RULE, source, files={"evaluation.py": evaluated_by(statement)})
    evaluate = evaluated_by(statement).replace("    return net", "    with torch.no_grad():\n        return net")
    check_nothing(RULE, f"{DDP}{evaluate}\n{ON_RANK_ZERO}")


@pytest.mark.parametrize("statement", USED_BEFORE)
def test_a_function_that_uses_the_wrapper_first(statement: str) -> None:
    source = f"{DIST}from evaluation import zero_shot\n{WRAPPED.format('zero_shot(model, 1)')}"
    found = check_told(RULE, source, files={"evaluation.py": evaluated_by(statement)}, reason="take `model.module` before")
    assert "zero_shot gets `model`" in found.message
    assert findings_of(RULE, f"{DDP}{evaluated_by(statement)}\n{ON_RANK_ZERO}")


ON_RANK_ZERO = "def main(args):\n    model = DDP(Net())\n    if dist.get_rank() == 0:\n        zero_shot(model, args)\n"
DDP = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"


def test_rank_zero_evaluates_without_the_wrapper() -> None:
    source = f"""{DDP}
def main(loader):
    model = DDP(Net())
    train(model)
    if dist.get_rank() == 0:
        with torch.no_grad():
            for x in loader:
                print(WRAPPED(x))
"""
    fixed = check_transformed(RULE, source.replace("WRAPPED", "model"), source.replace("WRAPPED", "model.module"))
    assert "each forward is a broadcast" in fixed[0].message


EVALUATE = """
@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    return [net(x) for x in loader]
"""


def test_a_function_that_evaluates_on_rank_zero() -> None:
    source = f"""{DDP}{EVALUATE}
def main(loader):
    model = DDP(Net())
    if dist.get_rank() == 0:
        evaluate(WRAPPED, loader)
"""
    check_transformed(RULE, source.replace("WRAPPED", "model"), source.replace("WRAPPED", "model.module"))


@pytest.mark.parametrize(
    ("wrap", "evaluate", "reason"),
    [
        ("if dist.is_initialized():\n        model = DDP(model)", EVALUATE, "no wrapper to take apart"),
        ("model = DDP(model)", EVALUATE.replace("@torch.no_grad()\n", ""), "gradients may be wanted"),
        ("model = DDP(model)", EVALUATE.replace("net.eval()", "log(net)"), "used in other ways"),
    ],
)
def test_a_wrapper_on_rank_zero_that_is_told(wrap: str, evaluate: str, reason: str) -> None:
    source = f"""{DDP}{evaluate}
def main(loader):
    model = Net()
    {wrap}
    if dist.get_rank() == 0:
        evaluate(model, loader)
"""
    check_told(RULE, source, reason=reason)


def test_the_wrapper_of_apex_sends_no_buffers() -> None:
    head = f"{EVALUATE}\ndef main(loader):\n    model = DDP(Net())\n    if dist.get_rank() == 0:\n"
    main = f"{head}        evaluate(model, loader)\n"
    apex = DDP.replace("torch.nn.parallel", "apex.parallel")
    check_nothing(RULE, apex + main)
    other = "except ImportError:\n    from torch.nn.parallel import DistributedDataParallel as DDP\n"
    assert findings_of(RULE, apex.replace("from apex", "try:\n    from apex") + other + main)


def test_every_rank_may_run_the_wrapper() -> None:
    source = f"{DDP}{EVALUATE}\ndef main(loader):\n    model = DDP(Net())\n    evaluate(model, loader)\n"
    check_nothing(RULE, source)
    head = f"{DDP}{EVALUATE}\ndef main(loader):\n    model = DDP(Net())\n    if dist.get_rank() == 0:\n"
    check_nothing(RULE, f"{head}        evaluate(model.module, loader)\n        torch.save(model.state_dict(), 'p')\n")


LOGGED = "def on_validation_epoch_end(self):\n    if self.trainer.is_global_zero:\n        self.log('a', 1{})"


def test_a_log_on_one_rank_under_an_old_lightning() -> None:
    head = "import pytorch_lightning as pl"
    source = lightning(LOGGED.format(""), base="LightningModule", head=head)
    after = lightning(LOGGED.format(", rank_zero_only=True"), base="LightningModule", head=head)
    fixed = check_transformed(RULE, source, after, unsafe=True)
    assert "up to 1.6" in fixed[0].message and "nothing monitors it" in fixed[0].reason
    check_nothing(RULE, source, files={"requirements.txt": "pytorch-lightning>=1.9\n"})
    for pin in ("==1.3.8", "<1.4"):
        check_nothing(RULE, source, files={"requirements.txt": f"pytorch-lightning{pin}\n"})
    check_transformed(RULE, source, after, unsafe=True, files={"requirements.txt": "pytorch-lightning>=1.4\n"})
    check_told(RULE, source, reason="has from 1.4 on", files={"requirements.txt": "pytorch-lightning>=1.3\n"})


@pytest.mark.parametrize("hook", ["on_test_epoch_end(self)", "test_epoch_end(self, outputs)"])
def test_a_log_of_a_test_on_one_rank_is_left_alone_by_the_newest(hook: str) -> None:
    logged = LOGGED.format("").replace("on_validation_epoch_end(self)", hook)
    source = lightning(logged, base="LightningModule", head="import pytorch_lightning as pl")
    check_nothing(RULE, source)
    check_nothing(RULE, source, files={"requirements.txt": "pytorch-lightning\n"})
    for pin in ("==1.5.10", ">=1.4,<1.6"):
        assert findings_of(RULE, source, {"requirements.txt": f"pytorch-lightning{pin}\n"})


def test_a_log_on_one_rank_that_says_so() -> None:
    source = lightning(LOGGED.format(", rank_zero_only=True"), base="LightningModule", head="import pytorch_lightning as pl")
    check_nothing(RULE, source)
    check_nothing(RULE, lightning(LOGGED.format(""), base="LightningModule"))


# Other ways in which ranks part


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if rank == 0:\n    dist.all_reduce(x)\nelse:\n    dist.barrier()\n", "take each other's call for their own"),
        ("match rank:\n    case 0:\n        dist.barrier()\n    case _:\n        print(1)\n", "`match rank`"),
        ("with accelerator.main_process_first():\n    dist.all_reduce(x)\n", "one after the other"),
    ],
)
def test_ranks_that_part_in_other_ways(body: str, message: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    found = findings_of(RULE, f"{DIST}def f(rank, x, accelerator):\n{lines}")
    assert [f.applicability for f in found] == [Applicability.DISPLAY]
    assert message in found[0].message and found[0].reason


def test_both_ways_are_shown() -> None:
    source = f"{DIST}def f(rank, x):\n    if rank == 0:\n        dist.all_reduce(x)\n    else:\n        dist.barrier()\n"
    found = findings_of(RULE, source)[0]
    assert [(e.line, e.text) for e in found.evidence] == [
        (5, "rank 0: `rank == 0`"),
        (6, "torch.distributed.all_reduce"),
        (5, "the other ranks meet instead: torch.distributed.barrier"),
        (8, "torch.distributed.barrier"),
    ]


def test_the_other_half_stands_in_the_caller() -> None:
    source = f"""{DIST}
def write(rank, x):
    if rank == 0:
        torch.save(x, "p")
        dist.barrier()

def main(rank, x):
    write(rank, x)
    if rank != 0:
        dist.barrier()
        torch.load("p")
"""
    check_nothing(RULE, source)


def test_a_method_that_is_called_under_a_guard_only() -> None:
    source = f"""{DIST}
class Trainer:
    def step(self):
        if self.rank == 0:
            self.finish()

    def finish(self):
        self.done = True
        dist.barrier()
"""
    found = check_told(RULE, source, reason="does other work besides")
    assert "self.finish() -> torch.distributed.barrier" in found.message


# Nothing to say


@pytest.mark.parametrize(
    "body",
    [
        "if rank != 0:\n    dist.barrier()\ndownload()\nif rank == 0:\n    dist.barrier()\n",
        "if rank == 0:\n    dist.gather(x, out)\nelse:\n    dist.gather(x)\n",
        "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n    receive(x)\n",
        "if rank != 0:\n    dist.barrier()\n    return\nwrite()\ndist.barrier()\n",
        "if rank == 0:\n    dist.barrier(group=x)\n",
        "if rank == src:\n    dist.barrier()\n",
        "if rank == 0:\n    dist.broadcast(x, 0)\nif rank == 1:\n    dist.broadcast(x, 0)\n",
        "if rank != 0:\n    serve()\n    return\ndist.broadcast(x, 0)\n",
        "if dist.is_initialized():\n    dist.barrier()\n",
        "if rank != -1:\n    dist.barrier()\n",
        "if args.local_rank != -1:\n    dist.init_process_group('nccl')\n",
        "if rank == 0:\n    dist.init_process_group('nccl')\n",
        "if rank == 0:\n    torch.save(x.state_dict(), 'p')\ndist.barrier()\n",
        "if rank == 0:\n    x.save_pretrained('p')\n    accelerator.save(x, 'p')\n    y = torch.gather(x, 0, i)\n",
        "if rank == 0:\n    dist.send(x, 1)\n",
        "with accelerator.main_process_first():\n    dist.barrier()\n",
        "if not x:\n    return\ndist.barrier()\n",
        "try:\n    if rank == 0:\n        dist.barrier(group=x)\nfinally:\n    dist.barrier()\n",
        "match rank:\n    case 0:\n        dist.barrier()\n    case _:\n        dist.barrier()\n",
    ],
)
def test_right_as_it_is(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    check_nothing(RULE, f"{DIST}def f(rank, args, x):\n{lines}")


def test_a_way_in_and_a_way_out() -> None:
    source = """
    import torch.distributed as dist

    class First:
        def __enter__(self):
            if dist.get_rank() != 0:
                dist.barrier()

        def __exit__(self, *a):
            if dist.get_rank() == 0:
                dist.barrier()
    """
    check_nothing(RULE, source)


def test_low_rank_is_no_process() -> None:
    check_nothing(RULE, f"{DIST}def build(rank, alpha):\n    if rank == 0:\n        dist.barrier()\n")


def test_a_forbidden_decorator_is_another_rules_matter() -> None:
    source = "@rank_zero_only\ndef validation_step(self, b, i):\n    self.log('a', b, sync_dist=True)"
    check_nothing(RULE, lightning(source, base="LightningModule"))


def test_the_tests_of_a_repository_are_left_alone() -> None:
    source = f"{DIST}def test_f():\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
    check_nothing(RULE, source, path="tests/test_train.py")


@pytest.mark.parametrize(("above", "told"), [("trainer.fit(model)", False), ("trainer.fit_loop.setup_data()", True)])
def test_behind_the_run_of_a_trainer_no_metric_is_left_to_be_reduced(above: str, told: bool) -> None:
    source = f"""
        import lightning as L

        def main(model, trainer: L.Trainer):
            {above}
            if trainer.is_global_zero:
                print(trainer.callback_metrics)
            trainer.strategy.barrier()
        """
    assert bool(findings_of(RULE, source)) is told


def test_a_protocol_whose_other_half_stands_in_the_function_round_it() -> None:
    source = (
        f"{DIST}def solve(rank, optimizer, signal, work):\n    def closure():\n        if rank == 0:\n"
        "            dist.broadcast(signal, src=0)\n        return work()\n\n    if rank == 0:\n"
        "        optimizer.step(closure)\n        signal.fill_(0)\n        dist.broadcast(signal, src=0)\n"
        "    else:\n        while True:\n            OTHER\n            if signal.item() == 0:\n                break\n"
        "            closure()\n"
    )
    check_nothing(RULE, source.replace("OTHER", "dist.broadcast(signal, src=0)"))
    assert findings_of(RULE, source.replace("OTHER", "wait(signal)"))


def test_the_arm_to_which_no_wrapper_comes() -> None:
    source = (
        f"{DIST}from torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = nn.BatchNorm1d(8)\n\n"
        "    def forward(self, x):\n        return self.norm(x)\n\n\n"
        "def main(rows, rank):\n    model = DDP(Net())\n    for x in rows:\n        model(x).sum().backward()\n"
        "    if rank == 0:\n        for x in rows:\n            if hasattr(model, 'ASKED'):\n"
        "                y = model.module(x)\n            else:\n                y = model(x)\n            print(y)\n"
    )
    check_nothing(RULE, source.replace("ASKED", "module"))
    assert findings_of(RULE, source.replace("ASKED", "other"))


STAGGERED = """import torch.distributed as dist


class InTurn:
    def __init__(self, local_rank):
        self.local_rank = local_rank

    def __enter__(self):
        if FIRST:
            dist.barrier()

    def __exit__(self, *error):
        if SECOND:
            dist.barrier()


def main():
    dist.init_process_group('nccl')
    with InTurn(int(os.environ['LOCAL_RANK'])):
        load()
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("self.local_rank % 2 == 0", "self.local_rank % 2 == 1"),
        ("dist.get_rank() % 2 == 0", "dist.get_rank() % 2 == 1"),
        ("self.local_rank == 0", "self.local_rank > 0"),
    ],
)
def test_the_two_halves_of_a_way_to_go_in_turn(first: str, second: str) -> None:
    """Even ranks wait before the block, odd ranks behind it: each meets one barrier."""
    source = "import os\n" + STAGGERED.replace("FIRST", first).replace("SECOND", second)
    check_nothing(RULE, source)


def test_half_a_way_to_go_in_turn_is_told() -> None:
    source = "import os\n" + STAGGERED.replace("FIRST", "dist.get_rank() == 0").replace("if SECOND:", "if self.wait:")
    found = [f for f in findings_of(RULE, source) if f.applicability is Applicability.SAFE]
    assert not found, [f.message for f in found]


@pytest.mark.parametrize("decorator", ["@cache", "@lru_cache(maxsize=None)"])
def test_an_answer_that_every_rank_has_kept(decorator: str) -> None:
    source = (
        f"{DIST}from functools import cache, lru_cache\n\n\n{decorator}\ndef score(p):\n    x = torch.zeros(1)\n"
        "    dist.all_reduce(x)\n    return x\n\n\ndef search(rows):\n    best = max(rows, key=score)\n"
        "    if dist.get_rank() == 0:\n"
        "        print(score(best))\n"
    )
    check_nothing(RULE, source)


EVALUATED = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torchmetrics.classification import MulticlassAccuracy


@torch.no_grad()
def evaluate(model, loader, metric):
    for x, y in loader:
        metric.update(model(x), y)
    return COUNTED


def main(net, loader):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DistributedDataParallel(net)
    accuracy = MulticlassAccuracy(num_classes=3)
    if rank == 0:
        evaluate(model, loader, accuracy)
"""


def test_a_metric_that_the_function_is_handed_waits_as_well() -> None:
    alone = findings_of(CollectiveUnderRankGuard, EVALUATED.replace("COUNTED", "3"))
    waits = findings_of(CollectiveUnderRankGuard, EVALUATED.replace("COUNTED", "metric.compute()"))
    assert any(f.edits for f in alone)
    assert waits and not any(f.edits for f in waits) and any("metric.compute() waits" in f.reason for f in waits)


MPI = (
    "import io\nimport torch\nimport torch.distributed as dist\nfrom mpi4py import MPI\n\n\ndef load(path):\n{body}"
    "    return torch.load(io.BytesIO(data))\n\n\ndef resume(model, path):\n    dist.init_process_group('nccl')\n{use}"
)
WHOLE = (
    "    comm = MPI.COMM_WORLD\n    data = open(path, 'rb').read() if comm.Get_rank() == 0 else None\n"
    "    data = comm.bcast(data)\n"
)
CHUNKS = (
    "    if MPI.COMM_WORLD.Get_rank() == 0:\n        data = open(path, 'rb').read()\n        parts = cut(data)\n"
    "        MPI.COMM_WORLD.bcast(len(parts))\n        for part in parts:\n            MPI.COMM_WORLD.bcast(part)\n"
    "    else:\n        count = MPI.COMM_WORLD.bcast(None)\n        data = b''\n        for _ in range(count):\n"
    "            data += MPI.COMM_WORLD.bcast(None)\n"
)
GUARDED = "    if dist.get_rank() == 0:\n        model.load_state_dict(load(path))\n    dist.broadcast(model.weight, 0)\n"


@pytest.mark.parametrize("body", [WHOLE, WHOLE.replace("comm.bcast", "MPI.COMM_WORLD.bcast"), CHUNKS])
def test_a_broadcast_of_mpi_in_a_helper(body: str) -> None:
    check_told(RULE, MPI.format(body=body, use=GUARDED), reason="")


@pytest.mark.parametrize(
    ("body", "use"),
    [
        (WHOLE, "    model.load_state_dict(load(path))\n"),
        (CHUNKS, "    model.load_state_dict(load(path))\n"),  # two halves, as often: how many there are is sent first
        ("    data = open(path, 'rb').read()\n", GUARDED),
        (WHOLE.replace("MPI.COMM_WORLD", "own.comm()"), GUARDED),
    ],
)
def test_broadcasts_of_mpi_that_all_make(body: str, use: str) -> None:
    check_nothing(RULE, MPI.format(body=body, use=use))


def test_loops_of_two_sides_without_a_number_that_is_sent() -> None:
    source = (
        f"{DIST}def send(rows, rank):\n    dist.init_process_group('gloo')\n    if rank == 0:\n        for row in rows:\n"
        "            dist.broadcast(row, 0)\n    else:\n        for row in range(8):\n"
        "            dist.broadcast(torch.zeros(2), 0)\n"
    )
    check_told(RULE, source, reason="make the same collectives in the same order")
    sent = source.replace("        for row", "        dist.broadcast(count, 0)\n        for row")
    check_nothing(RULE, sent)


GATHERED = """\
import torch
import torch.distributed as dist


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
"""


@pytest.mark.parametrize("call", ["gathers.Gathered.apply(out)", "every(out)"])
def test_a_collective_in_the_forward_of_an_autograd_function(call: str) -> None:
    files = {"gathers.py": f"{GATHERED}\n\ndef every(x):\n    return Gathered.apply(x)\n"}
    source = f"{DIST}import gathers\nfrom gathers import every\n\n\ndef f(model, batch):\n    out = model(batch)\n"
    source += f"    if dist.get_rank() == 0:\n        shown = {call}\n        print(shown.mean())\n"
    (found,) = findings_of(RULE, source, files=files)
    assert (found.span.line, found.applicability) == (11, Applicability.DISPLAY)
    assert "Gathered.apply() -> torch.distributed.all_gather waits for every rank" in found.message


def test_an_autograd_function_without_a_collective() -> None:
    source = f"{DIST}import gathers\n\n\ndef f(x):\n    if dist.get_rank() == 0:\n        print(gathers.Doubled.apply(x))\n"
    check_nothing(RULE, source, files={"gathers.py": GATHERED})


# A barrier on each way


TURNS = """\
import torch.distributed as dist

def rows(rank, kind):
    if rank != 0:
        dist.barrier()
    if kind == "test":
        data = read(kind)
        if rank == 0:
            {first}
        return data
    {second}
    data = read(kind)
    if rank == 0:
        {third}
    return data
"""


OF_THREE = "if kind == 'valid':\n        if rank == 0:\n            dist.barrier()\n        return read(kind)"


@pytest.mark.parametrize("second", ["pass", OF_THREE, "if kind is None:\n        raise ValueError(kind)"])
def test_rank_zero_lets_the_others_in_on_each_way(second: str) -> None:
    check_nothing(RULE, TURNS.format(first="dist.barrier()", second=second, third="dist.barrier()"))


@pytest.mark.parametrize(
    ("first", "third"), [("pass", "dist.barrier()"), ("dist.barrier()", "pass"), ("pass", "pass")]
)
def test_a_way_on_which_rank_zero_does_not(first: str, third: str) -> None:
    assert mismatched(TURNS.format(first=first, second="pass", third=third))


def mismatched(text: str) -> bool:
    project = project_of(text)
    module = project.module("module.py")
    assert module is not None
    return bool(mismatches(project, module, module.functions[0]))


MODES = """
import torch
from accelerate.utils import DistributedType
from transformers.trainer_pt_utils import distributed_broadcast_scalars
from transformers.training_args import ParallelMode


class Loop:
    def count(self):
        if {}:
            return distributed_broadcast_scalars([self.seen])
        return self.seen

    def save(self, path):
        if self.args.should_save:
            self.count()
            torch.save(self.model.state_dict(), path)
"""


@pytest.mark.parametrize(
    "test",
    [
        "self.args.parallel_mode == ParallelMode.DISTRIBUTED",
        "self.args.parallel_mode != ParallelMode.NOT_DISTRIBUTED",
        "self.state.distributed_type != DistributedType.NO",
    ],
)
def test_a_mode_that_says_there_are_several_processes(test: str) -> None:
    (found,) = findings_of(RULE, MODES.format(test))
    assert found.applicability is Applicability.UNSAFE and "distributed_broadcast_scalars" in found.message


@pytest.mark.parametrize(
    "test",
    [
        "self.args.parallel_mode == ParallelMode.NOT_DISTRIBUTED",
        "self.args.parallel_mode == ParallelMode.NOT_PARALLEL",
        "self.state.distributed_type == DistributedType.NO",
    ],
)
def test_a_mode_of_one_process(test: str) -> None:
    check_nothing(RULE, MODES.format(test))


STARTS = """\
import torch
import torch.distributed as dist


def train(model, args, rank):
    dist.init_process_group("nccl")
    first = {above}
    if args.resume:
        first = torch.load(args.resume)["epoch"]
    else:
        if dist.get_rank() == 0:
            first = {given}
    for epoch in range(first, args.epochs):
        model.step()
        dist.barrier()
"""


def test_a_number_that_rank_0_is_given_and_all_ranks_have() -> None:
    check_nothing(CollectiveUnderRankGuard, STARTS.format(above="0", given="0"))


@pytest.mark.parametrize(
    "source",
    [
        STARTS.format(above="1", given="0"),
        STARTS.format(above="args.first", given="0"),
        STARTS.format(above="0", given="0").replace("    else:\n        if", "    if True:\n        if"),
    ],
)
def test_a_number_that_rank_0_alone_is_given(source: str) -> None:
    assert findings_of(CollectiveUnderRankGuard, source)


IN_A_HELPER = """\
import torch.distributed as dist


def share(value, size):
    if {test}:
        dist.all_reduce(value)
    return value


def main(value):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 0:
        share(value, dist.get_world_size())


if __name__ == "__main__":
    main(read())
"""


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("dist.get_world_size() > 1", 1),
        ("dist.is_initialized()", 1),
        ("dist.get_world_size() == 1", 0),  # one process waits for nobody
        ("not dist.is_initialized()", 0),
    ],
)
def test_a_helper_that_one_process_alone_has_wait(test: str, found: int) -> None:
    files = {"run.sh": "torchrun --nproc_per_node=2 module.py\n"}
    assert len(findings_of(CollectiveUnderRankGuard, IN_A_HELPER.format(test=test), files)) == found


PREPARED = """\
import torch
from accelerate import Accelerator

{judge}

def main(rows):
    accelerator = Accelerator()
    net, judge = make_net(), Judge()
{above}
    judge = judge.to(accelerator.device)
    {target} = accelerator.prepare({given})
{below}
    for x, y in rows:
        loss = net(x).sum()
        accelerator.backward(loss)
        if accelerator.is_main_process:
            with torch.no_grad():
                print(judge(x))
"""


SEEN = """\
class Judge(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.norm(self.body(x)))
"""
UNSEEN = "from judges import Judge  # BatchNorm1d inside\n"


def prepared(judge: str, above: str = "", *, below: str = "", pair: bool = True) -> str:
    both = "net, judge" if pair else "judge"
    return PREPARED.format(judge=judge, above=indent(above, "    "), below=indent(below, "    "), target=both, given=both)


@pytest.mark.parametrize("judge", [SEEN, UNSEEN])
@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize(
    "above",
    [
        "judge.requires_grad_(False)",
        "judge.requires_grad_(requires_grad=False)",
        "for p in judge.parameters():\n    p.requires_grad = False",
        "for p in judge.parameters():\n    p.requires_grad_(False)",
        "for name, p in judge.named_parameters():\n    p.requires_grad = False",
        "judge = Judge().eval().requires_grad_(False)",
    ],
)
def test_a_frozen_model_gets_no_wrapper_from_accelerate(above: str, pair: bool, judge: str) -> None:
    check_nothing(RULE, prepared(judge, above, pair=pair))


@pytest.mark.parametrize("judge", [SEEN, UNSEEN])

@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("", ""),
        ("", "judge.requires_grad_(False)"),
        ("judge.requires_grad_(True)", ""),
        ("judge.requires_grad_(False)\njudge.requires_grad_(True)", ""),
        ("judge.requires_grad_(False)\njudge.head.requires_grad_()", ""),
        ("judge.requires_grad_(False)\nfor p in judge.head.parameters():\n    p.requires_grad = True", ""),
        ("judge.body.requires_grad_(False)", ""),
        ("for name, p in judge.named_parameters():\n    if 'head' not in name:\n        p.requires_grad = False", ""),
    ],
)
def test_a_model_of_which_a_part_is_trained_gets_one(above: str, below: str, judge: str) -> None:
    assert any("judge" in f.message for f in findings_of(RULE, prepared(judge, above, below=below)))
