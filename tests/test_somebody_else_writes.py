"""Writes that one process makes already, by another test or since the others have ended above: no second guard."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

START = "\n\nif __name__ == '__main__':\n    main(parse())\n"
KEEP = (
    "import os\nimport torch\nimport torch.distributed as dist\n\n\ndef keep(state, args):\n    {test}\n"
    "    torch.save(state, args.path)\n\n\ndef main(args):\n    dist.init_process_group('nccl')\n"
    "    keep(args.model.state_dict(), args)\n" + START
)


@pytest.mark.parametrize(
    "test",
    [
        "if args.gpus > 1 and args.gpu != args.gpus - 1:\n        return",
        "if args.gpu != torch.cuda.device_count() - 1:\n        return",
        "if args.rank % args.ngpus_per_node != 0:\n        return",
        "if torch.cuda.current_device() != 0:\n        return",
        "if int(torch.cuda.current_device()) != 0:\n        return",
    ],
)
def test_a_test_of_the_device_keeps_the_others_out(test: str) -> None:
    check_nothing(UnguardedSave, KEEP.format(test=test))


@pytest.mark.parametrize("test", ["if args.gpu != args.best - 1:\n        print()", "if args.gpus < 1:\n        return", "pass"])
def test_tests_that_keep_nobody_out(test: str) -> None:
    assert findings_of(UnguardedSave, KEEP.format(test=test))


FILL = (
    "import json\nimport os\nfrom pathlib import Path\n\nimport torch\nimport torch.distributed as dist\n\n\n"
    "def fill(root, parts):\n    folder = Path(root) / 'parts'\n    {make}\n    with open(folder / 'info.json', 'w') as f:\n"
    "        json.dump({{'parts': 2}}, f)\n    torch.save(parts, folder / 'parts.pt')\n\n\ndef main(args):\n"
    "    dist.init_process_group('nccl')\n    fill(args.root, args.parts)\n" + START
)


@pytest.mark.parametrize("make", ["folder.mkdir()", "folder.mkdir(parents=True)", "os.makedirs(folder)", "os.mkdir(folder)"])
def test_a_folder_that_only_the_first_rank_can_make(make: str) -> None:
    source = FILL.format(make=make)
    check_nothing(UnguardedSave, source)
    check_nothing(UnguardedFileIo, source)


@pytest.mark.parametrize(
    "make",
    [
        "folder.mkdir(exist_ok=True)",
        "os.makedirs(folder, exist_ok=True)",
        "if not folder.exists():\n        folder.mkdir()",
        "try:\n        folder.mkdir()\n    except FileExistsError:\n        pass",
        "Path('logs').mkdir()",  # another folder: told where it is made
    ],
)
def test_folders_that_let_every_rank_through(make: str) -> None:
    source = FILL.format(make=make)
    assert findings_of(UnguardedSave, source) or findings_of(UnguardedFileIo, source)
