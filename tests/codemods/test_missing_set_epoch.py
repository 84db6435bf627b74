from __future__ import annotations

from textwrap import dedent

import pytest

from codemods.api.findings import Applicability
from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "from torch.utils.data import DataLoader, DistributedSampler\n\n"
STEP = ("        optimizer.zero_grad()", "        model(x).mean().backward()", "        optimizer.step()")
MADE = ("sampler = DistributedSampler(data)", "loader = DataLoader(data, batch_size=8, sampler=sampler)")


def script(*lines: str, made: tuple[str, ...] = MADE, head: str = HEAD) -> str:
    body = "".join(f"    {line}\n" for line in (*made, *lines))
    return f"{head}def train(model, data, optimizer, args):\n{body}"


def loop(epochs: str = "for epoch in range(3):", *first: str, batches: str = "for x in loader:") -> tuple[str, ...]:
    return (epochs, *(f"    {line}" for line in (*first, batches)), *STEP)


def test_example_of_the_page() -> None:
    sections = MissingSetEpoch.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(MissingSetEpoch, before, after)


@pytest.mark.parametrize(
    ("epochs", "number"),
    [
        ("for epoch in range(3):", "epoch"),
        ("for n in tqdm(range(1, args.epochs)):", "n"),
        ("for args.epoch in trange(3):", "args.epoch"),
        ("for epoch in (bar := trange(3)):", "epoch"),
        ("for epoch in (bar := tqdm(range(3))):", "epoch"),
        ('for state["epoch"] in range(3):', 'state["epoch"]'),
    ],
)
def test_loops_that_count(epochs: str, number: str) -> None:
    check_transformed(MissingSetEpoch, script(*loop(epochs)), script(*loop(epochs, f"sampler.set_epoch({number})")))


def test_an_epoch_without_a_name_gets_one() -> None:
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)"))
    check_transformed(MissingSetEpoch, script(*loop("for _ in range(3):")), after)


@pytest.mark.parametrize("epochs", ["for epoch in range(start, 3):", "for epoch in args.epochs_left:"])
def test_a_number_that_comes_from_elsewhere_is_assumed_to_be_the_same(epochs: str) -> None:
    check_transformed(MissingSetEpoch, script(*loop(epochs)), script(*loop(epochs, "sampler.set_epoch(epoch)")), unsafe=True)


def test_a_while_that_counts_epochs() -> None:
    before = script("epoch = 0", *loop("while epoch < 3:"), "    epoch += 1")
    after = script("epoch = 0", *loop("while epoch < 3:", "sampler.set_epoch(epoch)"), "    epoch += 1")
    check_transformed(MissingSetEpoch, before, after, unsafe=True)


def test_a_while_that_counts_before_the_pass() -> None:
    """The first pass would be told the number before the first otherwise, each other that of the last."""
    raised = ("epoch += 1", "dist.barrier()")
    before = script("epoch = -1", *loop("while epoch < 3:", *raised))
    after = script("epoch = -1", *loop("while epoch < 3:", raised[0], "sampler.set_epoch(epoch)", raised[1]))
    check_transformed(MissingSetEpoch, before, after, unsafe=True)


def test_a_while_that_counts_nothing_is_told() -> None:
    check_told(MissingSetEpoch, script(*loop("while True:")), reason="with a number that grows")


def test_a_run_without_a_sampler_is_asked_for_it() -> None:
    made = ("sampler = None", "if args.several:", "    sampler = DistributedSampler(data)", MADE[1])
    after = loop("for epoch in range(3):", "if sampler is not None:", "    sampler.set_epoch(epoch)")
    check_transformed(MissingSetEpoch, script(*loop(), made=made), script(*after, made=made))


HEIR = """\
class Kept(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
{set}


"""


def test_a_loader_class_of_the_project_that_hands_all_on() -> None:
    made = ("loader = Kept(data, sampler=DistributedSampler(data))",)
    head = HEAD + HEIR.format(set="        self.rounds = 0")
    after = script(*loop("for epoch in range(3):", "loader.sampler.set_epoch(epoch)"), made=made, head=head)
    check_transformed(MissingSetEpoch, script(*loop(), made=made, head=head), after)


@pytest.mark.parametrize(
    "changes", ["        self.sampler = Repeated(self.sampler)", "\n    @property\n    def sampler(self):\n        return 1"]
)
def test_a_loader_class_that_gives_itself_another_sampler(changes: str) -> None:
    made = ("loader = Kept(data, sampler=DistributedSampler(data))",)
    check_nothing(MissingSetEpoch, script(*loop(), made=made, head=HEAD + HEIR.format(set=changes)))


def test_an_anonymous_sampler_goes_by_its_loader() -> None:
    made = ("loader = DataLoader(data, sampler=DistributedSampler(data))",)
    after = script(*loop("for epoch in range(3):", "loader.sampler.set_epoch(epoch)"), made=made)
    check_transformed(MissingSetEpoch, script(*loop(), made=made), after)


def test_one_of_two_samplers_is_asked_for_it() -> None:
    made = (
        "if args.several:", "    loader = DataLoader(data, sampler=DistributedSampler(data))",
        "else:", "    loader = DataLoader(data, shuffle=True)",
    )  # fmt: skip
    test = ('if hasattr(loader.sampler, "set_epoch"):', "    loader.sampler.set_epoch(epoch)")
    check_transformed(MissingSetEpoch, script(*loop(), made=made), script(*loop("for epoch in range(3):", *test), made=made))


def test_loaders_of_another_file() -> None:
    files = {
        "data.py": HEAD + "def loaders(train, val):\n    s = DistributedSampler(train)\n"
        "    return DataLoader(train, sampler=s), DataLoader(val)\n"
    }
    made = ("loader, val = loaders(data, args.val)",)
    head = "from data import loaders\n\n"
    after = script(*loop("for epoch in range(3):", "loader.sampler.set_epoch(epoch)"), made=made, head=head)
    check_transformed(MissingSetEpoch, script(*loop(), made=made, head=head), after, files=files)


@pytest.mark.parametrize(
    "way", ["return None", "return DataLoader(val)", "held = DataLoader(val) if val is not None else None\n        return held"]
)
def test_a_function_that_gives_one_loader_another_way(way: str) -> None:
    files = {
        "data.py": HEAD + f"def loaders(train, val, stage):\n    if stage == 'test':\n        {way}\n"
        "    s = DistributedSampler(train)\n    return DataLoader(train, sampler=s), DataLoader(val)\n"
    }
    made = ("loader, val = loaders(data, args.val, args.stage)",)
    head = "from data import loaders\n\n"
    after = script(*loop("for epoch in range(3):", "loader.sampler.set_epoch(epoch)"), made=made, head=head)
    check_transformed(MissingSetEpoch, script(*loop(), made=made, head=head), after, files=files)
    other = {"data.py": files["data.py"].replace(way, "return read(stage)")}
    check_nothing(MissingSetEpoch, script(*loop(), made=made, head=head), files=other)


