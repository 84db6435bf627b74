"""How a program that starts its processes itself is told to start two, and what stands in front of a command."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

HEAD = """import argparse
import torch
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("--n_gpu", "-g", type=int, default=1)
parser.add_argument("--several", action="store_true")
parser.add_argument("--nodes", type=int, default=1)
"""


def shown(files: dict[str, str], *, changed: str = "main.py") -> Launch:
    every = {path: text.encode() for path, text in files.items()}
    (found,) = launches(every, every.get, {changed: every[changed]})
    return found


def of(body: str, command: str = "python main.py") -> tuple[str, bool]:
    found = shown({"main.py": HEAD + body, "run.sh": f"{command}\n"})
    return found.command, found.counted


@pytest.mark.parametrize(
    "start",
    [
        "mp.spawn(print, nprocs=args.n_gpu)\n",
        "mp.spawn(print, (), args.n_gpu)\n",
        "n = args.n_gpu\nmp.spawn(print, nprocs=n)\n",
        "from lightning import Trainer\nTrainer(devices=args.n_gpu)\n",
    ],
)
def test_an_option_of_the_program(start: str) -> None:
    body = "args = parser.parse_args()\n" + start
    assert of(body, "python main.py --n_gpu 8") == ("python main.py --n_gpu 2", True)
    assert of(body, "python main.py -g 4 --several") == ("python main.py -g 2 --several", True)
    assert of(body) == ("python main.py --n_gpu 2", True)


def test_an_option_of_a_program_whose_options_are_filled_elsewhere() -> None:
    body = "args = parser.parse_args()\nvars(args)['x'] = 1\nmp.spawn(print, nprocs=args.n_gpu)\n"
    head = HEAD.replace('"--n_gpu", "-g"', '"-g", "--n-gpu"')
    found = shown({"main.py": head + body, "run.sh": "python main.py --n-gpu 8\n"})
    assert (found.command, found.counted) == ("python main.py --n-gpu 2", True)


@pytest.mark.parametrize(
    "start",
    [
        "mp.spawn(print, nprocs=torch.cuda.device_count())\n",
        "n = torch.cuda.device_count()\nargs.world = n * args.nodes\nmp.spawn(print, nprocs=args.world)\n",
        "from lightning import Trainer\nTrainer(devices='auto')\n",
        "from lightning import Trainer\nTrainer(gpus=-1)\n",
    ],
)
def test_the_gpus_that_it_sees(start: str) -> None:
    assert of("args = parser.parse_args()\n" + start) == ("CUDA_VISIBLE_DEVICES=0,1 python main.py", True)


def test_a_number_in_the_program_is_not_in_the_command() -> None:
    assert of("mp.spawn(print, nprocs=4)\n") == ("python main.py", False)


def test_the_options_of_lightning_s_own_parser() -> None:
    body = "import pytorch_lightning as pl\ntrainer = pl.Trainer.from_argparse_args(parser.parse_args())\n"
    assert of(body, "python main.py --gpus 0,1,2,3") == ("python main.py --gpus 0,1", True)


def test_an_option_without_which_it_starts_one() -> None:
    body = "args = parser.parse_args()\nif args.several:\n    mp.spawn(print, nprocs=torch.cuda.device_count())\n"
    found = shown({"main.py": HEAD + body, "a.sh": "python main.py\n", "b.sh": "python main.py --several\n"})
    assert (found.path, found.needs) == ("b.sh", ())
    added = shown({"main.py": HEAD + body, "a.sh": "python main.py\n"})
    assert added.command == "CUDA_VISIBLE_DEVICES=0,1 python main.py --several"


@pytest.mark.parametrize(
    ("body", "visible"),
    [
        ("dist.init_process_group('nccl', world_size=torch.cuda.device_count())\n", "CUDA_VISIBLE_DEVICES=0,1 "),
        ("dist.init_process_group('nccl')\ntorch.cuda.set_device(rank % torch.cuda.device_count())\n", ""),
    ],
)
def test_a_launched_program_that_takes_all_gpus_for_its_world(body: str, visible: str) -> None:
    command = "CUDA_VISIBLE_DEVICES=4,5 torchrun --nproc_per_node=2 main.py"
    found = shown({"main.py": f"import torch\nimport torch.distributed as dist\n{body}", "run.sh": command})
    assert found.command == f"{visible}torchrun --nproc_per_node=2 main.py"


RAW = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
PARSED = RAW + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('{}')\nparser.parse_args()\n"


def test_what_the_script_sources_and_exports_is_kept() -> None:
    script = "source path.sh\n. conda.sh\nexport PYTHONPATH=$PWD:$PYTHONPATH\nexport X=1\ntorchrun $BIN/train.py --x $Y\n"
    files = {"src/train.py": RAW, "jobs/a/run.sh": script, "jobs/a/path.sh": "export BIN=$PWD/../../src\nY=3\n"}
    found = shown(files, changed="src/train.py")
    after = "PYTHONPATH=$PWD:$PYTHONPATH torchrun --nproc_per_node=2 $BIN/train.py --x $Y"
    assert (found.command, found.to_fill) == (f"cd jobs/a && source ./path.sh && {after}", ())


def test_a_folder_in_a_variable_that_nobody_sets() -> None:
    found = shown({"src/tool/train.py": RAW, "jobs/run.sh": "torchrun $CODE/tool/train.py\n"}, changed="src/tool/train.py")
    assert found.command == "torchrun --nproc_per_node=2 src/tool/train.py"
    two = {"src/tool/train.py": RAW, "old/tool/train.py": RAW, "jobs/run.sh": "torchrun $CODE/tool/train.py\n"}
    every = {path: text.encode() for path, text in two.items()}
    (told,) = launches(every, every.get, {"src/tool/train.py": RAW.encode()})
    assert (told.command, told.script) == ("", "src/tool/train.py")  # which of them the command means is not known


def test_the_only_script_of_a_name() -> None:
    found = shown({"src/train.py": RAW, "README.md": "```\ntorchrun train.py\n```\n"}, changed="src/train.py")
    assert found.command == "cd src && torchrun --nproc_per_node=2 train.py"


def test_an_option_that_the_parser_refuses_is_left_out() -> None:
    program = PARSED.format("--epochs")
    found = shown({"main.py": program, "run.sh": "torchrun main.py --old_mode two words --epochs 1\n"})
    assert found.command == "torchrun --nproc_per_node=2 main.py --epochs 1"
    assert found.edits == ("without --old_mode, which its parser refuses",)


def test_a_file_of_settings_that_is_not_there() -> None:
    command = "torchrun main.py --config conf/a.yaml --other conf/b.yaml --out conf/c.json\n"
    found = shown({"main.py": RAW, "conf/a.yaml": "x: 1\n", "run.sh": command})
    assert (found.command, found.faults) == ("", ("names `conf/b.yaml`, which is not in the repository",))
    assert shown({"main.py": RAW, "conf/a.yaml": "x: 1\n", "run.sh": command.replace("b.yaml", "a.yaml")}).command


def test_a_command_that_cannot_be_shown_is_told_by_its_place() -> None:
    found = shown({"main.py": RAW, "run.sh": "torchrun main.py --name $(date +%s)\n"})
    assert (found.path, found.line, found.programs, found.script) == ("run.sh", 1, ("main.py",), "main.py")
    assert (found.command, found.faults) == ("", ("has words that a shell puts together",))


JOINING = "import argparse\nimport os\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"
JOINING += "parser = argparse.ArgumentParser()\nparser.add_argument('--distributed', action='store_true')\n"
JOINING += "args = parser.parse_args()\n"
GROUP = "def work(rank=0):\n    {}dist.init_process_group('nccl')\n    print('run')\n\n\n"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (GROUP.format("") + "work()\n", "torchrun --nproc_per_node=2 main.py"),
        (GROUP.format("if args.distributed:\n        ") + "work()\n", "torchrun --nproc_per_node=2 main.py --distributed"),
        (GROUP.format("if 'RANK' in os.environ:\n        ") + "work()\n", "torchrun --nproc_per_node=2 main.py"),
        (GROUP.format("if read():\n        ") + "work()\n", ""),  # nothing shows that it joins
        (
            GROUP.format("") + "if args.distributed:\n    mp.spawn(work, nprocs=2)\nelse:\n    work()\n",
            "torchrun --nproc_per_node=2 main.py",
        ),
        (GROUP.format("") + "mp.spawn(work, nprocs=2)\n", ""),  # two launchers, one inside the other
        ("print('run')\n", ""),  # it knows of no ranks
    ],
)
def test_a_launched_program_takes_up_its_ranks(body: str, command: str) -> None:
    old = {"main.py": (JOINING + body).encode(), "run.sh": b"torchrun main.py\n"}
    (found,) = launches(old, old.get, {"main.py": old["main.py"].replace(b"print('run')", b"print('new')")})
    assert found.command == command


def test_a_program_that_takes_up_its_ranks_in_the_modes_of_another_option_alone() -> None:
    spawned = "if args.distributed:\n    mp.spawn(work, nprocs=2)\nelse:\n    work()\n"
    body = GROUP.format("if args.distributed:\n        ") + spawned
    old = {"main.py": (JOINING + body).encode(), "run.sh": b"torchrun main.py\n"}
    (found,) = launches(old, old.get, {"main.py": old["main.py"].replace(b"print('run')", b"print('new')")})
    assert (found.command, found.script) == ("", "main.py")
    assert found.faults == ("puts a launcher in front of a program that then starts its processes itself",)


SPAWNING = """import torch
{}


