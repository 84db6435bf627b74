"""Functions and classes that are handed on as values are followed to their calls, and a test of the rank over those counts."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.value_calls import calls_of_value, plain_calls
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.store.project import Project
from ddpfix.testing import findings_of

TASK = "import torch\n\n\ndef fit(rank, cfg):\n    net = cfg.net.to(rank)\n    torch.save(net.state_dict(), 'net.pt')\n"
HEAD = "import torch.distributed as dist\nimport torch.multiprocessing as mp\n"
WORKER = """

def worker(rank, cfg):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    {}


def main(cfg):
    mp.spawn(worker, args=(cfg,), nprocs=2)


if __name__ == "__main__":
    main(None)
"""
HANDED = WORKER.replace("rank, cfg)", "rank, run, cfg)", 1).replace("(cfg,)", "(fit, cfg)")
LAUNCH = (
    HEAD + "\n\ndef _worker(rank, fn, args):\n    dist.init_process_group('nccl', rank=rank, world_size=2)\n"
    "    {}\n\n\ndef launch(fn, args):\n    mp.spawn(_worker, args=(fn, args), nprocs=2)\n"
)
LAUNCHED = "from launch import launch\nfrom tasks import fit\n\nif __name__ == '__main__':\n    launch(fit, (None,))\n"

CALLS = {
    "a table": ("from tasks import fit\n\nTASKS = {'fit': fit}\n", "TASKS[cfg.task](rank, cfg)"),
    "a table that is asked": ("from tasks import fit\n\nTASKS = {'fit': fit}\n", "run = TASKS.get(cfg.task)\n    run(rank, cfg)"),
    "a table of its file": ("from tasks import TASKS\n", "TASKS[cfg.task](rank, cfg)"),
    "a table by its module": ("import tasks\n", "tasks.TASKS[cfg.task](rank, cfg)"),
    "a local table": ("from tasks import fit\n", "{'fit': fit}[cfg.task](rank, cfg)"),
    "a list": ("from tasks import fit\n", "steps = [fit]\n    for step in steps:\n        step(rank, cfg)"),
    "another name": ("from tasks import fit\n", "run = fit\n    run(rank, cfg)"),
    "one of two": ("from tasks import fit\n", "run = fit if cfg.fits else print\n    run(rank, cfg)"),
    "a partial": ("from functools import partial\nfrom tasks import fit\n", "run = partial(fit, rank)\n    run(cfg)"),
}


def program(bring: str, call: str, worker: str = WORKER) -> dict[str, str]:
    tasks = TASK + ("" if "import fit" in bring else "\nTASKS = {'fit': fit}\n")
    return {"main.py": HEAD + bring + worker.format(call), "tasks.py": tasks}


def found(files: dict[str, str]) -> int:
    """How many findings DDP501 has in `tasks.py`."""
    return len(findings_of(UnguardedSave, files["tasks.py"], files, path="tasks.py"))


def on_rank_zero(call: str) -> str:
    """The last statement of a block under a test of the rank."""
    above, _, last = call.rpartition("\n    ")
    deep = "    " if last.startswith("    ") else ""
    guarded = f"{deep}if rank == 0:\n        {deep}{last.strip()}"
    return f"{above}\n    {guarded}" if above else guarded


@pytest.mark.parametrize("name", CALLS)
def test_every_rank_comes_by_the_value(name: str) -> None:
    bring, call = CALLS[name]
    assert found(program(bring, call)) == 1
    assert found(program(bring, on_rank_zero(call))) == 0, "rank 0 alone calls it"


def test_by_the_arguments_of_a_spawn() -> None:
    assert found(program("from tasks import fit\n", "run(rank, cfg)", HANDED)) == 1
    assert found(program("from tasks import fit\n", on_rank_zero("run(rank, cfg)"), HANDED)) == 0


def test_by_a_launcher_of_the_project() -> None:
    files = {"main.py": LAUNCHED, "tasks.py": TASK, "launch.py": LAUNCH.format("fn(rank, *args)")}
    assert found(files) == 1
    assert found(files | {"launch.py": LAUNCH.format(on_rank_zero("fn(rank, *args)"))}) == 0


def test_a_helper_for_all_and_a_place_for_one() -> None:
    """`call(fit)` under a test of the rank, though others use `call` on every rank."""
    helper = "\n\ndef call(fn, *args):\n    return fn(*args)\n"
    bring = "from tasks import fit\n" + helper
    assert found(program(bring, "call(fit, rank, cfg)\n    call(print, rank)")) == 1
    assert found(program(bring, "call(print, rank)\n    if rank == 0:\n        call(fit, rank, cfg)")) == 0


def test_a_script_of_one_process_is_not_carried_over_a_helper() -> None:
    """Both scripts use one helper; the one that hands it the function runs as one process."""
    helper = "def call(fn, *args):\n    return fn(*args)\n"
    train = HEAD + "from helper import call\n" + WORKER.format("call(print, rank)")
    alone = "from helper import call\nfrom tasks import fit\n\nif __name__ == '__main__':\n    call(fit, 0, None)\n"
    assert found({"main.py": train, "alone.py": alone, "tasks.py": TASK, "helper.py": helper}) == 0


JOB = """import torch


