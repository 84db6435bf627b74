from __future__ import annotations

import pytest

from codemods.data_loading.schedule_length import ScheduleLength
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = (
    "import math\nimport torch\nfrom accelerate import Accelerator, DataLoaderConfiguration\n"
    "from transformers import get_linear_schedule_with_warmup, get_scheduler\n"
    "from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR, ReduceLROnPlateau\n\n\n"
)
PREPARE = "model, optimizer, loader, sched = accelerator.prepare(model, optimizer, loader, sched)"


def program(*lines: str, made: str = "Accelerator()", after: tuple[str, ...] = (), prepare: str = PREPARE) -> str:
    body = "".join(f"    {line}\n" for line in (f"accelerator = {made}", *lines, prepare, *after))
    return f"{HEAD}def train(args, model, optimizer, loader):\n{body}"


COSINE = "sched = CosineAnnealingLR(optimizer, T_max=args.max_steps)"
LOOP = (
    "for epoch in range(args.epochs):",
    "    for x, y in loader:",
    "        accelerator.backward(model(x))",
    "        optimizer.step()",
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (COSINE, COSINE.replace("max_steps", "max_steps * accelerator.num_processes")),
        (
            "sched = get_linear_schedule_with_warmup(optimizer, args.warm, args.steps)",
            "sched = get_linear_schedule_with_warmup(optimizer, args.warm * accelerator.num_processes, "
            "args.steps * accelerator.num_processes)",
        ),
        (
            "sched = get_scheduler('cosine', optimizer, num_warmup_steps=0, num_training_steps=args.steps - 10)",
            "sched = get_scheduler('cosine', optimizer, num_warmup_steps=0, "
            "num_training_steps=(args.steps - 10) * accelerator.num_processes)",
        ),
        (
            "sched = get_scheduler('cosine', optimizer, 0, num_training_steps=20000)",
            "sched = get_scheduler('cosine', optimizer, 0, num_training_steps=20000 * accelerator.num_processes)",
        ),
    ],
)
def test_a_number_of_steps_is_multiplied(before: str, after: str) -> None:
    check_transformed(ScheduleLength, program(before), program(after), unsafe=True)


def test_the_length_of_the_prepared_loader_is_multiplied() -> None:
    lines = ("loader = accelerator.prepare(loader)", "sched = CosineAnnealingLR(optimizer, T_max=len(loader) * args.epochs)")
    after = (lines[0], "sched = CosineAnnealingLR(optimizer, T_max=len(loader) * args.epochs * accelerator.num_processes)")
    prepare = "model, optimizer, sched = accelerator.prepare(model, optimizer, sched)"
    check_transformed(ScheduleLength, program(*lines, prepare=prepare), program(*after, prepare=prepare), unsafe=True)


WARMED = "sched = get_linear_schedule_with_warmup(optimizer, args.warm, total)"


def test_the_share_of_a_rank_is_multiplied_with_the_warm_up() -> None:
    lines = ("total = len(loader) * args.epochs // args.every // accelerator.num_processes", WARMED)
    by = " * accelerator.num_processes"
    after = (lines[0], f"sched = get_linear_schedule_with_warmup(optimizer, args.warm{by}, total{by})")
    check_transformed(ScheduleLength, program(*lines), program(*after), unsafe=True)


def test_given_steps_or_those_of_a_share_are_multiplied() -> None:
    lines = (
        "per_epoch = math.ceil(len(loader) / args.every / accelerator.num_processes)",
        "if args.max_steps is None:",
        "    args.max_steps = args.epochs * per_epoch",
        COSINE,
    )
    after = (*lines[:3], COSINE.replace("max_steps", "max_steps * accelerator.num_processes"))
    check_transformed(ScheduleLength, program(*lines), program(*after), unsafe=True)


@pytest.mark.parametrize("share", ["len(loader) / args.every", "steps_of(loader) / accelerator.num_processes"])
def test_not_multiplied_where_the_loader_may_count_for_all(share: str) -> None:
    lines = (f"per_epoch = math.ceil({share})", "if args.max_steps is None:", "    args.max_steps = args.epochs * per_epoch")
    assert all(f.fix is None for f in findings_of(ScheduleLength, program(*lines, COSINE)))


