from __future__ import annotations

import pytest

from codemods.ranks.wrong_rank import WrongRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import os  # torchrun --nnodes=2 train.py\nimport torch\nimport torch.distributed as dist\n"
LOCAL = "local_rank = int(os.environ['LOCAL_RANK'])"


def script(*lines: str, head: str = HEAD, arguments: str = "args") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{head}\ndef main({arguments}):\n{body}"


def test_example_of_the_page() -> None:
    sections = WrongRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(WrongRank, before, after)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("torch.cuda.set_device(rank)", "torch.cuda.set_device(local_rank)"),
        ("args.d = torch.device('cuda', rank)", "args.d = torch.device('cuda', local_rank)"),
        ("model.cuda(rank)", "model.cuda(local_rank)"),
        ("model.to(rank)", "model.to(local_rank)"),
        ("m = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])",
         "m = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])"),
    ],
)  # fmt: skip
def test_a_device_by_the_global_rank(given: str, wanted: str) -> None:
    above = ("rank = dist.get_rank()", LOCAL)
    check_transformed(WrongRank, script(*above, given), script(*above, wanted))


def test_the_device_that_was_worked_out() -> None:
    above = ("rank = dist.get_rank()", "device = rank % torch.cuda.device_count()", "model.to(device)")
    wrap = "m = torch.nn.parallel.DistributedDataParallel(model, device_ids=[{}])"
    check_transformed(WrongRank, script(*above, wrap.format("rank")), script(*above, wrap.format("device")))


def test_the_local_rank_is_asked_for() -> None:
    above = "rank = int(os.environ['RANK'])"
    after = script(above, 'torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))')
    check_transformed(WrongRank, script(above, "torch.cuda.set_device(rank)"), after)


@pytest.mark.parametrize(
    "lines",
    [
        ("torch.cuda.set_device(rank)",),
        ("rank = dist.get_rank() % torch.cuda.device_count()", "torch.cuda.set_device(rank)"),
        ("rank = int(os.environ['LOCAL_RANK'])", "torch.cuda.set_device(rank)"),
        ("rank = args.rank", "torch.cuda.set_device(rank)"),
        ("rank = dist.get_rank()", "x = x.to(dtype)"),
        ("rank = dist.get_rank()", "torch.cuda.manual_seed(rank)"),
    ],
)
def test_ranks_that_choose_a_device_rightly(lines: tuple[str, ...]) -> None:
    check_nothing(WrongRank, script(*lines, arguments="rank, args"))


def test_processes_of_one_node_stay() -> None:
    head = HEAD + "import torch.multiprocessing as mp\n"
    source = script("rank = dist.get_rank()", "torch.cuda.set_device(rank)", head=head) + "\nmp.spawn(main, nprocs=2)\n"
    check_nothing(WrongRank, source)


PARSED = "from transformers import HfArgumentParser, TrainingArguments\n"
FIVE = {"requirements.txt": "transformers>=5.0\n"}


def arguments(test: str) -> str:
    return script("model_args, training_args = parser.parse_args_into_dataclasses()", f"if {test}:", "    save()", head=PARSED)


@pytest.mark.parametrize(
    ("given", "wanted", "unsafe"),
    [
        ("training_args.local_rank in (-1, 0)", "training_args.process_index == 0", False),
        ("training_args.local_rank in [-1, 0]", "training_args.process_index == 0", False),
        ("training_args.local_rank not in (-1, 0)", "training_args.process_index != 0", False),
        ("training_args.local_rank <= 0", "training_args.process_index == 0", False),
        ("training_args.local_rank == 0", "training_args.process_index == 0", True),
    ],
)
def test_transformers_five(given: str, wanted: str, unsafe: bool) -> None:
    check_transformed(WrongRank, arguments(given), arguments(wanted), files=FIVE, unsafe=unsafe)


@pytest.mark.parametrize("pin", ["transformers>=4.40\n", "transformers\n", "torch\n", "transformers<5\n"])
def test_other_versions_of_transformers_stay(pin: str) -> None:
    check_nothing(WrongRank, arguments("training_args.local_rank in (-1, 0)"), files={"requirements.txt": pin})


def test_arguments_of_ones_own_stay() -> None:
    source = script("args = parse()", "if args.local_rank in (-1, 0):", "    save()", head=PARSED)
    check_nothing(WrongRank, source, files=FIVE)


WRITE = ("with open(args.out, 'w') as f:", "    f.write('a')")


def files(test: str, *body: str) -> str:
    lines = ("args.rank = 0", "if args.many:", "    args.rank = dist.get_rank()", f"if {test}:", *(f"    {b}" for b in body))
    return script(*lines)


def test_files_by_the_local_rank() -> None:
    check_transformed(WrongRank, files("args.local_rank == 0", *WRITE), files("args.rank == 0", *WRITE), unsafe=True)
    above = ("rank = dist.get_rank()", LOCAL)
    body = tuple(f"    {b}" for b in WRITE)
    after = script(*above, "if rank == 0:", *body)
    check_transformed(WrongRank, script(*above, "if local_rank == 0:", *body), after, unsafe=True)


def test_a_rank_of_the_environment() -> None:
    before = (
        "import os\n\nimport torch\nfrom torch.distributed import init_process_group\n\nddp = \"LOCAL_RANK\" in os.environ\n"
        "if ddp:\n    init_process_group()\n    gpu = int(os.environ[\"LOCAL_RANK\"])\nelse:\n    gpu = 0\n"
        "if gpu == 0:\n    torch.save({}, \"state.pt\")\n"
    )
    files = {"run.sh": "torchrun --nnodes 2 --nproc_per_node 8 module.py\n"}
    after = before.replace("if gpu == 0", "if int(os.environ.get(\"RANK\", gpu)) == 0")
    check_transformed(WrongRank, before, after, files=files, unsafe=True)
    check_nothing(WrongRank, before.replace('int(os.environ["LOCAL_RANK"])', "chosen()"), files=files)


@pytest.mark.parametrize(
    "body",
    [
        ("print(args)",),
        ("os.makedirs(args.out, exist_ok=True)",),
        ("with open(args.cache_dir, 'w') as f:", "    f.write('a')"),
        ("download(args.url)", *WRITE),
    ],
)
def test_what_each_node_may_do(body: tuple[str, ...]) -> None:
    check_nothing(WrongRank, files("args.local_rank == 0", *body))


def test_no_global_rank_at_hand() -> None:
    check_nothing(WrongRank, script("if args.local_rank == 0:", *(f"    {b}" for b in WRITE)))
    check_nothing(WrongRank, files("args.local_rank == 0 or args.save", *WRITE))


def test_a_test_that_asks_for_more() -> None:
    test = "args.local_rank == 0 and args.save"
    check_transformed(WrongRank, files(test, *WRITE), files(test.replace("local_rank", "rank"), *WRITE), unsafe=True)


def test_the_rank_of_a_node_that_is_worked_out() -> None:
    test = "not args.distributed or (args.distributed and args.rank % args.gpus == 0)"
    check_transformed(WrongRank, files(test, *WRITE), files(test.replace(" % args.gpus", ""), *WRITE), unsafe=True)


def test_behind_an_early_exit() -> None:
    above = ("rank = dist.get_rank()", LOCAL)
    after = script(*above, "if rank != 0 or args.dry:", "    return", *WRITE)
    check_transformed(
        WrongRank, script(*above, "if local_rank != 0 or args.dry:", "    return", *WRITE), after, unsafe=True
    )


def test_the_rank_of_the_group() -> None:
    above = ("dist.init_process_group('nccl')", LOCAL)
    body = tuple(f"    {b}" for b in WRITE)
    after = script(*above, "if dist.get_rank() == 0:", *body)
    check_transformed(WrongRank, script(*above, "if local_rank in (-1, 0):", *body), after, unsafe=True)
    some = ("if args.many:", "    dist.init_process_group('nccl')", LOCAL)
    after = script(*some, "if (not dist.is_initialized() or dist.get_rank() == 0) and args.save:", *body)
    check_transformed(WrongRank, script(*some, "if local_rank == 0 and args.save:", *body), after, unsafe=True)