def main():
    {}
"""


@pytest.mark.parametrize(
    ("brought", "start"),
    [
        ("from torch.multiprocessing import spawn", "n = torch.cuda.device_count()\n    spawn(work, nprocs=n)"),
        ("import torch.multiprocessing as mp", "mp.start_processes(work, nprocs=torch.cuda.device_count())"),
        ("from engine import launch", "launch(main_worker, torch.cuda.device_count(), 1)"),
    ],
)
def test_a_program_that_starts_its_ranks_gets_no_launcher(brought: str, start: str) -> None:
    program = SPAWNING.format(brought, start) + "\n\nimport torch.distributed as dist\ndist.init_process_group('nccl')\nmain()\n"
    found = shown({"main.py": program, "run.sh": "python main.py\n"})
    assert (found.command, found.counted) == ("CUDA_VISIBLE_DEVICES=0,1 python main.py", True)


@pytest.mark.parametrize(
    ("line", "launcher"),
    [
        ("rank = int(os.environ['RANK'])", "torchrun --standalone --nproc_per_node=2"),
        ("rank = int(os.environ.get('RANK', 0))", "python"),
        ("os.environ['LOCAL_RANK'] = '0'", "python"),
    ],
)
def test_a_fabric_that_joins_a_launcher(line: str, launcher: str) -> None:
    program = f"import os\nfrom lightning import Fabric\n{line}\nFabric(strategy='ddp').launch()\n"
    assert shown({"main.py": program, "run.sh": "python main.py\n"}).command == f"{launcher} main.py"


def test_a_number_that_is_written_over() -> None:
    body = "args = parser.parse_args()\nargs.n_gpu = torch.cuda.device_count()\nmp.spawn(print, nprocs=args.n_gpu)\n"
    assert of(body)[0] == "CUDA_VISIBLE_DEVICES=0,1 python main.py"


def test_a_number_that_a_file_of_settings_has() -> None:
    body = "args = parser.parse_args()\nconfig = load(args.n_gpu)\nmp.spawn(print, nprocs=config['gpus'])\n"
    assert of(body) == ("python main.py", False)


@pytest.mark.parametrize("make", ["dict", "defaults.filled"])
def test_the_settings_of_a_trainer_in_a_dict(make: str) -> None:
    body = "from lightning import Trainer\nargs = parser.parse_args()\nkept = MAKE(devices=args.n_gpu)\nTrainer(**kept)\n"
    assert of(body.replace("MAKE", make), "python main.py --n_gpu 8")[0] == "python main.py --n_gpu 2"


LISTED = """import argparse
import os
import torch
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("--gpu", default="0"{})
args, rest = parser.parse_known_args()
os.environ["CUDA_VISIBLE_DEVICES"] = {}
mp.spawn(print, nprocs=torch.cuda.device_count())
"""


@pytest.mark.parametrize(
    ("more", "value", "given", "shown_as"),
    [
        ("", "args.gpu", " --gpu 0,1,2,3", " --gpu 0,1"),
        ("", "str(args.gpu)", " --gpu=4", " --gpu=0,1"),
        ("", "args.gpu", "", " --gpu 0,1"),
        (", nargs='+'", "','.join(args.gpu)", " --gpu 0 1 2", " --gpu 0 1"),
    ],
)
def test_an_option_that_says_which_gpus_are_seen(more: str, value: str, given: str, shown_as: str) -> None:
    found = shown({"main.py": LISTED.format(more, value), "run.sh": f"CUDA_VISIBLE_DEVICES=3 python main.py{given}\n"})
    assert found.command == f"python main.py{shown_as}"


def test_an_option_of_gpus_that_nothing_is_made_of() -> None:
    program = LISTED.format("", "'0,1,2'")
    found = shown({"main.py": program, "run.sh": "python main.py --gpu 0,1,2\n"})
    assert found.command == "CUDA_VISIBLE_DEVICES=0,1 python main.py --gpu 0,1,2"
