"""What DDP202 says where no test for rank 0 is sure at the place: each reason is one that the place shows."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = UnguardedFileIo
ACC = "import io, json, os, sys\nimport requests\nimport torch\nfrom accelerate import Accelerator\n\n"
DIST = "import io, json, os, sys\nimport requests\nimport torch\nimport torch.distributed as dist\n\n"


def keeper(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"{ACC}class Keeper(torch.nn.Module):\n    def __init__(self, rows):\n        super().__init__()\n{body}"


WRITE = ("with open('rows.txt', 'w') as f:", "    json.dump(rows, f)")


def test_the_object_that_the_constructor_made() -> None:
    source = keeper("self.accelerator = Accelerator()", *WRITE) + "\n    def fit(self):\n        self.accelerator.prepare(self)\n"
    check_told(RULE, source, reason="this function knows rank 0 by `self.accelerator.is_main_process` (line 9)")


def test_a_rank_that_is_asked_for_below() -> None:
    source = (
        f"{DIST}def put(args):\n    with open('args.json', 'w') as f:\n        json.dump(vars(args), f)\n\n\n"
        "def main(args):\n    dist.init_process_group('gloo')\n    put(args)\n    number = dist.get_rank()\n    return number\n"
    )
    found = findings_of(RULE, source)
    assert all("no test for rank 0 is at hand" not in f.reason for f in found)


def test_a_file_from_the_net_is_no_share() -> None:
    source = (
        f"{DIST}def main(urls):\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n    for url in urls:\n"
        "        answer = requests.get(url)\n        with open(os.path.join('data', url), 'wb') as f:\n"
        "            f.write(answer.content)\n    return rank\n"
    )
    for found in findings_of(RULE, source):
        assert "gather" not in found.reason


def test_a_read_in_the_other_arm_of_a_program_that_ends_behind_the_write() -> None:
    source = (
        f"{DIST}def main(args, rows):\n    dist.init_process_group('gloo')\n    if os.path.exists(args.out):\n"
        "        with open(args.out, 'r') as f:\n            return json.load(f)\n    else:\n"
        "        with open(args.out, 'w') as f:\n            json.dump(rows, f)\n        sys.exit()\n"
    )
    for found in findings_of(RULE, source):
        assert "needs a barrier" not in found.reason


@pytest.mark.parametrize(
    ("line", "told"),
    [("f.write('on ' + str(accelerator.device) + chr(10))", False), ("f.write('started' + chr(10))", True)],
)
def test_lines_of_the_device_are_each_ranks_own(line: str, told: bool) -> None:
    source = f"{ACC}accelerator = Accelerator()\nwith open('log.txt', 'a') as f:\n    {line}\n"
    assert bool(findings_of(RULE, source)) is told


def test_a_buffer_in_memory_is_no_file() -> None:
    source = (
        f"{DIST}def copied(state):\n    kept = io.BytesIO()\n    torch.save(state, kept)\n    return kept\n\n\n"
        "def main(args):\n    dist.init_process_group('gloo')\n    copied(args.state)\n    return dist.get_rank()\n"
    )
    check_nothing(RULE, source)


def test_a_constructor_that_fetches_what_is_not_there_is_a_cache() -> None:
    source = (
        "import os\nimport requests\nimport lightning.pytorch as pl\n\n\nclass Judge(pl.LightningModule):\n"
        "    def __init__(self, path, url):\n        super().__init__()\n        if not os.path.exists(path):\n"
        "            with open(path, 'wb') as f:\n                f.write(requests.get(url).content)\n"
    )
    assert not any("builds this object" in f.message for f in findings_of(RULE, source))


def test_a_log_of_each_rank_stays_outside_the_test() -> None:
    source = (
        f"{DIST}import logging\n\n\ndef main(args, model):\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n"
        "    with open('model.txt', 'w') as f:\n        f.write(str(model))\n    logging.info('it is written')\n    return rank\n"
    )
    for found in findings_of(RULE, source):
        for edit in found.edits:
            assert "logging" not in source.splitlines()[getattr(edit, "last", edit.span).end_line - 1]


OWN_SHARE = """\
import json
import torch


