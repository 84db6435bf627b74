"""DDP106: numbers of one rank that rank 0 shows as everybody's."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = UnreducedNumber
HEAD = """\
import torch
import torch.distributed as dist; WORLD = dist.group.WORLD
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


"""
WHY = "reduce sums and counts over the ranks first"
REDUCED = "acc = batch.sum()\n        dist.all_reduce(acc)"
SHARED = "DataLoader(data, 8, sampler=DistributedSampler(data))"


def evaluate(end: str, *, loader: str = SHARED, step: str = "total += loss_of(model(batch)).item()") -> str:
    lines = "".join(f"    {line}\n" for line in end.splitlines())
    return (
        f"{HEAD}def evaluate(model, data, loss_of, writer, best=9.0):\n    loader = {loader}\n    total = 0.0\n"
        f"    for batch in loader:\n        {step}\n{lines}"
    )


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason=WHY)
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    "end",
    ["loss = total / len(loader)\nif dist.get_rank() == 0:\n    print(f'loss {loss:.3f}')",
     "loss = total / len(loader)\nrank = dist.get_rank()\nif rank == 0:\n    writer.add_scalar('loss', loss, 1)",
     "val_loss = total / len(loader)\nif dist.get_rank() != 0:\n    return\nprint('loss', val_loss)",
     "score = total / len(loader)\nif dist.get_rank() == 0 and score < best:\n    torch.save(model, 'best.pt')"],
)  # fmt: skip
def test_a_mean_over_the_own_share(end: str) -> None:
    check_told(RULE, evaluate(end), reason=WHY)


@pytest.mark.parametrize(
    "shown",
    ["print('accuracy', total / len(loader))", "print('accuracy:', total / len(loader), 'done')",
     "print(f'val loss {total / len(loader):.3f}')", "writer.write(f'accuracy = {total / len(loader)}')"],
)  # fmt: skip
def test_a_quotient_that_only_the_text_before_it_names(shown: str) -> None:
    check_told(RULE, evaluate(f"if dist.get_rank() == 0:\n    {shown}"), reason=WHY)
    check_nothing(RULE, evaluate(f"total = gather_all(total)\nif dist.get_rank() == 0:\n    {shown}"))


@pytest.mark.parametrize(
    "shown",
    ["print('rows', total / len(loader))", "print('accuracy of', args.name, 'rows', total / len(loader))",
     "print(f'loss over {total / len(loader)} rows')", "print('loss', total / len(loader))"],
)  # fmt: skip
def test_a_quotient_that_the_text_before_it_calls_otherwise(shown: str) -> None:
    head = "" if "rows" in shown else "dist.all_reduce(total)\n"
    check_nothing(RULE, evaluate(f"{head}if dist.get_rank() == 0:\n    {shown}"))


def test_a_meter_and_a_return_in_between() -> None:
    source = (
        f"{HEAD}class Meter:\n    def __init__(self):\n        self.sum, self.n = 0.0, 0\n\n"
        "    def update(self, value):\n        self.sum += value\n        self.n += 1\n\n"
        "    @property\n    def avg(self):\n        return self.sum / self.n\n\n\n"
        "def evaluate(model, loader, loss_of):\n    meter = Meter()\n    for batch in loader:\n"
        "        meter.update(loss_of(model(batch)).item())\n    return meter.avg\n\n\n"
        f"def main(model, data, loss_of):\n    loader = {SHARED}\n    val_loss = evaluate(model, loader, loss_of)\n"
        "    if dist.get_rank() == 0:\n        print(val_loss)\n"
    )
    check_told(RULE, source, reason=WHY)


def test_what_accelerate_prints_on_the_main_process() -> None:
    source = (
        "from accelerate import Accelerator\n\n\ndef main(model, loader, loss_of):\n    accelerator = Accelerator()\n"
        "    model, loader = accelerator.prepare(model, loader)\n    losses = []\n    for batch in loader:\n"
        "        losses.append(loss_of(model(batch)).item())\n    loss = sum(losses) / len(losses)\n"
        "    accelerator.print(f'loss {loss}')\n"
    )
    check_told(RULE, source, reason=WHY)


# What the number is used for


KEEP = "    torch.save(model, 'best.pt')"


@pytest.mark.parametrize(
    "end",
    [f"score = total / len(loader)\nif score > best:\n{KEEP}",
     f"loss = total / len(loader)\nis_best = loss < best\nif is_best and dist.get_rank() == 0:\n{KEEP}",
     f"loss = total / len(loader)\nif loss < best:\n    best = loss\n{KEEP}"],
)  # fmt: skip
def test_each_rank_decides_by_its_own_share(end: str) -> None:
    found = check_told(RULE, evaluate(end), reason=WHY)
    assert "each rank holds" in found.message


def test_what_decides_is_told_before_what_is_shown() -> None:
    end = f"loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)\n    if loss < best:\n    {KEEP}"
    assert "decides" in check_told(RULE, evaluate(end), reason=WHY).message
    assert len(findings_of(RULE, evaluate(end))) == 1


def test_rank_0_alone_goes_through_its_share() -> None:
    source = (
        f"{HEAD}def main(model, data, loss_of):\n    loader = {SHARED}\n    if dist.get_rank() == 0:\n        total = 0.0\n"
        "        for batch in loader:\n            total += loss_of(model(batch)).item()\n"
        "        loss = total / len(loader)\n        print('loss', loss)\n"
    )
    found = check_told(RULE, source, reason="let every rank go through the loader")
    assert found.span.line == source.splitlines().index("        for batch in loader:") + 1


TRAINS = "loss = loss_of(model(batch))\n        loss.backward()\n        total += loss.item()"
ON_ZERO = "if dist.get_rank() == 0:\n"


@pytest.mark.parametrize("reduced", ["pass", REDUCED])
@pytest.mark.parametrize(
    "shown", ["print('loss', loss.item())", "writer.add_scalar('loss', loss.item(), 1)", "bar.set_postfix(loss=loss.item())"]
)
def test_the_curve_of_a_training(shown: str, reduced: str) -> None:
    step = f"{TRAINS}\n        {reduced}\n        {ON_ZERO}            {shown}"
    check_nothing(RULE, evaluate("pass", step=step))
    helper = f"{HEAD}def reduce_mean(x):\n    dist.all_reduce(x)\n    return x / dist.get_world_size()\n\n\n"
    check_nothing(RULE, evaluate("pass", step=step).replace(HEAD, helper))


def test_the_number_of_an_epoch_of_training() -> None:
    mean = "train_loss = total / len(loader)\n"
    check_nothing(RULE, evaluate(f"{mean}{ON_ZERO}    print('loss', train_loss)", step=TRAINS))
    decides = f"{mean}{ON_ZERO}    print('loss', train_loss)\n    if train_loss < best:\n    {KEEP}"
    check_told(RULE, evaluate(decides, step=TRAINS), reason=WHY)


def test_a_result_beside_the_curve_of_another_file() -> None:
    mean = evaluate(f"train_loss = total / len(loader)\n{ON_ZERO}    print('loss', train_loss)", step=TRAINS)
    files = {"a.py": mean, "b.py": evaluate(MEAN)}
    assert [len(findings_of(RULE, files[p], path=p, files=files)) for p in files] == [0, 1]




# Who shows it


def test_a_logger_that_is_quiet_on_the_other_ranks() -> None:
    setup = (
        "def setup(name, rank):\n    log = logging.getLogger(name)\n    if rank > 0:\n        return log\n"
        "    log.addHandler(logging.StreamHandler())\n    return log\n\n\nlogger = logging.getLogger('a')\n\n\n"
    )
    source = evaluate("loss = total / len(loader)\nlogger.info('loss %s', loss)")
    check_told(RULE, source.replace(HEAD, f"import logging\n{HEAD}{setup}"), reason=WHY)
    check_nothing(RULE, source.replace(HEAD, f"import logging\n{HEAD}logger = logging.getLogger('a')\n\n\n"))


def test_a_writer_that_rank_0_alone_has() -> None:
    head = "tb = None\nif dist.get_rank() == 0:\n    tb = SummaryWriter()\n"
    end = f"{head}loss = total / len(loader)\nif tb is not None:\n    tb.add_scalar('loss', loss, 1)"
    check_told(RULE, evaluate(end), reason=WHY)
    check_nothing(RULE, evaluate(end.replace("if dist.get_rank() == 0:", "if loss_of:")))


def test_a_helper_that_prints_on_rank_0() -> None:
    helper = "def log_line(text):\n    if dist.get_rank() == 0:\n        print(text)\n\n\n"
    source = evaluate("loss = total / len(loader)\nlog_line(f'loss {loss}')").replace(HEAD, HEAD + helper)
    check_told(RULE, source, reason=WHY)
    check_nothing(RULE, source.replace("    if dist.get_rank() == 0:\n        print", "    if text:\n        print"))


def test_a_sampler_that_is_put_into_batches() -> None:
    loader = "DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(DistributedSampler(data), 8, False))"
    end = "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"
    check_told(RULE, evaluate(end, loader=loader), reason=WHY)


# Lightning


def lightning(step: str, more: str = "", trainer: str = "pl.Trainer(devices=2).fit(Model())") -> str:
    return (
        "import lightning.pytorch as pl\n\n\nclass Model(pl.LightningModule):\n    def training_step(self, batch, batch_idx):\n"
        f"        loss = self.net(batch).mean()\n        {step}\n        return loss\n{more}\n\n{trainer}\n"
    )


@pytest.mark.parametrize(
    "step",
    ["self.log('train_loss', loss)\n        self.log('kl_loss', loss)", "self.log_dict({'train/loss': loss})",
     "d = {'train_loss': loss}\n        self.log_dict(d)"],
)  # fmt: skip
def test_the_loss_of_lightnings_training_steps_is_nobodys_loss(step: str) -> None:
    check_nothing(RULE, lightning(step))


@pytest.mark.parametrize(
    "step",
    ["self.log('train_loss', loss, sync_dist=True)", "self.log('train_loss', loss, sync_dist=self.several)",
     "self.log('train_loss', loss, rank_zero_only=True)", "self.log('lr', self.optimizers().param_groups[0]['lr'])",
     "self.log('train_loss', loss, on_epoch=True)", "self.log('train_loss', self.all_gather(loss).mean())",
     "self.log('train_loss', loss, logger=False)", "self.log('tokens', 3)"],
)  # fmt: skip
def test_what_lightning_reduces_or_another_rule_tells(step: str) -> None:
    check_nothing(RULE, lightning(step))


def test_a_module_that_nothing_here_trains() -> None:
    check_nothing(RULE, lightning("self.log('train_loss', loss)", trainer="Model()"))


# Right


@pytest.mark.parametrize(
    "end",
    ["t = torch.tensor([total, len(loader)])\ndist.all_reduce(t)\n"
     "if dist.get_rank() == 0:\n    print('loss', (t[0] / t[1]).item())",
     "loss = reduce_mean(total / len(loader))\nif dist.get_rank() == 0:\n    print('loss', loss)",
     "parts = [None] * dist.get_world_size()\ndist.all_gather_object(parts, total)\nloss = sum(parts)\n"
     "if dist.get_rank() == 0:\n    print('loss', loss)",
     "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('rank', dist.get_rank(), 'loss', loss)",
     "if dist.get_rank() == 0:\n    print('batches', len(loader))"],
)  # fmt: skip
def test_numbers_that_are_reduced_or_named(end: str) -> None:
    check_nothing(RULE, evaluate(end))


def test_a_loader_that_gives_every_rank_the_whole() -> None:
    end = "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"
    check_nothing(RULE, evaluate(end, loader="DataLoader(data, 8)"))


def test_the_metric_of_torchmetrics() -> None:
    source = (
        f"{HEAD}from torchmetrics.classification import BinaryAccuracy\n\n\ndef evaluate(model, data):\n    loader = {SHARED}\n"
        "    accuracy = BinaryAccuracy()\n    for batch, labels in loader:\n        accuracy.update(model(batch), labels)\n"
        "    acc = accuracy.compute()\n    if dist.get_rank() == 0:\n        print('acc', acc.item())\n"
    )
    check_nothing(RULE, source)


def test_a_file_that_one_process_runs() -> None:
    loop = "def f(loader, model, rank):\n    for x in loader:\n        loss = model(x)\n"
    check_nothing(RULE, loop + "    if rank == 0:\n        print(loss)\n")


def test_a_test_of_the_repository() -> None:
    end = "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"
    check_nothing(RULE, evaluate(end), path="tests/test_train.py")


MEAN = "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"


@pytest.mark.parametrize(
    "loader", ["DataLoader(data, 8, shuffle=True)", "DataLoader(data, 8, sampler=RandomSampler(data))", "val_loader"]
)
def test_a_result_of_the_whole_set_or_of_a_loader_that_is_not_seen(loader: str) -> None:
    check_nothing(RULE, evaluate(MEAN, loader=loader))


@pytest.mark.parametrize(
    "step",
    ["loss = loss_of(model(batch))\n        if dist.get_rank() == 0:\n            print('loss', loss.item())",
     "if dist.get_rank() == 0:\n            bar.set_postfix(loss=loss_of(model(batch)).item())",
     "logs = {'loss': wandb.Image(model(batch))}\n        if dist.get_rank() == 0:\n            wandb.log(logs)",
     "n_rows = batch.shape[1]\n        if dist.get_rank() == 0:\n            writer.add_scalar('n_rows', n_rows, 1)"],
)  # fmt: skip
def test_single_batches_of_an_evaluation_and_pictures(step: str) -> None:
    check_nothing(RULE, evaluate("pass", step=step))


@pytest.mark.parametrize(
    "end",
    ["if total > best:\n    print('more')", "if len(loader) > best:\n    torch.save(model, 'best.pt')",
     "inliers = total / 2\nif inliers > last_n:\n    torch.save(model, 'best.pt')",
     "epoch = total / 2\nif epoch > best:\n    torch.save(model, 'best.pt')",
     "loss = all_reduce_mean(total)\nif loss < best:\n    torch.save(model, 'best.pt')"],
)  # fmt: skip
def test_comparisons_that_keep_nothing_or_of_what_is_the_same(end: str) -> None:
    check_nothing(RULE, evaluate(end))


def test_a_loss_that_gathers_in_its_forward() -> None:
    loss = (
        "class Contrast(torch.nn.Module):\n    def forward(self, x):\n        parts = [x] * 2\n"
        "        dist.all_gather(parts, x)\n        parts[0] = x\n        return (torch.cat(parts) * x).mean()\n\n\n"
    )
    shown = "if dist.get_rank() == 0:\n            print('loss', loss.item())"
    step = f"criterion = Contrast()\n        loss = criterion(model(batch))\n        loss.backward()\n        {shown}"
    check_nothing(RULE, evaluate("pass", step=step).replace(HEAD, HEAD + loss))


def test_rows_that_rank_0_cuts_off_to_show() -> None:
    source = (
        f"{HEAD}def show(scores, rank):\n    if rank == 0:\n        shown = min(len(scores), 5)\n"
        "        for score in scores[:shown]:\n            print('score', score)\n"
    )
    check_nothing(RULE, source)


def test_a_loader_that_a_text_chooses() -> None:
    source = (
        f"{HEAD}class Data:\n    def __init__(self, rows, mode):\n        if mode == 'train':\n"
        "            self.data = DataLoader(rows, 8, sampler=DistributedSampler(rows))\n        else:\n"
        "            self.data = DataLoader(rows, 8)\n\n\ndef main(model, rows, loss_of):\n    loader = Data(rows, 'test').data\n"
        "    total = 0.0\n    for batch in loader:\n        total += loss_of(model(batch)).item()\n"
        "    loss = total / len(loader)\n    if dist.get_rank() == 0:\n        print('loss', loss)\n"
    )
    check_nothing(RULE, source)
    check_told(RULE, source.replace("DataLoader(rows, 8)\n", "None\n").replace("mode == 'train'", "mode"), reason=WHY)


METERS = (
    "class Kept:\n    def __init__(self):\n        self.total, self.count = 0.0, 0\n\n"
    "    def update(self, value):\n        self.total += value\n        self.count += 1\n\n"
    "    def settle(self):\n        t = torch.tensor([self.total, self.count])\n        dist.all_reduce(t)\n"
    "        self.total, self.count = t.tolist()\n\n"
    "    @property\n    def overall(self):\n        return self.total / self.count\n\n\n"
    "class Board:\n    def __init__(self):\n        self.meters = defaultdict(Kept)\n\n"
    "    def update(self, **kwargs):\n        for k, v in kwargs.items():\n            self.meters[k].update(v)\n\n"
    "    def settle(self):\n        for meter in self.meters.values():\n            meter.settle()\n\n\n"
)


def board(between: str, fill: str = "board.update(loss=loss_of(model(batch)).item())") -> str:
    return (
        f"{HEAD}from collections import defaultdict\n\n\n{METERS}def evaluate(model, data, loss_of):\n    loader = {SHARED}\n"
        f"    board = Board()\n    for batch in loader:\n        {fill}\n    {between}\n"
        "    return {k: meter.overall for k, meter in board.meters.items()}\n\n\n"
        "def main(model, data, loss_of, best=9.0):\n    stats = evaluate(model, data, loss_of)\n"
        "    if stats['loss'] < best:\n        torch.save(model, 'best.pt')\n"
    )


@pytest.mark.parametrize(
    "fill",
    ["board.update(loss=loss_of(model(batch)).item())",
     "board.update(loss=0.0)\n        board.meters['loss'].update(loss_of(model(batch)).item())"],
)  # fmt: skip
def test_meters_that_their_holder_settles(fill: str) -> None:
    check_nothing(RULE, board("board.settle()", fill))
    check_told(RULE, board("print(len(board.meters))", fill), reason=WHY)
    check_told(RULE, board("board.settle()", fill).replace("        dist.all_reduce(t)\n", ""), reason=WHY)


def test_meters_of_a_dict_that_a_board_made_of_them_settles() -> None:
    handed = "def __init__(self, meters):\n        self.meters = meters"
    listing = METERS.replace("def __init__(self):\n        self.meters = defaultdict(Kept)", handed)
    listing = listing.replace("self.meters.values()", "self.meters")
    source = (
        f"{HEAD}{listing}def evaluate(model, data, loss_of):\n    loader = {SHARED}\n    kept = {{'loss': Kept()}}\n"
        "    board = Board([*kept.values()])\n    for batch in loader:\n"
        "        kept['loss'].update(loss_of(model(batch)).item())\n"
        "    board.settle()\n    return {k: meter.overall for k, meter in kept.items()}\n\n\n"
        "def main(model, data, loss_of, best=9.0):\n    stats = evaluate(model, data, loss_of)\n"
        "    if stats['loss'] < best:\n        torch.save(model, 'best.pt')\n"
    )
    check_nothing(RULE, source)
    check_told(RULE, source.replace("    board.settle()\n", ""), reason=WHY)
    check_told(RULE, source.replace("Board([*kept.values()])", "Board([])"), reason=WHY)


def test_a_helper_that_reduces_the_storage_of_its_argument() -> None:
    helper = "def even_out(t, several):\n    if several:\n        dist.all_reduce(t.data)\n        t.data /= 2\n"
    source = (
        f"{HEAD}{helper}\n\ndef evaluate(model, loader, loss_of):\n    total = torch.zeros(1)\n    for batch in loader:\n"
        "        total += loss_of(model(batch)).item()\n    even_out(total, True)\n    return total\n\n\n"
        f"def main(model, data, loss_of):\n    loader = {SHARED}\n    val_loss = evaluate(model, loader, loss_of) / len(loader)\n"
        "    if dist.get_rank() == 0:\n        print(val_loss)\n"
    )
    check_nothing(RULE, source)
    check_told(RULE, source.replace("    even_out(total, True)\n", ""), reason=WHY)


def test_a_loss_that_only_its_name_gives_to_the_rank() -> None:
    step = "loss = batch.sum()\n        loss.backward()\n        if dist.get_rank() == 0:\n            print('loss', avg_loss)"
    source = evaluate("pass", step=step).replace(HEAD, f"{HEAD}from elsewhere import avg_loss\n\n\n")
    check_nothing(RULE, source)


def test_a_gather_to_rank_0_into_blanks_and_the_arm_of_one_process() -> None:
    source = (
        f"{HEAD}def joined(x):\n    if dist.get_rank() == 0:\n        parts = [torch.empty_like(x) for _ in range(2)]\n"
        "        dist.gather(x, parts)\n        return sum(parts)\n    dist.gather(x)\n\n\n"
        f"def evaluate(model, data, loss_of, sampler):\n    loader = {SHARED}\n    total = torch.zeros(1)\n"
        "    for batch in loader:\n        total += loss_of(model(batch)).item()\n"
        "    if sampler is not None:\n        out = joined(total)\n    else:\n        out = total.cpu()\n"
        "    if dist.get_rank() == 0:\n        return out / len(loader)\n    return None\n\n\n"
        "def main(model, data, loss_of, sampler, best=0.0):\n    score = evaluate(model, data, loss_of, sampler)\n"
        "    if score is not None and score > best:\n        torch.save(model, 'best.pt')\n"
    )
    check_nothing(RULE, source)
    check_told(RULE, source.replace("sampler is not None", "data").replace("joined(total)", "total"), reason=WHY)


def test_an_entry_that_is_gathered_where_it_is_shown() -> None:
    logs = "logs = {'loss': gather(loss).mean().item()}"
    gather = (
        "def gather(x):\n    parts = [torch.zeros_like(x) for _ in range(2)]\n    dist.all_gather(parts, x)\n"
        "    return torch.stack(parts)"
    )
    step = f"{TRAINS}\n        {logs}\n        if dist.get_rank() == 0:\n            writer.log(logs)"
    check_nothing(RULE, evaluate("pass", step=step).replace(HEAD, f"{HEAD}{gather}\n\n\n"))


IN_LINE = "[loss_of(model(x)) for x in loader]"
FABRIC = (
    "from lightning.fabric import Fabric\n\n\nclass Loop:\n    def __init__(self, model, data):\n"
    "        self.fabric = Fabric(devices=2)\n        self.model = self.fabric.setup(model)\n"
    "        self.loader = self.fabric.setup_dataloaders(DataLoader(data, 8))\n\n"
    "    def numbers(self, loss_of):\n        errors = [loss_of(self.model(x)) for x in self.loader]\n"
    "        return {'error': torch.stack(errors).mean()}\n\n"
    "    def run(self, loss_of):\n        self.report(self.numbers(loss_of))\n\n"
    "    def report(self, numbers):\n        named = {k: v.item() for k, v in numbers.items()}\n"
    "        self.fabric.log_dict(named)\n"
)


def in_line(end: str, *, loader: str = SHARED, helper: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in end.splitlines())
    return f"{HEAD}{helper}def evaluate(model, data, loss_of, writer, best=9.0):\n    loader = {loader}\n{lines}"


@pytest.mark.parametrize(
    "end",
    [f"errors = {IN_LINE}\nloss = torch.stack(errors).mean()\nif dist.get_rank() == 0:\n    print('loss', loss)",
     f"losses = {IN_LINE}\nval_loss = sum(losses) / len(losses)\nif dist.get_rank() == 0 and val_loss < best:\n"
     "    torch.save(model, 'best.pt')",
     "loss = sum(loss_of(model(x)).item() for x in loader) / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"],
)  # fmt: skip
def test_an_evaluation_in_one_line(end: str) -> None:
    check_told(RULE, in_line(end), reason=WHY)


def test_an_evaluation_in_one_line_whose_loader_is_handed_over() -> None:
    helper = f"def score(model, loader, loss_of):\n    errors = {IN_LINE}\n    return torch.stack(errors).mean()\n\n\n"
    end = "loss = score(model, loader, loss_of)\nif dist.get_rank() == 0:\n    print('loss', loss)"
    check_told(RULE, in_line(end, helper=helper), reason=WHY)
    check_nothing(RULE, in_line(end, helper=helper, loader="DataLoader(data, 8)"))
    reduced = helper.replace("    return torch.stack(errors).mean()", "    mean = torch.stack(errors).mean()\n"
                             "    dist.all_reduce(mean)\n    return mean")  # fmt: skip
    check_nothing(RULE, in_line(end, helper=reduced))


def test_in_one_line_what_is_no_evaluation_of_the_own_share() -> None:
    mean = f"losses = {IN_LINE}\nloss = sum(losses) / len(losses)\n"
    check_nothing(RULE, in_line(f"{mean}print('loss', loss)"))  # every rank prints its own
    shown = f"{mean}if dist.get_rank() == 0:\n    print('loss', loss)"
    check_nothing(RULE, in_line(shown, loader="DataLoader(data, 8, shuffle=True)"))  # each rank has the whole set
    counted = "n = sum(1 for x in loader)\nif dist.get_rank() == 0:\n    print('loss', n)"
    check_nothing(RULE, in_line(counted))


def test_a_dict_of_numbers_that_a_tracker_of_an_object_is_handed() -> None:
    check_told(RULE, HEAD.rstrip() + "\n" + FABRIC, reason=WHY)
    reduced = FABRIC.replace("torch.stack(errors).mean()", "self.fabric.all_reduce(torch.stack(errors).mean())")
    check_nothing(RULE, HEAD.rstrip() + "\n" + reduced)


def test_a_dict_of_all_that_a_training_logs_says_nothing_of_its_numbers() -> None:
    source = (
        "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\n\n\n"
        "def main(model, data, loss_of, optimizer):\n    accelerator = Accelerator()\n"
        "    loader = accelerator.prepare(DataLoader(data, 8))\n    logs = {}\n    for epoch in range(3):\n"
        "        losses = []\n        for batch in loader:\n            loss = loss_of(model(batch))\n"
        "            accelerator.backward(loss)\n            losses.append(loss.item())\n"
        "        logs['a'] = sum(losses)\n        accelerator.log(logs)\n"
    )
    check_nothing(RULE, source)


METRIC = (
    f"{HEAD}class Metric:\n    def __init__(self):\n        self.steps = 0\n        self.right = torch.zeros(1)\n\n"
    "    def __call__(self, logits):\n        self.update(logits)\n\n"
    "    def update(self, logits):\n        COUNT\n        self.right += logits.sum()\n\n"
    "    def get(self, reset=True):\n        REDUCE\n        acc = self.right.item() / (self.steps * dist.get_world_size())\n"
    "        if reset:\n            self.steps = 0\n            self.right.fill_(0)\n        return acc\n\n\n"
    f"def evaluate(model, data):\n    loader, metric = {SHARED}, Metric()\n    metric = Metric()\n    for batch in loader:\n"
    "        FILL(model(batch))\n    acc = metric.get()\n    if dist.get_rank() == 0:\n        print('acc', acc)\n"
)


@pytest.mark.parametrize("fill", ["metric", "metric.update"])
def test_an_object_that_reduces_its_own_fields(fill: str) -> None:
    source = METRIC.replace("FILL", fill)
    check_nothing(RULE, source.replace("REDUCE", "dist.all_reduce(self.right)").replace("COUNT", "self.steps += 1"))
    told = source.replace("REDUCE", "pass").replace("COUNT", "self.steps += 1")
    check_told(RULE, told, reason=WHY)


@pytest.mark.parametrize("count", ["self.steps += len(logits[logits > 0])", "if logits.sum() > 0:\n            self.steps += 1"])
def test_a_count_that_each_rank_has_of_its_own(count: str) -> None:
    source = METRIC.replace("FILL", "metric").replace("REDUCE", "dist.all_reduce(self.right)")
    check_told(RULE, source.replace("COUNT", count), reason=WHY)


@pytest.mark.parametrize("got", ["got if dist.get_rank() == 0 else None", "got"])
def test_the_list_that_a_gather_to_one_rank_fills(got: str) -> None:
    end = (
        "loss = total / len(loader)\ngot = [None] * dist.get_world_size()\n"
        f"dist.gather_object(obj=loss, object_gather_list={got}, dst=0)\n"
        "if dist.get_rank() == 0:\n    loss = sum(got) / len(got)\n    print('valid loss', loss)"
    )
    check_nothing(RULE, evaluate(end))
    check_told(RULE, evaluate(end.replace("loss = sum(got) / len(got)\n    ", "")), reason=WHY)


def test_a_list_that_one_process_fills_by_itself() -> None:
    end = (
        "loss = total / len(loader)\ngot = [None] * dist.get_world_size()\nif writer.many:\n"
        "    dist.all_gather_object(got, loss)\nelse:\n    got[0] = loss\n"
        "if dist.get_rank() == 0:\n    loss = sum(got) / len(got)\n    print('valid loss', loss)"
    )
    check_nothing(RULE, evaluate(end))
    check_told(RULE, evaluate(end.replace("dist.all_gather_object(got, loss)", "got = [loss]")), reason=WHY)


REPORT = (
    "\n\ndef log_mean(total, rounds, writer):\n    loss = torch.tensor(total / rounds)\n    dist.all_reduce(loss)\n"
    "    if dist.get_rank() == 0:\n        writer.add_scalar('loss', loss / dist.get_world_size(), 1)\n"
)


def test_a_helper_that_reduces_what_it_shows() -> None:
    source = evaluate("if dist.is_initialized():\n    log_mean(total, len(loader), writer)") + REPORT
    check_nothing(RULE, source)
    check_told(RULE, source.replace("dist.all_reduce(loss)", "pass"), reason=WHY)


GATHERS = (
    "def gather_entries(data):\n    out = {}\n    for key in data:\n        parts = [torch.empty_like(data[key])] * 2\n"
    "        dist.all_gather(parts, data[key])\n        out[key] = torch.cat(parts)\n    return out\n\n\n"
    "class Score:\n    def __init__(self):\n        self.right = 0\n\n    def add(self, found):\n"
    "        self.right += found['boxes']['a'].sum().item()\n\n    def value(self):\n        return self.right / 100\n\n\n"
)


def test_an_entry_that_is_gathered_in_its_place() -> None:
    end = "acc = total.value()\nif dist.get_rank() == 0:\n    print('acc', acc)"
    step = "found = model(batch)\n        found['boxes'] = gather_entries(found['boxes'])\n        total.add(found)"
    source = evaluate(end, step=step).replace("total = 0.0", "total = Score()").replace("def evaluate", f"{GATHERS}def evaluate")
    check_nothing(RULE, source)
    check_told(RULE, source.replace("gather_entries(found['boxes'])", "found['boxes']"), reason=WHY)


def test_a_loss_that_is_reduced_in_a_loop_of_uneven_rounds() -> None:
    step = (
        "loss = loss_of(model(batch))\n        loss.backward()\n        dist.all_reduce(loss)\n        loss = loss / 2\n"
        "        if dist.get_rank() == 0:\n            writer.add_scalar('loss', loss.item(), 1)"
    )
    uneven = "DataLoader(data[dist.get_rank() :: dist.get_world_size()], 8)"
    check_nothing(RULE, evaluate("pass", step=step, loader=uneven))


@pytest.mark.parametrize("call", ["dist.reduce(total.div_(world), 0)", "dist.all_reduce(total.detach().mul_(0.5))"])
def test_a_method_that_gives_its_own_tensor_to_a_collective(call: str) -> None:
    end = "{}\nloss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss.item())"
    step = "total += loss_of(model(batch)).detach()"
    check_nothing(RULE, evaluate(end.format(call), step=step))
    assert findings_of(RULE, evaluate(end.format('dist.reduce(total.div(world), 0)'), step=step))


IN_PLACE = (
    "def reduce_all(tensors):\n    for tensor in tensors:\n        dist.all_reduce(tensor)\n"
    "    for i, tensor in enumerate(tensors):\n        tensors[i] = tensor / dist.get_world_size()\n    return tensors\n\n\n"
)
SHOW = "if dist.get_rank() == 0:\n    print(f'loss {loss:.3f}')"


def test_nothing_behind_a_helper_that_reduces_each_of_a_list() -> None:
    end = f"loss = total / len(loader)\n[loss] = reduce_all([loss])\n{SHOW}"
    check_nothing(RULE, IN_PLACE + evaluate(end))
    check_told(RULE, IN_PLACE.replace("dist.all_reduce(tensor)", "print(tensor)") + evaluate(end), reason=WHY)


def test_nothing_of_how_far_an_evaluation_has_come() -> None:
    step = "total += loss_of(model(batch)).item()\n        if dist.get_rank() == 0:\n            print('mean so far', total / 3)"
    check_nothing(RULE, evaluate("dist.barrier()", step=step))
    check_told(RULE, evaluate(f"loss = total / len(loader)\n{SHOW}", step=step), reason=WHY)


FILL = "board.update(loss=loss_of(model(batch)).item(), lr=0.1)"
LOGGED = board("print(len(board.meters))", FILL).partition("def main(")[0] + (
    "def main(model, data, loss_of, wandb):\n    for epoch in range(3):\n        val_stats = evaluate(model, data, loss_of)\n"
    "        if dist.get_rank() == 0:\n            wandb.log({'shown': val_stats['FIRST']})\n"
    "            wandb.log({'val': val_stats['loss']})\n"
)


@pytest.mark.parametrize("key", ["lr", "learning_rate", "lr_0", "epoch", "train/weight_decay"])
def test_the_entry_that_is_a_setting_is_not_the_one_that_is_named(key: str) -> None:
    found = check_told(RULE, LOGGED.replace("FIRST", key), reason=WHY)
    assert "loss" in found.message and key not in found.message
    alone = LOGGED.replace("            wandb.log({'val': val_stats['loss']})\n", "")
    check_nothing(RULE, alone.replace("FIRST", key))
    assert findings_of(RULE, alone.replace("FIRST", "loss"))


# Entries of a dict beside those of its reduced copy

OF_A_DICT = """\
import torch
import torch.distributed as dist


