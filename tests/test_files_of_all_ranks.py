"""DDP202 and DDP307 where no test for rank 0 is at hand: told, with the way by which every rank comes there."""

from __future__ import annotations

import pytest

from codemods.analysis.files.files_of_all import files_of_all
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.wrong_rank import WrongRank
from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of, project_of

HEAD = (
    "import json, os, shutil, time\nimport matplotlib.pyplot as plt\nimport numpy as np\nimport pandas as pd\nimport torch\n"
    "import torch.distributed as dist\nfrom scipy.io import wavfile\n\n\n"
)
WRITE = ("with open(os.path.join(args.out, 'args.json'), 'w') as f:", "    json.dump([1], f)")


def script(*lines: str, above: str = "", group: str = "dist.init_process_group('gloo')") -> str:
    body = "".join(f"    {line}\n" for line in (*lines, group))
    return f"{HEAD}{above}def main(args):\n{body}\n\nif __name__ == '__main__':\n    main(parse())\n"


@pytest.mark.parametrize(
    "lines",
    [
        WRITE,
        ("shutil.copy(args.config, os.path.join(args.out, 'config.yaml'))",),
        ("shutil.copytree('src', os.path.join(args.out, 'src'))",),
        ("if os.path.exists(args.report):", "    os.remove(args.report)"),
        ("os.rename(args.report, args.report + '.old')",),
        ("np.savez(args.splits, train=args.train)",),
        ("pd.DataFrame(args.rows).to_json(args.table)",),
        ("pd.DataFrame(args.rows).to_excel(args.table, sheet_name='rows')",),
        ("with pd.ExcelWriter(args.table) as book:", "    pd.DataFrame(args.rows).to_excel(book)"),
        ("np.asarray(args.rows).tofile(args.table)",),
        ("plt.imsave(args.picture, args.mean)",),
        ("wavfile.write(args.sound, 16000, args.rows)",),
        ("for name in ['a.log', 'b.log']:", "    if os.path.exists(name):", "        os.remove(name)"),
        ("try:", "    state = torch.load(args.path)", "except RuntimeError:", "    os.remove(args.path)"),
    ],
)
def test_above_the_start_of_the_group(lines: tuple[str, ...]) -> None:
    found = check_told(UnguardedFileIo, script(*lines), reason="no group exists yet")
    assert "every rank comes here" in found.message


@pytest.mark.parametrize(
    ("command", "set_by_it"),
    [("torchrun --nproc_per_node=2 module.py", True), ("mpirun -n 2 python module.py", False),
     ("srun torchrun --nproc_per_node=2 module.py", True)],
)  # fmt: skip
def test_rank_is_asked_for_where_a_launcher_sets_it(command: str, set_by_it: bool) -> None:
    (found,) = findings_of(UnguardedFileIo, script(*WRITE), {"run.sh": f"{command}\n"})
    assert found.reason.startswith("no group exists yet")
    assert ("RANK" in found.reason) is set_by_it


@pytest.mark.parametrize(
    "lines",
    [
        ("if int(os.environ['RANK']) == 0:", *(f"    {line}" for line in WRITE)),
        ("with open(args.out + f'/{os.environ[\"RANK\"]}.json', 'w') as f:", "    json.dump([1], f)"),
        ("with open(args.log, 'a') as f:", "    f.write('started')"),
        ("with open(f'{args.out}/{time.time()}.json', 'w') as f:", "    json.dump([1], f)"),
        ("for name in args.names:", "    with open(name + '.txt', 'w') as f:", "        f.write(name)"),
        ("try:", "    os.remove(args.report)", "except OSError:", "    pass"),
        ("shutil.rmtree(args.folder, ignore_errors=True)",),
        ("shutil.copytree('src', args.out, dirs_exist_ok=True)",),
        ("try:", "    prepare(args)", "except ValueError as error:", "    with open('why.txt', 'w') as f:",
         "        f.write(str(error))"),
        ("with FileLock(args.lock):", *(f"    {line}" for line in WRITE)),
        ("with open(os.devnull, 'w') as f:", "    f.write('')"),
        ("pd.DataFrame(args.rows).to_json(f'{args.out}/{os.environ[\"RANK\"]}.json')",),
        ("text = pd.DataFrame(args.rows).to_json()", "page = pd.DataFrame(args.rows).to_html()"),
        ("if int(os.environ['RANK']) == 0:", "    pd.DataFrame(args.rows).to_excel(args.table)"),
        ("with pd.ExcelWriter(f'{args.out}/{os.environ[\"RANK\"]}.xlsx') as book:", "    pd.DataFrame(args.rows).to_excel(book)"),
    ],
)
def test_what_is_right_or_each_ranks_own(lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedFileIo, script(*lines))