def in_class(test: str, *, path: str = "'epoch.pt'", name: str = "self.global_rank") -> str:
    return f"""\
# torchrun --nnodes=2 train.py
import os
import torch


class Loop:
    def __init__(self):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        {name} = int(os.environ["RANK"])

    def keep(self, epoch):
        torch.save(self.state, {path})

    def run(self):
        for epoch in range(9):
            if {test}:
                self.keep(epoch)
"""


def test_through_a_method() -> None:
    test = "self.local_rank == 0 and epoch % 5 == 0"
    check_transformed(WrongRank, in_class(test), in_class(test.replace("local", "global")), unsafe=True)
    after = in_class("self.rank == 0", name="self.rank")
    check_transformed(WrongRank, in_class("self.local_rank == 0", name="self.rank"), after, unsafe=True)


@pytest.mark.parametrize(
    "path",
    [
        'f"epoch-{self.global_rank}.pt"', "os.path.join(self.cache, 'a.pt')", "'/tmp/a.pt'", 'f"node{self.node}.pt"',
        "os.path.join(socket.gethostname(), 'a.pt')",
    ],
)  # fmt: skip
def test_files_of_a_rank_or_a_node(path: str) -> None:
    check_nothing(WrongRank, in_class("self.local_rank == 0", path=path))


def test_a_folder_that_a_function_finds_on_the_node() -> None:
    above = ("dist.init_process_group('nccl')", LOCAL, "folder = place()", "if local_rank == 0:", "    fill(folder)")
    fill = "\ndef fill(folder):\n    torch.save(1, folder / 'a.pt')\n"
    where = "\ndef place():\n    return os.environ['{}']\n"
    check_nothing(WrongRank, script(*above) + fill + where.format("SLURM_TMPDIR"))
    after = script(*(a.replace("local_rank == 0", "dist.get_rank() == 0") for a in above))
    rest = fill + where.format("RUN_DIR")
    check_transformed(WrongRank, script(*above) + rest, after + rest, unsafe=True)


def test_what_every_rank_reads_stays() -> None:
    body = ("if local_rank == 0:", "    torch.save(rows(), 'rows.pt')", "dist.barrier()", "return torch.load('rows.pt')")
    check_nothing(WrongRank, script("dist.init_process_group('nccl')", LOCAL, *body))


ACCELERATE = """\
import shutil
from accelerate import Accelerator


def main(args, rows):
    accelerator = Accelerator()
    train(accelerator)
    if {}:
        {}
"""


@pytest.mark.parametrize(
    "body", ["shutil.rmtree(args.out)", "rows.to_csv(args.out + '/rows.csv')", "unwrap(rows).save_pretrained(args.out)"]
)
def test_the_main_process_of_a_node(body: str) -> None:
    given, wanted = "accelerator.is_local_main_process", "accelerator.is_main_process"
    for text in ("", "accelerate launch --num_machines 2 module.py\n"):
        files = {"README.md": text}
        check_transformed(WrongRank, ACCELERATE.format(given, body), ACCELERATE.format(wanted, body), unsafe=True, files=files)
    dialogue = "How many different machines will you use (use more than 1 for multi-node training)? [1]: 1\n"
    for text in ("", dialogue):
        check_nothing(WrongRank, ACCELERATE.format(given, body), files={"README.md": f"accelerate launch module.py\n{text}"})


@pytest.mark.parametrize("body", ["print(rows)", "shutil.rmtree(args.cache_dir)", "rows.show()"])
def test_what_the_main_process_of_a_node_may_do(body: str) -> None:
    check_nothing(WrongRank, ACCELERATE.format("accelerator.is_local_main_process", body))


LIGHTNING = """\
import json
import lightning.pytorch as pl


class Writer(pl.Callback):
    def on_train_end(self, trainer, pl_module):
        if trainer.{} != 0:
            return
        with open({}, "w") as file:
            json.dump(trainer.current_epoch, file)
"""


def test_the_local_rank_of_a_trainer() -> None:
    path = "self.folder + '/a.json'"
    check_transformed(
        WrongRank, LIGHTNING.format("local_rank", path), LIGHTNING.format("global_rank", path), unsafe=True,
        files={"job.sh": "#SBATCH --nodes=2\nsrun python train.py\n"},
    )  # fmt: skip
    check_nothing(WrongRank, LIGHTNING.format("local_rank", 'f"{self.folder}/node{trainer.node_rank}.json"'))


def test_a_project_that_speaks_of_no_other_node() -> None:
    body = (LOCAL, "dist.init_process_group('nccl')", "if local_rank == 0:", *(f"    {b}" for b in WRITE))
    assert findings_of(WrongRank, script(*body))
    for head in (HEAD.replace("nnodes=2", "nnodes=1"), HEAD.replace("--nnodes=2 ", "")):
        check_nothing(WrongRank, script(*body, head=head))
    jobs = {"job.sh": "#SBATCH --nodes=4\nsrun python train.py\n"}
    assert findings_of(WrongRank, script(*body, head=HEAD.replace("--nnodes=2 ", "")), files=jobs)
    one = {"job.sh": "export nnodes=1\nexport node_rank=0\ntorchrun --nnodes $nnodes --node_rank $node_rank train.py\n"}
    check_nothing(WrongRank, script(*body, head=HEAD.replace("--nnodes=2 ", "")), files=one)


@pytest.mark.parametrize(
    "spoken",
    [
        {"graph.py": "def put(x):\n    num_nodes = x.size(0)\n    return Data(num_nodes=num_nodes)  # nodes in COO form\n"},
        {"config.yaml": "deepspeed_config:\n  deepspeed_multinode_launcher: standard\nmachine_rank: 0\nnum_machines: 1\n"},
        {"run.sh": "python -m torch.distributed.launch --nproc_per_node=2 --nnode=1 --node_rank=0 train.py\n"},
        {"tools.py": "def start():\n    # torchrun and other launchers (single-node or multi-node) use NCCL\n    pass\n"},
        {"README.md": "torchrun --nproc_per_node=4 train.py\nThe lymph nodes are marked, the nodes using SLURM are not.\n"},
    ],
)
def test_nodes_that_are_no_machines(spoken: dict[str, str]) -> None:
    body = (LOCAL, "dist.init_process_group('nccl')", "if local_rank == 0:", *(f"    {b}" for b in WRITE))
    files = {"job.sh": "torchrun --nproc_per_node=4 train.py\n", **spoken}
    check_nothing(WrongRank, script(*body, head=HEAD.replace("--nnodes=2 ", "")), files=files)


@pytest.mark.parametrize(
    "spoken",
    [
        {"fit.py": "import lightning as L\n\nL.Trainer(devices=[0, 1], callbacks=list(CALLS), num_nodes=2)\n"},
        {"config.yaml": "num_machines: 2\n"},
        {"job.slurm": "#SBATCH -N2\nsrun python train.py\n"},
        {"run.sh": "nodes=8\nsbatch -N $nodes job.sh\n"},
    ],
)
def test_nodes_that_are_machines(spoken: dict[str, str]) -> None:
    body = (LOCAL, "dist.init_process_group('nccl')", "if local_rank == 0:", *(f"    {b}" for b in WRITE))
    files = {"job.sh": "torchrun --nproc_per_node=4 train.py\n", **spoken}
    assert findings_of(WrongRank, script(*body, head=HEAD.replace("--nnodes=2 ", "")), files=files)


SNAPSHOTS = """\
import os  # torchrun --nnodes=2 train.py
import torch
import torch.distributed as dist


class Runner:
    def __init__(self, net, path):
        self.net, self.path = net, path
        self.local_rank = int(os.environ['LOCAL_RANK'])
        {}

    def _load(self, path):
        self.net.load_state_dict(torch.load(path)['net'])

    def run(self):
        dist.init_process_group('nccl')
        if self.local_rank == 0:
            torch.save({{'net': self.net.state_dict()}}, 'snapshot.pt')
"""


def test_a_snapshot_that_each_node_goes_on_from() -> None:
    main = "\n\nif __name__ == '__main__':\n    Runner(None, 'snapshot.pt').run()\n"
    kept = "if os.path.exists(self.path):\n            self._load(self.path)"
    check_nothing(WrongRank, SNAPSHOTS.format(kept) + main)
    # What it loads by a setting alone is the file of another run.
    assert findings_of(WrongRank, SNAPSHOTS.format("pass") + main)


