"""DDP307: every rank fills the same files."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = CacheFilledByEveryRank
def check_offered(source: str, *, files: dict[str, str] | None = None, path: str = "train.py") -> None:
    found = findings_of(RULE, source, files, path=path)
    assert [f.applicability for f in found] == [Applicability.UNSAFE]


DIST = "import torch.distributed as dist; WORLD = dist.group.WORLD\n"
HEAD = f"import os\nimport numpy as np\n{DIST}from torch.utils.data import Dataset\n\n"
READ = "\n    def __getitem__(self, i):\n        return np.load(f'{self.folder}/{i}.npy')\n"


def data(body: str, *, read: str = READ, head: str = HEAD) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{head}class D(Dataset):\n    def __init__(self, samples, folder, rank):\n        self.folder = folder\n{lines}{read}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


def test_a_data_set_that_writes_what_it_reads() -> None:
    lightning = HEAD.replace("import torch.distributed as dist; WORLD = dist.group.WORLD", "import lightning.pytorch as pl")
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
        "        return open(i).read()\n\n    def save(self):\n        pass\n\n\ntrainer = pytorch_lightning.Trainer(devices=2)\n"
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
    head = HEAD.replace(DIST, "")
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


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (("except:", "    if os.path.exists(path):", "        os.remove(path)", "    raise"), False),
        (("except KeyboardInterrupt:", "    note()", "except OSError:", "    os.unlink(path)", "    raise"), False),
        (("finally:", "    clear(path)"), True),
        (("except OSError:", "    os.remove(other)", "    raise"), True),
        (("except OSError:", "    os.remove('rows.lock')", "    raise"), True),
    ],
)
def test_a_handler_that_takes_the_file_away(end: tuple[str, ...], *, kept: bool) -> None:
    lines = (MISSING[0], "    try:", "        with open(path, 'w') as f:", "            json.dump([1], f)")
    source = rows(*lines, *(f"    {line}" for line in end), "return json.load(open(path))")
    (found,) = findings_of(RULE, source)
    assert bool(found.edits) is kept  # it would leave the part that lies beside the path
    assert kept or found.applicability is Applicability.DISPLAY


def test_an_archive_in_a_constructor_of_another_file() -> None:
    leaves = (
        "import os, zipfile\nfrom torch.utils.data import Dataset\n\nclass Leaves(Dataset):\n    def __init__(self, root):\n"
        "        if not os.path.isdir(root):\n            zipfile.ZipFile('leaves.zip').extractall(root)\n"
        "        self.files = sorted(os.listdir(root))\n"
    )
    train = "import torch.distributed as dist\nfrom leaves import Leaves\n\ndef main():\n    dist.init_process_group('gloo')\n"
    alone = {"train.py": train + "    data = Leaves('data')\n"}
    found = check_told(RULE, leaves, files=alone, path="leaves.py", reason="barrier")
    assert found.span.line == 6 and "line 8" in found.message
    first = "    if dist.get_rank() == 0:\n        Leaves('data')\n    dist.barrier()\n    data = Leaves('data')\n"
    check_nothing(RULE, leaves, files={"train.py": train + first}, path="leaves.py")


@pytest.mark.parametrize(
    "lines",
    [
        (MISSING[0], "    torch.save(build(), path + '.new')", "    os.replace(path + '.new', path)", MISSING[2]),
        (MISSING[0], "    import torch.hub", "    torch.hub.download_url_to_file('https://a.b/rows.pt', path)", MISSING[2]),
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


@pytest.mark.parametrize(
    ("loads", "told"),
    [
        (["found = torch.load(path)"], True),
        (["found = torch.load(path) if dist.get_rank() == 0 else None"], False),
        (["if dist.get_rank() == 0:", "    found = torch.load(path)", "else:", "    found = None"], False),
    ],
)
def test_what_rank_0_writes_and_nobody_else_loads(loads: list[str], told: bool) -> None:
    above = ["if os.path.exists(path):", *(f"    {line}" for line in loads), "else:", "    found = build()"]
    source = rows(*above, "    if dist.get_rank() == 0:", "        torch.save(found, path)", "return found")
    assert bool(findings_of(RULE, source)) is told


def test_functions_that_one_process_calls() -> None:
    check_nothing(RULE, rows(*MISSING, call="if dist.get_rank() == 0: rows('rows.pt')"))
    check_nothing(RULE, rows(*MISSING, call="pass"))
    check_nothing(RULE, rows(*MISSING, call="rows(f'rows_{dist.get_rank()}.pt')"))


# Who reads it is the caller, or a loader it is handed to

@pytest.mark.parametrize(
    ("lines", "above"),
    [
        (("if not os.path.exists(path):", "    torch.save(build(), path)", "return path"), ""),
        (("if not os.path.exists(path):", "    torch.save(build(), path)", "return {'train': path}"), ""),
        (("if not os.path.exists(path):", "    torch.save(build(), path)", "return models.load_ensemble([path])"), ""),
        (("if not exists_there(path):", "    torch.save(build(), path)", "return torch.load(path)"),
         "def exists_there(path):\n    return os.path.exists(path)\n\n\n"),
        (("if exists_there(path):", "    return torch.load(path)", "torch.save(build(), path)"),
         "def exists_there(name):\n    system = files(name)\n    return system.exists(name)\n\n\n"),
    ],
)  # fmt: skip
def test_a_file_that_is_made_sure_of(lines: tuple[str, ...], above: str) -> None:
    check_offered(rows(*lines, above=above))


def test_one_file_of_a_loop_over_the_splits() -> None:
    lines = (
        "if not os.path.exists(os.path.join(path, 'train.bin')):",
        "    for split in splits:",
        "        torch.save(build(split), os.path.join(path, f'{split}.bin'))",
        "return torch.load(os.path.join(path, 'train.bin'))",
    )
    check_told(RULE, rows(*lines), reason="barrier")
    other = (*lines[:2], "        torch.save(build(split), os.path.join(path, f'{split}.json'))", lines[3])
    check_nothing(RULE, rows(*other))


def test_what_the_caller_reads_behind_the_call() -> None:
    ensure = ("if not os.path.exists(path):", "    torch.save(build(), path)")
    check_offered(rows(*ensure, call="rows(place); data = torch.load(place)"))
    check_nothing(RULE, rows(*ensure, call="rows(place); data = torch.load(other)"))
    check_nothing(RULE, rows(*ensure, call="rows(place); dist.barrier(); data = torch.load(place)"))
    check_nothing(RULE, rows(*ensure, "log(path)"))


def test_a_test_of_one_process_beside_the_start_guards_nothing() -> None:
    start = (
        "import torch.multiprocessing as mp\n\n\ndef work(rank):\n    dist.init_process_group('gloo')\n    rows('rows.pt')\n\n\n"
        "if __name__ == '__main__':\n    if world_size > 1:\n        mp.spawn(work, nprocs=2)\n    else:\n        work(0)\n"
    )
    source = rows(*MISSING).partition("def main")[0] + start
    check_offered(source)


# What every rank fetches

FETCH = "import torch.distributed as dist\nfrom torchvision import datasets\n\n\n"
MAIN = "def main(args):\n    dist.init_process_group('gloo')\n"


def test_each_data_set_of_a_function() -> None:
    body = (
        "    if args.name == 'c':\n        return datasets.CIFAR10(args.root, download=True)\n"
        "    return datasets.MNIST(args.root, download=True)\n"
    )
    found = findings_of(RULE, FETCH + MAIN + body)
    assert [f.span.line for f in found] == [8] and "(also datasets.MNIST in line 9)" in found[0].message


def test_a_barrier_above_that_nobody_fetches_before() -> None:
    fetch = "    datasets.MNIST(args.root, download=True)\n"
    check_told(RULE, FETCH + MAIN + "    dist.barrier()\n" + fetch, reason="fetch it once")
    alone = "    if dist.get_rank() == 0:\n        download(args.root)\n    dist.barrier()\n"
    check_nothing(RULE, FETCH + MAIN + alone + fetch)


GEOMETRIC = (
    "import torch.distributed as dist\nfrom torch_geometric import datasets as sets\n"
    "from torch_geometric.datasets import {}\n\n\n"
)


@pytest.mark.parametrize(
    ("name", "call", "told"),
    [
        ("Planetoid", "Planetoid(args.root, 'Cora')", True),
        ("Planetoid as Papers", "Papers(name='Cora', root='data')", True),
        ("Planetoid", "sets.QM9(**args.data)", True),
        ("Planetoid", "sets.QM9(*args.data)", True),
        ("Planetoid", "Planetoid(f'data/{dist.get_rank()}', 'Cora')", False),
        ("FakeDataset", "FakeDataset(1000)", False),
        ("Planetoid", "sets.graph_generator.GridGraph(4, 4)", False),
        ("Planetoid", "args.make('Planetoid')", False),
    ],
)
def test_a_data_set_of_the_graph_library(name: str, call: str, told: bool) -> None:
    source = GEOMETRIC.format(name) + MAIN + f"    return {call}\n"
    if told:
        check_told(RULE, source, reason="fetch it once")
    else:
        check_nothing(RULE, source)


def test_data_sets_of_the_graph_library_that_rank_0_makes_first() -> None:
    call = "Planetoid(args.root, 'Cora')"
    first = f"    if dist.get_rank() == 0:\n        {call}\n    dist.barrier()\n    return {call}\n"
    check_nothing(RULE, GEOMETRIC.format("Planetoid") + MAIN + first)
    check_nothing(RULE, GEOMETRIC.format("Planetoid") + f"def main(args):\n    return {call}\n")
    prepared = (
        "import lightning.pytorch as pl\n\n\nclass Data(pl.LightningDataModule):\n"
        "{}    def setup(self, stage):\n        self.data = Planetoid('data', 'Cora')\n"
    )
    check_told(RULE, GEOMETRIC.format("Planetoid") + prepared.format(""), reason="fetch it once")
    above = "    def prepare_data(self):\n        Planetoid('data', 'Cora')\n\n"
    check_nothing(RULE, GEOMETRIC.format("Planetoid") + prepared.format(above))


def test_a_class_of_data_sets_that_a_name_holds() -> None:
    arms = (
        "    if args.name == 'c':\n        Set = datasets.CIFAR10\n        return Set(args.root, download=True)\n"
        "    Set = args.own\n    return Set(args.root, download=True)\n"
    )
    assert [f.span.line for f in findings_of(RULE, FETCH + MAIN + arms)] == [9]
    chosen = "    kind = getattr(datasets, args.name)\n    return kind(args.root, download={})\n"
    check_told(RULE, FETCH + MAIN + chosen.format("True"), reason="fetch it once")
    check_nothing(RULE, FETCH + MAIN + chosen.format("False"))
    check_nothing(RULE, FETCH + MAIN + chosen.format("True").replace("datasets, ", "args.own, "))
    check_nothing(RULE, FETCH + MAIN + "    kind = args.kind or datasets.MNIST\n    return kind(args.root, download=True)\n")


ARCHIVE = (
    "import torch.distributed as dist\nfrom torchvision.datasets.utils import download_and_extract_archive\n\n\n"
    "class Rows:\n    def __init__(self, root, download={off}):\n        self.root = root\n        self.download = download\n"
    "        {call}\n\n    def fetch(self):\n        download_and_extract_archive(URL, self.root)\n\n\n"
    + MAIN + "    return Rows(args.root{given})\n"
)


def test_an_archive_that_every_rank_unpacks() -> None:
    beir = "import torch.distributed as dist\nfrom beir import util\n\n\n" + MAIN
    found = findings_of(RULE, beir + "    return util.download_and_unzip(args.url, args.folder)\n")
    assert len(found) == 1 and "unpack into `args.folder` at once" in found[0].message
    check_nothing(RULE, beir + "    if dist.get_rank() == 0:\n        util.download_and_unzip(args.url, args.folder)\n")
    check_nothing(RULE, beir + "    return util.download_and_unzip(args.url, f'{args.folder}/{dist.get_rank()}')\n")
    own = beir.replace("from beir import util", "import util")
    check_nothing(RULE, own + "    return util.download_and_unzip(args.url, args.folder)\n")


@pytest.mark.parametrize(
    ("call", "off", "given", "told"),
    [
        ("self.fetch()", "False", "", True),
        ("if download and not self.is_there():\n            self.fetch()", "True", "", True),
        ("if self.download:\n            self.fetch()", "False", ", download=True", True),
        ("if self.download:\n            self.fetch()", "False", "", False),
        ("if self.download:\n            self.fetch()", "False", ", download=args.download", False),
        ("if self.download:\n            pass\n        else:\n            self.fetch()", "True", "", False),
    ],
)
def test_a_flag_over_an_archive(call: str, off: str, given: str, told: bool) -> None:
    assert bool(findings_of(RULE, ARCHIVE.format(call=call, off=off, given=given))) is told


HELPER = (
    "from torchvision import datasets\n\n\n"
    "def get_sets(root, train=True, download=False):\n    return datasets.MNIST(root, train=train, download=download)\n"
)
CALLED = "import torch.distributed as dist\nfrom data import get_sets\n\n\n" + MAIN


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        (HELPER, "get_sets(args.root, download=True)"),
        (HELPER, "get_sets(args.root, False, True)"),
        (HELPER.replace("download=False", "download=True"), "get_sets(args.root)"),
        (HELPER.replace("def get_sets", "def make") + "\n\ndef get_sets(root, fetch):\n    return make(root, download=fetch)\n",
         "get_sets(args.root, fetch=True)"),
        ("from torchvision import datasets\n\n\nclass get_sets:\n    def __init__(self, root, download):\n"
         "        self.root = root\n        self.download = download\n\n    def load(self):\n"
         "        return datasets.MNIST(self.root, download=self.download)\n",
         "get_sets(args.root, True).load()"),
    ],
    ids=["by its name", "by its place", "by its default", "over two functions", "by a field"],
)  # fmt: skip
def test_a_caller_has_it_fetched(helper: str, call: str) -> None:
    files = {"train.py": f"{CALLED}    return {call}\n"}
    (found,) = findings_of(RULE, helper, path="data.py", files=files)
    assert "(`download` is True by the call in train.py:7)" in found.message


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("    return get_sets(args.root)\n", "by its default it fetches nothing"),
        ("    return get_sets(args.root, download=dist.get_rank() == 0)\n", "rank 0 alone"),
        ("    get_sets(args.root, download=dist.get_rank() == 0)\n    dist.barrier()\n"
         "    return get_sets(args.root, download=True)\n", "rank 0 came first"),
        ("    if dist.get_rank() == 0:\n        get_sets(args.root, download=True)\n    dist.barrier()\n"
         "    return get_sets(args.root)\n", "under a test of the rank"),
        ("    return get_sets(args.root, download=args.download)\n", "an option, off or on"),
        ("    return get_sets(args.root, **args.data)\n", "hidden"),
        ("    with filelock.FileLock('data'):\n        return get_sets(args.root, download=True)\n", "one after the other"),
    ],
    ids=lambda value: "",
)  # fmt: skip
def test_nobody_has_every_rank_fetch_it(body: str, why: str) -> None:
    check_nothing(RULE, HELPER, path="data.py", files={"train.py": CALLED + body})


def test_a_helper_that_sees_to_it_itself() -> None:
    called = {"train.py": f"{CALLED}    return get_sets(args.root, download=True)\n"}
    changed = HELPER.replace("    return", "    download = download and dist.get_rank() == 0\n    return")
    check_nothing(RULE, "import torch.distributed as dist\n" + changed, path="data.py", files=called)
    first = HELPER.split("def ")[0] + (
        "def get_sets(root, download=False):\n    if dist.get_rank() == 0 and download:\n"
        "        datasets.MNIST(root, download=True)\n    dist.barrier()\n    return datasets.MNIST(root)\n"
    )
    check_nothing(RULE, "import torch.distributed as dist\n" + first, path="data.py", files=called)


CLIP = "import clip\nimport torch.distributed as dist\n\n\n" + MAIN


@pytest.mark.parametrize("named", ["'ViT-B/32'", "args.model", "'RN50', device='cuda'"])
def test_the_weights_of_clip(named: str) -> None:
    found = check_told(RULE, f"{CLIP}    return clip.load({named})[0]\n", reason="fetch it once")
    assert "the checksum of a half-written file ends the run" in found.message


@pytest.mark.parametrize(
    "load",
    [
        "clip.load(args.clip_path)",  # a file that lies there
        "clip.load('weights/clip.pt')",
        "clip.load(os.path.join(args.root, 'clip.bin'))",
        "clip.load('ViT-B/32', download_root=f'w{dist.get_rank()}')",
    ],
)
def test_clip_from_a_file_or_into_a_folder_of_the_rank(load: str) -> None:
    check_nothing(RULE, f"import os\n{CLIP}    return {load}[0]\n")


def test_clip_that_one_rank_fetches_first() -> None:
    load = "    net = clip.load('ViT-B/32')[0]\n"
    check_nothing(RULE, f"{CLIP}    if dist.get_rank() == 0:\n    {load}    dist.barrier()\n{load}")
    check_nothing(RULE, f"{CLIP}    with filelock.FileLock('clip'):\n    {load}")
    check_nothing(RULE, CLIP + load, files={"clip.py": "def load(name):\n    return [name]\n"})
    check_nothing(RULE, (CLIP + load).replace("    dist.init_process_group('gloo')\n", "").replace("main(args)", "lonely()"))


GRAPHS = (
    "from torch_geometric.data import InMemoryDataset\nimport pytorch_lightning as pl\n\n\n"
    "class Graphs(InMemoryDataset):\n    def process(self):\n        self.save(self.build(), self.processed_paths[0])\n\n\n"
    "class Plain(InMemoryDataset):\n    pass\n\n\n"
    "class Data(pl.LightningDataModule):\n"
)


def test_a_graph_data_set_that_setup_makes() -> None:
    setup = "    def setup(self, stage):\n        self.data = {}('data')\n"
    check_told(RULE, GRAPHS + setup.format("Graphs"), reason="fetch it once")
    check_nothing(RULE, GRAPHS + setup.format("Plain"))
    check_nothing(RULE, GRAPHS + "    def prepare_data(self):\n        Graphs('data')\n\n" + setup.format("Graphs"))


ROWS = (
    "import os\nimport torch\n\n\nclass Rows:\n    def __init__(self, path):\n"
    "        if not os.path.exists(path):\n            torch.save([1], path)\n        self.rows = torch.load(path)\n"
)


def test_a_class_that_a_data_module_makes() -> None:
    module = "import lightning.pytorch as pl\nfrom rows import Rows\n\nclass Data(pl.LightningDataModule):\n"
    chosen = "    def __init__(self):\n        self.made = Rows\n"
    check_offered(ROWS, files={"data.py": module + chosen}, path="rows.py")
    first = chosen + "\n    def prepare_data(self):\n        self.made('rows.pt')\n"
    check_nothing(RULE, ROWS, files={"data.py": module + first}, path="rows.py")


def test_a_class_that_a_factory_hands_out() -> None:
    factory = {"sets.py": "from rows import Rows\n\n\nSETS = {'rows': Rows}\n"}
    script = "import torch.distributed as dist\nfrom sets import SETS\n\n\ndef main():\n    {}SETS['rows']('rows.pt')\n"
    end = "\n\nif __name__ == '__main__':\n    dist.init_process_group('gloo')\n    main()\n"
    train = {"train.py": script.format("") + end}
    check_offered(ROWS, files=factory | train, path="rows.py")
    turn = {"train.py": script.format("with main_process_first():\n        ") + end}
    check_nothing(RULE, ROWS, files=factory | turn, path="rows.py")
    alone = {"train.py": script.format("").replace("import torch.distributed as dist\n", "")}
    check_nothing(RULE, ROWS, files=factory | alone, path="rows.py")


def test_a_class_that_a_setting_names() -> None:
    script = (
        "import torch.distributed as dist\nfrom hydra.utils import instantiate\n\n\ndef main(cfg):\n"
        "    rows = instantiate(cfg.rows)\n\n\nif __name__ == '__main__':\n"
        "    dist.init_process_group('gloo')\n    main(load())\n"
    )
    setting = {"conf/rows.yaml": "_target_: rows.Rows\npath: rows.pt\n"}
    check_offered(ROWS, files={"train.py": script, **setting}, path="rows.py")
    check_nothing(RULE, ROWS, files={"train.py": script}, path="rows.py")
    first = script.replace("    rows = ", "    with main_process_first():\n        rows = ")
    check_nothing(RULE, ROWS, files={"train.py": first, **setting}, path="rows.py")


DISK = (
    "import numpy as np\nfrom torch.utils.data import Dataset\n\n\nclass Disk(Dataset):\n    def __init__(self, path):\n"
    "        self.rows = np.memmap(path, mode='r')\n\n    @staticmethod\n    def create(rows, path):\n"
    "        np.memmap(path, mode='w+', shape=(9,))[:] = rows\n"
)
STORIES = (
    "import os\nfrom disk import Disk\n\n\nclass Stories(Disk):\n    def __init__(self, path):\n"
    "        if not os.path.exists(path):\n            Disk.create(load_tokens(), path)\n        super().__init__(path)\n"
)


def test_a_reader_in_the_constructor_of_the_base_class() -> None:
    train = "import torch.distributed as dist\nfrom stories import Stories\n\ndef main():\n    dist.init_process_group('gloo')\n"
    files = {"disk.py": DISK, "train.py": f"{train}    return Stories('rows.bin')\n"}
    found = check_told(RULE, STORIES, files=files, path="stories.py", reason="barrier")
    assert found.span.line == 7
    check_nothing(RULE, STORIES.replace("super().__init__(path)", "self.path = path"), files=files, path="stories.py")


def test_a_program_behind_an_import_of_everything() -> None:
    start = "from work import rows, train\n\n\ndef main():\n    rows('rows.pt')\n    train()\n\n\nmain()\n"
    train = "import torch.distributed as dist\n\n\ndef train():\n    dist.init_process_group('gloo')\n"
    body = "".join(f"    {line}\n" for line in MISSING)
    files = {"work/__init__.py": "from .training import *\nfrom .data import *\n", "work/training.py": train, "main.py": start}
    source = f"import os\nimport torch\n\n\ndef rows(path):\n{body}"
    check_offered(source, files=files, path="work/data.py")
    check_nothing(RULE, source, files={**files, "main.py": start.replace("    train()\n", "")}, path="work/data.py")


def test_a_program_of_another_mode() -> None:
    body = "".join(f"    {line}\n" for line in MISSING)
    train = "import torch.distributed as dist\n\n\ndef train():\n    dist.init_process_group('gloo')\n"
    modes = "    if args.mode == 'rows':\n        rows('rows.pt')\n    if args.mode == 'train':\n        train()\n"
    start = f"def main(args):\n{modes}\n\nmain(None)\n"
    source = f"import os\nimport torch\nfrom work import train\n\n\ndef rows(path):\n{body}\n\n{start}"
    check_nothing(RULE, source, files={"work.py": train}, path="main.py")
    assert findings_of(RULE, source.replace("== 'rows'", "== 'train'"), {"work.py": train}, path="main.py")


FETCHED = """
import os

