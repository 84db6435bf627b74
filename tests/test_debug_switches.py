"""DDP203 and DDP208 leave what stands under a switch for debugging that the project leaves off."""

from __future__ import annotations

import pytest

from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

PROGRAM = """\
import argparse

import torch.distributed as dist
from tqdm import tqdm


def main(args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    {test}
        print("begin")
        for row in tqdm(args.rows):
            args.work(row)
    dist.barrier()
    args.more()


parser = argparse.ArgumentParser()
parser.add_argument("--debug", {option})
for name in ("is_debug", "verbose", "debugger", "rows"):
    parser.add_argument("--" + name)
main(parser.parse_args())
"""
OFF = 'action="store_true"'


def found(test: str, option: str = OFF, files: dict[str, str] | None = None) -> list[int]:
    source = PROGRAM.format(test=test, option=option)
    return [len(findings_of(codemod, source, files=files or {})) for codemod in (UnguardedPrint, ProgressBarOnEveryRank)]


@pytest.mark.parametrize("test", ["if args.debug:", "if args.debug and args.rows:", "if args.debug or args.is_debug:"])
@pytest.mark.parametrize("option", [OFF, "default=False, type=bool", "type=int, default=0"])
def test_a_switch_that_is_left_off(test: str, option: str) -> None:
    assert found(test, option) == [0, 0]


@pytest.mark.parametrize(
    "test", ["if not args.debug:", "if args.debug or args.rows:", "if args.verbose:", "if args.debugger:", "with args.debug:"]
)
def test_a_line_that_a_usual_run_shows(test: str) -> None:
    assert found(test) == [1, 1]


@pytest.mark.parametrize(
    ("option", "files"),
    [
        ("default=True, type=bool", {}),
        ('action="store_false"', {}),
        (OFF, {"run.sh": "torchrun --nproc_per_node 4 module.py --debug\n"}),
        (OFF, {"conf/a.yaml": "debug: true\n"}),
        (OFF, {"start.py": "main(Options(debug=True))\n"}),
    ],
)
def test_a_switch_that_is_turned_on(option: str, files: dict[str, str]) -> None:
    assert found("if args.debug:", option, files) == [1, 1]
