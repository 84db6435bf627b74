"""DDP714: names that only a run with several processes reads, and that nothing binds."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.launch.unbound_name import UnboundName
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = UnboundName
OTHER = {"engine.py": "import torch\nimport torch.distributed as dist\n\n\ndef start():\n    dist.init_process_group('nccl')\n"}
POOL = "import torch\n\n\ndef mean_of_all(value):\n    dist.all_reduce(value)\n    return value / dist.get_world_size()\n"
MAIN = "import argparse\n\nimport torch\nimport torch.distributed as dist\n\n\n"


def with_import(source: str, line: str = "import torch.distributed as dist") -> str:
    return source.replace("import torch\n", f"import torch\n{line}\n", 1)


def of_rank_zero(*lines: str, more: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{MAIN}{more}def main(args):\n    dist.init_process_group('nccl')\n    rank = dist.get_rank()\n{body}\n\nmain(None)\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].partition("```python\n")[2].removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)
    check_transformed(RULE, before, after, files=OTHER)


def test_a_module_of_torch() -> None:
    check_transformed(RULE, POOL, with_import(POOL), files=OTHER)


@pytest.mark.parametrize(
    ("read", "line", "module"),
    [
        ("DDP(net)", "from torch.nn.parallel import DistributedDataParallel as DDP", "torch.nn.parallel"),
        ("DistributedSampler(net)", "from torch.utils.data.distributed import DistributedSampler", ""),
        ("mp.spawn(net, nprocs=2)", "import torch.multiprocessing as mp", ""),
    ],
)
def test_other_names_of_torch(read: str, line: str, module: str) -> None:
    source = f"import torch\n\n\ndef prepared(net):\n    return {read}\n"
    found = findings_of(RULE, source, {"engine.py": f"import torch\n{line}\n"})
    assert [f.applicability for f in found] == [Applicability.SAFE], module
    check_transformed(RULE, source, with_import(source, line), files={"engine.py": f"import torch\n{line}\n"})


def test_a_statement_that_takes_one_more() -> None:
    source = "from torch.nn.parallel import DataParallel\n\n\ndef wrapped(net, several):\n    return {}(net)\n"
    after = source.replace("import DataParallel", "import DataParallel, DistributedDataParallel")
    engine = {"engine.py": "from torch.nn.parallel import DistributedDataParallel\n"}
    name = "DistributedDataParallel"
    check_transformed(RULE, source.format(name), after.format(name), files=engine)


def test_a_helper_of_the_project() -> None:
    files = {
        "comm.py": "import torch.distributed as dist\n\n\ndef get_rank():\n    return dist.get_rank()\n",
        "engine.py": "from comm import get_rank\n\nprint(get_rank())\n",
    }
    source = "import torch\n\n\ndef save(net):\n    if get_rank() == 0:\n        torch.save(net, 'net.pt')\n"
    (found,) = findings_of(RULE, source, {k: v for k, v in files.items() if k == "comm.py"})
    assert found.applicability is Applicability.DISPLAY
    check_transformed(RULE, source, with_import(source, "from comm import get_rank"), files=files, unsafe=True)


def test_horovod() -> None:
    source = "import torch\n\n\ndef main():\n    hvd.init()\n    torch.cuda.set_device(hvd.local_rank())\n"
    (found,) = check_transformed(RULE, source, with_import(source, "import horovod.torch as hvd"), unsafe=True)
    assert "`hvd`" in found.message and [e.line for e in found.evidence] == [5, 6]
    other = {"engine.py": "import horovod.torch as hvd\n\nhvd.init()\n"}
    (found,) = findings_of(RULE, source, other)
    assert found.applicability is Applicability.UNSAFE


def test_torch_in_a_program_of_horovod() -> None:
    source = POOL.replace("import torch\n", "import torch\nimport horovod.torch as hvd\n").replace("value /", "hvd.size() /")
    check_told(RULE, source, reason="the file uses Horovod", files=OTHER)


@pytest.mark.parametrize(
    "lines",
    [
        ("if rank == 0:", "    print(history)"),
        ("if rank != 0:", "    return", "print(history)"),
        ("if args.distributed:", "    args.batch_size //= history"),
        ("if dist.is_initialized():", "    dist.all_reduce(history)"),
    ],
)
def test_names_that_such_a_run_alone_reads(lines: tuple[str, ...]) -> None:
    check_told(RULE, of_rank_zero(*lines), reason="import or define it")


def test_a_name_of_another_function() -> None:
    other = "def shown(history):\n    print(history)\n\n\n"
    found = check_told(RULE, of_rank_zero("if rank == 0:", "    shown(history)", more=other), reason="define it")
    assert "rank 0 ends there" in found.message


def test_what_a_function_reads_that_calls_a_collective() -> None:
    source = f"{MAIN}def reduced(value):\n    start.record()\n    dist.all_reduce(value)\n    return value\n"
    check_told(RULE, source, reason="import or define it")


def test_what_an_arm_of_a_test_reads_that_calls_a_collective() -> None:
    body = "    if whole:\n        {}\n        dist.all_reduce(value)\n{}    return value\n"
    source = f"{MAIN}def shown(value, whole):\n{body}"
    check_told(RULE, source.format("history.append(value)", ""), reason="import or define it")
    check_nothing(RULE, source.format("pass", "    else:\n        history.append(value)\n"))
    check_nothing(RULE, source.format("pass", "    history.append(value)\n"))


def test_a_module_of_python() -> None:
    lines = ("if rank == 0:", "    os.remove('lock')")
    before = of_rank_zero(*lines)
    after = before.replace("import argparse\n", "import argparse\nimport os\n")
    check_transformed(RULE, before, after, files={"tools/start.py": "import os\n\nprint(os.getpid())\n"})


def test_a_folder_that_is_made_is_no_question_for_names() -> None:
    source = POOL + "\n\ndef folder(path):\n    path.mkdir()\n"
    check_transformed(RULE, source, with_import(source), files=OTHER)


def test_two_files_that_do_not_agree() -> None:
    files = {**OTHER, "other.py": "from fastai import distributed as dist\n"}
    check_told(RULE, POOL, reason="import or define it", files=files)


@pytest.mark.parametrize("name", ["DDP", "DistributedDataParallel", "DistributedSampler"])
def test_usual_names_that_no_other_file_has(name: str) -> None:
    source = f"import torch\n\n\ndef prepared(net):\n    return {name}(net)\n"
    (found,) = findings_of(RULE, source)
    assert found.applicability is Applicability.UNSAFE
    check_nothing(RULE, source.replace(f"{name}(net)", f"{name}.of(net)"))
    check_nothing(RULE, source.replace("import torch", "import numpy"))
    check_nothing(RULE, source.replace("\n\n\ndef", f"\n\n\nclass {name}:\n    pass\n\n\ndef"))


def test_below_try_and_finally() -> None:
    body = "    try:\n        start.record()\n        dist.all_reduce(value)\n{}    return value\n"
    source = f"{MAIN}def reduced(value):\n{body}"
    check_told(RULE, source.format("    finally:\n        print(value)\n"), reason="import or define it")
    check_nothing(RULE, source.format("    except RuntimeError:\n        print(value)\n"))


@pytest.mark.parametrize(
    "source",
    [
        with_import(POOL),
        POOL.replace("import torch\n", "from engine import *\n"),
        POOL.replace("(value):", "(value, dist):"),
        POOL.replace("import torch\n", "import torch\n\nif torch.cuda.is_available():\n    import torch.distributed as dist\n"),
        POOL.replace("\n\n\ndef", "\n\nglobals().update(vars(torch))\n\n\ndef"),
        POOL.replace("all_reduce", "get_local_rank").replace("get_world_size", "count"),
        POOL + "\n\ndef start():\n    global dist\n    import torch.distributed as dist\n",
        POOL.replace("    dist.all_reduce(value)\n    return value / dist.get_world_size()\n",
                     "    try:\n        dist.all_reduce(value)\n    except NameError:\n        pass\n    return value\n"),
        POOL + "\n\ndef names():\n    return vars()\n",
        "import torch\n\n\ndef far(one, other):\n    return (one - other).norm() / dist.max()\n",
        "import torch\n\n\ndef shown(net: DDP) -> DDP:\n    return net\n",
    ],
)  # fmt: skip
def test_names_that_are_bound_or_may_be_others(source: str) -> None:
    check_nothing(RULE, source, files=OTHER)


@pytest.mark.parametrize(
    "lines",
    [
        ("print(history)",),
        ("if args.resume:", "    print(history)"),
        ("history = []", "if rank == 0:", "    print(history)"),
        ("if rank == 0:", "    for history in args.all:", "        print(history)"),
        ("if rank == 0:", "    print([history for history in args.all])"),
        ("if rank == 0:", "    with open('a') as history:", "        print(history)"),
        ("if rank == 0:", "    raise ValueError", "    print(history)"),
        ("if rank == 0:", "    print(unicode(args))"),
    ],
)
def test_what_is_bound_or_no_matter_of_several_processes(lines: tuple[str, ...]) -> None:
    source = of_rank_zero(*lines).replace("argparse", "os").replace("    dist.init_process_group('nccl')\n", "")
    check_nothing(RULE, source.replace("dist.get_rank()", "int(os.environ['RANK'])"))


def test_another_file_puts_the_name_in() -> None:
    files = {"start.py": "import main\nimport torch.distributed\n\nmain.dist = torch.distributed\nmain.mean_of_all(1)\n"}
    check_nothing(RULE, POOL, files=files, path="main.py")


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, POOL, files=OTHER, path="tests/test_pool.py")


def test_code_that_no_program_runs() -> None:
    source = POOL + "\n\ndef main():\n    print(torch.ones(1))\n\n\nif __name__ == '__main__':\n    main()\n"
    check_nothing(RULE, source, files=OTHER)


@pytest.mark.parametrize(("test", "found"), [("torch.backends.mps.is_available()", 0), ("dist.is_available()", 1)])
def test_what_only_one_gpu_comes_to(test: str, found: int) -> None:
    source = f"{MAIN}def enter():\n    if {test}:\n        return nullcontext()\n    return torch.autocast('cuda')\n\n\nenter()\n"
    assert len(findings_of(RULE, source)) == found


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("args.distributed and left > 0", 1),  # one process never gets beyond the first part
        ("left > 0 and args.distributed", 1),
        ("args.resume and left > 0", 0),
        ("not args.distributed and left > 0", 0),
    ],
)
def test_one_part_of_a_test_keeps_one_process_out(test: str, found: int) -> None:
    head = f"{MAIN}def score(args, data, left):\n    if {test}:\n"
    source = f"{head}        data = Subset(data, left)\n    return data\n\n\nscore(1, 2, 3)\n"
    assert len(findings_of(RULE, source)) == found


GATHER = """\
import torch


