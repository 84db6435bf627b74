from __future__ import annotations

import pytest

from codemods.metrics.scaled_loss import ScaledLoss
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = (
    "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"
    "from torch.nn.parallel import DistributedDataParallel\n\n\n"
)


def train(*lines: str, back: str = "loss.backward()") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}def train(net, loader, scaler, world_size):\n    model = DistributedDataParallel(net)\n    for x, y in loader:\n"
        f"        loss = model(x).mean()\n{body}        {back}\n"
    )


def criterion(*lines: str, name: str = "SetLoss", use: str = "loss_boxes(outputs, num_boxes)") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}class {name}(nn.Module):\n    def forward(self, outputs, boxes):\n"
        "        num_boxes = torch.as_tensor([len(boxes)])\n"
        f"{body}        loss = {use}\n        return loss\n"
    )


@pytest.mark.parametrize("line", ["loss = loss / world_size", "loss /= world_size", "loss = loss / dist.get_world_size()"])
@pytest.mark.parametrize("back", ["loss.backward()", "scaler.scale(loss).backward()"])
def test_the_division_goes(line: str, back: str) -> None:
    check_transformed(ScaledLoss, train(line, back=back), train(back=back), unsafe=True)


def test_the_division_in_the_backward_goes() -> None:
    check_transformed(ScaledLoss, train(back="(loss / world_size).backward()"), train(back="(loss).backward()"), unsafe=True)


def test_the_division_by_a_name_of_the_world_size_goes() -> None:
    before, after = train("ranks = dist.get_world_size()", "loss = loss / ranks"), train("ranks = dist.get_world_size()")
    check_transformed(ScaledLoss, before, after, unsafe=True)


def test_the_division_of_an_accelerated_loss_goes() -> None:
    source = (
        "from accelerate import Accelerator\n\n\ndef train(accelerator: Accelerator, model, x):\n    loss = model(x)\n"
        "    accelerator.backward(loss / accelerator.num_processes)\n"
    )
    check_transformed(ScaledLoss, source, source.replace("loss / accelerator.num_processes", "loss"), unsafe=True)


@pytest.mark.parametrize("line", ["loss = loss / world_size", "loss = loss / args.nprocs", "loss /= num_gpus"])
def test_told_where_the_loss_is_reduced_in_place_first(line: str) -> None:
    check_told(ScaledLoss, train("dist.all_reduce(loss)", line), reason="rank's own loss")


@pytest.mark.parametrize("line", ["loss = loss / args.nprocs", "loss /= num_gpus"])
def test_a_number_of_gpus_is_no_proof_without_a_sum_over_the_ranks(line: str) -> None:
    check_nothing(ScaledLoss, train(line))


def test_nothing_of_a_value_that_is_divided_without_its_gradient() -> None:
    check_nothing(ScaledLoss, train("with torch.no_grad():", "    dist.all_reduce(loss)", "    loss /= world_size"))


def test_told_in_the_function_that_gives_the_loss() -> None:
    source = (
        f"{HEAD}def step(model, x, world_size):\n    loss = model(x)\n    if world_size > 1:\n        loss = loss.unsqueeze(0)\n"
        "        dist.reduce(loss, dst=0)\n        loss = loss / world_size\n    return loss.mean()\n\n\n"
        "def train(net, loader, world_size):\n    model = DistributedDataParallel(net)\n    for x in loader:\n"
        "        loss = step(model, x, world_size)\n        loss.backward()\n"
    )
    found = check_told(ScaledLoss, source, reason="rank's own loss")
    assert found.symbol == "step"


@pytest.mark.parametrize("alias", ["out['n'].to(0)", "out['n'].detach().to(0)", "out['n']"])
def test_a_divisor_that_is_summed_under_another_name_is_cloned(alias: str) -> None:
    lines = ("out = model(x, y)", f"n = {alias}", "dist.all_reduce(n)")
    back = "(out['loss'] / out['n']).backward()"
    after = (lines[0], f"n = {alias}.clone()", lines[2])
    check_transformed(ScaledLoss, train(*lines, back=back), train(*after, back=back), unsafe=True)


