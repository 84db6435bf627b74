"""DDP115: numbers that are put together from all ranks, and divided by the wrong count."""

from __future__ import annotations

import pytest

from codemods.metrics.wrong_average import WrongAverage
from ddpfix.testing import check_nothing, check_told

RULE = WrongAverage
HEAD = """\
import numpy as np
import torch
import torch.distributed as dist; WORLD = dist.group.WORLD
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


"""
LARGE = "reduce the count as well"
SMALL = "divide by the number of processes once"
UNEVEN = "reduce the sums and the counts over the ranks first"
SHARED = "DataLoader(data, 8, sampler=DistributedSampler(data))"
MEAN = "total += loss_of(model(batch)).item()"
PRINTS = "if dist.get_rank() == 0:\n    print(f'loss {loss:.3f}')"


START = "total, n = torch.zeros(1), 0"


def evaluate(end: str, *, step: str = MEAN, loader: str = SHARED, start: str = START, shows: str = PRINTS) -> str:
    """An evaluation: `start`, `step` for each batch of the loader, `end`, and what is shown of `loss`."""

    def lines(text: str, indent: int) -> str:
        return "".join(f"{' ' * indent}{line}\n" for line in text.splitlines())

    return (
        f"{HEAD}def evaluate(model, data, loss_of, writer, args, accelerator):\n    loader = {loader}\n{lines(start, 4)}"
        f"    for batch in loader:\n{lines(step, 8)}{lines(end, 4)}{lines(shows, 4)}"
    )


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    found = check_told(RULE, before, reason=LARGE)
    assert "as many times too large as there are processes" in found.message
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    "end",
    ["dist.all_reduce(total)\nloss = total.item() / len(loader)",
     "dist.all_reduce(total, op=dist.ReduceOp.SUM)\nloss = (total / len(loader.sampler)).item()",
     "dist.reduce(total, dst=0)\nloss = float(total) / loader.sampler.num_samples",
     "dist.all_reduce(total.data)\ntotal /= len(loader)\nloss = total.item()",
     "total = total / len(loader)\ntotal = total * len(loader)\ndist.all_reduce(total)\nloss = total.item() / len(loader)",
     "parts = [torch.zeros(1) for _ in range(args.n)]\ndist.all_gather(parts, total)\nloss = sum(parts) / len(loader)",
     "if dist.is_initialized():\n    dist.all_reduce(total)\nloss = total.item() / max(len(loader), 1)",
     "both = torch.tensor([total, 0.0])\ndist.all_reduce(both)\nloss = both[0].item() / len(loader)"],
)  # fmt: skip
def test_a_sum_by_the_batches_of_one_rank(end: str) -> None:
    check_told(RULE, evaluate(end), reason=LARGE)


@pytest.mark.parametrize(
    ("step", "end"),
    [(MEAN, "total /= len(loader)\ndist.all_reduce(total)\nloss = total.item()"),
     (MEAN, "total = accelerator.reduce(total / len(loader), reduction='sum')\nloss = total.item()"),
     ("each = loss_of(model(batch)).mean()\ndist.all_reduce(each)\nlosses.append(each.item())", "loss = np.mean(losses)"),
     ("losses.append(loss_of(model(batch)))", "total = torch.stack(losses).mean()\ndist.all_reduce(total)\nloss = total.item()")],
)  # fmt: skip
def test_a_sum_of_the_means_of_all_ranks(step: str, end: str) -> None:
    found = check_told(RULE, evaluate(end, step=step, start="total, losses = torch.zeros(1), []"), reason="behind the reduction")
    assert "adds up the means of all ranks, and nothing divides by the number of processes" in found.message


def test_a_sum_by_the_rows_of_one_rank() -> None:
    step = "total += loss_of(model(batch)).sum()\nn += batch.size(0)"
    found = check_told(RULE, evaluate("dist.all_reduce(total)\nloss = total.item() / n", step=step), reason=LARGE)
    assert found.message.startswith("`total.item() / n` divides a sum over all ranks by the count of one of them")
    step = "losses.append(loss_of(model(batch)).item())"
    end = "total = torch.tensor(sum(losses))\ndist.all_reduce(total)\nloss = total.item() / len(losses)"
    check_told(RULE, evaluate(end, step=step, start="losses = []"), reason=LARGE)