class Job:
    def __init__(self, cfg):
        self.net = torch.nn.parallel.DistributedDataParallel(cfg.net)

    def fit(self):
        torch.save(self.net.module.state_dict(), "net.pt")
"""


def test_a_method_that_is_fetched_by_its_name() -> None:
    text = HEAD + JOB + WORKER.format("job = Job(cfg)\n    {}")
    assert found({"tasks.py": text.format("getattr(job, cfg.mode)()")}) == 1
    assert found({"tasks.py": text.format("if rank == 0:\n        getattr(job, cfg.mode)()")}) == 0


OPEN = "def fit():\n    pass\n\n\n{}\n"


@pytest.mark.parametrize(
    "text",
    [
        "TASKS = {'fit': fit}\nregister(TASKS)",
        "TASKS = {'fit': fit}\nfor name, task in TASKS.items():\n    task()",
        "TASKS = {'fit': fit, **MORE}\nTASKS['fit']()",
        "class Job:\n    run = fit\n",
        "def main(atexit):\n    atexit.register(fit)",
        "def main():\n    run = fit\n    return run",
        "def main():\n    run = fit\n    run()\n    keep(run)",
        "run = fit\nrun()",
        "class Job:\n    STEPS = {'fit': fit}\n\n    def run(self, name):\n        self.STEPS[name]()",
        "def main():\n    global run\n    run = fit\n    run()",
    ],
)
def test_what_may_be_called_elsewhere_is_open(text: str) -> None:
    project = Project.of({"main.py": OPEN.format(text).encode()})
    module = project.module("main.py")
    assert module is not None
    (read,) = module.reads_of("fit")
    assert calls_of_value(project, module, read) == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def main(rank, other):\n    run = other\n    run()\n    run = fit\n    run()", 9),
        ("def main(rank, others):\n    for run in others:\n        run()\n    for run in [fit]:\n        run()", 9),
        ("def main(rank, others):\n    [run() for run in others]\n    steps = [fit]\n    return [run() for run in steps]", 8),
    ],
    ids=["a name", "a loop", "a comprehension"],
)
def test_another_value_of_the_same_name_is_not_followed(text: str, line: int) -> None:
    project = Project.of({"main.py": OPEN.format(text).encode()})
    module = project.module("main.py")
    assert module is not None
    (read,) = module.reads_of("fit")
    assert [c.call.lineno for c in calls_of_value(project, module, read)] == [line]


@pytest.mark.parametrize(("given", "plain"), [("fit", 1), ("partial(fit, 2)", 0)])
def test_plain_calls_have_the_arguments_as_they_are(given: str, plain: int) -> None:
    text = OPEN.format(f"from functools import partial\n\ndef main():\n    run = {given}\n    run(1)")
    project = Project.of({"main.py": text.encode()})
    module = project.module("main.py")
    assert module is not None
    (read,) = module.reads_of("fit")
    assert len(calls_of_value(project, module, read)) == 1
    assert len(plain_calls(project, module, read)) == plain