def test_told_where_the_steps_are_given_or_counted() -> None:
    lines = (
        "if args.max_steps is None:",
        "    args.max_steps = args.epochs * math.ceil(len(loader) / args.every)",
        COSINE,
    )
    check_told(ScheduleLength, program(*lines), reason="leave one that the loader gives")


def test_told_where_counted_steps_are_multiplied() -> None:
    lines = ("per_epoch = math.ceil(len(loader) / args.every)", "total = args.epochs * per_epoch * accelerator.num_processes")
    found = check_told(ScheduleLength, program(*lines, "sched = CosineAnnealingLR(optimizer, total)"), reason="divide the loader")
    assert "num_processes times too long" in found.message


def test_told_where_the_schedule_is_made_in_another_method() -> None:
    source = (
        f"{HEAD}class Run:\n    def __init__(self):\n        self.accelerator = Accelerator()\n\n    def build(self, config):\n"
        "        self.sched = CosineAnnealingLR(self.optimizer, T_max=config.steps)\n\n    def setup(self):\n"
        "        self.optimizer, self.sched = self.accelerator.prepare(self.optimizer, self.sched)\n"
    )
    check_told(ScheduleLength, source, reason="multiply the lengths")


@pytest.mark.parametrize(
    ("made", "step"),
    [
        ("sched = CosineAnnealingLR(optimizer, T_max=20)", "sched.step()"),
        ("sched = ReduceLROnPlateau(optimizer, patience=3)", "sched.step(loss)"),
        ("sched = CosineAnnealingLR(optimizer, T_max=args.epochs)", "sched.step()"),
    ],
)
def test_told_where_a_prepared_schedule_is_stepped_once_an_epoch(made: str, step: str) -> None:
    check_told(ScheduleLength, program(made, after=(*LOOP, f"    {step}")), reason="leave a schedule that counts epochs out")