@pytest.mark.parametrize(
    "end",
    ["dist.all_reduce(total)\nloss = total.item() / (len(loader) * dist.get_world_size())",
     "dist.all_reduce(total)\nloss = total.item() / len(loader) / dist.get_world_size()",
     "dist.all_reduce(total)\nworld_size = dist.get_world_size()\ntotal /= world_size\nloss = total.item() / len(loader)",
     "total /= len(loader)\ndist.all_reduce(total, op=dist.ReduceOp.AVG)\nloss = total.item()",
     "total /= len(loader.dataset)\ndist.all_reduce(total)\nloss = total.item()",
     "dist.all_reduce(total)\nloss = total.item() / len(loader.dataset)",
     "dist.all_reduce(total)\nloss = total.item() / args.rows",
     "dist.all_reduce(total, op=args.op)\nloss = total.item() / len(loader)",
     "dist.all_reduce(total, op=dist.ReduceOp.MAX)\nloss = total.item() / len(loader)",
     "n = torch.tensor(len(loader))\ndist.all_reduce(total)\ndist.all_reduce(n)\nloss = total.item() / n.item()",
     "dist.all_reduce(total, group=args.group)\nloss = total.item() / len(loader)",
     "total = accelerator.gather(total)\nloss = total.mean().item() / len(loader)",
     "loss = total.item() / len(loader)"],
)  # fmt: skip
def test_a_count_of_all_ranks_or_one_that_is_not_known(end: str) -> None:
    check_nothing(RULE, evaluate(end))


# A sampler with a name of its own, whose length is the number of samples of one rank.
BY_A_NAME = "DataLoader(data, 8, sampler=sampler)"
ROWS = "each = loss_of(model(batch))\ndist.reduce(each, 0)\ntotal += (each / dist.get_world_size()).item() * batch.shape[0]"


@pytest.mark.parametrize(
    "made", ["DistributedSampler(data)", "torch.utils.data.distributed.DistributedSampler(data, shuffle=False)"]
)
def test_the_samples_that_a_named_sampler_gives_one_rank(made: str) -> None:
    begin = f"sampler = {made}\n    loader = {BY_A_NAME}"
    right = evaluate("loss = total / len(sampler)", step=ROWS, loader=SHARED).replace(f"loader = {SHARED}", begin)
    check_nothing(RULE, right)
    check_told(RULE, right.replace("len(sampler)\n", "len(sampler) / dist.get_world_size()\n"), reason=SMALL)
    summed = "dist.all_reduce(total)\nloss = total.item() / len(sampler)"
    check_told(RULE, evaluate(summed, loader=SHARED).replace(f"loader = {SHARED}", begin), reason=LARGE)


def test_counts_that_are_reduced_beside_the_sum() -> None:
    step = "total += loss_of(model(batch)).sum()\nn += batch.size(0)"
    end = "both = torch.tensor([total, n])\ndist.all_reduce(both)\nloss = (both[0] / both[1]).item()"
    check_nothing(RULE, evaluate(end, step=step))
    check_nothing(RULE, evaluate(end.replace("both[0] / both[1]", "both[0] / both[1].clamp(min=1)"), step=step))
    parts = "parts = [None] * 2\ndist.all_gather_object(parts, {'sum': total, 'n': n})\n"
    check_nothing(RULE, evaluate(parts + "loss = sum(p['sum'] for p in parts) / sum(p['n'] for p in parts)", step=step))


@pytest.mark.parametrize(
    "end",
    ["total /= len(loader)\ndist.all_reduce(total, op=dist.ReduceOp.AVG)\nloss = total.item() / dist.get_world_size()",
     "dist.all_reduce(total)\nloss = total.item() / len(loader.dataset) / dist.get_world_size()",
     "total = accelerator.gather(total / len(loader)).mean()\nloss = total.item() / accelerator.num_processes"],
)  # fmt: skip
def test_a_mean_that_is_divided_by_the_processes_again(end: str) -> None:
    found = check_told(RULE, evaluate(end), reason=SMALL)
    assert "as many times too small as there are processes" in found.message