def reduce_losses(losses):
    keys = sorted(losses.keys())
    values = torch.stack([losses[k] for k in keys])
    dist.all_reduce(values)
    return dict(zip(keys, values / dist.get_world_size()))


def train(model, loader):
    losses = {{}}
    for x in loader:
        losses["main"] = model(x).mean()
        losses["id"] = model(-x).mean()
        (losses["main"] + losses["id"]).backward()
        {reduced}
        main = reduced["main"].item()
        {other}
        if dist.get_rank() == 0:
            print(f"main {{main:.3f}}, id {{other:.3f}}")
"""


def entries(other: str, reduced: str = "reduced = reduce_losses(losses)") -> str:
    return OF_A_DICT.format(other=other, reduced=reduced)


def test_an_own_entry_beside_reduced_ones() -> None:
    found = check_told(UnreducedNumber, entries('other = losses["id"].mean().item()'), reason="read it from `reduced`")
    assert "`losses[\"id\"]` is the rank's own" in found.message


@pytest.mark.parametrize(
    "source",
    [
        entries('other = reduced["id"].item()'),
        entries('losses["id"] = x.mean(); other = losses["id"].item()'),
        entries('other = losses["id"]; other.backward()'),
        entries('other = reduced["id"].item()', reduced='print(losses["id"]); reduced = reduce_losses(losses)'),
    ],
)
def test_entries_that_are_right_or_do_something_else(source: str) -> None:
    assert not [f for f in findings_of(UnreducedNumber, source) if "is the rank's own, and is shown" in f.message]


BROUGHT_IN = """\
from common import *


