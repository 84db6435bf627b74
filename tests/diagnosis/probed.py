"""Training programs to probe: a raw one, Lightning, transformers, Accelerate; each with a branch left out, and without."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from codemods.api.evidence import EvidenceFile, from_json
from tests.programs import ddpfix
from tests.proofs.harness import TORCH, warm_python

QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}

RAW = """\
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 1)
        # aux: self.aux = nn.Linear(8, 2)

    def forward(self, x):
        h = self.drop(self.norm(self.body(x)))
        # aux: return self.head(h), self.aux(h)
        return self.head(h), h


os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(Net(), find_unused_parameters=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(30):
    y, other = model(torch.randn(4, 8))
    loss = y.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), flush=True)
del model
dist.destroy_process_group()
"""

LIGHTNING = """\
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        # aux: self.other = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.layer(x)
        # aux: out = out + self.other(x) if batch_idx % 2 else out
        loss = torch.nn.functional.mse_loss(out, y)
        print(batch_idx, loss.item(), flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


pl.seed_everything(0)
data = torch.randn(120, 4)
loader = DataLoader(TensorDataset(data, data.sum(1, keepdim=True)), batch_size=4, shuffle=True)
trainer = pl.Trainer(
    accelerator="cpu", devices=1, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Lit(), loader)
"""

HF = """\
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Classifier(BertForSequenceClassification):
    def __init__(self, config):
        super().__init__(config)
        # aux: self.second = torch.nn.Linear(config.hidden_size, 2)
        self.post_init()

    def forward(self, **inputs):
        out = super().forward(**inputs)
        print(out.loss.item(), flush=True)
        return out


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, i):
        return {"input_ids": torch.arange(8) + i % 20, "labels": i % 2}


set_seed(0)
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
arguments = TrainingArguments(
    "out", use_cpu=True, per_device_train_batch_size=4, num_train_epochs=1, report_to=[], save_strategy="no",
    logging_strategy="no", disable_tqdm=True, remove_unused_columns=False,
)
trainer = Trainer(model=Classifier(config), args=arguments, train_dataset=Data())
trainer.train()
"""

ACCELERATE = """\
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import set_seed
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)
        # aux: self.aux = nn.Linear(8, 2)

    def forward(self, x):
        h = self.body(x)
        # aux: return {"y": self.head(h), "aux": self.aux(h)}
        return {"y": self.head(h)}


set_seed(0)
accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([torch.randn(8) for _ in range(120)], batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for step, x in enumerate(loader):
    loss = model(x)["y"].pow(2).mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
"""


def with_branch(source: str) -> str:
    """The program with its branch that no loss, or not every loss, uses."""
    return source.replace("# aux: ", "")


# what the programs import, beyond the first module of each framework
MODULES = (
    *TORCH, "lightning.pytorch", "transformers", "transformers.trainer",
    "transformers.models.bert.modeling_bert", "accelerate",
)  # fmt: skip


def plain(folder: Path, source: str) -> subprocess.CompletedProcess[bytes]:
    """The program as its author runs it: nothing of ddpfix is in its process."""
    (folder / "train.py").write_text(source)
    command = [warm_python("", *MODULES), "train.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, env={**os.environ, **QUIET})


def watched_python() -> str:
    """A Python that has imported the frameworks, with the probe's hook there first."""
    return warm_python("_ddpfix_probe", *MODULES)


def probe(
    folder: Path, source: str, *words: str, command: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[bytes], EvidenceFile | None]:
    """`ddpfix probe` as a user runs it, and what it wrote."""
    (folder / "train.py").write_text(source)
    command = command or (watched_python(), "train.py")
    done = ddpfix(folder, "probe", *words, "--out", "seen.json", "--", *command, env=QUIET)
    seen = folder / "seen.json"
    return done, from_json(seen.read_text(), file="seen.json") if seen.exists() else None


def last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode().splitlines()[-1]