@pytest.mark.parametrize(
    "use", ["loss_boxes(outputs, num_boxes)", "outputs.sum() / num_boxes", "outputs.sum() / num_boxes.clamp(min=1)"]
)
def test_a_count_of_all_ranks_is_told(use: str) -> None:
    check_told(ScaledLoss, criterion("dist.all_reduce(num_boxes)", use=use), reason="divide it by the processes")


@pytest.mark.parametrize(
    "lines",
    [
        ("shown = loss.detach() / world_size",),
        ("loss = loss / len(x)",),
        ("loss = loss / (world_size * 2)",),
        ("loss = loss * world_size",),
        ("dist.all_reduce(loss)",),
        ("mean = loss.detach().clone()", "dist.all_reduce(mean)", "mean /= world_size"),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(ScaledLoss, train(*lines))


def test_nothing_behind_the_backward() -> None:
    source = train() + "        loss = loss / world_size\n        print(loss)\n"
    check_nothing(ScaledLoss, source)


def test_nothing_where_gradients_are_summed_by_hand() -> None:
    sync = "import torch.distributed as dist\n\n\ndef sync(p):\n    dist.all_reduce(p.grad)\n"
    assert not findings_of(ScaledLoss, train("loss = loss / world_size"), {"sync.py": sync})


def test_nothing_of_a_divisor_that_is_copied() -> None:
    lines = ("out = model(x, y)", "n = out['n'].clone()", "dist.all_reduce(n)")
    check_nothing(ScaledLoss, train(*lines, back="(out['loss'] / out['n']).backward()"))


@pytest.mark.parametrize(
    "lines",
    [
        ("dist.all_reduce(num_boxes)", "num_boxes = num_boxes / dist.get_world_size()"),
        ("dist.all_reduce(num_boxes)", "num_boxes = torch.clamp(num_boxes / get_world_size(), min=1)"),
        ("dist.all_reduce(num_boxes, op=dist.ReduceOp.MAX)",),
        ("dist.all_reduce(num_boxes)", "dist.all_reduce(outputs)"),
        (),
    ],
)
def test_nothing_of_a_count_that_is_divided_or_no_sum(lines: tuple[str, ...]) -> None:
    check_nothing(ScaledLoss, criterion(*lines))


def test_nothing_of_a_metric() -> None:
    check_nothing(ScaledLoss, criterion("dist.all_reduce(num_boxes)", name="BoxMetric"))


def test_nothing_of_a_run_without_a_wrapper() -> None:
    check_nothing(ScaledLoss, train("loss = loss / world_size").replace("DistributedDataParallel", "Other"))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(ScaledLoss, train("loss = loss / world_size"), path="tests/test_train.py")


def test_told_for_a_weighted_term_that_is_reduced_in_place() -> None:
    lines = ("other = model(y).sum()", "dist.all_reduce(other)", "other = other / world_size", "loss = loss + 0.1 * other")
    found = check_told(ScaledLoss, train(*lines), reason="rank's own loss")
    assert found.span.line == 13


@pytest.mark.parametrize("weight", ["world_size", "dist.get_world_size()"])
def test_a_term_that_is_multiplied_by_the_processes_is_right(weight: str) -> None:
    lines = ("other = model(y).sum()", "other = other / world_size", f"loss = loss + {weight} * other")
    check_nothing(ScaledLoss, train(*lines))


MEAN = (
    "import torch\nimport torch.distributed as dist\n\n\ndef mean_of_ranks(value, nprocs):\n    out = value.clone()\n"
    "    dist.all_reduce(out, op=dist.ReduceOp.SUM)\n    out /= nprocs\n    return out\n"
)


def shown(*lines: str, back: str = "total.backward()") -> str:
    return "from tools import mean_of_ranks\n" + train(*lines, back=back)


def test_the_own_loss_goes_backward_in_place_of_the_mean_of_the_ranks() -> None:
    lines = ("total = mean_of_ranks(loss, world_size)",)
    check_transformed(ScaledLoss, shown(*lines), shown(*lines, back="loss.backward()"), files={"tools.py": MEAN}, unsafe=True)


def test_the_own_loss_goes_backward_where_one_process_alone_has_it_anyway() -> None:
    lines = ("if world_size > 1:", "    total = mean_of_ranks(loss, nprocs=world_size)", "else:", "    total = loss")
    check_transformed(ScaledLoss, shown(*lines), shown(*lines, back="loss.backward()"), files={"tools.py": MEAN}, unsafe=True)


@pytest.mark.parametrize(
    ("lines", "back"),
    [
        (("loss = mean_of_ranks(loss, world_size)",), "loss.backward()"),
        (("total = mean_of_ranks(loss, world_size)",), "scaler.scale(total).backward()"),
        (("total = mean_of_ranks(loss + 1, world_size)",), "total.backward()"),
        (("total = mean_of_ranks(loss, world_size)", "loss = loss.detach()"), "total.backward()"),
    ],
)
@pytest.mark.parametrize("mean", [MEAN, MEAN.replace("out /= nprocs\n    return out", "return out / nprocs")])
def test_told_where_the_mean_of_the_ranks_goes_backward(lines: tuple[str, ...], back: str, mean: str) -> None:
    check_told(ScaledLoss, shown(*lines, back=back), files={"tools.py": mean}, reason="keep the mean of the ranks for the log")


@pytest.mark.parametrize(
    "mean",
    [
        MEAN.replace("value.clone()", "value.detach().clone()"),
        MEAN.replace("    out /= nprocs\n", ""),
        MEAN.replace("out /= nprocs", "out /= value.numel()"),
        MEAN.replace("def mean", "@torch.no_grad()\ndef mean"),
        MEAN.replace("    out /= nprocs\n", "    with torch.no_grad():\n        out /= nprocs\n"),
        MEAN.replace("    dist.all_reduce(out", "    out = dist.nn.functional.all_reduce(out"),
        MEAN.replace("    dist.all_reduce(out, op=dist.ReduceOp.SUM)\n", ""),
    ],
)
def test_nothing_of_a_function_that_leaves_the_gradient_alone_or_sees_it(mean: str) -> None:
    source = shown("total = mean_of_ranks(loss, world_size)")
    assert not findings_of(ScaledLoss, source, {"tools.py": mean})


def test_nothing_where_the_mean_of_the_ranks_is_shown() -> None:
    source = shown("total = mean_of_ranks(loss, world_size)", "print(total)", back="loss.backward()")
    assert not findings_of(ScaledLoss, source, {"tools.py": MEAN})


def test_a_function_of_the_same_file_is_told_where_its_mean_goes_backward() -> None:
    lines = ("total = mean_of_ranks(loss, world_size)",)
    before, after = (MEAN + train(*lines, back=back) for back in ("total.backward()", "loss.backward()"))
    check_transformed(ScaledLoss, before, after, unsafe=True)


@pytest.mark.parametrize("again", ["for x, y in loader:", "for y, x in reversed(loader):"])
def test_nothing_of_a_loss_that_is_divided_behind_its_backward_in_an_earlier_loop(again: str) -> None:
    shown = ["loss.backward()", "dist.all_reduce(loss.detach())", "loss /= world_size"]
    later = f"    {again}\n        loss = model(x).sum()\n        loss.backward()"
    check_nothing(ScaledLoss, train(*shown, back="print(loss)\n" + later))


def test_a_division_that_a_branch_makes_above_the_backward_is_found() -> None:
    before = train("if y is not None:", "    loss = model(y)", "loss = loss / world_size")
    check_transformed(ScaledLoss, before, train("if y is not None:", "    loss = model(y)"), unsafe=True)