def evaluate(model, loader):
    right = total = 0
    for x, y in loader:
        scores = model(x)
        own_right = (scores.argmax(1) == y).sum()
        own_total = torch.tensor(len(y))
        REDUCED
        if dist.get_rank() == 0:
            right += own_right.item()
            total += own_total.item()
    if dist.get_rank() == 0:
        accuracy = right / total
        print(f"accuracy {accuracy:.4f}")
"""


@pytest.mark.parametrize(("reduced", "found"), [("dist.reduce({}, dst=0, op=dist.ReduceOp.SUM)", False), ("print({})", True)])
def test_a_sum_in_place_by_what_another_file_brings_in(reduced: str, *, found: bool) -> None:
    lines = "\n        ".join(reduced.format(name) for name in ("own_right", "own_total"))
    started = f"{HEAD}from engine import evaluate\n\n\ndef main(model, data):\n    dist.init_process_group('nccl')\n"
    files = {"common.py": HEAD, "main.py": f"{started}    evaluate(model, {SHARED})\n"}
    assert bool(findings_of(RULE, BROUGHT_IN.replace("REDUCED", lines), files, path="engine.py")) is found


KEPT = HEAD + METERS.replace("def settle", "def synchronize_between_processes").partition("class Board")[0]


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ("for meter in kept.values():\n        meter.synchronize_between_processes()", False),
        ("for name, meter in kept.items():\n        meter.synchronize_between_processes()", False),
        ("for name, meter in kept.items():\n        print(name)", True),
    ],
)
def test_meters_of_a_dict_that_are_synchronised_one_by_one(between: str, *, found: bool) -> None:
    source = (
        f"{HEAD}from collections import defaultdict\nimport kept as meters\n\n\ndef main(model, data, loss_of, best=9.0):\n"
        f"    loader = {SHARED}\n    kept = defaultdict(meters.Kept)\n    for batch in loader:\n"
        f"        kept['loss'].update(loss_of(model(batch)).item())\n    {between}\n"
        "    stats = {k: meter.overall for k, meter in kept.items()}\n"
        "    if stats['loss'] < best:\n        torch.save(model, 'best.pt')\n"
    )
    assert bool(findings_of(RULE, source, {"kept.py": KEPT})) is found


@pytest.mark.parametrize(("name", "found"), [("seen", 0), ("kept", 1)])
def test_a_dict_of_sums_that_is_made_anew_of_reduced_ones(name: str, found: int) -> None:
    source = (
        "import torch\nfrom accelerate import Accelerator\nfrom torch.utils.data import DataLoader\n\n\n"
        "def train(model, data, best=1e9):\n    accelerator = Accelerator()\n"
        "    model, loader = accelerator.prepare(model, DataLoader(data, batch_size=4))\n"
        '    seen = {"loss": torch.tensor(0.0), "count": torch.tensor(0.0)}\n    for x in loader:\n'
        '        seen["loss"] += model(x).mean().item()\n        seen["count"] += 1\n    kept = seen\n'
        '    seen = {k: accelerator.reduce(v, reduction="sum") for k, v in seen.items()}\n'
        f'    val = {name}["loss"] / {name}["count"]\n    if val < best:\n        best = val\n'
        '        torch.save(model, "best.pt")\n'
    )
    assert len(findings_of(RULE, source)) == found


# Entries of a dict that is gone through


ENTRIES = "results = {'mse': total / len(loader), 'rows': len(data)}\n"
ON_ZERO = "if dist.get_rank() == 0:\n"


@pytest.mark.parametrize(
    "shows",
    ["    for key, value in results.items():\n        print(f'{key}: {value:.4f}')",
     "    with open('found.txt', 'a') as out:\n        for key, value in sorted(results.items()):\n"
     "            out.write(f'{key}: {value}\\n')",
     "    print(', '.join(f'{key} {value:.3f}' for key, value in results.items()))"],
)  # fmt: skip
def test_the_entries_of_a_dict_one_by_one(shows: str) -> None:
    found = check_told(RULE, evaluate(ENTRIES + ON_ZERO + shows), reason=WHY)
    assert "rank 0 gives `results` in line" in found.message


@pytest.mark.parametrize(
    "end",
    [ENTRIES.replace("total", "1.0") + ON_ZERO + "    for key, value in results.items():\n        print(key, value)",
     ENTRIES + "for key, value in results.items():\n    print(key, value)",
     ENTRIES + ON_ZERO + "    for key, value in results.items():\n        print(key)",
     ENTRIES.replace("results", "options") + ON_ZERO + "    for key, value in options.items():\n        print(f'{key}: {value}')",
     "all = torch.tensor(total)\ndist.all_reduce(all)\n" + ENTRIES.replace("total", "all") + ON_ZERO
     + "    for key, value in results.items():\n        print(f'{key}: {value}')"],
)  # fmt: skip
def test_entries_that_are_no_numbers_of_one_share(end: str) -> None:
    check_nothing(RULE, evaluate(end))


MADE = """\
def sampler_of(data, distributed):
    if distributed:
        return DistributedSampler(data)
    return None