HELPER = "import json\n\n\ndef keep(values, path):\n    with open(path, 'w') as f:\n        json.dump(values, f)\n"
TRAIN = (
    "import torch.distributed as dist\nfrom helper import keep\n\n\ndef main(args):\n    {}\n"
    "    dist.init_process_group('gloo')\n"
)


def test_a_helper_is_told_at_the_call_that_names_the_path() -> None:
    train = TRAIN.format("keep(vars(args), args.out + '/args.json')")
    found = check_told(UnguardedFileIo, HELPER, files={"train.py": train}, path="helper.py", reason="no group exists yet")
    assert (found.path, found.span.line) == ("train.py", 6)
    assert "helper.py:5" in found.message


@pytest.mark.parametrize(
    "call",
    [
        "args.store.keep(vars(args), args.out)",  # another object's
        "args.run(keep)",
        "dist.get_rank() == 0 and keep(vars(args), args.out)",
        "pass",
    ],
)
def test_a_helper_that_the_ranks_are_not_seen_to_call(call: str) -> None:
    check_nothing(UnguardedFileIo, HELPER, files={"train.py": TRAIN.format(call)}, path="helper.py")


def test_a_path_that_no_call_gives() -> None:
    helper = HELPER.replace("def keep(values, path):\n", "def keep(values, path=None):\n    if path is None:\n        return\n")
    check_nothing(UnguardedFileIo, helper, files={"train.py": TRAIN.format("keep(vars(args))")}, path="helper.py")


def test_a_decorator_of_the_project_that_asks_for_the_rank() -> None:
    mark = (
        "def on_first(f):\n    def inner(*a):\n        if int(os.environ.get('RANK', 0)) == 0:\n"
        "            return f(*a)\n    return inner\n\n\n"
    )
    helper = "def keep(args):\n" + "".join(f"    {line}\n" for line in WRITE) + "\n\n"
    assert findings_of(UnguardedFileIo, script("keep(args)", above=helper))
    check_nothing(UnguardedFileIo, script("keep(args)", above=f"{mark}@on_first\n{helper}"))


SPAWNED = (
    "import numpy as np\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n"
    "{}np.save('check.npy', np.zeros(3))\n\n\n"
    "def work(rank):\n    dist.init_process_group('gloo', rank=rank, world_size=2)\n\n\n"
    "if __name__ == '__main__':\n    {}\n    mp.spawn(work, nprocs=2)\n"
)


def test_a_module_that_spawn_imports_again() -> None:
    found = check_told(UnguardedFileIo, SPAWNED.format("", "pass"), reason="__main__")
    assert found.span.line == 5
    below = SPAWNED.replace("{}np.save('check.npy', np.zeros(3))", "{}").format("", "np.save('check.npy', np.zeros(3))")
    check_nothing(UnguardedFileIo, below)
    check_nothing(UnguardedFileIo, SPAWNED.format("", "pass").replace("nprocs=2)\n", "nprocs=2, start_method='fork')\n"))


def test_the_program_that_its_script_leads_to() -> None:
    fit = "import lightning as L\n\n\ndef fit(args):\n    trainer = L.Trainer(devices={})\n    trainer.fit(args.model)\n"
    lines = "".join(f"    {line}\n" for line in WRITE)
    main = (
        f"import json, os\nfrom fit import fit\n\n\ndef main(args):\n{lines}    fit(args)\n\n\n"
        f"if __name__ == '__main__':\n    main(parse())\n"
    )
    check_told(UnguardedFileIo, main, files={"fit.py": fit.format(4)}, reason="rank 0")
    check_nothing(UnguardedFileIo, main, files={"fit.py": fit.format(1)})
    parted = main.replace(lines, "    if args.prepare:\n" + "".join(f"    {x}\n" for x in lines.splitlines())).replace(
        "    fit(args)\n", "    else:\n        fit(args)\n"
    )
    check_nothing(UnguardedFileIo, parted, files={"fit.py": fit.format(4)})


