"""Commands of one program: those that start no processes beside those that do."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.commands_of_one import is_of_commands_of_one
from codemods.analysis.ranks.seen_starts import started
from codemods.analysis.ranks.start_kinds import Start
from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from ddpfix.testing import findings_of, project_of

HEAD = "import click\nimport lightning.pytorch as pl\nimport wandb\n\n\n@click.group()\ndef cli():\n    pass\n\n\n"
FIT = "@cli.command()\ndef fit(folder):\n    pl.Trainer(devices=4, strategy='ddp').fit(load(folder))\n\n\n"
SCORE = "@cli.command(name='score')\ndef score(folder):\n    note(folder)\n\n\n"
NOTE = "def note(folder):\n    wandb.init(project=folder)\n\n\n"
END = "if __name__ == '__main__':\n    cli()\n"
PROGRAM = HEAD + FIT + SCORE + NOTE + END
CALL = "wandb.init"


def of_one(source: str, files: dict[str, str] | None = None, at: str = CALL) -> bool:
    project = project_of(source, files, path="tool.py")
    module = project.module("tool.py")
    assert module is not None
    call = next(c for c in module.calls_named(at.rpartition(".")[2]) if module.text_of(c.func) == at)
    alone = is_of_commands_of_one(project, module, call)
    assert not alone or started(project, module, call) is Start.ONE
    return alone


@pytest.mark.parametrize(
    "source",
    [
        PROGRAM,
        PROGRAM.replace("    note(folder)", "    wandb.init(project=folder)").replace(NOTE, ""),
        PROGRAM.replace("import click", "import typer").replace("@click.group()\ndef cli():\n    pass", "cli = typer.Typer()"),
        PROGRAM.replace("    note(folder)\n", "    def each():\n        note(folder)\n    each()\n"),
        PROGRAM.replace("    note(folder)\n", "    report(folder)\n") + "\n\ndef report(folder):\n    note(folder)\n",
    ],
)
def test_a_command_that_starts_nothing(source: str) -> None:
    assert of_one(source)
    assert not findings_of(TrackerOnEveryRank, source, path="tool.py")


@pytest.mark.parametrize(
    "source",
    [
        PROGRAM.replace("    pl.Trainer", "    note(folder)\n    pl.Trainer"),  # both commands call it
        PROGRAM.replace("    note(folder)\n", "    note(folder)\n    train(folder)\n")
        + "\n\ndef train(folder):\n    pl.Trainer(devices=2).fit(folder)\n",
        PROGRAM.replace("    note(folder)\n", "    note(folder)\n    pl.Trainer(devices=2).predict(folder)\n"),
        PROGRAM.replace("cli()\n", "score()\n"),  # no command line calls it
        PROGRAM.replace("@cli.command(name='score')", "@cli.result_callback()"),
        PROGRAM.replace("import click", "import tasks as click"),  # whoever that is may run all of them in one process
        PROGRAM.replace("import wandb\n", "import wandb\nimport torch.distributed as dist\n\ndist.init_process_group('nccl')\n"),
    ],
)
def test_a_command_that_may_have_several_processes(source: str) -> None:
    assert not of_one(source)


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": "torchrun --nproc_per_node=4 tool.py score data\n"},
        {"run.sh": "srun -n 4 python $SCRIPT\n"},
        {"more.py": "from tool import note\n\n\ndef main():\n    note('a')\n"},
    ],
)
def test_a_launcher_or_another_program_comes_there(files: dict[str, str]) -> None:
    assert not of_one(PROGRAM, files)


def test_a_function_of_another_file_that_only_such_commands_call() -> None:
    source = "import wandb\n\n\ndef note(folder):\n    wandb.init(project=folder)\n"
    program = PROGRAM.replace(NOTE, "").replace("import wandb\n", "from notes import note\n")
    project = project_of(source, {"tool.py": program}, path="notes.py")
    module = project.module("notes.py")
    assert module is not None and is_of_commands_of_one(project, module, next(iter(module.calls_named("init"))))
