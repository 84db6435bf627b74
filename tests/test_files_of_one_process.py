"""DDP202, DDP205, DDP307 and DDP501 where one process has been there alone, or nobody comes."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.store.corpus import may_bring_in
from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told, findings_of

CACHE = (
    "import os\nimport torch\nimport lightning.pytorch as pl\n\n\ndef rows(path, build):\n    if not os.path.exists(path):\n"
    "        torch.save(build(), path)\n    return torch.load(path)\n\n\n"
)
FIT = "def main(args):\n    data = rows(args.path, make)\n    trainer = pl.Trainer(devices=4)\n    trainer.fit(Net(), data)\n"
START = "\n\nif __name__ == '__main__':\n    main(parse())\n"


def test_a_cache_that_a_script_of_lightning_fills_above_fit() -> None:
    check_nothing(CacheFilledByEveryRank, CACHE + FIT + START)


@pytest.mark.parametrize("started", ["torchrun --nproc-per-node 4 train.py", "#SBATCH -n 4\nsrun python train.py"])
def test_a_launcher_lets_all_ranks_come_there_at_once(started: str) -> None:
    found = findings_of(CacheFilledByEveryRank, CACHE + FIT + START, {"run.sh": started + "\n"}, path="train.py")
    assert [f.code for f in found] == ["DDP307"]


def test_a_cache_that_is_filled_below_fit() -> None:
    below = (
        "def main(args):\n    trainer = pl.Trainer(devices=4)\n    trainer.fit(Net(), args.data)\n"
        "    report(rows(args.path, make))\n"
    )
    found = findings_of(CacheFilledByEveryRank, CACHE + below + START, path="train.py")
    assert [f.code for f in found] == ["DDP307"]


def test_a_loader_of_a_data_module_that_the_script_asks_above_fit() -> None:
    data = CACHE.replace("pl\n", "pl\nfrom torch.utils.data import DataLoader, Dataset\n", 1) + (
        "class Rows(Dataset):\n    def __init__(self, path):\n        self.rows = rows(path, list)\n\n\n"
        "class Data(pl.LightningDataModule):\n    def train_dataloader(self):\n        return DataLoader(Rows('rows.pt'))\n"
    )
    script = (
        "import lightning.pytorch as pl\nfrom data import Data\n\n\ndef main():\n    data = Data()\n{}"
        "    trainer = pl.Trainer(devices=4)\n    trainer.fit(Net(), data)\n" + START.replace("parse()", "")
    )
    first = {"train.py": script.format("    data.train_dataloader()\n")}
    assert not findings_of(CacheFilledByEveryRank, data, first, path="data.py")


def test_what_a_script_of_lightning_moves_away_from_its_later_processes() -> None:
    moved = (
        "import os\nimport lightning.pytorch as pl\n\n\ndef main(args):\n    for name in os.listdir(args.folder):\n"
        "        if name == 'last.ckpt':\n            args.resume = 'first.ckpt'\n"
        "            os.rename(os.path.join(args.folder, name), args.resume)\n"
        "    trainer = pl.Trainer(devices=4)\n    trainer.fit(Net(), ckpt_path=args.resume)\n"
    )
    found = check_told(UnguardedFileIo, moved + START, reason="rank_zero_only.rank == 0")
    assert "starts later no longer find it" in found.message


def test_a_loop_over_a_folder_is_no_share() -> None:
    source = (
        "import os\nimport torch.distributed as dist\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"
        "    rank = dist.get_rank()\n    for name in os.listdir(args.folder):\n"
        "        os.rename(os.path.join(args.folder, name), os.path.join(args.other, name))\n"
    )
    found = findings_of(UnguardedFileIo, source + START, path="train.py")
    assert not any("gather" in f.reason for f in found)


# Accelerators for half precision alone

LOOP = (
    "import torch\nfrom accelerate import Accelerator\n\n\ndef train(model, rows, config):\n"
    "    accelerator = Accelerator(mixed_precision='fp16')\n    model, rows = accelerator.prepare(model, rows)\n"
    "    for x in rows:\n        accelerator.backward(model(x.to({device})))\n    {save}\n"
)
MAIN = "from loop import train\n\nif __name__ == '__main__':\n    train(*parse())\n"
SAVE = "torch.save(model.state_dict(), config.path)"


@pytest.mark.parametrize("job", ["python main.py --fp16", "docker run image python -m main"])
def test_an_accelerator_for_half_precision_alone(job: str) -> None:
    source = LOOP.format(device="config.device", save=SAVE)
    check_nothing(UnguardedSave, source, files={"main.py": MAIN, "run.sh": job + "\n"}, path="loop.py")


@pytest.mark.parametrize(
    ("device", "job"),
    [("config.device", "accelerate launch main.py"), ("accelerator.device", ""), ("x.kind", "")],
)
def test_an_accelerator_that_shares(device: str, job: str) -> None:
    source = LOOP.format(device=device, save=SAVE)
    found = findings_of(UnguardedSave, source, {"main.py": MAIN, "run.sh": job + "\n"}, path="loop.py")
    assert [f.code for f in found] == ["DDP501"]


def test_a_script_that_only_seeds_with_lightning() -> None:
    source = (
        "import matplotlib.pyplot as plt\nfrom lightning.pytorch import seed_everything\n\nif __name__ == '__main__':\n"
        "    seed_everything(1)\n    plt.savefig('a.png')\n"
    )
    check_nothing(UnguardedFileIo, source, path="show.py")


# What no program comes to

HELPER = (
    "import os\nimport torch.distributed as dist\n\n\ndef clear(path, mode='add'):\n    rank = dist.get_rank()\n"
    "    if mode == 'new' and os.path.exists(path):\n        os.remove(path)\n    return rank\n"
)
SCRIPT = (
    "import torch.distributed as dist\nfrom helper import clear\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"
    "    clear(args.log{})\n\n\nif __name__ == '__main__':\n    main(parse())\n"
)


@pytest.mark.parametrize("given", ["", ", 'add'", ", mode='old'"])
def test_a_mode_that_no_caller_asks_for(given: str) -> None:
    script = SCRIPT.format(given)
    assert not findings_of(UnguardedFileIo, HELPER.replace("rank = dist.get_rank()", "rank = 0"), {"train.py": script},
                           path="helper.py")  # fmt: skip


@pytest.mark.parametrize("given", [", 'new'", ", mode=args.mode"])
def test_a_mode_that_a_caller_asks_for(given: str) -> None:
    script = SCRIPT.format(given)
    found = findings_of(UnguardedFileIo, HELPER.replace("rank = dist.get_rank()", "rank = 0"), {"train.py": script},
                        path="helper.py")  # fmt: skip
    assert [f.code for f in found] == ["DDP202"]


def test_a_fetch_in_a_function_that_nobody_calls() -> None:
    source = (
        "import torch.distributed as dist\nfrom torchvision.datasets import CIFAR10\n\n\ndef {}(args):\n"
        "    dist.init_process_group('gloo')\n    return CIFAR10(args.root, download=True)\n"
    )
    main = "from steps import train\n\nif __name__ == '__main__':\n    train(parse())\n"
    assert [f.code for f in findings_of(CacheFilledByEveryRank, source.format("train"), {"main.py": main}, path="steps.py")]
    assert not findings_of(CacheFilledByEveryRank, source.format("old_train"), {"main.py": main}, path="steps.py")


def test_a_run_that_the_caller_starts_under_a_test() -> None:
    settings = "import wandb\nimport torch.distributed as dist\n\n\ndef start(args):\n    wandb.init(project='a')\n"
    train = (
        "import torch.distributed as dist\nfrom settings import start\n\n\ndef main(args):\n"
        "    if not dist.is_initialized() or dist.get_rank() == 0:\n        start(args)\n" + START
    )
    check_nothing(TrackerOnEveryRank, settings, files={"train.py": train}, path="settings.py")


def test_a_name_on_a_line_that_an_import_goes_on_in() -> None:
    assert may_bring_in(b"from utils import a, \\\n    b, fill, c\n", b"fill")
    assert not may_bring_in(b"from utils import a\nb, fill = c\n", b"fill")


# The context of a project that lets rank 0 in first


def test_a_context_that_yields_to_rank_zero_first() -> None:
    source = (
        "import contextlib\nimport torch.distributed as dist\nfrom torchvision.datasets import CIFAR10\n\n\n"
        "@contextlib.contextmanager\ndef zero_before():\n    rank = dist.get_rank()\n    if rank == 0:\n        yield\n"
        "    dist.barrier()\n    if rank > 0:\n        yield\n    dist.barrier()\n\n\n"
        "def load(args):\n    return CIFAR10(args.root, download=True)\n\n\n"
        "def main(args):\n    dist.init_process_group('gloo')\n    {}\n" + START
    )
    check_nothing(CacheFilledByEveryRank, source.format("with zero_before():\n        data = load(args)"))
    assert [f.code for f in findings_of(CacheFilledByEveryRank, source.format("data = load(args)"), path="train.py")]


def test_a_file_that_the_caller_names_after_its_sample() -> None:
    draw = "import matplotlib.pyplot as plt\n\n\ndef save_drawn(image, folder, name):\n    plt.savefig(f'{folder}/{name}')\n"
    module = (
        "import lightning.pytorch as pl\nfrom draw import save_drawn\n\n\nclass Net(pl.LightningModule):\n"
        "    def predict_step(self, batch, batch_idx):\n        name = {}\n        image = self(batch['image'])\n"
        "        save_drawn(image, self.folder, name)\n"
    )
    check_nothing(UnguardedFileIo, module.format("batch['name'][0]"), files={"draw.py": draw})
    check_told(UnguardedFileIo, module.format("f'{batch_idx}.png'"), files={"draw.py": draw}, reason="gather")


# Waits that are for something else, and those that are for the file

TRAINS = (
    "import os\nimport torch\nimport torch.distributed as dist\n\n\ndef run(rank, args):\n    dist.init_process_group('gloo')\n"
    "    {above}\n    if not os.path.exists(args.rows):\n        torch.save(make(), args.rows)\n        {inside}\n    {between}\n"
    "    rows = torch.load(args.rows)\n    for row in rows:\n        loss = step(row)\n        dist.all_reduce(loss)\n"
    "    dist.barrier()\n"
    "\n\nif __name__ == '__main__':\n    torch.multiprocessing.spawn(run, (parse(),), 2)\n"
)


def trains(above: str = "pass", inside: str = "pass", between: str = "pass") -> str:
    return TRAINS.format(above=above, inside=inside, between=between)


@pytest.mark.parametrize(
    "source",
    [trains(), trains(above="dist.barrier()"), trains(above="if rank == 0:\n        print('on')"),
     trains(between="torch.cuda.synchronize()")],
)  # fmt: skip
def test_a_cache_in_a_function_that_trains(source: str) -> None:
    found = findings_of(CacheFilledByEveryRank, source, path="train.py")
    assert [f.code for f in found] == ["DDP307"]


@pytest.mark.parametrize(
    "source",
    [trains(between="dist.barrier()"), trains(inside="dist.barrier()"),
     trains(above="if rank == 0:\n        prepare_rows(args.rows)\n    dist.barrier()"),
     trains(above="if rank != 0:\n        dist.barrier()")],
)  # fmt: skip
def test_a_function_that_waits_for_its_cache(source: str) -> None:
    check_nothing(CacheFilledByEveryRank, source)


def test_a_program_that_ends_behind_the_writing() -> None:
    source = "import sys\n" + trains(inside="sys.exit()")
    check_nothing(CacheFilledByEveryRank, source)


def test_two_caches_of_one_function_and_one_that_is_a_part_of_another() -> None:
    again = "if not os.path.exists(args.words):\n        torch.save(make(), args.words)\n    words = torch.load(args.words)"
    assert len(findings_of(CacheFilledByEveryRank, trains(above=again), path="train.py")) == 2
    part = "if not os.path.exists(args.zip):\n            torch.save(make(), args.zip)\n        rows = torch.load(args.zip)"
    assert len(findings_of(CacheFilledByEveryRank, trains(inside=part), path="train.py")) == 1


def test_a_download_that_is_checked_before_it_is_used_again() -> None:
    fetch = (
        "import os\nimport urllib.request\nimport torch.distributed as dist\n\n\ndef fetch(url, path):\n"
        "    if os.path.isfile(path):\n        if whole(open(path, 'rb').read()):\n            return path\n        else:\n"
        "            print('again')\n    with urllib.request.urlopen(url) as source, open(path, 'wb') as out:\n"
        "        out.write(source.read())\n    return path\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"
        "    return load(fetch(args.url, args.path))\n"
    )
    found = findings_of(CacheFilledByEveryRank, fetch + START, path="train.py")
    assert [f.code for f in found] == ["DDP307"]


@pytest.mark.parametrize("mode", ["'w'", "'a' if args.resume else 'w'", "mode"])
def test_a_log_that_a_run_empties_unless_it_resumes(mode: str) -> None:
    source = (
        "import logging\nimport torch.distributed as dist\n\n\ndef main(args):\n    mode = 'w'\n"
        "    if args.resume:\n        mode = 'a'\n"
        f"    handler = logging.FileHandler(args.log, mode={mode})\n    dist.init_process_group('gloo')\n"
    )
    found = check_told(UnguardedFileIo, source + START, reason="no group exists yet")
    assert "each rank empties the log" in found.message


def test_each_caller_that_names_a_path() -> None:
    helper = "import json\n\n\ndef keep(values, path):\n    with open(path, 'w') as f:\n        json.dump(values, f)\n"
    train = (
        "import torch.distributed as dist\nfrom helper import keep\n\n\ndef main(args):\n    keep(vars(args), 'args.json')\n"
        "    keep(args.splits, 'splits.json')\n    if dist.get_rank() == 0:\n        keep(args.names, 'names.json')\n"
        "    dist.init_process_group('gloo')\n"
    )
    found = findings_of(UnguardedFileIo, helper, {"train.py": train + START}, path="helper.py")
    assert sorted(f.span.line for f in found) == [6, 7]


def test_samples_under_a_number_in_a_module_whose_base_comes_by_a_star() -> None:
    tools = "import pytorch_lightning as pl\nimport soundfile\n\n\ndef save_wave(x, path):\n    soundfile.write(path, x, 16000)\n"
    source = (
        "import os\nfrom tools import *\n\n\nclass Net(pl.LightningModule):\n    def validation_step(self, batch, batch_idx):\n"
        "        out = self(batch['x'])\n        save_wave(out[0], os.path.join(self.folder, f'{batch_idx}.wav'))\n"
    )
    check_told(UnguardedFileIo, source, reason="put the rank into the name", files={"tools.py": tools})
    check_nothing(UnguardedFileIo, source, files={"tools.py": "__all__ = ['save_wave']\n" + tools})


@pytest.mark.parametrize("test", ["configs.is_master_node", "args.main_worker"])
def test_a_writer_under_a_flag_that_nothing_resolves(test: str) -> None:
    source = (
        "import torch.distributed as dist; WORLD = dist.group.WORLD\nfrom torch.utils.tensorboard import SummaryWriter\n\n\n"
        "def main(configs, args):\n    dist.init_process_group('nccl')\n"
        "    writer = None\n    if {}:\n        writer = SummaryWriter('runs')\n    writer.add_scalar('a', 1, 2)\n" + START
    )
    check_nothing(TrackerOnEveryRank, source.format(test))
    check_told(TrackerOnEveryRank, source.format("args.draws"), reason="make it on rank 0")


def test_a_folder_that_a_person_is_asked_about() -> None:
    source = (
        "import shutil\nimport torch.distributed as dist\n\n\ndef sure(text):\n    return input(text) == 'y'\n\n\n"
        "def main(args):\n    if {}:\n        shutil.rmtree(args.out)\n    dist.init_process_group('gloo')\n" + START
    )
    check_nothing(UnguardedFileIo, source.format("sure('clear?')"))
    check_told(UnguardedFileIo, source.format("args.clear"), reason="no group exists yet")


TASK = (
    "import json\nimport sys\nimport torch.distributed as dist\n\n\ndef main(args):\n    if args.task == 'show':\n"
    "        with open('shown.json', 'w') as f:\n            json.dump([1], f)\n        {}\n    {}\n"
    "    dist.init_process_group('gloo')\n" + START
)


@pytest.mark.parametrize(
    ("end", "behind", "found"),
    [
        ("return", "pass", False),
        ("sys.exit(0)", "pass", False),
        ("print('shown')", "pass", True),  # the run goes on, with all its processes
        ("return", "return\n    dist.barrier()", False),
        ("dist.init_process_group('gloo')\n        return", "pass", True),
    ],
)
def test_a_task_that_ends_before_the_group_is_one_process_alone(end: str, behind: str, *, found: bool) -> None:
    assert bool(findings_of(UnguardedFileIo, TASK.format(end, behind))) is found


HANDLER = """\
import logging
import torch.distributed as dist


class Lines:
    def __init__(self, name, log_file):
        self.log_file = log_file
        if self.log_file == None:
            self.handler = logging.StreamHandler()
        else:
            self.handler = logging.FileHandler(self.log_file, mode="w")


class Plain(Lines):
    def __init__(self, log_file=None):
        Lines.__init__(self, name="plain", log_file=log_file)


def main(args):
    Plain(GIVEN)
    dist.init_process_group("nccl")
"""


def test_a_log_that_no_maker_asks_for() -> None:
    check_nothing(UnguardedFileIo, HANDLER.replace("GIVEN", "log_file=None") + START)
    check_nothing(UnguardedFileIo, HANDLER.replace("GIVEN", "") + START)
    check_told(UnguardedFileIo, HANDLER.replace("GIVEN", "'all.log'") + START, reason="no group exists yet")