# What is fetched


def fetch(call: str, *, above: str = "", way: str = "    net = build(args)\n") -> str:
    return (
        f"import torch\nimport torch.distributed as dist\nfrom torchvision import datasets\n\n\ndef build(args):\n"
        f"{above}    return {call}\n\n\n"
        f"def main(args):\n    dist.init_process_group('gloo')\n{way}"
    )


@pytest.mark.parametrize("call", ["torch.hub.load('owner/nets', 'small')", "datasets.CIFAR10(args.root, download=True)"])
def test_a_fetch_of_every_rank(call: str) -> None:
    found = check_told(CacheFilledByEveryRank, fetch(call), reason="barrier before the others")
    assert "first run" in found.message


def test_a_barrier_above_a_fetch_lets_all_ranks_fetch_at_once() -> None:
    source = fetch("torch.hub.load('owner/nets', 'small')", above="    dist.barrier()\n")
    assert "first run" in check_told(CacheFilledByEveryRank, source, reason="barrier before the others").message


@pytest.mark.parametrize(
    "source",
    [
        fetch("torch.hub.load('nets', 'small', source='local')"),
        fetch("torch.hub.load_state_dict_from_url(args.url)"),  # renamed when it is whole
        fetch("datasets.CIFAR10(args.root, download=False)"),
        fetch("datasets.CIFAR10(f'{args.root}/{dist.get_rank()}', download=True)"),
        fetch("torch.hub.load('owner/nets', 'small')", above="    if dist.get_rank() == 0:\n"
        "        torch.hub.load('owner/nets', 'small')\n"),
        fetch("torch.hub.load('owner/nets', 'small')", way="    if dist.get_rank() == 0:\n        net = build(args)\n"),
        fetch("torch.hub.load('owner/nets', 'small')")
        .replace("import torch.distributed as dist\n", "")
        .replace("dist.init_process_group", "print"),
    ],
)
def test_a_fetch_that_is_seen_to(source: str) -> None:
    check_nothing(CacheFilledByEveryRank, source)


def test_a_data_module_that_prepares() -> None:
    head = "import lightning as L\nfrom torchvision.datasets import MNIST\n\n\nclass Data(L.LightningDataModule):\n"
    setup = "    def setup(self, stage):\n        self.train = MNIST(self.root, download=True)\n"
    check_told(CacheFilledByEveryRank, head + setup, reason="rank 0")
    check_nothing(CacheFilledByEveryRank, head + "    def prepare_data(self):\n        MNIST(self.root, download=True)\n"
    "\n" + setup)


# Rank 0 fills what the others ask for


CACHE = (
    "import os\nimport torch\nimport torch.distributed as dist\n\n\ndef rows(path, rank):\n    if os.path.exists(path):\n"
    "        return torch.load(path)\n    made = build()\n    if rank == 0:\n        torch.save(made, path)\n"
    "    return made\n\n\n"
    "def main():\n    dist.init_process_group('gloo')\n    rows('rows.pt', dist.get_rank())\n"
)


def test_a_cache_that_rank_zero_writes_in_place() -> None:
    written = "        torch.save(made, path)\n"
    beside = 'f"{path}.{os.getpid()}"'
    whole = f"        torch.save(made, {beside})\n        os.replace({beside}, path)\n"
    check_transformed(CacheFilledByEveryRank, CACHE, CACHE.replace(written, whole), unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    made = build()\n", "    dist.barrier()\n    made = build()\n"),
        ("    made = build()\n", "    if read_only:\n        raise ValueError\n    made = build()\n"),
        ("        return torch.load(path)\n", "        return None\n"),
        ("def rows(path, rank):\n", "def rows(path, rank):\n    path = f'{path}.{rank}'\n"),
    ],
)
def test_a_cache_that_nobody_finds_half_written(old: str, new: str) -> None:
    assert old in CACHE
    check_nothing(CacheFilledByEveryRank, CACHE.replace(old, new))