import py3_wget
import torch
import torch.distributed as dist


def build(weights):
    if not os.path.isfile(weights):
        py3_wget.download_file(ADDRESS, weights)
    return torch.load(weights, map_location="cpu")


def main():
    dist.init_process_group("gloo")
    torch.nn.parallel.DistributedDataParallel(build("weights.pt"))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("address", ["WEIGHTS_URL", "urls[0]", "'https://example.com/a.pt'"])
def test_an_address_that_a_package_fetches_into_the_file(address: str) -> None:
    check_told(CacheFilledByEveryRank, FETCHED.replace("ADDRESS", address), reason="let rank 0 make it")


def test_something_else_that_is_downloaded() -> None:
    check_nothing(CacheFilledByEveryRank, FETCHED.replace("ADDRESS", "bucket"))


@pytest.mark.parametrize(("made", "silent"), [("fasteners.InterProcessLock(path)", True), ("threading.Lock()", False)])
def test_a_lock_that_has_a_name(made: str, *, silent: bool) -> None:
    fill = ("if not os.path.exists(path):", "    np.save(path, samples)", "self.rows = np.load(path)")
    locked = "\n".join([f"lock = {made}", "path = folder + '/rows.npy'", "with lock:", *(f"    {line}" for line in fill)])
    found = findings_of(RULE, f"import fasteners\nimport threading\n{data(locked)}")
    assert bool(found) is not silent


