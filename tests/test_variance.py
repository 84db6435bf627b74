"""The analysis of values that differ between the ranks: small programs, and what is known of their `probe(...)`."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest

from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.mismatches import Form, mismatches_in
from codemods.analysis.variance.values import Cause, Proof, Value
from codemods.runtime.deep_stack import with_deep_stack
from codemods.store.project import Project

HEAD = """\
import time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
loader = DataLoader(rows, sampler=DistributedSampler(rows))
"""


def project_of(program: str) -> Project:
    return Project.of({"train.py": (HEAD + textwrap.dedent(program)).encode()})


def probed(program: str) -> Value:
    """What the analysis knows of the argument of `probe(...)`."""
    project = project_of(program)
    module = project.module("train.py")
    assert module is not None
    call = next(c for c in module.nodes(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == "probe")
    return variance(project).argument(module, call, 0)


DIFFER = {
    "a counter of own rows, where nobody waits": (
        "n = 0\nfor row in rows[rank::world]:\n    n += 1\nprobe(n)",
        Cause.DATA,
    ),
    "a counter behind a meeting of some": (
        "n = 0\nfor row in rows[rank::world]:\n    if row.sum() > 0:\n        dist.barrier()\n    n += 1\nprobe(n)",
        Cause.DATA,
    ),
    "a counter under Join": (
        "from torch.distributed.algorithms.join import Join\nn = 0\nwith Join([model]):\n"
        "    for row in rows[rank::world]:\n        dist.all_reduce(total)\n        n += 1\nprobe(n)",
        Cause.DATA,
    ),
    "what a meeting loop keeps of the rows": (
        "best = 0\nfor row in rows[rank::world]:\n    dist.barrier()\n    best = max(best, row.sum())\nprobe(best)",
        Cause.DATA,
    ),
    "an own entry that one way puts in": (
        "out = {'a': 1, 'now': time.time()}\nif wanted:\n    out['b'] = time.time()\nprobe(out['b'])",
        Cause.PLACE,
    ),
    "an own part of an entry": (
        "out = {'a': {'x': 1}, 'now': time.time()}\nout['a']['x'] = time.time()\nprobe(out['a'])",
        Cause.PLACE,
    ),
    "an assignment": ("x = rank\nprobe(x)", Cause.RANK),
    "the environment": ("import os\nslot = int(os.environ['LOCAL_RANK'])\nprobe(slot)", Cause.RANK),
    "the environment, asked": ("import os\nslot = int(os.environ.get('RANK', 0))\nprobe(slot)", Cause.RANK),
    "the environment of Slurm": ("import os\nslot = os.getenv('SLURM_PROCID')\nprobe(slot)", Cause.RANK),
    "a batch": ("for batch in loader:\n    probe(batch)", Cause.DATA),
    "a sum of batches": ("total = 0\nfor batch in loader:\n    total += batch.sum()\nprobe(total / len(loader))", Cause.DATA),
    "a parameter": ("def f(x):\n    probe(x)\nfor batch in loader:\n    f(batch)", Cause.DATA),
    "the rest of a batch": ("rest = [1]\nfor batch in loader:\n    a, *rest = batch\n    probe(rest)", Cause.DATA),
    "a result": ("def f(x):\n    return x * 2\nfor batch in loader:\n    probe(f(batch))", Cause.DATA),
    "a field": (
        "class A:\n    def __init__(self):\n        self.start = time.time()\n    def f(self):\n        probe(self.start)",
        Cause.PLACE,
    ),
    "a meter": (
        "class Meter:\n    def __init__(self):\n        self.sum = 0\n    def update(self, x):\n        self.sum += x\n"
        "    @property\n    def avg(self):\n        return self.sum\nmeter = Meter()\nfor batch in loader:\n"
        "    meter.update(batch.mean())\nprobe(meter.avg)",
        Cause.DATA,
    ),
    "a part of a tuple": ("a, b = 1, time.time()\nprobe(b)", Cause.PLACE),
    "what a closure sees": (
        "def f():\n    start = time.time()\n    def inner():\n        probe(start)\n    inner()",
        Cause.PLACE,
    ),
    "an entry beside those of all ranks": (
        "out = {k: 0 for k in 'ab'}\nfor batch in loader:\n    out['loss'] = batch.mean()\nprobe(out['loss'])", Cause.DATA,
    ),
    "a dict that takes up an own one": (
        "out = {k: 0 for k in 'ab'}\nfor batch in loader:\n    out['n'] = 1\n    out.update(one(batch))\nprobe(out['loss'])",
        Cause.DATA,
    ),
    "a text with a place": ("probe('{}.pth'.format(rank))", Cause.RANK),
    "a share": ("mine = rows[rank::world]\nprobe(len(mine))", Cause.DATA),
    "a counter of unequal shares": ("for i, row in enumerate(rows[rank::world]):\n    pass\nprobe(i)", Cause.DATA),
    "an entry of a dict": ("config = {}\nconfig['rank'] = rank\nprobe(config['rank'])", Cause.RANK),
    "an entry of a dict, under a constant": (
        "import keys\nconfig = {}\nconfig[keys.RANK] = rank\nprobe(config[keys.RANK])", Cause.RANK,
    ),
    "an entry of a dict, got under a constant": (
        "SLOT = 'slot'\nconfig = {}\nconfig[SLOT] = rank\nprobe(config.get(SLOT))", Cause.RANK,
    ),
    "an entry under a name that a loop gives": (
        "config = {}\nfor key in keys:\n    config[key] = rank\nprobe(config['lr'])", Cause.RANK,
    ),
    "own data under another constant": (
        "import keys\nout = made()\nfor batch in loader:\n    out[keys.LOSS] = batch.mean()\nprobe(out)", Cause.DATA,
    ),
    "a sample without rows": (
        "for images, targets in loader:\n    probe(any(len(t) < 1 for t in targets))", Cause.DATA,
    ),
    "a sample without boxes": (
        "for i, (images, targets) in enumerate(loader):\n    targets = [{k: v.to(0) for k, v in t.items()} for t in targets]\n"
        "    probe(all(t['boxes'].shape[0] > 0 for t in targets))", Cause.DATA,
    ),
    "a sample of a batch by its key": (
        "for batch in loader:\n    for image, marks in zip(batch['image'], batch['marks']):\n        probe(len(marks) == 0)",
        Cause.DATA,
    ),
    "the first sample": (
        "for batch in loader:\n    images, targets = batch\n    marks = targets[0]['marks']\n    probe(marks.numel() == 0)",
        Cause.DATA,
    ),
    "a list of batches": ("seen = []\nfor batch in loader:\n    seen.append(batch.mean())\nprobe(sum(seen))", Cause.DATA),
    "a signal": (
        "import signal\nflag = {'stop': False}\ndef on(signum, frame):\n    flag['stop'] = True\n"
        "signal.signal(signal.SIGTERM, on)\nprobe(flag['stop'])",
        Cause.PLACE,
    ),
    "a way of two": ("x = None if rank else 1\nprobe(x)", Cause.RANK),
    "a sum that one rank has": ("for batch in loader:\n    x = batch.sum()\n    dist.reduce(x, 0)\n    probe(x)", Cause.RANK),
}

SAME = {
    "a counter of a loop in which all meet": (
        "n = 0\nfor row in rows[rank::world]:\n    dist.all_reduce(total)\n    n += 1\nprobe(n)"
    ),
    "a counter of steps with gradients": (
        "from torch.nn.parallel import DistributedDataParallel\nmodel, step = DistributedDataParallel(net), 0\n"
        "for i, row in enumerate(rows[rank::world]):\n    if fast:\n        scaler.scale(model(row)).backward()\n    else:\n"
        "        model(row).backward()\n    if (i + 1) % every == 0:\n        step += 1\nprobe(step)"
    ),
    "a field that counts steps in which all meet": (
        "class A:\n    def run(self):\n        self.step = 0\n        for row in rows[rank::world]:\n"
        "            dist.barrier()\n            self.step += 1\n        probe(self.step)"
    ),
    "the number of the last round in which all met": (
        "for i, row in enumerate(rows[rank::world]):\n    dist.barrier()\nprobe(i)"
    ),
    "an entry of all, beside one that one way puts in": (
        "out = {'a': 1, 'now': time.time()}\nif wanted:\n    out['b'] = 2\nprobe(out['a'])"
    ),
    "an entry of all that a field holds": (
        "class A:\n    def __init__(self, rows, wanted):\n        self.cfg = {'lr': 1, 'run': {'at': time.time()}}\n"
        "        if wanted:\n            self.cfg['rows'] = 3\n        else:\n            self.cfg['more'] = 4\n"
        "        probe(self.cfg['lr'])"
    ),
    "another entry than the one of which a part is own": (
        "out = {'a': {'x': 1}, 'x': 2, 'now': time.time()}\nout['a']['x'] = time.time()\nprobe(out['x'])"
    ),
    "another entry of a dict of all ranks": (
        "def ends(found):\n    out = {k: 0 for k in 'ab'}\n    out['table'] = found\n    return out\n"
        "def run(wanted):\n    out = None\n    for batch in loader:\n        if wanted:\n            out = ends(batch)\n"
        "        if out is not None:\n            probe(out['loss'])"
    ),
    "a file in a folder that bears the time": "import numpy as np\nprobe(np.load(f'{time.time()}/scores.npy')[0])",
    "a text without a place": "probe('last.pth'.format(rank))",
    "the epoch of the rank's own checkpoint": "state = torch.load(f'{rank}.pth')\nprobe(state['epoch'] > 3)",
    "the world": "probe(world)",
    "the world of the environment": "import os\nprobe(int(os.environ['WORLD_SIZE']))",
    "another variable": "import os\nprobe(os.environ.get('RANKING', 0))",
    "an option of that name": "probe(options.get('NUM_RANK'))",
    "a counter": "for i, batch in enumerate(loader):\n    probe(i)",
    "the rest of what is given anew": "for batch in loader:\n    a, *rest = batch\na, *rest = 1, 2, 3\nprobe(rest)",
    "the length of a padded loader": "probe(len(loader))",
    "a reduction in place": "for batch in loader:\n    x = batch.sum()\n    dist.all_reduce(x)\n    probe(x)",
    "a reduction of a list": (
        "for batch in loader:\n    a = batch.sum()\n    for t in [a]:\n        dist.all_reduce(t)\n    probe(a)"
    ),
    "a helper that reduces in place": (
        "def equal(t):\n    dist.all_reduce(t)\nfor batch in loader:\n    x = batch.sum()\n    equal(x)\n    probe(x)"
    ),
    "a helper by its name": "for batch in loader:\n    probe(reduce_mean(batch.sum()))",
    "a part of a tuple": "a, b = 1, time.time()\nprobe(a)",
    "another entry": "config = {}\nconfig['lr'] = 1\nconfig['rank'] = rank\nprobe(config['lr'])",
    "a number of batches, where a loader has one": (
        "from transformers.trainer_utils import has_length\nsteps = None\nif has_length(loader):\n    steps = len(loader)\n"
        "probe(begun % steps)"
    ),
    "another entry, under a constant": (
        "import keys\nconfig = {}\nconfig[keys.LR] = 1\nconfig[keys.RANK] = rank\nprobe(config[keys.LR])"
    ),
    "what takes up a dict with the rank under a constant": (
        "class Keys:\n    RANK, MODES = 'rank', 'modes'\ndef run(config):\n    probe(config[Keys.MODES])\n"
        "given, whole = read(path), {}\ngiven[Keys.RANK] = rank\nwhole.update(given)\nrun(whole)"
    ),
    "the number of samples": "for images, targets in loader:\n    probe(len(targets) < 1)",
    "the parts of a batch, one by one": "for batch in loader:\n    probe(any(len(part) < 1 for part in batch))",
    "the number of samples under a key": "for batch in loader:\n    probe(len(batch['image']) == 0)",
    "batches of two loaders": (
        "for a, b in zip(loader, loader):\n    probe(any(len(part) == 0 for part in a))"
    ),
    "how long a sample is, which may be padded": "for rows, marks in loader:\n    probe(all(len(row) == 512 for row in rows))",
    "samples that are gathered": (
        "for images, targets in loader:\n    targets = accelerator.gather_for_metrics(targets)\n"
        "    probe(any(len(t) < 1 for t in targets))"
    ),
    "an entry that is given anew": "stats = {'loss': 0}\nstats['loss'] = 1\nprobe(stats['loss'])",
    "a share that divides": "n = len(rows) // world\nmine = rows[rank * n:(rank + 1) * n]\nprobe(len(mine))",
    "a dict with the rank": "settings = {'rank': rank, 'lr': 1}\nprobe(settings.get('lr'))",
    "a dict with the rank of the environment": "import os\nprobe({'slot': int(os.environ['RANK']), 'lr': 1})",
    "a place": "probe(f'cuda:{rank}')",
    "what a thing is": "for batch in loader:\n    probe(isinstance(batch, dict))",
    "a meter that reduces": (
        "class Meter:\n    def __init__(self):\n        self.sum = 0\n    def update(self, x):\n        self.sum += x\n"
        "    def average(self):\n        dist.all_reduce(self.sum)\n        return self.sum\nmeter = Meter()\n"
        "for batch in loader:\n    meter.update(batch.mean())\nprobe(meter.average())"
    ),
    "a value gathered": (
        "parts = [None] * world\nfor batch in loader:\n    dist.all_gather_object(parts, batch.mean())\n    probe(sum(parts))"
    ),
}


@pytest.mark.parametrize("name", DIFFER)
def test_a_value_that_differs(name: str) -> None:
    program, cause = DIFFER[name]
    value = probed(program)
    assert value.differs and value.cause is cause
    assert value.chain  # each tells the way that it came


@pytest.mark.parametrize("name", SAME)
def test_a_value_that_is_the_same(name: str) -> None:
    assert not probed(SAME[name]).differs


def test_a_name_alone_is_less_than_a_proof() -> None:
    assert probed("def f(model, x):\n    loss = model(x)\n    probe(loss)").proof < Proof.PROVEN
    assert probed("probe(rank)").proof is Proof.PROVEN


FORMS = {
    "for batch in loader:\n    if batch.sum() > 0:\n        dist.barrier()": [Form.DECIDES],
    "for batch in loader:\n    if batch.sum() > 0:\n        continue\n    dist.barrier()": [Form.LEAVES],
    "for row in rows[rank::world]:\n    dist.barrier()": [Form.ROUNDS],
    "for batch in loader:\n    if batch is not None:\n        dist.barrier()": [Form.DECIDES],
    "for batch in loader:\n    if 'mask' in batch:\n        dist.barrier()": [],
    "for batch in loader:\n    dist.barrier()": [],
    "for i in range(world):\n    if i == rank:\n        print(rank)\n    dist.barrier()": [],
    "for batch in loader:\n    x = batch.sum()\n    dist.all_reduce(x)\n    if x > 0:\n        dist.barrier()": [],
    "try:\n    work()\nexcept ImportError:\n    work = None\ndist.barrier()": [],
}


@pytest.mark.parametrize("program", FORMS)
def test_where_the_ranks_part(program: str) -> None:
    project = project_of(program)
    module = project.module("train.py")
    assert module is not None
    assert [m.form for m in mismatches_in(project, module)] == FORMS[program]


def test_an_exception_on_one_rank() -> None:
    body = "    try:\n        work(batch)\n        dist.barrier()\n    except RuntimeError:\n        continue"
    project = project_of(f"for batch in loader:\n{body}")
    module = project.module("train.py")
    assert module is not None
    assert Form.RAISES in [m.form for m in mismatches_in(project, module)]


def handed_down(count: int) -> str:
    functions = "".join(f"def down{n}(x):\n    return down{n + 1}(x)\n" for n in range(count))
    return f"for batch in loader:\n    down0(batch.sum().item())\n{functions}def down{count}(x):\n    probe(x)\n"


def handed_up(count: int) -> str:
    functions = "".join(f"def up{n}():\n    return up{n + 1}()\n" for n in range(count))
    return f"for batch in loader:\n    own = batch.sum().item()\n    probe(up0())\n{functions}def up{count}():\n    return own\n"


@pytest.mark.parametrize("count", [4, 40])
@pytest.mark.parametrize("program", [handed_down, handed_up])
def test_a_value_is_followed_through_any_number_of_calls(program: Callable[[int], str], count: int) -> None:
    """A limit would make the answer hang on the function that is asked about first."""
    assert with_deep_stack(lambda: probed(program(count)).cause) is Cause.DATA


CAUGHT_UP = """
first = 0
sent = torch.zeros(size)
dist.broadcast(sent, src=root)
if rank != root:
    first = torch.load(sent)