def test_whatever_the_reduction_averages() -> None:
    end = "dist.all_reduce(total, op=dist.ReduceOp.AVG)\ntotal /= dist.get_world_size()"
    shows = "print(total)"  # of no word that names a loss
    check_told(RULE, evaluate(end, step="total += loss_of(model(batch))", shows=shows), reason=SMALL)
    check_nothing(RULE, evaluate(end.replace("AVG", "SUM"), shows=shows))
    check_nothing(RULE, evaluate(f"total *= dist.get_world_size()\n{end}", shows=shows))  # it is put back
    of_one = "total = accelerator.gather(total)[0] / accelerator.num_processes"
    check_nothing(RULE, evaluate(of_one, shows=shows))


PRECISION = "hits += ((model(batch) > 0) & (batch > 0)).sum().item()\nalarms += (model(batch) > 0).sum().item()"


@pytest.mark.parametrize(
    "end",
    ["loss = torch.tensor(hits / max(alarms, 1))\ndist.all_reduce(loss)\nloss /= dist.get_world_size()",
     "loss = torch.tensor(hits / alarms)\ndist.all_reduce(loss, op=dist.ReduceOp.AVG)",
     "loss = accelerator.gather(torch.tensor(hits / alarms)).mean()",
     "parts = [None] * 2\ndist.all_gather_object(parts, hits / alarms)\nloss = np.mean(parts)",
     "parts = [None] * 2\ndist.all_gather_object(parts, {'p': hits / alarms})\nloss = sum(p['p'] for p in parts) / len(parts)"],
)  # fmt: skip
def test_a_mean_of_quotients_whose_divisors_differ(end: str) -> None:
    found = check_told(RULE, evaluate(end, step=PRECISION, start="hits = alarms = 0"), reason=UNEVEN)
    assert "is not the number of the whole set" in found.message


def test_a_mean_of_quotients_of_equal_divisors() -> None:
    step = "hits += (model(batch) == batch).sum().item()\nn += len(batch)"
    end = "loss = torch.tensor(hits / n)\ndist.all_reduce(loss)\nloss /= dist.get_world_size()"
    check_nothing(RULE, evaluate(end, step=step, start="hits = n = 0"))


def test_a_quotient_that_is_weighted_by_its_count() -> None:
    end = (
        "mean = hits / max(alarms, 1)\nboth = torch.tensor([mean * alarms, alarms])\ndist.all_reduce(both)\n"
        "loss = both[0] / both[1]"
    )
    check_nothing(RULE, evaluate(end, step=PRECISION, start="hits = alarms = 0"))


def test_a_mean_of_quotients_in_a_loop_that_trains() -> None:
    end = "loss = torch.tensor(hits / max(alarms, 1))\ndist.all_reduce(loss)\nloss /= dist.get_world_size()"
    step = f"{PRECISION}\nloss_of(model(batch)).backward()"
    check_nothing(RULE, evaluate(end, step=step, start="hits = alarms = 0"))


def test_through_functions_and_fields() -> None:
    source = (
        f"{HEAD}def put_together(value):\n    shared = value.clone()\n    dist.all_reduce(shared)\n    return shared\n\n\n"
        "class Runner:\n    def __init__(self, model, data):\n        self.model = model\n"
        f"        self.loader = {SHARED}\n\n"
        "    def evaluate(self):\n        total = torch.zeros(1)\n        for batch in self.loader:\n"
        "            total += self.model(batch).mean()\n"
        "        return {'loss': put_together(total).item() / len(self.loader)}\n\n\n"
        "def main(model, data):\n    runner = Runner(model, data)\n    stats = runner.evaluate()\n"
        "    if dist.get_rank() == 0:\n        print('loss', stats['loss'])\n"
    )
    found = check_told(RULE, source, reason=LARGE)
    assert "`stats['loss']` in line 30" in found.message
    check_nothing(RULE, source.replace("return shared\n", "return shared / dist.get_world_size()\n"))