REGISTRY = {
    "sets.py": (
        "import os\nimport numpy as np\nKINDS = {}\n\n\nclass Rows:\n    def __init__(self, path):\n"
        "        if not os.path.exists(path):\n            np.save(path, 3)\n        self.rows = np.load(path)\n\n\n"
        "KINDS['rows'] = Rows\n\n\ndef build(name, path):\n    return KINDS[name](path)\n"
    )
}
FIRST = "    if dist.get_rank() == 0:\n        build('rows', args.path)\n    dist.barrier()\n"


def test_nothing_where_rank_0_is_let_in_first_to_what_a_table_makes() -> None:
    main = "import torch.distributed as dist\nfrom sets import build\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"
    end = "    return build('rows', args.path)\n\n\nif __name__ == '__main__':\n    main(parse())\n"
    check_nothing(RULE, REGISTRY["sets.py"], files={"train.py": main + FIRST + end}, path="sets.py")


TABLE = {
    "sets/build.py": "from registry import Registry\n\nDATASETS = Registry('dataset')\n\n\ndef build_dataset(cfg):\n"
    "    return DATASETS.build(cfg)\n",
    "sets/__init__.py": "from .build import build_dataset\nimport sets.rows\n",
    "main.py": "import torch.distributed as dist\nfrom sets import build_dataset\n\n\ndef main():\n"
    "    dist.init_process_group('nccl')\n"
    "    print(dist.get_rank(), build_dataset({'NAME': 'Rows'}))\n\n\nif __name__ == '__main__':\n    main()\n",
    "run.sh": "torchrun --nproc_per_node=4 main.py\n",
}
REGISTERED = (
    "import os\nimport pickle\nfrom .build import DATASETS\n\n\n@DATASETS.register_module()\nclass Rows:\n"
    "    def __init__(self, path):\n"
    "        if not os.path.exists(path):\n            self.rows = made()\n            with open(path, 'wb') as f:\n"
    "                pickle.dump(self.rows, f)\n        else:\n            with open(path, 'rb') as f:\n"
    "                self.rows = pickle.load(f)\n"
)


