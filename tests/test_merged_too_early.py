"""DDP302: rank 0 reads the parts of all ranks, and nobody waits for those who still write."""

from __future__ import annotations

import pytest

from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = MissingBarrier
HEAD = "import glob, json, os, shutil, time\nimport torch\nimport torch.distributed as dist\n\n\n"
WAITS = "    if dist.is_initialized():\n        dist.barrier()\n"
WRITE = "    with open(f'{out}/part_{rank}.json', 'w') as f:\n        json.dump(rows, f)\n"
MERGE = """\
    if rank == 0:
        for i in range(world):
            with open(f'{out}/part_{i}.json') as f:
                rows += json.load(f)
"""
LISTED = """\
    if rank == 0:
        for name in sorted(glob.glob(f'{out}/part_*.json')):
            rows += json.load(open(name))
"""


NAMED = """\
    if rank == 0:
        for n in range(world):
            path = out + '/rows' + str(n) + '.pt'
            rows += torch.load(path)
"""
NAMED_WRITE = "    torch.save(rows, os.path.join(out, 'rows-%d.pt' % rank))\n"
NAMED_LIST = """\
    if dist.get_rank() == 0 and world > 1:
        parts = [torch.load(os.path.join(out, 'rows-%d.pt' % r)) for r in range(world)]
"""


def program(write: str = WRITE, merge: str = MERGE, middle: str = "") -> str:
    start = "def main(rows, out, world):\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n"
    return f"{HEAD}{start}{write}{middle}{merge}    return rows\n"


@pytest.mark.parametrize(
    ("write", "merge"),
    [
        (WRITE, MERGE),
        (WRITE, LISTED),
        (WRITE, MERGE.replace("for i", "for rank_of_part").replace("{i}", "{rank_of_part}")),
        ("    torch.save(rows, out + '/rows' + str(dist.get_rank()) + '.pt')\n", NAMED),
        (NAMED_WRITE, NAMED_LIST),
        (WRITE, "    if rank == 0:\n        shutil.rmtree(out)\n"),
    ],
)  # fmt: skip
def test_a_barrier_above_what_rank_0_reads(write: str, merge: str) -> None:
    before = program(write, merge)
    barrier = WAITS if "if rank" in merge else "    dist.barrier()\n"
    fixed = check_transformed(RULE, before, before.replace(merge, f"{barrier}{merge}"), unsafe=True)
    assert "each rank writes its own in line" in fixed[0].message


def test_an_early_return() -> None:
    loop = "    for i in range(world):\n        rows += json.load(open(f'{out}/part_{i}.json'))\n"
    merge = f"    if rank != 0:\n        return []\n{loop}"
    before = program(merge=merge)
    check_transformed(RULE, before, before.replace(merge, f"{WAITS}{merge}"), unsafe=True)


HELPERS = """
def save(rows, out):
    torch.save(rows, f"{out}/part-{dist.get_rank()}.pt")


def load_all(out, world):
    return [torch.load(f"{out}/part-{i}.pt") for i in range(world)]


def merge(out, world):
    if dist.get_rank() == 0:
        print(load_all(out, world))


def main(rows, out, world):
    dist.init_process_group("gloo")
    save(rows, out)
    merge(out, world)
"""


def test_helpers() -> None:
    (found,) = findings_of(RULE, HEAD + HELPERS)
    assert "(line 12), and each rank writes its own in line 8" in found.message
    check_nothing(RULE, HEAD + HELPERS.replace("    merge(out", "    dist.barrier()\n    merge(out"))
    one = HELPERS.replace("    save(rows, out)\n", "    if dist.get_rank() == 1:\n        save(rows, out)\n")
    check_nothing(RULE, HEAD + one)


SHARE = """
def judge(model, data, out):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = torch.utils.data.DataLoader(data, sampler=torch.utils.data.DistributedSampler(data))
    for image, name in loader:
        torch.save(model(image), os.path.join(out, f"{name}.pt"))
    if rank == 0:
        for name in data.names:
            print(torch.load(os.path.join(out, f"{name}.pt")))
"""


def test_samples_of_the_own_share() -> None:
    assert "reads the parts of all ranks" in findings_of(RULE, HEAD + SHARE)[0].message
    check_nothing(RULE, HEAD + SHARE.replace(", sampler=torch.utils.data.DistributedSampler(data)", ""))


POLLS = "    if rank == 0:\n        while not os.path.exists(f'{out}/done'):\n            time.sleep(1)\n"


@pytest.mark.parametrize(
    ("write", "merge", "middle"),
    [
        (WRITE, MERGE, "    dist.barrier()\n"),
        (WRITE, MERGE, "    dist.all_reduce(torch.ones(1))\n"),
        (WRITE, POLLS + MERGE.partition("\n")[2], ""),  # it waits by itself
        (WRITE, "    if rank == 0:\n        rows = json.load(open(f'{out}/part_{rank}.json'))\n", ""),  # its own
        (WRITE, MERGE.replace("part_", "old_"), ""),  # another series
        (WRITE, MERGE, "    out = os.path.dirname(out)\n"),  # another folder by now
        (WRITE, LISTED.replace("part_", "step_"), ""),
        (WRITE, LISTED.replace("rows += json.load(open(name))", "print(name)"), ""),  # no part is opened
        (WRITE, LISTED.replace("part_*.json", "*"), ""),  # whatever lies there
        (WRITE.replace("_{rank}", ""), MERGE.replace("_{i}", ""), ""),  # one file, which is another mistake
        (f"    if rank == 0:\n    {WRITE}".replace("\n        j", "\n            j"), MERGE, ""),  # rank 0's part alone
        (WRITE, MERGE.replace("rank == 0", "world == 1"), ""),
        (WRITE, MERGE.replace("part_{i}", "part_{world}"), ""),  # not what the loop counts
        (WRITE, "    if rank == 0:\n        shutil.rmtree(f'{out}/old')\n", ""),
    ],
)
def test_what_rank_0_may_read(write: str, merge: str, middle: str) -> None:
    check_nothing(RULE, program(write, merge, middle))


def test_in_a_loop_of_other_lengths() -> None:
    body = "".join(f"    {line}\n" for line in (WRITE + MERGE).splitlines())
    source = program("    for row in open(f'{out}/own_{rank}.txt'):\n", body)
    check_told(RULE, source, reason="not shown")


def test_nothing_in_a_repositorys_own_tests() -> None:
    assert not findings_of(RULE, program(), path="tests/test_parts.py")
