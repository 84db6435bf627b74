"""DDP402 where `set_epoch` is called on what has none."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, Sampler\n\n\n"
OWN = """class Weighted(Sampler):
    def __init__(self, weights):
        self.weights = weights

    def __iter__(self):
        return iter(range(len(self.weights)))


"""
LOOP = "    for epoch in range(3):\n"


def train(*made: str, told: tuple[str, ...] = ("sampler.set_epoch(epoch)",), own: str = OWN) -> str:
    lines = "".join(f"    {line}\n" for line in made)
    return f"{HEAD}{own}def train(data, args):\n{lines}{LOOP}" + "".join(f"        {line}\n" for line in told)


def test_the_indices_of_a_sampler() -> None:
    told = ("for sampler in samplers:", "    sampler.set_epoch(epoch)")
    before = train("samplers = DistributedSampler(data)", told=told)
    (found,) = check_transformed(
        MissingSetEpoch, before, train("samplers = DistributedSampler(data)", told=("samplers.set_epoch(epoch)",))
    )
    assert "`samplers` is one DistributedSampler and no list of them" in found.message


def test_the_indices_of_a_sampler_from_another_file() -> None:
    loaders = HEAD + (
        "def loaders(data, args):\n    sampler = None\n    if args.distributed:\n        sampler = DistributedSampler(data)\n"
        "    return sampler, DataLoader(data, sampler=sampler)\n"
    )
    head = "from loaders import loaders\n\n\ndef train(data, args):\n    samplers, loader = loaders(data, args)\n"
    before = head + LOOP + "        if args.distributed:\n            for s in samplers:\n                s.set_epoch(epoch)\n"
    after = head + LOOP + "        if args.distributed:\n            samplers.set_epoch(epoch)\n"
    check_transformed(MissingSetEpoch, before, after, files={"loaders.py": loaders})


def test_what_else_the_loop_does_is_left_to_the_user() -> None:
    told = ("for sampler in samplers:", "    sampler.set_epoch(epoch)", "    print(sampler)")
    check_told(MissingSetEpoch, train("samplers = DistributedSampler(data)", told=told), reason="`samplers.set_epoch(epoch)`")


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (("sampler = Weighted(data)",), "`Weighted`"),
        (("sampler = RandomSampler(data)",), "a RandomSampler"),
        (("sampler = DataLoader(data)",), "a DataLoader of torch"),
        (("sampler = None", "if args.many:", "    sampler = Weighted(data)"), "`Weighted`"),
        (("sampler = DistributedSampler(data)", "if args.balanced:", "    sampler = Weighted(data)"), "where `args.balanced`"),
    ],
)
def test_another_sampler(made: tuple[str, ...], what: str) -> None:
    found = check_told(MissingSetEpoch, train(*made), reason="call it on the DistributedSampler that deals the data out")
    assert what in found.message


@pytest.mark.parametrize(
    ("loader", "told", "what"),
    [
        ("DataLoader(data, shuffle=True)", "loader.sampler", "the sampler that the loader makes itself"),
        ("DataLoader(data, sampler=Weighted(data))", "loader.sampler", "`Weighted`"),
        ("DataLoader(data, sampler=DistributedSampler(data))", "loader.batch_sampler", "the BatchSampler that the loader makes"),
        ("DataLoader(data, batch_sampler=BatchSampler(DistributedSampler(data), 4, True))", "loader.sampler", "Sequential"),
    ],
)
def test_the_sampler_of_a_loader(loader: str, told: str, what: str) -> None:
    found = check_told(
        MissingSetEpoch, train(f"loader = {loader}", told=(f"{told}.set_epoch(epoch)",)), reason="DistributedSampler"
    )
    assert what in found.message


@pytest.mark.parametrize(
    "told",
    [
        ('if hasattr(sampler, "set_epoch"):', "    sampler.set_epoch(epoch)"),
        ("if isinstance(sampler, DistributedSampler):", "    sampler.set_epoch(epoch)"),
        ("try:", "    sampler.set_epoch(epoch)", "except AttributeError:", "    pass"),
        ('hasattr(sampler, "set_epoch") and sampler.set_epoch(epoch)',),
    ],
)
def test_what_is_asked_for_its_method(told: tuple[str, ...]) -> None:
    check_nothing(MissingSetEpoch, train("sampler = Weighted(data)", told=told))


@pytest.mark.parametrize(
    "made",
    [
        ("sampler = Weighted(data)", "if args.distributed:", "    sampler = DistributedSampler(data)"),
        ("sampler = DistributedSampler(data)", "if not args.distributed:", "    sampler = Weighted(data)"),
        ("sampler = DistributedSampler(data)", "if args.gpus < 2:", "    sampler = Weighted(data)"),
        ("sampler = DistributedSampler(data) if args.distributed else RandomSampler(data)",),
        ("sampler = args.sampler(data)",),
        ("sampler = wrap(RandomSampler(data))",),
    ],
)
def test_another_sampler_with_one_process_alone(made: tuple[str, ...]) -> None:
    check_nothing(MissingSetEpoch, train(*made, told=("if args.distributed:", "    sampler.set_epoch(epoch)")))


@pytest.mark.parametrize(
    "own",
    [
        OWN + "    def set_epoch(self, epoch):\n        self.epoch = epoch\n\n\n",
        OWN.replace("self.weights = weights", "self.weights, self.set_epoch = weights, print"),
        OWN.replace("(Sampler)", "(DistributedSampler)"),
        OWN.replace("(Sampler)", "(unknown.Sampler)"),
        OWN + "    def __getattr__(self, name):\n        return getattr(self.inner, name)\n\n\n",
    ],
)
def test_a_class_that_may_have_the_method(own: str) -> None:
    check_nothing(MissingSetEpoch, train("sampler = Weighted(data)", own=own.replace("\n\n\n    def", "\n\n    def")))


def test_a_setting_that_decides_over_both() -> None:
    made = ("sampler = DistributedSampler(data)", "if args.balanced:", "    sampler = Weighted(data)")
    check_nothing(MissingSetEpoch, train(*made, told=("if not args.balanced:", "    sampler.set_epoch(epoch)")))


def test_loaders_that_a_framework_makes_anew() -> None:
    told = ("loader.sampler.set_epoch(epoch)",)
    source = train("loader = DataLoader(data, shuffle=True)", told=told)
    check_nothing(MissingSetEpoch, "import lightning.pytorch as pl\n" + source)
    prepared = train("loader = DataLoader(data, shuffle=True)", "loader = args.accelerator.prepare(loader)", told=told)
    check_nothing(MissingSetEpoch, prepared)


def test_a_list_of_samplers() -> None:
    told = ("for sampler in samplers:", "    sampler.set_epoch(epoch)")
    check_nothing(MissingSetEpoch, train("samplers = [DistributedSampler(data)]", told=told))
    check_nothing(MissingSetEpoch, train("samplers = args.samplers", told=told))


def test_a_helper_that_is_told_to_shuffle_by_this_loader() -> None:
    head = HEAD + (
        "def sampler_of(data, shuffle, many):\n    if many:\n        return DistributedSampler(data, shuffle=shuffle)\n"
        "    return RandomSampler(data)\n\n\n"
    )
    made = (
        "def train(model, data, args):\n    loader = DataLoader(data, sampler=sampler_of(data, shuffle=True, many=args.many))\n"
        "    other = DataLoader(data, sampler=sampler_of(data, shuffle=False, many=args.many))\n"
    )
    rest = "        for x in loader:\n            model(x).mean().backward()\n"
    told = '        if hasattr(loader.sampler, "set_epoch"):\n            loader.sampler.set_epoch(epoch)\n'
    check_transformed(MissingSetEpoch, head + made + LOOP + rest, head + made + LOOP + told + rest)
    check_nothing(MissingSetEpoch, head + made + LOOP + rest.replace("in loader", "in other"))
