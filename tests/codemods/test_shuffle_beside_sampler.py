"""DDP419: loaders that shuffle beside a DistributedSampler."""

from __future__ import annotations

import pytest

from codemods.data_loading.shuffle_beside_sampler import ShuffleBesideSampler
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = ShuffleBesideSampler
HEAD = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler


class Halves(DistributedSampler):
    pass


"""
BY_TEST = """def make_loader(data, args):
    if args.distributed:
        sampler = DistributedSampler(data)
    else:
        sampler = None
    return DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)


make_loader([], None)
"""
ALWAYS = BY_TEST.replace("    else:\n        sampler = None\n", "").replace("    if args.distributed:\n    ", "")
INLINE = BY_TEST.replace("sampler=sampler)", "sampler=DistributedSampler(data) if args.distributed else None)")


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [(BY_TEST, "shuffle=True", "shuffle=(sampler is None)"),
     (ALWAYS, "shuffle=True, ", ""),
     (INLINE, "shuffle=True", "shuffle=not args.distributed"),
     (INLINE.replace("DistributedSampler(data) if args.distributed else None", "None if args.one else DistributedSampler(data)"),
      "shuffle=True", "shuffle=args.one"),
     (BY_TEST.replace("= DistributedSampler(", "= Halves("), "shuffle=True", "shuffle=(sampler is None)"),
     (BY_TEST.replace("(data, batch_size=8, shuffle=True,", "(data, 8, True,"), "8, True", "8, sampler is None"),
     (ALWAYS.replace("(data, batch_size=8, shuffle=True,", "(data, 8, True,"), "8, True", "8, False")],
)  # fmt: skip
def test_loaders_that_torch_refuses(source: str, old: str, new: str) -> None:
    check_transformed(RULE, HEAD + source, HEAD + source.replace(old, new))


@pytest.mark.parametrize(
    ("imports", "told"),
    [
        ("from monai.data import *", True),
        ("from monai.data import *\nfrom monai.transforms import *\nfrom math import *", True),
        ("from monai.data import DataLoader, DistributedSampler", True),
        ("from torch.utils.data import *", True),
        ("from monai.data import *\nfrom mine import *", False),  # may bring its own
        ("from mine import *", False),
        ("from monai.transforms import *", False),
        ("from monai.data import *\n\n\nclass DataLoader:\n    pass\n\n", False),
    ],
)
def test_names_that_a_star_brings(imports: str, told: bool) -> None:
    source = f"import torch.distributed as dist\n{imports}\n\n\n{BY_TEST}".replace("(data)", "(dataset=data, shuffle=True)")
    if told:
        check_transformed(RULE, source, source.replace("shuffle=True, sampler", "shuffle=(sampler is None), sampler"))
    else:
        check_nothing(RULE, source)


def test_a_sampler_of_monai_given_its_arguments_by_place() -> None:
    source = f"from monai.data import DataLoader, DistributedSampler\n\n\n{BY_TEST}"
    check_nothing(RULE, source.replace("(data)", "(data, True, 2, 0, True)"))


def test_a_sampler_of_a_helper() -> None:
    helper = "def sampler_of(data, args):\n    return DistributedSampler(data) if args.distributed else None\n\n\n"
    loader = "def make(data, args):\n    part = sampler_of(data, args)\n    return DataLoader(data, shuffle=True, sampler=part)\n"
    source = f"{HEAD}{helper}{loader}\n\nmake([], None)\n"
    check_transformed(RULE, source, source.replace("shuffle=True", "shuffle=(part is None)"))


def test_a_field_of_a_trainer() -> None:
    source = (
        f"{HEAD}class Trainer:\n    def __init__(self, data, ddp):\n"
        "        self.sampler = DistributedSampler(data) if ddp else None\n"
        "        self.loader = DataLoader(data, sampler=self.sampler, shuffle=True)\n\n\nTrainer([], False)\n"
    )
    check_transformed(RULE, source, source.replace("shuffle=True", "shuffle=(self.sampler is None)"))


def test_both_under_one_test() -> None:
    source = (
        f"{HEAD}def make(data, args):\n    if args.distributed:\n        sampler = DistributedSampler(data)\n"
        "        loader = DataLoader(data, sampler=sampler, shuffle=True)\n    else:\n"
        "        loader = DataLoader(data, shuffle=True)\n    return loader\n\n\nmake([], None)\n"
    )
    check_transformed(RULE, source, source.replace("sampler=sampler, shuffle=True", "sampler=sampler"))


def test_settings_that_decide_over_the_sampler() -> None:
    source = ALWAYS.replace("DistributedSampler(data)", "DistributedSampler(data, shuffle=args.shuffle)")
    found = check_told(RULE, HEAD + source.replace("args.shuffle", "False"), reason="does not shuffle")
    assert "each rank ends here" in found.message
    check_transformed(RULE, HEAD + source, HEAD + source.replace("shuffle=True, ", ""), unsafe=True)


def test_a_test_of_several_parts() -> None:
    check_told(RULE, HEAD + INLINE.replace("if args.distributed", "if args.gpus > 1"), reason="leave `shuffle` to the ways")


APART = """def make(data, args):
    sampler = DistributedSampler(data) if args.distributed else None
    if not args.distributed:
        return DataLoader(data, shuffle=True, sampler=sampler)
    return DataLoader(data, sampler=sampler)