@pytest.mark.parametrize("ranks", ["local_rank == dist.get_rank()", "torch.distributed.get_rank() == self.local_rank"])
def test_a_project_that_asserts_both_ranks_to_be_the_same(ranks: str) -> None:
    body = (LOCAL, "dist.init_process_group('nccl')", "if local_rank == 0:", *(f"    {b}" for b in WRITE))
    check_nothing(WrongRank, script(*body), files={"setup.py": f"def set_device(self, local_rank):\n    assert {ranks}\n"})


def test_a_save_that_no_program_comes_to() -> None:
    lines = ("local_rank = int(os.environ['LOCAL_RANK'])", "if local_rank == 0:", "    torch.save(net, 'a.pt')")
    body = HEAD + "\n\nclass Old:\n    def keep(self, net):\n" + "".join(f"        {line}\n" for line in lines)
    main = "\n\nif __name__ == '__main__':\n    dist.init_process_group('nccl')\n"
    check_nothing(WrongRank, body + main)
    assert findings_of(WrongRank, f"{body}{main}    Old().keep(None)\n")


def test_a_project_for_one_node() -> None:
    group = "dist.init_process_group('nccl', rank=local_rank, world_size=torch.cuda.device_count())"
    body = (LOCAL, group, "if local_rank == 0:", *(f"    {b}" for b in WRITE))
    check_nothing(WrongRank, script(*body))
    check_nothing(WrongRank, script(LOCAL, group, "rank = dist.get_rank()", "torch.cuda.set_device(rank)"))


MEASURE = """\
import os
import torch.distributed as dist


class Measure:
    def run(self, rank):
        os.environ['MASTER_ADDR'] = 'localhost'
        os.environ['RANK'] = str(rank)
        dist.init_process_group('nccl')
"""
WRAPS = (
    "import torch\nimport torch.distributed as dist\n\n\ndef wrap(net):\n"
    "    return torch.nn.parallel.DistributedDataParallel(net.to('cuda'), device_ids=[dist.get_rank()])\n"
)
STARTS = "import torch.distributed as dist\nfrom wraps import wrap\n\ndist.init_process_group('nccl')\nwrap(make())\n"


@pytest.mark.parametrize(
    "measure",
    [
        MEASURE,
        "import torch.distributed as dist\n\ndist.init_process_group('gloo', 'tcp://127.0.0.1:29500', rank=0, world_size=1)\n",
        "import os, torch, torch.distributed as dist\n\nlocal_rank = int(os.environ['LOCAL_RANK'])\n"
        "dist.init_process_group('nccl', rank=local_rank, world_size=torch.cuda.device_count())\n",
    ],
)
def test_a_script_of_one_machine_beside_the_program(measure: str) -> None:
    """Another run of the same project says nothing of where this one may be started."""
    files = {"measure.py": measure, "start.py": STARTS}
    assert findings_of(WrongRank, WRAPS, files, path="wraps.py")
    own = "import torch\nimport torch.distributed as dist\n\ndist.init_process_group('nccl')\n"
    own += "torch.cuda.set_device(dist.get_rank())\n"
    assert findings_of(WrongRank, own, {"measure.py": measure})
    by_local = f"{HEAD}dist.init_process_group('nccl')\n{LOCAL}\nif local_rank == 0:\n    torch.save({{}}, 'a.pt')\n"
    assert findings_of(WrongRank, by_local)
    check_nothing(WrongRank, by_local, files={"measure.py": measure})  # files: the project is run on one machine


@pytest.mark.parametrize(
    "files",
    [
        {"measure.py": MEASURE + "\n\ndef main():\n    import wraps\n"},  # the run on one machine has this file as well
        {"measure.py": MEASURE, "start.py": STARTS + "from measure import Measure\n"},
        {"measure.py": MEASURE, "both.py": "import measure\nimport wraps\n", "start.py": STARTS},
        {"measure.py": MEASURE, "start.py": STARTS.replace("init_process_group('nccl')", "barrier()")},  # no other group
        {"measure.py": MEASURE, "start.py": STARTS.replace("from wraps import wrap", "from others import wrap")},
    ],
)
def test_a_program_of_one_machine(files: dict[str, str]) -> None:
    check_nothing(WrongRank, WRAPS, files=files, path="wraps.py")


DEALT = """\
from torch.utils.data import DataLoader, DistributedSampler


class Pieces:
    def batches(self, rank=-1, world_size=-1):
        if world_size < 1:
            return DataLoader(self)
        return DataLoader(self, sampler=DistributedSampler(self, num_replicas=world_size, rank=rank))
"""
DEALS = """\
import torch
import torch.distributed as dist
from pieces import Pieces


def main():
    dist.init_process_group("nccl")
    world_size = {size}
    torch.cuda.set_device(dist.get_rank())
    return Pieces().batches(rank=dist.get_rank(), world_size=world_size)


main()
"""


def test_a_share_for_each_gpu_of_the_machine() -> None:
    """The sampler of a second node raises ValueError, for its rank is none of the shares."""
    files = {"pieces.py": DEALT}
    check_nothing(WrongRank, DEALS.format(size="torch.cuda.device_count()"), files=files)
    for size in ("dist.get_world_size()", "int(os.environ['LOCAL_WORLD_SIZE'])", "2 * torch.cuda.device_count()", "count()"):
        assert findings_of(WrongRank, "import os\n" + DEALS.format(size=size), files), size
    by_path = {"pieces.py": DEALT.replace("torch.utils.data import DataLoader, Dist", "own import DataLoader, Dist")}
    assert findings_of(WrongRank, DEALS.format(size="torch.cuda.device_count()"), by_path)
    other = {**files, "other.py": DEALS.format(size="torch.cuda.device_count()")}
    assert findings_of(WrongRank, DEALS.format(size="dist.get_world_size()"), other)  # the file is shared by both programs


EARLY = """\
    import lightning as L
    import torch.distributed as dist


    def rank_or_none():
        return dist.get_rank() if dist.is_available() and dist.is_initialized() else None


    def train(config):
        rank = rank_or_none()
        if rank is None or rank == 0:
            config.save("a.yaml")
        trainer = L.Trainer()
        trainer.fit(config.model)
    """


def test_a_rank_that_is_asked_for_before_the_group_is_there() -> None:
    after = EARLY.replace("if rank is None or rank == 0", "if rank_zero_only.rank == 0").replace(
        "as dist\n", "as dist\n    from lightning.pytorch.utilities import rank_zero_only\n"
    )
    check_transformed(WrongRank, EARLY, after)
    reader = "\n\n    def read():\n        return open('b.yaml').read()\n"
    check_transformed(WrongRank, EARLY.rstrip() + reader, after.rstrip() + reader, unsafe=True)


def test_a_constructor_runs_before_the_trainer_of_its_class() -> None:
    source = """\
        import lightning as L
        import torch.distributed as dist

        class Run:
            def __init__(self, config):
                rank = dist.get_rank() if dist.is_initialized() else None
                if {}:
                    config.save("a.yaml")

            def train(self):
                L.Trainer().fit(self.model)
        """
    after = source.format("rank_zero_only.rank == 0").replace(
        "as dist\n", "as dist\n        from lightning.pytorch.utilities import rank_zero_only\n"
    )
    check_transformed(WrongRank, source.format("rank is None or rank == 0"), after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        rank = rank_or_none()\n", "        dist.init_process_group()\n        rank = rank_or_none()\n"),
        ("        rank = rank_or_none()\n", "        trainer = L.Trainer()\n        rank = rank_or_none()\n"),
        ("import lightning as L", "import other as L"),
        ("dist.get_rank() if", "int(os.environ['RANK']) if"),
    ],
)
def test_a_rank_that_is_there(old: str, new: str) -> None:
    assert old in EARLY
    check_nothing(WrongRank, EARLY.replace(old, new))


def test_own_tests_stay() -> None:
    check_nothing(WrongRank, script("rank = dist.get_rank()", LOCAL, "torch.cuda.set_device(rank)"), path="tests/test_a.py")


@pytest.mark.parametrize(
    ("head", "bound", "name"),
    [
        (HEAD, "me = dist.get_rank()", "me"),
        (HEAD, "rank = int(dist.get_rank())", "rank"),
        (HEAD.replace("import torch.distributed", "from torch import distributed"), "rank = dist.get_rank()", "rank"),
    ],
)
def test_the_global_rank_by_another_name(head: str, bound: str, name: str) -> None:
    after = script(bound, f'torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", {name})))', head=head)
    check_transformed(WrongRank, script(bound, f"torch.cuda.set_device({name})", head=head), after)
    check_nothing(WrongRank, script(bound.replace("dist.get_rank", "args.position"), f"torch.cuda.set_device({name})", head=head))


