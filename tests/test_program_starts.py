"""As how many processes programs run: by what they start, by their Trainer, by the repository's commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import ddpfix
from codemods.analysis.job_files.documented_starts import other_starts
from codemods.analysis.ranks.program_starts import start_of
from codemods.analysis.ranks.start_kinds import Start
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from ddpfix.testing import findings_of

GROUP = "import torch.distributed as dist\n\ndef init_distributed_mode(args):\n    dist.init_process_group('nccl')\n"
MAIN = "\nif __name__ == '__main__':\n    main()\n"


def start(source: str, files: dict[str, str] | None = None) -> Start:
    texts = {"train.py": source, **(files or {})}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    return start_of(project, module)


@pytest.mark.parametrize(
    "source",
    [
        f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}",
        f"import misc\n\ndef main():\n    misc.init_distributed_mode(1)\n{MAIN}",
        f"from misc import *\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}",
        "import misc as m\n\nclass Runner:\n    def __init__(self):\n        m.init_distributed_mode(1)\n\n"
        f"def main():\n    Runner()\n{MAIN}",
        f"from joined import helper\n\ndef main():\n    helper()\n{MAIN}",  # what stands at the top of a file runs on import
        f"import torch.multiprocessing as mp\nfrom work import worker\n\ndef main():\n    mp.spawn(worker, nprocs=2)\n{MAIN}",
        f"from mmcv.runner import init_dist\n\ndef main():\n    init_dist('pytorch')\n{MAIN}",
        f"import torch.distributed as dist\n\ndef main():\n    print(dist.get_rank())\n{MAIN}",  # it raises without a group
        f"import lightning as L\n\ndef main():\n    L.Trainer(devices=4).fit(1)\n{MAIN}",
        f"from base import Base\n\nclass Work(Base):\n    pass\n\ndef main():\n    Work().run()\n{MAIN}",
    ],
)
def test_a_program_that_starts_ranks(source: str) -> None:
    base = "from misc import init_distributed_mode\n\nclass Base:\n    def run(self):\n        init_distributed_mode(1)\n"
    joined = "import os\nRANK = int(os.environ['RANK'])\n\ndef helper():\n    pass\n"
    work = "def worker(rank):\n    pass\n"
    assert start(source, {"misc.py": GROUP, "base.py": base, "joined.py": joined, "work.py": work}) is Start.SEVERAL


@pytest.mark.parametrize(
    "source",
    [
        f"from misc import init_distributed_mode\n\ndef main():\n    fit()\n{MAIN}",  # imported, and never called
        f"from misc import save\n\ndef main():\n    save()\n{MAIN}",  # the file of it has a start, too
        f"import lightning as L\n\ndef main():\n    L.seed_everything(1)\n{MAIN}",
        f"import lightning as L\n\ndef main():\n    L.Trainer(devices=1).fit(1)\n{MAIN}",
        # the program that starts the ranks as other programs is one process, and they join in what it only defines
        "import subprocess, torch.distributed as dist\n\ndef join(rank):\n    dist.init_process_group('nccl', rank=rank)\n\n"
        f"def main():\n    [subprocess.Popen(['python', 'train.py', f'--rank={{n}}']) for n in range(2)]\n{MAIN}",
        f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nfrom misc import init_distributed_mode\n\ndef main():\n"
        f"    init_distributed_mode(1)\n{MAIN}",
        # torch.distributed is asked for first: it is one process where nobody starts a group
        "import torch.distributed as dist\n\ndef main():\n    if dist.is_initialized():\n        print(dist.get_rank())\n" + MAIN,
        "import gradio as gr\n\nwith gr.Blocks() as demo:\n    gr.Textbox()\ndemo.launch(share=True)\n",
    ],
)
def test_a_program_of_one_process(source: str) -> None:
    files = {"misc.py": GROUP + "\ndef save():\n    pass\n"}
    assert start(source, files) is Start.ONE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python train.py", Start.OPEN),
        ("torchrun train.py", Start.SEVERAL),
        ("python other.py", Start.SEVERAL),
    ],
)
def test_a_program_that_joins_what_a_launcher_starts(text: str, expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    files = {"misc.py": GROUP, "README.md": f"Run `{text}`.\n"}
    assert start(joins, files) is expected
    spawns = joins.replace("init_distributed_mode(1)", "mp.spawn(init_distributed_mode)")
    assert start("import torch.multiprocessing as mp\n" + spawns, files) is Start.SEVERAL


HUGGING_FACE = f"from transformers import Trainer\n\ndef main():\n    Trainer(1).train()\n{MAIN}"
ACCELERATE = f"from accelerate import Accelerator\n\ndef main():\n    Accelerator().prepare(1)\n{MAIN}"


@pytest.mark.parametrize("source", [HUGGING_FACE, ACCELERATE, HUGGING_FACE.replace("Trainer(1)", "Own(1)").replace(
    "\n\ndef main", "\n\nclass Own(Trainer):\n    pass\n\ndef main")])
def test_what_a_launcher_decides(source: str) -> None:
    assert start(source) is Start.OPEN
    assert start(source, {"README.md": "Run `python train.py`.\n"}) is Start.OPEN
    assert start(source, {"run.sh": "torchrun --nproc_per_node 8 train.py\n"}) is Start.SEVERAL
    assert start(source, {"run.sh": "accelerate launch $SCRIPT --x 1\n"}) is Start.LIKELY


WORK = """\
import torch.distributed as dist

def work(args):
    rank = dist.get_rank() if dist.is_initialized() else 0
    {}
    if rank == 0:
        args.save()
