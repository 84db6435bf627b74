"""DDP202 and DDP204 of what rank 0 has made before Lightning starts the other ranks, or before they set up."""

from __future__ import annotations

import pytest

from codemods.ranks.makedirs_race import MakedirsRace
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import findings_of

SCRIPT = (
    "import pickle\nfrom pathlib import Path\n\nfrom pytorch_lightning import Trainer\n\nif __name__ == '__main__':\n"
    "    args = parse()\n    cache = Path(args.folder) / 'rows.pkl'\n{write}"
    "    trainer = Trainer(strategy='ddp', devices=args.devices)\n    trainer.fit(Net(rows))\n"
)
ASKED = (
    "    if args.anew or not cache.exists():\n        rows = read(args.source)\n"
    "        with open(cache, 'wb') as f:\n            pickle.dump(rows, f)\n"
    "    else:\n        with open(cache, 'rb') as f:\n            rows = pickle.load(f)\n"
)
ANYWAY = "    rows = read(args.source)\n    with open(cache, 'wb') as f:\n        pickle.dump(rows, f)\n"


def test_a_cache_of_the_script_itself() -> None:
    assert not findings_of(UnguardedFileIo, SCRIPT.format(write=ASKED), path="train.py")


@pytest.mark.parametrize(("write", "files"), [
    (ASKED, {"run.sh": "torchrun --nproc-per-node 4 train.py\n"}),  # all ranks come there at once
    (ANYWAY, {}),  # nobody asks: the later ones write it again
])  # fmt: skip
def test_what_every_rank_still_writes(write: str, files: dict[str, str]) -> None:
    assert findings_of(UnguardedFileIo, SCRIPT.format(write=write), files, path="train.py")


ROWS = (
    "import pickle\nfrom pathlib import Path\n\n\nclass Rows:\n    def __init__(self, source):\n        self.source = source\n\n"
    "    def prepare(self):\n        self.file = Path(self.source).parent / 'prints.pkl'\n"
    "        self.prints = self.prints_of(self.source)\n\n"
    "    def prints_of(self, source):\n{asked}        return self.make(source)\n\n"
    "    def load(self):\n        with open(self.file, 'rb') as f:\n            return pickle.load(f)\n\n"
    "    def make(self, source):\n        prints = work_out(source)\n        with open(self.file, 'wb') as f:\n"
    "            pickle.dump(prints, f)\n        return prints\n"
)
PRETRAIN = (
    "import lightning as L\n\nfrom rows import Rows\n\n\ndef main(config):\n    rows = Rows(config.source)\n    rows.prepare()\n"
    "    trainer = L.Trainer(devices=2)\n    trainer.fit(Net(), loader(rows))\n\n\n"
    "if __name__ == '__main__':\n    main(parse())\n"
)


def test_a_file_that_another_method_asks_for() -> None:
    asked = "        if self.file.exists():\n            return self.load()\n"
    assert not findings_of(UnguardedFileIo, ROWS.format(asked=asked), {"pretrain.py": PRETRAIN}, path="rows.py")


def test_a_file_that_nobody_asks_for() -> None:
    assert findings_of(UnguardedFileIo, ROWS.format(asked=""), {"pretrain.py": PRETRAIN}, path="rows.py")


TABLE = (
    "import os\n\nimport pandas as pd\nfrom torch.utils.data import Dataset\n\n\nclass Table(Dataset):\n"
    "    def __init__(self, folder, part, download):\n        self.folder = folder\n        if download:\n"
    "            fetch(folder)\n        self.rows = self.load(part)\n\n"
    "    def load(self, part):\n        parsed = os.path.join(self.folder, part + '.tsv')\n        if self.is_whole(parsed):\n"
    "            rows = pd.read_table(parsed)\n        else:\n            rows = parse_rows(self.folder)\n"
    "            names = os.path.join(self.folder, 'names.tsv')\n            self.put(rows.names, names)\n"
    "        return rows\n\n"
    "    def is_whole(self, path):\n        if not os.path.isfile(path):\n            return False\n        return True\n\n"
    "    def put(self, frame, path):\n        frame.to_csv(path, sep='\\t')\n"
)
MODULE = (
    "import lightning.pytorch as pl\n\nfrom table import Table\n\n\nclass Data(pl.LightningDataModule):\n"
    "    def __init__(self, folder):\n        super().__init__()\n        self.folder = folder\n\n{prepare}"
    "    def setup(self, stage=None):\n        self.train = Table(self.folder, part='train', download=False)\n"
)
PREPARE = "    def prepare_data(self):\n        Table(self.folder, part={part!r}, download=True)\n\n"


def test_setup_finds_what_prepare_data_has_made() -> None:
    files = {"data.py": MODULE.format(prepare=PREPARE.format(part="train"))}
    assert not findings_of(UnguardedFileIo, TABLE, files, path="table.py")


@pytest.mark.parametrize("prepare", [
    "",  # every rank parses the table in `setup`
    PREPARE.format(part="val"),  # another part than the ranks ask for
])  # fmt: skip
def test_setup_makes_it_itself(prepare: str) -> None:
    files = {"data.py": MODULE.format(prepare=prepare)}
    found = findings_of(UnguardedFileIo, TABLE, files, path="table.py")
    assert [f.code for f in found] == ["DDP202"]


def test_setup_writes_what_no_test_asks_for() -> None:
    files = {"data.py": MODULE.format(prepare=PREPARE.format(part="train"))}
    table = TABLE.replace("if self.is_whole(parsed):", "if part == 'extra':")
    assert findings_of(UnguardedFileIo, table, files, path="table.py")


def test_one_clock_is_told_once() -> None:
    source = (
        "from datetime import datetime\nfrom pathlib import Path\n\nimport lightning as L\n\n\n"
        "def set_up_log(folder):\n    Path(folder).mkdir(parents=True, exist_ok=True)\n\n\n"
        "if __name__ == '__main__':\n    folder = Path(f\"runs/{datetime.now().strftime('%H-%M')}\")\n"
        "    folder.mkdir(parents=True, exist_ok=True)\n    set_up_log(folder)\n"
        "    trainer = L.Trainer(devices=4)\n    trainer.fit(Net())\n"
    )
    assert len(findings_of(MakedirsRace, source, path="train.py")) == 1
