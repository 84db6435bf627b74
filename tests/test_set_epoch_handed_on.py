"""DDP402 where the loader is handed on: wrappers, helpers, classes of the project, iterators that steps draw from."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "from itertools import islice\n\n"
HEAD += "from torch.utils.data import DataLoader, DistributedSampler\nfrom tqdm import tqdm, trange\n\n"
STEP = "            optimizer.zero_grad()\n            model(x).mean().backward()\n            optimizer.step()\n"


def epochs(*lines: str, head: str = HEAD) -> str:
    """A training over `lines`, which end with the loop over batches."""
    made = ("sampler = DistributedSampler(data)", "loader = DataLoader(data, batch_size=8, sampler=sampler)")
    body = "".join(f"    {line}\n" for line in (*made, *lines))
    return f"{head}def train(model, data, optimizer, args):\n{body}{STEP}"


@pytest.mark.parametrize("rounds", ["trange(3, desc='epochs')", "tqdm(range(3))", "range(3)"])
def test_a_range_that_has_a_name(rounds: str) -> None:
    before = epochs(f"rounds = {rounds}", "for _ in rounds:", "    for x in loader:")
    after = epochs(f"rounds = {rounds}", "for epoch in rounds:", "    sampler.set_epoch(epoch)", "    for x in loader:")
    check_transformed(MissingSetEpoch, before, after)


def test_a_range_that_begins_where_a_run_was_left() -> None:
    before = epochs("rounds = trange(args.done, 3)", "for n in rounds:", "    for x in loader:")
    after = epochs("rounds = trange(args.done, 3)", "for n in rounds:", "    sampler.set_epoch(n)", "    for x in loader:")
    check_transformed(MissingSetEpoch, before, after, unsafe=True)


def test_a_bar_that_is_handed_the_loader_by_its_name() -> None:
    before = epochs("for n in range(3):", "    for i, x in tqdm(iterable=enumerate(loader), desc='batches'):")
    after = before.replace("        for i", "        sampler.set_epoch(n)\n        for i")
    check_transformed(MissingSetEpoch, before, after)


# Steps that draw from an iterator


@pytest.mark.parametrize("steps", ["range(len(loader))", "bar", "trange(args.steps)", "range(len(loader))[:9]"])
@pytest.mark.parametrize("draw", ["next(batches)", "batches.__next__()"])
def test_steps_that_draw_from_an_iterator_of_this_epoch(steps: str, draw: str) -> None:
    rows = ("for n in range(3):", "    bar = tqdm(range(len(loader)))", "    batches = iter(loader)", f"    for i in {steps}:")
    before = epochs(*rows, f"        x = {draw}")
    after = before.replace("        bar =", "        sampler.set_epoch(n)\n        bar =")
    check_transformed(MissingSetEpoch, before, after)


def test_the_epoch_is_told_in_front_of_the_iterator() -> None:
    apart = epochs("for n in range(3):", "    loader = DataLoader(data, sampler=DistributedSampler(data))",
                   "    batches = iter(loader)", "    for i in range(9):", "        x = next(batches)")  # fmt: skip
    found = findings_of(MissingSetEpoch, apart)
    assert [f.fix.edits[0].span.line for f in found if f.fix is not None] == [11]


@pytest.mark.parametrize(
    "lines",
    [
        ("batches = iter(loader)", "for n in range(3):", "    for i in range(9):", "        x = next(batches)"),
        ("for n in range(3):", "    batches = iter(args.batches)", "    for i in range(9):", "        x = next(batches)"),
        ("for n in range(3):", "    sampler.set_epoch(n)", "    batches = iter(loader)", "    for i in range(9):",
         "        x = next(batches)"),
    ],
)  # fmt: skip
def test_steps_over_one_pass_or_one_that_is_told(lines: tuple[str, ...]) -> None:
    check_nothing(MissingSetEpoch, epochs(*lines))


def test_a_generator_without_end_that_calls_the_methods_themselves() -> None:
    endless = (
        "def endless(source):\n    rows = source.__iter__()\n    while True:\n        try:\n            yield rows.__next__()\n"
        "        except StopIteration:\n            rows = source.__iter__()\n\n\n"
    )
    source = epochs("batches = endless(loader)", "for i in range(9):", "    for x in islice(batches, 9):", head=HEAD + endless)
    check_told(MissingSetEpoch, source, reason="count the passes")
    check_nothing(MissingSetEpoch, source.replace("DistributedSampler(data)", "DistributedSampler(data, shuffle=False)"))


# Loaders with options, and helpers


def test_options_beside_a_sampler_hold_no_other() -> None:
    before = epochs("for n in range(3):", "    for x in loader:").replace("batch_size=8", "**args.options")
    before = before.replace("**args.options, sampler=sampler", "sampler=sampler, **args.options")
    check_transformed(MissingSetEpoch, before, before.replace("        for x", "        sampler.set_epoch(n)\n        for x"))


@pytest.mark.parametrize("options", ["sampler=None, **args.options", "**args.options"])
def test_options_that_may_hold_the_sampler(options: str) -> None:
    source = epochs("for n in range(3):", "    for x in loader:")
    check_nothing(MissingSetEpoch, source.replace("batch_size=8, sampler=sampler", options))


HELPERS = HEAD + """\
def loader_of(data, shuffles):
    sampler = DistributedSampler(data, shuffle=shuffles)
    return DataLoader(data, sampler=sampler)


