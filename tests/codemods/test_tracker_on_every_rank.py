from __future__ import annotations

import pytest

from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of


def hook(*lines: str, arguments: str = "self, trainer, pl_module", base: str = "pl.Callback", name: str = "on_fit_end") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"import lightning.pytorch as pl\nimport wandb\n\nclass A({base}):\n    def {name}({arguments}):\n{body}"


def script(*lines: str, head: str = "import torch.distributed as dist\nimport wandb\n") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{head}\ndef main(args):\n{body}"


RANK = "rank = dist.get_rank()"


def test_example_of_the_page() -> None:
    sections = TrackerOnEveryRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(TrackerOnEveryRank, before, after)


def test_logs_beside_prints_share_the_test() -> None:
    lines = ("pl_module.size = 1", "wandb.log({'a': 1})", "print('logged')")
    after = ("pl_module.size = 1", "if trainer.is_global_zero:", "    wandb.log({'a': 1})", "    print('logged')")
    check_transformed(TrackerOnEveryRank, hook(*lines), hook(*after))


def test_logs_where_only_rank_zero_has_started_a_run() -> None:
    lines = (RANK, "if rank == 0:", "    wandb.init(project='a')", "wandb.log({'a': 1})")
    after = (*lines[:3], "    wandb.log({'a': 1})")
    check_transformed(TrackerOnEveryRank, script(*lines), script(*after))


def test_transformers_callbacks() -> None:
    before = """\
        import wandb
        from transformers import TrainerCallback

        class Note(TrainerCallback):
            def on_log(self, args, state, control, logs=None, **kwargs):
                control.should_save = True
                wandb.log(logs)
        """
    after = before.replace("        wandb.log", "        if state.is_world_process_zero:\n                    wandb.log")
    check_transformed(TrackerOnEveryRank, before, after)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("wandb.init(project='a')", "wandb.init(project='a', mode=None if rank == 0 else \"disabled\")"),
        ("run = wandb.init()", "run = wandb.init(mode=None if rank == 0 else \"disabled\")"),
        ("wandb.init(mode=args.mode)", "wandb.init(mode=args.mode if rank == 0 else \"disabled\")"),
    ],
)
def test_a_run_for_each_rank_is_switched_off(given: str, wanted: str) -> None:
    check_transformed(TrackerOnEveryRank, script(RANK, given), script(RANK, wanted), unsafe=True)


def test_a_wandb_that_has_no_mode() -> None:
    source = script(RANK, "wandb.init(project='a')")
    for pin in ("wandb==0.8.29", "wandb<0.10"):
        check_told(TrackerOnEveryRank, source, reason="has no mode=", files={"requirements.txt": f"{pin}\n"})
    after = script(RANK, "wandb.init(project='a', mode=None if rank == 0 else \"disabled\")")
    old = {"requirements.txt": "wandb>=0.9\n"}
    (found,) = check_transformed(TrackerOnEveryRank, source, after, unsafe=True, files=old)
    assert "wandb 0.10.0 or newer" in found.reason
    for pin in ("wandb", "wandb>=0.10.0", "wandb==0.12.1"):
        (found,) = check_transformed(
            TrackerOnEveryRank, source, after, unsafe=True, files={"requirements.txt": f"{pin}\n"}
        )
        assert "or newer" not in found.reason
    given = script(RANK, "wandb.init(mode=args.mode)")
    after = script(RANK, "wandb.init(mode=args.mode if rank == 0 else \"disabled\")")
    check_transformed(TrackerOnEveryRank, given, after, unsafe=True, files={"requirements.txt": "wandb==0.8.29\n"})


def test_logs_of_runs_on_every_rank_are_no_matter_of_the_logs() -> None:
    lines = (RANK, "wandb.init()", "wandb.log({'a': 1})")
    after = (RANK, 'wandb.init(mode=None if rank == 0 else "disabled")', lines[2])
    check_transformed(TrackerOnEveryRank, script(*lines), script(*after), unsafe=True)


