"""DDP708: each process works out for itself where the ranks meet."""

from __future__ import annotations

import pytest

from codemods.launch.rendezvous_of_each_process import RendezvousOfEachProcess
from ddpfix.testing import check_nothing, check_told

RULE = RendezvousOfEachProcess
HEAD = (
    "import argparse\nimport os\nimport random\nimport socket\nimport time\n\nimport torch.distributed as dist\n"
    "import torch.multiprocessing as mp\n\n\n"
)
WORKER = "def worker(rank, world):\n{body}    dist.init_process_group('nccl', rank=rank, world_size=world)\n\n\n"
SPAWN = "if __name__ == '__main__':\n{body}    mp.spawn(worker, args=(2,), nprocs=2)\n"
OPTIONS = (
    "    parser = argparse.ArgumentParser()\n    parser.add_argument('--nodes', type=int, default=1)\n"
    "    args = parser.parse_args()\n"
)
COUNTED = "    args.world = args.nodes * 8\n"
FIXED = "    os.environ['MASTER_ADDR'] = 'localhost'\n"


def script(worker: str = "", main: str = "", *, between: str = "") -> str:
    return HEAD + between + WORKER.format(body=worker) + SPAWN.format(body=main)


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason="draw it once")
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    "line",
    ["os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))", "url = f'tcp://127.0.0.1:{random.randint(2000, 3000)}'",
     "os.environ['MASTER_PORT'] = str(int(time.time()) % 9999)"],
)  # fmt: skip
def test_what_each_rank_draws(line: str) -> None:
    assert "each rank" in check_told(RULE, script(f"    {line}\n"), reason="draw it once").message


def test_a_free_port_of_each_rank() -> None:
    free = "def free_port():\n    with socket.socket() as s:\n        s.bind(('', 0))\n        return s.getsockname()[1]\n\n\n"
    check_told(RULE, script("    os.environ['MASTER_PORT'] = str(free_port())\n", between=free), reason="draw it once")
    check_nothing(RULE, script(main="    os.environ['MASTER_PORT'] = str(free_port())\n", between=free))


def test_a_number_that_reaches_the_port_through_another_file() -> None:
    setup = "import os\n\ndef meet(rank, world, number):\n    os.environ['MASTER_PORT'] = str(number)\n"
    body = "    number = 10000 + int(time.time()) % 5000\n    meet(rank, world, number)\n"
    source = script(body).replace("import torch.distributed", "from meeting import meet\nimport torch.distributed", 1)
    found = check_told(RULE, source, reason="draw it once", files={"meeting.py": setup})
    assert "time.time()" in found.message


@pytest.mark.parametrize(
    ("imported", "name", "package"),
    [
        ("import lib.part", "lib.part.worker", ""),
        ("from lib import worker", "worker", "from .part import *\n"),
        ("from lib import run", "run", "from .part import worker as run\n"),
        ("from lib.part import worker as w", "w", ""),
    ],
)
def test_a_worker_that_another_file_starts(imported: str, name: str, package: str) -> None:
    start = f"import torch.multiprocessing as mp\n{imported}\n\n{SPAWN.format(body='').replace('worker', name)}"
    source = HEAD + WORKER.format(body="    os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n")
    files = {"start.py": start, "lib/__init__.py": package}
    check_told(RULE, source, reason="draw it once", files=files, path="lib/part.py")
    other = {**files, "lib/__init__.py": "", "start.py": start.replace("worker", "other")}
    check_nothing(RULE, source, files=other, path="lib/part.py")
    called = {**files, "start.py": start.replace(f"mp.spawn({name}, args=(2,), nprocs=2)", f"{name}(0, 1)")}
    check_nothing(RULE, source, files=called, path="lib/part.py")


def test_the_top_of_a_file_that_children_read_again() -> None:
    top = "os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n\n\n"
    check_told(RULE, script(between=top), reason="draw it once")


def test_the_launcher_of_each_node() -> None:
    drawn = (
        f"{OPTIONS}    port = random.randint(2000, 3000)\n    url = 'tcp://{{}}:{{}}'.format('first', port)\n"
        f"    print(args.nodes)\n"
    )
    assert "each node" in check_told(RULE, script(main=drawn), reason="what all nodes have").message