@pytest.mark.parametrize(
    "bound", ["gpu = int(os.environ['RANK'])", 'gpu = int(os.environ.get("RANK", 0))', "gpu = int(os.getenv('RANK'))"]
)
def test_a_gpu_that_is_the_rank_among_all_nodes(bound: str) -> None:
    """The test of rank 0 by the same name stays: it is right on every number of nodes."""
    lines = (bound, "torch.cuda.set_device({})", "if gpu == 0:", "    torch.save(args.state, args.out)")
    before, after = (script(*(line.format(g) for line in lines)) for g in ("gpu", ASKED.format("gpu")))
    check_transformed(WrongRank, before, after)


@pytest.mark.parametrize("bound", ["gpu = int(os.environ['LOCAL_RANK'])", "gpu = args.gpu  # not os.environ['RANK']"])
def test_a_gpu_that_is_none_of_all_nodes(bound: str) -> None:
    check_nothing(WrongRank, script(bound, "torch.cuda.set_device(gpu)"))


def test_says_nothing_behind_a_value_that_rank_0_alone_is_given() -> None:
    above = (
        "\ndef gathered(parts):\n    out = [None] * dist.get_world_size()\n    dist.all_gather_object(out, parts)\n"
        "    if dist.get_rank() == 0:\n        return out\n\n"
    )
    written = ("    if local_rank == 0:", "        torch.save(scores, args.out)")
    lines = (LOCAL, "dist.init_process_group('gloo')", "scores = {}", "if scores is not None:", *written)
    source = script(*lines, head=HEAD + above)
    assert findings_of(WrongRank, source.format("args.parts"))
    check_nothing(WrongRank, source.format("gathered(args.parts)"))


ASKED = 'int(os.environ.get("LOCAL_RANK", {}))'


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('args.d = torch.device(f"cuda:{rank}")', "args.d = torch.device(f\"cuda:{int(os.environ.get('LOCAL_RANK', rank))}\")"),
        ("d = f'cuda:{rank}'", f"d = f'cuda:{{{ASKED.format('rank')}}}'"),
        (
            'args.d = torch.device("cuda:{:d}".format(rank))',
            f'args.d = torch.device("cuda:{{:d}}".format({ASKED.format("rank")}))',
        ),
        ('args.d = torch.device("cuda:%d" % rank)', f'args.d = torch.device("cuda:%d" % {ASKED.format("rank")})'),
        ("m = load(device_map={'': rank})", f"m = load(device_map={{'': {ASKED.format('rank')}}})"),
        ("m = DDP(model, device_ids=[dist.get_rank()])", f"m = DDP(model, device_ids=[{ASKED.format('dist.get_rank()')}])"),
        ("s = torch.load(path, map_location=f'cuda:{rank}')",
         f"s = torch.load(path, map_location=f'cuda:{{{ASKED.format('rank')}}}')"),
    ],
)  # fmt: skip
def test_other_ways_to_name_a_device(given: str, wanted: str) -> None:
    head = HEAD + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    above = "rank = dist.get_rank()"
    check_transformed(WrongRank, script(above, given, head=head), script(above, wanted, head=head))


def test_os_is_brought_in() -> None:
    head = "import torch\nimport torch.distributed as dist\n"
    above = "rank = dist.get_rank()"
    after = script(above, f"torch.cuda.set_device({ASKED.format('rank')})", head=head + "import os\n")
    check_transformed(WrongRank, script(above, "torch.cuda.set_device(rank)", head=head), after)


def test_many_places_of_a_global_rank_that_is_called_local() -> None:
    uses = ("torch.cuda.set_device({0})", "model.to({0})", "if args.amp:", "    model.cuda({0})")
    body = ("local_rank = dist.get_rank()", *uses)
    bound = (body[0], 'gpu = int(os.environ.get("LOCAL_RANK", local_rank))', *uses)
    check_transformed(WrongRank, script(*(b.format("local_rank") for b in body)), script(*(b.format("gpu") for b in bound)))


def test_a_global_rank_that_is_called_local() -> None:
    """The tests of the name stay: they mean one process of all. The devices take the local rank."""
    above, asks = "local_rank = dist.get_rank()", ("if local_rank == 0:", "    log()")
    places = ("torch.cuda.set_device({0})", "model.to({0})")
    before = script(above, *(line.format("local_rank") for line in places), *asks)
    bound = f"gpu = {ASKED.format('local_rank')}"
    check_transformed(WrongRank, before, script(above, bound, *(line.format("gpu") for line in places), *asks))


ACCELERATED = "import torch\nfrom accelerate import Accelerator\n"


def test_the_index_that_accelerate_gives() -> None:
    head = "from accelerate import Accelerator\n"
    place = "m = load(device_map={{'': Accelerator().{}}})"
    after = script(place.format("local_process_index"), head=head)
    check_transformed(WrongRank, script(place.format("process_index"), head=head), after)


def test_a_name_for_the_index_that_accelerate_gives() -> None:
    """The name chooses devices alone: it gets the index of the node where it is bound."""
    above, places = "index = Accelerator().{}", ("m = load(device_map={'': index})", "x = torch.zeros(3, device=index)")
    after = script(above.format("local_process_index"), *places, head=ACCELERATED)
    check_transformed(WrongRank, script(above.format("process_index"), *places, head=ACCELERATED), after)


def test_a_name_for_the_index_that_other_lines_read() -> None:
    """What else reads the name goes on by the global rank: the devices alone get the other index."""
    above = ("accelerator = Accelerator()", "rank = accelerator.process_index")
    below = "rows = rows[rank::2]"
    after = script(*above, "torch.cuda.set_device(accelerator.local_process_index)", below, head=ACCELERATED, arguments="rows")
    check_transformed(
        WrongRank, script(*above, "torch.cuda.set_device(rank)", below, head=ACCELERATED, arguments="rows"), after
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("index = Accelerator().process_index", "m = load(device_map={'': index})", "rows = rows[index::2]"),  # two accelerators
        ("index = Accelerator().local_process_index", "m = load(device_map={'': index})"),
        ("index = state.process_index", "m = load(device_map={'': index})"),
        ("index = Accelerator().process_index", "m = load(device_map={'layer': index})"),
        ("index = Accelerator().process_index", "m = load(index)"),
    ],
)
def test_names_for_the_index_that_stay(lines: tuple[str, ...]) -> None:
    check_nothing(WrongRank, script(*lines, head=ACCELERATED, arguments="rows, state"))


@pytest.mark.parametrize(
    "lines",
    [
        ("rank = dist.get_rank()", "print(f'cuda:{rank}')"),  # a line that is shown chooses nothing
        ("rank = dist.get_rank()", "name = f'rank{rank}'"),
        ("rank = dist.get_rank()", "m = load(index=rank)"),  # any function may take an index
        ("rank = dist.get_rank()", "m = load(device_map={'a': rank})"),
        ("d = f'cuda:{rank}'",),  # handed in
        ("m = load(device_map={'': state.process_index})",),  # whose state it is is not shown
        ("rank = dist.get_rank() % torch.cuda.device_count()", "d = f'cuda:{rank}'"),
    ],
)
def test_what_chooses_no_device_by_the_global_rank(lines: tuple[str, ...]) -> None:
    check_nothing(WrongRank, script(*lines, arguments="rank, state"))


def test_ranks_that_another_file_spawns() -> None:
    files = {"start.py": "import torch.multiprocessing as mp\nfrom train import main\nmp.spawn(main, nprocs=4)\n"}
    head = HEAD.replace("  # torchrun --nnodes=2 train.py", "")
    check_nothing(WrongRank, script("rank = dist.get_rank()", "d = f'cuda:{rank}'", head=head), files=files)


GROUP = ("dist.init_process_group('nccl')", LOCAL)