def test_a_folder_that_is_there_before_its_file_is_told_at_the_test() -> None:
    body = (
        "    if not os.path.exists(path):\n        os.makedirs(path, exist_ok=True)\n"
        "        torch.save(build(), path + '/a.pt')\n    return torch.load(path + '/a.pt')\n"
    )
    head, rest = CACHE.split("    if os.path.exists(path):\n")
    source = head + body + rest[rest.index("\n\ndef main") :]
    found = check_told(CacheFilledByEveryRank, source, reason="let rank 0 make it")
    assert found.span.line == 7


# A call without the guard of the others


def test_the_one_call_that_is_not_guarded() -> None:
    source = (
        "import torch\nimport torch.distributed as dist\n\n\ndef save(model, path):\n"
        "    torch.save(model.state_dict(), path)\n\n\n"
        "def main(args, model):\n    dist.init_process_group('gloo')\n    for epoch in range(args.epochs):\n"
        "        if dist.get_rank() == 0:\n            save(model, args.path)\n    save(model, args.path)\n"
    )
    (found,) = findings_of(UnguardedSave, source)
    assert found.span.line == 14


# Local rank 0 of each node


LOCAL = (
    "import accelerate\nimport os\nimport torch\n\n\nclass State:\n    def save(self, path):\n"
    "        torch.save(self.step, path + '/step.pth')\n\n"
    "    def load(self, path):\n        self.step = torch.load(path + '/step.pth')\n\n\ndef start(args):\n"
    "    state = State()\n    return state\n\n\n"
    "def train(args):\n    accelerator = accelerate.Accelerator()\n    state = start(args)\n    state.load(args.out)\n"
    "    if accelerator.local_process_index == 0:\n        state.save(args.out)\n"
)


def test_a_state_that_local_rank_zero_saves_after_it_was_loaded() -> None:
    nodes = {"README.md": "accelerate launch --num_machines 2 train.py\n"}
    check_transformed(WrongRank, LOCAL, LOCAL.replace("local_process_index", "process_index"), unsafe=True, files=nodes)
    check_nothing(WrongRank, LOCAL + "    state.load(args.out)\n", files=nodes)


@pytest.mark.parametrize("hook", ["validation_step", "test_step", "predict_step"])
def test_files_that_are_named_after_the_samples_of_a_step(hook: str) -> None:
    source = (
        "import torchaudio\nimport lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n"
        f"    def {hook}(self, batch, batch_idx):\n        sound = self(batch[0])\n        torchaudio.save(NAME, sound, 16000)\n"
    )
    check_nothing(UnguardedFileIo, source.replace("NAME", "f'out/{batch[1][0]}.wav'"))
    check_told(UnguardedFileIo, source.replace("NAME", "'out/last.wav'"), reason="put the rank into the name")


PLOT = """\
import matplotlib.pyplot as plt


def draw(folder, numbers, rank=None):
    plt.plot(numbers)
    if {}:
        plt.savefig(folder + "/numbers.png")
    else:
        plt.savefig(folder + f"/numbers-{{rank}}.png")
"""
DRAWS = (
    "import torch.distributed as dist\nfrom plots import draw\n\n\ndef main(rank):\n"
    "    dist.init_process_group('gloo', rank=rank)\n    draw('out', [1.0], rank=rank)\n"
)


@pytest.mark.parametrize(
    ("test", "line"),
    [
        ("rank is not None", 7), ("not rank is None", 7), ("rank is None", 0), ("rank is None or rank == 0", 0), ("rank == 0", 0),
        ("not rank", 0),
    ],
)  # fmt: skip
def test_a_test_whether_there_is_a_rank_keeps_no_rank_out(test: str, line: int) -> None:
    found = findings_of(UnguardedFileIo, PLOT.format(test), {"train.py": DRAWS}, path="plots.py")
    assert [f.span.line for f in found] == [line] * bool(line)