def loader_of(data, phase="train", distributed=False):
    {line}
    return DataLoader(data, 8, sampler=sampler)


def main(model, data, loss_of):
    loader = loader_of({given})
    total = 0.0
    for batch in loader:
        total += loss_of(model(batch)).item()
    loss = total / len(loader)
    if dist.get_rank() == 0:
        print(f"validation loss {{loss:.3f}}")
"""
BY_HELPER = "sampler = sampler_of(data, distributed=distributed)"
BY_PHASE = "sampler = DistributedSampler(data) if phase in ('train', 'valid') else None"
BY_TEST = "sampler = None\n    if not distributed:\n        return DataLoader(data, 8)\n    sampler = DistributedSampler(data)"


@pytest.mark.parametrize(
    ("line", "given"),
    [
        (BY_HELPER, "data"),
        (BY_HELPER, "data, distributed=False"),
        (BY_PHASE, "data, 'test'"),
        (BY_TEST, "data, 'valid', False"),
    ],
)
def test_a_loader_that_is_asked_for_whole(line: str, given: str) -> None:
    check_nothing(RULE, HEAD + MADE.format(line=line, given=given))


@pytest.mark.parametrize(
    ("line", "given"),
    [
        (BY_HELPER, "data, distributed=True"),
        (BY_HELPER, "data, distributed=dist.get_world_size() > 1"),
        (BY_PHASE, "data, 'valid'"),
        (BY_TEST, "data, 'valid', True"),
    ],
)
def test_a_loader_that_is_asked_for_a_share(line: str, given: str) -> None:
    check_told(RULE, HEAD + MADE.format(line=line, given=given), reason=WHY)


COUNTED = MADE.replace("distributed=False", "world_size=-1")
BY_COUNT = "if world_size > 0:\n        return DataLoader(data, 8, sampler=DistributedSampler(data))\n    sampler = None"
BY_LEAST = "if world_size <= 1:\n        return DataLoader(data, 8)\n    sampler = DistributedSampler(data, world_size)"


@pytest.mark.parametrize("line", [BY_COUNT, BY_LEAST])
@pytest.mark.parametrize("given", ["data", "data, 'valid', 0", "data, world_size=-1"])
def test_a_loader_for_no_number_of_processes(line: str, given: str) -> None:
    check_nothing(RULE, HEAD + COUNTED.format(line=line, given=given))


@pytest.mark.parametrize("line", [BY_COUNT, BY_LEAST])
@pytest.mark.parametrize("given", ["data, world_size=2", "data, 'valid', dist.get_world_size()", "data, world_size=-(-4)"])
def test_a_loader_for_a_number_of_processes(line: str, given: str) -> None:
    check_told(RULE, HEAD + COUNTED.format(line=line, given=given), reason=WHY)


# The arm for an engine that averages by itself


def by_mode(test: str, arm: str, other: str) -> str:
    return (
        "from accelerate import Accelerator, DistributedType\n\n\ndef main(model, loader, loss_of):\n"
        "    accelerator = Accelerator()\n    model, loader = accelerator.prepare(model, loader)\n    losses = []\n"
        f"    for batch in loader:\n        loss = loss_of(model(batch)).detach()\n        if {test}:\n            {arm}\n"
        f"        else:\n            {other}\n    loss = sum(losses) / len(losses)\n    accelerator.print(f'loss {{loss}}')\n"
    )


OWN, OF_ALL = "losses.append(loss)", "losses.append(accelerator.gather_for_metrics(loss))"
MEGATRON = "accelerator.distributed_type == DistributedType.MEGATRON_LM"


@pytest.mark.parametrize(
    ("test", "arm", "other"),
    [(MEGATRON, OWN, OF_ALL), (MEGATRON.replace("==", "!="), OF_ALL, OWN),
     ("accelerator.distributed_type == 'MEGATRON_LM'", OWN, OF_ALL)],
)  # fmt: skip
def test_a_loss_that_the_engine_averages_itself(test: str, arm: str, other: str) -> None:
    check_nothing(RULE, by_mode(test, arm, other))


@pytest.mark.parametrize(
    ("test", "arm", "other"),
    [(MEGATRON, OWN, OWN), (MEGATRON.replace("==", "!="), OWN, OF_ALL), (MEGATRON.replace("MEGATRON_LM", "FSDP"), OWN, OF_ALL),
     ("accelerator.state.mode == DistributedType.MEGATRON_LM", OWN, OF_ALL)],
)  # fmt: skip
def test_a_loss_that_no_engine_averages(test: str, arm: str, other: str) -> None:
    check_told(RULE, by_mode(test, arm, other), reason=WHY)


METER = """\
import pickle
import torch
import torch.distributed as dist; WORLD = dist.group.WORLD
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Score:
    def __init__(self):
        self.hits, self.rows = 0, 0

    def add(self, hits, rows):
        self.hits += hits
        self.rows += rows

    def result(self):
        return self.hits / self.rows


