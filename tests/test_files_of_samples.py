"""DDP307 of a data set that keeps a file of each sample, and who else asks for it meanwhile."""

from __future__ import annotations

import pytest

from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import findings_of

DATA = (
    "import hashlib\nimport torch\nfrom pathlib import Path\nfrom accelerate import Accelerator\n"
    "from torch.utils.data import DataLoader, Dataset\n\n\nclass Clips(Dataset):\n"
    "    def __init__(self, root, accelerator):\n        self.device = accelerator.device\n"
    "        self.folder = Path(root) / 'cache'\n"
    "        self.clips = sorted(Path(root).glob('*.mp4'))\n        self.texts = texts_of(root)\n\n"
    "    def __getitem__(self, index):\n        clip = self.clips[index]\n        text = self.texts[index]\n        {name}\n"
    "        if path.exists():\n            rows = torch.load(path)\n        else:\n            rows = encode(clip)\n"
    "            torch.save(rows, path)\n        return rows\n\n\n"
    "def main(args):\n    accelerator = Accelerator()\n    model = make(args)\n"
    "    loader = DataLoader(Clips(args.root, accelerator))\n"
    "    {deal}\n    for rows in loader:\n        accelerator.backward(model(rows))\n\n\n"
    "if __name__ == '__main__':\n    main(parse())\n"
)
DEALT = "loader = accelerator.prepare(loader)"


@pytest.mark.parametrize("name", [
    "path = self.folder / (clip.stem + '.pt')",
    "path = self.folder / f'{index}.pt'",
    "path = Path(f'{self.folder}/{self.clips[index].name}.pt')",
])  # fmt: skip
def test_a_file_of_the_sample_itself(name: str) -> None:
    assert not findings_of(CacheFilledByEveryRank, DATA.format(name=name, deal=DEALT), path="train.py")


@pytest.mark.parametrize(("name", "deal"), [
    ("path = self.folder / (hashlib.md5(text.encode()).hexdigest() + '.pt')", DEALT),  # equal texts share one
    ("path = self.folder / 'all.pt'", DEALT),
    ("path = self.folder / (clip.stem + '.pt')", "model = torch.nn.parallel.DistributedDataParallel(model)"),  # all have all
])  # fmt: skip
def test_a_file_that_several_ranks_may_make(name: str, deal: str) -> None:
    found = findings_of(CacheFilledByEveryRank, DATA.format(name=name, deal=deal), path="train.py")
    assert [f.code for f in found] == ["DDP307"]
