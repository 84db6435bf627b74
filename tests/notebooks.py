"""Notebooks for tests, written the way Jupyter, Colab, Kaggle and others write them; and what a reader of one sees of it."""

from __future__ import annotations

import json
from typing import Any

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

SETUP = """\
%matplotlib inline
!pip install -q torch
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp"""
TRAIN = """\
def train(rank, world_size):
    dist.init_process_group("nccl", "tcp://127.0.0.1:29500", rank=rank, world_size=world_size)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3).cuda())
    for epoch in range(3):
        model(torch.rand(3)).sum().backward()
        print("epoch", epoch)
    torch.save(model.state_dict(), "model.pt")
    dist.destroy_process_group()"""
LAUNCH = '%%time\nprint("start")\nmp.spawn(train, args=(2,), nprocs=2)'
GUARDED = TRAIN.replace('        print("e', '        if rank == 0:\n            print("e').replace(
    "    torch.save(", "    if rank == 0:\n        torch.save("
)


def code(source: str, **more: Any) -> dict[str, Any]:
    """A code cell with an output, as Jupyter holds it."""
    output = {"name": "stdout", "output_type": "stream", "text": ["caf\u00e9 \u4e2d\n", "100%|###| <b>&amp;</b>\n"]}
    picture = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": "iVBORw0KGgo=\n" * 3, "text/plain": ["<Figure>"]},
    }
    cell = {"cell_type": "code", "execution_count": 7, "id": f"c{len(source)}", "metadata": {"scrolled": True}}
    return {**cell, "outputs": [output, picture], "source": source.splitlines(keepends=True), **more}


def text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}


def notebook(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5, **more}


def jupyter(made: dict[str, Any]) -> bytes:
    return (json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def colab(made: dict[str, Any]) -> bytes:
    """Colab: two blanks, keys in its own order, no line end at the end of the file."""
    order = ("cell_type", "source", "metadata", "execution_count", "outputs")
    cells = [{key: cell[key] for key in order if key in cell} for cell in made["cells"]]
    head = {"nbformat": 4, "nbformat_minor": 0, "metadata": {"accelerator": "GPU", "colab": {"provenance": []}, **KERNEL}}
    return json.dumps({**head, "cells": cells}, indent=2, ensure_ascii=False).encode()


def kaggle(made: dict[str, Any]) -> bytes:
    """Kaggle: one line, the source of a cell as one string."""
    cells = [{**cell, "source": "".join(cell["source"])} for cell in made["cells"]]
    return json.dumps({**made, "cells": cells}, separators=(",", ":"), ensure_ascii=False).encode()


def escaped(made: dict[str, Any]) -> bytes:
    """Everything beyond ASCII, and what HTML reads, as escapes; tabs; Windows line ends in the file."""
    dumped = json.dumps(made, indent="\t", ensure_ascii=True) + "\n"
    return dumped.replace("<", "\\u003c").replace("&", "\\u0026").replace("\n", "\r\n").encode()


WRITERS = (jupyter, colab, kaggle, escaped)


def sources(data: bytes) -> list[str]:
    """The text of each cell, as Jupyter would show it."""
    return ["".join(cell["source"]) for cell in json.loads(data.decode("utf-8-sig"))["cells"]]


def without_sources(data: bytes) -> Any:
    """All that a change of code must leave alone."""
    whole = json.loads(data.decode("utf-8-sig"))
    for cell in whole["cells"]:
        del cell["source"]
    return whole


TRAINING = notebook(text("# Training\n\nOn *two* GPUs.\n"), code(SETUP), text("print('no code')"), code(TRAIN), code(LAUNCH))
