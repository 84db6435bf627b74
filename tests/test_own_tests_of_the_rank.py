"""Which test a guard is made of: the one that the function or the class makes itself, before one of the environment."""

from __future__ import annotations

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_transformed, findings_of

HEAD = "import os\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
START = "dist.init_process_group('nccl')"


def written(codemod: type[DdpCodemod], source: str) -> str:
    """What the fixes would write."""
    return " ".join(str(edit) for found in findings_of(codemod, source) for edit in found.edits)


def script(*lines: str, args: str = "args, net") -> str:
    return f"{HEAD}def main({args}):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "test"),
    [
        ((START, "rank = dist.get_rank()", "if rank == 0 and args.track:", "    start()"), "rank == 0"),
        (("first = dist.get_rank() == 0", "if first and args.track and net:", "    start()"), "first"),
        ((START, "me = int(os.environ['LOCAL_RANK'])", "if me == 0 and args.track:", "    start()"), "me == 0"),
    ],
)  # fmt: skip
def test_the_first_part_of_a_test_that_is_made_above(lines: tuple[str, ...], test: str) -> None:
    before = script(*lines, "net = DDP(net)", "net.fit()", "print('done')")
    after = script(*lines, "net = DDP(net)", "net.fit()", f"if {test}:", "    print('done')")
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize(
    "lines",
    [
        (START, "net = DDP(net)", "if args.track and net.rank == 0:", "    start()"),
        (START, "net = DDP(net)", "if args.late:", "    me = dist.get_rank()", "    if me == 0 and net:",
         "        start()"),
        (START, "net = DDP(net)", "if dist.get_rank() == 1 and net:", "    start()"),
    ],
)  # fmt: skip
def test_parts_that_are_not_sure_to_be_there(lines: tuple[str, ...]) -> None:
    got = written(UnguardedPrint, script(*lines, "print('done')"))
    assert "test='dist.get_rank() == 0'" in got


EVALUATOR = """\
import os
from tqdm import tqdm


class Evaluator:
    def __init__(self, loader):
        self.rank = {rank}
        self.loader = loader


class Scores(Evaluator):
{constructor}    def evaluate(self, net):
        for rows in tqdm(self.loader):
            net.score(rows)
            net.loss.backward()
"""
OF_LAUNCHER = 'int(os.environ["RANK"])'
GIVES_ON = "    def __init__(self, loader):\n        super().__init__(loader)\n\n"
BY_OTHERS = "disable=int(os.environ.get(\"RANK\", 0)) != 0"


@pytest.mark.parametrize("constructor", ["", GIVES_ON])
def test_the_rank_that_the_class_keeps(constructor: str) -> None:
    before = EVALUATOR.format(rank=OF_LAUNCHER, constructor=constructor)
    after = before.replace("tqdm(self.loader)", "tqdm(self.loader, disable=self.rank != 0)")
    check_transformed(ProgressBarOnEveryRank, before, after)


@pytest.mark.parametrize(
    ("rank", "constructor"),
    [
        (OF_LAUNCHER, "    def __init__(self, loader):\n        self.loader = loader\n\n"),
        (OF_LAUNCHER, GIVES_ON + "    def alone(self):\n        self.rank = 0\n\n"),
        ('int(os.environ.get("RANK", -1))', ""),
        ('int(os.environ["NODE_RANK"])', ""),
        ('os.environ["RANK"]', ""),
    ],
)
def test_fields_that_are_not_sure_to_hold_the_rank(rank: str, constructor: str) -> None:
    source = EVALUATOR.format(rank=rank, constructor=constructor)
    assert "disable=self.rank" not in written(ProgressBarOnEveryRank, source)


def test_a_field_that_others_give_too() -> None:
    source = EVALUATOR.format(rank=OF_LAUNCHER, constructor="")
    got = written(ProgressBarOnEveryRank, source + "\n\ndef alone(scores):\n    scores.rank = 0\n")
    assert "disable=self.rank" not in got


def test_one_rank_of_each_node_may_log_and_one_of_all_saves() -> None:
    source = (
        "import torch\nfrom transformers import AutoModel, Trainer, TrainingArguments\n\n\n"
        "def main(training_args: TrainingArguments):\n    if training_args.should_log:\n        print('starts')\n"
        "    model = AutoModel.from_pretrained('a')\n    trainer = Trainer(model, training_args)\n    trainer.train()\n"
        "    model.save_pretrained('out')\n"
    )
    got = written(UnguardedSave, source)
    assert "trainer.is_world_process_zero()" in got and "should_log" not in got