"""
PRINTS = WORK.format('print("start", args.epochs)')
WRITES = WORK.format('open("state.json", "w").write(str(args.epochs))')


CALLS = f"from misc import init_distributed_mode\nfrom module import work\n\ndef main():\n    work(1)\n{MAIN}"
TRAINS = HUGGING_FACE.replace("from", "from module import work\nfrom", 1).replace("    Trainer", "    work(1)\n    Trainer")


@pytest.mark.parametrize(
    ("caller", "prints", "writes"),
    [
        (CALLS.replace("    work", "    init_distributed_mode(1)\n    work"), Applicability.SAFE, Applicability.SAFE),
        (TRAINS, None, Applicability.UNSAFE),
        (CALLS, None, None),
    ],
)
def test_what_is_said_of_ranks_hangs_on_the_programs(
    caller: str, prints: Applicability | None, writes: Applicability | None
) -> None:
    def level(rule: type[DdpCodemod], source: str) -> Applicability | None:
        found = findings_of(rule, source, {"train.py": caller, "misc.py": GROUP})
        return found[0].applicability if found else None

    assert (level(UnguardedPrint, PRINTS), level(UnguardedFileIo, WRITES)) == (prints, writes)


def test_an_open_start_is_named() -> None:
    (found,) = findings_of(UnguardedFileIo, WRITES, {"train.py": TRAINS})
    assert "no command of the repository does so" in found.reason


def test_the_setting_for_programs_that_are_launched(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    (tmp_path / "module.py").write_text(PRINTS)

    def codes() -> set[str]:
        return {found.code for report in ddpfix.check(tmp_path) for found in report.findings}

    assert "DDP203" not in codes()
    (tmp_path / "ddpfix.toml").write_text("launched = true\n")
    assert "DDP203" in codes()


OF_SLURM = (
    "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node={}\nexport N=${{SLURM_NTASKS_PER_NODE}}\nN=${{N:-4}}\n"
    "torchrun --nproc_per_node=$N train.py\n"
)
OF_ONE_GPU = "#!/bin/bash\n#SBATCH --gres=gpu:1\n#SBATCH --cpus-per-task=4\nsrun python \"$HERE\"/train.py --out x\n"
JOB = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node={}\nsrun python train.py\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torchrun --nproc_per_node=1 train.py", Start.OPEN),
        ("python -m torch.distributed.launch --nproc_per_node 1 --master_port 2000 train.py", Start.OPEN),
        ("torchrun --nproc-per-node=16 train.py", Start.SEVERAL),
        ("torchrun --nnodes=4 --nproc_per_node=1 train.py", Start.SEVERAL),
        ("torchrun --nproc_per_node=1 train.py\ntorchrun --nproc_per_node=4 train.py", Start.SEVERAL),
        ("accelerate launch --num_processes=1 train.py", Start.OPEN),
        ("accelerate launch --num_processes 2 train.py", Start.SEVERAL),
        ("accelerate launch \\\n    --gpu_ids 3 \\\n    train.py", Start.OPEN),
        ("accelerate launch --gpu_ids 0,3 train.py", Start.SEVERAL),
        ("accelerate launch --gpu_ids all train.py", Start.SEVERAL),
        ("accelerate launch --config_file one.yaml train.py", Start.OPEN),
        ("accelerate launch --config_file eight.yaml train.py", Start.SEVERAL),
        ("accelerate launch --config_file one.yaml --num_processes 4 train.py", Start.SEVERAL),
        ("accelerate launch --config_file mine.yaml train.py", Start.SEVERAL),  # nobody knows what it says
        ("deepspeed --num_gpus=1 train.py", Start.OPEN),
        ("horovodrun -np 1 python train.py", Start.OPEN),
        ("horovodrun -np 4 python train.py", Start.SEVERAL),
        ("CUDA_VISIBLE_DEVICES=0 accelerate launch train.py", Start.OPEN),
        ("CUDA_VISIBLE_DEVICES=0,1 accelerate launch train.py", Start.SEVERAL),
        ("CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node=2 train.py", Start.SEVERAL),
        (JOB.format(1), Start.OPEN),
        (JOB.format(4), Start.SEVERAL),
        (JOB.format(1).replace("nodes=1", "nodes=2"), Start.SEVERAL),
        (JOB.format(1).replace("python", "torchrun --nproc_per_node=4"), Start.SEVERAL),
        ("#SBATCH --ntasks=1\nsrun python train.py", Start.OPEN),
        (OF_ONE_GPU, Start.OPEN),
        (OF_ONE_GPU.replace("gres=gpu:1", "gres=gpu:a100:1"), Start.OPEN),
        (OF_ONE_GPU.replace("gres=gpu:1", "gpus=1"), Start.OPEN),
        (OF_ONE_GPU.replace("gres=gpu:1", "gpus=1\n#SBATCH --ntasks-per-node=1"), Start.OPEN),
        (OF_ONE_GPU.replace("gres=gpu:1", "gpus=1\n#SBATCH --ntasks-per-node=2"), Start.SEVERAL),
        (OF_ONE_GPU.replace("gres=gpu:1", "gres=gpu:a100:4"), Start.SEVERAL),
        (OF_ONE_GPU.replace("gres=gpu:1", "gres=gpu:$GPUS"), Start.SEVERAL),
        (OF_ONE_GPU.replace("gres=gpu:1", "gres=gpu:1\n#SBATCH --nodes=4"), Start.SEVERAL),  # one on each of four nodes
        (OF_ONE_GPU.replace("gres=gpu:1", "gres=gpu:1\n#SBATCH -n 2"), Start.SEVERAL),
        (OF_ONE_GPU.replace("srun", "srun -n 4"), Start.SEVERAL),
        (OF_ONE_GPU.replace("srun python", "srun torchrun --nproc_per_node=2"), Start.SEVERAL),
        (OF_ONE_GPU + "srun -w node7 rsync -a data/ /scratch/$USER/\n", Start.OPEN),  # no program of several processes
        (OF_SLURM.format(1), Start.OPEN),
        (OF_SLURM.format(1).replace("export ", "").replace("${SLURM_NTASKS_PER_NODE}", "$SLURM_NTASKS_PER_NODE"), Start.OPEN),
        (OF_SLURM.format(1) + "N=4\n", Start.SEVERAL),
        (OF_SLURM.format(2), Start.SEVERAL),
        (OF_SLURM.format(1).replace("export N=${SLURM_NTASKS_PER_NODE}\n", ""), Start.SEVERAL),  # whoever submits it says
        (OF_SLURM.format(1).replace("#SBATCH --nodes=1", "#SBATCH --nodes=2").replace("=$N", "=$N --nnodes=2"), Start.SEVERAL),
        ("count=1\naccelerate launch --num_processes $count train.py", Start.OPEN),
        ("export N='1'  # GPUs\ntorchrun --nproc_per_node=${N} train.py", Start.OPEN),
        ("count=1\ncount=4\naccelerate launch --num_processes $count train.py", Start.SEVERAL),
        ("count=1\naccelerate launch --num_processes $counts train.py", Start.SEVERAL),
        ("count=${1:-1}\naccelerate launch --num_processes $count train.py", Start.SEVERAL),
        ("count=1\nread count\naccelerate launch --num_processes $count train.py", Start.SEVERAL),
        ("for N in 1 2; do\n  torchrun --nproc_per_node=$N train.py\ndone", Start.SEVERAL),
    ],
)
def test_a_launcher_that_starts_one_process(text: str, expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    settings = {"conf/one.yaml": "num_machines: 1\nnum_processes: 1\n", "conf/eight.yaml": "num_processes: 8\n"}
    assert start(joins, {"misc.py": GROUP, "run.sh": text, **settings}) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python train.py", Start.OPEN),
        ("accelerate launch --num_processes=1 train.py", Start.OPEN),
        ("accelerate launch train.py", Start.SEVERAL),
        ("", Start.SEVERAL),  # which of the programs is launched, is left open
    ],
)
def test_an_accelerator_beside_another_program_that_is_launched(text: str, expected: Start) -> None:
    source = f"from accelerate import Accelerator\n\ndef main():\n    Accelerator()\n{MAIN}"
    assert start(source, {"run.sh": f"accelerate launch other.py\n{text}\n"}) is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("CUDA_VISIBLE_DEVICES=0 accelerate launch train.py", Start.OPEN),
        ("CUDA_VISIBLE_DEVICES=2 OMP_NUM_THREADS=4 python -m torch.distributed.launch train.py", Start.OPEN),
        ("CUDA_VISIBLE_DEVICES=0,1 accelerate launch train.py", Start.SEVERAL),
        ("CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node=2 train.py", Start.SEVERAL),
        ("CUDA_VISIBLE_DEVICES=0 python look.py; torchrun train.py", Start.SEVERAL),  # it is another command's
        ("CUDA_VISIBLE_DEVICES=0 accelerate launch train.py\n# accelerate launch train.py", Start.SEVERAL),
    ],
)
def test_a_command_in_a_comment(command: str, expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    files = {"misc.py": GROUP, "run.sh": "python train.py\n"}
    assert start(f"{joins}\n# {command}\n", files) is expected
    trains = joins.replace("    init_distributed_mode(1)\n", "    init_distributed_mode(1)\n    loss().backward()\n")
    assert start(f"{trains}\n# {command}\n", files) is Start.SEVERAL  # one GPU is an example: more are welcome


def test_scripts_of_one_name_are_told_apart_by_where_their_commands_stand() -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    other = {"big/train.py": joins, "big/run.sh": "torchrun --nproc_per_node=8 train.py\n", "misc.py": GROUP}
    assert start(joins, {**other, "run.sh": "torchrun --nproc_per_node=1 train.py\n"}) is Start.OPEN
    assert start(joins, {**other, "run.sh": "cd small\ntorchrun --nproc_per_node=8 train.py\n"}) is Start.SEVERAL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name=train\npython $name.py\n", Start.OPEN),
        ("name=train\ntorchrun $name.py\n", Start.SEVERAL),
        ("name=other\ntorchrun $name.py\npython train.py\n", Start.OPEN),
        ("name=$1\ntorchrun $name.py\npython train.py\n", Start.LIKELY),  # it may be this one
    ],
)
def test_a_script_that_a_variable_of_the_job_file_names(text: str, expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    assert start(joins, {"misc.py": GROUP, "scripts/run.sh": text}) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("task=$1\ntorchrun --nproc_per_node 2 tr$task.py\n", Start.LIKELY),  # no word of the name is written out
        ("task=$1\ntorchrun --nproc_per_node 2 train$task.py\n", Start.SEVERAL),
        ("torchrun --nproc_per_node 2 ./train${1}.py --lr $2\n", Start.SEVERAL),
        ("torchrun --nproc_per_node 2 $HERE/train${1}.py\n", Start.SEVERAL),
        ("torchrun --nproc_per_node 1 train$1.py\n", Start.OPEN),
        ("torchrun --nproc_per_node 2 score_$1.py\npython train$2.py\n", Start.OPEN),
        ("torchrun --nproc_per_node 2 tools/train$1.py\npython train.py\n", Start.OPEN),  # those of another folder
        ("torchrun --nproc_per_node 2 other_$1.py\npython train.py\n", Start.LIKELY),  # no file of that name is seen
    ],
)
def test_a_script_whose_name_holds_a_variable(text: str, expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    others = {"score_b.py": "x = 1\n", "tools/train_b.py": "x = 1\n"}
    assert start(joins, {"misc.py": GROUP, "scripts/run.sh": text, **others}) is expected


ONE_NAME = f"import torch.distributed as dist\n\ndef main():\n    dist.init_process_group('nccl')\n{MAIN}"


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        ("python train.py\n", {}, Start.OPEN),
        ("cd code\npython train.py\n", {}, Start.OPEN),
        ("torchrun --nproc_per_node=4 train.py\n", {}, Start.SEVERAL),
        ("torchrun --nproc_per_node=4 train.py\n", {"small/old/train.py": ONE_NAME}, Start.SEVERAL),  # it may be either
        ("python train.py\n", {"small/go.py": "RUN = 'torchrun --nproc_per_node 4 train.py'\n"}, Start.SEVERAL),
        ("python train.py\n", {"large/go.py": "RUN = 'torchrun --nproc_per_node 4 train.py'\n"}, Start.OPEN),
        ("python train.py\n", {"large/go.py": "import os\nos.chdir('x')\nRUN = 'torchrun train.py'\n"}, Start.SEVERAL),
        ("\n", {"small/go.py": "RUN = 'torchrun --nproc_per_node 1 train.py'\n"}, Start.OPEN),
    ],
)
@pytest.mark.parametrize("job", ["README.md", "jobs/run.sh"])
def test_a_command_means_the_script_of_its_folder(job: str, text: str, files: dict[str, str], expected: Start) -> None:
    jobs = {f"small/{job}": text, "large/README.md": "torchrun --nproc_per_node=8 train.py\n"}
    texts = {"small/code/train.py": ONE_NAME, "large/train.py": ONE_NAME, **jobs, **files}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("small/code/train.py")
    assert module is not None
    assert start_of(project, module) is expected


@pytest.mark.parametrize(("change", "expected"), [("cd ../other", Start.SEVERAL), ("cd code", Start.SEVERAL), ("", Start.OPEN)])
def test_a_text_that_goes_to_another_folder_may_mean_each_script(change: str, expected: Start) -> None:
    """Of the one in `large`, which is not below the text; `cd code` leads down."""
    text = f"{change}\ntorchrun --nproc_per_node 4 train.py\n"
    at = "large/train.py" if change != "cd code" else "small/code/train.py"
    files = {"small/code/train.py": ONE_NAME, "large/train.py": ONE_NAME, "small/README.md": text}
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module(at)
    assert module is not None
    assert start_of(project, module) is expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n    n = parse()\n    main(n)\n", Start.ONE),
        ('    n = int(input())\n    os.environ["CUDA_VISIBLE_DEVICES"] = "3"\n    main(n)\n', Start.ONE),
        ("    os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\n    main(2)\n", Start.SEVERAL),
        ("    main(2)\n    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", Start.SEVERAL),
        ("    n = torch.cuda.device_count()\n    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n    main(n)\n", Start.SEVERAL),
        ("    if input():\n        os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n    main(2)\n", Start.SEVERAL),
    ],
)
def test_devices_that_a_script_leaves_when_it_is_run(block: str, expected: Start) -> None:
    text = "import os\nimport torch\nimport torch.multiprocessing as mp\n\ndef work(rank):\n    print(rank)\n\ndef main(n):\n"
    guard = 'if __name__ == "__main__":\n'
    assert start(f"{text}    mp.spawn(work, nprocs=torch.cuda.device_count())\n\n{guard}{block}") is expected


def test_devices_that_an_imported_file_leaves() -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    pin = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '{}'\n"
    assert start(joins, {"misc.py": pin.format("0") + GROUP}) is Start.ONE
    assert start(joins, {"misc.py": pin.format("0,1") + GROUP}) is Start.SEVERAL
    command = {"misc.py": pin.format("0") + GROUP, "run.sh": "torchrun --nproc_per_node=2 train.py\n"}
    assert start(joins, command) is Start.SEVERAL  # the devices may have been asked for above
    clock = {"misc.py": f"import time\n{GROUP}", "time.py": pin.format("0")}
    assert start(joins, clock) is Start.SEVERAL  # Python has a module of that name
    inside = GROUP.replace("    dist", "    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n    dist")
    assert start(joins, {"misc.py": "import os\n" + inside}) is Start.SEVERAL


@pytest.mark.parametrize(
    ("inner", "text", "expected"),
    [
        (GROUP, "python train.py", Start.OPEN),
        (GROUP, "", Start.SEVERAL),
        (GROUP + "\ndef go():\n    mp.spawn(init_distributed_mode)\n", "python train.py", Start.LIKELY),
        ("def go():\n    pass\n", "", Start.OPEN),
    ],
)
def test_a_program_that_makes_its_parts_by_name(inner: str, text: str, expected: Start) -> None:
    source = f"import importlib\n\ndef main():\n    importlib.import_module(name).run()\n{MAIN}"
    assert start(source, {"nets/run.py": inner, "README.md": text}) is expected


AUTO = (
    "from transformers import AutoModelForCausalLM, Trainer\n\n\ndef main():\n    {load}\n"
    f"    Trainer(model, args, train_dataset=data).train()\n\n{MAIN}"
)


@pytest.mark.parametrize(
    ("load", "found"),
    [
        ('model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")', Start.ONE),
        ('model = AutoModelForCausalLM.from_pretrained("gpt2")', Start.OPEN),
        ('model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto" if alone else None)', Start.OPEN),
        ('if alone:\n        model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")', Start.OPEN),
    ],
)
def test_a_model_over_all_gpus_is_trained_by_one_process(load: str, found: Start) -> None:
    assert start(AUTO.format(load=load)) is found
    assert start(AUTO.format(load=load), {"run.sh": "torchrun --nproc_per_node 4 train.py\n"}) is Start.SEVERAL


FABRIC = """
import lightning as L
from jsonargparse import CLI

