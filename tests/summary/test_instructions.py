"""How a change is to be tested: the repository's own commands, what they do not reach, and the usual ones."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, render
from tests.summary.made import MODEL, context, fenced, in_memory, section


def how_to_test(*launches: Launch, script: str = MODEL) -> str:
    """`model.py` and `other.py` are changed."""
    return section(render(in_memory({"model.py": script, "other.py": MODEL}), context(launches=launches)), "## How to test")


def test_it_is_said_how_a_command_differs_from_what_stands_there() -> None:
    launch = Launch("torchrun a.py", "go.sh", 3, edits=("by torchrun, where it has plain Python", "less"))
    (shown, *_) = fenced(how_to_test(launch), "sh")
    assert shown == "# from go.sh:3, by torchrun, where it has plain Python\ntorchrun a.py\n"


def test_it_is_said_where_the_number_of_devices_is_set() -> None:
    launch = Launch("python a.py", "go.sh", 3, counted=False, devices="config.py:7")
    assert "# from go.sh:3, set two devices in config.py:7\n" in fenced(how_to_test(launch), "sh")[0]
    assert "# from go.sh:3, set two devices\n" in fenced(how_to_test(Launch("python a.py", "go.sh", 3, counted=False)), "sh")[0]


def test_words_that_the_reader_has_to_give_are_named() -> None:
    launch = Launch("torchrun a.py --data $DATA", "go.sh", 3, to_fill=("$DATA", "your_run"))
    assert "Yours to give, before or in the command: `$DATA`, `your_run`." in how_to_test(launch, launch)
    assert "Yours to give" not in how_to_test(Launch("torchrun a.py", "go.sh", 3))


def test_changed_programs_that_no_command_reaches_are_named() -> None:
    one, both = (Launch("torchrun a.py", "go.sh", 3, programs=p) for p in (("model.py",), ("model.py", "other.py")))
    assert "reached by no command that was found, as far as imports and settings show: `other.py`." in how_to_test(one)
    assert "reached by no command" not in how_to_test(both)


ADDED = "parser.add_argument('--local_rank', default=-1)\n"


@pytest.mark.parametrize(
    ("head", "command"),
    [
        ("import torch\nfrom transformers import AutoModel\n", "torchrun --standalone"),
        ("import torch\nfrom transformers import TrainingArguments\n", "accelerate launch"),
        ("from accelerate import Accelerator\n", "accelerate launch"),
        ("# accelerate the loop\n", "torchrun --standalone"),
        (ADDED, "python -m torch.distributed.launch --nproc_per_node=2"),
        (ADDED + "rank = os.environ['LOCAL_RANK']\n", "torchrun --standalone"),
    ],
)
def test_without_a_command_the_usual_one_starts_a_group(head: str, command: str) -> None:
    race = "import os\nimport torch.distributed as dist\n\n\ndef main(out):\n    dist.init_process_group('gloo')\n"
    race += "    if not os.path.exists(out):\n        os.makedirs(out)\n\n\nif __name__ == '__main__':\n    main('out')\n"
    fixed = in_memory({"main.py": head + race})
    assert fixed.after
    shown = fenced(section(render(fixed, context()), "## How to test"), "sh")[0]
    assert shown.startswith(command) and shown.endswith(" main.py\n")


def test_a_program_that_starts_its_ranks_itself_gets_no_launcher() -> None:
    program = """
import os
import torch.distributed as dist
import torch.multiprocessing as mp


def main(rank, out):
    dist.init_process_group('gloo', rank=rank, world_size=2)
    if not os.path.exists(out):
        os.makedirs(out)


if __name__ == '__main__':
    mp.spawn(main, args=('runs',), nprocs=2)
"""
    fixed = in_memory({"main.py": program})
    assert fixed.after
    command = fenced(section(render(fixed, context()), "## How to test"), "sh")[0]
    assert command == "CUDA_VISIBLE_DEVICES=0,1 python main.py  # it starts its ranks itself: let there be two\n"
