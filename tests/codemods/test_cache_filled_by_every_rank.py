"""DDP307: every rank fills the same files."""

from __future__ import annotations

import pytest

from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = CacheFilledByEveryRank
HEAD = "import os\nimport numpy as np\nimport torch.distributed as dist\nfrom torch.utils.data import Dataset\n\n"
READ = "\n    def __getitem__(self, i):\n        return np.load(f'{self.folder}/{i}.npy')\n"


def data(body: str, *, read: str = READ, head: str = HEAD) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{head}class D(Dataset):\n    def __init__(self, samples, folder, rank):\n        self.folder = folder\n{lines}{read}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


def test_a_data_set_that_writes_what_it_reads() -> None:
    lightning = HEAD.replace("import torch.distributed as dist", "import lightning.pytorch as pl")
    body = "for i, sample in enumerate(samples):\n    np.save(f'{self.folder}/{i}.npy', sample)"
    check_told(RULE, data(body, head=lightning), reason="prepare_data")


def test_through_a_method_of_a_base_in_another_file() -> None:
    base = f"""{HEAD}class BaseDataset(Dataset):
    def fill(self):
        for i, s in enumerate(self.samples):
            np.savez(os.path.join(self.folder, f"sample_{{i}}.npz"), s)

    def __len__(self):
        return len(os.listdir(self.folder))
"""
    source = (
        "from base import BaseDataset\nimport pytorch_lightning\n\nclass One(BaseDataset):\n    def __init__(self, folder):\n"
        "        self.folder = folder\n        if folder:\n            self.fill()\n\n    def __getitem__(self, i):\n"
        "        return open(i).read()\n\n    def save(self):\n        pass\n"
    )
    found = check_told(RULE, source, reason="prepare_data", files={"base.py": base})
    assert found.span.line == 8
    assert "base.py:9" in found.message


@pytest.mark.parametrize(
    "body",
    ["if rank == 0:\n    np.save(f'{self.folder}/0.npy', samples)",
     "np.save(f'{self.folder}/0.npy', samples)\ndist.barrier()",
     "with FileLock(folder):\n    np.save(f'{self.folder}/0.npy', samples)",
     "np.save(f'{self.folder}/{rank}/0.npy', samples)",
     "np.save(f'{self.other}/0.npy', samples)",
     "self.samples = samples"],
)  # fmt: skip
def test_right_or_read_by_nobody(body: str) -> None:
    check_nothing(RULE, data(body))


def test_one_process() -> None:
    head = HEAD.replace("import torch.distributed as dist\n", "")
    check_nothing(RULE, data("np.save(f'{self.folder}/0.npy', samples)", head=head))


def test_the_tests_of_a_repository_are_left_alone() -> None:
    check_told(RULE, data("np.save(f'{self.folder}/0.npy', samples)"), reason="prepare_data")
    check_nothing(RULE, data("np.save(f'{self.folder}/0.npy', samples)"), path="tests/test_data.py")


# Files that whoever does not find them writes

SCRIPT = "import json\nimport os\nimport zipfile\nimport torch\nimport torch.distributed as dist\n\n"


def rows(*lines: str, call: str = "rows('rows.pt')", above: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{SCRIPT}{above}def rows(path):\n{body}\n\ndef main():\n    dist.init_process_group('gloo')\n    {call}\n"


MISSING = ("if not os.path.exists(path):", "    torch.save(build(), path)", "return torch.load(path)")


def test_a_file_gets_its_name_when_it_is_whole() -> None:
    beside = 'f"{path}.{os.getpid()}"'
    after = (MISSING[0], f"    torch.save(build(), {beside})", f"    os.replace({beside}, path)", MISSING[2])
    check_transformed(RULE, rows(*MISSING), rows(*after), unsafe=True)


def test_the_other_way_round_and_an_open_file() -> None:
    read = ("if os.path.isfile(path):", "    return json.load(open(path))")
    lines = (*read, "with open(path, 'w') as f:", "    json.dump([1], f)")
    beside = 'f"{path}.{os.getpid()}"'
    after = (*read, f"with open({beside}, 'w') as f:", lines[3], f"os.replace({beside}, path)")
    check_transformed(RULE, rows(*lines), rows(*after), unsafe=True)


def test_an_archive_in_a_constructor_of_another_file() -> None:
    leaves = (
        "import os, zipfile\nfrom torch.utils.data import Dataset\n\nclass Leaves(Dataset):\n    def __init__(self, root):\n"
        "        if not os.path.isdir(root):\n            zipfile.ZipFile('leaves.zip').extractall(root)\n"
        "        self.files = sorted(os.listdir(root))\n"
    )
    train = "import torch.distributed as dist\nfrom leaves import Leaves\n\ndef main():\n    dist.init_process_group('gloo')\n"
    alone = {"train.py": train + "    data = Leaves('data')\n"}
    found = check_told(RULE, leaves, files=alone, path="leaves.py", reason="barrier")
    assert found.span.line == 7 and "line 8" in found.message
    first = "    if dist.get_rank() == 0:\n        Leaves('data')\n    dist.barrier()\n    data = Leaves('data')\n"
    check_nothing(RULE, leaves, files={"train.py": train + first}, path="leaves.py")


@pytest.mark.parametrize(
    "lines",
    [
        (MISSING[0], "    torch.save(build(), path + '.new')", "    os.replace(path + '.new', path)", MISSING[2]),
        (MISSING[0], "    if dist.get_rank() == 0:", "        torch.save(build(), path)", "dist.barrier()", MISSING[2]),
        ("if dist.get_rank() == 0 and not os.path.exists(path):", *MISSING[1:]),
        ("with FileLock(path + '.lock'):", *(f"    {line}" for line in MISSING[:2]), MISSING[2]),
        ("path = f'{path}.{dist.get_rank()}'", *MISSING),
        ("if not os.path.exists(path):", "    torch.save(build(), path)"),
        ("if os.path.exists(path):", "    torch.save(build(), path)", MISSING[2]),
        ("if not os.path.exists(path):", "    raise FileNotFoundError(path)", MISSING[2]),
    ],
)
def test_files_that_are_seen_to(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, rows(*lines))


def test_functions_that_one_process_calls() -> None:
    check_nothing(RULE, rows(*MISSING, call="if dist.get_rank() == 0: rows('rows.pt')"))
    check_nothing(RULE, rows(*MISSING, call="pass"))
    check_nothing(RULE, rows(*MISSING, call="rows(f'rows_{dist.get_rank()}.pt')"))