@pytest.mark.parametrize(
    "folder", ["args.out + '/' + time.strftime('%H%M%S')", "Path(args.out) / datetime.now().strftime('%H')"]
)
def test_a_folder_named_by_the_clock_of_each_node(folder: str) -> None:
    head = HEAD + "import time\nfrom datetime import datetime\nfrom pathlib import Path\n"
    body = ("if local_rank == 0:", "    torch.save(1, os.path.join(folder, 'a.pt'))")
    assert findings_of(WrongRank, script(*GROUP, "folder = args.out", *body, head=head))
    check_nothing(WrongRank, script(*GROUP, f"folder = {folder}", *body, head=head))


def named(*lines: str) -> str:
    head = HEAD + "from datetime import datetime\n"
    body = (*lines, "folder = os.path.join(args.out, name)", "torch.save(1, os.path.join(folder, 'a.pt'))")
    return script(*GROUP, "rank = dist.get_rank()", "if local_rank == 0:", *(f"    {line}" for line in body), head=head)


@pytest.mark.parametrize(
    "lines",
    [
        ("if args.name:", "    name = args.name", "else:", "    name = '-'.join([datetime.now().strftime('%H'), args.net])"),
        ("if not args.name:", "    name = str(datetime.now())", "else:", "    name = args.net + args.name"),
        ("name = args.name or datetime.now().strftime('%H')",),
        ("name = args.name if args.name else f'{datetime.now():%H}'",),
    ],
)
def test_a_folder_named_by_a_setting_where_one_is_given(lines: tuple[str, ...]) -> None:
    source = named(*lines)
    check_transformed(WrongRank, source, source.replace("if local_rank == 0", "if rank == 0"), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("name = 'run'", "name = name + datetime.now().strftime('%H')"),
        ("name = datetime.now().strftime('%H') if args.dated else ''",),
        ("name = args.name and datetime.now().strftime('%H')",),
        ("if args.dated:", "    name = datetime.now().strftime('%H')", "else:", "    name = str(datetime.today())"),
        ("name = args.name + datetime.now().strftime('%H')",),
    ],
)
def test_a_folder_named_by_the_clock_on_every_way(lines: tuple[str, ...]) -> None:
    check_nothing(WrongRank, named(*lines))


def test_a_folder_named_by_a_clock_in_another_file() -> None:
    source = in_class("self.local_rank == 0", path="os.path.join(self.folder, 'a.pt')").replace(
        "def __init__(self):", "def __init__(self, settings):\n        self.folder = settings.run_dir"
    )
    settings = (
        "from datetime import datetime\n\nclass Settings:\n    def __init__(self, out):\n"
        "        stamp = {}\n        self._run_dir = out / stamp\n"
    )
    clock = {"settings.py": settings.format("datetime.now().strftime('%H%M%S')")}
    check_nothing(WrongRank, source, files=clock)
    assert findings_of(WrongRank, source, files={"settings.py": settings.format("'last'  # not datetime.now()")})


def test_a_layout_by_the_local_rank() -> None:
    body = ("if local_rank == 0:", "    torch.save(1, os.path.join(args.out, 'a.pt'))")
    mine = "mine = os.path.join(args.out, f'part{local_rank}')"
    assert findings_of(WrongRank, script(*GROUP, "print(f'part {local_rank}')", *body))
    check_nothing(WrongRank, script(*GROUP, mine, *body))


def test_what_is_set_and_read_under_the_same_test_is_told() -> None:
    lines = (*GROUP, "for epoch in range(3):", "    if local_rank == 0:", "        args.best = max(args.best, score(epoch))",
             "        torch.save(1, args.out)")  # fmt: skip
    (found,) = findings_of(WrongRank, script(*lines, "if local_rank == 0:", "    show(args.best)"))
    assert found.fix is None and "line" in found.reason and "args.best" in found.reason
    again = "if local_rank == 0:\n        args.best = 1\n        show(args.best)"
    above = (*lines[:2], "if local_rank == 0:", "    show(args.best)", *lines[2:])
    for changed in ((*lines, "if args.show:", "    show(args.best)"), (*lines, again), above):
        (found,) = findings_of(WrongRank, script(*changed))
        assert found.fix is not None


HELPERS = "import torch.distributed as dist\n\n\ndef my_rank():\n    return dist.get_rank() if dist.is_initialized() else 0\n"
TOLD = 'int(os.environ.get("LOCAL_RANK", {}))'


def test_the_rank_that_a_helper_of_another_file_gives() -> None:
    head = "import os\n\nimport torch\n\nfrom helpers import my_rank\n"
    source = script("rank = my_rank()", "torch.cuda.set_device(rank)", head=head)
    after = script("rank = my_rank()", f"torch.cuda.set_device({TOLD.format('rank')})", head=head)
    check_transformed(WrongRank, source, after, files={"helpers.py": HELPERS})


def test_the_rank_that_the_maker_of_an_object_hands_in() -> None:
    body = (
        "import os\n\nimport torch\nimport torch.distributed as dist\n\n\nclass Loop:\n    def __init__(self, net, rank):\n"
        "        self.rank = rank\n        self.net = net\n\n    def restore(self, path):\n"
        "        return torch.load(path, map_location='cuda:{}'.format(@))\n"
    )
    start = "import torch.distributed as dist\nfrom loop import Loop\n\n\ndef go(net):\n    Loop(net, dist.get_rank())\n"
    maker = {"start.py": start}
    before = body.replace("@", "self.rank")
    bound = f"        local_rank = {TOLD.format('self.rank')}\n        return"  # its line would be too wide
    after = body.replace("@", "local_rank").replace("        return", bound)
    check_transformed(WrongRank, before, after, path="loop.py", files=maker)
    maker["start.py"] = maker["start.py"].replace("dist.get_rank()", "7")
    check_nothing(WrongRank, before, path="loop.py", files=maker)


OPTIONS = (
    "import argparse\nimport os\n\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--rank', type=int, default=int(os.environ.get('RANK', 0)))\n"
)


def test_an_option_that_reads_what_the_launcher_sets() -> None:
    source = "import torch\n\n\ndef restore(args, path):\n    return torch.load(path, map_location=f'cuda:{args.@}')\n"
    local = OPTIONS + "parser.add_argument('--local_rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0)))\n"
    before, after = source.replace("@", "rank"), source.replace("@", "local_rank")
    check_transformed(WrongRank, before, after, files={"options.py": local})


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS.replace("int(os.environ.get('RANK', 0))", "0"),  # whoever starts it may give the number of a node
        OPTIONS + "args = parser.parse_args()\nargs.rank = args.rank * 8 + args.gpu\n",  # worked out: not followed
        "import os\n\nos.environ['RANK'] = str(node)\n" + OPTIONS,  # the project numbers its processes itself
    ],
)
def test_options_that_may_be_another_number(options: str) -> None:
    source = "import torch\n\n\ndef restore(args, path):\n    return torch.load(path, map_location=f'cuda:{args.rank}')\n"
    check_nothing(WrongRank, source, files={"options.py": options})


def test_a_program_that_starts_the_processes_of_its_machine() -> None:
    head = "import os\n\nimport torch\n\nfrom helpers import my_rank\n"
    source = script("torch.cuda.set_device(my_rank())", head=head)
    starts = "import subprocess\n\nsubprocess.run(['python', '-m', 'torch.distributed.launch', '--nproc_per_node', '4'])\n"
    check_nothing(WrongRank, source, files={"helpers.py": HELPERS, "start.py": starts})


def test_one_wrap_is_told_once() -> None:
    wrap = "m = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], output_device=rank)"
    found = findings_of(WrongRank, script("rank = dist.get_rank()", wrap))
    assert len(found) == 1
    assert sum("LOCAL_RANK" in str(e) for e in found[0].edits) == 1  # bound once, for both


NAMED_LOCAL = """\
import os
import torch
import torch.distributed as dist


def main(args):
    dist.init_process_group("nccl")
    local_rank = {source}
    torch.cuda.set_device(local_rank)
    args.device = torch.device("cuda", local_rank)
    {more}
"""


def test_a_global_rank_that_is_called_local_is_repaired_where_it_is_bound() -> None:
    group, both = "dist.get_rank()", 'int(os.environ.get("LOCAL_RANK", dist.get_rank()))'
    handed = "args.local_rank = local_rank"
    before, after = (NAMED_LOCAL.format(source=source, more=handed) for source in (group, both))
    check_transformed(WrongRank, before, after)
    asked = NAMED_LOCAL.format(source=group, more="return local_rank == 0")
    (found,) = findings_of(WrongRank, asked)
    assert [e.span.line for e in found.edits] == [9, 9, 10]  # the name is asked for the one rank of all nodes, too