def test_mlflow_is_assumed() -> None:
    head = "import mlflow\nimport torch.distributed as dist\n"
    after = script(RANK, "if rank == 0:", "    mlflow.log_metric('a', 1)", head=head)
    check_transformed(TrackerOnEveryRank, script(RANK, "mlflow.log_metric('a', 1)", head=head), after, unsafe=True)


def test_the_rank_is_not_known_yet() -> None:
    check_told(TrackerOnEveryRank, script("wandb.init()", "dist.init_process_group('nccl')"), reason="not known yet")


def test_keywords_from_elsewhere() -> None:
    check_told(TrackerOnEveryRank, script(RANK, "wandb.init(**args.wandb)"), reason="come from elsewhere")


def test_a_collective_among_the_arguments() -> None:
    check_told(TrackerOnEveryRank, hook("wandb.log({'a': self.metric.compute()})"), reason="above a guard")


WRITER = "import torch.distributed as dist; WORLD = dist.group.WORLD\nfrom torch.utils.tensorboard import SummaryWriter\n"


def test_a_writer_on_every_rank() -> None:
    lines = ("writer = SummaryWriter(args.out)", "writer.add_scalar('a', 1, 0)")
    found = check_told(TrackerOnEveryRank, script(*lines, head=WRITER), reason="line 6")
    assert "each curve once for each process" in found.message


@pytest.mark.parametrize("test", ["dist.get_rank() == 0", "args.is_master"])
def test_a_writer_to_which_rank_0_writes_most(test: str) -> None:
    lines = (
        "writer = SummaryWriter(args.out)", f"if {test}:", "    writer.add_scalar('a', 1, 0)", "writer.add_scalar('b', 1, 0)",
    )  # fmt: skip
    found = check_told(TrackerOnEveryRank, script(*lines, head=WRITER), reason="line 8")
    assert "beside that of rank 0, and line 8 writes to all of them" in found.message


@pytest.mark.parametrize(
    "lines",
    [
        ("writer = SummaryWriter(args.out)", "if dist.get_rank() == 0:", "    writer.add_scalar('a', 1, 0)"),
        ("rank = dist.get_rank()", "writer = SummaryWriter(f'{args.out}/{rank}')", "writer.add_scalar('a', 1, 0)"),
        ("writer = SummaryWriter(args.out) if dist.get_rank() == 0 else None", "writer.add_scalar('a', 1, 0)"),
    ],
)
def test_writers_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(TrackerOnEveryRank, script(*lines, head=WRITER))


@pytest.mark.parametrize(
    "lines",
    [
        (RANK, "wandb.init(group=args.name)", "wandb.log({'a': 1})"),
        (RANK, "wandb.init(name=f'{args.name}-{rank}')", "wandb.log({'a': 1})"),
        (RANK, "wandb.init(mode='online' if rank == 0 else 'disabled')"),
        (RANK, "wandb.init(mode='disabled')"),
        (RANK, "if wandb.run is not None:", "    wandb.log({'a': 1})"),
        (RANK, "if rank == 0:", "    wandb.init()", "    wandb.log({'a': 1})"),
        (RANK, "if rank != 0:", "    return", "wandb.init()"),
        (RANK, "args.logger.experiment.log({'a': 1})"),
        (RANK, "wandb.finish()"),
        (RANK, "if wandb:", "    wandb.log({'a': 1})"),
    ],
)
def test_runs_that_stay(lines: tuple[str, ...]) -> None:
    check_nothing(TrackerOnEveryRank, script(*lines))


def test_one_run_for_each_rank_in_another_file() -> None:
    files = {"start.py": "import wandb\n\ndef start(name):\n    return wandb.init(group=name)\n"}
    check_nothing(TrackerOnEveryRank, hook("wandb.log({'a': 1})"), files=files)