def test_in_two_files_it_is_told_where_it_is_shown() -> None:
    helper = f"{HEAD}def evaluate(model, loader):\n    total = torch.zeros(1)\n    for batch in loader:\n"
    helper += "        total += model(batch).mean()\n    dist.all_reduce(total)\n    return total.item() / len(loader)\n"
    main = f"from engine import evaluate\n{HEAD}def main(model, data):\n    loader = {SHARED}\n"
    main += "    loss = evaluate(model, loader)\n"
    main += "    if dist.get_rank() == 0:\n        print('loss', loss)\n"
    found = check_told(RULE, main, reason=LARGE, files={"engine.py": helper}, path="main.py")
    assert "(engine.py:" in found.message and found.span.line == 13
    check_nothing(RULE, helper, files={"main.py": main}, path="engine.py")


def test_nothing_of_a_number_that_nobody_shows() -> None:
    check_nothing(RULE, evaluate("dist.all_reduce(total)\nloss = total.item() / len(loader)", shows="return loss"))


def test_nothing_of_loops_that_are_not_seen() -> None:
    end = "dist.all_reduce(total)\nloss = total.item() / n"
    start = "total, n = torch.zeros(1), len(args.rows)"
    check_nothing(RULE, evaluate(end, step="while model.more():\n    total += 1", start=start))


IDIOMS = """
class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    def sync(self):
        both = torch.tensor([self.sum, self.count])
        dist.all_reduce(both)
        self.sum, self.count = both.tolist()

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def mean_of(value, n):
    shared = value.clone()
    dist.all_reduce(shared, op=dist.ReduceOp.SUM)
    shared /= n
    return shared


def mean_of_all(values, average=True):
    world_size = dist.get_world_size()
    if world_size < 2:
        return values
    names = sorted(values)
    stacked = torch.stack([values[n] for n in names])
    dist.all_reduce(stacked)
    if average:
        stacked /= world_size
    return dict(zip(names, stacked))


"""


@pytest.mark.parametrize(
    ("start", "step", "end"),
    [("meter = Meter()", "meter.update(model(batch).mean().item(), len(batch))", "meter.sync()\nloss = meter.avg"),
     ("losses = []", "losses.append(mean_of(model(batch).mean(), args.world_size).item())", "loss = sum(losses) / len(losses)"),
     ("loss = 0.0", "loss += mean_of_all({'loss': model(batch).mean()})['loss'].item()", "loss = loss / len(loader)"),
     ("stats = torch.zeros(2)", "stats[0] += model(batch).sum()\nstats[1] += len(batch)",
      "dist.all_reduce(stats)\nloss = (stats[0] / stats[1]).item()"),
     ("rows = []", "rows.append(model(batch))",
      "mine = torch.cat(rows)\nparts = [torch.zeros_like(mine) for _ in range(2)]\ndist.all_gather(parts, mine)\n"
      "every = torch.cat(parts)\nloss = every.sum() / len(every)"),
     ("total, n = torch.zeros(1), torch.zeros(1)", "total += model(batch).mean()\nn += 1",
      "dist.all_reduce(total)\ndist.all_reduce(n)\nloss = total / n"),
     ("running = 0.0", "each = model(batch).mean()\ndist.all_reduce(each)\nrunning += each.item() / dist.get_world_size()",
      "loss = running / len(loader)")],
)  # fmt: skip
def test_the_usual_ways_that_are_right(start: str, step: str, end: str) -> None:
    source = evaluate(end, step=step, start=start)
    check_nothing(RULE, source.replace(HEAD, HEAD + IDIOMS))