NETS = """\
from torch.nn.parallel import DistributedDataParallel


def parallel(net, args):
    local_rank = args.local_rank
    return DistributedDataParallel(net, device_ids=[local_rank], output_device=local_rank)
"""
SAVES = "import torch\n\n\ndef keep(net, args):\n    if args.local_rank == 0:\n        torch.save(net, 'net.pt')\n"
OWN = "import os\n\nlocal_rank = int(os.environ['LOCAL_RANK'])\nif local_rank == 0:\n    print('begin')\n"


def test_a_misnamed_option_is_repaired_where_it_is_bound() -> None:
    lines = ("dist.init_process_group('nccl')", "args.local_rank = {0}", "torch.cuda.set_device(args.local_rank)")
    before, after = (
        script(*(line.format(rank) for line in lines))
        for rank in ("dist.get_rank()", 'int(os.environ.get("LOCAL_RANK", dist.get_rank()))')
    )
    check_transformed(WrongRank, before, after, files={"nets.py": NETS})
    check_transformed(WrongRank, before, after, files={"nets.py": NETS, "other.py": OWN})  # a variable of another program


@pytest.mark.parametrize("more", [SAVES, "def loader(d, args):\n    return Sampler(d, rank=args.local_rank)\n"])
def test_a_misnamed_option_that_means_one_process_elsewhere_is_told(more: str) -> None:
    lines = ("dist.init_process_group('nccl')", "args.local_rank = dist.get_rank()", "torch.cuda.set_device(args.local_rank)")
    check_told(WrongRank, script(*lines), files={"nets.py": NETS, "more.py": more}, reason="ask for the global rank in more.py")
    handed = NAMED_LOCAL.format(source="dist.get_rank()", more="args.local_rank = local_rank")
    check_told(WrongRank, handed, files={"nets.py": NETS, "more.py": more}, reason="is read elsewhere too (line 11)")


def test_a_misnamed_variable_that_is_handed_on_and_asked_is_told() -> None:
    more = "args.local_rank = local_rank\n    if local_rank == 0:\n        print(args)"
    check_told(WrongRank, NAMED_LOCAL.format(source="dist.get_rank()", more=more), reason="module.py:12")


# One name, many devices

USES = """\
    torch.cuda.set_device({n})
    model = model.to({n})
    for batch in args:
        if {n} == 0:
            save(model)
        steps = torch.zeros(3, device={n})
        batch = batch.to({n})
"""


def used(name: str) -> str:
    """The places of USES: devices under one name, the rank under its own."""
    return USES.format(n=name).replace(f"if {name} == 0", "if rank == 0")


def test_many_places_read_the_local_rank_from_one_name() -> None:
    top = f"{HEAD}\ndef main(model, args):\n    rank = dist.get_rank()\n"
    bound = '    local_rank = int(os.environ.get("LOCAL_RANK", rank))\n'
    check_transformed(WrongRank, top + used("rank"), top + bound + used("local_rank"))
    assert len(findings_of(WrongRank, top + used("rank"))) == 1


def test_it_is_bound_in_the_innermost_block_that_holds_them_all() -> None:
    uses = "        torch.cuda.set_device({n})\n        if args:\n            model.to({n})\n        else:\n            "
    uses += "model.cuda({n})\n"
    top = f"{HEAD}\ndef main(model, args):\n    rank = dist.get_rank()\n    with args:\n        print(rank)\n"
    bound = '        local_rank = int(os.environ.get("LOCAL_RANK", rank))\n'
    check_transformed(WrongRank, top + uses.format(n="rank"), top + bound + uses.format(n="local_rank"))


def test_a_name_that_means_something_else_is_left_alone() -> None:
    top = f"{HEAD}\ndef main(model, args):\n    rank = dist.get_rank()\n"
    end = "    local_rank = 3\n"
    bound = '    gpu = int(os.environ.get("LOCAL_RANK", rank))\n'
    check_transformed(WrongRank, top + used("rank") + end, top + bound + used("gpu") + end)
    end += "    gpu = gpu_index = 3\n"
    asked = used('int(os.environ.get("LOCAL_RANK", rank))')
    check_transformed(WrongRank, top + used("rank") + end, top + asked + end)



ARMS = """\
if dist.is_initialized():
    rank = dist.get_rank()
    local_rank = int(os.environ["LOCAL_RANK"])
else:
    rank = 0
    local_rank = {alone}
"""


def test_the_local_rank_that_both_arms_bind() -> None:
    top = HEAD + ARMS.format(alone=0) + "\ndef main(model, args):\n"
    check_transformed(WrongRank, top + used("rank"), top + used("local_rank"))


def test_a_local_rank_that_one_arm_binds_is_not_at_hand() -> None:
    top = HEAD + ARMS.format(alone=0).replace("    local_rank = 0\n", "") + "\ndef main(model, args):\n"
    place = "    torch.cuda.set_device({n})\n"
    after = place.format(n='int(os.environ.get("LOCAL_RANK", rank))')
    check_transformed(WrongRank, top + place.format(n="rank"), top + after)


def test_a_text_that_names_the_device_is_one_whatever_takes_it() -> None:
    above = ("rank = dist.get_rank()", "index = rank % torch.cuda.device_count()", "torch.cuda.set_device(index)")
    use = "features = classify(model, names, f'cuda:{}', args)"
    before, after = use.replace("{}", "{rank}"), use.replace("{}", "{index}")
    check_transformed(WrongRank, script(*above, before), script(*above, after))
    check_nothing(WrongRank, script(*above, "print(f'cuda:{rank}')"))


def test_the_argument_that_the_start_of_the_group_was_asked_by() -> None:
    above = ("if args.local_rank != -1:", "    dist.init_process_group('nccl')", "    torch.cuda.set_device({})")
    wrap = "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[{}])"
    lines = (*above, wrap)
    before, after = ([line.replace("{}", by) for line in lines] for by in ("dist.get_rank()", "args.local_rank"))
    check_transformed(WrongRank, script(*before), script(*after))


def test_a_local_rank_that_is_the_rank_of_the_group() -> None:
    """The processes that one machine starts join by it: there is one local rank 0 in all."""
    start = "def run(local_rank, args):\n    args.local_rank = local_rank\n"
    start += "    dist.init_process_group('nccl', init_method='env://', rank=args.local_rank, world_size=args.count)\n"
    save = "    if args.local_rank == 0:\n        torch.save({}, f'{args.out}/last.pt')\n"
    made = "\n\ndef main(args):\n    for rank in range(args.count):\n        Process(target=run, args=(rank, args)).start()\n"
    head = HEAD + "from torch.multiprocessing import Process\n\n\n"
    check_nothing(WrongRank, head + start + save + made)
    rank = "    args.rank = dist.get_rank()\n"
    joined = start.replace("rank=args.local_rank, world_size=args.count", "")
    assert findings_of(WrongRank, head + joined + rank + save + "\n\nrun(int(os.environ['LOCAL_RANK']), args)\n")


RANKS = {
    "dist.py": "import os\nimport torch.distributed as tdist\n\n_rank, _local_rank = 0, 0\n\n\ndef begin():\n"
    "    global _rank, _local_rank\n    tdist.init_process_group('nccl')\n    _rank = tdist.get_rank()\n"
    "    _local_rank = int(os.environ['LOCAL_RANK'])\n\n\ndef is_master():\n    return _rank == 0\n\n\n"
    "def is_local_master():\n    return _local_rank == 0\n"
}
OWN = "import torch  # torchrun --nnodes=2 train.py\nimport dist\n\n\ndef main(args, model):\n    dist.begin()\n"