def test_decorated_hooks_single_process_and_own_tests_stay() -> None:
    source = hook("self.a = 1", "wandb.log({'a': 1})")
    check_nothing(TrackerOnEveryRank, source.replace("    def on", "    @pl.utilities.rank_zero_only\n    def on"))
    check_nothing(TrackerOnEveryRank, script("wandb.init()", "wandb.log({})", head="import wandb\n"))
    check_nothing(TrackerOnEveryRank, source, path="tests/test_a.py")


def test_a_helper_that_only_rank_zero_calls() -> None:
    source = script(RANK, "if rank == 0:", "    note(1)") + "\ndef note(a):\n    wandb.log({'a': a})\n"
    check_nothing(TrackerOnEveryRank, source)


def test_a_run_that_rank_zero_starts_in_a_group_is_one_run() -> None:
    lines = (RANK, "if rank == 0:", "    wandb.init(group=args.name)", "wandb.log({'a': 1})")
    after = (*lines[:3], "    wandb.log({'a': 1})")
    check_transformed(TrackerOnEveryRank, script(*lines), script(*after))


def test_a_run_that_no_test_keeps_to_rank_zero() -> None:
    files = {"setting.py": "import wandb\n\ndef begin(args):\n    wandb.init(project=args.name)\n"}
    lines = (RANK, "wandb.log({'a': 1})")
    check_nothing(TrackerOnEveryRank, script(*lines), files=files)
    guarded = {"setting.py": files["setting.py"].replace("    wandb", "    if args.rank == 0:\n        wandb")}
    after = script(RANK, "if rank == 0:", "    wandb.log({'a': 1})")
    check_transformed(TrackerOnEveryRank, script(*lines), after, files=guarded)
    logger = {**files, "fit.py": "from lightning.pytorch.loggers import WandbLogger\n"}
    check_transformed(TrackerOnEveryRank, script(*lines), after, files=logger)


# Programs that are named as tests

PROGRAM = (
    "import argparse\nimport torch\nimport wandb\nfrom accelerate import Accelerator\n\n\ndef evaluate(args):\n"
    "    accelerator = Accelerator()\n    net = torch.nn.Linear(2, 2)\n    net.load_state_dict(torch.load(args.weights))\n"
    "    if accelerator.is_main_process:\n        wandb.init(project=args.name)\n    net = accelerator.prepare(net)\n"
    "    wandb.log({'score': 1})\n\n\nif __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
    "    evaluate(parser.parse_args())\n"
)


@pytest.mark.parametrize("path", ["test_weights.py", "tools/weights_test.py"])
def test_a_program_that_evaluates(path: str) -> None:
    found = findings_of(TrackerOnEveryRank, PROGRAM, path=path)
    assert [f.span.line for f in found] == [14]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tests/weights.py", PROGRAM),
        ("tests/test_weights.py", PROGRAM),
        ("test_weights.py", PROGRAM.replace(" evaluate(", " test_evaluate(")),
        ("test_weights.py", PROGRAM.replace("import torch\n", "import torch\nimport unittest\n")),
        ("test_weights.py", PROGRAM.replace("    net = a", "    assert accelerator.num_processes == 1\n    net = a")),
        ("test_weights.py", PROGRAM.replace("if __name__ == '__main__':", "if True:")),  # imported by who runs the tests
        ("test_weights.py", PROGRAM.replace("load_state_dict", "add")),  # tries something out
    ],
)
def test_the_repositorys_own_tests(path: str, source: str) -> None:
    assert not findings_of(TrackerOnEveryRank, source, path=path)


PICTURE = ("path = f'{trainer.current_epoch}.png'", "table = wandb.Table(data=[[wandb.Image(Image.open(path))]])")


def shown(*lines: str) -> str:
    return "from PIL import Image\n" + hook(*lines)


def test_what_is_read_for_the_report_alone_is_left_to_rank_zero() -> None:
    lines = (*PICTURE, "if self.both:", "    table.add_data(1)", "wandb.log({'a': table})", "wandb.log({'b': 1})")
    after = ("if not trainer.is_global_zero:", "    return", *lines)
    check_transformed(TrackerOnEveryRank, shown(*lines), shown(*after))


