"""DDP203 leaves lines that are a rank's own word, and lines beside a file that every rank writes."""

from __future__ import annotations

import textwrap

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

PROGRAM = """\
import json
import os
import random
import sys
import time

import numpy as np
import torch
import torch.distributed as dist


def times(n):
    u = torch.rand(n)
    u = torch.cat([u, 1 - u])
    return -torch.log(u)


def size(n):
    return n * 2


def main(args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
{body}
    if rank == 0:
        args.note()


if __name__ == "__main__":
    main(read())
"""


def program(body: str) -> str:
    return PROGRAM.format(body=textwrap.indent(textwrap.dedent(body).strip("\n"), "    "))


def lines(body: str, files: dict[str, str] | None = None) -> int:
    return len(findings_of(UnguardedPrint, program(body), files=files or {}))


@pytest.mark.parametrize(
    "body",
    [
        "t = torch.rand(4)\nprint('times', t)",
        "t = times(4).to(args.device)\nprint('times', t)",
        "k = random.randint(0, 9)\nprint(f'key {k}')",
        "k = np.random.choice(args.names, 3)\nprint(k)",
        "print('first', torch.randint(0, 4, (1,)).item())",
        "if args.seed is not None:\n    torch.manual_seed(args.seed)\nt = torch.randn(4)\nprint(t)",
        "torch.manual_seed(args.seed + rank)\nt = torch.randn(4)\nprint(t)",
        "g = torch.Generator().manual_seed(3)\nt = torch.randn(4)\nprint(t)",
    ],
)
def test_a_value_that_each_rank_draws(body: str) -> None:
    check_nothing(UnguardedPrint, program(body))


@pytest.mark.parametrize(
    "body",
    [
        "torch.manual_seed(args.seed)\nt = torch.randn(4)\nprint('times', t)",
        "if torch.cuda.is_available():\n    torch.manual_seed(3)\nt = times(4)\nprint('times', t)",
        "t = torch.rand(4)\nprint('times', t.shape[0] * args.epochs)",
        "t = torch.zeros_like(torch.rand(4))\nprint('zeros', t)",
        "t = torch.rand(4, generator=args.generator)\nprint('times', t)",
        "print(size(4))",
    ],
)
def test_a_value_that_all_have(body: str) -> None:
    assert lines(body) == 1


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("if not torch.cuda.is_bf16_supported():\n    print('float32 is taken')", 0),
        ("half = torch.cuda.is_bf16_supported()\nif half:\n    print('bfloat16 is taken')", 0),
        ("for name in args.names:\n    if name not in os.environ:\n        print('not given', name)", 0),
        ("for name in args.names:\n    if name not in os.environ.keys():\n        print('not given', name)", 0),
        ("if args.half:\n    print('bfloat16 is taken')", 1),
        ("for name in args.names:\n    if name not in args.given:\n        print('not given', name)", 1),
    ],
)
def test_a_test_of_the_device_or_the_environment(body: str, found: int) -> None:
    assert lines(body) == found


COUNTS = "print('parameters', sum(p.numel() for p in args.model.parameters()))"


def test_a_stage_of_a_pipeline_has_its_own_parameters() -> None:
    assert lines(COUNTS) == 1
    stages = {"net.py": "from deepspeed.pipe import PipelineModule\n\n\ndef make(layers):\n    return PipelineModule(layers)\n"}
    assert lines(COUNTS, stages) == 0
    assert lines("print('epochs', args.epochs)", stages) == 1


def test_numbers_beside_lines_for_each_rank() -> None:
    timed = "begin = time.time()\nargs.work()\nprint('it took', time.time() - begin)\nargs.more()\nargs.most()\n"
    assert lines(timed) == 1
    assert lines(timed + "args.last()\nprint(f'rank {rank} is done')") == 0


EVALUATION = """\
from transformers import Trainer


class Own(Trainer):
    def {name}(self, dataloader, description):
        total = 0
        for batch in dataloader:
            total += self.model(batch)
        {more}
        print({shown})
        return total
"""


@pytest.mark.parametrize(
    ("name", "more", "shown", "found"),
    [
        ("evaluation_loop", "pass", "total", 0),
        ("prediction_loop", "pass", "total / 10", 0),
        ("evaluation_loop", "total = self._nested_gather(total)", "total", 1),
        ("evaluation_loop", "pass", "'the evaluation ends'", 1),
    ],
)
def test_an_evaluation_that_gathers_nothing(name: str, more: str, shown: str, found: int) -> None:
    source = EVALUATION.format(name=name, more=more, shown=shown)
    assert len(findings_of(UnguardedPrint, source)) == found


STEP = """\
import time

import lightning.pytorch as pl


class Net(pl.LightningModule):
    def {name}(self, batch, i):
        begin = time.time()
        out = self(batch)
        took = time.time() - begin
        print("{text}", {shown})
        return out
"""


@pytest.mark.parametrize(
    ("name", "shown", "found"),
    [("test_step", "took", 0), ("training_step", "took", 0), ("training_step", "self.current_epoch", 1)],
)
def test_the_time_that_a_step_takes(name: str, shown: str, found: int) -> None:
    assert len(findings_of(UnguardedPrint, STEP.format(name=name, shown=shown, text="seconds"))) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("print('the settings are kept')\njson.dump(args.all, open('all.json', 'w'))", 0),
        ("path = args.out + '/all.pt'\nargs.more()\ntorch.save(args.all, path)\nprint('saved to', path)", 0),
        ("print('the settings are kept')\nif rank == 0:\n    json.dump(args.all, open('all.json', 'w'))", 1),
        ("print('the files are kept')\nos.makedirs(args.out, exist_ok=True)\nargs.more()", 1),
        ("print('saving')\nos.makedirs(args.out)\nnet = args.net.module if hasattr(args.net, 'module') else args.net\n"
         "net.save_pretrained(args.out)", 0),
        ("print('saving')\nargs.more()\ntorch.save(args.all, 'all.pt')", 1),
        ("print('kept')\ntorch.save(args.all, f'all{rank}.pt')", 1),
    ],
)
def test_a_line_beside_a_file_that_every_rank_writes(body: str, found: int) -> None:
    assert lines(body) == found


def test_a_line_beside_a_call_that_writes() -> None:
    tools = {"tools.py": "def build(path):\n    with open(path, 'w') as f:\n        f.write('a')\n"}
    assert lines("from tools import build\nprint('it is built')\nbuild(args.path)", tools) == 0


NETS = """\
import torch


class Nets:
    def save_nets(self, rank, name):
        {test}
            torch.save(self.net.state_dict(), f"{{name}}.pt")
"""


@pytest.mark.parametrize(
    ("test", "found"), [("for name in self.names:", 0), ("if rank == 0:", 1), ("if dist.get_rank() == 0:", 1)]
)
def test_a_line_beside_a_method_of_an_object_that_is_not_followed(test: str, found: int) -> None:
    nets = {"nets.py": NETS.format(test=test)}
    body = "for epoch in range(9):\n    if epoch % 2 == 0:\n        print('saving the model at', epoch)\n        {}\n"
    assert lines(body.format("args.nets.save_nets(rank, epoch)"), nets) == found
    assert lines(body.format("args.nets.train_nets(rank, epoch)"), nets) == 1


def test_a_line_beside_a_whole_training() -> None:
    steps = "    path.step()\n" * 70
    tools = {"tools.py": f"import torch\n\n\ndef train(path):\n{steps}    torch.save(path.state, 'a.pt')\n"}
    assert lines("from tools import train\nprint('it is built')\ntrain(args.path)", tools) == 1