def test_localhost_where_there_are_nodes() -> None:
    source = script(main=OPTIONS + COUNTED + FIXED)
    check_told(RULE, source, reason="setdefault")
    other = source.replace("os.environ['MASTER_ADDR']", "environ['MASTER_ADDR']")
    other = other.replace("import os", "from os import environ\nimport os")
    check_told(RULE, other, reason="setdefault")
    kept = "os.environ.setdefault('MASTER_ADDR', 'localhost')"
    check_nothing(RULE, source.replace("os.environ['MASTER_ADDR'] = 'localhost'", kept))


@pytest.mark.parametrize(
    "main",
    ["    os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n", FIXED, OPTIONS + FIXED,
     f"{OPTIONS}{COUNTED}    if args.nodes == 1:\n    {FIXED}",
     f"{OPTIONS}{COUNTED}    if 'MASTER_ADDR' not in os.environ:\n    {FIXED}",
     f"{OPTIONS.replace('    args =', '''    parser.add_argument('--master-addr')''' + chr(10) + '    args =')}{COUNTED}{FIXED}"],
)  # fmt: skip
def test_what_the_parent_sets_once(main: str) -> None:
    check_nothing(RULE, script(main=main))


@pytest.mark.parametrize(
    "body",
    ["    os.environ['MASTER_PORT'] = '29500'\n",
     "    random.seed(0)\n    os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n",
     "    if 'MASTER_PORT' not in os.environ:\n        os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n",
     "    if rank == 0:\n        os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n",
     "    port = comm.bcast(random.randint(2000, 3000))\n    os.environ['MASTER_PORT'] = str(port)\n",
     "    print(time.time(), 'tcp://host:1')\n"],
)  # fmt: skip
def test_what_is_the_same_for_all_ranks(body: str) -> None:
    check_nothing(RULE, script(body))


def test_ranks_that_meet_in_a_file() -> None:
    body = "    dist.init_process_group('gloo', init_method='file:///tmp/here', rank=rank, world_size=world)\n"
    found = check_told(RULE, script(body, main=OPTIONS + COUNTED + FIXED), reason="env://")  # of the address nothing
    assert "`here`" in found.message


def test_a_program_of_one_process() -> None:
    check_nothing(RULE, f"{HEAD}def main():\n    os.environ['MASTER_PORT'] = str(random.randint(2000, 3000))\n\n\nmain()\n")


def test_own_tests_of_a_repository() -> None:
    source = script("    os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))\n")
    check_nothing(RULE, "x = 1\n", files={"tests/test_ranks.py": source})
    check_nothing(RULE, source, path="tests/test_ranks.py")


# A file that stays

FILE = """\
import os
import torch
import torch.distributed as dist


def start(rank, args):
    folder = "."
    path = os.path.abspath(os.path.join(folder, ".where_they_meet"))
    if os.name == "nt":
        dist.init_process_group("gloo", init_method="file:///" + path.replace("\\\\", "/"), rank=rank, world_size=args.gpus)
    else:
        url = f"file://{path}"
        dist.init_process_group("nccl", init_method=url, rank=rank, world_size=args.gpus)
"""
LITERAL = (
    "from torch.distributed import init_process_group\n\n\ndef setup(rank, world):\n"
    "    init_process_group('nccl', init_method='file:///shared/meeting_4', rank=rank, world_size=world)\n"
)


def test_a_file_that_is_the_same_in_every_run() -> None:
    found = check_told(RULE, FILE, reason="make a new file for each run")
    assert found.span.line == 8 and "`.where_they_meet`" in found.message
    assert "`meeting_4`" in check_told(RULE, LITERAL, reason="env://").message


@pytest.mark.parametrize(
    "path",
    ["'file://' + os.path.abspath('meeting_4')", "'file:///tmp/%s' % 'meeting_4'", "f'file://{os.getcwd()}/meeting_4'"],
)
def test_ways_to_write_its_path(path: str) -> None:
    check_told(RULE, "import os\n" + LITERAL.replace("'file:///shared/meeting_4'", path), reason="new file for each run")