@pytest.mark.parametrize(
    ("step", "end", "shows"),
    [("n += batch.size(0)", "n = torch.tensor(n)\ndist.all_reduce(n)\nrows = n.item() / dist.get_world_size()",
      "print('rows of a GPU', rows)"),
     ("n += (batch > 0).sum()", "dist.all_reduce(n)\nrows = n.item() / len(loader)", "print('tokens of a step', rows)"),
     ("n += batch.size(0)", "n = torch.tensor(n)\ndist.all_reduce(n)", "print('score of', n.item())")],
)  # fmt: skip
def test_counts_that_are_no_metric(step: str, end: str, shows: str) -> None:
    check_nothing(RULE, evaluate(end, step=step, shows=shows))


def test_nothing_of_a_mean_over_shares_that_differ_by_a_row() -> None:
    source = (
        f"{HEAD}def evaluate(model, rows, loss_of):\n    mine = rows[dist.get_rank() :: dist.get_world_size()]\n    total = 0.0\n"
        "    for row in mine:\n        total += loss_of(model(row)).item()\n    loss = torch.tensor(total / len(mine))\n"
        "    dist.all_reduce(loss)\n    loss /= dist.get_world_size()\n"
        "    if dist.get_rank() == 0:\n        print('loss', loss)\n"
    )
    check_nothing(RULE, source)
    check_told(RULE, source.replace("    loss /= dist.get_world_size()\n", "    loss = loss / len(mine)\n"), reason=LARGE)


OWN_SET = """
class Rows:
    def __init__(self, rows, rank, world_size):
        self.rows = rows[rank::world_size]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

"""


def test_a_data_set_that_holds_a_share() -> None:
    end = "total /= len(rows)\ndist.all_reduce(total)\nloss = total.item() / dist.get_world_size()"
    start = "total = torch.zeros(1)\nrows = Rows(data, dist.get_rank(), dist.get_world_size())\nloader = DataLoader(rows, 8)"
    source = evaluate(end, step="total += loss_of(model(batch)).sum()", start=start)
    check_nothing(RULE, source.replace("\ndef evaluate", f"{OWN_SET}\ndef evaluate"))


# Under keys of the rank's own

DRAWN = (
    f"{HEAD}import random\n\n\ndef train(model, data, seed):\n    loader = {SHARED}\n"
    "    draw = random.Random(seed + dist.get_rank())\n    losses = {'a': 0.0, 'b': 0.0}\n    for batch in loader:\n"
    "        task = draw.choice(['a', 'b'])\n        loss = model(batch, task).mean()\n        loss.backward()\n"
    "        shared = loss.detach().clone()\n        dist.all_reduce(shared)\n        losses[task] += shared\n    print(losses)\n"
)


def test_a_sum_under_a_key_that_each_rank_draws() -> None:
    found = check_told(RULE, DRAWN, reason="one seed on all ranks")
    assert "goes under `task`, which each rank has drawn on its own" in found.message
    check_told(RULE, DRAWN.replace("random.Random(seed + dist.get_rank())", "np.random.default_rng([seed + dist.get_rank()][0])"),
               reason="one seed on all ranks")  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [("seed + dist.get_rank()", "seed"),
     ("random.Random(seed + dist.get_rank())", "random"),
     ("losses[task] += shared", "losses['a'] += shared"),
     ("losses[task] += shared", "losses[task] += loss.item()"),
     ("        dist.all_reduce(shared)\n", "")],
)  # fmt: skip
def test_a_key_of_all_ranks_or_a_number_of_one(old: str, new: str) -> None:
    check_nothing(RULE, DRAWN.replace(old, new))


# Losses of a training loop that are summed for the log


def train(*lines: str, loss: str = "loss = loss_of(model(x), y)", shows: str = "meter.update(seen.item())") -> str:
    body = "".join(f"        {line}\n" for line in (*loss.split("\n"), "loss.backward()", *lines, *shows.split("\n")))
    return (
        f"{HEAD}def train(model, loader, loss_of, meter, writer, world_size):\n    for i, (x, y) in enumerate(loader):\n"
        f"{body}        if i % 10 == 0 and dist.get_rank() == 0:\n            print(f'loss {{meter.avg:.3f}}')\n"
    )


COPY, SUM = "seen = loss.detach().clone()", "dist.all_reduce(seen)"


