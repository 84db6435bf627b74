"""DDP717: what a parent and the workers that it spawns take for their own of each other's memory."""

from __future__ import annotations

import pytest

from codemods.launch.memory_of_each_process import MemoryOfEachProcess
from ddpfix.testing import check_nothing, check_told

HEAD = """\
import json
import numpy as np
import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

"""
WORKER = """\
def worker(rank, size, model, curve):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    model = model_of(model, rank)
    for step in range(9):
        curve.append(step)


"""


def test_example_of_the_page() -> None:
    sections = MemoryOfEachProcess.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(MemoryOfEachProcess, before, reason="mp.Manager()")
    check_nothing(MemoryOfEachProcess, after)


FILLS = [
    ("curve.append(rank)", "[]"),
    ("curve += [rank]", "[]"),
    ("curve['loss'].append(1.0)", "{'loss': [], 'best': None}"),
    ("curve['best'] = 1.0", "dict()"),
    ("curve[rank] = 0.5", "[0.0] * size"),
    ("curve[rank] = 0.5", "np.zeros(size)"),
    ("curve.update(best=1)", "{}"),
    ("note(curve, rank)", "[]"),
]
READS = ["print(curve[0])", "plt.plot(curve)", "json.dump({'c': curve}, open('a.json', 'w'))", "return curve",
         "for row in curve:\n        print(row)", "best = max(curve)",
         "fig, ax = plt.subplots()\n    ax.plot(curve)\n    print(len(curve))"]  # fmt: skip


def filled(fill: str, made: str, read: str, start: str = "mp.spawn(worker, args=(size, curve), nprocs=size)") -> str:
    return HEAD + (
        f"def note(rows, value):\n    rows.append(value)\n\n\n"
        f"def worker(rank, size, curve):\n    dist.init_process_group('gloo', rank=rank, world_size=size)\n    {fill}\n\n\n"
        f"def launch(size):\n    curve = {made}\n    {start}\n    {read}\n"
    )


@pytest.mark.parametrize(("fill", "made"), FILLS)
def test_what_the_workers_fill(fill: str, made: str) -> None:
    check_told(MemoryOfEachProcess, filled(fill, made, READS[0]), reason="queue")


@pytest.mark.parametrize("read", READS)
def test_how_the_parent_reads(read: str) -> None:
    check_told(MemoryOfEachProcess, filled("curve.append(rank)", "[]", read), reason="queue")


@pytest.mark.parametrize(
    "start",
    [
        "mp.start_processes(worker, args=(size, curve), nprocs=size, start_method='spawn')",
        "mp.spawn(fn=worker, nprocs=size, args=[size, curve], start_method='fork')",
        "mp.set_start_method('spawn')\n    ps = [mp.Process(target=worker, args=(r, size, curve)) for r in range(size)]\n"
        "    for p in ps:\n        p.start()\n    for p in ps:\n        p.join()",
        "ctx = mp.get_context('spawn')\n    p = ctx.Process(target=worker, args=(0, size, curve))\n    p.start()\n    p.join()",
    ],
)
def test_how_they_are_started(start: str) -> None:
    check_told(MemoryOfEachProcess, filled("curve.append(rank)", "[]", READS[0], start), reason="queue")


@pytest.mark.parametrize(
    "made",
    ["mp.Manager().list()", "mp.Queue()", "mp.Array('d', size)", "torch.zeros(size)", "torch.zeros(size).share_memory_()",
     "load_curve(size)", "[3.0, 2.0]", "[torch.zeros(1) for _ in range(size)]"],
)  # fmt: skip
def test_what_is_shared_or_unknown(made: str) -> None:
    check_nothing(MemoryOfEachProcess, filled("curve[rank] = 1.0", made, READS[0]))


@pytest.mark.parametrize(
    "read",
    [
        "pass",  # nobody reads it
        "curve = json.load(open('curve.json'))\n    print(curve[0])",  # what the workers wrote to a file
        "curve.extend(json.load(open('curve.json')))\n    print(curve[0])",
        "note(curve, 1)\n    print(curve[0])",  # the parent fills it itself
        "reader.collect(curve)\n    print(curve[0])",  # or hands it to what may
        "other = curve\n    fetch(other)\n    print(curve[0])",
    ],
)
def test_what_the_parent_fills_itself(read: str) -> None:
    check_nothing(MemoryOfEachProcess, filled("curve.append(rank)", "[]", read))


