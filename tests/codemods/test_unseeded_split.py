from __future__ import annotations

import pytest

from codemods.data_loading.unseeded_split import UnseededSplit
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import torch
import torch.distributed as dist
from sklearn.model_selection import train_test_split
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import random_split


"""


def program(*lines: str, head: str = HEAD) -> str:
    body = ("dist.init_process_group()", "rank, world = dist.get_rank(), 2", *lines, "return DDP(net), sets")
    return f"{head}def main(data, net, args):\n" + "".join(f"    {line}\n" for line in body)


SPLIT = "sets = random_split(data, [9, 1])"


def test_example_of_the_page() -> None:
    sections = UnseededSplit.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnseededSplit, before, after, unsafe=True)


def test_a_split_of_sklearn() -> None:
    after = program("sets = train_test_split(data, random_state=0)")
    check_transformed(UnseededSplit, program("sets = train_test_split(data)"), after, unsafe=True)


def test_a_generator_that_makes_the_data_seeds_no_split() -> None:
    made = "g = torch.Generator().manual_seed(0)"
    after = program(made, "sets = random_split(data, [9, 1], generator=torch.Generator().manual_seed(0))")
    check_transformed(UnseededSplit, program(made, SPLIT), after, unsafe=True)


def test_a_split_in_a_file_that_the_program_uses() -> None:
    data = "import torch\nfrom torch.utils.data import random_split\n\ndef sets(data):\n    return random_split(data, [9, 1])\n"
    train = program("sets = make(data)", head=HEAD + "from data import sets as make\n\n")
    after = data.replace("[9, 1])", "[9, 1], generator=torch.Generator().manual_seed(0))")
    check_transformed(UnseededSplit, data, after, files={"train.py": train}, path="data.py", unsafe=True)
    check_nothing(UnseededSplit, data, files={"train.py": train.replace("DDP(net)", "net")}, path="data.py")


DEALS = HEAD + "import random\nimport numpy as np\nfrom torch.utils.data import DistributedSampler, Subset\n\n\n"


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        ("rows = list(range(9))\n    random.shuffle(rows)", "random.Random(0).shuffle"),
        ("rows = np.arange(9)\n    np.random.shuffle(rows)", "np.random.default_rng(0).shuffle"),
        ("rows = np.random.permutation(len(data))", "np.random.default_rng(0).permutation"),
        ("rows = torch.randperm(len(data)).tolist()", "give it generator=torch.Generator().manual_seed(0)"),
        ("rows = data.files\n    random.shuffle(rows)\n    rows = rows[:9]", "random.Random(0).shuffle"),
    ],
)
def test_an_order_that_a_sampler_deals_out(draw: str, reason: str) -> None:
    source = program(draw, "kept = Subset(data, rows[:7])", "sets = DistributedSampler(kept)", head=DEALS)
    found = check_told(UnseededSplit, source, reason=reason)
    assert "their shares overlap" in found.message
    seeds = "random.seed(0); np.random.seed(0); torch.manual_seed(0)"
    check_nothing(UnseededSplit, program(seeds, draw, "sets = DistributedSampler(rows)", head=DEALS))


@pytest.mark.parametrize(
    "lines",
    [
        ("random.shuffle(rows)", "sets = DistributedSampler(data)"),  # nobody deals them out
        ("random.shuffle(rows)", "rows = list(range(9))", "sets = DistributedSampler(Subset(data, rows))"),  # others by then
        ("random.shuffle(rows)", "rows = sorted(rows)", "sets = DistributedSampler(Subset(data, rows))"),
        ("random.shuffle(rows)", "rows.sort()", "sets = DistributedSampler(Subset(data, rows))"),
        ("random.shuffle(rows)", "dist.broadcast_object_list(rows)", "sets = DistributedSampler(Subset(data, rows))"),
        ("sets = DistributedSampler(Subset(data, rows))", "random.shuffle(rows)"),
        ("random.Random(0).shuffle(rows)", "sets = DistributedSampler(Subset(data, rows))"),
        ("if rank == 0:", "    random.shuffle(rows)", "sets = DistributedSampler(Subset(data, rows))"),  # another fault
        ("random.shuffle(rows)", "sets = DistributedSampler(Subset(data, range(len(rows))))"),  # how many there are
    ],
)
def test_an_order_that_no_sampler_deals_out(lines: tuple[str, ...]) -> None:
    check_nothing(UnseededSplit, program("rows = list(range(9))", *lines, head=DEALS))


def test_a_permutation_of_which_each_rank_takes_its_part() -> None:
    source = program("order = torch.randperm(len(data))", "sets = order[rank::world]")
    check_told(UnseededSplit, source, reason="give it generator=")
    check_nothing(UnseededSplit, source.replace("order[rank::world]", "order[:9]"))


@pytest.mark.parametrize(
    "lines",
    [
        ("torch.manual_seed(args.seed)", SPLIT),
        ("args.set_seed(1)", SPLIT),
        ("sets = random_split(data, [9, 1], generator=args.stream)",),
        ("sets = train_test_split(data, random_state=args.seed)",),
        ("sets = random_split(data, [9, 1], **args)",),
        (SPLIT, "dist.broadcast_object_list(sets)"),
        ("sets = None", "if rank == 0:", f"    {SPLIT}"),
        ("sets = args.random_split(data)",),
    ],
)
def test_splits_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(UnseededSplit, program(*lines))


def test_seeds_elsewhere() -> None:
    other = {"a.py": "import torch\n\ndef fix():\n    torch.manual_seed(1)\n"}
    seeded = program("fix()", SPLIT, head=f"{HEAD}from a import fix\n\n")
    check_nothing(UnseededSplit, seeded, files=other)
    assert findings_of(UnseededSplit, program(SPLIT), files=other)  # nobody calls it on the way to the split
    at_import = {"a.py": "import torch\n\ntorch.manual_seed(1)\n\ndef fix():\n    pass\n"}
    check_nothing(UnseededSplit, seeded, files=at_import)
    check_nothing(UnseededSplit, program(SPLIT), files={"train.yaml": "seed_everything: 3\n"})
    check_nothing(UnseededSplit, program("trainer = Trainer(net)", SPLIT))


def test_a_seed_above_the_call_of_the_function_that_splits() -> None:
    source = program("sets = halves(data)", head=f"{HEAD}def halves(data):\n    return random_split(data, [9, 1])\n\n\n")
    assert findings_of(UnseededSplit, source)
    check_nothing(UnseededSplit, source.replace("    sets = halves", "    torch.manual_seed(1)\n    sets = halves"))


def test_a_split_of_what_an_accelerator_deals_out() -> None:
    source = (
        "import torch\nfrom accelerate import Accelerator\nfrom torch.utils.data import DataLoader, random_split\n\n\n"
        "def main(data, net):\n    accelerator = Accelerator()\n    train_set, val_set = random_split(data, [9, 1])\n"
        "    loader = DataLoader(train_set, 4)\n    return accelerator.prepare(net, loader), val_set\n"
    )
    assert findings_of(UnseededSplit, source)
    check_nothing(UnseededSplit, source.replace("accelerator.prepare(net, loader)", "loader"))
    check_nothing(UnseededSplit, program(SPLIT), path="tests/test_a.py")


def test_one_process() -> None:
    check_nothing(UnseededSplit, program(SPLIT).replace("DDP(net)", "net"))


ROWS = ("train = args.rows.sample({})", "sets = train, args.rows.drop(train.index)")


def test_rows_that_pandas_draws() -> None:
    given, rest = ROWS
    after = program(given.format("frac=0.9, random_state=0"), rest)
    check_transformed(UnseededSplit, program(given.format("frac=0.9"), rest), after, unsafe=True)
    check_nothing(UnseededSplit, after)
    check_nothing(UnseededSplit, program(given.format("frac=0.9"), "sets = train, None"))  # nothing is held out of it
    check_nothing(UnseededSplit, program("torch.manual_seed(0); np.random.seed(0)", given.format("frac=0.9"), rest))


@pytest.mark.parametrize(("devices", "found"), [('devices="auto"', 1), ("devices=1", 0)])
def test_rows_of_a_data_module(devices: str, found: int) -> None:
    data = (
        "import lightning.pytorch as pl\n\n\nclass Data(pl.LightningDataModule):\n    def setup(self, stage):\n"
        "        self.train = self.rows.sample(frac=0.9)\n        self.val = self.rows.drop(self.train.index)\n"
    )
    main = f"import lightning.pytorch as pl\nfrom module import Data\n\npl.Trainer({devices}).fit(net, Data())\n"
    assert len(findings_of(UnseededSplit, data, {"main.py": main})) == found
    run = "\n\ndef run(args, net):\n    pl.seed_everything(args.seed)\n    pl.Trainer"
    seeded = main.replace("\npl.Trainer", run)
    check_nothing(UnseededSplit, data, files={"main.py": seeded})
    assert len(findings_of(UnseededSplit, data, {"main.py": main, "other.py": "import torch\ntorch.manual_seed(0)\n"})) == found


OWN_SET = """\
from torch.utils.data import Dataset, random_split
import torch