@pytest.mark.parametrize("copy", [COPY, "seen = loss.clone().detach()", "seen = loss.data.clone()"])
@pytest.mark.parametrize("shows", ["meter.update(seen.item())", "writer.add_scalar('loss', seen.item(), i)"])
def test_a_training_loss_that_is_summed_over_the_ranks(copy: str, shows: str) -> None:
    found = check_told(RULE, train(copy, SUM, shows=shows), reason="ReduceOp.AVG")
    assert "adds up the losses of all ranks" in found.message


@pytest.mark.parametrize("several", ["", "if world_size > 1:\n    "])
def test_a_copy_under_the_name_of_the_loss_itself(several: str) -> None:
    lines = (*f"{several}loss = loss.clone().detach()".split("\n"), f"{'    ' if several else ''}dist.all_reduce(loss)")
    found = check_told(RULE, train(*lines, shows=f"{'    ' if several else ''}meter.update(loss.item())"), reason="ReduceOp.AVG")
    assert "`dist.all_reduce(loss)` adds up" in found.message


@pytest.mark.parametrize(
    "lines",
    [("loss = loss.clone().detach() / world_size", "dist.all_reduce(loss)"), ("loss = loss_of(x, y)", "dist.all_reduce(loss)"),
     ("loss = loss.clone().detach()", "loss = loss / world_size", "dist.all_reduce(loss)"),
     ("loss = loss.clone().detach()", "dist.all_reduce(loss)", "loss = loss / world_size")],
)  # fmt: skip
def test_a_copy_under_the_name_of_the_loss_that_is_right_or_not_seen(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, train(*lines, shows="meter.update(loss.item())"))


def test_a_term_of_the_loss_that_is_summed_over_the_ranks() -> None:
    loss = "main_loss = loss_of(model(x), y)\nloss = main_loss + 0.1 * model(y).mean()"
    check_told(RULE, train("seen = main_loss.detach()", SUM, loss=loss), reason="ReduceOp.AVG")


@pytest.mark.parametrize(
    "source",
    [
        train(COPY, SUM, "seen = seen / world_size"),
        train(COPY, SUM, "seen /= dist.get_world_size()"),
        train(COPY, SUM, shows="meter.update(seen.item() / world_size)"),
        train(COPY, SUM, shows="meter.update(seen.item(), world_size)"),
        train(COPY, SUM).replace("{meter.avg:.3f}", "{meter.avg / world_size:.3f}"),
        train("seen = loss.detach() / world_size", SUM),
        train(COPY, "dist.all_reduce(seen, op=dist.ReduceOp.AVG)"),
        train(COPY, "dist.all_reduce(seen, dist.ReduceOp.MAX)"),
        train(COPY, "dist.all_reduce(seen, group=model.group)"),
        train(COPY, SUM, loss="loss = loss_of(model(x), y) / world_size"),
        train(COPY, SUM, loss="loss = loss_of(model(x), y).sum()"),
        train(COPY, SUM, shows="model.remember(seen)"),
        train("seen = torch.tensor(len(x))", SUM),
        train(COPY, SUM).replace("def train", "import torch.nn as nn\nLOSS = nn.L1Loss(reduction='sum')\n\n\ndef train"),
    ],
)
def test_training_losses_that_are_right_or_not_known(source: str) -> None:
    check_nothing(RULE, source)


ALONE = "nothing sums it over the ranks"
TRAIN = f"""{HEAD}
from accelerate import Accelerator

accelerator = Accelerator()


def train(model, data, optimizer, loss_of, log, epochs):
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, 8, shuffle=True))
    running, steps = 0.0, 0
    for epoch in range(epochs):
        for x, y in loader:
            loss = loss_of(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            running += loss.item()
            steps += 1
            if steps % 100 == 0:
"""