def evaluate(model, data):
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    score = Score()
    for batch in loader:
        score.add(model(batch).sum().item(), len(batch))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        pickle.dump((score.hits, score.rows), open(f'part_{{rank}}.pkl', 'wb'))
    dist.barrier()
    if rank == 0:
        {merge}
        accuracy = score.result()
        print(f'accuracy {{accuracy}}')
"""
MERGE = "for other in range(1, world_size):\n            part = pickle.load(open(f'part_{other}.pkl', 'rb'))\n            "


def test_what_rank_0_adds_of_the_files_of_the_others() -> None:
    check_nothing(RULE, METER.format(merge=MERGE + "score.add(part[0], part[1])"))


@pytest.mark.parametrize("merge", ["pass", MERGE + "print(part)", MERGE + "seen.append(part)"])
def test_files_that_the_number_is_not_told_of(merge: str) -> None:
    check_told(RULE, METER.format(merge=merge), reason=WHY)


ROWS = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from exchange import merged


def evaluate(model, data, spread, folder):
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    rows = []
    for batch in loader:
        rows += [model(batch).mean().item()]
    {between}
    if dist.get_rank() != 0:
        return {{}}
    return {{'score': sum(rows) / len(rows)}}


def train(model, data, spread):
    found = evaluate(model, data, spread, 'parts')
    if dist.get_rank() == 0:
        print('score', found['score'])
"""
EXCHANGE = """import os
import pickle
import torch.distributed as dist


def merged(rows, size, folder):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    pickle.dump(rows, open(os.path.join(folder, f'{rank}.pkl'), 'wb'))
    dist.barrier()
    if rank != 0:
        return None
    parts = []
    for other in range(world_size):
        parts.append(pickle.load(open(os.path.join(folder, f'{other}.pkl'), 'rb')))
    return [row for part in parts for row in part][:size]
"""


@pytest.mark.parametrize(
    ("between", "exchange", "told"),
    [
        ("rows = merged(rows, len(data), folder)", EXCHANGE, False),
        ("if spread:\n        rows = merged(rows, len(data), folder=folder)", EXCHANGE, False),
        ("rows = merged(size=len(data), rows=rows, folder=folder)", EXCHANGE, False),
        ("pass", EXCHANGE, True),
        ("other = merged(rows, len(data), folder)", EXCHANGE, True),  # the whole is not what is shown
        ("if spread:\n        rows = merged(rows, len(data), folder)", EXCHANGE.replace("range(world_size)", "range(3)"), True),
        ("if spread:\n        rows = merged(rows, len(data), folder)", EXCHANGE.replace("pickle.load(", "str("), True),
        ("if spread:\n        rows = merged(rows, len(data), folder)", EXCHANGE.replace("    dist.barrier()\n", ""), True),
    ],
)
def test_a_function_that_exchanges_the_part_for_the_whole(between: str, exchange: str, told: bool) -> None:
    assert bool(findings_of(RULE, ROWS.format(between=between), {"exchange.py": exchange})) is told


FLAGGED = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Learner:
    def __init__(self, args, net, data):
        self.net = net
        self.loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
        self.verbose = True
        if ASKED:
            if dist.get_rank() != 0:
                self.verbose = False

    def judge(self):
        total = 0.0
        for batch in self.loader:
            total += self.net(batch).mean().item()
        return total / len(self.loader)

    def run(self):
        best = 0.0
        for epoch in range(9):
            score = self.judge()
            if self.verbose:
                if score > best:
                    best = score
                    torch.save(self.net.state_dict(), "best.pt")
