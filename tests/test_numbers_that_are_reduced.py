"""Numbers that are reduced, divided and settings: none of them is a rank's own."""

from __future__ import annotations

import ast

from codemods.analysis.averages.divided_behind import is_divided_behind
from codemods.analysis.averages.scale import At
from codemods.analysis.class_index import ClassSite
from codemods.analysis.variance.buffers import has_buffers
from codemods.files.source import SourceModule
from codemods.metrics.unreduced_number import UnreducedNumber
from codemods.store.project import Project
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, findings_of

MEAN = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Box:
    def __init__(self, x):
        self.x = x

    def clone(self):
        return Box(self.x)


def reduce_mean(tensor, nprocs):
    rt = tensor.clone()
    {}
    rt /= nprocs
    return rt


def validate(loader, model, nprocs):
    total = 0
    for images, target in loader:
        acc = (model(images).argmax(1) == target).float().mean()
        total += reduce_mean(acc, nprocs).item()
    return total / len(loader)


def worker(rank, nprocs, data):
    dist.init_process_group("nccl", rank=rank, world_size=nprocs)
    model = DDP(build())
    loader = DataLoader(data, sampler=DistributedSampler(data), batch_size=8)
    best = 0
    for epoch in range(3):
        train(loader, model)
        acc = validate(loader, model, nprocs)
        if acc > best:
            best = acc
            if rank == 0:
                torch.save(model.state_dict(), "best.pt")
"""


def test_a_method_of_the_project_is_not_that_of_a_tensor() -> None:
    check_nothing(UnreducedNumber, MEAN.format("dist.all_reduce(rt)"))
    assert findings_of(UnreducedNumber, MEAN.format("pass"))


def divided(*lines: str) -> bool:
    module = SourceModule("a.py", "".join(f"{line}\n" for line in ("dist.all_reduce(t)", *lines)).encode())
    call = next(n for n in ast.walk(module.tree) if isinstance(n, ast.Call))
    return is_divided_behind(At(module, call))


def test_a_division_behind_the_sum() -> None:
    for line in ("t /= world_size", "t = t / dist.get_world_size()", "t.div_(world_size)", "return_(t / num_processes)"):
        assert divided(line)
    for line in ("t /= len(loader)", "u /= world_size", "t *= world_size", "t.div_(count)"):
        assert not divided(line)


NET = "from torch import nn\nfrom timm.models.layers import DropPath, trunc_normal_\nimport timm\n\n\nclass Net(nn.Module):\n"


def buffers(*lines: str) -> bool | None:
    source = NET + "    def __init__(self):\n        super().__init__()\n" + "".join(f"        {line}\n" for line in lines)
    project = Project.of({"net.py": source.encode()})
    module = project.module("net.py")
    assert module is not None
    return has_buffers(project, ClassSite(module, module.nodes(ast.ClassDef)[0]))


def test_layers_of_timm_without_buffers() -> None:
    assert buffers("self.drop = DropPath(0.1)", "trunc_normal_(self.w, std=0.02)") is False
    assert buffers("from timm.models.vision_transformer import Block", "self.blocks = nn.ModuleList([Block(8, 2)])") is False
    assert buffers("from timm.models.swin_transformer import Block", "self.blocks = nn.ModuleList([Block(8, 2)])") is True
    assert buffers("self.body = timm.create_model('resnet50')") is True
    assert buffers("self.drop = DropPath(0.1)", "self.norm = nn.BatchNorm2d(8)") is True


def test_layers_of_graphs_and_numbers_without_buffers() -> None:
    graphs = "from torch_geometric.nn import GINConv, PointNetConv, TransformerConv; import math"
    assert buffers(graphs, "self.conv = GINConv(nn.Linear(8, 8))", "self.scale = math.sqrt(8)") is False
    assert buffers(graphs, "self.conv = TransformerConv(8, 2)", "self.other = PointNetConv()") is None
    assert buffers(graphs, "self.conv = GINConv(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))") is True


SCHEDULE = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def table(steps):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        {}optimizer.step()


def train(model, loader):
    dist.init_process_group("nccl")
    model = DDP(model)
    for x in loader:
        loss = model(x).mean()
        if loss.item() > 3:
            table(9)
        loss.backward()
"""


def test_a_table_of_a_schedule_changes_no_weights() -> None:
    check_nothing(OneRankDecision, SCHEDULE.format(""))
    assert findings_of(OneRankDecision, SCHEDULE.format("model(step).backward()\n        "))
