"""DDP307: caches that an object of a package writes, and those of which the reader picks one by a test."""

from __future__ import annotations

import pytest

from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told

RULE = CacheFilledByEveryRank

WORDS = """import os
from pathlib import Path
import torch.distributed as dist
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from tokenizers.models import BPE, WordLevel


def words_of(rows, path):
{body}

def main(rows):
    dist.init_process_group("nccl")
    return words_of(rows, "words.json")
"""


def words(*lines: str) -> str:
    return WORDS.format(body="".join(f"    {line}\n" for line in lines))


MADE = ("    words = Tokenizer(WordLevel(unk_token='?'))", "    words.train_from_iterator(rows)")


@pytest.mark.parametrize(
    "lines",
    [
        ("path = Path(path)", "if not Path.exists(path):", *MADE, "    words.save(str(path))", "else:",
         "    words = Tokenizer.from_file(str(path))", "return words"),
        ("if not os.path.isfile(path):", *MADE, "    words.save(path, pretty=True)", "return Tokenizer.from_file(path)"),
        ("if Path(path).exists():", "    return Tokenizer.from_file(path)", "words = ByteLevelBPETokenizer()",
         "words.train_from_iterator(rows)", "words.save(path)", "return words"),
    ],
)  # fmt: skip
def test_a_tokenizer_that_every_rank_trains(lines: tuple[str, ...]) -> None:
    check_told(RULE, words(*lines), reason="barrier")


@pytest.mark.parametrize(
    "lines",
    [
        ("if dist.get_rank() == 0 and not Path.exists(Path(path)):", *MADE, "    words.save(path)", "dist.barrier()",
         "return Tokenizer.from_file(path)"),
        ("path = f'words-{dist.get_rank()}.json'", "if not Path.exists(Path(path)):", *MADE, "    words.save(path)",
         "return Tokenizer.from_file(path)"),
        ("if not os.path.exists(path):", *MADE, "    words.save(path + '.new')", "    os.replace(path + '.new', path)",
         "return Tokenizer.from_file(path)"),
        ("if not os.path.exists(path):", "    rows.save(path)", "return Tokenizer.from_file(path)"),
    ],
)  # fmt: skip
def test_a_tokenizer_of_one_rank_or_what_is_none(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, words(*lines))


PAIRS = """import os
import lmdb
import torch.distributed as dist
from torch.utils.data import Dataset


class Pairs(Dataset):
    def __init__(self, path):
        self.path = path
        self.held = None
        if not os.path.exists(self.path):
            self.fill()

    def fill(self):
        held = lmdb.open({opened})
        with held.begin({begun}) as rows:
            rows.put(b"0", b"row")

    def __getitem__(self, i):
        if self.held is None:
            self.held = lmdb.open(self.path, readonly=True, lock=False)
        return self.held.begin().get(str(i).encode())


def main():
    dist.init_process_group("nccl")
    return Pairs({made})
"""


@pytest.mark.parametrize("opened", ["self.path", "self.path, map_size=2 ** 30, readonly=False", "path=self.path, create=True"])
def test_a_database_that_every_rank_fills(opened: str) -> None:
    source = PAIRS.format(opened=opened, begun="write=True", made="'pairs.lmdb'")
    assert "line 15" in check_told(RULE, source, reason="barrier").message


@pytest.mark.parametrize(
    ("opened", "begun", "made"),
    [
        ("self.path, readonly=True", "write=True", "'pairs.lmdb'"),
        ("self.path", "", "'pairs.lmdb'"),
        ("self.path + '.new'", "write=True", "'pairs.lmdb'"),
        ("self.path", "write=True", "f'pairs-{dist.get_rank()}.lmdb'"),
    ],
)
def test_a_database_that_is_read_or_of_one_rank(opened: str, begun: str, made: str) -> None:
    check_nothing(RULE, PAIRS.format(opened=opened, begun=begun, made=made))


SPLITS = """import os
import numpy as np
import torch.distributed as dist


class Splits:
    first, second = "train.npz", "test.npz"

    def __init__(self, root, train):
        if not os.path.exists(os.path.join(root, self.first)):
            np.savez(os.path.join(root, self.first), rows=[1])
        self.rows = {read}


def main(root, train):
    dist.init_process_group("nccl")
    return Splits(root, train)
"""


@pytest.mark.parametrize(
    "read",
    [
        "np.load(os.path.join(root, self.first if train else self.second))",
        "np.load(f'{root}/{self.second if not train else self.first}')",
        "np.load(root + '/' + (self.first if train else self.second))",
    ],
)
def test_a_file_that_the_reader_picks(read: str) -> None:
    check_told(RULE, SPLITS.format(read=read), reason="barrier")


@pytest.mark.parametrize(
    "read",
    [
        "np.load(os.path.join(root, self.third if train else self.second))",
        "np.load(os.path.join(root, self.first, 'rows' if train else 'more'))",
        "np.load(os.path.join(root if train else '.', self.second))",
    ],
)
def test_another_file_that_the_reader_picks(read: str) -> None:
    check_nothing(RULE, SPLITS.format(read=read))


FILLED = """import numpy as np
import torch.distributed as dist
from torch.utils.data import Dataset


class Rows(Dataset):
    def __init__(self, path):
        {kept}
        np.save({written}, [1])

    def __getitem__(self, i):
        return np.load(self.path)[i]


def main():
    dist.init_process_group("nccl")
    return Rows({made})
"""


@pytest.mark.parametrize("written", ["self.path", "str(self.path)"])
def test_a_data_set_that_every_rank_fills(written: str) -> None:
    source = FILLED.format(kept="self.path = path", written=written, made="'rows.npy'")
    check_told(RULE, source, reason="barrier")


@pytest.mark.parametrize("kept", ["self.path = path", "self.path, self.held = path, None"])
def test_a_data_set_of_one_rank_by_what_its_maker_says(kept: str) -> None:
    check_nothing(RULE, FILLED.format(kept=kept, written="self.path", made="f'rows-{dist.get_rank()}.npy'"))