class Loss(torch.nn.Module):
    def forward(self, x, y):
        {first}
        x = torch.cat(Gathered.apply(x))
        return nnf.relu(x - y).mean()


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return tuple(parts)
{rest}
"""
FITS = "from engine import start\nfrom loss import Loss\n\nif __name__ == '__main__':\n    start()\n    print(Loss()(1, 2))\n"


@pytest.mark.parametrize("first", ["error = nnf.mse_loss(x, y)", "x = nnf.normalize(x)"])
def test_another_name_that_nothing_binds_is_read_first(first: str) -> None:
    """With the import the run would end at the other name as before."""
    rest = "\n".join(f"W{i} = {i}" for i in range(60))
    files = {**OTHER, "main.py": FITS, "quiet.py": "import builtins\nimport torch.nn.functional as nnf\nbuiltins.print = nnf\n"}
    source = GATHER.format(first=first, rest=rest)
    check_nothing(RULE, source, files=files, path="loss.py")
    bound = source.replace("import torch\n", "import torch\nimport torch.nn.functional as nnf\n", 1)
    assert findings_of(RULE, bound, files=files, path="loss.py")
    behind = GATHER.format(first="pass", rest=rest)  # the gather is come to first
    assert findings_of(RULE, behind, files=files, path="loss.py")


def test_the_commit_names_the_import_where_there_is_one() -> None:
    source = "import torch\n\n\ndef main(x):\n    dist.all_reduce(x)\n    return x / dist.get_world_size()\n"
    (found,) = findings_of(RULE, source, {"b.py": "import torch.distributed as dist\n\ndist.barrier()\n"})
    assert RULE.commit_subject([found]) == "Add import torch.distributed as dist"
    assert RULE.commit_subject([]) == RULE.subject


RUNNERS = """import torch
import torch.distributed as dist
from runner import Runner