@pytest.mark.parametrize(
    "start",
    [
        "mp.start_processes(worker, args=(size, curve), nprocs=size, start_method='fork')",
        "mp.spawn(worker, args=(size, curve), nprocs=size, join=False)",  # told by whoever joins it
        "if size == 1:\n        worker(0, size, curve)\n    else:\n        mp.spawn(worker, args=(size, curve), nprocs=size)",
        "mp.spawn(worker, args=(size, list(curve)), nprocs=size)",
        "ctx = mp.get_context('fork')\n    p = ctx.Process(target=worker, args=(0, size, curve))\n    p.start()\n    p.join()",
        "if size > 1:\n        mp.spawn(worker, args=(size, curve), nprocs=size)\n        return",
    ],
)
def test_other_starts(start: str) -> None:
    check_nothing(MemoryOfEachProcess, filled("curve.append(rank)", "[]", READS[0], start))


def test_a_worker_that_only_reads() -> None:
    check_nothing(MemoryOfEachProcess, filled("print(curve)", "[]", READS[0]))


def of_the_file(*, worker: str, main: str, made: str = "LOSSES = []", more: str = "") -> str:
    return HEAD + (
        f"{made}\n\n\ndef worker(rank, size):\n    dist.init_process_group('gloo', rank=rank, world_size=size)\n    {worker}\n"
        f"    dist.destroy_process_group()\n\n\n{more}"
        f"if __name__ == '__main__':\n    mp.spawn(worker, args=(2,), nprocs=2)\n    {main}\n"
    )


def test_a_list_of_the_file() -> None:
    check_told(MemoryOfEachProcess, of_the_file(worker="LOSSES.append(rank)", main="plt.plot(LOSSES)"), reason="queue")


@pytest.mark.parametrize(
    ("worker", "main"),
    [
        ("LOSSES.append(rank)", "print('done')"),
        ("LOSSES = []\n    LOSSES.append(rank)", "plt.plot(LOSSES)"),  # a list of its own
        ("LOSSES.append(rank)\n    json.dump(LOSSES, open('l.json', 'w'))", "plt.plot(json.load(open('l.json')))"),
    ],
)
def test_lists_of_the_file_that_are_right(worker: str, main: str) -> None:
    check_nothing(MemoryOfEachProcess, of_the_file(worker=worker, main=main))


def test_an_attribute_of_a_function() -> None:
    check_told(MemoryOfEachProcess, of_the_file(worker="worker.best = 0.5", main="print(worker.best)"), reason="queue")
    check_nothing(MemoryOfEachProcess, of_the_file(worker="worker.best = 0.5\n    print(worker.best)", main="print('done')"))
    check_nothing(
        MemoryOfEachProcess,
        of_the_file(worker="worker.best = 0.5", main="print(worker.best)", more="worker.best = None\n\n\n"),
    )


BLOCK = """\
def worker(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    step(rank)


def step(rank):
    {read}


{more}if __name__ == "__main__":
    {bound}
    mp.spawn(worker, args=(2,), nprocs=2)
"""


@pytest.mark.parametrize(
    ("bound", "read"),
    [
        ("cfg = {'lr': 0.1}", "print(cfg['lr'])"),
        ("import argparse\n    cfg = argparse.ArgumentParser().parse_args()", "print(cfg.lr, rank)"),
        ("with open('c.json') as f:\n        cfg = json.load(f)", "if rank == 0:\n        print(cfg)"),
    ],
)
def test_names_of_the_main_block(bound: str, read: str) -> None:
    check_told(MemoryOfEachProcess, HEAD + BLOCK.format(bound=bound, read=read, more=""), reason="argument")


def test_a_module_cannot_be_handed_to_the_worker() -> None:
    bound = "import wandb\n    wandb.init()"
    text = HEAD + BLOCK.format(bound=bound, read="wandb.log({'rank': rank})", more="")
    check_told(MemoryOfEachProcess, text, reason="the worker needs its own")
    from_it = HEAD + BLOCK.format(bound="from shapes import cfg", read="return [cfg for _ in range(rank)]", more="")
    check_told(MemoryOfEachProcess, from_it, reason="import it at the top of the file")