class Ratings(Dataset):
    def divided(self, share):
        held = int(share * len(self))
        return random_split(self, [held, len(self) - held])
"""
OF_SET = """\
import lightning.pytorch as pl
from module import Ratings


class Data(pl.LightningDataModule):
    def __init__(self):
        super().__init__()
        self.rows = Ratings()

    def setup(self, stage):
        self.train, self.val = self.rows.divided(0.8)
"""
FITS = "import lightning.pytorch as pl\nfrom data import Data\n\n{}pl.Trainer({}).fit(net, Data())\n"


@pytest.mark.parametrize(
    ("above", "options", "found"),
    [
        ("", "strategy='ddp', devices=4", 1),
        ("", "accelerator='gpu', devices=4", 1),
        ("", "devices=1", 0),
        ("pl.seed_everything(1)\n", "strategy='ddp', devices=4", 0),
        ("from lightning.pytorch.cli import LightningCLI\nLightningCLI(Net, Data)\n", "devices=4", 0),  # it seeds by itself
    ],
)
def test_a_data_set_that_a_hook_of_lightning_divides(above: str, options: str, found: int) -> None:
    files = {"data.py": OF_SET, "main.py": FITS.format(above, options)}
    assert len(findings_of(UnseededSplit, OWN_SET, files)) == found


def test_a_script_that_divides_it_once_for_all_hooks() -> None:
    main = FITS.format("rows = Ratings()\nrows.divided(0.8)\n", "strategy='ddp_spawn', devices=4")
    data = OF_SET.replace("self.rows.divided(0.8)", "None, None")
    check_nothing(UnseededSplit, OWN_SET, files={"data.py": data, "main.py": main})


CLI = "from lightning.pytorch.cli import LightningCLI\n\nLightningCLI({})\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"other.py": CLI.format("Net, Rows")}, 1),
        ({"other.py": CLI.format("Net, Rows"), "conf.yaml": "seed_everything: 1\ndata:\n  class_path: rows.Rows\n"}, 1),
        ({"other.py": CLI.format("Net"), "conf.yaml": "seed_everything: 1\ndata:\n  class_path: data.Data\n"}, 0),
        ({"other.py": "from data import Data\n" + CLI.format("Net, Data")}, 0),
        ({"other.py": "import main\n" + CLI.format("Net")}, 0),
        ({"conf.yaml": "seed_everything: 1\n"}, 0),  # any program may go by it
    ],
)
def test_a_data_module_beside_the_program_of_a_cli(files: dict[str, str], found: int) -> None:
    main = FITS.format("", "accelerator='gpu', devices=4")
    assert len(findings_of(UnseededSplit, OWN_SET, {"data.py": OF_SET, "main.py": main, **files})) == found


def test_a_data_module_that_no_file_makes_may_be_one_of_a_cli() -> None:
    main = FITS.format("", "accelerator='gpu', devices=4").replace("from data import Data\n", "").replace("Data()", "made")
    files = {"data.py": OF_SET, "main.py": main, "other.py": CLI.format("Net")}
    check_nothing(UnseededSplit, OWN_SET, files=files)


def test_a_hook_that_divides_in_a_file_without_a_trainer() -> None:
    data = (
        "import lightning as L\nfrom torch.utils.data import random_split\nimport torch\n\n\nclass Data(L.LightningDataModule):\n"
        "    def setup(self, stage):\n        self.train, self.val = random_split(self.rows, [9, 1])\n"
    )
    main = "import lightning as L\nfrom module import Data\n\nL.Trainer(accelerator='gpu').fit(net, Data())\n"
    files = {"main.py": main, "other.py": CLI.format("Net")}
    found = findings_of(UnseededSplit, data, files)
    assert len(found) == 1 and found[0].fix is not None
    check_nothing(UnseededSplit, data, files={**files, "main.py": main.replace("\nL.T", "\nL.seed_everything(1)\nL.T")})


DATASETS = "from datasets import load_dataset\n" + HEAD.replace("from sklearn.model_selection import train_test_split\n", "")


def test_a_split_of_datasets() -> None:
    split = 'sets = load_dataset("a")["train"].train_test_split(test_size=0.1)'
    after = program(split.replace("0.1)", "0.1, seed=0)"), head=DATASETS)
    check_transformed(UnseededSplit, program(split, head=DATASETS), after, unsafe=True)
    named = program('rows = load_dataset("a")', split.replace('load_dataset("a")["train"]', 'rows["train"]'), head=DATASETS)
    check_transformed(UnseededSplit, named, named.replace("0.1)", "0.1, seed=0)"), unsafe=True)


@pytest.mark.parametrize(
    "split",
    ["train_test_split(test_size=0.1, seed=args.seed)", "train_test_split(test_size=0.1, shuffle=False)",
     "train_test_split(0.1, generator=args.generator)", "train_test_split(test_size=0.1, **args.split)"],
)  # fmt: skip
def test_splits_of_datasets_that_are_equal(split: str) -> None:
    check_nothing(UnseededSplit, program(f'sets = load_dataset("a")["train"].{split}', head=DATASETS))


def test_a_split_of_something_else() -> None:
    head = DATASETS.replace("from datasets import load_dataset\n", "")
    check_nothing(UnseededSplit, program("sets = data.train_test_split(test_size=0.1)", head=head))


TRAINER = """\
from datasets import load_dataset
from transformers import Trainer, TrainingArguments