make([], None)
"""


@pytest.mark.parametrize(
    "source",
    [BY_TEST.replace("shuffle=True", "shuffle=sampler is None"), BY_TEST.replace("shuffle=True", "shuffle=not args.distributed"),
     BY_TEST.replace("shuffle=True", "shuffle=args.shuffle"), BY_TEST.replace("shuffle=True", "shuffle=False"),
     BY_TEST.replace("shuffle=True, ", ""), BY_TEST.replace(", sampler=sampler", ", sampler=None"),
     BY_TEST.replace("= DistributedSampler(data)", "= args.sampler"), BY_TEST.replace("DistributedSampler(data)", "None"),
     APART, APART.replace("if not args.distributed:", "if sampler is None:"),
     APART.replace("return DataLoader(data, shuffle=True, sampler=sampler)\n    return DataLoader(data, sampler=sampler)",
                   "return DataLoader(data, sampler=sampler)\n    return DataLoader(data, shuffle=True, sampler=sampler)"),
     ALWAYS.replace("DataLoader(data, batch", "own.DataLoader(data, batch").replace("def make", "import own\n\n\ndef make")],
)  # fmt: skip
def test_loaders_that_torch_takes(source: str) -> None:
    check_nothing(RULE, HEAD + source)


def test_a_sampler_that_another_branch_leaves_out() -> None:
    source = (
        f"{HEAD}def make(data, args):\n    sampler = None\n    if args.distributed:\n        sampler = DistributedSampler(data)\n"
        "        loader = DataLoader(data, sampler=sampler)\n    else:\n"
        "        loader = DataLoader(data, shuffle=True, sampler=sampler)\n    return loader\n\n\nmake([], None)\n"
    )
    check_nothing(RULE, source)


def test_a_loader_that_no_program_makes() -> None:
    program = (
        'import torch.distributed as dist\n\n\ndef main():\n    dist.init_process_group("nccl")\n\n\n'
        'if __name__ == "__main__":\n    main()\n'
    )
    source = HEAD + ALWAYS.replace("\n\nmake_loader([], None)\n", "")
    check_nothing(RULE, source, files={"train.py": program})
    check_transformed(
        RULE, source, source.replace("shuffle=True, ", ""), files={"train.py": program.replace("main()\n", "make_loader([], 0)\n")
        .replace("import torch", "from module import make_loader\nimport torch", 1)},
    )  # fmt: skip


HANDED = """class Trainer:
    def __init__(self, train, val, ddp):
        self.train, self.val, self.ddp = train, val, ddp
        if self.train is not None:
            self.loader = self.make(self.train, shuffle=True)
        self.checked = self.make(self.val, shuffle=False)

    def make(self, data, shuffle):
        sampler = DistributedSampler(data) if self.ddp else None
        return DataLoader(data, shuffle=shuffle, sampler=sampler)


Trainer([], [], False)
"""


def test_a_caller_that_asks_for_it() -> None:
    new = HANDED.replace("shuffle=shuffle", "shuffle=(shuffle and sampler is None)")
    check_transformed(RULE, HEAD + HANDED, HEAD + new)
    always = HEAD + HANDED.replace(" if self.ddp else None", "")
    check_transformed(RULE, always, always.replace("shuffle=shuffle, ", ""))


@pytest.mark.parametrize(
    "source",
    [HANDED.replace("shuffle=True", "shuffle=not ddp"), HANDED.replace("self.train is not None", "not self.ddp"),
     HANDED.replace("if self.ddp else", "if self.ddp and not shuffle else"), HANDED.replace("shuffle=True", "shuffle=False"),
     HANDED.replace("        sampler", "        if self.ddp:\n            shuffle = False\n        sampler"),
     HANDED.replace("if self.ddp else", "if shared else").replace("data, shuffle)", "data, shuffle, shared=False)"),
     HANDED.replace("        if self.train is", "        if ddp:\n            return\n        if self.train is")],
)  # fmt: skip
def test_callers_that_may_not_meet_the_sampler(source: str) -> None:
    check_nothing(RULE, HEAD + source)