@pytest.mark.parametrize(
    "more",
    [
        ("self.table = table",),  # read elsewhere
        ("if len(path) > 9:", "    raise ValueError"),
        ("pl_module.note(table)",),
        ("trainer.strategy.barrier()",),
    ],
)
def test_a_body_that_does_more_keeps_its_reads_on_every_rank(more: tuple[str, ...]) -> None:
    after = (*PICTURE, *more, "if trainer.is_global_zero:", "    wandb.log({'a': table})")
    check_transformed(TrackerOnEveryRank, shown(*PICTURE, *more, "wandb.log({'a': table})"), shown(*after))


def test_a_value_that_is_handed_back_stays_on_every_rank() -> None:
    after = (*PICTURE, "if trainer.is_global_zero:", "    wandb.log({'a': table})", "return table")
    check_transformed(TrackerOnEveryRank, shown(*PICTURE, "wandb.log({'a': table})", "return table"), shown(*after))


def test_a_body_that_reads_no_file_keeps_the_guard_at_the_report() -> None:
    lines = ("size = trainer.current_epoch", "if self.both:", "    size += 1", "wandb.log({'a': size})")
    after = (*lines[:3], "if trainer.is_global_zero:", f"    {lines[3]}")
    check_transformed(TrackerOnEveryRank, hook(*lines), hook(*after))


SWITCHED_OFF = [
    ("wandb.init(project='a', mode=None if main_proc else 'disabled')",),
    ("mode = 'online' if main_proc else 'disabled'", "wandb.init(project='a', mode=mode)"),
    ("mode = 'online'", "if not main_proc:", "    mode = 'disabled'", "wandb.init(project='a', mode=mode)"),
    ("kw = {'project': 'a'}", "if not main_proc:", "    kw['mode'] = 'disabled'", "wandb.init(**kw)"),
    ("kw = dict(project='a', mode='online' if main_proc else 'disabled')", "wandb.init(**kw)"),
    ("if not main_proc:", "    os.environ['WANDB_MODE'] = 'disabled'", "wandb.init(project='a')"),
    ("os.environ['WANDB_MODE'] = 'online' if main_proc else 'disabled'", "wandb.init(project='a')"),
    ("if main_proc:", "    wandb.init(project='a')", "else:", "    wandb.init(mode='disabled')"),
]


@pytest.mark.parametrize("start", SWITCHED_OFF)
def test_other_ranks_hold_a_run_that_is_switched_off(start: tuple[str, ...]) -> None:
    head = "import os\nimport torch.distributed as dist\nimport wandb\n"
    lines = ("main_proc = dist.get_rank() == 0", *start, "for loss in train(args):", "    wandb.log({'loss': loss})")
    check_nothing(TrackerOnEveryRank, script(*lines, head=head))


def test_a_run_switched_off_for_debugging_is_no_run_of_the_other_ranks() -> None:
    lines = (RANK, "if args.debug:", "    wandb.init(mode='disabled')", "elif rank == 0:", "    wandb.init(project='a')")
    after = (*lines, "if rank == 0:", "    wandb.log({'a': 1})")
    check_transformed(TrackerOnEveryRank, script(*lines, "wandb.log({'a': 1})"), script(*after))


def test_a_mode_that_is_chosen_on_rank_zero_alone_gives_the_others_no_run() -> None:
    lines = (RANK, "if rank == 0:", "    wandb.init(mode='disabled' if args.debug else None)")
    after = (*lines, "    wandb.log({'a': 1})")
    check_transformed(TrackerOnEveryRank, script(*lines, "wandb.log({'a': 1})"), script(*after))


def test_the_process_that_starts_the_ranks_has_the_only_run() -> None:
    source = (
        "import torch.distributed as dist\nimport torch.multiprocessing as mp\nimport wandb\n\n\n"
        "def work(rank, args):\n    dist.init_process_group('gloo', rank=rank, world_size=2)\n    train(args)\n\n\n"
        "def main(args):\n    wandb.init(project='a')\n    mp.spawn(work, nprocs=2, args=(args,))\n\n\nmain(None)\n"
    )
    check_nothing(TrackerOnEveryRank, source)