@pytest.mark.parametrize(
    "lines",
    [
        ("sched = CosineAnnealingLR(optimizer, T_max=len(loader) * args.epochs)",),
        ("sched = OneCycleLR(optimizer, 0.1, steps_per_epoch=len(loader), epochs=args.epochs)",),
        ("sched = CosineAnnealingLR(optimizer, T_max=args.max_steps * accelerator.num_processes)",),
        ("ranks = accelerator.num_processes", "total = args.max_steps * ranks", "sched = CosineAnnealingLR(optimizer, total)"),
        ("args.max_steps *= accelerator.num_processes", COSINE),
        ("sched = CosineAnnealingLR(optimizer, T_max=steps_of(args))",),
        ("sched = CosineAnnealingLR(optimizer, T_max=args.num_epochs)",),  # stepped with each batch it is wrong by another factor
        ("rounds = 100", "sched = CosineAnnealingLR(optimizer, T_max=rounds)"),
        ("sched = CosineAnnealingLR(optimizer, **args.options)",),
        (
            "share = math.ceil(len(loader) / accelerator.num_processes)",
            "total = args.epochs * math.ceil(share / args.every) * accelerator.num_processes",
            "sched = CosineAnnealingLR(optimizer, T_max=total)",
        ),
        (
            "if args.max_steps is None:",
            "    share = math.ceil(len(loader) / accelerator.num_processes)",
            "    total = args.epochs * share * accelerator.num_processes",
            "else:",
            "    total = args.max_steps * accelerator.num_processes",
            "sched = CosineAnnealingLR(optimizer, T_max=total)",
        ),
        (  # the arm with the product is for a number that the user gives
            "counted = args.max_steps is None",
            "if counted:",
            "    args.max_steps = args.epochs * math.ceil(len(loader) / args.every)",
            "total = args.max_steps if counted else args.max_steps * accelerator.num_processes",
            "sched = CosineAnnealingLR(optimizer, T_max=total)",
        ),
        ("total = args.max_steps // accelerator.num_processes", WARMED),
        ("total = steps_of(args)", WARMED),
        ("sched = CosineAnnealingLR(optimizer, T_max=20)",),
        ("sched = LambdaLR(optimizer, lambda step: min(step / 100, 1))",),
        ("sched = make(optimizer, args.max_steps)",),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(ScheduleLength, program(*lines))


@pytest.mark.parametrize(
    "made",
    [
        "Accelerator(split_batches=True)",
        "Accelerator(step_scheduler_with_optimizer=False)",
        "Accelerator(dataloader_config=DataLoaderConfiguration(split_batches=args.split))",
        "Accelerator(**args.options)",
        "make_accelerator()",
    ],
)
def test_nothing_of_an_accelerator_that_may_step_otherwise(made: str) -> None:
    check_nothing(ScheduleLength, program(COSINE, made=made))


def test_options_that_hold_other_names_do_not_hide_it() -> None:
    head = "    options = {'log_with': 'all'}\n    accelerator ="
    source = program(COSINE, made="Accelerator(**options)").replace("    accelerator =", head)
    assert len(findings_of(ScheduleLength, source)) == 1


def test_nothing_of_a_setting_that_another_file_multiplies() -> None:
    files = {"options.py": "def read(args, accelerator):\n    args.max_steps = args.max_steps * accelerator.num_processes\n"}
    assert not findings_of(ScheduleLength, program(COSINE), files)


def test_nothing_of_a_schedule_that_is_not_prepared() -> None:
    check_nothing(ScheduleLength, program(COSINE, prepare="model, optimizer = accelerator.prepare(model, optimizer)"))


def test_nothing_of_a_schedule_of_the_loader_that_is_stepped_with_each_batch() -> None:
    lines = ("sched = CosineAnnealingLR(optimizer, T_max=len(loader) * args.epochs)",)
    check_nothing(ScheduleLength, program(*lines, after=(*LOOP, "        sched.step()")))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(ScheduleLength, program(COSINE), path="tests/test_train.py")


LIGHTNING = (
    "import lightning.pytorch as pl\nimport math\nfrom torch.optim.lr_scheduler import CosineAnnealingLR\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n\n\n"
)


def module_of(length: str, tail: str = "", interval: str = "step") -> str:
    return (
        f"{LIGHTNING}class Net(pl.LightningModule):\n    def __init__(self, steps=0):\n        super().__init__()\n"
        "        self.steps = steps\n\n    def configure_optimizers(self):\n        optimizer = self.make()\n"
        f"        schedule = CosineAnnealingLR(optimizer, {length})\n"
        f"        return [optimizer], [{{'scheduler': schedule, 'interval': '{interval}'}}]\n{tail}"
    )


def made(steps: str = "len(loader) * 5", options: str = "", loader: str = "DataLoader(data, 8)") -> str:
    return (
        f"\n\ndef main(data, args):\n    loader = {loader}\n    net = Net(steps={steps})\n"
        f"    trainer = pl.Trainer(devices=args.devices{options})\n    trainer.fit(net, loader)\n"
    )


def test_told_where_a_module_is_handed_the_length_of_the_whole_loader() -> None:
    found = check_told(ScheduleLength, module_of("self.steps", made()), reason="estimated_stepping_batches")
    assert "shares out" in found.message


def test_told_where_a_module_asks_the_whole_loader_for_its_length() -> None:
    source = module_of("self.trainer.max_epochs * len(self.train_dataloader())")
    check_told(ScheduleLength, source, reason="estimated_stepping_batches")


def test_told_where_epochs_are_worked_out_of_the_whole_loader() -> None:
    source = (
        f"{LIGHTNING}def main(data, net, args):\n    loader = DataLoader(data, 8)\n    per_epoch = math.ceil(len(loader) / 2)\n"
        "    epochs = math.ceil(args.max_steps / per_epoch)\n    pl.Trainer(max_epochs=epochs).fit(net, loader)\n"
    )
    found = check_told(ScheduleLength, source, reason="max_steps")
    assert found.span.line == 10


@pytest.mark.parametrize(
    "source",
    [
        module_of("self.steps", made("len(loader) // args.devices")),
        module_of("self.steps", made("args.steps")),
        module_of("self.steps", made(options=", use_distributed_sampler=False")),
        module_of("self.steps", made(loader="DataLoader(data, 8, sampler=DistributedSampler(data))")),
        module_of("self.steps", made(), interval="epoch").replace("steps", "rounds"),
        module_of("self.trainer.estimated_stepping_batches"),
        module_of("len(self.train_dataloader()) // self.trainer.world_size"),
        module_of("self.steps", made().replace("args.devices", "1")),
    ],
)
def test_nothing_of_lengths_that_fit_the_share(source: str) -> None:
    check_nothing(ScheduleLength, source)


def accumulated(*lines: str, length: str = "len(loader) // every", prepare: str = "loader") -> str:
    body = "".join(f"            {line}\n" for line in lines)
    return (
        f"{HEAD}def train(args, model, optimizer, loader, every):\n"
        "    accelerator = Accelerator(gradient_accumulation_steps=every)\n"
        f"    sched = CosineAnnealingLR(optimizer, {length})\n"
        f"    model, optimizer, {prepare} = accelerator.prepare(model, optimizer, {prepare})\n"
        "    for x in loader:\n        with accelerator.accumulate(model):\n"
        f"            accelerator.backward(model(x))\n            optimizer.step()\n{body}"
    )


def test_told_where_a_schedule_that_is_left_out_is_stepped_with_every_micro_batch() -> None:
    found = check_told(ScheduleLength, accumulated("sched.step()"), reason="give it to `accelerator.prepare`")
    assert "micro batch" in found.message


@pytest.mark.parametrize(
    "source",
    [
        accumulated("if accelerator.sync_gradients:", "    sched.step()"),
        accumulated("sched.step()", length="len(loader)"),
        accumulated("sched.step()", prepare="sched"),
        accumulated("print(x)"),
    ],
)
def test_nothing_of_a_schedule_that_keeps_pace(source: str) -> None:
    check_nothing(ScheduleLength, source)


KIND = "sched = get_scheduler(args.lr_kind, optimizer, num_warmup_steps=args.lr_warmup_steps, num_training_steps=args.max_steps)"


def kinds(**texts: str) -> list[str]:
    files = {name.replace("_", "."): text for name, text in texts.items()}
    return [f.message for f in findings_of(ScheduleLength, program(KIND), files)]


@pytest.mark.parametrize(
    "texts",
    [{"a_yaml": "solver:\n  lr_kind: \"constant\"\n"}, {"run_sh": "python train.py --lr_kind=constant --lr_warmup_steps=100\n"},
     {"a_yaml": "lr_kind: constant\n", "run_sh": "python train.py --lr_kind constant\n"},
     {"run_sh": "python t.py --lr_kind constant_with_warmup --lr_warmup_steps=0\n"}],
)  # fmt: skip
def test_a_constant_schedule_wherever_the_project_says(texts: dict[str, str]) -> None:
    assert not kinds(**texts)


@pytest.mark.parametrize(
    "texts",
    [{}, {"a_yaml": "lr_kind: cosine\n"}, {"a_yaml": "lr_kind: constant\n", "b_yaml": "lr_kind: linear\n"},
     {"a_yaml": "lr_kind: constant\n", "run_sh": "python train.py --lr_kind cosine\n"}],
)  # fmt: skip
def test_schedules_that_are_not_always_constant(texts: dict[str, str]) -> None:
    assert any("num_training_steps` and `num_warmup_steps" in message for message in kinds(**texts))


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ('args.lr_kind == "constant"', False),
        ('"linear" == args.lr_kind', True),
        ('args.lr_kind in ("constant", "linear")', True),
        ('args.lr_kind != "constant"', True),
        ('args.other == "constant"', True),
    ],
)
def test_a_test_over_the_call_says_which_kind_it_is(test: str, told: bool) -> None:
    assert bool(findings_of(ScheduleLength, program(KIND.replace("sched = ", f"if {test}: sched = ")))) is told