def test_a_helper_with_a_twin_for_the_global_rank() -> None:
    before = f"{OWN}    if dist.is_local_master():\n        torch.save(model, args.out + '/last.pt')\n"
    check_transformed(WrongRank, before, before.replace("is_local_master", "is_master"), unsafe=True, files=RANKS)
    before = f"{OWN}    if not dist.is_local_master():\n        return\n    torch.save(model, args.out + '/last.pt')\n"
    check_transformed(WrongRank, before, before.replace("is_local_master", "is_master"), unsafe=True, files=RANKS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dist.is_local_master()", "dist.is_master()"),
        ("args.out + '/last.pt'", "args.cache + '/last.pt'"),
        ("--nnodes=2", "--nnodes=1"),
        ("def is_master", "def is_first"),  # no twin
        ("return _rank == 0", "return _local_rank == 0"),  # it asks for the same rank
    ],
)
def test_helpers_of_a_node_that_stay(old: str, new: str) -> None:
    source = f"{OWN}    if dist.is_local_master():\n        torch.save(model, args.out + '/last.pt')\n"
    files = {path: text.replace(old, new) for path, text in RANKS.items()}
    check_nothing(WrongRank, source.replace(old, new), files=files)


EVALUATION = """\
import argparse

import torch.distributed as dist


def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


def load(rank, model, args):
    model.load_pretrained_weight(args.path)
    return model.to("cuda:{}".format(rank))


def main(model):
    args = argparse.ArgumentParser().parse_args()
    dist.init_process_group("nccl")
    rank, size = get_rank(), dist.get_world_size()
    return load(rank, model, args), size


if __name__ == "__main__":
    main(None)
"""


def test_a_program_in_a_folder_called_test_is_no_unit_test() -> None:
    for path in ("net/test/bench/evaluate.py", "test/infer.py"):
        found = findings_of(WrongRank, EVALUATION, path=path)
        assert [(f.span.line, f.applicability.value) for f in found] == [(14, "safe")]
    for path in ("test/test_infer.py", "tests/infer.py", "testing/infer.py"):
        check_nothing(WrongRank, EVALUATION, path=path)
    check_nothing(WrongRank, EVALUATION + "\n\ndef test_it():\n    assert main\n", path="test/infer.py")


def test_a_name_that_another_program_gives_the_global_rank() -> None:
    other = "import torch.distributed as dist\n\n\ndef run(args):\n    args.local_rank = dist.get_rank()\n"
    source = (
        "import torch\nimport torch.distributed as dist\n{}\n\ndef main(args):\n    torch.cuda.set_device(args.local_rank)\n"
        "    dist.init_process_group('nccl')\n    return args\n"
    )
    check_nothing(WrongRank, source.format(""), path="check.py", files={"train.py": other})
    assert findings_of(WrongRank, source.format("import train\n"), {"train.py": other}, path="check.py")


SETUP = (
    "import os\n\nimport torch\nimport torch.distributed as dist\n\n\n"
    "def set_up():\n    dist.init_process_group('nccl')\n    rank = int(os.environ['RANK'])\n"
    "    local_rank = int(os.environ['LOCAL_RANK'])\n    {0}\n\n\n"
    "def wrap(model, rank):\n    return torch.nn.parallel.DistributedDataParallel(model, device_ids=[{1}])\n\n\n"
    "def main(model):\n    {2} = set_up()\n    return wrap(model, {3})\n"
)


def test_a_rank_among_others_that_a_function_gives_back_is_followed() -> None:
    shape = "return rank, local_rank, dist.get_world_size()", "rank, local_rank, size", "rank"
    before = SETUP.format(shape[0], "rank", *shape[1:])
    after = SETUP.format(shape[0], "local_rank", *shape[1:])
    bound = '    local_rank = int(os.environ.get("LOCAL_RANK", rank))\n'
    after = after.replace("    return torch.nn", f"{bound}    return torch.nn")
    check_transformed(WrongRank, before, after, files={"run.sh": "torchrun --nnodes=2 train.py\n"})


@pytest.mark.parametrize(
    ("given", "bound", "handed"),
    [
        ("return local_rank, rank", "rank, other", "rank"),  # the local one, under another name
        ("return rank, local_rank", "rank, local_rank", "local_rank"),
        ("return numbers()", "rank, local_rank", "rank"),  # not shown
        ("return rank, *others", "other, rank", "rank"),
    ],
)
def test_another_part_is_no_global_rank(given: str, bound: str, handed: str) -> None:
    check_nothing(WrongRank, SETUP.format(given, "rank", bound, handed), files={"run.sh": "torchrun --nnodes=2 train.py\n"})


STARTER = (
    "import torch\nimport torch.distributed as dist\nfrom torch.multiprocessing import Process\n\n\n"
    "def work(rank, size, args):\n    torch.cuda.set_device({0})\n"
    "    dist.init_process_group('nccl', init_method=args.url, rank=rank, world_size=size)\n\n\n"
    "def main(args):\n    for gpu in range(args.gpus):\n        rank = {1}\n"
    "        Process(target=work, args=(rank, args.nodes * args.gpus, args)).start()\n"
)


@pytest.mark.parametrize("worked_out", ["args.node_rank * args.gpus + gpu", "gpu + args.gpus * args.machine_rank"])
def test_a_rank_that_the_project_works_out_is_told(worked_out: str) -> None:
    check_told(WrongRank, STARTER.format("rank", worked_out), reason="the number on the node is `gpu` in")


@pytest.mark.parametrize(
    ("device", "worked_out"),
    [
        ("rank % torch.cuda.device_count()", "args.node_rank * args.gpus + gpu"),
        ("rank", "args.shift * args.gpus + gpu"),  # nothing says that nodes are counted
        ("rank", "args.node_rank * args.gpus + 0"),
        ("rank", "gpu"),
    ],
)
def test_a_number_of_this_machine_is_no_global_rank(device: str, worked_out: str) -> None:
    check_nothing(WrongRank, STARTER.format(device, worked_out))


def test_ranks_of_one_machine_that_is_named_are_left_alone() -> None:
    source = STARTER.format("rank", "args.node_rank * args.gpus + gpu").replace("args.url", "'tcp://127.0.0.1:23456'")
    check_nothing(WrongRank, source)


STARTED = """import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def device():
    return torch.device("cuda", dist.get_rank())


def run(rank, size, args):
    dist.init_process_group("nccl", "file:///tmp/group", rank=rank, world_size={size})
    train(device())


def main(args):
    gpus = len(args.gpus.split(","))
    for index in range(gpus):
        mp.Process(target=run, args=({number}, gpus, args)).start()
"""


def test_processes_that_one_loop_starts_are_of_one_machine() -> None:
    check_nothing(WrongRank, STARTED.format(number="index", size="size"))
    for number, size in (("args.node * gpus + index", "size"), ("index", "args.nodes * size")):
        assert findings_of(WrongRank, STARTED.format(number=number, size=size))


@pytest.mark.parametrize("test", ["rank == 0", "args.eval and rank == 0 and epoch % 5 == 0"])
def test_the_device_of_rank_zero_alone(test: str) -> None:
    lines = ("rank = dist.get_rank()", f"if {test}:", "    model.cuda(rank)")
    check_nothing(WrongRank, script(*lines, arguments="args, epoch, model"))
    others = (lines[0], lines[1].replace("==", "!=", 1), lines[2])
    assert findings_of(WrongRank, script(*others, arguments="args, epoch, model"))


@pytest.mark.parametrize(
    ("behind", "silent"), [("print(rank)", True), ("model.to(d)", False), ("def move(x):\n        return x.to(d)", False)]
)
def test_a_device_that_its_function_does_not_use(behind: str, *, silent: bool) -> None:
    above = ("rank = dist.get_rank()", LOCAL, "d = torch.device('cuda', rank)")
    assert bool(findings_of(WrongRank, script(*above, behind))) is not silent


