"""Commands of a launcher that a line without a backslash ends above their options."""

from __future__ import annotations

import pytest

from codemods.launch.command_that_cannot_start import CommandThatCannotStart
from codemods.launch.torch_distributed_launch import TorchDistributedLaunch
from ddpfix.testing import check_nothing, check_told, findings_of

START = "python -m torch.distributed.launch --nproc_per_node=2 train.py"
SCRIPT = {
    "train.py": "import argparse\nimport os\nimport torch\n\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--local_rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0)))\n"
    "parser.add_argument('--lr', type=float)\nargs = parser.parse_args()\ntorch.cuda.set_device(args.local_rank)\n"
}


@pytest.mark.parametrize("below", ["    --lr 1 \\\n    --epochs 3\n", "\t-a net\n", "  --lr=1\n"])
def test_options_that_nothing_joins(below: str) -> None:
    check_told(CommandThatCannotStart, f"{START}\n{below}", reason="with a backslash", files=SCRIPT, path="run.sh")
    check_nothing(TorchDistributedLaunch, f"{START}\n{below}", files=SCRIPT, path="run.sh")


@pytest.mark.parametrize(
    "below", [" \\\n    --lr 1\n", "\necho done\n", "\n# --lr 1\n", " --lr 1 &\n", "\n\n  - one\n"]
)
def test_whole_commands(below: str) -> None:
    text = START + below
    assert not [f for f in findings_of(CommandThatCannotStart, text, SCRIPT, path="run.sh") if "ends the command" in f.message]
    assert findings_of(TorchDistributedLaunch, text, SCRIPT, path="run.sh")


def test_a_text_that_breaks_its_lines() -> None:
    text = f"```bash\n{START}\n    --lr 1\n```\n"
    check_nothing(CommandThatCannotStart, text, files=SCRIPT, path="README.md")


@pytest.mark.parametrize("blank", ["\\ ", "\\\t", "\\   "])
def test_a_blank_behind_the_backslash_of_a_word(blank: str) -> None:
    text = f"accelerate launch --main_process_port 8888{blank}\n    --num_processes 4\\\n    train.py --lr 1\n"
    found = check_told(CommandThatCannotStart, text, reason="take the blank out", files=SCRIPT, path="run.sh")
    assert "`accelerate` is given `8888` with a blank behind it" in found.message
    assert "the shell runs `--num_processes`" in found.message


@pytest.mark.parametrize("end", ["8888\\", "8888 \\", "8888\\\\ "])  # joined, joined, and a backslash of the word's own
def test_no_blank_that_is_escaped(end: str) -> None:
    text = f"accelerate launch --main_process_port {end}\n    --num_processes 4 train.py --lr 1\n"
    found = findings_of(CommandThatCannotStart, text, SCRIPT, path="run.sh")
    assert not any("escapes" in f.message for f in found)


def test_a_line_that_ends_above_the_script() -> None:
    text = "accelerate launch --main_process_port 8888\n    --num_processes 4 \\\n    train.py --lr 1\n"
    found = check_told(CommandThatCannotStart, text, reason="with a backslash", files=SCRIPT, path="run.sh")
    assert "`accelerate` is given nothing of it" in found.message
