"""DDP718: spawned ranks that look for an address in an environment that nobody has filled."""

from __future__ import annotations

import pytest

from codemods.launch.unset_rendezvous import UnsetRendezvous
from ddpfix.testing import MAIN, check_nothing, check_told, check_transformed

RULE = UnsetRendezvous
HEAD = "import os\n\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
START = "dist.init_process_group('nccl', rank=rank, world_size=world)"
SPAWN = "mp.spawn(worker, args=(2,), nprocs=2)"
ADDRESS = "os.environ.setdefault(\"MASTER_ADDR\", \"localhost\")"
PORT = "os.environ.setdefault(\"MASTER_PORT\", \"29500\")"


def script(start: str = START, *, spawn: str = SPAWN, above: str = "", head: str = HEAD) -> str:
    return f"{head}{above}def worker(rank, world):\n    {start}\n    train(rank)\n\n\nif __name__ == '__main__':\n    {spawn}\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


@pytest.mark.parametrize(
    "start",
    [
        START,
        "dist.init_process_group(backend='nccl', init_method='env://', rank=rank, world_size=world)",
        "dist.init_process_group('nccl', None, None, world, rank)",
        "if world > 1:\n        dist.init_process_group('nccl', rank=rank, world_size=world)",
    ],
)
def test_what_meets_by_the_environment(start: str) -> None:
    before = script(start)
    check_transformed(RULE, before, before.replace(SPAWN, f"{ADDRESS}\n    {PORT}\n    {SPAWN}"))


def test_a_helper_starts_the_group_and_os_is_not_imported() -> None:
    head = HEAD.removeprefix("import os\n\n")
    helper = f"def setup(rank, world):\n    {START}\n\n\n"
    before = script("setup(rank, world)", above=helper, head=head)
    told = before.replace(SPAWN, f"{ADDRESS}\n    {PORT}\n    {SPAWN}")
    check_transformed(RULE, before, told.replace("as mp\n", "as mp\nimport os\n", 1))


def test_the_worker_of_another_file() -> None:
    other = f"import torch.distributed as dist\n\n\ndef worker(rank, world):\n    {START}\n"
    before = f"import os\n\nimport torch.multiprocessing as mp\n\nfrom work import worker\n\n\ndef main():\n    {SPAWN}\n"
    check_transformed(RULE, before, before.replace(SPAWN, f"{ADDRESS}\n    {PORT}\n    {SPAWN}"), files={"work.py": other})


def test_a_script_of_several_nodes() -> None:
    option = (
        "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--nodes', type=int)\n"
        "args = parser.parse_args()\nprint(args.nodes)\n\n\n"
    )
    check_told(RULE, script(above=option), reason="several nodes")


def test_the_rank_is_not_handed_over_either() -> None:
    check_told(RULE, script("dist.init_process_group('nccl')"), reason="hand `rank`")


@pytest.mark.parametrize(
    "source",
    [
        script(f"os.environ['MASTER_ADDR'] = 'localhost'\n    os.environ['MASTER_PORT'] = '1234'\n    {START}"),
        script(spawn=f"os.environ.update(MASTER_ADDR='localhost', MASTER_PORT='1234')\n    {SPAWN}"),
        script("dist.init_process_group('nccl', init_method='tcp://127.0.0.1:1234', rank=rank, world_size=world)"),
        script("dist.init_process_group('nccl', init_method=url, rank=rank, world_size=world)"),
        script("dist.init_process_group('nccl', store=store, rank=rank, world_size=world)"),
        script("dist.init_process_group('mpi', rank=rank, world_size=world)"),
        script("dist.init_process_group('nccl', **told)"),
        script("dist.init_process_group('nccl', 'tcp://127.0.0.1:1234', None, world, rank)"),
        script(spawn="worker(0, 1)"),
        script(above="from dotenv import load_dotenv\n\nload_dotenv()\n\n\n"),
        script(spawn=f"for k, v in told.items():\n        os.environ[k] = v\n    {SPAWN}"),
        script(spawn="mp.Process(target=worker, args=(0, 2)).start()"),
    ],
    ids=["set by the rank", "set by the parent", "another address", "an address of elsewhere", "a store", "mpi", "told by a dict",
         "an address by place", "no spawn", "a file of variables", "variables of elsewhere", "a process that is forked"],
)  # fmt: skip
def test_what_is_right_or_unknown(source: str) -> None:
    check_nothing(RULE, source)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "Set MASTER_ADDR and MASTER_PORT, then `python main.py`.\n"),
        ("run.sh", "export MASTER_ADDR=localhost MASTER_PORT=1234\npython train.py\n"),
        ("run.sh", f"torchrun --nproc_per_node 1 {MAIN}\n"),
        ("start.py", "import os\n\nos.environ['MASTER_ADDR'] = os.environ['MASTER_PORT'] = '0'\nfrom pkg.main import worker\n"),
    ],
    ids=["by the user", "by a script", "by a launcher", "by a program that imports it"],
)
def test_somebody_else_sets_them(path: str, text: str) -> None:
    if path == "start.py":
        text = text.replace("pkg.main", MAIN.removesuffix(".py").replace("/", "."))
    check_nothing(RULE, script(), files={path: text})


@pytest.mark.parametrize(
    ("address", "port"), [("env://12355", "12355"), ("env://localhost:4000", "4000"), ("env://here", "29500")]
)
def test_what_stands_behind_env_is_not_read(address: str, port: str) -> None:
    before = script(f"dist.init_process_group('nccl', '{address}', rank=rank, world_size=world)")
    check_transformed(RULE, before, before.replace(SPAWN, f"{ADDRESS}\n    {PORT.replace('29500', port)}\n    {SPAWN}"))


def test_a_query_is_read() -> None:
    check_nothing(RULE, script("dist.init_process_group('nccl', f'env://?rank={rank}&world_size={world}')"))
    check_nothing(RULE, script("dist.init_process_group('nccl', 'env://?rank=0', world_size=world)"))


def test_a_tool_that_the_program_runs_sets_nothing() -> None:
    above = "import subprocess\n\nsubprocess.run(['git', 'diff'])\n\n\n"
    before = script(above=above)
    check_transformed(RULE, before, before.replace(SPAWN, f"{ADDRESS}\n    {PORT}\n    {SPAWN}"))
    check_nothing(RULE, script(above=above.replace("'git', 'diff'", "sys.executable, 'train.py'")))
    check_nothing(RULE, script(above=above.replace("import subprocess", "from subprocess import run")))


def test_a_port_alone_is_missing() -> None:
    before = script(spawn=f"os.environ['MASTER_ADDR'] = 'localhost'\n    {SPAWN}")
    check_transformed(RULE, before, before.replace(SPAWN, f"{PORT}\n    {SPAWN}"))


def test_a_launcher_has_started_the_parent() -> None:
    spawn = 'mp.spawn(worker, args=(int(os.environ["WORLD_SIZE"]),), nprocs=1)'
    check_nothing(RULE, script(spawn=spawn))
    own = f'os.environ["WORLD_SIZE"] = "2"\n    {spawn}'  # the script puts it there itself
    before = script(spawn=own)
    check_transformed(RULE, before, before.replace(spawn, f"{ADDRESS}\n    {PORT}\n    {spawn}"))
