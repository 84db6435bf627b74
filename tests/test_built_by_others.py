"""A cache that a rank builds for itself where it does not find it: nobody waits for the one that writes it."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.files.built_by_others import built_by_others
from ddpfix.testing import project_of

CACHED = """
import os
import torch


def load(args, folder):
    cache = os.path.join(folder, "rows.pt")
    if args.cached and os.path.isfile(cache):
        rows = torch.load(cache)
    else:
        rows = build(folder)
        if args.local_rank in [-1, 0]:
            torch.save(rows, cache)
    return rows
"""


def answer(source: str) -> bool:
    module = project_of(source).module("module.py")
    assert module is not None
    asked = next(c for c in module.nodes(ast.Call) if module.text_of(c).startswith("os.path.isfile"))
    (written,) = module.calls_named("save")
    return built_by_others(module, asked, written)


def test_the_other_arm_builds_it() -> None:
    assert answer(CACHED)
    read, arm = "        rows = torch.load(cache)\n", "    if args.cached and os.path.isfile(cache):\n"
    turned = CACHED.replace(arm + read + "    else:", "    if not os.path.isfile(cache):")
    turned = turned.replace("    return", f"    else:\n{read}    return")
    assert answer(turned)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return rows", "    return torch.load(cache)"),  # it is read behind the test as well
        ("    else:\n        rows = build(folder)\n", "    if args.again:\n        rows = build(folder)\n"),
        ("    if args.cached and os.path.isfile(cache):", "    found = os.path.isfile(cache)\n    if found:"),
    ],
)
def test_the_other_ranks_need_the_file(old: str, new: str) -> None:
    assert not answer(CACHED.replace(old, new))