@pytest.mark.parametrize(
    ("what", "source"),
    [
        ("an option that nobody declares", FILE.replace('folder = "."', "folder = args.folder")),
        ("a folder of the run", FILE.replace('folder = "."', "folder = tempfile.mkdtemp()")),
        ("a parameter", FILE.replace("start(rank, args)", "start(rank, args, folder)").replace('    folder = "."\n', "")),
        ("the job's number", LITERAL.replace("'file:///shared/meeting_4'", "'file:///shared/' + os.environ['SLURM_JOB_ID']")),
        ("the clock", LITERAL.replace("'file:///shared/meeting_4'", "f'file:///shared/{time.time()}'")),
        ("another scheme", LITERAL.replace("file:///shared/meeting_4", "env://")),
        ("another start", LITERAL.replace("from torch.distributed", "from tools.start")),
        ("the same path is removed", FILE + "\n\ndef clean(path):\n    os.remove('.where_they_meet')\n"),
        ("a name for it is removed", FILE + "\n\ndef clean(init_file):\n    os.unlink(init_file)\n"),
    ],
)  # fmt: skip
def test_files_of_a_run(what: str, source: str) -> None:
    check_nothing(RULE, source)


BY_OPTION = """\
import os
from pathlib import Path

import torch.distributed as dist


def start(options, rank, world):
    folder = Path(options.results).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    meeting = f"{folder}/.we_meet"
    dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=rank, world_size=world)
"""
IN_A_DICT = """\
import torch.distributed as dist


def how(options, rank, world):
    where = options.results + "/.we_meet"
    return {"backend": "nccl", "init_method": "file://" + where, "rank": rank, "world_size": world}


def start(options, rank, world):
    given = how(options, rank, world)
    dist.init_process_group(**given)
"""
IN_A_FIELD = """\
import torch.multiprocessing as mp

from worker import work


def start(options):
    options.env.meeting = f"file://{options.results}/.we_meet"
    mp.spawn(work, nprocs=4, args=(options,))
"""
WORKER_FILE = """\
import torch.distributed as dist


def work(rank, options):
    dist.init_process_group("nccl", init_method=options.env.meeting, rank=rank, world_size=4)
"""
OPTION = "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--results', default='out')\n"


@pytest.mark.parametrize("source", [BY_OPTION, IN_A_DICT, IN_A_FIELD])
@pytest.mark.parametrize(
    "declared",
    [{"options.py": OPTION}, {"options.py": OPTION, "run.sh": "torchrun train.py --results out/best\n"},
     {"base.yaml": "results: out/${model}\nlr: 0.1\n"},
     {"options.py": f"{OPTION}options = parser.parse_args()\noptions.results = f'here/{{options.results}}'\n"}],
)  # fmt: skip
def test_a_file_in_a_folder_that_an_option_names(source: str, declared: dict[str, str]) -> None:
    found = check_told(RULE, source, reason="new file for each run", files={**declared, "worker.py": WORKER_FILE})
    assert "the file `.we_meet`, in a folder that `results` names" in found.message


@pytest.mark.parametrize("source", [BY_OPTION, IN_A_DICT, IN_A_FIELD])
@pytest.mark.parametrize(
    ("what", "declared"),
    [
        ("nobody declares it", {}),
        ("a script gives the date", {"options.py": OPTION, "run.sh": "out=out/$(date +%s)\ntorchrun t.py --results $out\n"}),
        ("a script empties it", {"options.py": OPTION, "run.sh": "rm -rf out/a\ntorchrun train.py --results out/a\n"}),
        ("a script removes the file", {"options.py": OPTION, "run.sh": "rm -f out/.we_meet\ntorchrun train.py\n"}),
        ("Hydra names it by the time", {"base.yaml": "results: out/${now:%H-%M-%S}\n"}),
        ("Hydra's folder", {"base.yaml": "results: out\n", "go.py": "import hydra\n\n\n@hydra.main()\ndef main(c): ...\n"}),
        ("the default is the clock's", {"options.py": "import time\n" + OPTION.replace("'out'", "time.ctime()")}),
        ("worked out", {"options.py": f"{OPTION}options = parser.parse_args()\noptions.results = fresh(options.results)\n"}),
        ("removed", {"options.py": OPTION, "go.py": "import os\n\n\ndef clean(o):\n    os.remove(o.results + '/.we_meet')\n"}),
    ],
)  # fmt: skip
def test_a_folder_of_an_option_that_may_be_another_in_each_run(source: str, what: str, declared: dict[str, str]) -> None:
    check_nothing(RULE, source, files={**declared, "worker.py": WORKER_FILE})