TRAINER = """\
from torch.utils.data import DataLoader, DistributedSampler

class Trainer:
    def __init__(self, model, data):
        self.model = model
        self.loader = DataLoader(data, sampler=DistributedSampler(data))

    def one(self, epoch):
        for x in self.loader:
            self.model(x).mean().backward()

    def train(self):
        for epoch in range(3):
{call}
"""


def test_a_pass_in_another_method() -> None:
    call = "            self.one(epoch)"
    before = TRAINER.format(call=call)
    check_transformed(MissingSetEpoch, before, TRAINER.format(call=f"            self.loader.sampler.set_epoch(epoch)\n{call}"))


def test_a_pass_in_a_function_that_is_handed_the_loader() -> None:
    files = {"engine.py": "def one_epoch(model, batches):\n    for x in batches:\n        model(x).mean().backward()\n"}
    head = HEAD.replace("\n\n", "\nfrom engine import one_epoch\n\n")
    before = script("for epoch in range(3):", "    one_epoch(model, loader)", head=head)
    after = script("for epoch in range(3):", "    sampler.set_epoch(epoch)", "    one_epoch(model, loader)", head=head)
    check_transformed(MissingSetEpoch, before, after, files=files)


def test_a_loader_without_a_name_at_the_epochs_is_told() -> None:
    source = TRAINER.format(call="            self.one(epoch)").replace("in self.loader", "in make(self)")
    source += "\n\ndef make(trainer):\n    return DataLoader(trainer.data, sampler=DistributedSampler(trainer.data))\n"
    check_told(MissingSetEpoch, source, reason="the loader has no name at this loop")


@pytest.mark.parametrize(
    "made",
    [
        ("sampler = DistributedSampler(data, shuffle=False)", MADE[1]),
        ("sampler = DistributedSampler(data, shuffle=args.shuffle)", MADE[1]),
        ("sampler = RandomSampler(data)", MADE[1]),
        ("sampler = make(data)", MADE[1]),
        ("loader = DataLoader(data, shuffle=True)",),
        (*MADE, "loader = accelerator.prepare(loader)"),
        (*MADE, "loader = Prefetcher(loader)"),
        ("sampler = DistributedSampler(data)", "loader = DataLoader(data, sampler=None, **args.options)"),
        (*MADE, "sampler.set_epoch(args.epoch)"),
        (*MADE, 'if hasattr(sampler, "set_epoch"):', "    args.hook(sampler)"),
    ],
)
def test_samplers_that_are_fine(made: tuple[str, ...]) -> None:
    check_nothing(MissingSetEpoch, script(*loop(), made=made))


def test_loops_that_do_not_train_or_are_not_repeated() -> None:
    check_nothing(MissingSetEpoch, script("for x in loader:", "    model(x).mean().backward()"))
    check_nothing(MissingSetEpoch, script("for epoch in range(3):", "    for x in loader:", "        print(model(x))"))
    check_nothing(MissingSetEpoch, script(*loop("for fold in args.folds:")))
    check_nothing(MissingSetEpoch, script("if args.rank == 0:", *(f"    {line}" for line in loop())))


def test_frameworks_and_tests() -> None:
    check_nothing(MissingSetEpoch, script(*loop(), head="from accelerate import Accelerator\n" + HEAD))
    check_nothing(MissingSetEpoch, script(*loop(), head="import lightning.pytorch as pl\n" + HEAD))
    check_nothing(MissingSetEpoch, script(*loop()), path="tests/test_train.py")


def test_somebody_else_calls_it() -> None:
    hook = {"hooks.py": "def before_epoch(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n"}
    check_nothing(MissingSetEpoch, script(*loop()), files=hook)
    test = {"tests/test_a.py": "def test_a(s):\n    s.set_epoch(1)\n"}
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)"))
    check_transformed(MissingSetEpoch, script(*loop()), after, files=test)


def test_another_script_with_a_sampler_of_its_own_counts_for_itself() -> None:
    other = {"other.py": 'def main(s):\n    s.set_epoch(1)\n\nif __name__ == "__main__":\n    main(1)\n'}
    started = '\n\nif __name__ == "__main__":\n    import torch\n    torch.distributed.init_process_group()\n    train(*made())\n'
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)")) + started
    check_transformed(MissingSetEpoch, script(*loop()) + started, after, files=other)


@pytest.mark.parametrize("told", ["sampler.set_epoch(epoch)", "loader.sampler.set_epoch(epoch)"])
def test_a_file_that_others_import_tells_the_samplers_that_it_makes(told: str) -> None:
    job = {"job.py": "from other import train\n\n\ndef submit(args):\n    train(*args)\n"}
    whole = script(*loop("for epoch in range(3):", told))
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)"))
    check_transformed(MissingSetEpoch, script(*loop()), after, files={**job, "other.py": whole})
    handed = whole.replace("(model, data, optimizer, args)", "(model, loader, sampler, optimizer)")
    made_here = ("    sampler =", "    loader =")
    handed = "".join(line for line in handed.splitlines(keepends=True) if not line.startswith(made_here))
    check_nothing(MissingSetEpoch, script(*loop()), files={**job, "other.py": handed})


def test_a_comment_calls_nothing() -> None:
    before = script(*loop("for epoch in range(3):", "# sampler.set_epoch(epoch)"))
    assert check_transformed(MissingSetEpoch, before, before.replace("    # sampler", "    # sampler", 1).replace(
        "        # sampler.set_epoch(epoch)\n        for",
        "        # sampler.set_epoch(epoch)\n        sampler.set_epoch(epoch)\n        for",
    ))  # fmt: skip


BOTH = ("sampler = DistributedSampler(data)", "loader = DataLoader(data, batch_size=8, sampler=sampler)",
        "other = DistributedSampler(args.other)", "second = DataLoader(args.other, sampler=other)")  # fmt: skip


def test_one_sampler_of_two_that_is_forgotten() -> None:
    told = ("for epoch in range(3):", "    other.set_epoch(epoch)", *loop()[1:])
    after = ("for epoch in range(3):", "    sampler.set_epoch(epoch)", *told[1:])
    check_transformed(MissingSetEpoch, script(*told, made=BOTH), script(*after, made=BOTH))


@pytest.mark.parametrize("call", ["loader.sampler.set_epoch(epoch)", "args.sampler.set_epoch(epoch)", "sampler.set_epoch(epoch)"])
def test_samplers_that_may_be_the_one(call: str) -> None:
    check_nothing(MissingSetEpoch, script("for epoch in range(3):", f"    {call}", *loop()[1:], made=BOTH))


OWN = (
    f"{HEAD}class Buckets(DistributedSampler):\n    def __init__(self, data, size, shuffle=True):\n"
    "        super().__init__(data, shuffle=shuffle)\n        self.size = size\n\n    def __iter__(self):\n        {}\n\n\n"
)
BY_EPOCH = "return iter([[self.epoch]])"
BUCKETS = ("buckets = Buckets(data, 8)", "loader = DataLoader(data, batch_sampler=buckets)")