def main(model):
    sets = load_dataset("a")["train"].train_test_split(test_size=0.1)
    arguments = TrainingArguments(output_dir="out")
    trainer = Trainer(model=model, args=arguments, train_dataset=sets["train"], eval_dataset=sets["test"])
    trainer.train()


if __name__ == "__main__":
    main(make())
"""


def test_what_the_trainer_deals_out() -> None:
    start = {"run.sh": "torchrun --nproc_per_node=4 train.py\n"}
    after = TRAINER.replace("0.1)", "0.1, seed=0)")
    check_transformed(UnseededSplit, TRAINER, after, files=start, path="train.py", unsafe=True)
    check_nothing(UnseededSplit, TRAINER, files={"run.sh": "python train.py\n"}, path="train.py")
    seeded = TRAINER.replace("import Trainer,", "import Trainer, set_seed,").replace("    sets =", "    set_seed(3)\n    sets =")
    check_nothing(UnseededSplit, seeded, files=start, path="train.py")


def test_a_trainer_by_another_name() -> None:
    start = {"run.sh": "torchrun --nproc_per_node=4 train.py\n"}
    renamed = TRAINER.replace("    trainer = Trainer(", "    kind = Trainer\n    trainer = kind(")
    check_transformed(UnseededSplit, renamed, renamed.replace("0.1)", "0.1, seed=0)"), files=start, path="train.py", unsafe=True)
    chosen = renamed.replace("kind = Trainer", "kind = Trainer if model else Other")
    check_nothing(UnseededSplit, chosen, files=start, path="train.py")
    check_nothing(UnseededSplit, renamed.replace("kind = Trainer", "kind = model.Shower"), files=start, path="train.py")


ENGINE = """import deepspeed