def both(data, held_out):
    first = loader_of(data, shuffles=True)
    second = loader_of(held_out, shuffles=False)
    return first, second


def train(model, data, held_out, optimizer):
    loader, others = both(data, held_out)
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
"""


def test_a_helper_behind_a_helper_that_gives_two_loaders() -> None:
    after = HELPERS.replace("        for x", "        loader.sampler.set_epoch(epoch)\n        for x")
    check_transformed(MissingSetEpoch, HELPERS, after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for x in loader", "for x in others"),
        ("return first, second", "return second, first"),
        ("shuffles=True", "shuffles=data.big"),
    ],
)
def test_the_other_loader_of_such_helpers(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, HELPERS.replace(old, new))


# Objects round a loader

AHEAD = """\
class Ahead:
    def __init__(self, source, device):
        self.source = source
        self.device = device

    def __len__(self):
        return len(self.source)

    def __iter__(self):
        for x in self.source:
            yield x.to(self.device)


"""


@pytest.mark.parametrize("over", ["for x in self.source:", "for i, x in enumerate(self.source):", "for x in iter(self.source):"])
def test_an_object_that_goes_through_the_loader(over: str) -> None:
    head = HEAD + AHEAD.replace("for x in self.source:", over)
    before = epochs("ahead = Ahead(loader, 0)", "for n in range(3):", "    for x in ahead:", head=head)
    after = before.replace("        for x in ahead", "        sampler.set_epoch(n)\n        for x in ahead")
    check_transformed(MissingSetEpoch, before, after)


def test_such_an_object_has_no_sampler() -> None:
    made = "loader_of(data, shuffles=True)"
    source = HELPERS.replace(f"first = {made}", f"first = Ahead({made}, 0)").replace("def loader_of", AHEAD + "def loader_of")
    check_told(MissingSetEpoch, source, reason="what is gone through here holds")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for x in self.source:", "for x in draw(self.source):"),
        ("self.source = source", "self.source = share(source)"),
        ("    def __len__", "    def __iter__(self):\n        return draw(self)\n\n    def __len__"),
        ("for x in self.source:", "for x in zip(self.source, self.device):"),
        ("    def __len__", "    def renew(self, rows):\n        self.source = rows\n\n    def __len__"),
        ("for x in self.source:", "self.source.sampler.set_epoch(self.device)\n        for x in self.source:"),
    ],
)
def test_objects_that_may_go_through_something_else(old: str, new: str) -> None:
    head = HEAD + AHEAD.replace(old, new)
    if old == "    def __len__" and "__iter__" in new:
        head = head.replace("        for x in self.source:\n            yield x.to(self.device)\n", "        return draw(self)\n")
    check_nothing(MissingSetEpoch, epochs("ahead = Ahead(loader, 0)", "for n in range(3):", "    for x in ahead:", head=head))


ROUND = """\
class Round:
    def __init__(self, source):
        self.source = source
        self.rows = iter(source)

    def __iter__(self):
        while True:
            try:
                x = next(self.rows)
            except StopIteration:
                self.rows = iter(self.source)
                x = next(self.rows)
            yield x


"""


def test_an_object_that_begins_the_loader_anew() -> None:
    source = epochs("for i in range(1):", "    for x in Round(Ahead(loader, 0)):", head=HEAD + AHEAD + ROUND)
    assert [f.span.line for f in findings_of(MissingSetEpoch, source)] == [29]


# Classes that derive from the loader

OWN = HEAD + """\
class Rows(DataLoader):
    def __init__(self, data, size, shared=True):
        sampler = None
        if shared:
            sampler = DistributedSampler(data)
        super().__init__(data, batch_size=size, shuffle=(sampler is None), sampler=sampler)


def train(model, data, optimizer):
    loader = Rows(data, 8)
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
"""
TOLD = """\
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
"""


def test_a_loader_of_the_project_that_makes_its_sampler() -> None:
    check_transformed(MissingSetEpoch, OWN, OWN.replace("        for x in loader", f"{TOLD}        for x in loader"))


def test_such_a_loader_over_one_that_hands_the_sampler_on() -> None:
    base = (
        "class Base(DataLoader):\n    def __init__(self, data, size, shuffle, sampler=None):\n        if sampler is not None:\n"
        "            super().__init__(data, batch_size=size, sampler=sampler)\n        else:\n"
        "            super().__init__(data, batch_size=size, shuffle=shuffle)\n\n\nclass Rows(Base):"
    )
    source = OWN.replace("class Rows(DataLoader):", base)
    source = source.replace("batch_size=size, shuffle=(sampler is None), s", "size, True, s")
    check_transformed(MissingSetEpoch, source, source.replace("        for x in loader", f"{TOLD}        for x in loader"))
    check_nothing(MissingSetEpoch, source.replace("batch_size=size, sampler=sampler", "batch_size=size, sampler=own(sampler)"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DistributedSampler(data)", "DistributedSampler(data, shuffle=False)"),
        ("sampler=sampler)", "sampler=own(sampler))"),
        ("sampler = DistributedSampler(data)", "sampler = DistributedSampler(data)\n            sampler.set_epoch(size)"),
        ("class Rows(DataLoader)", "class Rows(Loader)"),
    ],
)
def test_loaders_of_the_project_whose_sampler_is_not_known(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, OWN.replace(old, new, 1))