def training(*lines: str) -> str:
    return TRAIN + "".join(f"                {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [("mean_loss = torch.tensor(running / steps, device=accelerator.device)",
      "mean_loss = mean_loss.item() / accelerator.num_processes", "if accelerator.is_main_process:",
      "    log.info(f'train loss {mean_loss:.4f}')"),
     ("mean_loss = running / steps", "mean_loss /= accelerator.num_processes", "accelerator.print('loss', mean_loss)"),
     ("if accelerator.is_main_process:", "    print('loss', running / accelerator.num_processes)")],
)  # fmt: skip
def test_an_own_number_by_the_processes(lines: tuple[str, ...]) -> None:
    found = check_told(RULE, training(*lines), reason="leave the division out")
    assert ALONE in found.message


@pytest.mark.parametrize(
    "lines",
    [("mean_loss = accelerator.reduce(torch.tensor(running / steps))",
      "print('loss', mean_loss.item() / accelerator.num_processes)"),
     ("mean_loss = torch.tensor(running / steps) / accelerator.num_processes", "dist.all_reduce(mean_loss)",
      "print('loss', mean_loss.item())"),
     ("mean_loss = sync_over_ranks(running / steps)", "print('loss', mean_loss / accelerator.num_processes)"),
     ("share = epochs / accelerator.num_processes", "print('loss', share)"),
     ("mean_loss = running / steps", "print('images of each rank', mean_loss, epochs / accelerator.num_processes)"),
     ("rate = x.size(0) / accelerator.num_processes", "print('images of each rank', rate)"),
     ("loss = loss / accelerator.num_processes", "accelerator.backward(loss)", "print('loss', loss.item())"),
     ("mean_loss = running / accelerator.num_processes", "parts = [mean_loss] * 2"),
     ("loss = loss * accelerator.num_processes", "print('loss', loss.item() / accelerator.num_processes)")],
)  # fmt: skip
def test_a_number_by_the_processes_that_is_right_or_no_metric(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, training(*lines))


def test_an_evaluation_of_an_own_share_by_the_processes() -> None:
    source = evaluate("loss = total.item() / len(loader) / dist.get_world_size()")
    found = check_told(RULE, source, reason="sum it over the ranks above")
    assert ALONE in found.message


OTHER = """
def train(model, loader, optimizer, loss_of, several, report):
    if several:
        size = dist.get_world_size()
    else:
        size = {one}
    for x, y in loader:
        out = model(x=x, y=y)
        loss = out["loss"]
        total = {total}
        total.backward()
        optimizer.step()
        if several:
            dist.all_reduce(total)
        loss /= size
        shown = torch.mean(loss)
        report.logger_info("train loss {{:.4f}}".format(shown.item()))


def main(model, data, optimizer, loss_of, report):
    train(model, DataLoader(data, 8, sampler=DistributedSampler(data)), optimizer, loss_of, True, report)
"""


def test_the_sum_of_another_tensor_than_the_one_that_is_divided() -> None:
    found = check_told(RULE, HEAD + OTHER.format(one=1, total="torch.sum(loss)"), reason="")
    assert ALONE in found.message


@pytest.mark.parametrize(("one", "total"), [(1, "loss"), (1, "loss.detach()"), (1, "loss[:]"), (4, "torch.sum(loss)")])
def test_a_sum_in_the_same_memory_and_another_divisor(one: int, total: str) -> None:
    """What is summed in place through another name of the tensor is summed; who divides by 4 has something else in mind."""
    check_nothing(RULE, HEAD + OTHER.format(one=one, total=total))


def test_a_number_of_the_whole_set_by_the_processes() -> None:
    check_nothing(RULE, evaluate("loss = total.item() / dist.get_world_size()", loader="DataLoader(data, 8)"))


STEPS = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def fit(net, rows, other, size, epochs, distributed):
    loader = DataLoader(rows, batch_size=size, drop_last=True, sampler=DistributedSampler(rows))
    for epoch in range(epochs):
        total = 0
        for batch in loader:
            loss = net(batch).mean()
            loss.backward()
            total += loss.item()
        if dist.get_rank() == 0:
            steps = len(rows) // size
            print(f"epoch {epoch}: loss {total / steps}")