def test_a_class_that_a_registry_makes() -> None:
    check_offered(REGISTERED, files=TABLE, path="sets/rows.py")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("sets/build.py", "DATASETS.build(cfg)", "cfg"),  # nobody makes one
        ("main.py", "    dist.init_process_group('nccl')\n    print(dist.get_rank(), ", "    print(0, "),
        ("main.py", "'__main__'", "'main'"),
        ("sets/__init__.py", "import sets.rows\n", "# with main_process_first():\nimport sets.rows\n"),
        ("main.py", "    print(", "    with zero_first():\n        print("),
    ],
)
def test_a_class_of_a_registry_that_no_rank_makes(path: str, old: str, new: str) -> None:
    files = {**TABLE, path: TABLE[path].replace(old, new)}
    if path == "main.py" and "dist." in old:
        files[path] = files[path].replace("import torch.distributed as dist\n", "")
    assert files[path] != TABLE[path]
    check_nothing(RULE, REGISTERED, files=files, path="sets/rows.py")


KEPT = f'''import hashlib
import os
import requests
import torch
{DIST}
NAMES = {{"vgg": "vgg.pth"}}


def check(path):
    with open(path, "rb") as f:
        return hashlib.md5(f.read()).hexdigest()


def weights(name, root, checked=False):
    path = os.path.join(root, NAMES[name])
    if not os.path.exists(path) or (checked and check(path) != "d5"):
        with open(path, "wb") as f:
            f.write(requests.get(name).content)
        assert check(path) == "d5"
    return path


def main():
    dist.init_process_group("gloo")
    found = weights("vgg", os.path.join(os.path.dirname(os.path.abspath(__file__)), "cache"))
    return torch.load(found)


main()
'''