def test_the_warm_up_of_a_constant_schedule() -> None:
    found = kinds(run_sh="python t.py --lr_kind constant_with_warmup --lr_warmup_steps=500\n")
    assert [("num_warmup_steps" in m, "num_training_steps" in m) for m in found] == [(True, False)]


MICRO = (
    "sched = get_scheduler('cosine', optimizer, num_warmup_steps={0} * args.gradient_accumulation_steps, "
    "num_training_steps={1} * args.gradient_accumulation_steps)"
)
ACCUMULATES = ("for x in loader:", "    with accelerator.accumulate(model):", "        sched.step()")


def test_the_processes_take_the_place_of_the_accumulation_steps() -> None:
    before = program(MICRO.format("args.warm", "args.steps"), after=ACCUMULATES)
    after = before.replace("args.gradient_accumulation_steps", "accelerator.num_processes")
    found = findings_of(ScheduleLength, before)
    assert "count the micro batches, where they have to count the processes" in found[0].message
    check_transformed(ScheduleLength, before, after, unsafe=True)


def test_accumulation_by_hand_may_step_the_scheduler_each_time() -> None:
    before = program(MICRO.format("args.warm", "args.steps"))
    found = findings_of(ScheduleLength, before)
    assert "num_processes times too early" in found[0].message


