"""Programs that name CUDA run as ranks on the CPU; what the CPU cannot answer is told, and is no fault of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix.prove.on_cpu import obstacle
from ddpfix.prove.ranks import Ended
from ddpfix.prove.seen import Seen, look
from tests.proofs.harness import TORCH, forked
from tests.prove.programs import needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

HEAD = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["LOCAL_RANK"])
"""
TRAINED = """\
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)){move}
net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
model = DDP(net, device_ids=[rank], output_device=rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for step in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(torch.randn(8, 4, device=f"cuda:{{rank}}")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
total = loss.detach().to(torch.device("cuda:%d" % rank))
dist.all_reduce(total)
torch.cuda.synchronize()
if rank == 0:
    torch.save(model.module.state_dict(), "last.pt")
dist.barrier(device_ids=[rank])
torch.load("last.pt", map_location=f"cuda:{{rank}}")
print(torch.cuda.device_count(), torch.cuda.current_device(), torch.cuda.is_available())
dist.destroy_process_group()
"""


def ran(folder: Path, source: str) -> tuple[Ended, Seen]:
    ended = run(folder, HEAD + source, swap=True, start=forked(*TORCH))
    return ended, look(ended, folder)


@pytest.mark.parametrize(
    "move", [".cuda()", ".cuda(rank)", ".to(rank)", '.to("cuda")', ".to(torch.device('cuda', rank))", ".to(torch.device(rank))"]
)
def test_a_training_that_names_cuda_runs_on_the_cpu(tmp_path: Path, move: str) -> None:
    ended, seen = ran(tmp_path, TRAINED.format(move=move))
    assert seen.ended == "completes", ended.marked()
    assert seen.right and seen.weights == "agree"
    assert seen.steps == 3
    assert [r.stdout for r in ended.ranks] == ["2 0 True\n", "2 1 True\n"]
    assert "CUDA was asked for; the CPU answers for it" in seen.notes
    assert "SyncBatchNorm needs a GPU: each rank normalizes by its own batch here" in seen.notes


def test_a_fault_of_the_program_is_still_seen(tmp_path: Path) -> None:
    source = (
        'torch.cuda.set_device(rank)\ndist.init_process_group("nccl")\nvalue = torch.ones(2).cuda()\n'
        "if rank == 0:\n    dist.all_reduce(value)\nelse:\n    dist.barrier()\n"
    )
    _, seen = ran(tmp_path, source)
    assert seen.ended.startswith("hangs")
    assert seen.order[1].startswith("rank 0 all_reduce of float32 [2] at train.py:11 ")


def test_streams_and_events_have_nothing_to_wait_for(tmp_path: Path) -> None:
    source = (
        "start, end, side = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Stream()\n"
        "start.record()\n"
        "with torch.cuda.stream(side), torch.cuda.device(rank):\n    value = torch.cuda.FloatTensor([1.0]) + 1\n"
        "torch.cuda.current_stream().wait_stream(side)\nend.record()\nend.synchronize()\n"
        "print(value.item(), start.elapsed_time(end) >= 0, torch.cuda.get_device_properties(rank).total_memory > 0)\n"
    )
    ended, seen = ran(tmp_path, source)
    assert [r.stdout for r in ended.ranks] == ["2.0 True True\n"] * 2, ended.marked()
    assert seen.outcome == "completes"


def test_what_is_asked_of_a_gpu_on_the_way_is_answered(tmp_path: Path) -> None:
    source = (
        "import threading\n"
        "dist.init_process_group('nccl')\n"
        "generator = torch.Generator(device='cuda').manual_seed(1)\n"
        "order = torch.randperm(4, generator=generator, device='cuda')\n"
        "out = []\n"
        "thread = threading.Thread(target=lambda: out.append(torch.ones(1).cuda()))\n"
        "thread.start(); thread.join()\n"
        "out[0].record_stream(torch.cuda.current_stream())\n"
        "with torch.cuda.nvtx.range('step'), torch.random.fork_rng(devices=[rank]):\n    torch.rand(1, device=rank)\n"
        "first = torch.cuda.current_device()\n"
        "torch.cuda.set_device(f'cuda:{rank}')\n"
        "with torch.cuda.device(0):\n    within = torch.cuda.current_device()\n"
        "counts = torch.histc(torch.tensor([0, 1, 1], device='cuda'), bins=2, min=0, max=1)\n"
        "torch.cuda.max_memory_allocated(rank), torch.cuda.memory_allocated(), torch.cuda.current_stream(device=rank)\n"
        "out[0].untyped_storage().cuda(rank)\n"
        "torch.cuda.memory.reset_peak_memory_stats()\n"
        "print(counts.tolist(), counts.dtype)\n"
        "print(first, torch.cuda.current_device(), within, torch.cuda.memory_stats()['allocated_bytes.all.peak'])\n"
        "print(isinstance(generator, torch.Generator), isinstance(torch.default_generator, torch.Generator))\n"
        "from torch._inductor.codecache import CacheBase\n"  # asks for what only a real GPU has
        "CacheBase.get_system()\n"
    )
    ended, _ = ran(tmp_path, source)
    said = [f"[1, 2] torch.int64\n0 {rank} 0 0\nTrue True\n" for rank in (0, 1)]
    assert [r.stdout for r in ended.ranks] == said, ended.marked()