from parts import make_parts


def main(model, rows):
    deepspeed.init_distributed()
    train_set, val_set = make_parts(rows)
    engine, _, _, _ = deepspeed.initialize(model=model, config={})
    return engine, train_set, val_set


main(None, [])
"""
PARTS = """import torch
from torch.utils.data import random_split


def make_parts(rows):
    return random_split(rows, [8, 2])
"""


def test_a_split_that_a_program_of_an_engine_uses() -> None:
    after = PARTS.replace("[8, 2])", "[8, 2], generator=torch.Generator().manual_seed(0))")
    files = {"train.py": ENGINE, "run.sh": "deepspeed --num_gpus 4 train.py\n"}
    check_transformed(UnseededSplit, PARTS, after, files=files, path="parts.py", unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("    deepspeed.init_distributed()\n", "    torch.manual_seed(0)\n"), ("deepspeed.initialize(", "own.initialize("),
     ("make_parts(rows)", "rows.parts()")],
)  # fmt: skip
def test_programs_of_an_engine_that_divide_alike(old: str, new: str) -> None:
    files = {"train.py": ENGINE.replace(old, new).replace("import deepspeed", "import deepspeed\nimport torch")}
    check_nothing(UnseededSplit, PARTS, files=files, path="parts.py")


CUT = """def cut(rows, shares):
    parts, start = [], 0
    for share in shares:
        parts.append(rows[start:start + share])
        start += share
    return parts


