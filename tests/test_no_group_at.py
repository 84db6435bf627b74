"""Places at which no process group can be: what DDP301, DDP305 and DDP308 say of the ranks is not so there."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.one_rank_decision import OneRankDecision
from codemods.sync.rank_local_training_state import RankLocalTrainingState
from ddpfix.testing import MAIN, check_nothing, findings_of, project_of

TESTED = """
import torch
import torch.distributed as dist


def score(net, rows):
    for row in rows:
        seen = net(row)
        parts = [torch.zeros_like(seen) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, seen)


def main(args, net, optimizer, rows, path):
    dist.init_process_group("nccl")
    for row in rows:
        net(row).backward()
    if dist.get_rank() == 0 and args.test:
        END
        optimizer.load_state_dict(torch.load(path, map_location="cpu"))
        score(net, rows)
"""
DESTROYS = "dist.destroy_process_group()"
TOLD = (CollectiveUnderRankGuard, RankLocalTrainingState)


@pytest.mark.parametrize("rule", TOLD)
@pytest.mark.parametrize(
    "end",
    [
        DESTROYS,
        f"if args.distributed:\n            {DESTROYS}",
        f"if args.settings['ddp']['distributed']:\n            {DESTROYS}",
        f"if dist.is_initialized():\n            {DESTROYS}",
        f"if args.world_size > 1:\n            {DESTROYS}",
    ],
)
def test_behind_the_end_of_the_group(rule: type[CollectiveUnderRankGuard], end: str) -> None:
    check_nothing(rule, TESTED.replace("END", end))


@pytest.mark.parametrize("rule", TOLD)
@pytest.mark.parametrize(
    "end",
    [
        "print('test')",  # nothing ends it
        f"if args.last:\n            {DESTROYS}",  # else there is a group still
        f"if args.distributed and args.last:\n            {DESTROYS}",
        f"if not args.distributed:\n            {DESTROYS}",
        f"{DESTROYS}\n        dist.init_process_group('gloo')",  # another one
        f"def leave():\n            {DESTROYS}",  # for later
        "dist.destroy_process_group(args.group)",  # one of several
    ],
)
def test_where_a_group_is_or_may_be(rule: type[CollectiveUnderRankGuard], end: str) -> None:
    assert findings_of(rule, TESTED.replace("END", end))


def test_a_way_that_parts_in_front_of_the_end_of_the_group() -> None:
    moved = TESTED.replace("END", "score(net, rows)\n        " + DESTROYS)
    found = findings_of(CollectiveUnderRankGuard, moved)
    assert [f.span.line for f in found] == [18]


SERVER = """
import torch
from flask import Flask, jsonify, request
from trl import set_seed

from nets import make

app = Flask(__name__)
set_seed(0)
net = make()
optimizer = torch.optim.SGD(net.parameters(), 0.1)


@app.route("/learn", methods=["POST"])
def learn():
    for batch in torch.utils.data.DataLoader(request.json["rows"], shuffle=True):
        loss = net(batch).mean()
        if loss != 0:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return jsonify([])


if __name__ == "__main__":
    app.run(port=5000)
"""
# Another program of the repository is one of several processes.
BESIDE = {"train.py": "from accelerate import Accelerator\n\nnet = Accelerator().prepare(make())\n"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("if __name__", "def main():\n    app.run()\n\n\nif __name__"),
        ("app.run(port=5000)", "import uvicorn\n    uvicorn.run(app)"),
    ],
)
def test_a_server_is_one_process(old: str, new: str) -> None:
    check_nothing(OneRankDecision, SERVER.replace(old, new) if old else SERVER, files=BESIDE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    app.run(port=5000)", "    print(app)"),  # nothing serves
        ("    app.run(port=5000)", "    if ready():\n        app.run()"),  # not every process does
        ("import torch", "import torch\nfrom accelerate import Accelerator\n"),
        ("import torch", "import os\nimport torch\n\nfirst = os.environ['RANK'] == '0'\n"),  # it asks for the rank
    ],
)
def test_what_may_be_one_of_several_processes(old: str, new: str) -> None:
    project = project_of(SERVER.replace(old, new), BESIDE)
    module = project.module(MAIN)
    assert module is not None and list(OneRankDecision().find(module, project))  # before it is asked which programs come there


def test_what_a_program_of_several_processes_imports() -> None:
    joins = {"train.py": BESIDE["train.py"] + "from module import learn\n\nlearn()\n"}
    assert findings_of(OneRankDecision, SERVER, joins)