"""


def test_a_flag_that_the_other_ranks_lose_where_there_are_several() -> None:
    check_told(RULE, FLAGGED.replace("ASKED", "args.distributed"), reason="is what rank 0 has of its own share")
    check_told(RULE, FLAGGED.replace("ASKED", "args.quiet"), reason="the ranks decide differently")  # perhaps none loses it
    check_told(RULE, FLAGGED.replace("ASKED", "not args.distributed"), reason="the ranks decide differently")


MARGIN = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Patience:
    def __init__(self, margin):
        self.best, self.waited, self.margin = None, 0, margin

    def __call__(self, loss, net):
        score = -loss
        if self.best is None:
            self.best = score
            self.save(net)
        elif TEST:
            self.waited += 1
        else:
            self.best = score
            KEEP

    def save(self, net):
        torch.save(net.state_dict(), "best.pt")


def judge(net, loader):
    total = 0.0
    for batch in loader:
        total += net(batch).mean().item()
    return total / len(loader)


def main(net, data):
    dist.init_process_group("gloo")
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    patience = Patience(0.1)
    for epoch in range(9):
        loss = judge(net, loader)
        SHARED
        patience(loss, net)
"""


def margin(test: str, *, keep: str = "self.save(net)", shared: str = "print(epoch)") -> str:
    return MARGIN.replace("TEST", test).replace("KEEP", keep).replace("SHARED", shared)


@pytest.mark.parametrize(
    "test", ["score < self.best + self.margin", "score <= self.best - 0.1", "self.best + self.margin > score"]
)
def test_the_best_with_a_margin_is_kept_in_the_other_arm(test: str) -> None:
    check_told(RULE, margin(test), reason="the ranks decide differently")


@pytest.mark.parametrize(
    "source",
    [margin("score < self.best + self.margin", keep="self.waited = 0"),  # nothing is saved: how long to wait is all it says
     margin("self.waited < self.best + self.margin"),
     margin("score < self.best + self.margin", shared="loss = torch.tensor(loss)\n        dist.all_reduce(loss)")],
)  # fmt: skip
def test_a_margin_over_what_is_the_same_or_saves_nothing(source: str) -> None:
    check_nothing(RULE, source)


ANSWERS = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def answer(net, loader):
    found = {}
    for batch in loader:
        for i, said in zip(batch["id"], net(batch["x"])):
            found[i] = said
    return found


def main(net, data, grade):
    dist.init_process_group("gloo")
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    found = answer(net, loader)
    parts = [None for _ in range(dist.get_world_size())]
    dist.gather_object(found, parts if dist.get_rank() == 0 else None, dst=0)
    if dist.get_rank() == 0:
        whole = {}
        for part in parts:
            whole.update(part)
        scores = grade(GRADED)
        SHOWN
"""


def answers(graded: str, shown: str = "print(scores)") -> str:
    return ANSWERS.replace("GRADED", graded).replace("SHOWN", shown)


def test_a_score_of_the_own_part_though_those_of_all_were_put_together() -> None:
    found = check_told(RULE, answers("found"), reason="of all ranks into `parts`, and this is made of the rank's own")
    assert found.span.line == answers("found").splitlines().index("        scores = grade(found)") + 1


@pytest.mark.parametrize(
    "source",
    [answers("whole"),
     answers("parts"),
     answers("found").replace("            whole.update(part)", "            found.update(part)")],
)  # fmt: skip
def test_scores_of_all_that_was_put_together(source: str) -> None:
    check_nothing(RULE, source)


PREPARING = """\
from accelerate import Accelerator


def accelerator_of(config):
    return Accelerator(mixed_precision=config.precision)
"""
COUNTING = """\
import torch

from engine import accelerator_of


def evaluate(model, loader, accelerator, loss_of):
    hits, rows, losses = 0, 0, []
    for x, y in loader:
        out = model(x)
        losses.append(accelerator.gather(loss_of(out, y).repeat(1)).mean().item())
        hits += (out.argmax(-1) == y).sum().item()
        rows += y.size(0)
    return {"loss": sum(losses) / len(losses), "accuracy": hits / rows}


def main(config, model, loader, loss_of):
    accelerator = accelerator_of(config)
    model, loader = accelerator.prepare(model, loader)
    found = evaluate(model, loader, accelerator, loss_of)
    accelerator.log({"loss": found["loss"]SHOWN})
"""


def told(shown: str, engine: str = PREPARING) -> list[str]:
    files = {"engine.py": engine, "train.py": COUNTING.replace("SHOWN", shown)}
    return [f.message for f in findings_of(RULE, files["train.py"], path="train.py", files=files)]


def test_a_program_that_makes_its_accelerator_by_a_function_of_the_project() -> None:
    assert ['found["accuracy"]' in m for m in told(', "accuracy": found["accuracy"]')] == [True]


def test_an_entry_that_was_gathered_beside_one_that_was_not() -> None:
    """Each entry of a dict that is written out is what was put under its key, also behind a call."""
    assert not told("")


def test_a_function_that_makes_an_object_of_that_name_which_joins_nobody() -> None:
    made = "class Accelerator:\n    def __init__(self, x):\n        self.x = x\n"
    own = f"{made}\n\ndef accelerator_of(config):\n    return Accelerator(config)\n"
    assert not told(', "accuracy": found["accuracy"]', own)


@pytest.mark.parametrize(
    "change",
    ['found["acc"] = reduce_mean(found["acc"])', 'found = {k: all_reduce(v) for k, v in found.items()}',
     'dist.all_reduce(found["acc"])'],
)  # fmt: skip
def test_an_entry_that_is_reduced_later(change: str) -> None:
    shown = 'if dist.get_rank() == 0:\n    writer.add_scalar("acc", found["acc"], 1)'
    check_nothing(RULE, evaluate(f'found = {{"acc": total / len(loader), "n": 1}}\n{change}\n{shown}'))


def test_an_entry_that_is_given_anew_under_another_key() -> None:
    end = (
        'found = {"acc": total / len(loader), "n": 1}\nfound["n"] = len(loader)\n'
        'if dist.get_rank() == 0:\n    writer.add_scalar("acc", found["acc"], 1)'
    )
    check_told(RULE, evaluate(end), reason=WHY)


SKLEARN = "from sklearn.metrics import average_precision_score\n"
STACKED = """\
aps = {made}(torch.cat(truth), torch.cat(found))
if dist.get_rank() == 0:
    writer.add_scalars("valid", {{"ap_of_all": 1.0, "aps": {entry}}}, 1)
