from __future__ import annotations

import pytest

from codemods.metrics.one_slot_gathered import OneSlotGathered
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "import torch\nimport torch.distributed as dist\n\n"


def gathers(parts: str, call: str = "dist.all_gather(parts, x)", between: str = "") -> str:
    middle = f"    {between}\n" if between else ""
    return f"{HEAD}def put_together(x, n, rank, buffer):\n    parts = {parts}\n{middle}    {call}\n    return parts\n"


def test_example_of_the_page() -> None:
    sections = OneSlotGathered.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(OneSlotGathered, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[torch.zeros_like(x)] * n", "[torch.zeros_like(x) for _ in range(n)]"),
        ("n * [torch.empty_like(x)]", "[torch.empty_like(x) for _ in range(n)]"),
        ("[torch.zeros(3).cuda()] * dist.get_world_size()", "[torch.zeros(3).cuda() for _ in range(dist.get_world_size())]"),
        ("[x.new_zeros(x.shape)] * n", "[x.new_zeros(x.shape) for _ in range(n)]"),
        ("[x.clone()] * n if n else None", "[x.clone() for _ in range(n)] if n else None"),
    ],
)
def test_a_tensor_for_each_rank(before: str, after: str) -> None:
    check_transformed(OneSlotGathered, gathers(before), gathers(after))


@pytest.mark.parametrize(
    "call",
    ["dist.all_gather(tensor_list=parts, tensor=x)", "dist.gather(x, parts, dst=0)", "dist.gather(x, gather_list=parts)",
     "dist.all_to_all(parts, x)", "torch.distributed.all_gather(parts, x)"],
)  # fmt: skip
def test_the_calls_that_write_into_a_list(call: str) -> None:
    before, after = (gathers(p, call) for p in ("[torch.ones_like(x)] * n", "[torch.ones_like(x) for _ in range(n)]"))
    check_transformed(OneSlotGathered, before, after)


def test_a_list_in_the_call_itself() -> None:
    source = f"{HEAD}def put_together(x, n):\n    dist.all_gather([torch.zeros_like(x)] * n, x)\n"
    after = source.replace("[torch.zeros_like(x)] * n", "[torch.zeros_like(x) for _ in range(n)]")
    check_transformed(OneSlotGathered, source, after)


def test_the_own_entry_put_in_behind_the_gather() -> None:
    """The usual way to keep the gradient of the own part: it leaves the other entries as they are."""
    before, after = (
        gathers(p, "dist.all_gather(parts, x)\n    parts[rank] = x")
        for p in ("[torch.zeros_like(x)] * n", "[torch.zeros_like(x) for _ in range(n)]")
    )
    check_transformed(OneSlotGathered, before, after)


def test_a_name_gets_copies() -> None:
    check_transformed(OneSlotGathered, gathers("[buffer] * n"), gathers("[buffer.clone() for _ in range(n)]"), unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[buffer for _ in range(n)]", "[buffer.clone() for _ in range(n)]"),
        ("[buffer for i in range(dist.get_world_size())]", "[buffer.clone() for i in range(dist.get_world_size())]"),
        ("[x.detach() for _ in range(n)]", "[x.detach().clone() for _ in range(n)]"),
        ("[x.data for _ in range(n)]", "[x.data.clone() for _ in range(n)]"),
        ("[x for _ in ranks] if n else None", "[x.clone() for _ in ranks] if n else None"),
        ("[\n        x\n        for _ in range(n)\n    ]", "[\n        x.clone()\n        for _ in range(n)\n    ]"),
    ],
)
def test_a_name_gets_copies_in_a_comprehension(before: str, after: str) -> None:
    check_transformed(OneSlotGathered, gathers(before), gathers(after), unsafe=True)


def test_a_name_that_holds_something_else_behind_the_gather() -> None:
    before, after = (
        gathers(p, "dist.all_gather(parts, x)\n    parts = torch.cat(parts)")
        for p in ("[x for _ in range(n)]", "[x.clone() for _ in range(n)]")
    )
    check_transformed(OneSlotGathered, before, after, unsafe=True)


def test_a_list_of_each_round() -> None:
    source = (
        f"{HEAD}def score(batches, n):\n    for x in batches:\n        parts = [SLOT for _ in range(n)]\n"
        "        dist.all_gather(parts, x)\n        parts = torch.cat(parts)\n        yield parts.mean()\n"
    )
    before, after = (source.replace("SLOT", slot) for slot in ("x", "x.clone()"))
    check_transformed(OneSlotGathered, before, after, unsafe=True)


@pytest.mark.parametrize("parts", ["[make_slot(x)] * n", "[self.slot] * n", "[torch.zeros_like(_)] * n"])
def test_what_is_no_plain_making_is_told(parts: str) -> None:
    check_told(OneSlotGathered, gathers(parts), reason="makes a tensor for each rank")


@pytest.mark.parametrize(
    "source",
    [
        gathers("[None] * n", "dist.all_gather_object(parts, x)"),
        gathers("[None] * n"),
        gathers("[torch.zeros_like(x) for _ in range(n)]"),
        gathers("[torch.zeros_like(x)] * 1"),
        gathers("[x for _ in range(1)]"),
        gathers("[slot for slot in buffer]"),
        gathers("[slot.data for slot in buffer]"),
        gathers("[slot for rows in buffer for slot in rows]"),
        gathers("[buffer[i] for i in range(n)]"),
        gathers("[buffer.clone() for _ in range(n)]"),
        gathers("[buffer.detach().clone() for _ in range(n)]"),
        gathers("[x for _ in range(n)]", "dist.all_gather_object(parts, x)"),
        gathers("[x for _ in range(n)]", between="parts = [torch.zeros_like(p) for p in parts]"),
        gathers("[x for _ in range(n)]", between="parts[rank] = torch.zeros_like(x)"),
        gathers("[torch.zeros_like(x)] * n", between="parts[rank] = torch.zeros_like(x)"),
        gathers("[torch.zeros_like(x)] * n", between="parts = [torch.zeros_like(x) for _ in range(n)]"),
        gathers("[torch.zeros_like(x)] * n", "other.all_gather(parts, x)"),
        gathers("[torch.zeros_like(x)] * n", "dist.reduce_scatter(x, parts)"),
        gathers("[torch.zeros_like(x), torch.zeros_like(x)] * n"),
        f"{HEAD}def put_together(parts, x):\n    dist.all_gather(parts, x)\n",
    ],
)
def test_lists_that_are_fine(source: str) -> None:
    check_nothing(OneSlotGathered, source)


def test_not_in_tests() -> None:
    check_nothing(OneSlotGathered, gathers("[torch.zeros_like(x)] * n"), path="tests/test_a.py")