devices = 1

def main(path: str) -> None:
    fabric = L.Fabric(accelerator="auto", devices={devices})
    fabric.launch()
    print("Loading ...")

if __name__ == "__main__":
    CLI(main)
"""
OTHER = FABRIC.format(devices=4)


def test_a_fabric_of_one_device_is_one_process() -> None:
    for devices, files in (("1", {}), ("devices", {}), ("1", {"big.py": OTHER})):
        assert start(FABRIC.format(devices=devices), files) is Start.ONE
        assert not findings_of(UnguardedPrint, FABRIC.format(devices=devices), files, path="train.py")
    assert start(OTHER) is Start.SEVERAL and findings_of(UnguardedPrint, OTHER, path="train.py")


def test_a_number_of_devices_that_a_text_tells_to_raise() -> None:
    how_to = {"howto.md": "```python\ndevices = 8\n```\n"}
    assert start(FABRIC.format(devices="devices"), how_to) is Start.LIKELY
    assert start(FABRIC.format(devices="1"), how_to) is Start.ONE


FITS = """
import pytorch_lightning as pl
from model import Net

def main():
    trainer = {made}
    trainer.fit(Net())

if __name__ == "__main__":
    main()
"""


def test_fit_of_a_trainer_that_the_scope_makes_says_nothing_more() -> None:
    assert start(FITS.format(made="pl.Trainer(devices=1, accelerator='gpu')")) is Start.ONE
    assert start(FITS.format(made="pl.Trainer(devices=2)")) is Start.SEVERAL
    assert start(FITS.format(made="read_trainer()")) is Start.LIKELY


@pytest.mark.parametrize(
    ("settings", "command", "expected"),
    [
        ("trainer:\n  devices: [0]\n", "", Start.OPEN),
        ("trainer:\n  devices: 1\n  num_nodes: 1\nmodel:\n  num_nodes: 27\n", "", Start.OPEN),
        ("trainer:\n  devices: [3]\n", 'D="--trainer.devices [${GPU}]"\npython train.py fit $D\n', Start.OPEN),
        ("trainer:\n  devices: [0]\n", "python train.py fit --trainer.devices 4\n", Start.SEVERAL),
        ("trainer:\n  devices: 1\n  num_nodes: 2\n", "", Start.LIKELY),
        ("trainer:\n  devices: [0, 1]\n", "", Start.SEVERAL),
        ("trainer:\n  max_epochs: 3\n", "", Start.LIKELY),
    ],
)
def test_a_command_line_of_lightning_whose_settings_give_one_device(settings: str, command: str, expected: Start) -> None:
    source = f"from lightning.pytorch.cli import LightningCLI\n\ndef main():\n    LightningCLI(Net)\n{MAIN}"
    assert start(source, {"configs/a.yaml": settings, "run.sh": command}) is expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# python -m torch.distributed.launch --nproc_per_node=1 train.py --world_size=1", Start.OPEN),
        ('"""torchrun --nproc_per_node 1 train.py"""', Start.OPEN),
        ("# CUDA_VISIBLE_DEVICES=0 python -m torch.distributed.launch --nproc_per_node=1 \\\n#   train.py", Start.OPEN),
        ("# python -m torch.distributed.launch --nproc_per_node=4 train.py", Start.SEVERAL),
        ("# torchrun --nproc_per_node=1 train.py\n# torchrun --nproc_per_node=4 train.py", Start.SEVERAL),
        ("# torchrun --nproc_per_node=1 --nnodes=2 train.py", Start.SEVERAL),
        ("# torchrun --nproc_per_node=1 other.py", Start.SEVERAL),  # says nothing of this one
    ],
)
def test_a_comment_that_starts_one_process(comment: str, expected: Start) -> None:
    joins = f"{comment}\nfrom misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    assert start(joins, {"misc.py": GROUP}) is expected
    both = {"misc.py": GROUP, "run.sh": "torchrun --nproc_per_node=8 train.py\n"}
    assert start(joins, both) is Start.SEVERAL


def test_a_comment_elsewhere_counts_where_it_means_no_other_script() -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    note = {"misc.py": GROUP, "tools/make.py": "# torchrun --nproc_per_node=1 train.py\n"}
    assert start(joins, note) is Start.OPEN
    assert start(joins, {**note, "tools/train.py": joins}) is Start.SEVERAL


WRITTEN_JOB = 'text = f"""#!/bin/bash\n#SBATCH -p gpu\n#SBATCH {}\n\nmodule load cuda\n{} \\\n  python train.py {{flags}}\n"""\n'


