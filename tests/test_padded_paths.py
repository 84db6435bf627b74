"""Ways from an evaluation to the sampler that repeats samples, and from a gather to the loop that hands it its batch."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = (
    "import math\n\nimport torch\nimport torch.distributed as dist\nfrom accelerate import Accelerator\n"
    "from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, Sampler\n\n\n"
)
FILL = "self.loaders.append(DataLoader(data, 4, sampler=DistributedSampler(data)))"


def kept(fill: str = FILL, start: str = "[]") -> str:
    return (
        f"{HEAD}class Run:\n    def load(self, sets):\n        self.loaders = {start}\n"
        f"        for data in sets:\n            {fill}\n\n"
        "    def test(self):\n        for loader in self.loaders:\n            self.evaluate(loader)\n\n"
        "    @torch.no_grad()\n    def evaluate(self, loader):\n        hits = torch.zeros(())\n        for x, y in loader:\n"
        "            hits += (self.model(x) == y).sum()\n        dist.all_reduce(hits)\n        return hits\n"
    )


def test_loaders_that_are_kept_in_a_list() -> None:
    check_told(GatheredDuplicates, kept(), reason="share without padding")
    check_told(GatheredDuplicates, kept(start="[DataLoader(self.first, 4)]"), reason="share without padding")


@pytest.mark.parametrize(
    "source",
    [
        kept(start="make_loaders()"),  # what else it holds is not seen
        kept("self.others.append(DataLoader(data, 4, sampler=DistributedSampler(data)))"),
        kept("self.loaders.append(DataLoader(data, 4, sampler=DistributedSampler(data, drop_last=True)))"),
    ],
)
def test_lists_without_such_a_loader(source: str) -> None:
    check_nothing(GatheredDuplicates, source)


ADDS = "rows += rows[: (self.total_size - len(rows))]"


def own(adds: str = ADDS, reduce: str = "dist.all_reduce(out, op=dist.ReduceOp.SUM)", base: str = "Sampler") -> str:
    return (
        f"{HEAD}class DistributedSampler({base}):\n    def __init__(self, data, shuffle=True):\n        self.data = data\n"
        "        self.ranks = dist.get_world_size()\n        self.each = math.ceil(len(data) / self.ranks)\n"
        "        self.total_size = self.each * self.ranks\n\n"
        f"    def __iter__(self):\n        rows = torch.arange(len(self.data)).tolist()\n        {adds}\n"
        "        first = self.each * dist.get_rank()\n        return iter(rows[first : first + self.each])\n\n\n"
        "class Evaluation:\n    def __init__(self, data):\n        sampler = DistributedSampler(data, shuffle=False)\n"
        "        self.loader = DataLoader(data, batch_sampler=BatchSampler(sampler, 1, False))\n\n"
        f"    def reduce_tensor(self, part):\n        out = part.clone()\n        {reduce}\n        return out\n\n"
        "    @torch.no_grad()\n    def evaluate(self, model):\n        hits = torch.zeros(())\n        for x, y in self.loader:\n"
        "            hits += (model(x) == y).sum()\n        return self.reduce_tensor(hits)\n"
    )


def test_a_sampler_of_the_project_that_repeats_rows() -> None:
    check_told(GatheredDuplicates, own(), reason="share without padding")
    check_told(GatheredDuplicates, own(reduce="dist.all_reduce(out)"), reason="share without padding")


@pytest.mark.parametrize(
    "source",
    [
        own("rows = rows[: self.total_size]"),  # cuts
        own("if self.pad:\n            rows += rows[: (self.total_size - len(rows))]"),  # only where it is told to
        own("rows += self.more[: (self.total_size - len(rows))]"),  # what it adds are other rows
        own(reduce="dist.all_reduce(out)\n        out /= dist.get_world_size()"),  # an average by its name and its body
        own(reduce="dist.all_reduce(out, op=dist.ReduceOp.MAX)"),
    ],
)
def test_samplers_and_reductions_that_count_nothing_twice(source: str) -> None:
    check_nothing(GatheredDuplicates, source)


STEP = (
    "preds = self.model(batch['x']).argmax(-1)\n        preds = self.accelerator.gather(preds)\n"
    "        labels = self.accelerator.gather(batch['labels'])\n        self.metric.add(preds, labels)"
)
LOOP = "for batch in self.loader:\n            self.step(batch)"


def stepwise(step: str = STEP, loop: str = LOOP, name: str = "evaluate", more: str = "") -> str:
    return (
        f"{HEAD}class Run:\n    def __init__(self):\n        self.accelerator = Accelerator()\n\n    def step(self, batch):\n"
        f"        {step}\n\n    def {name}(self):\n        self.model.eval()\n        {loop}\n{more}"
    )


def test_a_step_that_the_loop_hands_its_batch() -> None:
    before = stepwise()
    check_transformed(GatheredDuplicates, before, before.replace(".gather(", ".gather_for_metrics("), unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        stepwise(loop="self.step(self.example)"),  # no loop is seen
        stepwise(loop="for batch in self.loader:\n            self.step(self.example)"),  # another batch
        stepwise(loop="for batch in self.loader:\n            self.step(batch).backward()"),  # it trains
        stepwise(more="\n    def probe(self):\n        return self.step(self.example)\n"),  # another call, of one batch
        stepwise(STEP.replace("labels =", "rest =").replace("batch['labels']", "batch['x']").replace("preds, labels", "preds")),
        stepwise(STEP + "\n        self.rows = preds[: len(self.data) - self.seen]"),  # cut by hand
        stepwise(more="\n    def load(self):\n        return DataLoader(self.data, 4, drop_last=True)\n"),
    ],
)
def test_steps_that_are_left_alone(source: str) -> None:
    check_nothing(GatheredDuplicates, source)


EACH = "for row in loss:\n                rows.append(row.mean())"


def behind(add: str = EACH, join: str = "accelerator.gather(all_rows)") -> str:
    return (
        f"{HEAD}def run(model, loader, optimizer):\n    accelerator = Accelerator()\n"
        "    model, loader, optimizer = accelerator.prepare(model, loader, optimizer)\n    rows = []\n"
        f"    with torch.no_grad():\n        for x, y in loader:\n            loss = model(x, y)\n            {add}\n"
        f"    all_rows = torch.tensor(rows)\n    return {join}.mean()\n"
    )


def test_a_list_with_an_entry_for_each_sample() -> None:
    check_told(GatheredDuplicates, behind(), reason="inside the loop")
    check_told(GatheredDuplicates, behind("rows.extend(loss.tolist())"), reason="inside the loop")


@pytest.mark.parametrize(
    "source",
    [
        behind("rows.append(loss.mean())"),  # one a batch
        behind("for scale in (1, 2):\n                rows.append(loss.mean() * scale)"),  # one a scale
        behind("rows.extend(loss.tolist())", "accelerator.gather(all_rows)[: len(loader.dataset)]"),
        behind().replace("model, loader, optimizer = acc", "model, other, optimizer = acc"),  # each rank goes through all of it
        behind("rows.extend(loss.tolist())\n            loss.mean().backward()"),
        behind().replace("rows = []", "rows = model.first()"),
    ],
)
def test_lists_that_are_left_alone(source: str) -> None:
    check_nothing(GatheredDuplicates, source)


SCORES = "rows += [score(row) for row in loss]"


MEAN = "torch.tensor(rows).mean().to(x.device)"


def scored(add: str = SCORES, join: str = MEAN, handed: str = "self.tests", top: str = "") -> str:
    return (
        f"{HEAD}class Run:\n    def __init__(self, model, tests, others):\n        self.accelerator = Accelerator()\n"
        "        self.tests = tests\n        self.others = others\n"
        "        self.model, self.tests = self.accelerator.prepare(model, tests)\n\n"
        f"    @torch.inference_mode()\n    def score_all(self, loader, accelerator):\n        rows = []\n{top}"
        f"        for x, y in loader:\n            loss = self.model(x, y)\n            {add}\n"
        f"        rows = accelerator.gather({join}).mean().item()\n        return rows\n\n"
        f"    def run(self):\n        return self.score_all({handed}, self.accelerator)\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        scored(),
        scored(join="torch.tensor(rows)"),
        scored(join="torch.as_tensor(rows).sum()"),
        scored("rows.extend(loss.tolist())"),
        scored(handed="loader=self.tests").replace("loader=self.tests, ", "loader=self.tests, accelerator="),
        scored() + "\n\ndef look(run, rest):\n    return run.score_all(rest, None)\n",  # one call is enough
        behind("rows += [score(row) for row in loss]").replace("torch.tensor(rows)", "torch.tensor(rows).mean()"),
    ],
)
def test_entries_of_a_loader_that_the_caller_prepares(source: str) -> None:
    check_told(GatheredDuplicates, source, reason="inside the loop")


@pytest.mark.parametrize(
    "source",
    [
        scored(handed="self.others"),  # each rank goes through all of it
        scored(top="        loader = self.others\n"),
        scored("rows += [loss.mean()]"),  # one a batch
        scored("rows += [scale * loss.mean() for scale in (1, 2)]"),
        scored("rows += [score(row) for row in loss if row > 0]"),
        scored("rows += first(loss)"),
        scored("rows *= 2"),
        scored(join="torch.tensor(rows).max()"),
        scored().replace("rows = []", "rows = self.first()"),
        scored(f"{SCORES}\n            loss.mean().backward()"),
        scored().replace("self.accelerator.prepare(", "self.model.prepare("),
    ],
)
def test_entries_that_are_no_samples_or_of_no_prepared_loader(source: str) -> None:
    check_nothing(GatheredDuplicates, source)


def returned(use: str = "hits = all_ranks(hits)", other: str = "", gives: str = "hits") -> str:
    return (
        f"{HEAD}def all_ranks(part):\n    parts = [torch.zeros_like(part) for _ in range(dist.get_world_size())]\n"
        "    dist.all_gather(parts, part)\n    return torch.cat(parts)\n\n\n"
        "@torch.no_grad()\ndef evaluate(model, loader):\n    hits = torch.zeros(())\n    for x, y in loader:\n"
        f"        hits += (model(x) == y).sum()\n    return {gives}\n\n\n"
        "def main(model, data, rest):\n    loader = DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=False))\n"
        f"    {gives} = evaluate(model, loader)\n    {use}\n    return hits\n{other}"
    )


def test_what_the_caller_puts_together() -> None:
    check_told(GatheredDuplicates, returned(), reason="share without padding")
    both = returned("both = torch.stack([hits])\n    dist.all_reduce(both)")
    check_told(GatheredDuplicates, both, reason="share without padding")


@pytest.mark.parametrize(
    "source",
    [
        returned("rest = all_ranks(rest)"),  # something else
        returned(other="\n\ndef look(model, loader):\n    return evaluate(model, loader)\n"),  # a caller that joins nothing
        returned("hits = all_ranks(mean_hits)", gives="mean_hits").replace("hits = torch", "mean_hits = torch"),
        returned("hits = all_ranks(hits)[: len(data)]"),  # cut
    ],
)
def test_results_that_no_caller_counts_twice(source: str) -> None:
    check_nothing(GatheredDuplicates, source)