probe(first)
"""


def test_the_others_take_what_the_root_has_sent() -> None:
    assert not probed(CAUGHT_UP).differs
    assert probed(CAUGHT_UP.replace("torch.load(sent)", "torch.load(path)")).cause is Cause.RANK
    assert probed(CAUGHT_UP.replace("rank != root", "rank == root")).cause is Cause.RANK
    assert probed(CAUGHT_UP.replace("dist.broadcast(sent, src=root)", "dist.barrier()")).cause is Cause.RANK


READ = """
try:
    state = torch.load(path)
    first = state["epoch"]
except {0}:
    first = 0
probe(first)
"""


def test_a_file_that_is_not_there_is_there_on_no_rank() -> None:
    assert not probed(READ.format("FileNotFoundError")).differs
    assert probed(READ.format("RuntimeError")).cause is Cause.PLACE


def test_a_function_that_answers_under_a_test_and_else_gives_nothing() -> None:
    program = """
        def bad(loss):
            if loss > 10:
                return True
            if loss < -10:
                return True

        for batch in loader:
            probe(bad(model(batch).sum()))
    """
    assert probed(program).differs


@pytest.mark.parametrize(
    "end",
    [
        "return True",
        "raise ValueError(loss)",
        "with open(name) as rows:\n        return True",
        "try:\n        return True\n    except OSError:\n        return True",
        "while True:\n        return True",
    ],
)
def test_a_function_that_gives_the_same_on_all_ways(end: str) -> None:
    program = f"""
def sure(loss):
    if loss > 10:
        return True
    if loss < -10:
        return True
    {end}

for batch in loader:
    probe(sure(model(batch).sum()))
"""
    assert not probed(program).differs


HANDED_OUT = """
def score(model, rows):
    total = 0
    for x in rows:
        total += x.mean().item()
    return total > 3


def main(model):
    train, validate = engine_of(settings)
    for epoch in range(9):
        dist.barrier()
        stop = {0}
        if stop:
            break
"""


@pytest.mark.parametrize(
    ("asked", "forms"),
    [
        ("score(model, loader)", [Form.LEAVES]),
        ("validate(next(iter(loader)))", [Form.LEAVES]),
        ("validate(model, loader)", []),  # it may gather
        ("validate(data_loader=loader)", []),
    ],
)
def test_a_function_that_is_handed_out_may_gather_what_comes_of_a_loader(asked: str, forms: list[Form]) -> None:
    project = project_of(HANDED_OUT.format(asked))
    module = project.module("train.py")
    assert module is not None
    assert [m.form for m in mismatches_in(project, module)] == forms
