from __future__ import annotations

import pytest

from codemods.metrics.dropped_reduction import DroppedReduction
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch\nimport torch.distributed as dist\nfrom accelerate import Accelerator\nfrom functools import reduce\n\n\n"


def loop(*lines: str, head: str = HEAD, signature: str = "accelerator: Accelerator, total") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{head}def run({signature}):\n    total = total + 1\n{body}    return total\n"


@pytest.mark.parametrize(
    "call", ["accelerator.reduce(total)", "accelerator.gather(total)", "accelerator.gather_for_metrics(total)"]
)
def test_the_result_is_taken(call: str) -> None:
    check_transformed(DroppedReduction, loop(call), loop(f"total = {call}"), unsafe=True)


def test_the_result_of_fabric_is_taken() -> None:
    head = "from lightning.fabric import Fabric\n\n\n"
    before = loop("fabric.all_reduce(total)", head=head, signature="fabric: Fabric, total")
    check_transformed(DroppedReduction, before, before.replace("fabric.all_reduce(", "total = fabric.all_reduce("), unsafe=True)


def test_a_call_over_several_lines_with_a_comment() -> None:
    before = loop("# over all", "accelerator.reduce(", "    total,", '    reduction="sum",', ")")
    after = loop("# over all", "total = accelerator.reduce(", "    total,", '    reduction="sum",', ")")
    check_transformed(DroppedReduction, before, after, unsafe=True)


def test_an_accelerator_under_another_name() -> None:
    source = f"{HEAD}acc = Accelerator()\n\n\ndef run(x):\n    total = x.sum()\n    acc.reduce(total)\n    return total\n"
    check_transformed(DroppedReduction, source, source.replace("acc.reduce(", "total = acc.reduce("), unsafe=True)


def test_told_where_the_name_is_not_read_below() -> None:
    source = f"{HEAD}def run(accelerator, total):\n    accelerator.reduce(total)\n"
    check_told(DroppedReduction, source, reason="not read below")


@pytest.mark.parametrize("argument", ["self.total", "total[0]", "torch.stack([total])"])
def test_told_where_the_argument_is_no_name(argument: str) -> None:
    check_told(DroppedReduction, loop(f"accelerator.reduce({argument})"), reason="take the result")


def test_told_where_a_loop_hands_the_name_out() -> None:
    source = loop("for part in total:", "    accelerator.reduce(part)", "    print(part)")
    check_told(DroppedReduction, source, reason="take the result")


@pytest.mark.parametrize(
    "line",
    [
        "dist.all_reduce(total)",
        "total = accelerator.reduce(total)",
        "print(accelerator.gather(total))",
        "reduce(max, total)",
        "total.reduce(1)",
        "accelerator.wait_for_everyone()",
        "if accelerator.is_main_process: accelerator.gather(total)",
    ],
)
def test_nothing_is_said(line: str) -> None:
    check_nothing(DroppedReduction, loop(line))


@pytest.mark.parametrize("name", ["torch.distributed.nn", "torch.distributed.nn.functional"])
def test_nothing_of_a_function_that_returns_what_it_reduced(name: str) -> None:
    head = f"import {name}\n\n\n"
    check_nothing(DroppedReduction, loop(f"total = {name}.all_reduce(total * 2)", head=head))
    check_nothing(DroppedReduction, loop(f"parts = [{name}.all_reduce(total)]", "total = parts[0]", head=head))


def test_nothing_of_a_rank_that_takes_part_for_the_others() -> None:
    lines = ("if accelerator.is_main_process:", "    total = accelerator.gather(total)", "else:", "    accelerator.gather(total)")
    check_nothing(DroppedReduction, loop(*lines))


def test_nothing_of_lightnings_own_accelerator() -> None:
    check_nothing(DroppedReduction, loop("accelerator.reduce(total)", head="import lightning.pytorch as pl\n\n\n"))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(DroppedReduction, loop("accelerator.reduce(total)"), path="tests/test_run.py")


@pytest.mark.parametrize("call", ["dist.all_reduce(total)", "dist.broadcast(total, 0)", "dist.all_reduce(total, op=args.op)"])
def test_none_is_not_taken_for_the_tensor(call: str) -> None:
    check_transformed(DroppedReduction, loop(f"total = {call}"), loop(call), unsafe=True)


@pytest.mark.parametrize(
    "line",
    [
        "total = [dist.all_reduce(t.clone()) for t in total]",
        "total = [dist.all_reduce(t.clone()) if t is not None else None for t in total]",
        "total = total + dist.all_reduce(total)",
        "total = dist.all_reduce(total.clone())",
    ],
)
def test_none_in_a_list_or_a_sum_is_told(line: str) -> None:
    check_told(DroppedReduction, loop(line), reason="keep the tensor under a name")


@pytest.mark.parametrize(
    "line",
    [
        "handle = dist.all_reduce(total, async_op=True); handle.wait()",
        "handle = dist.all_reduce(total, **args); handle.wait()",
        "_ = dist.all_reduce(total)",
        "[dist.all_reduce(t) for t in total]",
        "return dist.all_reduce(total)",
        "total = args.all_reduce(total)",
        "handle = dist.all_reduce(total, None, None, True); handle.wait()",
    ],
)
def test_handles_and_results_that_nobody_reads(line: str) -> None:
    check_nothing(DroppedReduction, loop(line))


FUNCOL = "import torch\nfrom torch.distributed import _functional_collectives as funcol\n\n\n"


def test_nothing_of_functional_collectives_which_return_what_they_reduced() -> None:
    check_nothing(DroppedReduction, loop('out = funcol.all_reduce(total, "sum", group)', "total = out", head=FUNCOL))
    check_nothing(DroppedReduction, loop('pair = (funcol.all_reduce(total, "sum", group), 1)', "total = pair[0]", head=FUNCOL))
    check_nothing(DroppedReduction, loop("out = funcol.broadcast(total, 0, group)", "total = out + 1", head=FUNCOL))
    check_nothing(DroppedReduction, loop("funcol.wait_tensor(total)", head=FUNCOL))


def test_a_functional_collective_whose_result_nobody_takes() -> None:
    call = 'funcol.all_reduce(total, "sum", group)'
    check_transformed(DroppedReduction, loop(call, head=FUNCOL), loop(f"total = {call}", head=FUNCOL), unsafe=True)
    part = loop('funcol.all_reduce(total[0], "sum", group)', head=FUNCOL)
    check_told(DroppedReduction, part, reason="x = funcol.all_reduce(x)")