DATED = """\
import json
import platform
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, folder):
    dist.init_process_group("gloo", rank=rank)
    if platform.node() == "first":
        name = "settings.json"
        with open(f"{{folder}}/{{name}}", "w") as f:
            json.dump({{"a": 1}}, f)


def main(count):
    folder = f"runs/{{platform.node()}}"
    if count > 1:
        {}
    else:
        work(0, folder)


if __name__ == "__main__":
    main(2)
"""


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("mp.spawn(work, args=(folder,), nprocs=count)", True),
        ("mp.start_processes(work, args=(folder,), nprocs=count, start_method='spawn')", True),
        ("work(1, folder)", False),  # each process has a machine of its own
    ],
)
def test_a_folder_that_the_parent_names_for_all(start: str, *, told: bool) -> None:
    project = project_of(DATED.format(start))
    module = project.module("module.py")
    assert module is not None
    assert [found.at.lineno for found in files_of_all(project, module)] == [11] * told


def test_a_figure_that_goes_into_memory_is_no_file() -> None:
    figure = (
        "import io\nimport lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n    def on_test_epoch_end(self):\n"
        "        fig = draw(self.trainer.callback_metrics)\n        buffer = {}\n        fig.savefig(buffer, format='png')\n"
        "        self.shown = read(buffer)\n"
    )
    check_nothing(UnguardedFileIo, figure.format("io.BytesIO()"))
    assert findings_of(UnguardedFileIo, figure.format("'numbers.png'"))


def test_a_figure_that_a_helper_puts_into_the_memory_of_its_caller() -> None:
    figure = (
        "import io\nimport matplotlib.pyplot as plt\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
        "def draw(where):\n    plt.savefig(where, format='png')\n\n\n"
        "def work(rank, folder):\n    dist.init_process_group('gloo', rank=rank)\n    target = {}\n    draw(target)\n\n\n"
        "if __name__ == '__main__':\n    mp.spawn(work, args=('runs',), nprocs=2)\n"
    )
    for target, found in (("io.BytesIO()", 0), ("'numbers.png'", 1)):
        project = project_of(figure.format(target))
        module = project.module("module.py")
        assert module is not None
        assert len(files_of_all(project, module)) == found


GROUP_TOOLS = (
    "import torch.distributed as dist\n\n\ndef has_group():\n    return dist.is_available() and dist.is_initialized()\n\n\n"
    "def get_rank():\n    if not has_group():\n        return 0\n    return dist.get_rank()\n\n\n"
    "def is_main_process():\n    return get_rank() == 0\n\n\ndef set_up(args):\n    dist.init_process_group('gloo')\n"
)
ASKING = (
    "import json\nimport os\nimport torch.distributed as dist\nimport tools\n\n"
    "if tools.is_main_process():\n    print('starts')\n\n\n"
    "def train(args):\n    {start}\n    build(args, rank=dist.get_rank()).backward()\n\n\n"
    "if __name__ == '__main__':\n    args = parse()\n    {above}\n"
    "    with open(args.out, 'w') as f:\n        json.dump([1], f)\n    train(args)\n"
)


def test_a_helper_that_asks_the_group_is_no_guard_above_its_start() -> None:
    source = ASKING.format(start="tools.set_up(args)", above="pass")
    found = check_told(UnguardedFileIo, source, files={"tools.py": GROUP_TOOLS}, reason="no group exists yet", path="train.py")
    assert "every rank comes here" in found.message


def test_a_helper_that_asks_the_group_below_its_start() -> None:
    source = ASKING.format(start="pass", above="tools.set_up(args)")
    files = {"tools.py": GROUP_TOOLS}
    before = "    with open(args.out, 'w') as f:\n        json.dump([1], f)\n"
    after = "    if tools.is_main_process():\n        with open(args.out, 'w') as f:\n            json.dump([1], f)\n"
    check_transformed(UnguardedFileIo, source, source.replace(before, after), files=files)