@pytest.mark.parametrize(
    ("variable", "beside"),
    [
        ("SLURM_PROCID", "SLURM_LOCALID"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("RANK", "LOCAL_RANK"),
    ],
)
@pytest.mark.parametrize(
    ("joined", "bound"),
    [
        ("dist.init_process_group('nccl')", "my_rank()"),
        ("dist.init_process_group('nccl', rank=my_rank(), world_size=args.size)", "dist.get_rank()"),
    ],
)
def test_the_launcher_that_gives_the_rank_gives_the_local_one(variable: str, beside: str, joined: str, bound: str) -> None:
    head = f"{HEAD}\n\ndef my_rank():\n    return int(os.environ.get('{variable}', 0))\n"
    above = (joined, f"rank = {bound}")
    before = script(*above, "torch.cuda.set_device(rank)", head=head)
    after = script(*above, f'torch.cuda.set_device(int(os.environ.get("{beside}", rank)))', head=head)
    check_transformed(WrongRank, before, after)


def test_two_launchers_that_give_the_rank() -> None:
    above = "rank = int(os.environ['RANK']) if 'RANK' in os.environ else int(os.environ['SLURM_PROCID'])"
    asked = 'int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", rank)))'
    before = script(above, "torch.cuda.set_device(rank)")
    check_transformed(WrongRank, before, script(above, f"local_rank = {asked}", "torch.cuda.set_device(local_rank)"))
    wide = "# " + "x" * 110
    kept = script(wide, above, f"torch.cuda.set_device({asked})")  # no wider than its other lines
    check_transformed(WrongRank, script(wide, above, "torch.cuda.set_device(rank)"), kept)


WRAP = "m = torch.nn.parallel.DistributedDataParallel(model, device_ids=[{0}], output_device={0})"


@pytest.mark.parametrize("test", ["args.local_rank != -1", "args.local_rank >= 0"])
def test_the_test_round_the_place_asks_the_local_rank(test: str) -> None:
    head = f"{HEAD}\n\ndef start(args):\n    dist.init_process_group('nccl')\n    args.rank = dist.get_rank()\n"
    before, after = (script(f"if {test}:", f"    {WRAP.format(r)}", head=head) for r in ("args.rank", "args.local_rank"))
    check_transformed(WrongRank, before, after)


@pytest.mark.parametrize("more", ["", "    args.local_rank = args.rank\n", "    args.local_rank = dist.get_rank()\n"])
def test_a_test_that_asks_no_local_rank(more: str) -> None:
    """Another test, the other branch, and a name that holds the global rank."""
    head = f"{HEAD}\n\ndef start(args):\n    dist.init_process_group('nccl')\n    args.rank = dist.get_rank()\n{more}"
    test = ("if args.local_rank != -1:",) if more else ("if args.local_rank == -1:", "    pass", "else:")
    for found in findings_of(WrongRank, script(*test, f"    {WRAP.format('args.rank')}", head=head)):
        assert not any(getattr(e, "code", "") == "args.local_rank" for e in found.edits)


def test_a_start_that_is_commented_out() -> None:
    above = "rank = int(os.environ['RANK'])"
    work = "\n\ndef work(rank, model):\n    torch.cuda.set_device({})\n"
    start = script(above, "# mp.spawn(work, args=(model,), nprocs=4)", "work(rank, args)")
    before, after = (start + work.format(r) for r in ("rank", 'int(os.environ.get("LOCAL_RANK", rank))'))
    check_transformed(WrongRank, before, after)
    check_nothing(WrongRank, before.replace("# mp.spawn", "torch.multiprocessing.spawn"))


@pytest.mark.parametrize(
    ("files", "severity"),
    [
        ({}, "risk"),
        ({"run.sh": "torchrun --nproc_per_node=4 train.py\n"}, "risk"),
        ({"run.sh": "torchrun --nnodes=2 --nproc_per_node=4 train.py\n"}, "crash"),
        ({"jobs/big.sbatch": "#SBATCH --nodes=4\nsrun python train.py\n"}, "crash"),
    ],
)
def test_a_device_of_a_second_node_ends_the_run_where_there_is_one(files: dict[str, str], severity: str) -> None:
    head = "import os\nimport torch\nimport torch.distributed as dist\n"
    text = script("rank = int(os.environ['RANK'])", "torch.cuda.set_device(rank)", head=head)
    (found,) = findings_of(WrongRank, text, files)
    assert found.severity == severity


def test_a_file_that_the_nodes_share_is_no_crash() -> None:
    text = script("rank = dist.get_rank()", LOCAL, "if local_rank == 0:", "    torch.save(args, 'out.pt')")
    (found,) = findings_of(WrongRank, text)
    assert found.severity == "data"


HOLDS_OPTIONS = """import torch  # torchrun --nnodes=2 train.py
from torch.nn.parallel import DistributedDataParallel as DDP


class Loop:
    def __init__(self, model, args):
        self.args = args
        self.model = DDP(model, device_ids=[{own}])

    def resume(self, path):
        return torch.load(path, map_location=f"cuda:{{self.args.rank}}")
"""
GIVEN = {"options.py": OPTIONS}


@pytest.mark.parametrize("own", ["args.local_rank", "self.args.local_rank"])
def test_the_local_rank_that_the_same_options_hold(own: str) -> None:
    before = HOLDS_OPTIONS.format(own=own)
    check_transformed(WrongRank, before, before.replace("self.args.rank", "self.args.local_rank"), files=GIVEN)


def test_the_local_rank_of_options_in_the_same_function() -> None:
    lines = ("dist.init_process_group('nccl')", "torch.cuda.set_device(args.local_rank)", "return model.to(f'cuda:{args.rank}')")
    before = script(*lines, arguments="model, args")
    check_transformed(WrongRank, before, before.replace("args.rank", "args.local_rank"), files=GIVEN)


@pytest.mark.parametrize(
    "own",
    [
        "model.args.local_rank",  # of another object
        "int(args.local_rank)",  # is it a number there?
        "args.gpu",
    ],
)
def test_a_local_rank_of_other_options_is_not_taken(own: str) -> None:
    before = HOLDS_OPTIONS.format(own=own)
    found = findings_of(WrongRank, before, GIVEN)
    assert found and all("args.local_rank" not in getattr(e, "code", "") for f in found for e in f.edits)


def test_a_field_that_is_given_two_options() -> None:
    before = HOLDS_OPTIONS.format(own="args.local_rank") + "\n    def again(self, other):\n        self.args = other\n"
    found = findings_of(WrongRank, before, GIVEN)
    assert found and all("args.local_rank" not in getattr(e, "code", "") for f in found for e in f.edits)


HOLDER = """\
from torch.nn.parallel import DistributedDataParallel


class Holder:
    def __init__(self, net, {name}=0):
        self.local_rank = {name}
        self.net = DistributedDataParallel(net, device_ids=[{name}])

    def restore(self, path):
        return read(path, {text})
"""
BUILDS = "    Holder(args.net, {0})\n    if {1} == 0:\n        print(args)\n"
IN_FORMAT = "'cuda:{}'.format(self.local_rank)"


def builds(bound: str, given: str, asked: str) -> str:
    lines = ("dist.init_process_group('nccl')", bound, f"torch.cuda.set_device({asked})")
    head = HEAD.replace("import torch\n", "import torch\nfrom holder import Holder\n", 1)
    return script(*lines, head=head) + BUILDS.format(given, asked)


@pytest.mark.parametrize("given", ["local_rank", "local_rank=local_rank"])
def test_a_misnamed_rank_of_another_file_is_told_where_it_is_handed_to(given: str) -> None:
    start = builds("local_rank = dist.get_rank()", given, "local_rank")
    holder = HOLDER.format(name="local_rank", text=IN_FORMAT)
    line = start[: start.index("local_rank = dist")].count("\n") + 1
    check_told(WrongRank, holder, path="holder.py", files={"start.py": start}, reason=f"from start.py:{line} on")


def test_a_rank_of_another_file_under_its_own_name_is_repaired() -> None:
    start = builds("rank = dist.get_rank()", "rank", "rank")
    holder = HOLDER.format(name="rank", text="'cpu'")
    (found,) = findings_of(WrongRank, holder, path="holder.py", files={"start.py": start})
    assert found.edits
    own = builds("local_rank = int(os.environ['LOCAL_RANK'])", "local_rank", "local_rank")
    check_nothing(WrongRank, HOLDER.format(name="local_rank", text="'cpu'"), path="holder.py", files={"start.py": own})


@pytest.mark.parametrize("text", [IN_FORMAT, "'cuda:%d' % self.local_rank", "f'cuda:{self.local_rank}'"])
def test_a_text_that_names_the_device_is_no_other_use_of_a_misnamed_rank(text: str) -> None:
    start = builds("local_rank = dist.get_rank()", "local_rank=local_rank", "local_rank")
    holder = HOLDER.format(name="local_rank", text=text)
    check_told(WrongRank, start, files={"holder.py": holder}, reason="ask for the global rank in module.py")
    other = HOLDER.format(name="local_rank", text="'rank:%d' % self.local_rank")
    check_told(WrongRank, start, files={"holder.py": other}, reason="ask for the global rank in holder.py:10")