def of_settings(*lines: str, call: str = "main(**settings)", steps: str = "steps=500") -> str:
    body = "".join(f"    {line}\n" for line in ("accelerator = Accelerator()", *lines, PREPARE))
    return f"{HEAD}def main(model, optimizer, loader, {steps}, **rest):\n{body}\n\ndef start(settings):\n    {call}\n"


def test_a_setting_that_a_program_is_called_with() -> None:
    made = "sched = CosineAnnealingLR(optimizer, T_max=steps)"
    after = made.replace("=steps", "=steps * accelerator.num_processes")
    check_transformed(ScheduleLength, of_settings(made), of_settings(after), unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        of_settings("sched = CosineAnnealingLR(optimizer, T_max=steps)", call="main(*settings)"),
        of_settings("sched = CosineAnnealingLR(optimizer, T_max=steps)", steps="steps"),
        of_settings("steps *= accelerator.num_processes", "sched = CosineAnnealingLR(optimizer, T_max=steps)"),
    ],
)
def test_parameters_that_are_no_settings(source: str) -> None:
    check_nothing(ScheduleLength, source)


_EPOCHS = """import math

from accelerate import Accelerator


def train(args, model, optimizer, loader):
    accelerator = Accelerator({options})
    {above}
    model, optimizer, {into} = accelerator.prepare(model, optimizer, loader)
    {below}
    for epoch in range(epochs):
        for batch in {into}:
            step(model, batch)
"""
_COUNT = "steps = math.ceil(len(loader) / args.accumulate)\n    epochs = math.ceil(args.max_steps / steps)"


def _epochs(above: str = _COUNT, below: str = "pass", into: str = "loader", options: str = "") -> str:
    return _EPOCHS.format(above=above, below=below, into=into, options=options)


@pytest.mark.parametrize("above", [_COUNT, "epochs = args.max_steps // len(loader) + 1"])
def test_epochs_that_are_worked_out_before_the_loader_is_shared_out(above: str) -> None:
    found = check_told(ScheduleLength, _epochs(above), reason="below `prepare`")
    assert "about an Nth of `args.max_steps`" in found.message


@pytest.mark.parametrize(
    "source",
    [
        _epochs("pass", _COUNT),  # of a rank's share
        _epochs(_COUNT, "epochs = math.ceil(args.max_steps / len(loader))"),  # once more
        _epochs(_COUNT.replace("args.accumulate", "(args.accumulate * accelerator.num_processes)")),
        _epochs(_COUNT, into="shared"),  # the length may be meant so
        _epochs("epochs = args.epochs"),
        _epochs("total = args.epochs * len(loader)\n    epochs = total // len(loader)"),  # the processes cancel out
        _epochs(_COUNT.replace("    epochs", "    if args.max_steps: epochs")),
        _epochs(options="split_batches=True"),
        _epochs(options="**args.options"),
        _epochs(_COUNT.replace("len(loader)", "len(args.data)")),
    ],
)
def test_epochs_that_are_right(source: str) -> None:
    check_nothing(ScheduleLength, source)


_CLASS = """\
import torch
from accelerate import Accelerator


class Base:
    def run(self):
        for epoch in range(self.epochs):
            self.one_epoch(epoch)


class Trainer(Base):
    def __init__(self, args, model, optimizer, loader):
        self.epochs = args.epochs
        self.accelerator = Accelerator({options})
        sched = {made}
        {prepare}

    def one_epoch(self, epoch):
        for x in self.loader:
            self.accelerator.backward(self.model(x))
            self.optimizer.step()
{step}
"""
_PREPARED = (
    "self.model, self.optimizer, self.loader, self.lr = self.accelerator.prepare(model, optimizer, loader, sched)"
)
_CHOSEN = "getattr(torch.optim.lr_scheduler, args.kind)(optimizer, args.step_size)"
_STEP_LR = "torch.optim.lr_scheduler.StepLR(optimizer, args.step_size)"


def _class(made: str = _CHOSEN, step: str = "        self.lr.step()", prepare: str = _PREPARED, options: str = "") -> str:
    return _CLASS.format(made=made, step=step, prepare=prepare, options=options)


