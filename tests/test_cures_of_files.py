"""DDP202: what is told to do about a file that every rank writes, where the usual cure would be none."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_told, findings_of

HOOK = (
    "import os\n\nimport lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n"
    "    def on_validation_epoch_end(self):\n        score = 0.0\n        {above}\n"
    "        with open(os.path.join(self.logger.log_dir, 'scores.txt'), 'w') as file:\n            {below}\n"
    "        self.log('score', score, sync_dist=True)\n"
)
READ = "with open(os.path.join(self.logger.log_dir, 'scores.txt')) as file:\n            score = len(file.readlines())"


def test_a_file_that_every_rank_reads_and_then_empties() -> None:
    found = check_told(UnguardedFileIo, HOOK.format(above=READ, below="pass"), reason="a barrier right above this line")
    assert "a rank that comes later to line 9 reads what is written here" in found.message


@pytest.mark.parametrize("above", ["score = 1.0", "seen = os.path.exists(os.path.join(self.logger.log_dir, 'scores.txt'))"])
def test_a_file_that_nobody_reads_above(above: str) -> None:
    found = findings_of(UnguardedFileIo, HOOK.format(above=above, below="file.write('0')"), path="net.py")
    assert [f.code for f in found] == ["DDP202"]
    assert "right above" not in found[0].reason


LOG = (
    "import logging\n\n\ndef set_up_log(folder):\n    logger = logging.getLogger('run')\n"
    "    logger.addHandler(logging.FileHandler(folder + '/log.txt', mode='w'))\n    return logger\n"
)
WORKER = (
    "import torch.distributed as dist\n{more}\nfrom log import set_up_log\n\n\ndef worker({takes}args):\n"
    "    logger = set_up_log(args.folder)\n    dist.init_process_group('nccl')\n    train(args, logger)\n\n\n"
    "if __name__ == '__main__':\n    args = parse()\n    {start}\n"
)


def test_processes_that_get_no_variable() -> None:
    start = "mp.spawn(worker, nprocs=args.gpus, args=(args,))"
    worker = WORKER.format(more="import torch.multiprocessing as mp\n", takes="rank, ", start=start)
    found = check_told(UnguardedFileIo, LOG, files={"train.py": worker}, path="log.py", reason="mp.spawn sets no RANK")
    assert "os.environ" not in found.reason


def test_processes_of_a_launcher() -> None:
    worker = WORKER.format(more="", takes="", start="worker(args)")
    check_told(UnguardedFileIo, LOG, files={"train.py": worker}, path="log.py", reason='os.environ.get("RANK", 0)')


STAGES = (
    "import lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n"
    "    def on_{filling}_batch_end(self, outputs, batch, batch_idx):\n        self.scores = outputs\n\n"
    "    def on_test_epoch_end(self):\n        with open('scores.txt', 'w') as file:\n            file.write(str(self.scores))\n"
    "        self.log('score', self.scorer.compute(), sync_dist=True)\n"
)


@pytest.mark.parametrize(("filling", "own"), [("test", True), ("validation", False)])
def test_what_the_hooks_of_another_stage_fill(filling: str, own: bool) -> None:  # `trainer.test` runs no validation
    found = findings_of(UnguardedFileIo, STAGES.format(filling=filling), path="net.py")
    assert any("with what this rank has seen" in f.reason for f in found) is own


ROWS = """\
import pandas as pd
from accelerate import Accelerator


class Runs:
    def __init__(self):
        self.accelerator = Accelerator()

    def note(self, score):
        table = pd.read_csv("rows.csv")
        {between}
        table = pd.concat([table, pd.DataFrame([score])])
        table.to_csv("rows.csv")


def main():
    runs = Runs()
    model = runs.accelerator.prepare(build())
    runs.accelerator.backward(model(1))
    runs.note(1)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("between", "alone"), [("pass", True), ("self.best = table.min()", False)])
