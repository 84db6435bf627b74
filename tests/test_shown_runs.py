"""A fix of what ranks do is safe only where a run of several processes is seen to come to its place."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import findings_of

WORK = """\
import torch.distributed as dist

def train(args):
    rank = dist.get_rank()
    print("start of an epoch", args.epochs)
    if rank == 0:
        args.save()
"""
START = """\
import torch.distributed as dist
from settings import args
from module import train

if __name__ == "__main__":
    dist.init_process_group()
"""


WRITES = """open("state.json", "w").write(str(args.epochs))"""


def level(source: str, files: dict[str, str]) -> tuple[Applicability, str]:
    (found,) = findings_of(UnguardedPrint, source, files)
    return found.applicability, found.reason


def test_a_program_that_calls_it() -> None:
    assert level(WORK, {"main.py": START + "    train(args())\n"})[0] is Applicability.SAFE


def test_a_folder_without_programs_is_somebody_elses() -> None:
    assert level(WORK, {})[0] is Applicability.SAFE


@pytest.mark.parametrize(
    "other",
    [
        'import module\n\n\ndef call(name):\n    getattr(module, name)(args())\n\n\ncall("train")\n',  # looked up by its name
        "@register\ndef experiment():\n    train(args())\n",
    ],
)
def test_who_may_call_it_by_other_ways_is_not_seen(other: str) -> None:
    files = {"main.py": START, "other.py": "from module import train\nfrom registry import register\n\n\n" + other}
    assert not findings_of(UnguardedFileIo, WORK.replace('print("start of an epoch", args.epochs)', WRITES), files)
    assert not findings_of(UnguardedPrint, WORK, files)


CLASS = """\
import torch.distributed as dist

class Trainer:
    def train(self, args):
        rank = dist.get_rank()
        print("start of an epoch", args.epochs)
        if rank == 0:
            args.save()
"""


def test_a_class_of_the_same_name_elsewhere_makes_no_object_of_this_one() -> None:
    start = START.replace("import train", "import Trainer")
    own = start.replace("from module", "from own") + "    Trainer().train(args())\n"
    assert level(CLASS, {"main.py": start + "    Trainer().train(args())\n"})[0] is Applicability.SAFE
    assert not findings_of(UnguardedPrint, CLASS, {"main.py": own, "own.py": CLASS.replace("print", "str")})


def test_a_copy_of_the_script_has_a_class_of_its_own() -> None:
    run = START.replace("from module import train\n", "") + "    Work().train(args())\n"
    copy = CLASS.replace("class Trainer", "class Work") + "\n\n" + run.removeprefix("import torch.distributed as dist\n")
    assert not findings_of(UnguardedPrint, CLASS.replace("class Trainer", "class Work"), {"copy.py": copy})
    brought_in = copy.replace("import torch.distributed as dist\n", "import torch.distributed as dist\nimport module\n", 1)
    made = brought_in.replace("    Work().train", "    module.Work().train")
    assert findings_of(UnguardedPrint, CLASS.replace("class Trainer", "class Work"), {"copy.py": made})


def test_nothing_is_told_in_a_function_that_nobody_calls() -> None:
    bare = (
        "import torch.distributed as dist\n\n\ndef old(model, optimizer, loader):\n    for x in loader:\n"
        "        if dist.get_rank() == 0:\n            dist.barrier()\n"
        "        model(x).sum().backward()\n        optimizer.step()\n"
    )
    start = '\n\nif __name__ == "__main__":\n    dist.init_process_group()\n    {}\n'
    assert findings_of(CollectiveUnderRankGuard, bare + start.format("old(*parts())"))
    assert not findings_of(CollectiveUnderRankGuard, bare + start.format("new(*parts())"))


SHOWN = {"README.md": "    python other.py\n", "other.py": START + "    train(args())\n", "module.py": WORK}
PREPARED = """\
import torch
from accelerate import Accelerator

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.head(x)

def main():
    accelerator = Accelerator()
    model = accelerator.prepare(Net())
    with torch.no_grad():
        ASK
        print(model.head.weight)

if __name__ == "__main__":
    main()
"""


def test_what_ends_each_run_is_reported_of_a_program_written_for_ranks() -> None:
    source = PREPARED.replace("ASK", "if accelerator.is_main_process:\n            print('once')")
    (found,) = findings_of(AttributeOfWrapper, source, SHOWN, path="train.py")
    assert "with several processes this line raises AttributeError" in found.message
    assert found.applicability is Applicability.UNSAFE
    assert "right if its program is launched as several processes: no command of the repository does so" in found.reason


@pytest.mark.parametrize(("sampler", "number"), [("DistributedSampler", 1), ("RandomSampler", 0)])
def test_a_program_that_makes_a_sampler_for_ranks_is_written_for_them(sampler: str, number: int) -> None:
    source = PREPARED.replace("ASK", f"print(torch.utils.data.{sampler}([1, 2], num_replicas=2, rank=0))")
    assert len(findings_of(AttributeOfWrapper, source, SHOWN, path="train.py")) == number


def test_a_program_that_asks_for_no_rank_is_one_process() -> None:
    assert not findings_of(AttributeOfWrapper, PREPARED.replace("ASK", "print('once')"), SHOWN, path="train.py")


SCRIPT = """\
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from parts import Net

exec(open("options.py").read())
if "RANK" in os.environ:
    dist.init_process_group("nccl")
    model = DDP(Net())
    rank = dist.get_rank()
else:
    rank = 0
print("begin")
"""


@pytest.mark.parametrize(("text", "told"), [("$ torchrun --nproc_per_node=4 train.py\n", True), ("$ python train.py\n", False)])
def test_a_script_without_the_block_of_a_program_that_a_text_starts(text: str, *, told: bool) -> None:
    """Another file names it, which runs nothing itself: the script is the program all the same."""
    other = "import argparse\nfrom train import model\n\n\ndef show():\n    print(model)\n"
    files = {"options.py": other, "parts.py": "class Net: ...\n", "other.py": "", "README.md": f"{text}$ python other.py\n"}
    assert bool(findings_of(UnguardedPrint, SCRIPT, files, path="train.py")) is told
