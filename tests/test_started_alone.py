"""Which places belong to programs, or modes of programs, that the repository's own texts start as one process."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.started_alone import is_started_alone, is_started_otherwise
from codemods.ranks.makedirs_race import MakedirsRace
from codemods.store.project import Project
from ddpfix.testing import check_nothing, check_transformed

MAIN = """\
    import argparse
    import torch.distributed as dist
    from export import export_flow, draw

    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--export", action="store_true")
        parser.add_argument("--draw_to")
        return parser.parse_args()

    def main():
        args = parse()
        dist.init_process_group("nccl")
        if args.export:
            export_flow(args.out)
            return
        if args.draw_to is not None:
            draw(args.draw_to)
        train(args)

    if __name__ == "__main__":
        main()
    """
EXPORT = """\
    import os
    import torch.distributed as dist

    def export_flow(out):
        write(out)

    def write(out):
        if not os.path.exists(out):
            os.makedirs(out)

    def draw(out):
        if not os.path.exists(out):
            os.makedirs(out)
    """
TEXT = """\
    # Flow

    ```
    torchrun --nproc_per_node 8 main.py --lr 1e-4 \\
        --epochs 9
    CUDA_VISIBLE_DEVICES=0 python main.py \\
        --export --out here
    python main.py --draw_to there
    ```
    """
SCORE = """\
    import os
    from lib.options import start

    def main():
        args = start()
        report(args)

    def report(args):
        open(args.out, "w").write("1")

    if __name__ == "__main__":
        main()
    """


def alone(files: dict[str, str], at: str, name: str) -> bool:
    project = Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})
    module = project.module(at)
    assert module is not None
    function = next(f for f in module.functions if f.name == name)
    return is_started_alone(project, module, function.body[0])


def mode(text: str = TEXT, *, main: str = MAIN, name: str = "write", export: str = EXPORT, **more: str) -> bool:
    return alone({"main.py": main, "export.py": export, "README.md": text, **more}, "export.py", name)


def program(text: str, *, score: str = SCORE, **more: str) -> bool:
    options = "import torch.distributed as dist\n\ndef start():\n    dist.init_process_group('nccl')\n"
    return alone({"score.py": score, "lib/options.py": options, "README.md": text, **more}, "score.py", "report")


def test_a_mode_that_no_launch_asks_for() -> None:
    assert mode()
    assert mode(name="draw")  # asked for by `is not None`
    assert mode(TEXT.replace("\n", "\r\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--epochs 9", "--epochs 9 --export"),
        ("--epochs 9", '--epochs 9 "$@"'),  # more flags may be handed on
        ("--epochs 9", "--epochs 9 [...]"),
        ("python main.py", "srun python main.py"),
        ("torchrun --nproc_per_node 8 main.py", "python main.py"),  # nobody launches anything
        ("--export --out here", "--out here"),  # no command asks for it
        ("    ```\n", '    torchrun --nproc_per_node 4 "$SCRIPT" --export\n'),
    ],
)
def test_a_mode_that_several_processes_may_be_in(old: str, new: str) -> None:
    assert old in TEXT
    assert not mode(TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        train(args)", "        train(args)\n        export_flow(args.out)"),  # called outside of the mode, too
        ("if args.export:", "if args.export or args.size:"),
        ("if args.export:", "if not args.export:"),
        ("            return\n", "            return export_flow\n"),  # handed on: others may call it
        ('    dist.init_process_group("nccl")', "    torch.multiprocessing.spawn(train, nprocs=2)"),  # it starts processes itself
        ("import argparse", "import argparse\n    import lightning.pytorch as pl"),
    ],
)
def test_a_place_that_is_not_in_the_mode_alone(old: str, new: str) -> None:
    assert old in MAIN
    assert not mode(main=MAIN.replace(old, new))


def test_a_program_that_only_python_starts() -> None:
    assert program("torchrun --nproc_per_node 8 train.py\npython score.py --out here\n")
    broken = "python -m torch.distributed.launch --nproc_per_node=8\ntrain.py\n\npython score.py\n"
    assert program(broken)  # a text that breaks the command off


@pytest.mark.parametrize(
    "text",
    [
        "python train.py\npython score.py\n",  # nothing is launched: the texts do not tell the two apart
        "torchrun --nproc_per_node 8 train.py\n",  # nobody is told how to start it
        "torchrun --nproc_per_node 8 train.py\ntorchrun --nproc_per_node 2 score.py\npython score.py\n",
        "torchrun --nproc_per_node 8 train.py\nmpirun -np 4 python score.py\n",
        "torchrun --nproc_per_node 8 $FILE\npython score.py\n",
        "#SBATCH --ntasks=8\ntorchrun train.py\npython score.py\n",
    ],
)
def test_a_program_that_a_launcher_may_start(text: str) -> None:
    assert not program(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("report(args)\n\n", "report(args)\n        loss.backward()\n\n"),  # it trains: several processes are welcome
        ("args = start()", "trainer = Trainer()"),
        ("args = start()", "args = mp.spawn(start)"),
        ('if __name__ == "__main__":', "if True:"),
    ],
)
def test_a_program_that_may_be_run_on_several(old: str, new: str) -> None:
    assert old in SCORE
    assert not program("torchrun --nproc_per_node 8 train.py\npython score.py --out here\n", score=SCORE.replace(old, new))


def test_another_file_may_launch_it() -> None:
    text = "torchrun --nproc_per_node 8 train.py\npython score.py --out here\n"
    assert not program(text, **{"all.py": "os.system('torchrun --nproc_per_node 2 score.py')\n"})
    assert not program(text, **{"tools/score.py": SCORE})  # which of the two is meant?
    assert not program(text, **{"use.py": "from score import report\nreport(args)\n"})


def test_nothing_is_reported_of_a_mode_of_one_process() -> None:
    files = {"main.py": textwrap.dedent(MAIN), "README.md": textwrap.dedent(TEXT)}
    check_nothing(MakedirsRace, textwrap.dedent(EXPORT), files=files, path="export.py")
    launched = {**files, "README.md": files["README.md"].replace("--epochs 9", "--epochs 9 --export --draw_to x")}
    before = textwrap.dedent(EXPORT)
    asked = "if not os.path.exists(out):\n        os.makedirs(out)"
    after = before.replace(asked, "os.makedirs(out, exist_ok=True)")
    check_transformed(MakedirsRace, before, after, files=launched, path="export.py")


TASKS = """\
    import argparse
    import torch.distributed as dist
    from filling import Filling
    from forecast import Forecast
    from sketch import sketch

    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--task_name", required=True)
        return parser.parse_args()

    def main():
        args = parse()
        dist.init_process_group("nccl")
        if args.task_name == "filling":
            task = Filling
        elif args.task_name in ("sketch", "draft"):
            sketch(args)
        else:
            task = Forecast
        task(args).run()

    if __name__ == "__main__":
        main()
    """
TASK = """\
    import os

    class Filling:
        def __init__(self, args):
            self.task_name = args.task_name

        def run(self):
            write(self.out)

    def write(out):
        if not os.path.exists(out):
            os.makedirs(out)
    """
COMMANDS = """\
    torchrun --nproc_per_node 8 tasks.py --task_name forecast --lr 1e-4
    python tasks.py --task_name filling --lr 1e-4
    python -u tasks.py --task-name='sketch'
    """


def task(commands: str = COMMANDS, *, main: str = TASKS, name: str = "run", of: str = TASK, **more: str) -> bool:
    sketch = "def sketch(args):\n    print(args)\n"
    forecast = "class Forecast:\n    def go(self):\n        print(1)\n"
    files = {"tasks.py": main, "filling.py": of, "sketch.py": sketch, "forecast.py": forecast, "run.sh": commands, **more}
    at = {"sketch": "sketch.py", "go": "forecast.py"}.get(name, "filling.py")
    return alone(files, at, name)


def test_a_value_that_no_launch_gives() -> None:
    assert task()
    assert task(name="write")  # what the class calls
    assert task(name="sketch")
    assert not task(name="go")  # the launch gives the value of this one
    assert task(COMMANDS.replace("filling", '"filling"'))
    assert task(main=TASKS.replace('if args.task_name == "filling":', 'if args.task_name != "forecast":'))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--task_name forecast", "--task_name filling"),
        ("--task_name forecast", "--task_name $task"),
        ("--task_name forecast", ""),  # the default may be that value
        ("--task_name forecast", '--task_name forecast "$@"'),  # a later one counts
        ("python tasks.py --task_name filling", "python tasks.py --task_name forecast"),  # nobody shows how it is started
        ("python tasks.py --task_name filling", "torchrun tasks.py --task_name filling"),
        ("='sketch'\n", "='sketch'\n    torchrun \"$SCRIPT\" --task_name filling\n"),
    ],
)
def test_a_value_that_a_launch_may_give(old: str, new: str) -> None:
    assert old in COMMANDS
    assert not task(COMMANDS.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('if args.task_name == "filling":', "if args.filling:"),
        ('if args.task_name == "filling":', "if args.task_name == FILLING:"),
        ('if args.task_name == "filling":', 'if args.task_name != "filling":'),
        ('    dist.init_process_group("nccl")', '    args.task_name = "filling"'),
        ('    dist.init_process_group("nccl")', "    torch.multiprocessing.spawn(train, nprocs=2)"),
        ("        task(args).run()", "        task(args).run()\n        Filling(args).run()"),
        ("        task(args).run()", "        task(args).run()\n        globals()['Filling'](args).run()"),
        ("import Filling", "import Filling as Other"),
    ],
)
def test_a_class_that_other_runs_may_make(old: str, new: str) -> None:
    assert old in TASKS
    assert not task(main=TASKS.replace(old, new))


CALLED = (
    TASKS.replace("            task = Filling", "            fill(args)")
    .replace("    def main():", "    def fill(args):\n        Filling(args).run()\n\n    def main():")
)


def test_a_class_that_is_named_in_what_the_mode_calls() -> None:
    assert task(main=CALLED)
    assert not task(main=CALLED.replace("        task(args).run()", "        task(args).run()\n        fill(args)"))


FIELDS = TASKS.replace(
    """        parser = argparse.ArgumentParser()
        parser.add_argument("--task_name", required=True)
        return parser.parse_args()
