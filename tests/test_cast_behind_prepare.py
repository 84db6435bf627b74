"""DDP505: a model in training that is given another type behind `accelerator.prepare`."""

from __future__ import annotations

import pytest

from codemods.checkpoints.changed_after_wrap import ChangedAfterWrap
from ddpfix.testing import check_nothing, check_told

SOURCE = """\
import torch
from accelerate import Accelerator


def main(args, net, text, loader):
    accelerator = Accelerator()
    if not args.train_text:
        text.requires_grad_(False)
    optimizer = torch.optim.AdamW([*net.parameters(), *text.parameters()] if args.train_text else net.parameters())
    if args.train_text:
        net, text, optimizer, loader = accelerator.prepare(net, text, optimizer, loader)
    else:
        net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    dtype = torch.float32
    if accelerator.mixed_precision == "bf16":
        dtype = torch.bfloat16
    text.to(accelerator.device, dtype=dtype)
    for rows in loader:
        accelerator.backward(net(text(rows)))
        optimizer.step()
"""
CAST = "text.to(accelerator.device, dtype=dtype)"


def test_a_type_behind_prepare() -> None:
    found = check_told(ChangedAfterWrap, SOURCE, reason="in front of `prepare`")
    assert found.message.startswith("where `prepare` is handed it, `text` is given another type, with bf16,")
    found = check_told(ChangedAfterWrap, SOURCE.replace(CAST, "net.to(torch.bfloat16)"), reason="in front of `prepare`")
    assert found.message.startswith("where `prepare` is handed it, `net` is given another type behind")


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("where it is not prepared", CAST, f"if not args.train_text:\n        {CAST}"),
        ("the other model", CAST, "args.vae.to(accelerator.device, dtype=dtype)"),
        ("it stays what it is", "dtype = torch.bfloat16", "dtype = torch.float32"),
        ("the scaler raises an error", "dtype = torch.bfloat16", "dtype = torch.float16"),
        ("nobody trains it", ", *text.parameters()]", "]"),
        ("it is frozen", "    if not args.train_text:\n    ", ""),
        ("of that type in front", "    accelerator =", "    text.to(torch.bfloat16)\n    accelerator ="),
        ("the device alone", CAST, "text.to(accelerator.device)"),
        ("nothing is trained", "accelerator.backward(net(text(rows)))", "net(text(rows))"),
        ("behind the training", f"    {CAST}\n", ""),
    ],
)  # fmt: skip
def test_types_that_are_right_or_not_seen(what: str, old: str, new: str) -> None:
    assert old in SOURCE
    source = SOURCE.replace(old, new)
    check_nothing(ChangedAfterWrap, source if what != "behind the training" else f"{source}    {CAST}\n")
