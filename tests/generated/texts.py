"""The texts that programs with a training loop of their own are made of."""

from __future__ import annotations

IMPORTS = """\
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms
"""
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3072, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.body(x))

    def encode(self, x):
        return self.body(x)


"""
ENV = """\
import os

import torch
import torch.distributed as dist


def setup_distributed():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


def is_main_process():
    return get_rank() == 0


class Environment:
    @property
    def rank(self):
        return dist.get_rank()

    @property
    def is_main(self):
        return self.rank == 0
"""
ENV_OF_SPAWN = ENV.replace(
    ENV[ENV.index("def setup") : ENV.index("def get_rank")],
    """\
def setup_worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    return torch.device("cuda", rank)


""",
)
PROCESSES = """

class Processes:
    def __init__(self):
        self.device = setup_distributed()
"""
PROCESSES_OF_SPAWN = PROCESSES.replace("self):", "self, rank, world_size):").replace(
    "setup_distributed()", "setup_worker(rank, world_size)"
)
SETUP = {
    ("torchrun", "main"): """\
dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
device = torch.device("cuda", local_rank)
""",
    ("torchrun", "helper"): "device = setup_distributed()\n",
    ("torchrun", "class"): "processes = Processes()\ndevice = processes.device\n",
    ("spawn", "main"): """\
os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "29500"
dist.init_process_group("nccl", rank=rank, world_size=args.gpus)
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
""",
    ("spawn", "helper"): "device = setup_worker(rank, args.gpus)\n",
    ("spawn", "class"): "processes = Processes(rank, args.gpus)\ndevice = processes.device\n",
}
DATA = """\
dataset = datasets.CIFAR10("data", train=True, transform=transforms.ToTensor())
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
"""
HELD_OUT = """\
held_out = datasets.CIFAR10("data", train=False, transform=transforms.ToTensor())
val_loader = DataLoader(held_out, batch_size=8, sampler=DistributedSampler(held_out, shuffle=False))
"""
WRAP = """\
net = Net().to(device)
model = DDP(net, device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
ACCELERATE_DATA = """\
dataset = datasets.CIFAR10("data", train=True, transform=transforms.ToTensor())
loader = DataLoader(dataset, batch_size=8, shuffle=True)
"""
ACCELERATE_HELD_OUT = """\
held_out = datasets.CIFAR10("data", train=False, transform=transforms.ToTensor())
val_loader = accelerator.prepare(DataLoader(held_out, batch_size=8))
"""
ACCELERATE_WRAP = """\
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(net, optimizer, loader)
"""
LOOP = """\
<before>
for epoch in range($args.epochs):
    <set_epoch>
    <epoch>
    $model.train()
    for x, y in $loader:
        <batch>
        loss = F.cross_entropy($model(x), y)
        <loss>
        $optimizer.zero_grad()
        <backward>
        <step>
        $optimizer.step()
    <epoch_end>
<after>
"""
ARGUMENTS = """\
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--gpus", type=int, default=4)
parser.add_argument("--out", default="runs")
"""