""",
    "        return HfArgumentParser(Options).parse_args_into_dataclasses()[0]\n",
).replace("import argparse\n", "from transformers import HfArgumentParser\n    from settings import Options\n")
SETTINGS = "from dataclasses import dataclass\n\n@dataclass\nclass Options:\n    task_name: str = ''\n"


def test_an_option_that_is_a_field() -> None:
    assert task(main=FIELDS, **{"settings.py": SETTINGS})
    assert not task(main=FIELDS, **{"settings.py": SETTINGS.replace("task_name", "name_of_task")})
    assert not task(main=FIELDS.replace("HfArgumentParser", "Own"), **{"settings.py": SETTINGS})


def test_a_word_that_the_shell_joins() -> None:
    assert task(COMMANDS.replace("filling", '"fill"ing'))
    assert not task(COMMANDS.replace("forecast", "'fill'ing"))


def others(commands: str, *, main: str = TASKS) -> bool:
    report = "def sketch(args):\n    inner(args)\n\ndef inner(args):\n    print(args)\n"
    files = {"tasks.py": main, "sketch.py": report, "run.sh": commands, "filling.py": "class Filling: ...\n"}
    project = Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})
    module = project.module("sketch.py")
    assert module is not None
    return is_started_otherwise(project, module, module.functions[1].body[0])


LAUNCH = "torchrun --nproc_per_node 8 tasks.py --task_name forecast --lr 1e-4\n"


def test_a_value_that_none_of_many_commands_gives() -> None:
    assert others(LAUNCH * 2 + "".join(f"python tasks.py --task_name filling --lr {n}\n" for n in range(6)))
    assert others(LAUNCH * 8)
    assert others(LAUNCH * 8 + "python tasks.py --task_name $task\n")  # one process


@pytest.mark.parametrize(
    "commands",
    [
        LAUNCH * 3,  # examples
        "python tasks.py --task_name filling\n" * 8,  # nothing is launched
        LAUNCH * 8 + LAUNCH.replace("forecast", "draft"),
        LAUNCH * 8 + LAUNCH.replace("forecast", "$task"),
        LAUNCH * 8 + LAUNCH.replace("--task_name forecast", ""),
        LAUNCH * 8 + LAUNCH.replace("\n", ' "$@"\n'),
    ],
)
def test_a_value_that_some_command_may_give(commands: str) -> None:
    assert not others(commands)


def test_a_value_that_only_some_callers_ask_for() -> None:
    run = "        task(args).run()"
    assert not others(LAUNCH * 8, main=TASKS.replace(run, f"{run}\n        sketch(args)"))


def test_an_heir_or_a_text_may_make_it() -> None:
    assert not task(**{"heir.py": "from filling import Filling\n\nclass Deep(Filling):\n    pass\n"})
    assert not task(**{"conf/task.yaml": "_target_: filling.Filling\n"})