@pytest.mark.parametrize(
    "made", [BUCKETS, (BUCKETS[0].replace("8)", "8, shuffle=True)"), BUCKETS[1].replace("batch_sampler", "sampler"))]
)
def test_a_class_of_the_project_that_takes_its_order_from_the_epoch(made: tuple[str, ...]) -> None:
    before, after = (script(*loop("for epoch in range(3):", *more), made=made, head=OWN.format(BY_EPOCH))
                     for more in ((), ("buckets.set_epoch(epoch)",)))  # fmt: skip
    check_transformed(MissingSetEpoch, before, after)


@pytest.mark.parametrize(
    ("order", "made"),
    [("return iter([0, 1])", BUCKETS), (BY_EPOCH, (BUCKETS[0].replace("8)", "8, shuffle=False)"), BUCKETS[1])),
     (BY_EPOCH, (BUCKETS[0].replace("8)", "8, shuffle=args.mix)"), BUCKETS[1])),
     (f"{BY_EPOCH}\n\n    def set_epoch(self, epoch):\n        pass", BUCKETS)],
)  # fmt: skip
def test_classes_of_the_project_whose_epoch_is_no_matter(order: str, made: tuple[str, ...]) -> None:
    check_nothing(MissingSetEpoch, script(*loop(), made=made, head=OWN.format(order)))


@pytest.mark.parametrize(
    "lines",
    [("    with tqdm(loader) as bar:", "        for x in bar:"), ("    bar = tqdm(loader)", "    for x in bar:"),
     ("    bar = tqdm(loader) if args.shown else loader", "    for x in loader:"),
     ("    if args.shown:", "        bar = tqdm(loader)", "    else:", "        bar = loader", "    for x in bar:")],
)  # fmt: skip
def test_a_bar_round_the_loader(lines: tuple[str, ...]) -> None:
    deep = "    " if lines[0].strip().startswith("with") else ""
    steps = [f"{deep}{line}" for line in STEP]
    before = script("for epoch in range(3):", *lines, *steps)
    after = script("for epoch in range(3):", "    sampler.set_epoch(epoch)", *lines, *steps)
    check_transformed(MissingSetEpoch, before, after)


def test_a_bar_of_two_loaders() -> None:
    lines = ("    bar = tqdm(loader)", "    bar = tqdm(args.other)", "    for x in bar:")
    check_nothing(MissingSetEpoch, script("for epoch in range(3):", *lines, *STEP))


# A loop over parts of the data


def parts(outer: str, *told: str, inner: str = "for k in range(len(data)):") -> str:
    made = ("rows = open_part(data[k])", "sampler = DistributedSampler(rows)", "loader = DataLoader(rows, sampler=sampler)")
    body = (*made, *told, "for x in loader:", "    model(x).mean().backward()")
    lines = (inner, *(f"    {line}" for line in body))
    return script(outer, *(f"    {line}" for line in lines), made=()) if outer else script(*lines, made=())


def test_a_loop_over_parts_is_told_the_number_of_the_outer_loop() -> None:
    found = check_transformed(
        MissingSetEpoch, parts("for epoch in range(9):"), parts("for epoch in range(9):", "loader.sampler.set_epoch(epoch)")
    )
    assert "for each round of the loop in line 5" in found[0].message


@pytest.mark.parametrize("outer", ["for _ in range(9):", "while True:", "for fold in folds:"])
def test_an_outer_loop_without_a_number(outer: str) -> None:
    check_told(MissingSetEpoch, parts(outer), reason="the number of the outer loop")


def test_parts_that_are_gone_through_once() -> None:
    check_nothing(MissingSetEpoch, parts(""))


def test_a_loader_for_each_epoch_of_a_fold() -> None:
    inner = "for epoch in range(9):"
    before = parts("for k in range(3):", inner=inner)
    check_transformed(MissingSetEpoch, before, parts("for k in range(3):", "loader.sampler.set_epoch(epoch)", inner=inner))


BAR = "for i, x in tqdm(enumerate(loader), total=9) if rank == 0 else enumerate(loader):"


def test_a_bar_of_rank_0_alone() -> None:
    before = script(*loop(batches=BAR))
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)", batches=BAR))
    check_transformed(MissingSetEpoch, before, after)
    check_told(MissingSetEpoch, script(*loop("while True:", batches=BAR)), reason="with a number that grows")


def test_a_bar_that_has_a_name() -> None:
    named = "bar = tqdm(loader) if rank == 0 else loader"
    head, told = "for epoch in range(3):", "sampler.set_epoch(epoch)"
    before = script(*loop(head, named, batches="for x in bar:"))
    after = script(*loop(head, told, named, batches="for x in bar:"))
    check_transformed(MissingSetEpoch, before, after)
    check_nothing(MissingSetEpoch, before.replace("if rank == 0 else loader", "if rank == 0 else other"))


# A batch sampler of the project round torch's sampler

SORTED = (
    "from torch.utils.data import BatchSampler\n\n\nclass Sorted(BatchSampler):\n"
    "    def __init__(self, sampler, size, keys):\n        super().__init__(sampler, size, False)\n        self.keys = keys\n\n"
    "    def __iter__(self):\n        for batch in super().__iter__():\n            yield sorted(batch, key=self.keys)\n"
)


def in_batches(*lines: str, sampler: str = "DistributedSampler(data)") -> str:
    made = (f"parts = {sampler}", "batches = Sorted(parts, 8, len)", "loader = DataLoader(data, batch_sampler=batches)")
    return script(*lines, made=made, head=f"{HEAD}from sorting import Sorted\n\n")


def test_a_batch_sampler_of_the_project_round_it() -> None:
    files = {"sorting.py": SORTED}
    after = in_batches(*loop("for epoch in range(3):", "loader.batch_sampler.sampler.set_epoch(epoch)"))
    check_transformed(MissingSetEpoch, in_batches(*loop()), after, files=files)
    bare = {"sorting.py": SORTED.partition("    def __init__")[0] + "    pass\n"}
    check_transformed(MissingSetEpoch, in_batches(*loop()), after, files=bare)
    either = "DistributedSampler(data) if args.many else RandomSampler(data)"
    guarded = ('if hasattr(loader.batch_sampler.sampler, "set_epoch"):', "    loader.batch_sampler.sampler.set_epoch(epoch)")
    after = in_batches(*loop("for epoch in range(3):", *guarded), sampler=either)
    head = "from torch.utils.data import RandomSampler\n"
    check_transformed(MissingSetEpoch, head + in_batches(*loop(), sampler=either), head + after, files=files)


@pytest.mark.parametrize(
    "sorting",
    [
        SORTED + "\n    def set_epoch(self, n):\n        self.n = n\n",  # somebody may tell it
        SORTED.replace("super().__init__(sampler,", "super().__init__(range(9),"),  # the base has another
        SORTED.replace("(BatchSampler)", "(list)"),
        SORTED.replace("from torch.utils.data", "from mine.sampling"),
    ],
)
def test_batch_samplers_that_have_an_order_of_their_own(sorting: str) -> None:
    check_nothing(MissingSetEpoch, in_batches(*loop()), files={"sorting.py": sorting})


