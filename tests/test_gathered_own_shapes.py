from __future__ import annotations

import pytest

from codemods.metrics.unpadded_gather import UnpaddedGather
from ddpfix.testing import check_nothing, check_told

HEAD = """import math
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


"""
PADDED = """

def collect(x):
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(x)]))
    most = max(int(s) for s in sizes)
    x = torch.nn.functional.pad(x, (0, most - len(x)))
    found = [torch.empty_like(x) for _ in sizes]
    dist.all_gather(found, x)
    return torch.cat([f[: int(s)] for f, s in zip(found, sizes)])
"""
PLAIN = """

def collect(x):
    found = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(found, x)
    return torch.cat(found)
"""


def shares(*lines: str, rows: str = "rows[dist.get_rank()::dist.get_world_size()]", below: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEAD}def embed(model, rows):\n    dist.init_process_group('nccl')\n    mine = {rows}\n    found = []\n"
        f"    for row in mine:\n        found.append(model(row))\n{body}{below}"
    )


def batches(*lines: str, below: str = "", data: str = "dataset") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}def evaluate(model, {data}):\n    dist.init_process_group('nccl')\n"
        "    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))\n"
        f"    kept = []\n    for x, labels in loader:\n        scores = model(x)\n{body}{below}"
    )


OUT = "out = [torch.empty_like({x}) for _ in range(dist.get_world_size())]"


def gathered(x: str) -> tuple[str, str]:
    return OUT.format(x=x), f"dist.all_gather(out, {x})"


@pytest.mark.parametrize(
    "source",
    [
        shares("every = torch.cat(found)", *gathered("every")),
        shares("every = torch.stack(found).cuda()", *gathered("every")),
        shares("every = torch.tensor(found)", "return collect(every)", below=PLAIN),
        shares(
            "every = torch.cat(found)", "out = torch.empty(9, 4)", "dist.all_gather_into_tensor(out, every)"
        ),
        shares(
            "every = torch.cat(found)",
            *gathered("every"),
            rows="rows[dist.get_rank() * math.ceil(len(rows) / dist.get_world_size()) :"
            "(dist.get_rank() + 1) * math.ceil(len(rows) / dist.get_world_size())]",
        ),
        shares(
            "every = torch.cat(found)",
            *gathered("every"),
            rows="[r for i, r in enumerate(rows) if i % dist.get_world_size() == dist.get_rank()]",
        ),
    ],
)
def test_a_list_as_long_as_the_own_share(source: str) -> None:
    check_told(UnpaddedGather, source, reason="a share that is padded before the loop")


@pytest.mark.parametrize(
    "source",
    [
        batches("picked = scores[labels > 0]", *gathered("picked")),
        batches("seen = labels != -100", "picked = scores[seen].float()", *gathered("picked")),
        batches("picked = torch.masked_select(scores, labels.ne(0))", *gathered("picked")),
        batches("picked = scores[(labels > 0) & (labels < 9)]", "return collect(picked)", below=PLAIN),
        batches("classes = torch.unique(labels)", *gathered("classes")),
        batches("where = torch.nonzero(labels == 3)", *gathered("where")),
        batches("rows = torch.where(labels == 3)[0]", "picked = scores[rows]", *gathered("picked")),
        batches("kept.append(scores[labels > 0])", below="    every = torch.cat(kept)\n    return collect(every)\n" + PLAIN),
        batches("sure = scores.max(1)[0] > 0.9", *gathered("scores[sure]")),
    ],
)
def test_what_the_own_data_let_through(source: str) -> None:
    check_told(UnpaddedGather, source, reason="drop the padding behind the gather")


@pytest.mark.parametrize("take", ["dist.all_reduce(counts)", "dist.all_gather([torch.empty_like(counts)] * 2, counts)"])
def test_as_many_bins_as_the_largest_label(take: str) -> None:
    check_told(UnpaddedGather, batches("counts = torch.bincount(labels)", take), reason="minlength=classes")
    check_nothing(UnpaddedGather, batches("counts = torch.bincount(labels, minlength=9)", take))


