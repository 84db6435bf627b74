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


def test_fabric_reduces_tensors_in_place() -> None:
    head = "from lightning.fabric import Fabric\n\n\n"
    check_nothing(DroppedReduction, loop("fabric.all_reduce(total)", head=head, signature="fabric: Fabric, total"))
    assert findings_of(DroppedReduction, loop("fabric.all_gather(total)", head=head, signature="fabric: Fabric, total"))


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


TRAIN = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, criterion, optimizer, world_size):
    model = DistributedDataParallel(net)
    total, losses = 0, []
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        {lines}
    print(total, losses)
"""


def train(*lines: str) -> str:
    return TRAIN.replace("{lines}", "\n        ".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("total += loss.item()", "loss.backward()", "dist.all_reduce(loss)"),
        ("total += loss.data.float()", "if world_size > 1:", "    dist.all_reduce(loss.data)", "    loss.data /= world_size"),
        ("losses.append(loss.item())", "loss = loss / 4", "loss.backward()", "dist.all_reduce(loss.data)", "loss = loss * 4"),
        ("total += float(loss.detach())", "dist.reduce(loss.detach(), 0)"),
        ("mean = out['loss'].mean()", "total += mean.detach()", "dist.all_reduce(mean)", "mean = mean / world_size"),
    ],
)
def test_a_sum_behind_the_line_that_takes_the_number(lines: tuple[str, ...]) -> None:
    found = [f for f in findings_of(DroppedReduction, train(*lines)) if "nobody reads" in f.message]
    assert [(f.severity, "of this rank alone" in f.message) for f in found] == [("data", True)]


def test_a_sum_that_nothing_is_made_of_is_taken_out() -> None:
    before = train("loss.backward()", "optimizer.step()", "dist.all_reduce(loss)")
    after = train("loss.backward()", "optimizer.step()")
    check_transformed(DroppedReduction, before, after, unsafe=True)


def test_one_of_three_counts_that_is_not_read() -> None:
    source = f"{HEAD}def count(x):\n    kept = torch.tensor([x]).cuda()\n    spare = torch.tensor([x]).cuda()\n"
    both = "    dist.all_reduce(kept)\n    dist.all_reduce(spare)\n    return kept.item()\n"
    (found,) = findings_of(DroppedReduction, source + both)
    assert "`spare`" in found.message and found.severity == "noise"


@pytest.mark.parametrize(
    "lines",
    [
        ("dist.all_reduce(loss)", "total += loss.item()"),  # read below
        ("losses.append(loss)", "dist.all_reduce(loss)"),  # the list holds the tensor itself
        ("kept = loss.detach()", "dist.all_reduce(loss)", "total += kept.item()"),  # another name for it
        ("kept = {'loss': loss}", "dist.all_reduce(loss)", "total += kept['loss']"),
        ("part = out.loss", "total += part.item()", "dist.all_reduce(part)", "print(out.loss)"),
        ("dist.all_reduce(loss, async_op=True).wait()", "total += 1"),
        ("losses.append(lambda: loss)", "dist.all_reduce(loss)"),
        ("total = loss", "dist.all_reduce(loss)"),  # what is printed is the sum
        ("if total: print(last)", "last = loss * 1", "dist.all_reduce(last)"),  # read in the next round
        ("model.last = loss", "dist.all_reduce(loss)"),
        ("if x is None: part = loss * 2", "total += part.item()", "dist.all_reduce(part)"),  # that of the round before
        ("for p in net.parameters():", "    dist.all_reduce(p.grad)"),
        ("for p in net.parameters():", "    g = p.grad", "    dist.all_reduce(g)"),
    ],
)
def test_a_tensor_that_somebody_may_read(lines: tuple[str, ...]) -> None:
    check_nothing(DroppedReduction, train(*lines))


def test_a_buffer_whose_pieces_are_read() -> None:
    lines = "    flat = flatten(grads)\n    pieces = flat.split(4)\n    dist.all_reduce(flat)\n    return pieces\n"
    check_nothing(DroppedReduction, f"{HEAD}def share(grads, flatten):\n{lines}")


@pytest.mark.parametrize("made", ["torch.ones(1).cuda()", "torch.tensor([1.0], device='cuda')", "torch.randn(1024, 1024)"])
def test_a_tensor_that_is_handed_round_for_its_own_sake(made: str) -> None:
    check_nothing(DroppedReduction, f"{HEAD}def warm_up():\n    probe = {made}\n    dist.all_reduce(probe)\n")


def test_what_a_function_keeps_beside_returning_it() -> None:
    head = "def compute(self, x):\n    self.loss = x.mean()\n    return self.loss\n\n\n"
    source = f"{HEAD}{head}def run(model, x):\n    loss = compute(model, x)\n    dist.all_reduce(loss)\n    return model.loss\n"
    check_nothing(DroppedReduction, source)


HANDLE = f"{HEAD}class Tracker:\n    def __init__(self):\n        self.total = torch.zeros(1)\n\n    def reduce(self):\n"


@pytest.mark.parametrize(
    "call", ["dist.all_reduce(self.total, async_op=True)", "dist.all_reduce(self.total, dist.ReduceOp.SUM, async_op=True)"]
)
def test_a_handle_that_is_thrown_away(call: str) -> None:
    after = call.replace(", async_op=True", "")
    check_transformed(DroppedReduction, f"{HANDLE}        {call}\n", f"{HANDLE}        {after}\n", unsafe=True)


def test_a_handle_under_a_name_that_is_not_read() -> None:
    lines = "    handle = dist.all_gather(parts, x, async_op=True)\n    return torch.cat(parts)\n"
    before = f"{HEAD}def run(parts, x):\n{lines}"
    check_transformed(DroppedReduction, before, before.replace(", async_op=True", ""), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("handle = dist.all_reduce(self.total, async_op=True)", "handle.wait()"),
        ("self.handle = dist.all_reduce(self.total, async_op=True)",),
        ("return dist.all_reduce(self.total, async_op=True)",),
        ("dist.all_reduce(self.total, async_op=True)", "torch.cuda.synchronize()"),
        ("dist.all_reduce(self.total, async_op=True)", "dist.barrier()"),
        ("with dist._coalescing_manager():", "    dist.all_reduce(self.total, async_op=True)"),
        ("dist.all_reduce(self.total, async_op=self.later)",),
    ],
)
def test_a_handle_that_is_kept_or_not_needed(lines: tuple[str, ...]) -> None:
    check_nothing(DroppedReduction, HANDLE + "".join(f"        {line}\n" for line in lines))


def test_a_caller_that_waits_for_the_device() -> None:
    source = f"{HANDLE}        dist.all_reduce(self.total, async_op=True)\n\n\n"
    caller = "def run():\n    tracker = Tracker()\n    tracker.reduce()\n    torch.cuda.synchronize()\n    return tracker\n"
    check_nothing(DroppedReduction, source + caller)


AWAITED = (
    "import torch\nimport torch.distributed as dist\n\n\ndef mean_of(total, count):\n    {above}\n"
    "    dist.all_reduce(total, async_op=True)\n    return total.item() / count\n"
)


def test_what_waited_above_was_another_collective() -> None:
    assert findings_of(DroppedReduction, AWAITED.format(above="dist.barrier()"))
    again = AWAITED.replace("    {above}\n    dist", "    for _ in range(2):\n        dist.barrier()\n        dist")
    check_nothing(DroppedReduction, again)


@pytest.mark.parametrize("turned", ["spare.cpu().numpy()", "spare.item()"])
def test_one_of_several_that_are_turned_into_numbers_alike(turned: str) -> None:
    """Without its sum the number would be that of the rank, for whoever prints it one day."""
    source = f"{HEAD}def count(x):\n    kept = torch.tensor([x]).cuda()\n    spare = torch.tensor([x]).cuda()\n"
    both = "    dist.all_reduce(kept)\n    dist.all_reduce(spare)\n"
    below = f"    kept = kept.item()\n    spare = {turned}\n    return kept\n"
    check_nothing(DroppedReduction, source + both + below)
    assert findings_of(DroppedReduction, source + both + below.replace(f"    spare = {turned}\n", ""))


def test_a_number_taken_above_stays_told_where_the_sum_is_turned_too() -> None:
    found = findings_of(DroppedReduction, train("total += loss.item()", "dist.all_reduce(loss)", "loss = loss.item()"))
    assert [f.severity for f in found] == ["data"]


SUMMED = f"{HEAD}import torch.distributed.nn as dist_nn\n\n\ndef match(a, b, rows, world_size, loader):\n    c = a.T @ b\n"


def summed(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{SUMMED}{body}    return c\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("c.div_(rows)", "dist_nn.all_reduce(c)"),
        ("c /= len(a)", "if dist.is_initialized():", "    dist_nn.all_reduce(c)"),
        ("size = a.shape[0]", "c = c / size", "dist_nn.all_reduce(c, op=dist.ReduceOp.SUM)"),
        ("c = c.div(a.size(0)).detach()", "dist_nn.all_reduce(c)"),
        ("total = c.mean()", "c = total", "dist_nn.all_reduce(c)"),
        ("acc = Accelerator()", "c = torch.mean(c)", "acc.reduce(c)"),
    ],
)
def test_a_sum_of_what_was_divided_by_the_own_number_has_no_fix(lines: tuple[str, ...]) -> None:
    check_told(DroppedReduction, summed(*lines), reason="number of all samples")


@pytest.mark.parametrize(
    "lines",
    [
        ("c.div_(2)", "dist_nn.all_reduce(c)"),
        ("c.div_(rows * world_size)", "dist_nn.all_reduce(c)"),
        ("whole = rows * dist.get_world_size()", "c = c / whole", "dist_nn.all_reduce(c)"),
        ("dist.all_reduce(rows)", "c = c / rows", "dist_nn.all_reduce(c)"),
        ("c = c / len(loader.dataset)", "dist_nn.all_reduce(c)"),
        ("c.div_(rows)", "dist_nn.all_reduce(c, op=dist.ReduceOp.AVG)"),
        ("c.div_(rows)", "dist_nn.all_reduce(c)", "c = c / world_size"),
        ("other = c / rows", "dist_nn.all_reduce(c)", "print(other)"),
        ("dist_nn.all_reduce(c)", "c = c / rows"),
    ],
)
def test_a_sum_that_stays_in_proportion_is_taken(lines: tuple[str, ...]) -> None:
    source = summed(*lines)
    check_transformed(DroppedReduction, source, source.replace("    dist_nn.all", "    c = dist_nn.all"), unsafe=True)


def test_a_mean_over_the_ranks_of_what_was_divided() -> None:
    source = summed("acc = Accelerator()", "c = c / rows", 'acc.reduce(c, reduction="mean")')
    check_transformed(DroppedReduction, source, source.replace("    acc.reduce", "    c = acc.reduce"), unsafe=True)