def test_the_place_that_reads_is_the_load_and_no_checksum() -> None:
    (found,) = findings_of(RULE, KEPT, {"other/vgg.pth": ""}, path="net/train.py")
    load = next(i for i, line in enumerate(KEPT.splitlines(), 1) if "torch.load" in line)
    assert f"another reads it half written (line {load})" in found.message


@pytest.mark.parametrize(
    "folder", ["os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cache')", "'net/cache'", "'cache'"]
)
def test_a_file_that_the_repository_has(folder: str) -> None:
    source = KEPT.replace('os.path.join(os.path.dirname(os.path.abspath(__file__)), "cache")', folder)
    assert source != KEPT or folder.startswith("os.")
    check_nothing(RULE, source, files={"net/cache/vgg.pth": ""}, path="net/train.py")


def test_one_of_the_files_is_not_there() -> None:
    source = KEPT.replace('"vgg.pth"}', '"vgg.pth", "alex": "alex.pth"}')
    assert findings_of(RULE, source, {"net/cache/vgg.pth": ""}, path="net/train.py")
    check_nothing(RULE, source, files={"net/cache/vgg.pth": "", "net/cache/alex.pth": ""}, path="net/train.py")


PART = """
import os
import urllib.request

import torch


class Part(torch.nn.Module):
    def __init__(self, weights, address):
        super().__init__()
        self.weights, self.address = weights, address
        self.download()

    def download(self):
        if not os.path.isfile(self.weights):
            urllib.request.urlretrieve(self.address, self.weights)

    def fill(self):
        raise NotImplementedError
"""
WIDE = """
import torch
from part import Part


class Wide(Part):
    def __init__(self, weights, address):
        super().__init__(weights=weights, address=address)
        self.layer = torch.nn.Linear(4, 4)

    def fill(self):
        self.load_state_dict(torch.load(self.weights))
"""
BUILT = """
import torch
import torch.distributed as dist
from hydra.utils import instantiate
from part import Part


def main(cfg):
    dist.init_process_group("gloo")
    part: Part = instantiate(cfg.part)
    part.fill()
    torch.nn.parallel.DistributedDataParallel(part)


if __name__ == "__main__":
    main(settings())
"""
PARTS = {"wide.py": WIDE, "train.py": BUILT, "conf/part.yaml": "_target_: wide.Wide\nweights: wide.pt\n"}