class Generator(Runner):
    def generate(self):
        self.make()


def main(args):
    dist.init_process_group("nccl")
    runner = Generator()
    if args.fit:
        runner.generate()
    {more}


if __name__ == "__main__":
    main(read())
"""
RUNNER = "import torch\n\n\nclass Runner:\n    def fit(self):\n        self.step()\n        dist.barrier()\n"


@pytest.mark.parametrize(
    ("more", "number"),
    [("pass", 0), ("show(args.fit > 1)", 0), ("runner.fit()", 1), ("go(runner.fit)", 1), ("Runner().fit()", 1)],
)
def test_a_method_is_not_called_by_a_test_of_a_setting_of_its_name(more: str, number: int) -> None:
    found = findings_of(RULE, RUNNER, {"main.py": RUNNERS.format(more=more)}, path="runner.py")
    assert len(found) == number


BOARD = "from torch.utils.tensorboard import SummaryWriter"
SHOWN = {"tools/board.py": f"import torch\n{BOARD}\n\nSummaryWriter('runs')\n"}
OF_ZERO = of_rank_zero("if rank == 0:", "    writer = SummaryWriter('runs')")


@pytest.mark.parametrize(
    "comment", [f"# {BOARD}", f"    #{BOARD} as S, SummaryWriter", "# import board.SummaryWriter as SummaryWriter"]
)
def test_an_import_that_somebody_took_out(comment: str) -> None:
    taken = OF_ZERO.replace("import torch\n", f"import torch\n{comment}\n", 1)
    files = SHOWN | {"requirements.txt": "tensorboard\n"}
    found = check_told(RULE, taken, files=files, reason="line 4 has its import in a comment")
    assert "rank 0 ends there" in found.message


@pytest.mark.parametrize("comment", ["# SummaryWriter comes below", "# from board import SummaryWriters", "x = 1  # import y"])
def test_a_comment_that_is_no_import_of_the_name(comment: str) -> None:
    told = OF_ZERO.replace("import torch\n", f"import torch\n{comment}\n", 1)
    (found,) = findings_of(RULE, told, SHOWN | {"requirements.txt": "tensorboard\n"})
    assert found.applicability is Applicability.SAFE and found.edits


def test_a_module_of_torch_that_needs_another_package() -> None:
    (found,) = findings_of(RULE, OF_ZERO, SHOWN)
    assert found.applicability is Applicability.UNSAFE and "assumes that tensorboard is installed" in found.reason
    named = (("requirements.txt", "torch\ntensorboard>=2\n"), ("setup.py", "setup(install_requires=['tensorboard'])\n"))
    for path, text in named:
        (found,) = findings_of(RULE, OF_ZERO, {**SHOWN, path: text})
        assert found.applicability is Applicability.SAFE, path