ACCELERATE = """from accelerate import Accelerator


def evaluate(model, loader):
    accelerator = Accelerator()
    model, loader = accelerator.prepare(model, loader)
    for batch in loader:
        labels = batch["labels"]
        guesses = model(batch["x"]).argmax(-1)
        seen = labels != -100
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "all_guesses = accelerator.gather(guesses[seen])",
        "g, l = accelerator.gather_for_metrics((guesses[seen], labels[seen]))",
    ],
)
def test_accelerate_pads_over_the_processes(line: str) -> None:
    check_told(UnpaddedGather, ACCELERATE.format(line=line), reason="pad_across_processes")


@pytest.mark.parametrize(
    "line",
    [
        "all_guesses = accelerator.gather(accelerator.pad_across_processes(guesses[seen], dim=0))",
        "all_guesses = accelerator.gather_for_metrics(guesses)",
        "all_guesses = accelerator.gather_for_metrics(guesses.cpu().numpy()[seen.cpu().numpy()])",
        "all_guesses = accelerator.gather_for_metrics(guesses[seen], use_gather_object=True)",
        "hits = accelerator.gather(guesses[seen].float().mean())",
        "hits = accelerator.gather((guesses[seen] == labels[seen]).sum())",
    ],
)
def test_accelerate_with_one_shape_on_all_ranks(line: str) -> None:
    check_nothing(UnpaddedGather, ACCELERATE.format(line=line))


def test_a_lightning_module_gathers() -> None:
    source = (
        "import lightning as L\nimport torch\n\n\nclass Net(L.LightningModule):\n    def validation_step(self, batch, index):\n"
        "        x, labels = batch\n        scores = self.net(x)\n        picked = scores[labels > 0]\n"
        "        every = self.all_gather({})\n        return every\n"
    )
    check_told(UnpaddedGather, source.format("picked"), reason="drop the padding behind the gather")
    check_nothing(UnpaddedGather, source.format("scores"))
    check_nothing(UnpaddedGather, source.format("picked.sum()"))


EVEN = "rows[: len(rows) // dist.get_world_size() * dist.get_world_size()][dist.get_rank()::dist.get_world_size()]"


@pytest.mark.parametrize(
    "source",
    [
        shares("every = torch.cat(found)", *gathered("every"), rows=EVEN),
        shares("every = torch.cat(found)", "return collect(every)", below=PADDED),
        shares("every = torch.cat(found)", "parts = [None] * 2", "dist.all_gather_object(parts, every)"),
        shares("count = torch.tensor([len(found)])", *gathered("count")),
        shares("total = torch.stack(found).sum(0)", *gathered("total")),
        shares(
            "every = torch.cat(found)",
            "n = torch.tensor([every.shape[0]])",
            "sizes = [torch.empty_like(n) for _ in range(dist.get_world_size())]",
            "dist.all_gather(sizes, n)",
            "out = [torch.empty(int(s), 4) for s in sizes]",
            "dist.all_gather(out, every)",
        ),
        shares("every = torch.cat(found)", "every = fill_up(every, 100)", *gathered("every")),
        shares("every = torch.cat(found)", "if len(every) < 9:", "    every = longer(every)", *gathered("every")),
        shares("every = torch.cat(found)", *gathered("every"), rows="rows"),
        batches("kept.append(scores)", below="    every = torch.cat(kept)\n    return collect(every)\n" + PLAIN),
        batches("picked = scores[labels > 0].sum()", *gathered("picked")),
        batches("picked = scores[scores >= scores.topk(5)[0][-1]]", *gathered("picked")),
        batches("own = labels[:, None] == torch.arange(9)", "picked = scores[own]", *gathered("picked")),
        batches("mask = ~torch.eye(8, dtype=torch.bool)", "picked = scores[mask]", *gathered("picked")),
        batches("picked = scores[labels]", *gathered("picked")),
        batches("picked = scores[labels > 0][:5]", *gathered("picked")),
        batches("picked = torch.where(labels > 0, scores, 0)", *gathered("picked")),
        batches("hits = torch.tensor([(labels > 0).sum(), len(labels)])", *gathered("hits")),
        batches("for x in every:", "    picked = x[labels > 0]", *gathered("picked")),
    ],
)
def test_one_shape_on_all_ranks_stays(source: str) -> None:
    check_nothing(UnpaddedGather, source)


def test_one_process_and_own_tests_stay() -> None:
    alone = "def pick(x, labels, store):\n    return store.all_gather(x[labels > 0])\n"
    check_nothing(UnpaddedGather, alone)
    check_nothing(UnpaddedGather, batches("picked = scores[labels > 0]", *gathered("picked")), path="tests/test_a.py")