def test_a_batch_sampler_without_a_share_or_that_is_told() -> None:
    files = {"sorting.py": SORTED}
    check_nothing(MissingSetEpoch, in_batches(*loop(), sampler="DistributedSampler(data, shuffle=False)"), files=files)
    check_nothing(MissingSetEpoch, in_batches(*loop(), sampler="args.sampler"), files=files)
    check_nothing(MissingSetEpoch, in_batches(*loop("for epoch in range(3):", "parts.set_epoch(epoch)")), files=files)


ENDLESS = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler


def batches(loader):
    while True:
        for x in loader:
            yield x


def shared(data, shuffle, several):
    if several:
        return DistributedSampler(data, shuffle=shuffle)
    return RandomSampler(data)


def train(model, data, optimizer, args):
    loader = DataLoader(data, batch_size=8, sampler=shared(data, shuffle=True, several=args.several))
    loader = batches(loader)
    for step in range(1000):
        optimizer.zero_grad()
        model(next(loader)).mean().backward()
        optimizer.step()
"""
COUNTED = """\
def batches(loader):
    epoch = 0
    while True:
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        for x in loader:
            yield x
        epoch += 1
"""
BARE = ENDLESS[ENDLESS.index("def batches") : ENDLESS.index("\n\ndef shared")]


def test_a_generator_that_never_ends_counts_its_rounds() -> None:
    check_transformed(MissingSetEpoch, ENDLESS, ENDLESS.replace(BARE, COUNTED))


def test_a_sampler_in_every_run_is_told_without_a_test() -> None:
    always = ENDLESS.replace("shared(data, shuffle=True, several=args.several)", "DistributedSampler(data)")
    plain = COUNTED.replace('        if hasattr(loader.sampler, "set_epoch"):\n    ', "")
    check_transformed(MissingSetEpoch, always, always.replace(BARE, plain))


ANEW = """\
def batches(loader):
    given = iter(loader)
    while True:
        try:
            yield next(given)
        except StopIteration:
            given = iter(loader)
"""


def test_a_generator_that_begins_the_loader_anew_counts_its_rounds() -> None:
    """The first round has begun above the loop: it is the one that a sampler counts as 0."""
    told = (
        '            epoch += 1\n            if hasattr(loader.sampler, "set_epoch"):\n'
        "                loader.sampler.set_epoch(epoch)\n"
    )
    (found,) = findings_of(MissingSetEpoch, ENDLESS.replace(BARE, ANEW))
    assert found.applicability is Applicability.SAFE
    counted = ANEW.replace("    while", "    epoch = 0\n    while")
    end = "            given = iter(loader)\n"
    check_transformed(MissingSetEpoch, ENDLESS.replace(BARE, ANEW), ENDLESS.replace(BARE, counted.replace(end, told + end)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            given = iter(loader)\n", "            return\n"),
        ("            given = iter(loader)\n", "            given = iter(other)\n"),
        ("            yield next(given)\n", "            yield next(given)\n            loader.sampler.set_epoch(3)\n"),
        ("except StopIteration", "except ValueError"),
    ],
)
def test_generators_that_begin_nothing_anew(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, ENDLESS.replace(BARE, ANEW.replace(old, new)))


def test_a_generator_that_is_handed_something_else_as_well_is_told() -> None:
    more = ENDLESS + "\n\ndef shown(items):\n    return batches(items.chosen)\n"
    check_told(MissingSetEpoch, more, reason="count the rounds here")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shuffle=True", "shuffle=False"),
        ("shuffle=True", "shuffle=args.mixed"),
        ("while True:", "while args:"),
        ("            yield x\n", "            yield x\n        loader.sampler.set_epoch(3)\n"),
        (".backward()", ".item()"),
    ],
)
def test_generators_that_are_fine(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, ENDLESS.replace(old, new))


def test_a_bar_of_the_project_and_a_name_that_is_given_to_one() -> None:
    shown = "def shown(batches):\n    if main():\n        return tqdm(batches)\n    return batches\n\n\n"
    before = script(*loop(batches="for i, x in enumerate(shown(loader)):"), head=HEAD + "\n" + shown)
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)", batches="for i, x in enumerate(shown(loader)):"),
                   head=HEAD + "\n" + shown)  # fmt: skip
    check_transformed(MissingSetEpoch, before, after)


PASS = """\
from torch.utils.data import DataLoader, DistributedSampler
from tqdm import tqdm


def train(model, loader, optimizer):
    model.train()
    if first():
        loader = tqdm(loader)
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


def main(model, data, optimizer):
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for epoch in range(3):
        train(model, loader, optimizer)
"""


def test_a_bar_over_a_parameter_and_a_method_of_that_name() -> None:
    after = PASS.replace("        train(model, loader", "        loader.sampler.set_epoch(epoch)\n        train(model, loader")
    check_transformed(MissingSetEpoch, PASS, after)


def test_a_bar_has_no_sampler() -> None:
    made = ("loader = DataLoader(data, sampler=DistributedSampler(data))", "from tqdm import tqdm", "loader = tqdm(loader)")
    check_told(MissingSetEpoch, script(*loop(), made=made), reason="`loader` may be a progress bar here")


TRAIN = tuple(line.removeprefix("    ") for line in STEP)


def steps(*draw: str, loop: str = "for step in range(9):", first: str = "batches = iter(loader)") -> str:
    return script(first, loop, *(f"    {line}" for line in draw), *TRAIN)


TRIED = ("try:", "    x = next(batches)", "except StopIteration:", "    batches = iter(loader)", "    x = next(batches)")
TOLD = (*TRIED[:3], "    loader.sampler.set_epoch(step)", *TRIED[3:])


@pytest.mark.parametrize(
    ("draw", "after"),
    [
        (TRIED, TOLD),
        (tuple(line.replace("StopIteration", "(StopIteration, RuntimeError)") for line in TRIED),
         tuple(line.replace("StopIteration", "(StopIteration, RuntimeError)") for line in TOLD)),
        (tuple(line.replace(" StopIteration", "") for line in TRIED), tuple(line.replace(" StopIteration", "") for line in TOLD)),
        (("if step % len(loader) == 0:", "    batches = iter(loader)", "x = next(batches)"),
         ("if step % len(loader) == 0:", "    loader.sampler.set_epoch(step)", "    batches = iter(loader)",
          "x = next(batches)")),
        (("x = next(batches, None)", "if x is None:", "    batches = iter(loader)", "    x = next(batches)"),
         ("x = next(batches, None)", "if x is None:", "    loader.sampler.set_epoch(step)", "    batches = iter(loader)",
          "    x = next(batches)")),
    ],
)  # fmt: skip
def test_a_loader_that_is_begun_anew_is_told_the_step(draw: tuple[str, ...], after: tuple[str, ...]) -> None:
    check_transformed(MissingSetEpoch, steps(*draw), steps(*after))


def test_a_step_that_is_resumed_is_assumed_to_be_the_same() -> None:
    resumed = "for step in range(args.start, 9):"
    check_transformed(MissingSetEpoch, steps(*TRIED, loop=resumed), steps(*TOLD, loop=resumed), unsafe=True)


def test_a_loader_that_may_have_another_sampler_is_asked() -> None:
    made = (MADE[0] + " if args.many else None", MADE[1])
    told = (*TRIED[:3], '    if hasattr(loader.sampler, "set_epoch"):', "        loader.sampler.set_epoch(step)", *TRIED[3:])
    before, after = (steps(*draw).replace("\n    ".join(MADE), "\n    ".join(made)) for draw in (TRIED, told))
    check_transformed(MissingSetEpoch, before, after)


@pytest.mark.parametrize(
    "source",
    [
        steps(*TRIED, loop="while args.more():"),
        steps(*TRIED, loop="for _ in range(9):"),
        steps(*TRIED, loop="for part in args.parts:"),
        script("batches = iter(loader)", "for epoch in range(3):", "    for step in range(9):", *(f"        {x}" for x in TRIED),
               "        optimizer.zero_grad()", "        model(x).mean().backward()", "        optimizer.step()"),
    ],
)  # fmt: skip
def test_a_restart_without_a_number_of_its_own_is_told(source: str) -> None:
    check_told(MissingSetEpoch, source, reason="count the passes")


RUNNER = """from torch.utils.data import DataLoader, DistributedSampler