def test_a_field_that_the_method_of_an_heir_reads() -> None:
    found = check_told(RULE, PART, files=PARTS, path="part.py", reason="let rank 0 make it")
    assert "wide.py:12" in found.message
    made = BUILT.replace("instantiate(cfg.part)", "Wide(cfg.weights, cfg.address)")
    made = made.replace("from part import Part", "from part import Part\nfrom wide import Wide")
    direct = {**PARTS, "train.py": made, "conf/part.yaml": "weights: wide.pt\n"}
    check_told(RULE, PART, files=direct, path="part.py", reason="let rank 0 make it")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("train.py", "    part.fill()\n", ""),  # nobody reads it
        ("train.py", "    part.fill()\n", "    dist.barrier()\n    part.fill()\n"),
        ("train.py", "    part.fill()\n", "    if dist.get_rank() == 0:\n        part.fill()\n"),
        ("train.py", BUILT, BUILT.replace("torch.nn.parallel.DistributedDataParallel", "run").replace("dist.", "log.").replace(
            "import torch.distributed as dist\n", "")),  # one process
        ("wide.py", "torch.load(self.weights)", "torch.load(self.own)"),
        ("wide.py", "        self.load_state", "        torch.distributed.barrier()\n        self.load_state"),
        ("conf/part.yaml", "wide.Wide", "other.Wide"),  # nobody makes one
        ("part.py", "        self.download()\n", "        self.download()\n        torch.distributed.barrier()\n"),
        ("part.py", "        self.download()\n", ""),
        ("part.py", "urllib.request.urlretrieve(self.address, self.weights)", "gdown.download(self.address, self.weights)"),
    ],
)  # fmt: skip
def test_a_field_that_is_seen_to_or_not_read(path: str, old: str, new: str) -> None:
    files = {**PARTS, "part.py": PART}
    assert old in files[path]
    files[path] = files[path].replace(old, new).replace("import urllib.request", "import urllib.request\n\nimport gdown")
    source = files.pop("part.py")
    check_nothing(RULE, source, files=files, path="part.py")


TRL = """\
import os

from datasets import load_from_disk
from {library} import SFTTrainer
from accelerate import PartialState


class Mine(SFTTrainer):
    def _prepare_dataset(self, rows, args):
        path = os.path.join(args.output_dir, "rows")
        if os.path.exists(path):
            return load_from_disk(path)
        made = super()._prepare_dataset(rows, args)
        if args.local_rank <= 0:
            made.save_to_disk(path)
        return made


if __name__ == "__main__":
    Mine(PartialState()).train()
"""


def test_a_method_of_trl_in_which_all_ranks_meet_before_rank_0_writes() -> None:
    check_nothing(RULE, TRL.format(library="trl"))


def test_a_method_of_a_base_that_is_not_known_may_let_all_through() -> None:
    assert findings_of(RULE, TRL.format(library="trainers"))


FOLDS = (
    "import os\nimport pickle\n\nimport lightning as L\n\n\ndef main(model, build):\n    for fold in range(5):\n"
    "        path = {path}\n        if not os.path.exists(path):\n            with open(path, 'wb') as file:\n"
    "                pickle.dump(build(fold), file)\n        with open(path, 'rb') as file:\n"
    "            rows = pickle.load(file)\n"
    "        {fit}\n{behind}\n\nif __name__ == '__main__':\n    main(None, dict)\n"
)
TRAINED = "L.Trainer(devices=2, strategy='ddp').fit(model, rows)"


def test_a_file_of_each_round_that_trains() -> None:
    (found,) = findings_of(RULE, FOLDS.format(path="f'rows_{fold}.pkl'", fit=TRAINED, behind=""))
    assert found.message.startswith("from the second round of the loop on")


@pytest.mark.parametrize(
    ("path", "fit", "behind"),
    [
        ("'rows.pkl'", TRAINED, ""),  # the first round makes it for all
        ("f'rows_{fold}.pkl'", "keep(rows)", f"    {TRAINED}\n"),
        ("f'rows_{fold}.pkl'", f"{TRAINED}\n        break", ""),
    ],
)
def test_a_file_that_is_there_before_the_others_start(path: str, fit: str, behind: str) -> None:
    check_nothing(RULE, FOLDS.format(path=path, fit=fit, behind=behind))


LOADED_FIRST = """import os
import torch
from torch.utils.data import DataLoader, Dataset
import torch.distributed as dist


class Spectra(Dataset):
    def __init__(self, paths, make):
        self.paths, self.make = paths, make

    def __getitem__(self, i):
        return self.spectrum(self.paths[i])

    def spectrum(self, path):
        beside = path.replace(".wav", ".pt")
        try:
            rows = torch.load(beside)
        except (FileNotFoundError, RuntimeError):
            rows = self.make(path)
            torch.save(rows, beside)
        return rows


def main(paths, make):
    dist.init_process_group("nccl")
    for rows in DataLoader(Spectra(paths, make), shuffle=True):
        print(rows)
"""
IN_A_FUNCTION = """import json
import torch.distributed as dist


def counted(folder, count):
    table = folder / "counts.json"
    try:
        return json.loads(table.read_text())
    except OSError:
        pass
    counts = count()
    with open(table, "w") as f:
        json.dump(counts, f)
    return counts


def main(folder, count):
    dist.init_process_group("gloo")
    return counted(folder, count)
"""


@pytest.mark.parametrize("source", [LOADED_FIRST, IN_A_FUNCTION])
def test_a_cache_that_is_made_where_its_load_fails(source: str) -> None:
    found = findings_of(RULE, source)
    assert [f.applicability for f in found] == [Applicability.UNSAFE]
    assert "that error is not caught" in found[0].message


def test_a_cache_of_a_sample_appears_whole() -> None:
    save = "            torch.save(rows, beside)\n"
    whole = save.replace("beside)", 'f"{beside}.{os.getpid()}")') + '            os.replace(f"{beside}.{os.getpid()}", beside)\n'
    check_transformed(RULE, LOADED_FIRST, LOADED_FIRST.replace(save, whole), unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("(FileNotFoundError, RuntimeError)", "(FileNotFoundError, EOFError)"), ("(FileNotFoundError, RuntimeError)", "Exception"),
     (" (FileNotFoundError, RuntimeError)", ""), ("(FileNotFoundError, RuntimeError)", "KeyError"),
     ("torch.save(rows, beside)", "print(beside)"), ("torch.save(rows, beside)", "torch.save(rows, path + '.other')"),
     ("            torch.save(rows, beside)", "            if dist.get_rank() == 0:\n                torch.save(rows, beside)"),
     ("torch.save(rows, beside)", "torch.save(rows, beside + '.new')\n            os.replace(beside + '.new', beside)"),
     ("rows = self.make(path)", "if not self.make:\n                raise\n            rows = self.make(path)"),
     ("    for rows", "    DistributedSampler(Spectra(paths, make))\n    for rows"), ("shuffle=True", "shuffle=False"),
     ('".pt")', 'f".{dist.get_rank()}.pt")')],
)  # fmt: skip
def test_a_load_that_makes_what_it_misses_and_nobody_reads_torn(old: str, new: str) -> None:
    assert old in LOADED_FIRST
    check_nothing(RULE, LOADED_FIRST.replace(old, new))