"""


def stacked(made: str, entry: str) -> str:
    source = evaluate(STACKED.format(made=made, entry=entry), step="truth.append(batch.y); found.append(model(batch))")
    return SKLEARN + source.replace("total = 0.0", "truth, found = [], []")


@pytest.mark.parametrize("entry", ["aps", "np.mean(aps)", "aps.mean()"])
def test_what_a_function_of_scikit_learn_makes_of_the_own_share(entry: str) -> None:
    found = findings_of(RULE, stacked("average_precision_score", entry))
    assert len(found) == (0 if entry == "aps.mean()" else 1)


def test_what_another_function_makes_of_it_under_a_name_that_says_nothing() -> None:
    assert not findings_of(RULE, stacked("colours_of", "np.mean(aps)"))


DEALT = f"""{HEAD}def train(model, rows, loss_of, optimizer, best=9.0):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    losses = []
    for i in range(len(rows) // world_size):
        loss = loss_of(model(rows[INDEX]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if i % 100 == 0:
            if rank == 0:
                mean = sum(losses) / len(losses)
                if mean < best:
                    best = mean
                    torch.save(model.state_dict(), "best.pt")
            losses = []
"""


@pytest.mark.parametrize("index", ["i * world_size + rank", "rank + world_size * i", "(i * 2 + 1) * world_size + rank"])
def test_rows_that_each_rank_takes_in_turn(index: str) -> None:
    check_told(RULE, DEALT.replace("INDEX", index), reason=WHY)


@pytest.mark.parametrize("index", ["i", "i * 2 + 1", "i * world_size"])
def test_rows_that_every_rank_takes(index: str) -> None:
    check_nothing(RULE, DEALT.replace("INDEX", index))


@pytest.mark.parametrize(("name", "advice"), [("eer", "gather the scores and labels"), ("error", WHY)])
def test_a_score_that_is_no_quotient_of_sums(name: str, advice: str) -> None:
    end = f"val_{name} = {name}_of(found)\nif dist.get_rank() == 0 and val_{name} < best:\n    torch.save(model, 'best.pt')"
    source = evaluate(end, step="found.append(model(batch))").replace("total = 0.0", "found = []")
    check_told(RULE, source, reason=advice)


def test_a_flag_that_nobody_asks_decides_nothing() -> None:
    check_nothing(RULE, evaluate(f"loss = total / len(loader)\nis_best = loss < best\n{KEEP.strip()}"))


MERGED = (
    "own = {'loss': total / len(loader)}\nread = {'score': writer.read()}\nall_of_it = {**own, **read}\n"
    f"value = float(all_of_it.get(KEY))\nif value > best:\n{KEEP}"
)


def test_the_entry_may_be_that_of_the_other_dict() -> None:
    check_nothing(RULE, evaluate(MERGED.replace("KEY", "writer.name")))
    check_told(RULE, evaluate(MERGED.replace("KEY", "writer.name").replace(", **read", "")), reason=WHY)


def test_a_test_that_lets_rank_zero_alone_decide() -> None:
    end = "if total < best and dist.get_rank() == 0:\n    torch.save(model.state_dict(), 'best.pt')\n    best = total"
    (told,) = findings_of(RULE, evaluate(end))
    assert "`total` is what rank 0 has of its own share" in told.message and "ranks decide differently" not in told.message
    (told,) = findings_of(RULE, evaluate(end.replace(" and dist.get_rank() == 0", "")))
    assert "the ranks decide differently" in told.message


def test_a_dict_of_reduced_numbers_with_a_table_besides() -> None:
    reduced = """\
sums = {}
for name in ("loss", "accuracy"):
    value = torch.tensor(total)
    dist.all_reduce(value)
    sums[name] = value
metrics = {f"val/{k}": v for k, v in sums.items()}
metrics["KEY"] = total
if dist.get_rank() == 0:
    accelerator.log(metrics)"""
    check_nothing(RULE, evaluate(reduced.replace("KEY", "rows")))
    assert findings_of(RULE, evaluate(reduced.replace("KEY", "val_loss")))


KEEPER = """\
class Keeper:
    def __init__(self, largest=False):
        self.best = None
        self.largest = largest

    def is_best(self, metric):
        if self.best is None:
            return True
        return (self.largest and self.best <= metric) or (not self.largest and self.best >= metric)

    def save(self, model, metric):
        if self.is_best(metric):
            self.best = metric
"""
KEEPS = f"""{HEAD}from keep import Keeper


@torch.no_grad()
def evaluate(model, dataset, loss_of):
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
    total = 0.0
    for batch in loader:
        total += loss_of(model(batch)).item()
    return total / len(loader)


def main(model, dataset, loss_of):
    dist.init_process_group("nccl")
    keeper = Keeper()
    for epoch in range(3):
        loss = evaluate(model, dataset, loss_of)
        keeper.save(model, loss)
"""


def kept_by(keeper: str = KEEPER, program: str = KEEPS) -> list[str]:
    return [f.message for f in findings_of(RULE, keeper, path="keep.py", files={"main.py": program})]


def test_an_object_that_answers_whether_it_is_the_best() -> None:
    assert len(found := kept_by()) == 1 and "no result is the best by the whole set" in found[0]
    assert len(kept_by(KEEPER.replace("is_best", "has_improved"))) == 1
    assert kept_by(KEEPER.replace("is_best", "goes_on")) == []
    joined = "    total = torch.tensor(total)\n    dist.all_reduce(total)\n    return total"
    reduced = KEEPS.replace("    return total / len(loader)", joined)
    assert kept_by(program=reduced) == []
    assert kept_by(program=KEEPS.replace("sampler=DistributedSampler(dataset, shuffle=False)", "shuffle=False")) == []


# Objects that show numbers where a field of theirs is set


BOARD = """\
class Board:
    def __init__(self, writer, on):
        self.writer = writer
        self.on = {"curves": on}

    def add_scalar(self, name, value):
        if self.on["curves"]:
            self.writer.add_scalar(name, value)
"""
LATER = BOARD.replace('{"curves": on}', "on").replace(
    '        if self.on["curves"]:\n    ', "        if not self.on:\n            return\n"
)
SWITCHED = (
    f"from board import Board\n{HEAD}def main(model, data, loss_of, writer):\n    dist.init_process_group('nccl')\n"
    "    is_main = dist.get_rank() == 0\n    board = Board(writer, is_main)\n"
    f"    loader = {SHARED}\n    total = 0.0\n    model.eval()\n    for batch in loader:\n"
    "        total += loss_of(model(batch)).item()\n    loss = total / len(loader)\n    board.add_scalar('val/loss', loss)\n"
)


def switched(board: str = BOARD, program: str = SWITCHED) -> list[str]:
    return [f.message for f in findings_of(RULE, program, path="main.py", files={"board.py": board})]


def test_an_object_that_shows_where_rank_zero_has_switched_it_on() -> None:
    assert len(found := switched()) == 1 and "rank 0 gives" in found[0]
    assert len(switched(BOARD.replace('["curves"]', "").replace('{"curves": on}', "on"))) == 1
    assert len(switched(LATER)) == 1
    assert len(switched(program=SWITCHED.replace("dist.get_rank() == 0", "True if dist.get_rank() == 0 else False"))) == 1


def test_an_object_that_shows_on_every_rank_or_on_others() -> None:
    assert switched(BOARD.replace('if self.on["curves"]', "if True")) == []
    assert switched(program=SWITCHED.replace("writer, is_main", "writer, True")) == []
    assert switched(program=SWITCHED.replace("writer, is_main", "writer, not is_main")) == []
    assert switched(program=SWITCHED.replace("get_rank() == 0", "get_rank() != 0")) == []
    assert switched(program=SWITCHED.replace("    loss = total", "    dist.all_reduce(total)\n    loss = total")) == []


# Numbers in the names of files


NAMED = """\
class Run:
    def __init__(self, model, loader, loss_of, rank):
        self.model, self.loader, self.loss_of, self.rank = model, loader, loss_of, rank

    def test(self):
        self.model.eval()
        total = 0.0
        for batch in self.loader:
            total += self.loss_of(self.model(batch)).item()
        return total / len(self.loader)

    def train(self, folder, epochs):
        for epoch in range(epochs):
            val_loss = self.test()
            path = PATH
            if self.rank == 0:
                torch.save(self.model.state_dict(), path)


def main(model, data, loss_of, epochs):
    dist.init_process_group("nccl")
    Run(model, DataLoader(data, 8, sampler=DistributedSampler(data)), loss_of, dist.get_rank()).train("out", epochs)
"""


def named(path: str, program: str = NAMED) -> list[str]:
    return [f.message for f in findings_of(RULE, HEAD.replace("import torch\n", "import os\nimport torch\n", 1)
            + program.replace("PATH", path))]  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["f'{folder}/{epoch}_{val_loss:.3f}.pth'", "'%s/%d_%.3f.pth' % (folder, epoch, val_loss)",
     "os.path.join(folder, 'epoch_' + str(epoch) + '_' + str(val_loss)[:5])", "'{}/{:.3f}.pth'.format(folder, val_loss)"],
)  # fmt: skip
def test_a_number_of_an_evaluation_in_the_name_of_a_file(path: str) -> None:
    assert len(found := named(path)) == 1 and "into the name of the file" in found[0]
    reduced = NAMED.replace("return total /", "dist.all_reduce(total)\n        return total /")
    assert named(path, reduced) == []
    assert named(path, NAMED.replace("sampler=DistributedSampler(data)", "shuffle=False")) == []


def test_a_name_without_a_number_and_one_of_the_training() -> None:
    assert named("f'{folder}/{epoch}.pth'") == []
    step = "loss = self.loss_of(self.model(batch))\n            loss.backward()\n            total += loss.item()"
    trained = NAMED.replace("total += self.loss_of(self.model(batch)).item()", step)
    assert named("f'{folder}/{epoch}_{val_loss:.3f}.pth'", trained) == []
    assert named("f'{folder}/{epoch}_{val_loss:.3f}.pth'", NAMED.replace("if self.rank == 0:", "if epoch > 2:")) == []


BASE = """\
class Base:
    def loaders(self, data):
        return DataLoader(data, 8, sampler=DistributedSampler(data))

    def run(self, model, data, loss_of):
        loader = self.loaders(data)
        model.train()
        self.assess(model, loader, loss_of)

    def assess(self, model, batches, loss_of):
        return None


"""
HEIR = """\
class Heir(Base):
    def assess(self, model, rows, loss_of):
        total = 0.0
        for row in rows:
            total += loss_of(model(row)).item()
        val_loss = total / len(rows)
        if dist.get_rank() == 0:
            print('val loss', val_loss)
"""


def test_a_loader_that_an_inherited_method_hands_to_the_heir() -> None:
    check_told(RULE, f"{HEAD}{BASE}{HEIR}", reason=WHY)
    whole = BASE.replace(", sampler=DistributedSampler(data)", "")
    check_nothing(RULE, f"{HEAD}{whole}{HEIR}")
    joined = "        val_loss = torch.tensor(val_loss)\n        dist.all_reduce(val_loss)\n        if dist"
    reduced = HEIR.replace("        if dist", joined)
    check_nothing(RULE, f"{HEAD}{BASE}{reduced}")


def test_a_loader_that_an_inherited_method_of_another_file_hands_to_the_heir() -> None:
    heir = f"{HEAD}from base import Base\n\n\n{HEIR}"
    assert len(findings_of(RULE, heir, {"base.py": HEAD + BASE}, path="heir.py")) == 1


def test_an_heir_that_has_the_calling_method_anew_is_handed_nothing_by_its_base() -> None:
    own = HEIR + "\n    def run(self, model, data, loss_of):\n        self.assess(model, DataLoader(data, 8), loss_of)\n"
    check_nothing(RULE, f"{HEAD}{BASE}{own}")


@pytest.mark.parametrize(
    "shown",
    ["print(f'PVE: {np.mean(gaps)}')", "print('distance', sum(gaps) / len(gaps))", "writer.write('spread %f' % np.mean(gaps))",
     "gaps = torch.tensor(gaps)\n    print('gap', gaps.mean().item())"],
)  # fmt: skip
def test_a_mean_that_no_word_calls_a_metric(shown: str) -> None:
    step = "gaps.append(model(batch).abs().item())"
    source = evaluate(f"if dist.get_rank() == 0:\n    {shown}", step=step).replace("total = 0.0", "gaps = []")
    source = source.replace("import torch\n", "import numpy as np\nimport torch\n", 1)
    check_told(RULE, source, reason=WHY)
    gathered = source.replace("    if dist.get_rank", "    gaps = gather_all(gaps)\n    if dist.get_rank")
    check_nothing(RULE, gathered + "\n\ndef gather_all(x):\n    parts = [None] * 2\n    dist.all_gather_object(parts, x)\n"
                  "    return sum(parts, [])\n")  # fmt: skip
    check_nothing(RULE, source.replace(SHARED, "DataLoader(data, 8)"))


def test_a_mean_that_no_word_calls_a_metric_of_a_training_is_a_curve() -> None:
    step = "loss_of(model(batch)).backward()\n        gaps.append(model(batch).abs().item())"
    source = evaluate("if dist.get_rank() == 0:\n    print('gap', np.mean(gaps))", step=step).replace("total = 0.0", "gaps = []")
    check_nothing(RULE, f"import numpy as np\n{source}")


def test_of_one_loop_what_a_word_calls_a_metric_comes_before_another_mean() -> None:
    step = "gaps.append(len(batch)); total += loss_of(model(batch)).item()"
    end = "if dist.get_rank() == 0:\n    print('rows', np.mean(gaps))\n    print('val loss', total / len(loader))"
    source = evaluate(end, step=step).replace("total = 0.0", "total, gaps = 0.0, []")
    found = findings_of(RULE, f"import numpy as np\n{source}")
    assert [f.message.split("`")[1] for f in found] == ["total / len(loader)"]


@pytest.mark.parametrize("end", ["loss = total / len(loader)\nprint('loss', loss)", "print(f'accuracy {total / len(loader)}')"])
def test_a_result_that_every_rank_prints_as_that_of_all(end: str) -> None:
    found = check_told(RULE, evaluate(end), reason=WHY)
    assert "as many results as ranks" in found.message


@pytest.mark.parametrize(
    "end",
    ["loss = total / len(loader)\nprint('rank', dist.get_rank(), 'loss', loss)", "print('local loss', total / len(loader))",
     "loss = total / len(loader)\nprint('loss', loss)\nreturn loss",  # who calls it shows it, goes by it, or reduces it
     "loss = torch.tensor(total / len(loader))\nprint('loss', loss)\ndist.all_reduce(loss)\nprint('loss of all', loss)",
     "print('batches', len(loader))"],
)  # fmt: skip
def test_what_every_rank_prints_and_is_no_end_of_its_way(end: str) -> None:
    check_nothing(RULE, evaluate(end))


def test_what_every_rank_prints_of_the_whole_set_or_of_a_training() -> None:
    end = "loss = total / len(loader)\nprint('loss', loss)"
    check_nothing(RULE, evaluate(end, loader="DataLoader(data, 8)"))
    check_nothing(RULE, evaluate(end, step="loss_of(model(batch)).backward(); total += loss_of(model(batch)).item()"))


def test_what_goes_into_a_print_that_the_file_itself_keeps_to_rank_0() -> None:
    quiet = "def quiet():\n    if dist.get_rank() != 0:\n        builtins.print = lambda *a: None\n\n\nquiet()\n"
    source = evaluate("loss = total / len(loader)\nprint('loss', loss)")
    source = source.replace("\n\ndef evaluate", f"\nimport builtins\n\n\n{quiet}\n\ndef evaluate", 1)
    assert check_told(RULE, source, reason=WHY).message.startswith("rank 0 gives")
    stamped = source.replace("lambda *a: None", "lambda *a: log(*a)")  # the others print somewhere else
    check_nothing(RULE, stamped)


GROUP = """\
from accelerate import Accelerator
from torch.utils.data import DataLoader


def train(model, data, optimizer, writer):
    accelerator = Accelerator()
    model, loader, optimizer = accelerator.prepare(model, DataLoader(data, 8), optimizer)
    for step, batch in enumerate(loader):
        loss = model(batch)
        accelerator.backward(loss)
        optimizer.step()
        kl, ends = loss.mean(), (batch == 0)
"""
ALONGSIDE = """        writer.add_scalar("a/loss", accelerator.gather(loss).mean().item(), step)
        writer.add_scalar("a/kl", accelerator.gather(kl).mean().item(), step)
        writer.add_scalar("a/var", accelerator.gather(kl).var().item(), step)
        writer.add_scalar("a/lr", optimizer.param_groups[0]["lr"], step)
"""
ONE = '        writer.add_scalar("a/ends", ends.sum().item(), step)\n'
IN_A_DICT = """        accelerator.log({
            "loss": accelerator.gather(loss).mean().item(), "kl": accelerator.gather(kl).mean().item(),
            "var": accelerator.reduce(kl).item(), "ends": ends.sum().item(), "step": step,
        })
"""
BESIDE = "gather it as the others"


@pytest.mark.parametrize("shown", [ALONGSIDE + ONE, ONE + ALONGSIDE, IN_A_DICT])
def test_the_one_number_of_a_group_that_is_not_gathered(shown: str) -> None:
    found = check_told(RULE, GROUP + shown, reason=BESIDE)
    assert "`ends.sum().item()` is that of the rank's own share" in found.message


@pytest.mark.parametrize(
    "shown",
    [ALONGSIDE, ALONGSIDE + ONE + ONE.replace("ends.sum", "ends.float().mean"),  # two of them may be meant so
     ALONGSIDE + ONE.replace("ends.sum()", "accelerator.gather(ends.sum()).sum()"),
     ALONGSIDE + ONE.replace("ends.sum()", "model.scale"), "\n".join(ALONGSIDE.splitlines()[:2]) + "\n" + ONE,
     ALONGSIDE + "        if step % 100 == 0:\n    " + ONE],
)  # fmt: skip
def test_a_group_without_one_that_is_left_out(shown: str) -> None:
    assert not [f for f in findings_of(RULE, GROUP + shown) if BESIDE in f.reason]


@pytest.mark.parametrize("given", ["row.values()", "list(row.values())", "tuple(row.values())", "row.items()"])
@pytest.mark.parametrize(
    "made",
    ["row = {'epoch': 1, 'val_loss': total / len(loader)}",
     "row = {'epoch': 1}\nrow['val_loss'] = total / len(loader)",
     "row = dict()\nrow.update({'val_loss': total / len(loader)})"],
)  # fmt: skip
def test_a_row_of_a_table_that_is_the_values_of_a_dict(given: str, made: str) -> None:
    check_told(RULE, evaluate(f"{made}\nif dist.get_rank() == 0:\n    writer.writerow({given})"), reason=WHY)


@pytest.mark.parametrize(
    "end",
    ["row = {'val_loss': total}\nrow['val_loss'] = join(total)\nif dist.get_rank() == 0:\n    writer.writerow(row.values())",
     "row = {'epoch': 1, 'steps': len(loader)}\nif dist.get_rank() == 0:\n    writer.writerow(row.values())",
     "row = {'val_loss': total}\nif dist.get_rank() == 0:\n    writer.writerow(row.keys())",
     "row = {'val_loss': total}\nwriter.writerow(row.values())"],
)  # fmt: skip
def test_a_row_without_a_number_of_one_rank(end: str) -> None:
    join = "def join(value):\n    both = torch.tensor(value)\n    dist.all_reduce(both)\n    return both.item()\n\n\n"
    check_nothing(RULE, evaluate(end).replace(HEAD, HEAD + join))


OF_ZERO = {
    "setup.py": "import builtins\n\n\ndef quiet_others(is_master):\n    kept = builtins.print\n    builtin_print = kept\n\n"
    "    def print(*args, **kwargs):\n        force = kwargs.pop('force', False)\n        if is_master or force:\n"
    "            builtin_print(*args, **kwargs)\n\n    builtins.print = print\n",
    "elsewhere.py": "import builtins\n\nimport torch.distributed as dist\n\n\ndef no_print(*args):\n    pass\n\n\n"
    "def quiet_others(master):\n    if dist.get_rank() != 0:\n        builtins.print = no_print\n",
    "a lambda": "import builtins\n\nimport torch.distributed as dist\n\n\ndef quiet_others(master):\n"
    "    if dist.get_rank() != 0:\n        builtins.print = lambda *args: None\n",
}
STAMPED = (
    "import builtins\nimport time\n\n\ndef quiet_others(master):\n    builtin_print = builtins.print\n\n"
    "    def print(*args):\n        builtin_print(time.time(), *args)\n\n    builtins.print = print\n"
)


def printing(end: str, *, step: str = "total += loss_of(model(batch)).item()") -> str:
    """A program of DETR's kind: `quiet_others` is another file's, and `end` stands in the caller of the evaluation."""
    lines = "".join(f"    {line}\n" for line in end.splitlines())
    own = evaluate("return {'loss': total / len(loader)}", step=step)
    start = "    dist.init_process_group('nccl')\n    quiet_others(dist.get_rank() == 0)\n"
    own = own.replace("import torch\n", "import torch\nfrom quiet import quiet_others\n", 1)
    return f"{own}\n\ndef main(model, data, loss_of):\n{start}{lines}"


SHOWN = ["stats = evaluate(model, data, loss_of, None)\nprint(stats)",
         "val_stats = evaluate(model, data, loss_of, None)\nprint(f\"loss {val_stats['loss']:.3f}\")"]  # fmt: skip


@pytest.mark.parametrize("end", SHOWN)
@pytest.mark.parametrize("own", OF_ZERO)
def test_a_print_that_the_program_keeps_to_rank_0(own: str, end: str) -> None:
    found = check_told(RULE, printing(end), files={"quiet.py": OF_ZERO[own]}, reason=WHY)
    assert found.message.startswith("rank 0 gives")


@pytest.mark.parametrize(
    ("end", "own"),
    [(SHOWN[0], STAMPED), (SHOWN[0].replace("print(stats)", "print(stats, force=True)"), OF_ZERO["setup.py"]),
     (SHOWN[0].replace("print(stats)", "print(stats, file=log)"), OF_ZERO["setup.py"]),
     (SHOWN[0].replace("print(stats)", "total = torch.tensor(stats['loss'])\ndist.all_reduce(total)\nprint('loss', total)"),
      OF_ZERO["setup.py"])],
)  # fmt: skip
def test_a_print_of_each_rank_or_of_what_is_reduced(end: str, own: str) -> None:
    check_nothing(RULE, printing(end), files={"quiet.py": own})


def test_what_a_program_of_such_prints_shows_while_it_trains() -> None:
    step = "loss_of(model(batch)).backward()\n        total += loss_of(model(batch)).item()\n        print('loss', total)"
    check_nothing(RULE, printing(SHOWN[0], step=step), files={"quiet.py": OF_ZERO["setup.py"]})