class Runner:
    def loader(self, data):
        sampler = DistributedSampler(data)
        return DataLoader(data, batch_size=8, sampler=sampler)

    def run(self, data, net):
        loader = self.loader(data)
        batches = iter(loader)
        for step in range(900):
            try:
                x = next(batches)
            except StopIteration:
                batches = iter(loader)
                x = next(batches)
            self.one_step(net, x)

    def one_step(self, net, x):
        pass
"""
STEPPING = (
    "from runner import Runner\n\n\nclass Own(Runner):\n    def one_step(self, net, x):\n        net(x).mean().backward()\n"
)


def test_a_restart_whose_step_is_a_method_of_an_heir() -> None:
    (found,) = findings_of(MissingSetEpoch, RUNNER, path="runner.py", files={"own.py": STEPPING})
    assert found.applicability is Applicability.SAFE and "`loader`" in found.message
    apart = "from moves import move\n" + RUNNER.replace("self.one_step(net, x)", "move(net, x)")
    moves = "def move(net, x):\n    net(x).mean().backward()\n"
    assert len(findings_of(MissingSetEpoch, apart, path="runner.py", files={"moves.py": moves})) == 1


@pytest.mark.parametrize(
    "heir",
    [
        STEPPING.replace(".backward()", ""),  # nothing goes backward
        STEPPING.replace("one_step", "other_step"),  # the loop does not come to it
        STEPPING.replace("Own(Runner)", "Own"),  # another class
        STEPPING + "\n    def loader(self, data):\n        made = super().loader(data)\n        made.sampler.set_epoch(self.at)\n"
        "        return made\n",
    ],
)
def test_a_restart_that_no_heir_trains_with(heir: str) -> None:
    assert not findings_of(MissingSetEpoch, RUNNER, path="runner.py", files={"own.py": heir})


def test_a_class_that_begins_its_loader_anew_is_told() -> None:
    batches = (
        "class Batches:\n    def __init__(self, loader):\n        self.loader, self.it = loader, iter(loader)\n\n"
        "    def next(self):\n        try:\n            return next(self.it)\n        except StopIteration:\n"
        "            self.it = iter(self.loader)\n            return next(self.it)\n\n\n"
    )
    source = script("batches = Batches(loader)", "for step in range(9):", "    x = batches.next()", *TRAIN, head=HEAD + batches)
    check_told(MissingSetEpoch, source, reason="count the passes")
    check_nothing(MissingSetEpoch, source.replace("sampler=sampler", "shuffle=True"))


def test_cycle_keeps_the_batches() -> None:
    source = "import itertools\n" + steps("x = next(batches)", first="batches = itertools.cycle(loader)")
    found = check_told(MissingSetEpoch, source, reason="a generator of your own")
    assert "keeps the batches" in found.message
    check_told(MissingSetEpoch, source.replace("    for step", "    sampler.set_epoch(3)\n    for step"), reason="of your own")
    check_nothing(MissingSetEpoch, source.replace("sampler=sampler", "shuffle=True"))
    check_nothing(MissingSetEpoch, source.replace("import itertools\n", "").replace("itertools.cycle", "args.cycle"))


@pytest.mark.parametrize(
    "source",
    [
        steps(*TOLD),
        steps(*TRIED).replace("DistributedSampler(data)", "DistributedSampler(data, shuffle=False)"),
        steps(*TRIED).replace("sampler=sampler", "shuffle=True"),
        steps(*TRIED).replace("model(x).mean().backward()", "model(x).mean()"),
        steps(*TRIED).replace("def train(", "def evaluate("),
        steps(*TRIED).replace("DataLoader(data", "args.loader(data"),
        steps("x = next(batches)", "if step % 100 == 0:", "    batches = iter(loader)"),
        steps("try:", "    x = args.read()", "except KeyError:", "    batches = iter(loader)", "    x = next(batches)"),
        "import lightning\n" + steps(*TRIED),
    ],
)
def test_restarts_that_need_no_number(source: str) -> None:
    check_nothing(MissingSetEpoch, source)


_FEED = "class Feed:\n    @staticmethod\n    def endless(loader):\n        while True:\n            yield from loader\n\n\n"


def test_a_generator_that_yields_from_the_loader() -> None:
    head = "def endless(loader):\n    while True:\n        yield from loader\n\n\n"
    told = (
        "def endless(loader):\n    epoch = 0\n    while True:\n        loader.sampler.set_epoch(epoch)\n"
        "        yield from loader\n        epoch += 1\n\n\n"
    )
    before, after = (script("batches = endless(loader)", "for step in range(9):", "    x = next(batches)", *TRAIN, head=HEAD + h)
                     for h in (head, told))  # fmt: skip
    check_transformed(MissingSetEpoch, before, after)


def test_a_generator_that_is_a_static_method() -> None:
    before = script("batches = Feed.endless(loader)", "for step in range(9):", "    x = next(batches)", *TRAIN, head=HEAD + _FEED)
    passed = "            yield from loader\n"
    told = _FEED.replace(passed, f"            loader.sampler.set_epoch(epoch)\n{passed}            epoch += 1\n")
    told = told.replace("        while", "        epoch = 0\n        while")
    check_transformed(MissingSetEpoch, before, before.replace(_FEED, told))


def test_a_generator_of_two_programs_names_the_sampler_of_each() -> None:
    feed = "def endless(loader):\n    while True:\n        yield from loader\n"
    head = "from feed import endless\n" + HEAD
    body = ("batches = endless(loader)", "for step in range(9):", "    x = next(batches)", *TRAIN)
    one = script(*body, head=head)
    accelerated = "from accelerate import Accelerator\n" + one  # Accelerate gives its loaders the number
    files = {"one.py": one, "other.py": one, "third.py": accelerated}
    (found,) = findings_of(MissingSetEpoch, feed, path="feed.py", files=files)
    assert {e.path for e in found.evidence} == {"one.py", "other.py"}


def test_cycle_that_each_epoch_makes_anew() -> None:
    pairs = ("for epoch in range(3):", "    {0}", "    for x, y in zip(itertools.cycle(loader), args.many):", *STEP)
    told = "import itertools\n" + script(*(line.format("loader.sampler.set_epoch(epoch)") for line in pairs))
    check_nothing(MissingSetEpoch, told)
    check_told(MissingSetEpoch, told.replace("loader.sampler.set_epoch(epoch)", "pass"), reason="count the passes")


def test_a_loader_of_batches_has_its_sampler_elsewhere() -> None:
    made = ("batches = BatchSampler(DistributedSampler(data), 8, True)", "loader = DataLoader(data, batch_sampler=batches)")
    source = steps(*TRIED).replace("\n    ".join(MADE), "\n    ".join(made))
    source = source.replace("import DataLoader", "import BatchSampler, DataLoader")
    check_told(MissingSetEpoch, source, reason="count the passes")


@pytest.mark.parametrize("told", ["loader.sampler.set_epoch(epoch)", "sampler.set_epoch(epoch)"])
@pytest.mark.parametrize("batches", ["for x in loader:", "for i, x in enumerate(tqdm(loader)):"])
def test_told_within_the_pass(told: str, batches: str) -> None:
    before = script("for epoch in range(3):", f"    {batches}", f"        {told}", *STEP)
    after = script("for epoch in range(3):", f"    {told}", f"    {batches}", *STEP)
    (found,) = check_transformed(MissingSetEpoch, before, after)
    assert "the order that was set in the one before" in found.message


def test_told_within_the_pass_under_a_test_of_its_own() -> None:
    test = ("        if args.distributed:", "            sampler.set_epoch(epoch)")
    before = script("for epoch in range(3):", "    for x in loader:", *test, *STEP)
    after = script("for epoch in range(3):", *(line[4:] for line in test), "    for x in loader:", *STEP)
    check_transformed(MissingSetEpoch, before, after)


def test_told_within_the_pass_at_its_first_batch() -> None:
    lines = (
        "for epoch in range(3):",
        "    for i, x in enumerate(loader):",
        "        if i == 0:",
        "            sampler.set_epoch(epoch)",
    )
    check_told(MissingSetEpoch, script(*lines, *STEP), reason="in front of the loop over the batches")


@pytest.mark.parametrize(
    "lines",
    [
        ("for epoch in range(3):", "    sampler.set_epoch(epoch)", "    for x in loader:", "        sampler.set_epoch(epoch)"),
        ("for epoch in range(3):", "    for x in other:", "        sampler.set_epoch(epoch)"),
        ("for x in loader:", "    sampler.set_epoch(args.epoch)", "for x in loader:"),
        ("for epoch in range(3):", "    for x in loader:", "        sampler.set_epoch(x)"),
    ],
)
def test_told_in_time_or_for_another_pass(lines: tuple[str, ...]) -> None:
    check_nothing(MissingSetEpoch, script(*lines, *(line if lines[0] != "for x in loader:" else line[4:] for line in STEP)))


def test_a_set_epoch_of_a_program_apart() -> None:
    aside = "class Loader:\n    def __iter__(self):\n        self._loader.sampler.set_epoch(self.epoch)\n"
    source = script(*loop()) + "\n\nif __name__ == '__main__':\n    train(*make())\n"
    after = (
        script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)"))
        + "\n\nif __name__ == '__main__':\n    train(*make())\n"
    )
    check_transformed(MissingSetEpoch, source, after, files={"tools/loaders.py": aside})
    check_nothing(
        MissingSetEpoch, f"from tools import loaders\n{source}", files={"tools/loaders.py": aside, "tools/__init__.py": ""}
    )


# A sampler that another one takes the place of

_SUBSET = "from torch.utils.data import DataLoader, DistributedSampler, SubsetRandomSampler\n\n"
_SECOND = "    sampler = DistributedSampler(data)"


def _chosen(*lines: str, before: str = "if args.part:") -> str:
    made = (
        before, "    sampler = SubsetRandomSampler(range(9))", *lines, "if args.distributed and not args.part:",
        "    sampler = DistributedSampler(data)", "loader = DataLoader(data, batch_size=8, sampler=sampler)",
    )  # fmt: skip
    epochs = loop("for epoch in range(3):", "if args.distributed:", "    sampler.set_epoch(epoch)")
    return script(*epochs, made=made, head=_SUBSET)


def test_a_sampler_that_the_same_branch_replaces() -> None:
    check_nothing(MissingSetEpoch, _chosen("    print(len(data))", _SECOND))


@pytest.mark.parametrize(
    "lines",
    [(), ("    print(len(data))",), ("    if args.again:", f"    {_SECOND}")],
)
def test_a_sampler_that_may_stay(lines: tuple[str, ...]) -> None:
    check_told(MissingSetEpoch, _chosen(*lines), reason="")


ON_SOME = """
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler

    def train(rows, model, rank):
        sampler = DistributedSampler(rows)
        loader = DataLoader(rows, sampler=sampler)
        for epoch in range(3):
            {}
            for x in loader:
                model(x).backward()
    """


@pytest.mark.parametrize("line", ["if rank > 0: sampler.set_epoch(epoch)", "sampler.set_epoch(epoch) if rank > 0 else None"])
def test_an_epoch_that_some_ranks_are_told(line: str) -> None:
    (finding,) = findings_of(MissingSetEpoch, ON_SOME.format(line))
    assert "`rank > 0` lets only ranks other than 0 set the epoch" in finding.message and finding.fix is None


@pytest.mark.parametrize(
    "line",
    [
        "if rank > -1: sampler.set_epoch(epoch)",  # with one process there is no sampler
        "if dist.is_initialized(): sampler.set_epoch(epoch)",
        "sampler.set_epoch(epoch)",
        "sampler.set_epoch(epoch) if rank else sampler.set_epoch(epoch)",
    ],
)
def test_an_epoch_that_all_ranks_are_told(line: str) -> None:
    assert not findings_of(MissingSetEpoch, ON_SOME.format(line))


@pytest.mark.parametrize(("body", "said"), [("pass", 0), ("pass\n    def __iter__(self):\n        return iter(())", 1)])
def test_a_meter_of_rank_0_that_is_told_the_epoch(body: str, said: int) -> None:
    meter = f"class Meter:\n    def set_epoch(self, epoch):\n        {body}\n"
    lines = "sampler.set_epoch(epoch)\n            if rank == 0: meter.set_epoch(epoch)"
    source = ON_SOME.format(lines).replace("        for epoch in", "        meter = Meter()\n        for epoch in", 1)
    assert len(findings_of(MissingSetEpoch, "from meters import Meter\n" + dedent(source), {"meters.py": meter})) == said


OF_ONE = """
    from torch.utils.data import DataLoader, DistributedSampler

    def train(rows, model, rank):
        sampler = DistributedSampler(rows)
        loader = DataLoader(rows, sampler=sampler)
        if rank == 0:
            for epoch in range(3):
                sampler.set_epoch(epoch)
                for x in loader:
                    model(x)
    """


def test_a_pass_of_one_rank_is_told_its_epoch_by_that_rank() -> None:
    assert not findings_of(MissingSetEpoch, OF_ONE)


LEARNER = """
    class Learner:
        def __init__(self, net):
            self.net = net

        def train(self, train_loader, epochs=1):
            for e in range(epochs):
                for x in train_loader:
                    self.net.train()
                    self.net(x).mean().backward()
    """
STARTS_IT = """
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler

    from learner import Learner

    def main(rows, net):
        dist.init_process_group("nccl")
        loader = DataLoader(rows, sampler=DistributedSampler(rows))
        model = Learner(DistributedDataParallel(net))
        model.train(train_loader=loader, epochs=3)
        dist.destroy_process_group()

    main(read(), build())
    """


def test_a_loop_whose_method_is_called_like_one_of_torch() -> None:
    single = "from old_learner import Learner\n\nmodel = Learner(n)\nmodel.train(rows)\n"
    files = {"run.py": STARTS_IT, "single/old_learner.py": LEARNER, "single/old_run.py": single}
    loop = "                for x in train_loader:\n"
    fixed = LEARNER.replace(loop, f"                train_loader.sampler.set_epoch(e)\n{loop}")
    check_transformed(MissingSetEpoch, LEARNER, fixed, files=files, path="learner.py")


HELPER = """\
from torch.utils.data import DataLoader, DistributedSampler