ABOVE_FIT = """import pickle
import lightning.pytorch as pl


def rows_of(path, build):
    if path.exists():
        with open(path, "rb") as f:
            rows = pickle.load(f)
    else:
        rows = build()
        with open(path, "wb") as f:
            pickle.dump(rows, f)
    return rows


def main(cfg, build):
    rows = rows_of(cfg.folder / "rows.pkl", build)
    trainer = pl.Trainer(devices=cfg.devices, strategy="ddp")
    trainer.fit(cfg.model, rows)


if __name__ == "__main__":
    main(read(), list)
"""
SUBMITTED = "defaults:\n  - override /hydra/launcher: submitit_slurm\nhydra:\n  launcher:\n    nodes: 1\n    tasks_per_node: {}\n"


@pytest.mark.parametrize("tasks", ["8", "${ngpu}", "4  # one for each GPU"])
def test_tasks_that_slurm_starts_together_come_above_fit_as_well(tasks: str) -> None:
    files = {"job/conf/cluster.yaml": SUBMITTED.format(tasks)}
    assert findings_of(RULE, ABOVE_FIT, files, path="job/train.py")


@pytest.mark.parametrize(
    ("settings", "text"),
    [("job/conf/cluster.yaml", SUBMITTED.format(1)), ("other/conf/cluster.yaml", SUBMITTED.format(8)),
     ("job/conf/cluster.yaml", SUBMITTED.format(8).replace("submitit_slurm", "basic")), ("job/conf/cluster.yaml", "a: 1\n")],
)  # fmt: skip
def test_a_trainer_that_starts_the_others_behind_the_cache(settings: str, text: str) -> None:
    check_nothing(RULE, ABOVE_FIT, files={settings: text}, path="job/train.py")


# The folder is listed to find out

FILL = ("    torch.save(build(), path + '/rows.pt')", "return torch.load(path + '/rows.pt')")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("if 'rows.pt' not in os.listdir(path):", *FILL), True),
        (
            ("if not name in os.listdir(path):", "    torch.save(build(), f'{path}/{name}')",
             "return torch.load(f'{path}/{name}')"),
            True,
        ),
        (
            ("if name in os.listdir(path):", "    return torch.load(os.path.join(path, name))",
             "torch.save(build(), os.path.join(path, name))"),
            True,
        ),
        (("if 'old.pt' not in os.listdir(path):", *FILL), False),
        (("if 'rows.pt' not in os.listdir(other):", *FILL), False),
        (("if 'rows.pt' in os.listdir(path):", *FILL), False),
        (("if 'rows.pt' not in names(path):", *FILL), False),
        (("path = f'{path}_{dist.get_rank()}'", "if 'rows.pt' not in os.listdir(path):", *FILL), False),
        (
            ("if 'rows.pt' not in os.listdir(path):", "    if dist.get_rank() == 0:", f"    {FILL[0]}", "dist.barrier()",
             FILL[1]),
            False,
        ),
    ],
)  # fmt: skip
def test_a_name_in_the_list_of_a_folder(lines: tuple[str, ...], *, told: bool) -> None:
    source = rows(*lines, call="rows(place)")
    if told:
        assert "/ " in check_told(RULE, source, reason="barrier").message
    else:
        check_nothing(RULE, source)


LISTED = ("if 'rows.pt' not in os.listdir(path):", *FILL)


def test_a_listed_folder_that_the_repository_holds() -> None:
    source = rows(*LISTED, call="rows('cache')")
    check_told(RULE, source, reason="barrier")
    check_nothing(RULE, source, files={"cache/rows.pt": ""})


def test_another_question_for_the_folder_reads_nothing() -> None:
    asks = "if 'notes.txt' in os.listdir(path): log(path)"
    assert "(line 10)" in check_told(RULE, rows(asks, *LISTED), reason="barrier").message
    check_nothing(RULE, rows(asks, *LISTED[:2]))


def test_a_loop_that_lists_the_folder() -> None:
    lines = (
        "if dist.get_rank() == 0:", "    torch.save(build(), path + '/rows.pt')", "else:",
        "    while 'rows.pt' not in os.listdir(path):", "        continue", "return torch.load(path + '/rows.pt')",
    )  # fmt: skip
    assert "wait until `path / 'rows.pt'` is there" in check_told(RULE, rows(*lines), reason="barrier").message
    check_nothing(RULE, rows(*lines).replace("'rows.pt' not in", "'rows.pt' in"))


# A class that a name chooses

LISTING = (
    "import os\nimport torch\n\n\nclass Leaves:\n    def __init__(self, root, split):\n        self.root = root\n"
    "        self.split = split\n        if 'leaves_{}.pt'.format(self.split) not in os.listdir(self.root):\n"
    "            self.fill()\n        self.rows = torch.load(os.path.join(self.root, 'leaves_{}.pt'.format(self.split)))\n\n"
    "    def fill(self):\n        torch.save([1], os.path.join(self.root, 'leaves_{}.pt'.format(self.split)))\n"
)
PACKAGE = {"sets/__init__.py": "from .leaves import Leaves\n"}
CHOOSING = "import torch.distributed as dist\nimport sets\n\n\ndef main(args):\n    dist.init_process_group('gloo')\n"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("data = eval('sets.' + args.name)(args.root, 'train')",), True),
        (("data = eval(f'sets.{args.name}')(args.root, 'train')",), True),
        (("data = eval('sets.{}'.format(args.name))(args.root, 'train')",), True),
        (("data = getattr(sets, args.name)(args.root, 'train')",), True),
        (("kind = getattr(sets, args.name)", "data = kind(args.root, 'train')"), True),
        (("data = eval('nets.' + args.name)(args.root, 'train')",), False),
        (("data = eval(args.name)(args.root, 'train')",), False),
        (("data = getattr(args, 'Leaves')(args.root, 'train')",), False),
        (("if dist.get_rank() == 0:", "    data = getattr(sets, args.name)(args.root, 'train')"), False),
        (("kind = getattr(sets, args.name)", "print(kind)"), False),
    ],
)
def test_a_class_that_a_name_chooses(lines: tuple[str, ...], *, told: bool) -> None:
    script = {"train.py": CHOOSING + "".join(f"    {line}\n" for line in lines)}
    if told:
        found = check_told(RULE, LISTING, files=PACKAGE | script, path="sets/leaves.py", reason="barrier")
        assert "(line 14)" in found.message and "(line 11)" in found.message
    else:
        check_nothing(RULE, LISTING, files=PACKAGE | script, path="sets/leaves.py")