@pytest.mark.parametrize(
    ("tasks", "runs", "several"),
    [
        ("--ntasks-per-node {args.gpus}", "srun -u --cpu-bind=cores", True),
        ("--ntasks-per-node=4", "srun", True),
        ("--ntasks=%d", "srun", True),
        ("--ntasks-per-node=16", "srun --unbuffered", True),
        ("--ntasks-per-node=1", "srun -u", False),
        ("--cpus-per-task={args.cpus}", "srun -u", False),
        ("--ntasks-per-node {args.gpus}", "time", False),
        ("--ntasks-per-node {args.gpus}", "srun -n 1", False),
    ],
)
def test_a_job_that_a_program_writes(tasks: str, runs: str, several: bool) -> None:
    files = {"train.py": "", "jobs/submit.py": WRITTEN_JOB.format(tasks, runs)}
    project = Project.of({path: text.encode() for path, text in files.items()})
    assert other_starts(project, "train.py") is several
    assert not other_starts(project, "other.py")


def test_a_program_of_a_written_job_runs_on_several() -> None:
    source = f"import lightning as L\n\ndef main():\n    L.Trainer().fit(1)\n{MAIN}"
    assert start(source) is Start.LIKELY
    assert start(source, {"jobs/submit.py": WRITTEN_JOB.format('--ntasks-per-node={n}', 'srun')}) is Start.SEVERAL


