"""Calls that the project's own function refuses: nobody gets through the block that holds one."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.refused_calls import is_refused
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_nothing, findings_of

DATA = """\
from dataclasses import dataclass


class Pairs(list):
    def __init__(self, rows, flip=False):
        super().__init__(rows)


class Lines(Pairs):
    pass


class Both(Pairs, dict):
    pass


class Heaps(list):
    pass


class Made(Pairs):
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, rows):
        pass


@dataclass
class Options:
    rows: int


def build(rows, /, *, flip, size=3):
    return rows


def open_ended(rows, *more, **others):
    return rows


if True:
    def either(a): ...
else:
    def either(a, b): ...
"""


def refused(call: str, top: str = "from data import *") -> bool:
    program = f"{top}\n\n\ndef run(rows, given=None):\n    {call}\n"
    project = Project.of({"data.py": DATA.encode(), "train.py": program.encode()})
    module = project.module("train.py")
    assert module is not None
    name = call.partition("(")[0].rpartition(" ")[2]
    (found,) = module.calls_named(name)
    return is_refused(project, module, found)


@pytest.mark.parametrize(
    "call",
    [
        "Pairs(rows, k=3)", "Lines(rows, k=3)", "Pairs()", "Pairs(rows, True, 1)", "build(rows)", "build(rows=rows, flip=1)",
        "build(rows, 1, flip=1)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("top", ["from data import *", "from data import Lines, Pairs, build"])
def test_what_raises_in_every_run(call: str, top: str) -> None:
    assert refused(call, top)


@pytest.mark.parametrize(
    "call",
    [
        "Pairs(rows, flip=True)",
        "Pairs(*given)",  # nobody knows what it holds
        "Pairs(rows, **given)",
        "Both(rows, k=3)",  # of several bases the first may have none of its own
        "Heaps(rows, k=3)",
        "Lines(rows)",
        "Made(rows, k=3)",
        "Options(rows, k=3)",
        "build(rows, flip=1)",
        "open_ended(rows, 1, k=3)",
        "either(1, 2)",  # defined twice
        "given(1, 2, 3)",
        "unknown(1)",
    ],
)
def test_what_may_be_taken(call: str) -> None:
    assert not refused(call)


def test_a_name_that_is_given_another_meaning() -> None:
    assert not refused("Pairs(rows, k=3)", "from data import Pairs\nPairs = print")
    assert not refused("Pairs(rows, k=3)", "try:\n    from other import Pairs\nexcept ImportError:\n    from data import Pairs")


METHODS = """\
from data import Lines, Pairs


class Fit:
    def __init__(self, rows, rate):
        self.rows = rows

    def step(self, rate):
        return rate

    def end(self):
        self.step = None

    @property
    def rate(self):
        return 1


class Own(Fit):
    def __init__(self, rows):
        {above}

    def run(self):
        {own}


class Deeper(Own):
    def more(self, rate, scale): ...


def main(rows):
    fit = Own(rows)
    {call}
"""


def refused_in(*, above: str = "pass", own: str = "pass", call: str = "pass", loose: str = "") -> bool:
    text = METHODS.format(above=above, own=own, call=call) + loose
    project = Project.of({"data.py": DATA.encode(), "train.py": text.encode()})
    module = project.module("train.py")
    assert module is not None
    return any(is_refused(project, module, call) for call in module.nodes(ast.Call))


def test_the_constructor_of_the_class_above() -> None:
    assert refused_in(above="super().__init__(rows)")
    assert refused_in(above="super(Own, self).__init__(rows)")
    assert not refused_in(above="super().__init__(rows, 1)")
    loose = "\n\nclass Loose(Own, dict):\n    pass\n"  # of it, `dict` may be asked first
    assert not refused_in(above="super().__init__(rows)", loose=loose)
    assert not refused_in(above="super(Fit, self).__init__(rows)")


def test_a_method_that_is_asked_of_the_object_itself_or_of_one_made_beside_it() -> None:
    assert not refused_in(own="self.step()")  # somebody stores another function there
    assert refused_in(own="self.run(1)")
    assert not refused_in(own="self.more()")  # an heir has it
    assert not refused_in(own="self.rate()")
    assert refused_in(call="fit.run(2)")
    assert not refused_in(call="fit.run()")
    assert not refused_in(call="fit.more(1)")
    assert not refused_in(call="fit = load() if rows else fit\n    fit.run(2)")


PROGRAM = """\
import torch
import torch.distributed as dist
from data import Pairs


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    print("training starts")
    if dist.get_rank() == 0:
        dist.barrier()
    rows = Pairs({arguments})
    print("the rows are there")


if __name__ == "__main__":
    main()
"""


def test_the_noise_of_a_program_that_nobody_gets_through_is_not_reported() -> None:
    whole, broken = PROGRAM.format(arguments="[1, 2]"), PROGRAM.format(arguments="[1, 2], k=3")
    files = {"data.py": DATA}
    assert [f.span.line for f in findings_of(UnguardedPrint, whole, files=files, path="train.py")] == [9, 13]
    check_nothing(UnguardedPrint, broken, files=files, path="train.py")


def test_what_hangs_there_is_reported_all_the_same() -> None:
    broken = PROGRAM.format(arguments="[1, 2], k=3")
    (found,) = findings_of(CollectiveUnderRankGuard, broken, files={"data.py": DATA}, path="train.py")
    assert found.span.line == 11 and "barrier" in found.message


def test_the_noise_of_a_training_that_fails_at_its_end_is_heard_till_then() -> None:
    loop = "    for x in data:\n        model(x).backward()\n    rows = "
    late = PROGRAM.format(arguments="[1, 2], k=3").replace("    rows = ", loop)
    (found,) = findings_of(UnguardedPrint, late, files={"data.py": DATA}, path="train.py")
    assert found.span.line == 9


FIT = """\
import torch.distributed as dist


def build(rows):
    return rows


class Fit:
    def __init__(self, rows):
        self.rows = {made}

    def run(self):
        rank = dist.get_rank()
        print("begin")
        if rank == 0:
            self.rows = None


def main(rows):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    print("made")
    fit = Fit(rows)
    if rank == 0:
        fit.run()
    fit.run()
"""


@pytest.mark.parametrize(
    ("made", "told"),
    [("build(rows)", 2), ("build(rows, 2)", 0), ("build(rows, 2) if rows else None", 2)],
)
def test_an_object_that_no_run_gets_made(made: str, told: int) -> None:
    assert len(findings_of(UnguardedPrint, FIT.format(made=made))) == told
    # its objects have the method, too
    heir = FIT + "\n\nclass Own(Fit):\n    def __init__(self):\n        self.rows = []\n\n\ndef others():\n    Own().run()\n"
    assert len(findings_of(UnguardedPrint, heir.format(made=made))) == (told or 1)
