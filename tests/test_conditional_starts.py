"""DDP306: barriers below a function of the project that starts the group, or comes back without one."""

from __future__ import annotations

import pytest

from codemods.sync.collective_without_group import CollectiveWithoutGroup
from ddpfix.testing import check_nothing, check_transformed, findings_of

RULE = CollectiveWithoutGroup
HEAD = "import os\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
EARLY = (
    "def begin(args):\n    if 'RANK' in os.environ:\n        args.rank = int(os.environ['RANK'])\n    else:\n"
    "        print('alone')\n        args.distributed = False\n        return\n    dist.init_process_group('nccl')\n\n\n"
)
ARM = "def begin(args):\n    if args.world_size > 1:\n        dist.init_process_group('nccl')\n    return args.rank\n\n\n"
START = "    begin(args)\n"


def script(body: str, begin: str = EARLY, start: str = START) -> str:
    return f"{HEAD}\n\n{begin}def main(args):\n{start}{body}"


@pytest.mark.parametrize("begin", [EARLY, ARM])
def test_a_barrier_below_it(begin: str) -> None:
    before = script("    train(args)\n    dist.barrier()\n", begin)
    check_transformed(RULE, before, script("    train(args)\n    if dist.is_initialized():\n        dist.barrier()\n", begin))


def test_through_a_function_that_calls_it() -> None:
    begin = EARLY + "def prepare(args):\n    begin(args)\n    seed(args)\n\n\n"
    found = findings_of(RULE, script("    dist.barrier()\n", begin, "    prepare(args)\n"))
    assert [f.span.line for f in found] == [23] and "comes back without one" in found[0].message


def test_under_the_name_that_an_import_gives_it() -> None:
    files = {
        "launch.py": "import os\nimport torch.distributed as dist\n\n\n" + ARM,
        "setup.py": "from launch import begin as start_group\n\n\ndef setup(args):\n    return start_group(args)\n",
    }
    for header, start in (("from setup import setup", "setup(args)"), ("from launch import begin as go", "go(args)")):
        head = f"import torch.distributed as dist\n{header}\n\n\n"
        before = f"{head}def main(args):\n    {start}\n    train(args)\n    dist.barrier()\n"
        after = before.replace("    dist.barrier()", "    if dist.is_initialized():\n        dist.barrier()")
        check_transformed(RULE, before, after, files=files)


def test_in_a_function_that_is_called_there() -> None:
    files = {"start.py": script("    judge(args)\n").replace("import os\n", "import os\nfrom module import judge\n")}
    after = "import torch.distributed as dist\n\n\ndef judge(args):\n    score()\n    {}dist.barrier()\n"
    check_transformed(RULE, after.format(""), after.format("if dist.is_initialized():\n        "), files=files)


@pytest.mark.parametrize(
    "source",
    [
        script("    if args.distributed:\n        dist.barrier()\n"),
        script("    if not args.distributed:\n        raise ValueError\n    dist.barrier()\n"),
        script("    assert args.distributed\n    dist.barrier()\n"),
        script("    if dist.is_initialized():\n        dist.barrier()\n"),
        script("    model = DDP(make())\n    dist.barrier()\n"),  # without a group the program ends above
        script("    rank = dist.get_rank()\n    dist.barrier()\n"),
        script("    dist.barrier()\n    begin(args)\n", start=""),  # above the start
        script("    dist.init_process_group('gloo')\n    dist.barrier()\n"),
        script("    dist.barrier()\n", "def begin(args):\n    dist.init_process_group('nccl')\n\n\n"),
        script("    dist.barrier()\n", "def begin(args):\n    if dist.is_initialized():\n        return\n"
               "    dist.init_process_group('nccl')\n\n\n"),  # there is one already
        script("    dist.barrier()\n", EARLY.replace("        return\n", "        raise RuntimeError\n")),
        script("    dist.barrier()\n", EARLY.replace("        return\n", "        os._exit(1)\n")),
        script("    dist.barrier()\n", "def begin(args):\n    if args.slurm:\n        dist.init_process_group('nccl')\n"
               "    else:\n        init_by_mpi(args)\n\n\n"),  # both arms start one
        script("    try:\n        dist.barrier()\n    except ValueError:\n        pass\n"),
        script("    if args.many:\n        begin(args)\n    dist.barrier()\n", start=""),  # who calls it has asked
    ],
)  # fmt: skip
def test_barriers_that_stay(source: str) -> None:
    check_nothing(RULE, source)


def judged(*lines: str, before: str = "", call: str = "judge(args)") -> dict[str, str]:
    """`judge` in a file of its own, called by a program that may have no group."""
    body = "".join(f"    {line}\n" for line in (*lines, "dist.barrier()"))
    started = script(f"{before}    {call}\n").replace("import os\n", "import os\nfrom module import judge\n")
    source = "import os\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
    return {"module.py": f"{source}def judge(args):\n{body}", "start.py": started}


@pytest.mark.parametrize(
    "files",
    [
        judged("model = DDP(args.net)", "score(model)"),
        judged("if int(os.environ['LOCAL_RANK']) == 0:", "    note()"),
        judged("if args.many:", "    model = DDP(args.net)", "score(args)", before="    log.to_file(args)\n")
        | {"logs.py": "import torch.distributed as dist\n\n\nclass Log:\n    def to_file(self, args):\n        dist.barrier()\n"},
    ],
)
def test_a_function_that_nobody_comes_through_without_a_group(files: dict[str, str]) -> None:
    """It wraps its model, it asks for a variable of a launcher, or a barrier stands above each call of it."""
    check_nothing(RULE, files["module.py"], files={p: t for p, t in files.items() if p != "module.py"})


@pytest.mark.parametrize("line", ["model = args.net", "rank = os.environ.get('LOCAL_RANK', 0)"])
def test_what_does_not_end_the_function_above(line: str) -> None:
    files = judged(line)
    (found,) = findings_of(RULE, files["module.py"], files={"start.py": files["start.py"]})
    assert found.edits


def test_own_tests_stay() -> None:
    check_nothing(RULE, script("    dist.barrier()\n"), path="tests/test_main.py")
