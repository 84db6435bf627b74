"""Sums over the ranks that a rank leaves out where its own part is empty."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.guards.sums_left_out import sums_left_out
from ddpfix.testing import MAIN, project_of

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch import distributed\n"
ENTRY = "\n\nif __name__ == '__main__':\n    dist.init_process_group('nccl')\n    count(*load())\n"


def found(body: str, *, head: str = "", arguments: str = "files, model, extra", entry: str = ENTRY) -> list[tuple[int, str]]:
    code = f"{HEAD}{head}\n\ndef count({arguments}):\n{textwrap.indent(textwrap.dedent(body), '    ')}{entry}"
    project = project_of(code)
    module = project.module(MAIN)
    assert module is not None
    return [(t.summed.lineno - t.test.lineno, t.part) for t in sums_left_out(project, module)]


LEFT_OVER = """
rest = 0
for file in files:
    rows = read(file)
    first = int(0.9 * len(rows))
    size = len(rows)
    rest += size - first
"""


@pytest.mark.parametrize(
    ("test", "sums"),
    [
        ("rest > 0", "t = torch.tensor(rest).cuda()\n    dist.all_reduce(t)"),
        ("rest != 0", "t = torch.tensor([rest])\n    t = t.to(model)\n    distributed.all_reduce(t, op=dist.ReduceOp.SUM)"),
        ("0 < rest and extra", "dist.all_reduce(torch.as_tensor(rest))"),
        ("rest >= 1", "t = torch.tensor(float(rest))\n    if dist.is_initialized():\n        dist.all_reduce(t)"),
    ],
)
def test_what_is_left_over_of_a_whole(test: str, sums: str) -> None:
    assert [part for _, part in found(f"{LEFT_OVER}\nif {test}:\n    {sums}\n")] == [test.removesuffix(" and extra")]


@pytest.mark.parametrize(
    "count",
    [
        "rest = 0\nfor row in files:\n    rest += (row != 0).sum().item()",
        "rest = 0\nfor row in files:\n    rest += sum(1 for x in row if x)",
        "rest = (files != -100).sum()",
        "rest = torch.count_nonzero(files == 1)",
    ],
)
def test_what_a_test_lets_through(count: str) -> None:
    assert found(f"{count}\nif rest > 0:\n    t = torch.tensor(rest)\n    dist.all_reduce(t)\n")


@pytest.mark.parametrize(
    "count",
    [
        "rest = 0\nfor row in files:\n    rest += 1",  # the batches: as many on every rank, or on none
        "rest = 0\nfor row in files:\n    rest += row.size(0)",
        "rest = len(files)",
        "rest = extra.steps",
        "rest = (files != -100).sum()\ndist.all_reduce(rest)",  # everybody's by then
        "rest = 0\nfor row in files:\n    rest -= (row != 0).sum()",
        "rest = model.weight.sum()",
    ],
)
def test_numbers_that_are_none_on_all_or_on_nobody(count: str) -> None:
    assert not found(f"{count}\nif rest > 0:\n    t = torch.tensor(rest)\n    dist.all_reduce(t)\n")


@pytest.mark.parametrize(
    "block",
    [
        "if rest > 1:\n    dist.all_reduce(torch.tensor(rest))",  # no test of whether there are any
        "if rest > 0:\n    dist.all_reduce(torch.tensor(extra))",  # another number
        "if rest > 0:\n    rest = 3\n    dist.all_reduce(torch.tensor(rest))",
        "if rest > 0:\n    dist.all_reduce(torch.tensor(rest), op=dist.ReduceOp.MAX)",  # may be one number for all
        "if rest > 0:\n    dist.all_reduce(torch.tensor(rest), group=extra)",
        "if rest > 0:\n    t = torch.tensor(rest)\nelse:\n    t = torch.tensor(0)\ndist.all_reduce(t)",
        "if rest > 0:\n    dist.all_reduce(torch.tensor(rest))\nelse:\n    dist.all_reduce(torch.tensor(0))",
        "if rest == 0:\n    print('none')\nelse:\n    print('some')",
        "if dist.get_rank() == 0:\n    if rest > 0:\n        dist.all_reduce(torch.tensor(rest))",  # DDP301 tells of that
    ],
)
def test_other_tests_and_other_sums(block: str) -> None:
    assert not found(f"{LEFT_OVER}\n{block}\n")


@pytest.mark.parametrize(
    ("picks", "test"),
    [
        ("costs = extra.costs[files.bool()]", "costs.numel() > 0"),
        ("costs = extra.costs[files != 0]", "len(costs)"),
        ("costs = extra[files.to(torch.bool)]", "costs.shape[0] > 0"),
        ("costs = torch.masked_select(extra, files)", "costs.size(0) > 0"),
    ],
)
def test_a_selection_by_a_mask(picks: str, test: str) -> None:
    sums = "    mean = costs.mean()\n    if model:\n        sent = mean.cuda()\n        dist.all_reduce(sent)\n"
    assert found(f"{picks}\nif {test}:\n{sums}")


def test_elements_of_a_batch_by_what_they_hold() -> None:
    body = "kept = [f for f in files if not f.empty]\nif len(kept) > 0:\n    boxes = sum(len(k) for k in kept)\n"
    assert found(f"{body}    boxes = torch.as_tensor([boxes])\n    dist.all_reduce(boxes)\n")


@pytest.mark.parametrize(
    "picks",
    [
        "kept = [p for p in files if p.grad is not None]",
        "kept = [p for p in model.parameters() if p.large]",
        "kept = [f for f in files]",  # as many as the batch has
        "kept = files[:4]",
        "kept = [n for n in args.names if n.wanted]",
    ],
)
def test_parts_of_a_model_and_settings(picks: str) -> None:
    body = f"{picks}\nif len(kept) > 0:\n    norm = sum(k.norm() for k in kept)\n    dist.all_reduce(norm)\n"
    assert not found(body, arguments="files, model, args")


def test_a_function_of_the_project_that_sums() -> None:
    head = "\n\ndef total_over_sum(x):\n    dist.all_reduce(x)\n    return x\n"
    assert found("n = (files > 0).sum()\nif n > 0:\n    n_all = total_over_sum(n)\n", head=head)


def test_nobody_runs_it_on_several_ranks() -> None:
    assert not found(f"{LEFT_OVER}\nif rest > 0:\n    print(rest)\n")