class Reader:
    def __init__(self, net):
        self.net = net

    def score(self, loader, out):
        rows = []
        for batch in {over}:
            rows.{how}(self.net(batch))
        {then}
        put(out, rows)


def put(out, rows):
    with open(out, "w") as f:
        json.dump(rows, f)
"""
STARTED = {
    "train.py": (
        "import torch.distributed as dist\n\nfrom module import Reader\n\n\ndef main(net, args):\n"
        "    dist.init_process_group('nccl')\n    Reader(net).score(args.loader, args.out)\n\n\n"
        "if __name__ == '__main__':\n    main(None, None)\n"
    )
}


@pytest.mark.parametrize("over", ["loader", "enumerate(self.test_loader)", "self.batches(loader)"])
def test_rows_of_the_batches_may_be_a_share(over: str) -> None:
    for how in ("append", "extend"):
        source = OWN_SHARE.format(over=over, how=how, then="pass")
        check_told(RULE, source, files=STARTED, reason="gather the parts first")


@pytest.mark.parametrize(
    ("over", "then"), [("self.names", "pass"), ("loader", "rows = all_gather(rows)"), ("loader", "rows = [0]; broadcast(rows)")]
)
def test_rows_that_are_no_share(over: str, then: str) -> None:
    found = findings_of(RULE, OWN_SHARE.format(over=over, how="append", then=then), files=STARTED)
    assert all("gather the parts" not in f.reason for f in found)


LOCAL = """import logging

from transformers import HfArgumentParser, Trainer, TrainingArguments


def main(model, data):
    (options,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
    {}
    Trainer(model=model, args=options, train_dataset=data).train()


if __name__ == "__main__":
    main(make(), rows())
"""


def test_the_first_rank_of_a_node_that_the_statement_itself_tests() -> None:
    line = "logging.basicConfig(level=10 if options.local_rank in [-1, 0] else 30, filename='train.log', filemode='w')"
    found = check_told(RULE, LOCAL.format(line), reason="knows the first rank of each node by `options.local_rank in [-1, 0]`")
    assert "name the file on that rank alone, the others log without it" in found.reason


def test_a_log_without_a_test() -> None:
    line = "logging.basicConfig(filename='train.log', filemode='w')"
    check_told(RULE, LOCAL.format(line), reason="no test for rank 0 is seen here")


# What is written for each item of a loop

ITEMS = """import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader


def show(model, accelerator: Accelerator, loader):
    for n, batch in enumerate(loader):
        rows = model(batch)
        with open(f"out/{n}.txt", "w") as f:
            f.write(str(rows))


def main(model, rows):
    accelerator = Accelerator()
    loader = LOADER
    train, model = accelerator.prepare(DataLoader(rows), model)
    show(model, accelerator, loader)


if __name__ == "__main__":
    main(make(), rows())
"""


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        ("DataLoader(rows)", "every rank goes through the same items: let rank 0 alone write"),
        ("DataLoader(rows, sampler=sampler_of(rows))", "where each rank has a share of the items"),
        ("DataLoader(rows, **options())", "where each rank has a share of the items"),
        ("loader_of(rows)", "where each rank has a share of the items"),
    ],
)
def test_whose_the_items_of_a_loop_are(loader: str, reason: str) -> None:
    check_told(RULE, ITEMS.replace("LOADER", loader), reason=reason)


HOOK = """\
import os
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def training_step(self, batch, at):
        return self(batch)

    def on_validation_epoch_end(self):
        {test}
        self.on_test_epoch_end()

    def on_test_epoch_end(self):
        run(self)


def run(net):
    task = Probe()
    return task(net)


class Probe:
    def __call__(self, net):
        if os.path.exists("probe.txt"):
            os.remove("probe.txt")


if __name__ == "__main__":
    trainer = pl.Trainer(devices=2)
    trainer.fit(Net())
    trainer.test(Net())
"""


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("if not self.trainer.is_global_zero:\n            return", "where a barrier would hang"),
        ("if self.current_epoch < 3:\n            return", "and put a barrier behind it"),
    ],
)
def test_a_hook_that_rank_zero_calls_as_well(test: str, reason: str) -> None:
    check_told(RULE, HOOK.format(test=test), reason=reason, path="train.py")
