from __future__ import annotations

import pytest

from codemods.launch.children_waited_for_in_turn import ChildrenWaitedForInTurn
from ddpfix.testing import check_nothing, check_told

WORKER = """\
import os
import subprocess
import sys
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)


def prepare(part):
    print(part)


"""


def launcher(*lines: str) -> str:
    return WORKER + "def launch(size):\n" + "".join(f"    {line}\n" for line in lines)


START = ("children = []", "for rank in range(size):", "    child = mp.Process(target=worker, args=(rank, size))",
         "    child.start()", "    children.append(child)")  # fmt: skip
POPEN = ("children = [subprocess.Popen([sys.executable, 'w.py'], env=dict(os.environ, RANK=str(r))) for r in range(size)]",)

WORDS = ("words, children = sys.argv[1:], []", "for r in range(size):", "    words.append('--rank={}'.format(r))")


def test_example_of_the_page() -> None:
    sections = ChildrenWaitedForInTurn.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(ChildrenWaitedForInTurn, before, reason="spawn")
    check_nothing(ChildrenWaitedForInTurn, after)


@pytest.mark.parametrize(
    "wait",
    [
        ("for child in children:", "    child.join()"),
        ("for i, c in enumerate(children):", "    c.join()", "    print(i, c.exitcode)"),
        ("[c.join() for c in children]",),
    ],
)
def test_processes(wait: tuple[str, ...]) -> None:
    check_told(ChildrenWaitedForInTurn, launcher(*START, *wait), reason="torch.multiprocessing.spawn")


@pytest.mark.parametrize(
    "start",
    [
        POPEN,
        ("env = os.environ.copy()", "children = []", "for r in range(size):", "    env['LOCAL_RANK'] = str(r)",
         "    children.append(subprocess.Popen(['python', 'w.py'], env=env))"),
        ("children = [subprocess.Popen(['python', 'w.py', f'--local_rank={r}']) for r in range(size)]",),
        (*WORDS, "    children.append(subprocess.Popen([str(sys.executable)] + words, stdout=None))", "    words = words[:-1]"),
        (*WORDS, "    children.append(subprocess.Popen([sys.executable, *words]))", "    words.pop()"),
    ],
)  # fmt: skip
def test_commands(start: tuple[str, ...]) -> None:
    check_told(ChildrenWaitedForInTurn, launcher(*start, "codes = [c.wait() for c in children]"), reason="poll()")


def test_through_functions() -> None:
    source = WORKER + (
        "def entry(rank, size, run):\n    worker(rank, size)\n    run()\n\n\n"
        "def launch(size, fn):\n    children = [mp.Process(target=fn, args=(r, size)) for r in range(size)]\n"
        "    for c in children:\n        c.start()\n    for c in children:\n        c.join()\n\n\nlaunch(2, entry)\n"
    )
    check_told(ChildrenWaitedForInTurn, source, reason="torchrun")


@pytest.mark.parametrize(
    "lines",
    [
        ("mp.spawn(worker, args=(size,), nprocs=size)",),
        (*START, "for child in children:", "    child.join(5)"),
        (*START, "for child in children:", "    child.join(timeout=5)"),
        (*START, "while any(c.is_alive() for c in children):", "    pass", "for child in children:", "    child.join()"),
        (*START, "for child in children:", "    child.join()", "for child in children:", "    child.terminate()"),
        (*START, "mp.connection.wait([c.sentinel for c in children])", "for child in children:", "    child.join()"),
        (*POPEN, "while any(c.poll() is None for c in children):", "    pass", "[c.wait() for c in children]"),
        ("child = mp.Process(target=worker, args=(0, size))", "child.start()", "child.join()"),
        ("for rank in range(size):", "    child = mp.Process(target=worker, args=(rank, size))", "    child.start()",
         "    child.join()"),
        ("children = [mp.Process(target=prepare, args=(r,)) for r in range(size)]", "for c in children:", "    c.start()",
         "for c in children:", "    c.join()"),
        ("children = [subprocess.Popen(['python', f'{r}.py']) for r in range(size)]", "[c.wait() for c in children]"),
        (*START, "return ','.join(children)"),
    ],
)  # fmt: skip
def test_launchers_that_look_after_their_children(lines: tuple[str, ...]) -> None:
    check_nothing(ChildrenWaitedForInTurn, launcher(*lines))


SCRIPT = """\
import subprocess
import sys

words = ["prepare.py", *sys.argv[1:]]
children = []
for part in range(4):
    words.append("--rank={}".format(part))
    children.append(subprocess.Popen([sys.executable] + words))
    words.pop()
for child in children:
    child.wait()
"""