@pytest.mark.parametrize(
    ("bound", "read", "more"),
    [
        ("cfg = {'lr': 0.1}", "cfg = {}\n    print(cfg)", ""),
        ("cfg = {'lr': 0.1}", "print(cfg)", "cfg = None\n\n\n"),
        ("cfg = {'lr': 0.1}", "try:\n        print(cfg)\n    except NameError:\n        print('none')", ""),
        ("cfg = {'lr': 0.1}", "print([cfg for cfg in range(3)])", ""),
        ("cfg = {'lr': 0.1}", "print(globals().get('cfg'))", ""),
        ("cfg = {'lr': 0.1}", "print(cfg)", "if __name__ == '__mp_main__':\n    cfg = {}\n\n\n"),
        ("cfg = {'lr': 0.1}", "pass", "def shown():\n    print(cfg)\n\n\n"),  # the parent alone comes there
        ("id = 3", "print(id(rank))", ""),
        ("cfg = 1", "from shapes import cfg\n    print(cfg)", ""),
        ("cfg = 1", "print(rank)", ""),
        ("from shapes import Shape", "shape: Shape = shape_of(rank)\n    print(shape)", ""),
    ],
)
def test_names_that_the_workers_have(bound: str, read: str, more: str) -> None:
    check_nothing(MemoryOfEachProcess, HEAD + BLOCK.format(bound=bound, read=read, more=more))


def test_forked_processes_see_the_main_block() -> None:
    text = (HEAD + BLOCK.format(bound="cfg = 1", read="print(cfg)", more="")).replace(
        "mp.spawn(worker, args=(2,), nprocs=2)", "mp.start_processes(worker, args=(2,), nprocs=2, start_method='fork')"
    )
    check_nothing(MemoryOfEachProcess, text)


MODEL = """\
def worker(rank, size, model):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    {move}
    wrapped = DDP(model, device_ids=[rank])
    train(wrapped)


def main(size):
    model = torch.nn.Linear(4, 2){made}
    mp.spawn(worker, args=(size, model), nprocs=size)
    {read}
"""


@pytest.mark.parametrize("move", ["model.to(rank)", "model = model.cuda(rank)", "model = model.to(rank)"])
@pytest.mark.parametrize("read", ["torch.save(model.state_dict(), 'm.pt')", "print(model(torch.ones(4)))"])
def test_a_model_on_the_cpu(move: str, read: str) -> None:
    check_told(MemoryOfEachProcess, HEAD + MODEL.format(move=move, read=read, made=""), reason="load them here")


@pytest.mark.parametrize(
    ("move", "read", "made"),
    [
        ("model.to('cpu')", "torch.save(model.state_dict(), 'm.pt')", ""),  # its parameters stay shared
        ("pass", "torch.save(model.state_dict(), 'm.pt')", ""),
        ("model.to(rank)", "torch.save(model.state_dict(), 'm.pt')", ".cuda()\n    model.cuda()"),  # shared on the GPU of rank 0
        ("model.to(rank)", "torch.save(model.state_dict(), 'm.pt')", "\n    model.to(pick_device())"),
        ("model.to(rank)", "torch.save(model.state_dict(), 'm.pt')", "\n    model.share_memory()"),
        ("model.to(rank)", "model.load_state_dict(torch.load('m.pt'))\n    print(model(torch.ones(4)))", ""),
        ("model.to(rank)", "restore(model)\n    torch.save(model.state_dict(), 'm.pt')", ""),
        ("model.to(rank)", "print('done')", ""),
        ("model.to(rank)", "model = torch.load('m.pt')\n    print(model(torch.ones(4)))", ""),
    ],
)
def test_models_that_are_shared_or_loaded(move: str, read: str, made: str) -> None:
    check_nothing(MemoryOfEachProcess, HEAD + MODEL.format(move=move, read=read, made=made))


def test_a_worker_may_destroy_its_group() -> None:
    check_nothing(MemoryOfEachProcess, of_the_file(worker="print(rank)", main="print('done')"))
