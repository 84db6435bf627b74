"""DDP605: the ways from an evaluation loop to a sampler that pads, and which loops evaluate."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


"""
WHY = "share without padding"

# Loaders that a builder gives with their samplers

BUILT = (
    HEAD
    + """\
def build(data, shuffle):
    sampler = DistributedSampler(data, shuffle=shuffle)
    return sampler, DataLoader(data, 4, sampler=sampler{rest})


def mean_of_ranks(value):
    dist.all_reduce(value)
    return value / dist.get_world_size()


def validate(model, loader, meter):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            {metrics} = model.measures(x, y)
            meter.update([mean_of_ranks({one}).item() for {one} in {metrics}])


def run(model, data, other, meter):
    {given}
    for x, y in first:
        model(x).sum().backward()
    validate(model, second, meter)
"""
)
PAIRS = "(_, first), (_, second) = build(data, True), build(other, False)"
OTHER_PAIRS = "((a, first), (b, second)) = (build(data, True), build(other, False))"


@pytest.mark.parametrize("given", [PAIRS, OTHER_PAIRS])
def test_pairs_that_are_taken_apart_in_one_statement(given: str) -> None:
    found = check_told(GatheredDuplicates, BUILT.format(given=given, one="metric", metrics="metrics", rest=""), reason=WHY)
    assert found.span.line == 7


def test_pairs_whose_loader_drops_the_rest_and_averages_of_losses() -> None:
    check_nothing(GatheredDuplicates, BUILT.format(given=PAIRS, one="metric", metrics="metrics", rest=", drop_last=True"))
    check_nothing(GatheredDuplicates, BUILT.format(given=PAIRS, one="loss", metrics="losses", rest=""))


# An evaluation that clears gradients out of habit

CLEARED = (
    HEAD
    + """\
def loaders_of(data):
    train, test = DistributedSampler(data["train"]), DistributedSampler(data["test"], shuffle=False)
    return {{"train": DataLoader(data["train"], 4, sampler=train), "test": DataLoader(data["test"], 4, sampler=test)}}


def gathered(found):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, found)
    return parts


def run(model, optimizer, data, scale):
    loaders = loaders_of(data)
    phase = "{phase}"
    found = []
    for x, y in loaders[phase]:
        optimizer.zero_grad()
        with {quiet}:
            output = model(x)
        {more}
        found.append((output, y))
    print(gathered(found))
"""
)


@pytest.mark.parametrize("quiet", ["torch.set_grad_enabled(False)", "torch.no_grad()", "torch.inference_mode()"])
def test_gradients_that_are_cleared_and_never_made(quiet: str) -> None:
    found = check_told(GatheredDuplicates, CLEARED.format(phase="test", quiet=quiet, more="pass"), reason=WHY)
    assert found.span.line == 7 and found.span.column > 50  # the second of the two samplers


@pytest.mark.parametrize(
    ("quiet", "more"),
    [
        ("torch.no_grad()", "scale(model(x).sum(), optimizer)"),
        ("torch.no_grad()", "optimizer.step()"),
        ("torch.set_grad_enabled(True)", "pass"),
        ("torch.autocast('cuda')", "pass"),
    ],
)
def test_gradients_that_a_training_clears(quiet: str, more: str) -> None:
    check_nothing(GatheredDuplicates, CLEARED.format(phase="test", quiet=quiet, more=more))


def test_a_key_that_is_not_the_only_one() -> None:
    source = CLEARED.format(phase="test", quiet="torch.no_grad()", more="pass")
    found = findings_of(GatheredDuplicates, source.replace('phase = "test"', 'phase = "test" if data else "train"'))
    assert len(found) == 2  # whichever it is, nothing trains on it
    check_nothing(GatheredDuplicates, source.replace('phase = "test"', "phase = data.phase"))


# Samples that are told apart

TOLD = (
    HEAD
    + """\
def main(model, data):
    loader = DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=False))
    hits = torch.zeros(())
    {above}
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x) == y).sum()
    dist.all_reduce(hits)
    return hits
"""
)


def test_what_a_comment_says_is_no_code() -> None:
    for above in ("folder = name()  # a unique name of this run", "# one for each of the image_ids"):
        check_told(GatheredDuplicates, TOLD.format(above=above), reason=WHY)
    for above in ("found = torch.unique(data.rows)", "seen = set()  # of all"):
        check_nothing(GatheredDuplicates, TOLD.format(above=above))


# Helpers that are handed the number of processes

HELPED = (
    HEAD
    + """\
def collect(rows, count):
    parts = [None] * count
    dist.all_gather_object(parts, rows)
    return [row for part in parts for row in part]


def predict(model, loader, ranks):
    rows = []
    with torch.no_grad():
        for x in loader:
            rows.extend(model(x))
    everything = collect({given})
    torch.save(everything, "rows.pt")


def main(model, data):
    predict(model, DataLoader(data, 4, sampler=DistributedSampler(data)), dist.get_world_size())
"""
)


@pytest.mark.parametrize(
    "given", ["rows, world_size", "rows, dist.get_world_size()", "rows, count=WORLD_SIZE", "rows, self.num_processes"]
)
def test_a_helper_that_is_handed_the_number_of_processes(given: str) -> None:
    check_told(GatheredDuplicates, HELPED.format(given=given), reason=WHY)


@pytest.mark.parametrize("given", ["batch_sizes, ranks", "mean_time, dist.get_world_size()"])
def test_a_helper_that_is_handed_no_results(given: str) -> None:
    check_nothing(GatheredDuplicates, HELPED.format(given=given))


@pytest.mark.parametrize("end", ["return rows[:size]", "rows = rows[:size]; return rows"])
def test_a_helper_that_is_told_how_many_there_are(end: str) -> None:
    cut = HELPED.format(given="rows, ranks, len(loader.dataset)").replace("(rows, count)", "(rows, count, size)")
    cut = cut.replace("return [row for", "rows = [row for").replace("for row in part]", f"for row in part]; {end}")
    check_nothing(GatheredDuplicates, cut)
    check_told(GatheredDuplicates, cut.replace("rows[:size]", "rows[:1000]"), reason=WHY)