EACH = """\
import argparse

import torch.distributed as dist
import torch.multiprocessing as mp


def work(gpu, args):
    rank = args.nr * args.gpus + gpu
    dist.init_process_group("nccl", world_size=args.nodes * args.gpus, rank=rank)
    if rank == 0:
        print("rank 0 writes it")
    print("the checkpoint is not here")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--nr", type=int, default=0)
    args = parser.parse_args()
    mp.spawn(work, nprocs=args.gpus, args=(args,))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CUDA_VISIBLE_DEVICES=0 python train.py --nr 0 --nodes 4\n", False),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py --nr 0 --nodes 4 --gpus 2\n", True),
        ("python train.py --nr 0 --nodes 4\n", True),  # as many as its options say
        ("CUDA_VISIBLE_DEVICES=0 python train.py --nodes 4\npython train.py --gpus 8\n", True),
        ("torchrun --nproc_per_node=1 --nnodes=$1 --node_rank=$2 train.py\n", False),
        ("torchrun --nproc_per_node=2 --nnodes=$1 --node_rank=$2 train.py\n", True),
        ("torchrun --nproc_per_node=1 --nnodes=$1 train.py\ntorchrun --nproc_per_node=8 train.py\n", True),
        ("", True),
    ],
)
def test_ranks_that_have_a_machine_for_themselves(text: str, told: bool) -> None:
    assert bool(findings_of(UnguardedPrint, EACH, {"run.sh": text}, path="train.py")) is told
    writes = EACH.replace('print("the checkpoint is not here")', WRITES_STATE)
    assert findings_of(UnguardedFileIo, writes, {"run.sh": text}, path="train.py")  # the folder may be one for all


WRITES_STATE = 'open("state.json", "w").write(str(args.nodes))'


WRAPS = "import os\nimport torch\n{top}\ndef main():\n{start}    rank = int(os.environ['LOCAL_RANK'])\n" \
    "    torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])\n" + MAIN


@pytest.mark.parametrize(
    ("top", "start_of_group", "expected"),
    [
        ("", "", Start.OPEN),
        ("from torch.utils.data.distributed import DistributedSampler", "", Start.OPEN),
        ("", "    torch.distributed.init_process_group('nccl')\n", Start.SEVERAL),
        ("from misc import init_distributed_mode", "    init_distributed_mode(1)\n", Start.SEVERAL),
        ("from toolbox import setup_ddp", "    setup_ddp()\n", Start.SEVERAL),  # a library may start it
        ("import deepspeed", "", Start.SEVERAL),
    ],
)
def test_a_wrapper_for_which_nobody_starts_a_group(top: str, start_of_group: str, expected: Start) -> None:
    source = WRAPS.format(top=top, start=start_of_group)
    assert start(source, {"misc.py": GROUP}) is expected
    assert start(source, {"misc.py": GROUP, "run.sh": "torchrun train.py\n"}) is Start.SEVERAL


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("N=1\naccelerate launch --num_processes $N train.py\naccelerate launch --num_processes 8 other.py\n", None),
        ("accelerate launch --num_processes 1 train.py\naccelerate launch --num_processes 8 train.py\n", Applicability.SAFE),
        ("accelerate launch --num_processes 8 other.py\n", None),  # nothing is said of this one
        ("accelerate launch --num_processes 1 train.py\n", None),  # a print is told of runs that are seen alone
    ],
)
@pytest.mark.parametrize("block", ["", "if __name__ == '__main__':\n    "])
def test_a_script_that_each_command_leaves_one_process_beside_others(text: str, found: Applicability | None, block: str) -> None:
    made = "from accelerate import Accelerator\n\naccelerator = Accelerator()\nloader = accelerator.prepare(load())\n"
    source = f"{made}{block}print('ready')\n"
    files = {"run.sh": text, "other.py": source}
    fixes = [f.fix.applicability for f in findings_of(UnguardedPrint, source, files=files, path="train.py") if f.fix]
    assert fixes == ([] if found is None else [found])


OTHERS_LAUNCHED = (
    "accelerate launch other.py",
    "torchrun --nproc_per_node=8 other.py",
    "python train.py\ntorchrun other.py",
)


@pytest.mark.parametrize("text", OTHERS_LAUNCHED)
def test_a_program_that_joins_and_that_no_command_names_beside_one_that_is_launched(text: str) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    assert start(joins, {"misc.py": GROUP, "other.py": joins, "run.sh": f"{text}\n"}) is Start.OPEN
    if "python" not in text:  # what is launched does not stand here: the texts are of another time
        assert start(joins, {"misc.py": GROUP, "run.sh": f"{text}\n"}) is Start.SEVERAL
    spawns = f"import torch.multiprocessing as mp\n\ndef main():\n    mp.spawn(work, nprocs=2)\n{MAIN}"
    assert start(spawns, {"other.py": joins, "run.sh": f"{text}\n"}) is Start.SEVERAL


LAUNCHES = "torchrun --nproc_per_node=8"


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        (f"{LAUNCHES} soil_big_fit.py", {}, Start.LIKELY),  # the names have the same words but for one
        (f"{LAUNCHES} ./soil_fit_crops.py --path DATA", {}, Start.LIKELY),
        (f"{LAUNCHES} fit.py", {}, Start.OPEN),  # one word in common is no name
        (f"{LAUNCHES} soil_rain.py", {}, Start.OPEN),
        (f"{LAUNCHES} soil_big_fit.py\npython soil_fit.py", {}, Start.OPEN),
        (f"{LAUNCHES} other/soil_big_fit.py", {}, Start.OPEN),
        (f"git clone https://host/soil\n{LAUNCHES} soil_big_fit.py", {}, Start.OPEN),
        (f"cd soil\n{LAUNCHES} soil_big_fit.py", {}, Start.OPEN),
        (f"{LAUNCHES} soil_big_fit.py", {"big_fit.py": MAIN}, Start.OPEN),  # it may be this one
        (f"{LAUNCHES} soil_big_fit.py", {"sub/soil_big_fit.py": MAIN}, Start.OPEN),
        ("python soil_big_fit.py", {}, Start.OPEN),
    ],
)
def test_a_command_that_names_a_script_as_it_was_called_before(text: str, more: dict[str, str], expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    readme = f"Run\n```\n{LAUNCHES} other.py\n{text}\n```\n"
    files = {"soil_fit.py": joins, "other.py": joins, "misc.py": GROUP, "README.md": readme, **more}
    project = Project.of({path: source.encode() for path, source in files.items()})
    module = project.module("soil_fit.py")
    assert module is not None
    assert start_of(project, module) is expected


def test_a_start_that_never_runs() -> None:
    joins = "from misc import init_distributed_mode\n\ndef main():\n    if {}:\n        init_distributed_mode(1)\n"
    assert start(joins.format("False") + MAIN, {"misc.py": GROUP}) is Start.ONE
    assert start(joins.format("True") + MAIN, {"misc.py": GROUP}) is Start.SEVERAL


def test_a_job_file_that_sets_the_script_from_the_root_of_a_machine() -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    run = "COUNT={}\nSCRIPT=/data/project/{}\n\ntorchrun --nproc-per-node=$COUNT \\\n    $SCRIPT\n"
    for count, name, expected in (
        ("$1", "train.py", Start.SEVERAL),
        ("1", "train.py", Start.OPEN),
        ("$1", "other.py", Start.OPEN),
        ("$1", "old/train.py", Start.SEVERAL),  # the file may have moved
    ):
        files = {"misc.py": GROUP, "other.py": joins, "jobs/run.sh": run.format(count, name)}
        assert start(joins, files) is expected, (count, name)
    two = {"misc.py": GROUP, "old/train.py": joins, "jobs/run.sh": run.format("$1", "old/train.py")}
    assert start(joins, two) is Start.OPEN


SHOWN = f"import torch\nfrom misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{'{}'}{MAIN}"
SAVES = "    torch.save(torch.nn.Linear(1, 1).state_dict(), 'last.pt')\n"


@pytest.mark.parametrize(
    ("text", "found", "left_out"),
    [
        ("torchrun --nproc_per_node=8 train.py\n", 1, 0),
        ("torchrun --nproc_per_node=8 other.py\n", 0, 1),
        ("python train.py\n", 0, 1),
        ("", 1, 0),  # nothing says how anything is started
    ],
)
def test_what_is_left_out_is_counted(tmp_path: Path, text: str, found: int, left_out: int) -> None:
    source = SHOWN.format(SAVES)
    for name, held in {"train.py": source, "misc.py": GROUP, "other.py": "print(1)\n", "run.sh": text}.items():
        (tmp_path / name).write_text(held)
    report = ddpfix.check([tmp_path], select=["DDP501"])
    assert (len(report[0].findings), report[0].left_out) == (found, left_out)
    (tmp_path / "ddpfix.toml").write_text("launched = true\n")
    report = ddpfix.check([tmp_path], select=["DDP501"])
    assert (len(report[0].findings), report[0].left_out) == (1, 0)


OPTION = "parser.add_argument('--distributed', action='store_true')\nargs = parser.parse_args()\n"
BY_OPTION = (
    "import argparse\nimport torch.distributed as dist\n\ndef main():\n    parser = argparse.ArgumentParser()\n"
    f"    {OPTION.splitlines()[0]}\n    {OPTION.splitlines()[1]}\n"
    f"    if args.distributed:\n        dist.init_process_group('nccl')\n    work(args)\n{MAIN}"
)
BESIDE = {"run.sh": "torchrun --nproc_per_node=4 train_all.py\n"}


@pytest.mark.parametrize(
    ("source", "files", "expected"),
    [
        (BY_OPTION, BESIDE, Start.OPEN),
        (BY_OPTION, {**BESIDE, "conf/one.txt": "distributed = False\n", "two.yaml": "distributed: false\n"}, Start.OPEN),
        (BY_OPTION, {}, Start.PRESUMED),  # a repository that starts nothing
        (BY_OPTION, {**BESIDE, "two.yaml": "distributed: true\n"}, Start.LIKELY),
        (BY_OPTION, {**BESIDE, "README.md": "Add `--distributed` for more GPUs.\n"}, Start.LIKELY),
        (BY_OPTION, {"run.sh": "torchrun --nproc_per_node=4 train_all.py\ntorchrun train.py --distributed\n"}, Start.SEVERAL),
        (BY_OPTION.replace("store_true", "store_false"), BESIDE, Start.LIKELY),
        (BY_OPTION.replace("action='store_true'", "type=int, default=1"), BESIDE, Start.LIKELY),
        (BY_OPTION.replace("action='store_true'", "default=False"), BESIDE, Start.OPEN),
        (BY_OPTION.replace("    if args.d", "    args.distributed = 'RANK' in os.environ\n    if args.d"), BESIDE, Start.LIKELY),
        (BY_OPTION.replace("    work(args)", "    setup(args)") + "\ndef setup(args):\n    dist.init_process_group()\n", BESIDE,
         Start.SEVERAL),
        (BY_OPTION.replace("    work(args)", "    run(['train.py', '--distributed'])"), BESIDE, Start.LIKELY),
        (BY_OPTION.replace("if args.distributed", "if not args.distributed"), BESIDE, Start.LIKELY),
    ],
)  # fmt: skip
def test_a_group_under_an_option_that_nothing_gives(source: str, files: dict[str, str], expected: Start) -> None:
    assert start(source, files) is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [("lr: 1\n", Start.OPEN), ("spawned: true\n", Start.SEVERAL)],
)
def test_a_spawn_under_an_option_that_its_own_settings_leave_out(settings: str, expected: Start) -> None:
    source = (
        "import torch.distributed as dist\nimport torch.multiprocessing as mp\n"
        "parser.add_argument('--world-size', default=-1, type=int)\nparser.add_argument('--spawned', action='store_true')\n\n"
        "def main(args):\n    args.distributed = args.world_size > 1 or args.spawned\n"
        "    if args.spawned:\n        mp.spawn(worker, nprocs=2)\n    else:\n        worker(0, args)\n\n"
        f"def worker(rank, args):\n    if args.distributed:\n        dist.init_process_group('nccl')\n{MAIN}"
    )
    texts = {"run.sh": "python train.py -c one.yaml\ntorchrun big.py -c all.yaml\n", "all.yaml": "spawned: true\n"}
    assert start(source, {**texts, "one.yaml": settings}) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if torch.cuda.current_device() == 0:\n        text = decode()\n    write(text)\n", Start.OPEN),
        ("    if int(torch.cuda.current_device()) == 0:\n        text = decode()\n    write(text)\n", Start.OPEN),
        ("    text = ''\n    if torch.cuda.current_device() == 0:\n        text = decode()\n    write(text)\n", Start.SEVERAL),
        ("    if torch.cuda.current_device() == 0:\n        text = decode()\n        write(text)\n", Start.SEVERAL),
        ("    if torch.cuda.current_device() == 0:\n        text = decode()\n    else:\n        return\n    write(text)\n",
         Start.SEVERAL),
        ("    if torch.cuda.current_device() == 0:\n        text = decode()\n    if device == 0:\n        write(text)\n",
         Start.SEVERAL),
        ("    if dist.get_rank() == 0:\n        text = decode()\n    write(text)\n", Start.SEVERAL),
    ],
)  # fmt: skip
def test_a_name_that_the_first_device_alone_binds(body: str, expected: Start) -> None:
    top = "import torch\nimport torch.distributed as dist\n\ndef main():\n    dist.barrier()\n"
    assert start(f"{top}{body}{MAIN}") is expected


def test_workers_of_one_name_in_two_programs() -> None:
    """Each program spawns its own: the one that nobody launches says nothing of prints."""
    top = "import torch.distributed as dist\nimport torch.multiprocessing as mp\nfrom parts import *\n"
    worker = "\ndef worker(rank):\n    {group}\n    print('begin')\n"
    spawned = f"{top}{worker.format(group='dist.init_process_group()')}\ndef main():\n    mp.spawn(worker, nprocs=2)\n{MAIN}"
    alone = f"{top}{worker.format(group='print(dist.is_initialized())')}\ndef main():\n    worker(0)\n{MAIN}"
    files = {"big.py": spawned, "parts.py": "def helper():\n    pass\n", "run.sh": "python train.py\n"}
    assert not findings_of(UnguardedPrint, alone, files=files, path="train.py")
    assert findings_of(UnguardedPrint, spawned, files={**files, "train.py": alone}, path="big.py")


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("# accelerate launch --config_file four.yaml \\\npython train.py \\\n    --size 8\n", Start.OPEN),  # it ends there
        ("# accelerate launch --config_file four.yaml\npython train.py\n", Start.OPEN),
        ("# accelerate launch --config_file four.yaml \\\n#   train.py\n", Start.SEVERAL),  # how it was once started
        ("accelerate launch --config_file four.yaml \\\n    train.py\n", Start.SEVERAL),
    ],
)
def test_a_comment_that_ends_with_a_backslash(job: str, expected: Start) -> None:
    source = f"from accelerate import Accelerator\n\ndef main():\n    Accelerator()\n{MAIN}"
    assert start(source, {"run.sh": job, "all.sh": "torchrun --nproc_per_node 2 other.py\n", "other.py": ""}) is expected


@pytest.mark.parametrize(
    ("switch", "job", "expected"),
    [
        ("ddp = False", "python train.py\n", Start.OPEN),
        ("ddp = True", "python train.py\n", Start.SEVERAL),
        ("ddp = False\nddp = read()", "python train.py\n", Start.SEVERAL),  # something else may turn it on
        ("ddp = False", "ls\n", Start.SEVERAL),  # no text says how it is started: the switch may stand as it was left
    ],
)
def test_a_switch_in_the_file(switch: str, job: str, expected: Start) -> None:
    body = "\ndef main():\n    if ddp:\n        mp.spawn(work, nprocs=2)\n"
    source = f"import torch.multiprocessing as mp\n\n{switch}\n{body}{MAIN}"
    assert start(source, {"run.sh": job}) is expected


@pytest.mark.parametrize(
    ("default", "job", "expected"),
    [
        ("[0]", "python train.py --lr 1\n", Start.OPEN),
        ("1", "python train.py --lr 1\n", Start.OPEN),
        ("[0]", "python train.py --devices 2\n", Start.SEVERAL),
        ("[0]", 'python train.py "$@"\n', Start.LIKELY),
        ("[0]", "torchrun --nproc_per_node 2 train.py\n", Start.SEVERAL),
        ("[0]", "ls\n", Start.LIKELY),  # no command says how it is started
        ("[0, 1]", "python train.py --lr 1\n", Start.SEVERAL),
        ("-1", "python train.py --lr 1\n", Start.SEVERAL),
        ("-1", 'python train.py "$@"\n', Start.SEVERAL),
        ("-1", "python train.py --devices 1\n", Start.LIKELY),
    ],
)
def test_devices_of_the_script_own_option(default: str, job: str, expected: Start) -> None:
    top = "import argparse\nimport pytorch_lightning as pl\n\ndef main():\n    parser = argparse.ArgumentParser()\n"
    option = f"    parser.add_argument('--devices', default={default})\n    args = parser.parse_args()\n"
    source = f"{top}{option}    trainer = pl.Trainer.from_argparse_args(args)\n    trainer.fit(1)\n{MAIN}"
    assert start(source, {"run.sh": job, "all.sh": "torchrun --nproc_per_node 2 other.py\n", "other.py": ""}) is expected


HELD = """\
import lightning as pl
import json