def test_gpus_are_counted_by_whatever_the_program_counts_them(tmp_path: Path) -> None:
    source = (
        "import dataclasses, subprocess\n\n@dataclasses.dataclass\nclass Config:\n"
        "    gpus: int = dataclasses.field(default_factory=torch.cuda.device_count)\n\n"
        "print(Config().gpus, len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')), torch.accelerator.device_count())\n"
        "for env in (None, os.environ.copy()):\n"
        "    ask = ['sh', '-c', 'echo \"[$CUDA_VISIBLE_DEVICES]\"']\n"
        "    print(subprocess.run(ask, env=env, capture_output=True, text=True).stdout.strip())\n"
    )
    ended, _ = ran(tmp_path, source)
    assert [r.stdout for r in ended.ranks] == ["2 2 2\n[]\n[]\n"] * 2, ended.marked()


def test_a_device_of_a_number_is_one_for_torch_too(tmp_path: Path) -> None:
    source = (
        "import pickle\nfrom torch import device\n\ndef moved(value: torch.Tensor, to: torch.device) -> torch.Tensor:\n"
        "    return value.to(to)\n\n"
        "here = device(rank)\nprint(here == torch.device('cuda', rank), isinstance(here, device), type(here) == torch.device)\n"
        "print(pickle.loads(pickle.dumps(here)) == here, torch.jit.script(moved)(torch.ones(1), torch.device('cpu')).item())\n"
        "torch.save({'device': here}, f'{rank}.pt')\n"
        "with torch.device(rank):\n    net = torch.nn.Linear(1, 1)\n"
        "kind = torch.accelerator.current_accelerator()\ntorch.accelerator.set_device_index(rank)\n"
        "dist.init_process_group(dist.get_default_backend_for_device(kind), device_id=here)\n"
        "print(kind.type, torch.accelerator.current_device_index() == rank, DDP(net.to(kind)).device_ids)\n"
        "dist.destroy_process_group()\n"
    )
    ended, _ = ran(tmp_path, source)
    assert [r.stdout for r in ended.ranks] == ["True True True\nTrue 1.0\ncuda True None\n"] * 2, ended.marked()


def test_a_framework_chooses_its_device_by_itself(tmp_path: Path) -> None:
    ended, _ = ran(tmp_path, "import sys\nsys.modules['accelerate'] = os\nprint(torch.cuda.is_available())\n")
    assert [r.stdout for r in ended.ranks] == ["False\n"] * 2


def test_a_library_that_is_imported_for_its_models_chooses_nothing(tmp_path: Path) -> None:
    source = "import sys\nsys.modules['transformers'] = sys.modules['acce' + 'lerate'] = os\nprint(torch.cuda.is_available())\n"
    ended, _ = ran(tmp_path, source)
    assert [r.stdout for r in ended.ranks] == ["True\n"] * 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("torch.cuda.CUDAGraph()", "it asks for a CUDA device"),
        ("torch.cuda.get_device_properties(0).uuid", "it asks CUDA for what the CPU cannot answer"),
        ("assert torch.ones(1).cuda().is_cuda, 'a CUDA tensor is needed'", "it asks CUDA for what the CPU cannot answer"),
    ],
)  # fmt: skip
def test_what_the_cpu_cannot_answer_is_no_fault_of_the_program(tmp_path: Path, line: str, said: str) -> None:
    ended, _ = ran(tmp_path, f"{line}\n")
    told = obstacle(ended, tmp_path)
    assert told and told.of_cpu and told.text.startswith(f"on the CPU: {said}, at train.py:7: {line} ("), told
