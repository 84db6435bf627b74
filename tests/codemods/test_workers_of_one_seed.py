"""DDP418: workers that are seeded alike on every rank."""

from __future__ import annotations

import pytest

from codemods.data_loading.workers_of_one_seed import WorkersOfOneSeed
from ddpfix.testing import check_nothing, check_told

RULE = WorkersOfOneSeed
WHY = "torch.initial_seed()"
PROGRAM = """import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] + DRAW


def seed_worker(worker_id):
    SEED


def main(rows, optimizer, args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    data = Rows(rows)
    loader = DataLoader(data, num_workers=4, sampler=DistributedSampler(data), worker_init_fn=seed_worker)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
"""


def program(seed: str, draw: str = "np.random.normal()") -> str:
    return PROGRAM.replace("SEED", seed).replace("DRAW", draw)


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason=WHY)
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    ("seed", "draw"),
    [("np.random.seed(0)", "np.random.normal()"), ("np.random.seed(7 + worker_id)", "np.random.rand()"),
     ("random.seed(worker_id)", "random.random()"), ("torch.manual_seed(worker_id)", "torch.randn(1)"),
     ("seed = 100 + worker_id\n    random.seed(seed)\n    np.random.seed(seed)", "np.random.uniform(0, 1)")],
)  # fmt: skip
def test_seeds_that_are_the_same_on_every_rank(seed: str, draw: str) -> None:
    check_told(RULE, program(seed, draw), reason=WHY)


def test_who_draws_alike() -> None:
    assert "all workers of all ranks" in check_told(RULE, program("np.random.seed(0)"), reason=WHY).message
    assert "workers of one number" in check_told(RULE, program("np.random.seed(worker_id)"), reason=WHY).message
    assert "in each epoch" in check_told(RULE, program("np.random.seed(0)"), reason=WHY).message


def test_workers_that_live_on() -> None:
    source = program("np.random.seed(0)").replace("num_workers=4,", "num_workers=4, persistent_workers=True,")
    assert "epoch" not in check_told(RULE, source, reason=WHY).message


def test_a_data_set_that_seeds_its_worker() -> None:
    inside = "info = get_worker_info()\n        np.random.seed(info.id)\n        return self.rows[index]"
    source = program("pass").replace("return self.rows[index]", inside).replace(", worker_init_fn=seed_worker", "")
    check_told(RULE, source, reason=WHY)
    check_nothing(RULE, source.replace("info.id", "info.seed % 2**32"))


def test_a_data_set_that_seeds_in_a_method_that_it_calls() -> None:
    method = (
        "def read(self, index):\n        info = get_worker_info()\n        if info is not None:\n"
        "            np.random.seed(info.id)\n        return self.rows[index] + np.random.normal()\n\n"
        "    def __getitem__(self, index):\n        return self.read(index)"
    )
    old = "def __getitem__(self, index):\n        return self.rows[index] + np.random.normal()"
    source = program("pass").replace(old, method)
    check_told(RULE, source.replace(", worker_init_fn=seed_worker", ""), reason=WHY)


def test_a_transform_of_another_file() -> None:
    crop = "class Crop:\n    def __call__(self, x):\n        return x[np.random.randint(3):]\n"
    files = {"crops.py": f"import numpy as np\n\n\n{crop}"}
    source = program("np.random.seed(worker_id)", "0").replace("import numpy", "from crops import Crop\nimport numpy")
    check_told(RULE, source, reason=WHY, files=files)


def test_a_function_that_gives_the_function() -> None:
    seeding = "def seeding(seed):\n    def init(worker_id):\n        np.random.seed(seed)\n\n    return init\n\n\n"
    source = program("pass").replace("def main(", f"{seeding}def main(")
    check_told(RULE, source.replace("worker_init_fn=seed_worker", "worker_init_fn=seeding(3)"), reason=WHY)


@pytest.mark.parametrize(
    "seed",
    ["np.random.seed(torch.initial_seed() % 2**32)", "np.random.seed(np.random.get_state()[1][0] + worker_id)",
     "np.random.seed(int(time.time()) + worker_id)", "np.random.seed(worker_id + 100 * dist.get_rank())",
     "np.random.seed(worker_id + int(os.environ['RANK']))", "np.random.seed(get_worker_info().seed % 2**32)", "np.random.seed()",
     "base = torch.initial_seed()\n    np.random.seed((base + worker_id) % 2**32)", "random.seed(worker_id)", "pass"],
)  # fmt: skip
def test_seeds_that_differ_or_are_of_no_draw(seed: str) -> None:
    check_nothing(RULE, program(seed))


@pytest.mark.parametrize(
    ("old", "new"),
    [("sampler=DistributedSampler(data)", "shuffle=True"), (", worker_init_fn=seed_worker", ""), (".backward()", ".item()"),
     ("DRAW", "0"), ("worker_init_fn=seed_worker", "worker_init_fn=args.seed_worker")],
)  # fmt: skip
def test_loaders_that_are_no_matter(old: str, new: str) -> None:
    check_nothing(RULE, PROGRAM.replace(old, new).replace("SEED", "np.random.seed(0)").replace("DRAW", "np.random.normal()"))


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program("np.random.seed(0)"), path="tests/test_rows.py")


def test_a_function_of_an_imported_module() -> None:
    start = PROGRAM.index("def seed_worker")
    end = PROGRAM.index("def main")
    seeding = "import numpy as np\nimport torch\n\n\n" + PROGRAM[start:end]
    main = (PROGRAM[:start] + PROGRAM[end:]).replace("DRAW", "np.random.normal()")
    main = main.replace("import torch\n", "import seeds\nimport torch\n", 1)
    files = {"train.py": main.replace("worker_init_fn=seed_worker", "worker_init_fn=seeds.seed_worker")}
    check_told(RULE, seeding.replace("SEED", "np.random.seed(worker_id)"), reason=WHY, files=files, path="seeds.py")
    own = "np.random.seed(torch.initial_seed() % 2**32)"
    check_nothing(RULE, seeding.replace("SEED", own), files=files, path="seeds.py")
    other = {"train.py": files["train.py"].replace("seeds.seed_worker", "args.seed_worker")}
    check_nothing(RULE, seeding.replace("SEED", "np.random.seed(worker_id)"), files=other, path="seeds.py")