with open("a.json") as file:
    settings = json.load(file)
CHECK
trainer = pl.Trainer(KEYWORDS)
trainer.fit(net)
"""


@pytest.mark.parametrize(
    ("check", "keywords", "expected"),
    [
        ('if len(settings["devices"]) != 1:\n    exit(0)', 'devices=settings["devices"]', Start.ONE),
        ('if len(settings["devices"]) > 1:\n    raise ValueError("one")', 'devices=settings["devices"]', Start.ONE),
        ('if len(settings["devices"]) != 2:\n    exit(0)', 'devices=settings["devices"]', Start.LIKELY),
        ('if len(settings["devices"]) != 1:\n    print("more")', 'devices=settings["devices"]', Start.LIKELY),
        ('if len(settings["gpus"]) != 1:\n    exit(0)', 'devices=settings["devices"]', Start.LIKELY),
        ("", 'accelerator="cpu"', Start.ONE),
        ("", 'accelerator="cpu", num_processes=4', Start.SEVERAL),
        ("", 'accelerator="cpu", devices=4', Start.SEVERAL),
        ("", 'accelerator="gpu"', Start.LIKELY),
    ],
)
def test_a_program_that_insists_on_one_device(check: str, keywords: str, expected: Start) -> None:
    assert start(HELD.replace("CHECK", check).replace("KEYWORDS", keywords)) is expected


def test_a_program_of_another_language() -> None:
    job = "torchrun --nproc_per_node 4 other.py\nmpirun -np $N ./sim.exe\n"
    other = {"misc.py": GROUP, "run.sh": job, "other.py": "import misc\n"}
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    assert start(joins, other) is Start.OPEN
    assert start(joins, {**other, "run.sh": job.replace("./sim.exe", "$SCRIPT")}) is Start.LIKELY


@pytest.mark.parametrize(("count", "expected"), [("1", Start.ONE), ("2", Start.SEVERAL), ("n", Start.SEVERAL)])
def test_a_notebook_launcher_says_how_many_it_starts(count: str, expected: Start) -> None:
    lines = "from accelerate import notebook_launcher\n\n\ndef run():\n    print(1)\n\n\nn = 4\n"
    assert start(f"{lines}notebook_launcher(run, (), num_processes={count})\n") is expected


JOB_OF_ONE = '#SBATCH --gres=gpu:1\npython "$HERE"/train.py --out x\n'


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (JOB_OF_ONE, Start.OPEN),
        (JOB_OF_ONE.replace("gpu:1", "gpu:rtx:1"), Start.OPEN),
        (JOB_OF_ONE.replace("gpu:1", "gpu:4"), Start.LIKELY),
        (JOB_OF_ONE.replace("#SBATCH --gres=gpu:1\n", ""), Start.LIKELY),  # as many as the machine has
        (f"{JOB_OF_ONE}# or on 4 GPUs\n", Start.LIKELY),
    ],
)
def test_a_trainer_that_takes_what_the_job_has(job: str, expected: Start) -> None:
    assert start(FITS.format(made="pl.Trainer(accelerator='gpu')"), {"job.sh": job}) is expected


ENGINES = """
class Engine:
    def __init__(self, rank):
        if rank is not None:
            self.join()

    def join(self):
        dist.init_process_group("nccl")

    def run(self):
        print("run")