def test_a_class_beside_the_one_that_a_name_chooses() -> None:
    script = CHOOSING.replace("sets", "other") + "    getattr(other, args.name)()\n"
    other = {"other.py": "class Roots:\n    pass\n", "train.py": script}
    check_nothing(RULE, LISTING, files=PACKAGE | other, path="sets/leaves.py")


CHOSEN = (
    "import torch.distributed as dist\nimport torch_geometric\nimport graphs\n\n\ndef main(args):\n"
    "    dist.init_process_group('gloo')\n    kind = getattr(graphs, args.name)\n"
)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("def download(self):\n        fetch(self.raw_dir)", "download and unpack"),
        ("def process(self):\n        self.save(self.raw_dir)", "process the raw ones"),
        ("def process(self):\n        pass", ""),
        ("def other(self):\n        fetch(self.raw_dir)", ""),
    ],
)
def test_a_graph_data_set_that_a_name_chooses(method: str, said: str) -> None:
    graphs = {"graphs.py": f"from torch_geometric.data import InMemoryDataset\n\n\nclass Roads(InMemoryDataset):\n    {method}\n"}
    made = CHOSEN + "    return kind(**args.data)\n"
    if not said:
        check_nothing(RULE, made, files=graphs)
        return
    found = check_told(RULE, made, files=graphs, reason="fetch it once")
    assert said in found.message and "as where it makes a Roads" in found.message
    first = CHOSEN + "    if dist.get_rank() == 0:\n        kind(**args.data)\n    dist.barrier()\n    return kind(**args.data)\n"
    check_nothing(RULE, first, files=graphs)
    check_nothing(RULE, made, files={"graphs.py": "class Roads:\n    def download(self):\n        fetch()\n"})


def test_a_class_that_a_setting_names_by_its_package() -> None:
    script = (
        "import torch.distributed as dist\nfrom hydra.utils import instantiate\n\n\ndef main(cfg):\n"
        "    rows = instantiate(cfg.rows)\n\n\nif __name__ == '__main__':\n"
        "    dist.init_process_group('gloo')\n    main(load())\n"
    )
    package = {"sets/__init__.py": "from .rows import Rows\n", "train.py": script}
    check_offered(ROWS, files=package | {"conf/rows.yaml": "_target_: sets.Rows\npath: rows.pt\n"}, path="sets/rows.py")
    check_nothing(RULE, ROWS, files=package | {"conf/rows.yaml": "_target_: other.Rows\n"}, path="sets/rows.py")
    check_nothing(RULE, ROWS, files=package | {"conf/rows.yaml": "_target_: sets.Rows.make\n"}, path="sets/rows.py")
    bare = package | {"sets/__init__.py": "", "conf/rows.yaml": "_target_: sets.Rows\n"}
    check_nothing(RULE, ROWS, files=bare, path="sets/rows.py")


# What a package loads down

@pytest.mark.parametrize("call", ["list('a/b')", "help('a/b', 'net')", "load('a/b', 'net')"])
def test_what_torch_hub_unpacks_to_answer(call: str) -> None:
    head = "import torch\nimport torch.distributed as dist\n\n\n" + MAIN
    found = check_told(RULE, f"{head}    return torch.hub.{call}\n", reason="fetch it once")
    assert "the cache of torch.hub" in found.message
    check_nothing(RULE, f"{head}    if dist.get_rank() == 0:\n        return torch.hub.{call}\n")
    check_nothing(RULE, f"{head}    return args.hub.{call}\n")


def test_a_file_that_is_called_as_the_package_it_imports() -> None:
    net = "import clip\n\n\ndef load_net():\n    return clip.load('RN50')[0]\n"
    train = "import torch.distributed as dist\nfrom nets.clip import load_net\n\n\n" + MAIN + "    return load_net()\n"
    check_told(RULE, net, files={"train.py": train}, path="nets/clip.py", reason="fetch it once")
    own = {"train.py": train, "clip/__init__.py": "def load(name):\n    return [name]\n"}
    check_nothing(RULE, net, files=own, path="nets/clip.py")


TILES = (
    "import lightning as L\nfrom torchgeo.datasets import EuroSAT\n\n\nclass Tiles(EuroSAT):\n"
    "    def __init__(self, root, download):\n        super().__init__(root, {})\n\n\n"
    "class Data(L.LightningDataModule):\n    def setup(self, stage):\n        self.rows = {}\n"
)


@pytest.mark.parametrize(
    ("handed", "made", "told"),
    [
        ("'train', download=download", "Tiles(root=self.root, download=True)", True),
        ("'train', None, None, download", "Tiles(self.root, download=True)", True),
        ("'train'", "EuroSAT(self.root, download=True)", True),
        ("'train'", "Tiles(self.root, download=True)", False),
        ("'train', download=False", "Tiles(self.root, download=True)", False),
        ("'train', download=download", "Tiles(self.root, download=False)", False),
        ("'train', download=download", "Tiles(self.root, download=self.first)", False),
    ],
)
def test_an_heir_of_a_data_set_that_loads_itself_down(handed: str, made: str, *, told: bool) -> None:
    source = TILES.format(handed, made)
    if not told:
        check_nothing(RULE, source)
        return
    check_told(RULE, source, reason="fetch it once")
    check_nothing(RULE, source + f"\n    def prepare_data(self):\n        {made}\n")
    check_nothing(RULE, source.replace("torchgeo.datasets", "tiles.own"))