@pytest.mark.parametrize("made", [_STEP_LR, _CHOSEN])
def test_a_step_at_the_end_of_a_method_that_is_called_for_each_epoch(made: str) -> None:
    found = check_told(ScheduleLength, _class(made), reason="leave a schedule that counts epochs out")
    assert found.span.line == 22


@pytest.mark.parametrize(
    "source",
    [
        _class(step="            self.lr.step()"),  # with each batch
        _class(prepare=_PREPARED.replace(", self.lr ", ", self.others ")),  # another object
        _class(prepare="self.lr = sched\n        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)"),
        _class(options="step_scheduler_with_optimizer=False"),
        _class(options="split_batches=True"),
        _class(f"{_STEP_LR[:-1]} * torch.cuda.device_count())"),
        _class(step="        if epoch > 3:\n            self.lr.step()\n"),  # not seen to be each epoch
        _class().replace("for epoch in range(self.epochs):", "if self.epochs:").replace("one_epoch(epoch)", "one_epoch(0)"),
    ],
)
def test_a_step_at_the_end_of_a_method_that_is_right(source: str) -> None:
    check_nothing(ScheduleLength, source)


_HANDED = """\
import torch
from transformers import Trainer, TrainingArguments


def main(args, model, data):
    {steps}
    opt = torch.optim.AdamW(model.parameters())
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max={length})
    Trainer(model=model, args=TrainingArguments("out"), train_dataset=data, optimizers={given}).train()
"""
_OF_ONE = "steps = len(data) // args.per_device_train_batch_size * args.epochs"


def _handed(steps: str = _OF_ONE, length: str = "steps", given: str = "(opt, sched)") -> str:
    return _HANDED.format(steps=steps, length=length, given=given)


@pytest.mark.parametrize("steps", [_OF_ONE, _OF_ONE.replace("args.epochs", "args.epochs // args.accumulate")])
def test_a_schedule_of_one_process_that_a_trainer_is_handed(steps: str) -> None:
    found = check_told(ScheduleLength, _handed(steps), reason="have the Trainer make the schedule")
    assert "with N processes the training ends after an Nth of the schedule" in found.message


@pytest.mark.parametrize(
    "source",
    [
        _handed(_OF_ONE + " // args.world_size"),
        _handed("steps = len(data) // (args.batch_size * torch.cuda.device_count()) * args.epochs"),
        _handed("steps = len(data) // args.total_batch_size * args.epochs"),
        _handed("size = args.global_batch\n    each = len(data) // size\n    steps = each * args.epochs"),
        _handed("steps = args.steps"),
        _handed(given="(opt, None)"),
        _handed().replace("import Trainer,", "import TrainingArguments  #").replace("    Trainer(", "    Runner("),
    ],
)
def test_a_schedule_of_a_trainer_that_counts_the_processes(source: str) -> None:
    check_nothing(ScheduleLength, source)


@pytest.mark.parametrize("holder", ["training_args", "train_config", "run_opts"])
def test_a_number_of_steps_in_settings_of_one_part(holder: str) -> None:
    before = program(COSINE.replace("args", holder)).replace("(args, model", f"({holder}, model")
    after = before.replace(".max_steps", ".max_steps * accelerator.num_processes")
    check_transformed(ScheduleLength, before, after, unsafe=True)


@pytest.mark.parametrize("holder", ["loop", "optimizer", "my_self", "arguments_of_loader"])
def test_a_number_of_what_is_no_settings(holder: str) -> None:
    check_nothing(ScheduleLength, program(COSINE.replace("args", holder)).replace("(args, model", f"({holder}, model"))


@pytest.mark.parametrize(
    "length",
    ["args.max_steps * 8", "8 * args.max_steps", "int(args.max_steps * 8 * 0.8)", "4.0 * args.steps", "total"],
)
def test_a_small_factor_that_is_written_out_may_be_the_processes(length: str) -> None:
    check_nothing(ScheduleLength, program("total = args.max_steps * 4", COSINE.replace("args.max_steps", length)))


@pytest.mark.parametrize("length", ["int(args.max_steps * 0.8)", "args.kilo_steps * 1000", "args.max_steps * args.rounds"])
def test_a_factor_that_is_no_number_of_processes_is_a_part_of_the_steps(length: str) -> None:
    made = COSINE.replace("args.max_steps", f"{length} * accelerator.num_processes")
    check_transformed(ScheduleLength, program(COSINE.replace("args.max_steps", length)), program(made), unsafe=True)