class Joined:
    def __init__(self):
        self.join()

    def join(self):
        dist.init_process_group("nccl")

    def run(self):
        print("run")
"""
IN_MAIN = f"import os\nimport torch.distributed as dist\n{ENGINES}\ndef main():\n{{}}\n" + MAIN


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    dist.init_process_group('nccl')", Start.SEVERAL),  # ends a run of one process
        ("    local = int(os.environ['LOCAL_RANK'])\n    print(local)", Start.SEVERAL),
        ("    if True:\n        dist.init_process_group('nccl')", Start.SEVERAL),
        ("    with open('log'):\n        dist.init_process_group('nccl')", Start.SEVERAL),
        ("    if torch.cuda.device_count() > 1:\n        dist.init_process_group('nccl')", Start.SEVERAL),  # by the machine
        ("    if not dist.is_initialized():\n        dist.init_process_group('nccl')", Start.SEVERAL),
        ("    if 'RANK' in os.environ:\n        dist.init_process_group('nccl')", Start.PRESUMED),
        ("    if 'RANK' not in os.environ:\n        return\n    dist.init_process_group('nccl')", Start.PRESUMED),
        ("    rank = int(os.environ.get('RANK', 0))\n    print(rank)", Start.PRESUMED),
        ("    try:\n        dist.init_process_group('nccl')\n    except ValueError:\n        print('one')", Start.PRESUMED),
        ("    rank = int(os.environ['RANK']) if 'RANK' in os.environ else 0\n    print(rank)", Start.PRESUMED),
        ("    print('RANK' in os.environ and int(os.environ['RANK']) > 0)", Start.PRESUMED),
        ("    Engine(os.environ.get('RANK')).run()", Start.PRESUMED),  # its method that joins is called under a test
        ("    Joined().run()", Start.SEVERAL),
        ("    os.environ['WORLD_SIZE'] = '1'\n    dist.init_process_group('gloo', rank=0)", Start.PRESUMED),
        ("    os.environ.setdefault('RANK', '0')\n    dist.init_process_group('gloo')", Start.PRESUMED),
        ("    dist.init_process_group('gloo', init_method='tcp://localhost:1', rank=0, world_size=1)", Start.PRESUMED),
    ],
)
def test_a_program_that_no_text_launches(body: str, expected: Start) -> None:
    """It joins a launcher's processes in each run, or is run as one process as well."""
    assert start(IN_MAIN.format(body)) is expected
    assert start(IN_MAIN.format(body), {"run.sh": "torchrun --nproc_per_node=4 train.py\n"}) is Start.SEVERAL


def test_a_fix_of_a_program_that_may_run_as_one_process_is_not_safe() -> None:
    """Of 12 such fixes on unseen repositories a reader would have merged 5, unread."""
    asked = "import os\n" + GROUP.replace("    dist.init", "    if 'RANK' in os.environ:\n        dist.init")
    for text, level in (("", Applicability.UNSAFE), ("torchrun --nproc_per_node=4 train.py\n", Applicability.SAFE)):
        files = {"misc.py": asked, **({"run.sh": text} if text else {})}
        found = findings_of(UnguardedSave, SHOWN.format("    torch.save({'step': 1}, 'last.pt')\n"), files, path="train.py")
        assert [f.applicability for f in found] == [level]
        assert ("no text names a launcher" in found[0].reason) is (not text)


LOADED = "trainer:\n  devices: {}\n  max_epochs: 3\n"


@pytest.mark.parametrize(
    ("made", "files", "expected"),
    [
        ("pl.Trainer(devices=4)", {}, Start.SEVERAL),
        ("pl.Trainer(gpus=[0, 1])", {}, Start.SEVERAL),
        ("pl.Trainer(devices='0,1')", {}, Start.SEVERAL),
        ("pl.Trainer(devices=-1)", {}, Start.SEVERAL),
        ("pl.Trainer(devices=torch.cuda.device_count())", {}, Start.SEVERAL),
        ("pl.Trainer(devices=n, strategy='ddp_find_unused_parameters_true')", {}, Start.SEVERAL),  # somebody decided for DDP
        ("pl.Trainer(devices=n, plugins=[DDPPlugin()])", {}, Start.SEVERAL),
        ("pl.Trainer(devices=n, strategy='ddp' if n > 1 else 'auto')", {}, Start.LIKELY),
        ("pl.Trainer(devices='auto')", {}, Start.LIKELY),  # as many as the machine has
        ("pl.Trainer(**read()['trainer'])", {"conf/a.yaml": LOADED.format(2)}, Start.SEVERAL),
        ("pl.Trainer(**read()['trainer'])", {"conf/a.yaml": LOADED.format("[0, 1]")}, Start.SEVERAL),
        ("pl.Trainer(**read()['trainer'])", {"conf/a.yaml": LOADED.format("auto")}, Start.LIKELY),
        (
            "pl.Trainer(**read()['trainer'])",
            {"conf/a.yaml": LOADED.format(2), "conf/b.yaml": LOADED.format(1)},  # either
            Start.LIKELY,
        ),
        ("pl.Trainer(**read()['trainer'])", {"run.sh": "python train.py --devices 4\n"}, Start.SEVERAL),
        ("pl.Trainer(**read()['trainer'])", {"run.sh": "python train.py trainer.devices=[0,1]\n"}, Start.SEVERAL),
        ("pl.Trainer(**read()['trainer'])", {"run.sh": "python -m train n_gpus=4 \\\n  task=x\n"}, Start.SEVERAL),
        ("pl.Trainer(**read()['trainer'])", {"run.sh": "python train.py --epochs 4 --gpu 0\n"}, Start.LIKELY),
    ],
)
def test_who_says_that_there_are_several_devices(made: str, files: dict[str, str], expected: Start) -> None:
    assert start(FITS.format(made=made), files) is expected


