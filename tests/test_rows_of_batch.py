"""DDP605: rows of a batch that are gathered under a name which does not speak of samples."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_transformed

HEAD = "import torch\nimport torch.nn.functional as F\nfrom accelerate import Accelerator\n\n\n"
CHUNKS = """\
def by_chunks(size, rows, forward):
    return torch.cat([forward(rows[i : i + size]) for i in range(0, rows.shape[0], size)], dim=0)


"""
GENERATES = (
    "ids = model.generate(batch['tokens'])",
    "ids = F.pad(ids, (0, 64 - ids.shape[-1]))",
    "bag.add(accelerator.gather(ids).cpu())",
)
CHUNKED = (
    "frames = batch.to(accelerator.device).permute(0, 2, 1)",
    "if frames.shape[0] > 8:",
    "    feats = by_chunks(8, frames, model)",
    "else:",
    "    feats = model(frames)",
    "both = accelerator.gather(feats)",
    "bag.add(both)",
)


def evaluation(lines: tuple[str, ...], loop: str = "for batch in loader:") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}{CHUNKS}@torch.no_grad()\ndef evaluate(accelerator, model, loader, bag, styles):\n    {loop}\n{body}\n\n"
        "def main(model, loader, raw, bag, styles):\n    accelerator = Accelerator()\n"
        "    model, loader = accelerator.prepare(model, loader)\n    evaluate(accelerator, model, loader, bag, styles)\n"
    )


def replaced(lines: tuple[str, ...], old: str, new: str) -> str:
    source = evaluation(lines)
    assert old in source
    return source.replace(old, new)


def gathers_for_metrics(before: str) -> None:
    check_transformed(GatheredDuplicates, before, before.replace(".gather(", ".gather_for_metrics("), unsafe=True)


@pytest.mark.parametrize("lines", [GENERATES, CHUNKED])
@pytest.mark.parametrize("loop", ["for batch in loader:", "for i, batch in enumerate(loader):"])
def test_rows_by_what_they_are_made_of(lines: tuple[str, ...], loop: str) -> None:
    gathers_for_metrics(evaluation(lines, loop))


@pytest.mark.parametrize(
    "lines",
    [
        (*GENERATES, "bag.add(accelerator.gather(batch['tokens']))"),  # goes together with the first
        ("for style in styles:", *(f"    {line}" for line in GENERATES)),
        ("data = {k: v.cuda() for k, v in batch.items()}", *(line.replace("batch", "data") for line in GENERATES)),
        ("ids = model.generate(batch)", "ids = accelerator.pad_across_processes(ids, dim=1)", "bag.add(accelerator.gather(ids))"),
        ("feats = by_chunks(rows=batch, size=2, forward=model)", "bag.add(accelerator.gather(feats))"),
    ],
)
def test_rows_in_other_spellings(lines: tuple[str, ...]) -> None:
    gathers_for_metrics(evaluation(lines))


def test_a_loader_that_the_class_prepares() -> None:
    body = "".join(f"            {line}\n" for line in GENERATES).replace("accelerator.", "self.accelerator.")
    gathers_for_metrics(
        f"{HEAD}class Runner:\n    def __init__(self, model, loader):\n        self.accelerator = Accelerator()\n"
        "        self.model, self.loader = self.accelerator.prepare(model, loader)\n\n"
        f"    def validate(self, model, bag):\n        model.eval()\n        for batch in self.loader:\n{body}"
    )


@pytest.mark.parametrize(
    ("lines", "old", "new"),
    [
        (GENERATES, "evaluate(accelerator, model, loader, bag", "evaluate(accelerator, model, raw, bag"),  # not prepared
        (GENERATES, "batch['tokens'])", "bag.prompts)"),  # the same tokens in each round
        (GENERATES, "batch['tokens'])", "batch['tokens'], num_return_sequences=4)"),
        (GENERATES, "(0, 64 - ids.shape[-1])", "(0, 0, 0, 64 - len(ids))"),
        (GENERATES, "bag.add(accelerator.gather(ids).cpu())", "bag.add(accelerator.gather(ids).sum())"),
        (GENERATES, "bag.add(accelerator.gather(ids).cpu())", "key = bag.key(batch)\n        bag[key] = accelerator.gather(ids)"),
        (GENERATES, "model.generate(batch['tokens'])", "model(batch['tokens'])"),  # may be one number
        (GENERATES, "ids = F.pad", "ids, _ = F.pad"),
        (CHUNKED, "by_chunks(8, frames, model)", "model(frames.half())"),
        (CHUNKED, "by_chunks(8, frames, model)", "by_chunks(8, bag.frames, model)"),
        (CHUNKED, "feats = model(frames)", "feats = bag.mean"),
        (CHUNKED, "feats = model(frames)", "feats = model(bag.frames)"),
        (CHUNKED, "dim=0)", "dim=1)"),
        (CHUNKED, "bag.add(both)", "bag.add(both[: bag.left])"),
    ],
)
def test_what_may_be_no_row_for_each_sample(lines: tuple[str, ...], old: str, new: str) -> None:
    check_nothing(GatheredDuplicates, replaced(lines, old, new))


def test_nothing_of_a_training() -> None:
    source = evaluation((*GENERATES, "accelerator.backward(model(batch))"))
    check_nothing(GatheredDuplicates, source.replace("@torch.no_grad()\n", ""))