def loader_of(data, rank, size, shuffle=False):
    sampler = DistributedSampler(data, rank=rank, num_replicas=size, shuffle=shuffle)
    return DataLoader(data, batch_size=8, sampler=sampler)


def train(rank, size, model, data, optimizer, args):
    loader = loader_of(data, rank, size, shuffle=True)
    held_out = loader_of(args.held_out, rank, size)
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        for x in held_out:
            print(model(x))
"""


def test_of_a_helper_with_several_callers_the_call_that_made_the_loader_says_whether_it_shuffles() -> None:
    told = "    for epoch in range(3):\n        loader.sampler.set_epoch(epoch)\n"
    check_transformed(MissingSetEpoch, HELPER, HELPER.replace("    for epoch in range(3):\n", told))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size, shuffle=True)", "size)"),
        ("size, shuffle=True)", "size, args.mixed)"),
        ("size, shuffle=True)", "size, **args.options)"),
        ("    return DataLoader", "    shuffle = args.mixed\n    return DataLoader"),
        ("for x in loader:", "for x in args.loader:"),
    ],
)
def test_calls_of_such_a_helper_that_do_not_say_it(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, HELPER.replace(old, new))


def test_the_call_is_found_behind_the_parameter_that_hands_the_loader_on() -> None:
    handed = "    fit(loader, model, optimizer)\n    print(held_out)\n\n\ndef fit(loader, model, optimizer):\n    for epoch"
    apart = HELPER.replace("    for epoch", handed)
    apart = apart[: apart.index("        for x in held_out")]
    assert [f.span.line for f in findings_of(MissingSetEpoch, apart)] == [17]
    check_nothing(MissingSetEpoch, apart.replace("    fit(loader", "    fit(held_out, model, optimizer)\n    fit(loader"))


OF_SPLIT = """\
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler


def make(data, split, size=8):
    {}
    sampler = DistributedSampler(data, shuffle={})
    return data, DataLoader(data, batch_sampler=BatchSampler(sampler, size, drop_last=False))


def train(model, data, optimizer):
    _, loader = make(data, split="{}")
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
"""
SPLITS = [
    ("shuffle = True if split == 'train' else False", "shuffle"),
    ("shuffle = split in ('train', 'trainval')", "shuffle"),
    ("print(split)", "split == 'train'"),
    ("evaluates = split != 'train'", "not (split == 'val' or split == 'test')"),
    ("trains = split == 'train'", "trains and not size == 1"),
    ("part = split\n    trains = part == 'train'", "trains and (not size == 1)"),
]


@pytest.mark.parametrize(("line", "shuffle"), SPLITS)
def test_a_helper_that_shuffles_by_the_name_of_the_split(line: str, shuffle: str) -> None:
    before = OF_SPLIT.format(line, shuffle, "train")
    told = "        loader.batch_sampler.sampler.set_epoch(epoch)\n"
    check_transformed(MissingSetEpoch, before, before.replace("        for x in", f"{told}        for x in"))
    check_nothing(MissingSetEpoch, OF_SPLIT.format(line, shuffle, "val"))


@pytest.mark.parametrize(
    ("line", "shuffle"),
    [("shuffle = split == 'train' and data.is_large", "shuffle"), ("split = split.lower()", "split == 'train'"),
     ("shuffle = chosen(split)", "shuffle"), ("trains = data.is_large", "trains and split == 'train'"),
     ("trains = split == 'train'\n    trains = trains and data.is_large", "trains and size == 8")],
)  # fmt: skip
def test_a_helper_of_which_the_split_does_not_tell(line: str, shuffle: str) -> None:
    check_nothing(MissingSetEpoch, OF_SPLIT.format(line, shuffle, "train"))


def test_the_words_of_a_loader_with_batches_of_its_own_behind_a_bar() -> None:
    bar = "    from tqdm import tqdm\n    loader = tqdm(loader)\n    for epoch"
    source = OF_SPLIT.format("", "True", "train").replace("    for epoch", bar)
    check_told(MissingSetEpoch, source, reason="call `loader.batch_sampler.sampler.set_epoch(epoch)`")


_ENGINE = """import deepspeed
from torch.utils.data import DataLoader, DistributedSampler


def endless(loader):
    while True:
        for x in loader:
            yield x


def main(args, model, data):
    engine, _, _, _ = deepspeed.initialize(args, model, model_parameters=model.parameters())
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    batches = endless(loader)
    for step in range(9):
        loss = engine(next(batches))
        engine.backward(loss)
        engine.step()
"""


_ENGINE_STEP = ("        loss = engine(x).mean()", "        engine.backward(loss)", "        engine.step()")
_BEGIN = "engine, *_ = deepspeed.initialize(args, model, model_parameters=model.parameters())"


def test_an_engine_of_deepspeed_goes_through_a_loader_of_torch() -> None:
    head = "import deepspeed\n" + HEAD
    before = script(_BEGIN, "for epoch in range(3):", "    for x in loader:", *_ENGINE_STEP, head=head)
    after = script(
        _BEGIN, "for epoch in range(3):", "    sampler.set_epoch(epoch)", "    for x in loader:", *_ENGINE_STEP, head=head
    )
    check_transformed(MissingSetEpoch, before, after)


_APART = """from loops import fit
from torch.utils.data import DataLoader, DistributedSampler
import deepspeed


def main(args, model, data):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    engine, *_ = deepspeed.initialize(args, model, model_parameters=model.parameters())
    fit(engine, loader, args)
"""
_LOOPS = """def fit(engine, loader, args):
    for epoch in range(args.epochs):
        for x in loader:
            loss = engine(x).mean()
            engine.backward(loss)
            engine.step()