def test_a_script_that_starts_the_ranks_of_another_file() -> None:
    joins = "import torch.distributed as dist\n\n\ndef start(args):\n    dist.init_process_group('nccl', rank=args.rank)\n"
    check_told(ChildrenWaitedForInTurn, SCRIPT, files={"train.py": joins}, reason="poll()")


@pytest.mark.parametrize(
    "script", [SCRIPT, SCRIPT.replace("--rank=", "--part="), SCRIPT.replace("    words.append", "    print")]
)
def test_parts_that_wait_for_nobody(script: str) -> None:
    joins = "import torch.distributed as dist\n\n\ndef start(args):\n    dist.init_process_group('nccl', rank=args.rank)\n"
    check_nothing(ChildrenWaitedForInTurn, script, files={} if script is SCRIPT else {"train.py": joins})


def test_tests_of_a_repository_stay() -> None:
    source = launcher(*START, "for child in children:", "    child.join()")
    check_nothing(ChildrenWaitedForInTurn, source, path="tests/test_group.py")


FORKS = """\
import os
import torch.distributed as dist


def run(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)


def numbered(rank, size):
    os.environ["NODE_RANK"] = str(rank)
    os.execvp("python", ["python", "train.py"])


def prepare(rank, size):
    print(rank)


"""


def forks(*lines: str) -> str:
    return FORKS + "def launch(size):\n" + "".join(f"    {line}\n" for line in lines)


FORKED = ("for rank in range(size):", "    pid = os.fork()", "    if pid == 0:", "        run(rank, size)", "        os._exit(0)")


@pytest.mark.parametrize(
    "lines",
    [
        (*FORKED, "pid, status = os.wait()", "print(pid, status)"),
        (*FORKED, "os.waitpid(pid, 0)"),
        ("for rank in range(size):", "    if not os.fork():", "        numbered(rank, size)", "os.wait()"),
        ("for rank in range(size):", "    if (child := os.fork()) != 0:", "        print(child)", "    else:",
         "        os.environ.update(RANK=str(rank))", "        prepare(rank, size)", "        os._exit(0)", "os.wait()"),
        ("rank = 0", "while rank < size:", "    child = os.fork()", "    if child:", "        rank += 1", "    else:",
         "        os.environ['LOCAL_RANK'] = str(rank)", "        os.execvp('python', ['python', 't.py'])", "os.wait()"),
    ],
)  # fmt: skip
def test_one_of_the_forked_ranks_is_waited_for(lines: tuple[str, ...]) -> None:
    check_told(ChildrenWaitedForInTurn, forks(*lines), reason="as many children as were forked")


def test_forks_of_a_program_and_imported_names() -> None:
    source = FORKS.replace("import os\n", "import os\nfrom os import fork, wait\n") + (
        'if __name__ == "__main__":\n    for rank in range(4):\n        pid = fork()\n        if pid == 0:\n'
        "            run(rank, 4)\n            os._exit(0)\n    wait()\n"
    )
    check_told(ChildrenWaitedForInTurn, source, reason="torchrun")


@pytest.mark.parametrize(
    "lines",
    [
        (*FORKED, "for _ in range(size):", "    os.wait()"),
        (*FORKED, "codes = [os.wait()[1] for _ in range(size)]"),
        (*FORKED, "os.wait()", "os.killpg(0, 15)"),
        (*FORKED, "os.wait()", "os.wait()"),
        (*(line.replace("run(", "prepare(") for line in FORKED), "os.wait()"),
        ("pid = os.fork()", "if pid == 0:", "    run(0, size)", "    os._exit(0)", "os.wait()"),
        ("for rank in range(size):", "    pid = os.fork()", "    if pid == 0:", "        run(rank, size)", "        os._exit(0)",
         "    os.waitpid(pid, 0)"),
        ("for rank in range(size):", "    pid = os.fork()", "    if pid == 0:", "        prepare(rank, size)",
         "        os._exit(0)", "    else:", "        run(rank, size)", "os.wait()"),
        ("for part in range(size):", "    if os.fork() == 0:", "        os.environ['RANK'] = '0'", "        os._exit(0)",
         "os.wait()"),
    ],
)  # fmt: skip
def test_forks_that_are_all_waited_for_or_are_no_ranks(lines: tuple[str, ...]) -> None:
    check_nothing(ChildrenWaitedForInTurn, forks(*lines))