"""
HALVES = "def cut(rows, n):\n    return rows[:n], rows[n:]\n\n\n"
MIXED = HEAD + "import random\nimport numpy as np\n\n\n"
CUTS = "train_rows, val_rows, _ = cut(rows, [7, 2, 0])"
KEPT = "sets = train_rows, val_rows"


@pytest.mark.parametrize(
    ("cut", "lines"),
    [
        (CUT, ("random.shuffle(rows)", CUTS)),
        (HALVES, ("random.shuffle(rows)", "args.train, args.valid = cut(rows, 7)", "train_rows = val_rows = args.valid")),
        (CUT, ("if args.mix:", "    np.random.shuffle(rows)", CUTS)),
        (CUT, ("rows = np.random.permutation(data)", CUTS)),
    ],
)
def test_a_list_that_a_function_cuts(cut: str, lines: tuple[str, ...]) -> None:
    source = program("rows = list(data)", *lines, KEPT, head=MIXED + cut)
    found = check_told(UnseededSplit, source, reason="generator with a seed")
    assert "each rank divides the data in another way" in found.message


def test_a_list_that_a_function_of_another_file_cuts() -> None:
    source = program("rows = list(data)", "random.shuffle(rows)", CUTS, KEPT, head=f"{MIXED}from cuts import cut\n\n\n")
    (found,) = findings_of(UnseededSplit, source, files={"cuts.py": CUT})
    assert found.fix is None or not found.fix.edits


@pytest.mark.parametrize(
    ("cut", "lines"),
    [
        (CUT.replace("    parts, start", "    rows = sorted(rows)\n    parts, start"), ("random.shuffle(rows)", CUTS)),
        (CUT, ("random.shuffle(rows)", "rows = sorted(rows)", CUTS)),
        (CUT, (CUTS, "random.shuffle(rows)")),
        (CUT, ("random.shuffle(rows)", "train_rows, val_rows, _ = cut(data, [7, 2, 0])")),  # what is mixed is not cut
        (CUT, ("random.shuffle(rows)", "left, right = cut(rows, [7, 2])", "train_rows, val_rows = left, right")),  # of what?
        ("def cut(rows, shares):\n    return len(rows), shares[0], 0\n\n\n", ("random.shuffle(rows)", CUTS)),
        (CUT, ("random.seed(args.seed)", "random.shuffle(rows)", CUTS)),
        (CUT, ("random.Random(0).shuffle(rows)", CUTS)),
    ],
)
def test_lists_that_a_function_cuts_alike(cut: str, lines: tuple[str, ...]) -> None:
    check_nothing(UnseededSplit, program("rows = list(data)", *lines, KEPT, head=MIXED + cut))


@pytest.mark.parametrize(
    ("seeds", "draw", "reported"),
    [
        ("torch.manual_seed(n)", "random.shuffle(rows)", True),
        ("torch.manual_seed(n)\n    np.random.seed(n)", "random.shuffle(rows)", True),
        ("torch.manual_seed(n)\n    random.seed(n)", "np.random.shuffle(rows)", True),
        ("torch.manual_seed(n)\n    random.seed(n)", "random.shuffle(rows)", False),
        ("torch.manual_seed(n)\n    np.random.seed(n)", "np.random.shuffle(rows)", False),
        ("torch.manual_seed(n)\n    more.seed_rest(n)", "random.shuffle(rows)", False),  # what that seeds is not seen
        ("more.start(n)", "random.shuffle(rows)", False),
        ("more.set_seed(n)", "random.shuffle(rows)", False),
    ],
)
def test_a_seed_of_another_library(seeds: str, draw: str, reported: bool) -> None:
    helper = f"import more\n\n\ndef fix_seed(n):\n    {seeds}\n\n\n"
    source = program("fix_seed(3)", "rows = list(data)", draw, CUTS, KEPT, head=MIXED + helper + CUT)
    assert len(findings_of(UnseededSplit, source)) == (1 if reported else 0)