"""


def test_an_engine_of_deepspeed_that_another_file_makes() -> None:
    (found,) = findings_of(MissingSetEpoch, _LOOPS, path="loops.py", files={"main.py": _APART})
    assert found.fix is not None and "set_epoch of the sampler of `loader`" in found.message
    told = _APART.replace("    fit(", "    sampler.set_epoch(args.epoch)\n    fit(")
    check_nothing(MissingSetEpoch, _LOOPS, path="loops.py", files={"main.py": told})
    check_nothing(MissingSetEpoch, _LOOPS, path="loops.py", files={"main.py": _APART.replace("=sampler)", "=None)")})


@pytest.mark.parametrize(
    ("old", "new"),
    [("engine.step()", "args.optimizer.step()"), ("engine.step()", "engine.step(x)"), ("backward(loss)", "backward(loss, 2)")],
)
def test_what_goes_backward_by_another_call(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, _LOOPS.replace(old, new), path="loops.py", files={"main.py": _APART})


def test_an_endless_pass_under_deepspeed() -> None:
    after = _ENGINE.replace("    while True:\n", "    epoch = 0\n    while True:\n        loader.sampler.set_epoch(epoch)\n")
    after = after.replace("            yield x\n", "            yield x\n        epoch += 1\n")
    check_transformed(MissingSetEpoch, _ENGINE, after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model_parameters=", "training_data=data, model_parameters="),  # the engine may be given the data as well
        ("import deepspeed\n", "import deepspeed\nfrom accelerate import Accelerator\n"),  # it shares loaders out
        ("DistributedSampler(data)", "DistributedSampler(data, shuffle=False)"),  # one order is what is asked for
        ("    for step in range(9):", "    loader.sampler.set_epoch(args.round)\n    for step in range(9):"),  # told elsewhere
        ("        engine.backward(loss)\n        engine.step()\n", "        print(loss)\n"),  # nothing is trained
    ],
)
def test_an_endless_pass_under_deepspeed_that_needs_nothing(old: str, new: str) -> None:
    assert old in _ENGINE
    check_nothing(MissingSetEpoch, _ENGINE.replace(old, new))


# Data that change their order themselves


@pytest.mark.parametrize(
    "line",
    ["loader.dataset.shuffle(epoch)", "data.reshuffle()", "random.shuffle(data.rows)", "loader.dataset.resample(seed=epoch)"],
)
def test_data_that_are_put_in_another_order_each_round(line: str) -> None:
    check_nothing(MissingSetEpoch, script(*loop("for epoch in range(3):", line)))


@pytest.mark.parametrize(
    "line", ["args.names.shuffle(epoch)", "loader.dataset.log(epoch)", "random.shuffle(args.colours)", "print('shuffle', epoch)"]
)
def test_orders_of_something_else(line: str) -> None:
    after = script(*loop("for epoch in range(3):", "sampler.set_epoch(epoch)", line))
    check_transformed(MissingSetEpoch, script(*loop("for epoch in range(3):", line)), after)


def test_data_that_the_pass_puts_in_another_order() -> None:
    source = f"""{HEAD}class Engine:
    def __init__(self, model, data):
        self.model = model
        self.loader = DataLoader(data, sampler=DistributedSampler(data))

    def train_epoch(self, epoch):
        {{}}
        for x in self.loader:
            self.model(x).mean().backward()


def main(model, data):
    engine = Engine(model, data)
    for epoch in range(3):
        engine.train_epoch(epoch)
"""
    check_nothing(MissingSetEpoch, source.format("self.loader.dataset.shuffle(epoch)"))
    assert findings_of(MissingSetEpoch, source.format("self.loader.dataset.check(epoch)"))


# A right number, and behind it one that stays


def twice(first: str, second: str, *, sampler: str = "sampler") -> str:
    return f"""{HEAD}class Engine:
    def __init__(self, model, loader, sampler, start):
        self.model, self.loader, self.sampler = model, loader, sampler
        self.start = start

    def train_epoch(self, e):
        {first}
        {second}
        for x in self.loader:
            self.model(x).mean().backward()

    def train(self, epochs):
        for e in range(self.start, epochs):
            self.train_epoch(e)


def main(model, data, other):
    sampler = DistributedSampler(data)
    more = DistributedSampler(other)
    Engine(model, DataLoader(data, sampler=sampler), {sampler}, 0).train(9)
"""


@pytest.mark.parametrize("held", ["self.sampler", "self.loader.sampler"])
def test_a_number_that_stays_behind_a_right_one_is_taken_away(held: str) -> None:
    before = twice("self.sampler.set_epoch(e)", f"if self.start is not None:\n            {held}.set_epoch(self.start)")
    stale = ("self.start is not", "set_epoch(self.start)")
    after = "\n".join(line for line in before.split("\n") if not any(word in line for word in stale))
    (found,) = check_transformed(MissingSetEpoch, before, after, unsafe=True)
    assert "sets it back to `self.start`" in found.message


def test_a_number_that_stays_for_another_sampler_is_mended() -> None:
    before = twice("self.sampler.set_epoch(e)", "self.loader.sampler.set_epoch(self.start)", sampler="more")
    check_transformed(MissingSetEpoch, before, before.replace("set_epoch(self.start)", "set_epoch(e)"), unsafe=True)


def test_a_number_that_stays_in_front_of_a_right_one_is_no_matter() -> None:
    check_nothing(MissingSetEpoch, twice("self.sampler.set_epoch(self.start)", "self.sampler.set_epoch(e)"))


STATISTICS = """

class Statistics:
    def set_epoch(self, epoch):
        self.epoch = epoch
"""
SHOWS = "statistics.set_epoch(epoch)"


def beside(more: str = "", base: str = "") -> str:
    """A loop that tells an object of a class of the project the epoch, and not the sampler."""
    named = STATISTICS.replace("Statistics:", f"Statistics({base}):") if base else STATISTICS
    return script(*loop("for epoch in range(3):", SHOWS), made=(*MADE, "statistics = Statistics()")) + named + more


def test_statistics_that_are_told_the_epoch() -> None:
    before = beside()
    check_transformed(MissingSetEpoch, before, before.replace(SHOWS, f"sampler.set_epoch(epoch)\n        {SHOWS}"))


@pytest.mark.parametrize(
    ("more", "base"),
    [
        ("", "Unseen"),  # what the base does with the number is not seen
        ("        sampler.set_epoch(epoch)\n", ""),  # it hands the number on
        ("\n    def __iter__(self):\n        return iter(range(self.epoch))\n", ""),  # an order may be made of it
        ("\n    def __getitem__(self, i):\n        return self.epoch + i\n", ""),
    ],
)
def test_objects_that_may_make_something_of_the_epoch(more: str, base: str) -> None:
    check_nothing(MissingSetEpoch, beside(more, base))


ON_ZERO = ON_SOME.replace("for x in loader:", "for x in data:")
ON_ZERO = ON_ZERO.replace("loader =", "data = DataLoader(rows)\n        loader =")


def test_a_sampler_that_one_rank_alone_goes_through() -> None:
    """The others deal nothing out by it."""
    line = "if rank == 0:\n                sampler.set_epoch(epoch)\n                {}"
    check_nothing(MissingSetEpoch, ON_ZERO.format(line.format("look(next(iter(loader)), len(loader))")))
    for more in ("pass\n            look(next(iter(loader)))", "look(loader)\n            show(loader)"):
        assert findings_of(MissingSetEpoch, ON_ZERO.format(line.format(more)))