def test_what_is_read_for_the_write_alone_is_read_on_rank_zero(between: str, alone: bool) -> None:
    (found,) = findings_of(UnguardedFileIo, ROWS.format(between=between))
    assert ("let rank 0 alone read it (line 10), change it and write it" in found.reason) is alone
    assert ("a barrier right above this line" in found.reason) is not alone


COPIED = (
    "import os, shutil, yaml\nimport torch.distributed as dist\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"
    "    rank = dist.get_rank()\n    {above}\n    {made}\n    train(args, settings)\n"
    "    if rank == 0:\n        print('done')\n\n\n"
    "if __name__ == '__main__':\n    main(parse())\n"
)
OF_SOURCE, OF_TARGET = "settings = yaml.safe_load(open(args.given))", "settings = yaml.safe_load(open(args.kept))"


@pytest.mark.parametrize(
    ("above", "made", "waits"),
    [
        (OF_SOURCE, "shutil.copy(args.given, args.kept)", False),
        (OF_SOURCE, "shutil.copyfile(args.given, args.kept)", False),
        ("settings = os.path.isfile(args.given)", "shutil.copy2(args.given, args.kept)", False),
        (OF_TARGET, "shutil.copy(args.given, args.kept)", True),
        (OF_SOURCE, "shutil.move(args.given, args.kept)", True),  # what is moved is gone for those that come later
    ],
)
def test_what_a_copy_reads_is_not_what_it_writes(above: str, made: str, waits: bool) -> None:
    found = findings_of(UnguardedFileIo, COPIED.format(above=above, made=made))
    assert found
    assert any("barrier" in f.reason for f in found) is waits, [f.reason for f in found]


EARLY = (
    "import os\nimport torch.distributed as dist\n\n\ndef main(args):\n    rank = int(os.environ['RANK'])\n    {first}\n"
    "    old = open(args.out).read()\n    with open(args.out, 'w') as f:\n        f.write('begun')\n    {last}\n"
    "    if rank == 0:\n        print(old)\n    train(args, old)\n\n\nif __name__ == '__main__':\n    main(parse())\n"
)


@pytest.mark.parametrize("later", [True, False])
def test_no_barrier_is_advised_above_the_start_of_the_group(later: bool) -> None:
    start = "dist.init_process_group('gloo')"
    source = EARLY.format(first="pass" if later else start, last=start if later else "pass")
    told = "there is no group for a barrier yet" if later else "right above this line"
    found = check_told(UnguardedFileIo, source, reason=told)
    assert ("right above this line" in found.reason) is not later


SHARED = (
    "import json, os\nfrom torch.nn.parallel import DistributedDataParallel\n\n"
    "local_rank = int(os.environ.get('LOCAL_RANK', 0))\n"
    "world = int(os.environ.get('WORLD_SIZE', 1))\n\n\ndef main(args):\n    model = DistributedDataParallel(build(args))\n"
    "    questions = load(args.questions)\n    mine = {mine}\n    answers = []\n    for first in range(0, len(mine), 8):\n"
    "        answers.extend(model.module.answer(mine[first:first + 8]))\n    path = next_free_name(args.out)\n"
    "    with open(path, 'w') as f:\n        for i, answer in enumerate(answers):\n            if args.short:\n"
    "                answer = cut(answer)\n                {given}\n            f.write('\\n')\n"
    "    if local_rank == 0:\n        print('done')\n\n\nif __name__ == '__main__':\n    main(parse())\n"
)


@pytest.mark.parametrize("given", ["json.dump({'answer': answer}, f)", "f.write(answer)"])
@pytest.mark.parametrize(
    ("mine", "own"),
    [
        ("questions[local_rank * len(questions) // world : (local_rank + 1) * len(questions) // world]", True),
        ("questions", False),
    ],
)
def test_each_rank_writes_its_share_to_one_name(mine: str, own: bool, given: str) -> None:
    (found, *_) = findings_of(UnguardedFileIo, SHARED.format(mine=mine, given=given))
    assert ("put the rank into the name" in found.reason) is own, found.reason
    assert ("put the test round the opening" in found.reason) is not own