# The run of the process that spawns the ranks


def spawning(*main: str, work: tuple[str, ...] = ("wandb.log({'loss': train(args)})",), more: str = "") -> str:
    head = "import torch.distributed as dist\nimport torch.multiprocessing as mp\nimport wandb\n\n\n"
    worker = "".join(f"    {line}\n" for line in ("dist.init_process_group('gloo', rank=rank, world_size=2)", *work))
    body = "".join(f"    {line}\n" for line in main)
    return (
        f"{head}{more}def work(rank, args):\n{worker}\n\ndef main(args):\n{body}\n\n"
        "if __name__ == '__main__':\n    main(None)\n"
    )


INIT, SPAWN = "wandb.init(project='a')", "mp.spawn(work, nprocs=2, args=(args,))"


def test_the_spawned_ranks_have_no_run() -> None:
    found = check_told(TrackerOnEveryRank, spawning(INIT, SPAWN), reason="call wandb.init in `work`, on rank 0")
    assert found.severity == "crash" and found.span.line == 8
    assert 'ends with "You must call wandb.init() before wandb.log()"' in found.message
    assert [e.line for e in found.evidence] == [12, 13]


@pytest.mark.parametrize(
    "main",
    [
        ("if args.wandb:", "    wandb.init(project='a')", "if args.gpus > 1:", f"    {SPAWN}", "else:", "    work(0, args)"),
        (INIT, "run(args)"),
        ("begin()", SPAWN),
        (INIT, "mp.spawn(work, nprocs=2, args=(args,), start_method='spawn')"),
    ],
)
def test_whatever_stands_between_the_run_and_the_start(main: tuple[str, ...]) -> None:
    more = f"def run(args):\n    {SPAWN}\n\n\n" if "run(args)" in main else ""
    more += f"def begin():\n    {INIT}\n\n\n" if "begin()" in main else ""
    (found,) = findings_of(TrackerOnEveryRank, spawning(*main, more=more))
    assert "`work` runs in processes of its own" in found.message


def test_the_first_report_of_a_function_that_the_spawned_one_calls() -> None:
    epoch = "def epoch(model, rank):\n    if rank == 0:\n        wandb.log({'loss': 1})\n        wandb.log({'rate': 2})\n\n\n"
    (found,) = findings_of(TrackerOnEveryRank, spawning(INIT, SPAWN, work=("epoch(None, rank)",), more=epoch))
    assert found.span.line == 8


@pytest.mark.parametrize(
    "main",
    [
        (INIT, "mp.spawn(work, nprocs=2, args=(args,), start_method='fork')"),  # a forked process has the run
        (INIT, "mp.start_processes(work, nprocs=2, args=(args,), start_method='fork')"),
        (INIT, "for rank in range(2):", "    mp.Process(target=work, args=(rank, args)).start()"),
        (SPAWN, INIT),  # a run for what comes behind the training
        ("if args.gpus == 1:", f"    {INIT}", "    work(0, args)", "else:", f"    {SPAWN}"),
        ("if args.gpus == 1:", f"    {INIT}", "    work(0, args)", "    return", SPAWN),
        (INIT, "work(0, args)"),
        (INIT, "mp.spawn(other, nprocs=2)"),
    ],
)
def test_nothing_is_said_where_the_run_is_there_or_is_of_another_way(main: tuple[str, ...]) -> None:
    told = findings_of(TrackerOnEveryRank, spawning(*main, more="def other(rank):\n    train(rank)\n\n\n"))
    assert not [f for f in told if "processes of its own" in f.message]


