"""Programs whose loop is a framework's: Lightning's Trainer, and that of Hugging Face."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator

from tests.generated.records import Holes, Program, Shape, filled, marked

_LIGHTNING_MODULE = """\
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import $package as pl
from torch.utils.data import DataLoader, TensorDataset
<imports>


<helpers>
class Callback(pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        epoch = trainer.current_epoch
        <in_callback>


class LitNet(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(32, 64)
        self.head = nn.Linear(64, 4)
        self.out = "runs"
        <init>

    def forward(self, x):
        return self.head(F.relu(self.body(x)))

    def on_fit_start(self):
        self.started = True
        <before>

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        <step>
        return loss

    def on_train_epoch_end(self):
        epoch = self.current_epoch
        <epoch_end>

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        <validation>
        return loss

    def on_validation_epoch_end(self):
        epoch = self.current_epoch
        <validation_end>

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


"""
_LIGHTNING_MAIN = """\
def main():
    dataset = TensorDataset(torch.randn(4096, 32), torch.randint(0, 4, (4096,)))
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    checkpoint = pl.callbacks.ModelCheckpoint(dirpath="checkpoints")
    <data>
    model = LitNet()
    <trainer>
    trainer.fit(model, loader, loader)
    <after>


if __name__ == "__main__":
    main()
"""
_LIGHTNING_TRAINER = """\
trainer = pl.Trainer(devices=4, accelerator="gpu", strategy="ddp", max_epochs=10, callbacks=[Callback(), checkpoint])
"""
_HF = """\
import os

import torch
import torch.distributed as dist
from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
<imports>


<helpers>
class Callback(TrainerCallback):
    def on_epoch_end(self, args, state, control, **kwargs):
        epoch = int(state.epoch)
        <epoch_end>


class OwnTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        loss = outputs.loss
        <step>
        return (loss, outputs) if return_outputs else loss


def main():
    tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    data = load_dataset("imdb").map(lambda row: tokenizer(row["text"], truncation=True))
    args = TrainingArguments(output_dir="runs", num_train_epochs=3)
    <before>
    trainer = OwnTrainer(
        model=model, args=args, train_dataset=data["train"], processing_class=tokenizer, callbacks=[Callback()]
    )
    <trainer>
    trainer.train()
    <after>


if __name__ == "__main__":
    main()
"""
_FIRST = {
    "trainer": {"member": "self.trainer.is_global_zero", "rank": "self.global_rank == 0", "torch": "dist.get_rank() == 0"},
    "callback": {"member": "trainer.is_global_zero", "rank": "trainer.global_rank == 0", "torch": "dist.get_rank() == 0"},
    "hf": {"member": "state.is_world_process_zero", "rank": "args.process_index == 0", "torch": "dist.get_rank() == 0"},
}
_RANKS = ("member", "rank", "torch")


def shapes() -> Iterator[Shape]:
    for start, setup, rank, place in itertools.product(
        ("lightning", "pytorch_lightning"), ("main", "file"), _RANKS, ("module", "callback")
    ):
        yield Shape("lightning", start, setup, rank, place)
    for start, rank in itertools.product(("torchrun", "torchrun_shell"), _RANKS):
        yield Shape("trainer", start, "main", rank, "function")


def program(shape: Shape, holes: Holes) -> Program:
    return _lightning(shape, holes) if shape.frame == "lightning" else _hugging_face(shape, holes)


def _lightning(shape: Shape, holes: Holes) -> Program:
    package = "pytorch_lightning" if shape.start == "pytorch_lightning" else "lightning.pytorch"
    module = {"trainer": "self.trainer", "rank": "self.global_rank", "first": _FIRST["trainer"][shape.rank], "own": "self"}
    module |= {"world": "self.trainer.world_size", "wait": "self.trainer.strategy.barrier()", "model": "self", "inner": "self"}
    module |= {"package": package, "reduce": "total = self.all_gather(total).sum()", "device": "self.device", "out": "self.out"}
    called = {k: v.replace("self.trainer", "trainer").replace("self.", "pl_module.") for k, v in module.items()}
    called |= {"first": _FIRST["callback"][shape.rank], "model": "pl_module", "inner": "pl_module", "own": "pl_module"}
    after = module | {"first": "trainer.is_global_zero", "rank": "trainer.global_rank", "wait": "trainer.strategy.barrier()"}
    after |= {"model": "model", "inner": "model", "own": "model", "out": "model.out", "world": "trainer.world_size"}
    holes = {"trainer": _LIGHTNING_TRAINER} | dict(holes)
    if shape.place == "callback":
        holes = {("in_callback" if k == "epoch_end" else k): v for k, v in holes.items()}
        holes["in_callback"] = filled("<in_callback>", holes, called)
    text = filled(_LIGHTNING_MODULE, holes, module)
    main = filled(_LIGHTNING_MAIN, holes, after)
    if shape.setup == "main":
        return marked({"train.py": text + main})
    head = f"import torch\nimport {package} as pl\nfrom module import Callback, LitNet\n"
    "from torch.utils.data import DataLoader, TensorDataset\n"
    return marked({"module.py": text, "train.py": head + filled("<imports>", holes, {}) + "\n\n" + main})


def _hugging_face(shape: Shape, holes: Holes) -> Program:
    words = {
        "first": _FIRST["hf"][shape.rank],
        "rank": "args.process_index",
        "world": "args.world_size",
        "wait": "dist.barrier()",
    }
    words |= {"model": "kwargs['model']", "inner": "kwargs['model']", "reduce": "dist.all_reduce(total)", "device": "args.device"}
    words |= {"own": "self", "out": "args.output_dir"}
    here = words | {"first": words["first"].replace("state.is_world_process_zero", "trainer.is_world_process_zero()")}
    made = {k: filled(f"<{k}>", holes, here) for k in ("after", "before") if k in holes}
    return marked({"train.py": filled(_HF, {**holes, **made}, words)} | _launch(shape))


def _launch(shape: Shape) -> dict[str, str]:
    command = "torchrun --nproc_per_node=4 train.py\n"
    if shape.start == "torchrun":
        return {"README.md": textwrap.dedent(f"# Train\n\n```bash\n{command}```\n")}
    return {"run.sh": f"#!/bin/bash\n{command}"}