def test_a_helper_that_reads_the_launcher_above_the_start() -> None:
    tools = GROUP_TOOLS.replace("return get_rank() == 0", "return int(os.environ.get('RANK', 0)) == 0")
    source = ASKING.format(start="tools.set_up(args)", above="pass")
    before = "    with open(args.out, 'w') as f:\n        json.dump([1], f)\n"
    after = "    if tools.is_main_process():\n        with open(args.out, 'w') as f:\n            json.dump([1], f)\n"
    check_transformed(UnguardedFileIo, source, source.replace(before, after), files={"tools.py": "import os\n" + tools})


COPIES = (
    HEAD + "def last_state(out):\n    return {read}\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"
    "    path = os.path.join(args.out, 'config.txt')\n    if not os.path.isfile(path):\n        shutil.copy(args.config, path)\n"
    "    return last_state(args.out)\n\n\nif __name__ == '__main__':\n    main(parse())\n"
)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        ("[f for f in sorted(os.listdir(out)) if f.endswith('.pth')]", False),
        ("[f for f in os.listdir(out) if f.endswith(('.pth', '.pt'))]", False),
        ("[f for f in os.listdir(out) if f.endswith('.txt')]", True),
        ("[f for f in os.listdir(out) if not f.endswith('.pth')]", True),
        ("os.listdir(out)", True),
    ],
)
def test_a_listing_that_takes_other_files(read: str, told: bool) -> None:
    found = findings_of(CacheFilledByEveryRank, COPIES.format(read=read))
    assert bool(found) is told


def test_a_file_beside_a_tracker_of_rank_0_alone() -> None:
    source = (
        "import os\nfrom accelerate import Accelerator\n\n\ndef shortcut(accelerator):\n    run = {run}\n"
        "    with open(os.path.join(run.dir, 'a.url'), 'w') as f:\n        f.write('here')\n\n\ndef main():\n"
        "    accelerator = Accelerator()\n    shortcut(accelerator)\n\n\nif __name__ == '__main__':\n    main()\n"
    )
    check_nothing(UnguardedFileIo, source.format(run="accelerator.get_tracker('wandb', unwrap=True)"))
    assert findings_of(UnguardedFileIo, source.format(run="folders()"))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("f'scores-{torch.cuda.current_device()}.json'", False),
        ("'scores-' + str(torch.cuda.current_device()) + '.json'", False),
        ("os.path.join(args.out, 'scores-{}.json'.format(torch.cuda.current_device()))", False),
        ("f'scores-{args.model.device.index}.json'", False),
        ("f'scores-{torch.cuda.device_count()}.json'", True),
        ("os.path.join(args.out, look_up(torch.cuda.current_device()))", True),
    ],
)
def test_the_number_of_the_device_in_the_path(path: str, *, told: bool) -> None:
    lines = ("dist.init_process_group('nccl')", f"with open({path}, 'w') as f:", "    json.dump(args.rows, f)")
    assert bool(findings_of(UnguardedFileIo, script(*lines, group="dist.barrier()"))) is told


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        ("str(rows.device)[-1]", False),
        ("str(rows.device).split(':')[1]", False),
        ("names[0]", True),
        ("str(args.rows)[-1]", True),
    ],
)
def test_the_number_of_the_device_cut_out_of_its_name(cut: str, *, told: bool) -> None:
    lines = ("dist.init_process_group('nccl')", f"part = {cut}", "path = args.out + '/part_' + part + '.json'",
             "with open(path, 'w') as f:", "    json.dump(args.rows, f)")  # fmt: skip
    assert bool(findings_of(UnguardedFileIo, script(*lines, group="dist.barrier()"))) is told


@pytest.mark.parametrize(("number", "told"), [("torch.cuda.current_device()", False), ("0", True)])
def test_the_number_of_the_device_in_a_folder_that_is_handed_on(number: str, *, told: bool) -> None:
    above = "def keep(rows, folder):\n    path = os.path.join(folder, 'rows.json')\n    with open(path, 'w') as f:\n"
    above += "        json.dump(rows, f)\n\n\n"
    lines = (f"number = {number}", "folder = args.out + f'/run-{number}'", "keep(args.rows, folder)")
    assert bool(findings_of(UnguardedFileIo, script(*lines, above=above))) is told