@pytest.mark.parametrize(
    "work",
    [
        ("wandb.init(project='a', group='g')", "wandb.log({'a': 1})"),
        ("if rank == 0:", "    wandb.init(project='a')", "    wandb.log({'a': 1})"),
        ("if wandb.run is not None:", "    wandb.log({'a': 1})"),
        ("try:", "    wandb.log({'a': 1})", "except wandb.Error:", "    pass"),
        ("wandb.finish()",),
        ("trainer = pl.Trainer(logger=WandbLogger())", "trainer.fit(args)", "wandb.log({'a': 1})"),
    ],
)
def test_nothing_is_said_where_the_spawned_processes_may_have_a_run(work: tuple[str, ...]) -> None:
    told = findings_of(TrackerOnEveryRank, spawning(INIT, SPAWN, work=work))
    assert not [f for f in told if "processes of its own" in f.message]


def test_nothing_is_said_of_a_run_at_the_top_of_a_file_that_each_process_imports() -> None:
    source = spawning(SPAWN).replace("import wandb\n", "import wandb\n\nwandb.init(project='a')\n", 1)
    assert not [f for f in findings_of(TrackerOnEveryRank, source) if "processes of its own" in f.message]


READS_LAUNCHER = (
    "import os\nimport wandb\n\n\ndef main(args):\n    {start}\n    args.distributed = int(os.environ['WORLD_SIZE']) > 1\n"
    "    args.rank = int(os.environ['RANK'])\n    wandb.init(project='a')\n    for batch in args.loader:\n"
    "        args.model(batch).backward()\n\n\nif __name__ == '__main__':\n    main(parse())\n"
)


def test_a_script_that_reads_a_launcher_and_starts_no_group() -> None:
    check_nothing(TrackerOnEveryRank, READS_LAUNCHER.format(start="pass"))
    assert findings_of(TrackerOnEveryRank, READS_LAUNCHER.format(start="init_distributed_mode(args)"))


# Runs that another program starts

FITTED = (
    "import lightning.pytorch as pl\nimport wandb\n\n\ndef main(args):\n"
    "    trainer = pl.Trainer(devices=4, logger=pl.loggers.WandbLogger(project='a'))\n    trainer.fit(args.model)\n"
    "    wandb.log({'done': 1})\n\n\nif __name__ == '__main__':\n    main(1)\n"
)
STARTING = (
    "import os\n\nimport wandb\n\nRANK = int(os.environ.get('RANK', 0))\n\n\n"
    "def begin():\n    return wandb.init(project='b')\n\n\n"
)
AS_A_SCRIPT = "if __name__ == '__main__':\n    begin()\n"


@pytest.mark.parametrize("path", ["evaluate.py", "tools/evaluate.py"])
def test_the_runs_of_another_script_are_not_there(path: str) -> None:
    after = FITTED.replace("    wandb.log", "    if trainer.is_global_zero:\n        wandb.log")
    check_transformed(TrackerOnEveryRank, FITTED, after, files={path: STARTING + AS_A_SCRIPT}, path="train.py")


@pytest.mark.parametrize(
    "files",
    [
        {"begin.py": STARTING},  # a library of both may start it
        {"begin.py": STARTING + AS_A_SCRIPT, "all.py": "import begin\nimport train\n"},  # both run in one process
        {"train_more.py": "import begin\n", "begin.py": STARTING + AS_A_SCRIPT},
    ],
)
def test_the_runs_of_a_file_that_others_import_may_be_there(files: dict[str, str]) -> None:
    check_nothing(TrackerOnEveryRank, FITTED, files=files, path="train.py")


def test_the_program_itself_imports_the_other_script() -> None:
    source = FITTED.replace("import wandb\n", "import wandb\n\nfrom begin import begin\n")
    check_nothing(TrackerOnEveryRank, source, files={"begin.py": STARTING + AS_A_SCRIPT}, path="train.py")


def test_nothing_of_the_program_is_seen_to_start_its_run() -> None:
    source = FITTED.replace("pl.loggers.WandbLogger(project='a')", "False")
    check_nothing(TrackerOnEveryRank, source, files={"evaluate.py": STARTING + AS_A_SCRIPT}, path="train.py")