def test_an_option_alone_names_the_file_and_a_field_that_no_group_takes() -> None:
    alone = BY_OPTION.replace('f"{folder}/.we_meet"', "folder")
    check_nothing(RULE, alone, files={"options.py": OPTION})
    other = WORKER_FILE.replace("options.env.meeting", "options.env.place")
    check_nothing(RULE, IN_A_FIELD, files={"options.py": OPTION, "worker.py": other})


def test_files_that_another_file_removes_and_the_arm_for_windows() -> None:
    removes = "if os.path.exists('/shared/meeting_4'):\n    os.remove('/shared/meeting_4')\n"
    files = {"go.py": f"import os\nfrom start import setup\n\n{removes}"}
    check_nothing(RULE, LITERAL, files=files, path="start.py")
    arm = LITERAL.replace("    init_", "    if sys.platform == 'win32':\n        init_")
    check_nothing(RULE, "import sys\n" + arm)


PROBED = {
    "a socket asked again and again": (
        "    s = socket.socket()\n    while True:\n        if s.connect_ex(('localhost', port)) != 0:\n            break\n"
        "        port += 1\n"
    ),
    "a place put together first": (
        "    s = socket.socket()\n    while True:\n        place = ('localhost', port)\n"
        "        taken = s.connect_ex(place) == 0\n"
        "        if not taken:\n            break\n        else:\n            port = port + 1\n"
    ),
    "the ports of a range": (
        "    for port in range(29500, 29600):\n        try:\n            socket.socket().bind(('', port))\n            break\n"
        "        except OSError:\n            pass\n"
    ),
    "a function that asks": "    while port_is_taken(port):\n        port += 1\n",
    "a function that looks": "    port = first_free_port(29500)\n",
}
HELPERS = """\
def port_is_taken(number):
    with socket.socket() as s:
        return s.connect_ex(("localhost", number)) == 0


def first_free_port(number):
    while port_is_taken(number):
        number += 1
    return number


"""
SET = "    os.environ['MASTER_PORT'] = str(port)\n"


@pytest.mark.parametrize("search", PROBED.values(), ids=PROBED)
def test_a_port_that_each_rank_looks_for(search: str) -> None:
    source = script(f"    port = 29500\n{search}{SET}", between=HELPERS)
    assert "each rank makes MASTER_PORT of its own" in check_told(RULE, source, reason="draw it once").message


def test_a_port_that_a_function_below_the_worker_looks_for() -> None:
    setup = f"def meet(rank, world, port):\n{PROBED['a socket asked again and again']}{SET}\n\n"
    check_told(RULE, script("    meet(rank, world, 29500)\n", between=setup), reason="draw it once")


@pytest.mark.parametrize("search", PROBED.values(), ids=PROBED)
def test_a_port_that_the_parent_looks_for(search: str) -> None:
    check_nothing(RULE, script(main=f"    port = 29500\n{search}{SET}", between=HELPERS))


@pytest.mark.parametrize(
    "search",
    [
        "    while port < 29500:\n        port += 1\n",
        "    while os.path.exists(str(port)):\n        port += 1\n",
        "    if socket.socket().connect_ex(('localhost', port)) == 0:\n        print('taken')\n",
        "    other = 8000\n    while port_is_taken(other):\n        other += 1\n",
        "    if rank == 0:\n        while port_is_taken(port):\n            port += 1\n",
    ],
)
def test_a_port_that_no_socket_decides_over(search: str) -> None:
    check_nothing(RULE, script(f"    port = 29400\n{search}{SET}", between=HELPERS))