@pytest.mark.parametrize(("devices", "level"), [("4", Applicability.SAFE), ("read()", Applicability.UNSAFE)])
def test_what_is_offered_where_nothing_says_how_many_there_are(devices: str, level: Applicability) -> None:
    """Noise is left out; what is wrong on several processes is offered with the assumption."""
    files = {"main.py": FITS.format(made=f"pl.Trainer(devices={devices})").replace("from model", "from module")}
    hook = "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n    def on_fit_start(self):\n"
    assert bool(findings_of(UnguardedPrint, f'{hook}        print("go")\n', files)) is (level is Applicability.SAFE)
    step = "    def validation_step(self, batch, n):\n        self.log('loss', self(batch).mean())\n"
    (found,) = findings_of(UnsyncedMetric, f"{hook}        pass\n\n{step}", files)
    assert found.applicability is level
    assert ("no command and no call says how many there are" in found.reason) is (level is Applicability.UNSAFE)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("# on four GPUs:\n# torchrun --nproc_per_node=4 train.py\npython train.py --lr 1\n", Start.SEVERAL),  # either way
        ("# python train.py\ntorchrun --nproc_per_node=4 train.py\n", Start.SEVERAL),
        ("# torchrun --nproc_per_node=4 train.py\npython other.py\n", Start.SEVERAL),
    ],
)
def test_a_command_that_is_commented_out_beside_one_that_is_not(job: str, expected: Start) -> None:
    joins = f"from misc import init_distributed_mode\n\ndef main():\n    init_distributed_mode(1)\n{MAIN}"
    assert start(joins, {"misc.py": GROUP, "run.sh": job, "other.py": ""}) is expected


@pytest.mark.parametrize(("command", "expected"), [("srun python", Start.OPEN), ("srun -n 4 python", Start.SEVERAL)])
def test_srun_in_a_text_of_python(command: str, expected: Start) -> None:
    """By itself it starts one task where the job asks for one."""
    note = f'def main():\n    """Run with python train.py, or in a job with {command} train.py"""\n    LightningCLI(Net)\n'
    source = f"from lightning.pytorch.cli import LightningCLI\n\n{note}{MAIN}"
    assert start(source, {"job.sh": "#SBATCH --gres=gpu:1\nsrun python train.py\n"}) is expected


# Names of functions that mean a value where they are read

SPAWNING = "import torch.multiprocessing as mp\n\ndef run(work):\n    mp.spawn(work, nprocs=4)\n\n"


@pytest.mark.parametrize(
    "source",
    [
        f"import wandb\n{SPAWNING}def main():\n    run = wandb.init()\n    print(run.name)\n{MAIN}",
        f"{SPAWNING}def main():\n    for run in range(3):\n        print(run)\n{MAIN}",
        f"{SPAWNING}def main(run=3):\n    print(run)\n{MAIN}",
        f"{SPAWNING}def main():\n    print([run.id for run in open('runs.txt')])\n{MAIN}",
        f"from starts import run\n\ndef main():\n    with open('log.txt') as run:\n        run.write('a')\n{MAIN}",
        f"from starts import run\n\ndef main():\n    def at():\n        return run.name\n    run = open('a')\n    at()\n{MAIN}",
    ],
)
def test_a_value_of_the_function_is_no_function_of_the_file(source: str) -> None:
    assert start(source, {"starts.py": SPAWNING}) is Start.ONE


@pytest.mark.parametrize(
    "source",
    [
        f"{SPAWNING}def main():\n    run(print)\n{MAIN}",
        f"{SPAWNING}def show():\n    run = 3\n    return run\n\ndef main():\n    show()\n    run(print)\n{MAIN}",
        f"{SPAWNING}def main(run=run):\n    run(print)\n{MAIN}",  # the default is the function
        f"{SPAWNING}def apply(run):\n    run(print)\n\ndef main():\n    apply(run)\n{MAIN}",
        f"def main():\n    from starts import run\n    run(print)\n{MAIN}",
        f"{SPAWNING}def main():\n    names = [run for run in 'ab']\n    run(names)\n{MAIN}",
    ],
)
def test_a_name_that_still_means_the_function(source: str) -> None:
    assert start(source, {"starts.py": SPAWNING}) is Start.SEVERAL


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("launch_kernel = lambda rows: kernel(rows)", Start.ONE),
        ("launch_kernel = (lambda rows: kernel(rows)) if args.fast else (lambda rows: rows)", Start.SEVERAL),
        ("launch_kernel = lambda rows: kernel(rows)\n    if args.many:\n        launch_kernel = load_launcher()", Start.SEVERAL),
        ("from ranks import launch_kernel", Start.SEVERAL),
    ],
)
def test_a_lambda_starts_what_it_calls(given: str, expected: Start) -> None:
    assert start(f"def main(args):\n    {given}\n    launch_kernel(args.rows)\n{MAIN}") is expected


def test_a_lambda_that_starts_processes() -> None:
    given = "launch_ranks = lambda n: mp.spawn(work, nprocs=n)"
    assert start(f"import torch.multiprocessing as mp\n\ndef main():\n    {given}\n    launch_ranks(2)\n{MAIN}") is Start.SEVERAL


TWO = "gpus: [0, 1]\naccelerator: ddp\n"


@pytest.mark.parametrize(
    ("command", "path", "text", "expected"),
    [
        ("python train.py backend=two", "conf/backend/two.yaml", TWO, Start.SEVERAL),
        ("PYTHONPATH=. python train.py data=a +model/backend=two", "conf/backend/two.yaml", TWO, Start.SEVERAL),
        ("python train.py --config conf/two.yaml", "conf/two.yaml", "trainer:\n  gpus: 4\n", Start.SEVERAL),
        ("python train.py backend=two", "conf/backend/one.yaml", TWO, Start.LIKELY),  # another choice
        ("python train.py backend=two", "conf/backend/two.yaml", "gpus: [0]\n", Start.OPEN),
        ("python train.py backend=two", "conf/backend/two.yaml", "gpus: 2\naccelerator: dp\n", Start.LIKELY),
        ("python train.py backend=two", "conf/other/two.yaml", TWO, Start.LIKELY),  # a file of another group
        ("python train.py epochs=two", "conf/backend/two.yaml", TWO, Start.LIKELY),
    ],
)
def test_a_settings_file_that_the_command_chooses(command: str, path: str, text: str, expected: Start) -> None:
    source = f"import lightning as L\n\ndef main(cfg):\n    L.Trainer(gpus=cfg.gpus, accelerator=cfg.accelerator).fit(1)\n{MAIN}"
    files = {"README.md": f"```\n{command}\n```\n", path: text, "conf/backend/none.yaml": "gpus: 1\n"}
    assert start(source, files) is expected


LITE = """\
import torch
from base import Fit
from pytorch_lightning.lite import LightningLite


class Lite(LightningLite):
    def run(self, args):
        torch.save(args, "a.pt")


def main(args):
    Lite(GIVEN).run(args)
"""
OVER_A_FILE = LITE.replace("(LightningLite)", "(Fit)").replace("from pytorch_lightning.lite import LightningLite\n", "")
FIT = {"base.py": "from lightning.fabric import Fabric\n\n\nclass Fit(Fabric):\n    def again(self): ...\n"}


@pytest.mark.parametrize("source", [LITE, OVER_A_FILE])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("devices=4, accelerator='gpu'", Start.SEVERAL),
        ("strategy=DDPStrategy(find_unused_parameters=True), devices='auto'", Start.SEVERAL),
        ("devices=args.devices", Start.LIKELY),
        ("devices=1, accelerator='gpu'", Start.ONE),
        ("", Start.ONE),
    ],
)
def test_an_own_lite_runs_as_its_maker_says(source: str, given: str, expected: Start) -> None:
    assert start(source.replace("GIVEN", given) + MAIN.replace("main()", "main(3)"), FIT) is expected


def test_an_own_lite_whose_init_says_how_many_and_another_class() -> None:
    own = LITE.replace("    def run", "    def __init__(self, devices):\n        super().__init__(devices=1)\n\n    def run")
    given = MAIN.replace("main()", "main(3)")
    assert start(own.replace("GIVEN", "devices=4") + given, FIT) is Start.ONE
    assert start(LITE.replace("(LightningLite)", "").replace("GIVEN", "devices=4") + given, FIT) is Start.ONE