"""
OF_ONE = "is how many steps one process would make"
NAMED = STEPS.replace("    loader = DataLoader(rows, batch_size=size, drop_last=True, sampler=DistributedSampler(rows))", """\
    sampler = DistributedSampler(rows) if distributed else None
    loader = DataLoader(rows, size, sampler=sampler)""")  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [STEPS, NAMED, STEPS.replace("steps = len(rows) // size", "steps = int(len(rows) / size)"),
     STEPS.replace("in loader:", "in tqdm(loader):").replace("import torch\n", "import torch\nfrom tqdm import tqdm\n", 1),
     STEPS.replace("            steps = len(rows) // size\n", "").replace("/ steps", "/ (len(rows) / size)")],
)  # fmt: skip
def test_the_steps_of_one_process_under_the_sum_of_a_share(source: str) -> None:
    check_told(RULE, source, reason=OF_ONE)


@pytest.mark.parametrize(
    "source",
    [STEPS.replace("steps = len(rows) // size", "steps = len(loader)"),
     STEPS.replace("steps = len(rows) // size", "steps = len(other) // size"),  # another set
     STEPS.replace("steps = len(rows) // size", "steps = len(rows) // size // dist.get_world_size()"),
     STEPS.replace(", sampler=DistributedSampler(rows)", ""),  # each rank goes through all
     STEPS.replace("DistributedSampler(rows)", "DistributedSampler(rows, num_replicas=1, rank=0)"),
     STEPS.replace("batch_size=size,", "batch_size=size // 2,"),
     NAMED.replace("if distributed", "if epochs > 3"),  # which sampler it is, is not shown
     STEPS.replace("            total += loss.item()", "            dist.all_reduce(loss)\n            total += loss.item()"),
     STEPS.replace("        if dist.get_rank()", "        total = dist_sum(total)\n        if dist.get_rank()"),
     STEPS.replace("    for epoch in range(epochs):\n        total = 0", "    total = 0\n    for epoch in range(epochs):"),
     STEPS.replace("            print(f\"epoch {epoch}: loss {total / steps}\")", "            return total / steps"),
     STEPS.replace("    loader =", "    size = size * 2\n    loader =").replace("    for epoch", "    size = 1\n    for epoch")],
)  # fmt: skip
def test_counts_that_are_those_of_the_rank_or_are_not_seen(source: str) -> None:
    check_nothing(RULE, source)


BY_KIND = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total += value
        self.count += 1


def mean_of_all(tensor):
    tensor = tensor.clone()
    dist.all_reduce(tensor)
    return tensor / dist.get_world_size()


def judge(net, data, epoch):
    loader = DataLoader(data, 1, sampler=DistributedSampler(data, shuffle=False))
    meters = {}
    for kinds, rows in loader:
        score = net(rows).mean()
        REDUCED
        for kind in KINDS:
            if kind not in meters:
                meters[kind] = Meter()
            meters[kind].update(score)
    REST
    print({kind: meter.total / meter.count for kind, meter in meters.items()})
"""


def by_kind(reduced: str, *, kinds: str = "kinds", rest: str = "pass") -> str:
    return BY_KIND.replace("REDUCED", reduced).replace("KINDS", kinds).replace("REST", rest)


@pytest.mark.parametrize("reduced", ["score = mean_of_all(score).item()", "score = [mean_of_all(s).item() for s in [score]]"])
def test_what_all_ranks_have_under_the_category_of_the_own_batch(reduced: str) -> None:
    found = check_told(RULE, by_kind(reduced), reason="the parts of the others belong under other keys")
    assert "which is that of the rank's own batch" in found.message


@pytest.mark.parametrize(
    "source",
    [by_kind("score = score.item()"),  # the own number
     by_kind("score = mean_of_all(score).item()", kinds="['all']"),  # the same key on all ranks
     by_kind("score = mean_of_all(score).item()", kinds="[epoch]"),
     by_kind("whole = mean_of_all(score).item()"),  # another number is reduced
     by_kind("pass", rest="for meter in meters.values():\n        meter.total = mean_of_all(torch.tensor(meter.total))")],
)  # fmt: skip
def test_keys_and_numbers_that_belong_to_each_other(source: str) -> None:
    check_nothing(RULE, source)
