"""DDP307: a file that the other ranks wait for in a loop, and one name that means two caches."""

from __future__ import annotations

import pytest

from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = CacheFilledByEveryRank
HEAD = "import json\nimport os\nimport pickle\nimport time\nimport torch\nimport torch.distributed as dist\n\n\n"
LOOP = ("while not os.path.exists(path):", "    time.sleep(1)")
WRITE = "torch.save(build(), path)"
READ = "return torch.load(path)"


def rows(*lines: str, call: str = "rows('rows.pt')", above: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}{above}def rows(path):\n{body}\n\ndef main():\n    dist.init_process_group('gloo')\n    {call}\n"


def waits(write: str = WRITE, read: str = READ, *, test: str = "dist.get_rank() == 0", between: tuple[str, ...] = ()) -> str:
    return rows(f"if {test}:", f"    {write}", "else:", *(f"    {line}" for line in LOOP), *between, read)


def test_the_file_appears_when_it_is_whole() -> None:
    beside = 'f"{path}.{os.getpid()}"'
    whole = f"torch.save(build(), {beside})\n        os.replace({beside}, path)"
    check_transformed(RULE, waits(), waits(whole), unsafe=True)


def test_all_ranks_wait_in_the_loop() -> None:
    body = ("if dist.get_rank() == 0:", "    with open(path, 'w') as f:", "        json.dump(build(), f)", *LOOP)
    found = findings_of(RULE, rows(*body, "return json.load(open(path))"))
    assert len(found) == 1 and found[0].edits and "wait until `path` is there (line 13)" in found[0].message


def test_a_loop_that_gives_up() -> None:
    source = waits().replace("while not os.path.exists(path):", "while tries < 60 and not os.path.isfile(path):")
    assert findings_of(RULE, source)[0].edits
    check_nothing(RULE, source.replace("not os", "os"))


def test_a_handle_that_nobody_closes_is_told() -> None:
    source = waits("pickle.dump(build(), open(path, 'wb'))", "return pickle.load(open(path, 'rb'))")
    found = check_told(RULE, source, reason="barrier")
    assert found.span.line == 11


def test_the_caller_reads_behind_the_call() -> None:
    alone = waits(read="pass")
    check_nothing(RULE, alone)
    assert findings_of(RULE, alone.replace("    rows('rows.pt')", "    rows(place)\n    return torch.load(place)"))
    check_nothing(RULE, alone.replace("    rows('rows.pt')", "    rows(place)\n    dist.barrier()\n    return torch.load(place)"))


def test_another_function_of_the_file_reads_the_same_words() -> None:
    write = (
        "def make(folder, kind):\n    place = os.path.join(folder, kind + '.lengths.pkl')\n    if dist.get_rank() == 0:\n"
        "        pickle.dump(build(), open(place, 'wb'))\n    else:\n        while not os.path.exists(place):\n"
        "            time.sleep(1)\n\n\n"
    )
    read = "def lengths(folder, kind):\n    return pickle.load(open(os.path.join(folder, kind + '{}'), 'rb'))\n\n\n"
    start = "def main():\n    dist.init_process_group('gloo')\n    make('data', 'train')\n    lengths('data', 'train')\n"
    check_told(RULE, HEAD + write + read.format(".lengths.pkl") + start, reason="barrier")
    check_nothing(RULE, HEAD + write + read.format(".texts.pkl") + start)


@pytest.mark.parametrize(
    ("write", "between", "read"),
    [
        ("torch.save(build(), path + '.new'); os.replace(path + '.new', path)", (), READ),
        (WRITE, ("dist.barrier()",), READ),
        (WRITE, ("time.sleep(5)",), READ),
        ("open(path, 'w').close()", (), "return torch.load('other.pt')"),  # a flag that nobody reads
        ("torch.save(build(), 'other.pt')", (), READ),
    ],
)
def test_files_that_are_whole_or_read_by_nobody(write: str, between: tuple[str, ...], read: str) -> None:
    check_nothing(RULE, waits(write, read, between=between))


def test_files_of_each_rank_and_of_nobody() -> None:
    check_nothing(RULE, waits().replace("def rows(path):\n", "def rows(path):\n    path = f'{path}.{dist.get_rank()}'\n"))
    check_nothing(RULE, rows("while not os.path.exists(path):", "    time.sleep(1)", READ))
    check_nothing(RULE, waits(test="args.build"))
    alone = (f"    {line}" for line in (WRITE, *LOOP, READ))
    check_nothing(RULE, rows("if dist.get_rank() == 0:", *alone))


CACHE = (
    "if args.cached and os.path.exists(cache):", "    data = torch.load(cache)", "else:", "    data = build()",
    "    if dist.get_rank() == 0:", "        torch.save(data, cache)",
)  # fmt: skip


def test_a_name_that_means_two_caches() -> None:
    twice = rows("cache = path_of(path)", *CACHE, "cache = path_of(args.other)", *CACHE, "return data")
    found = findings_of(RULE, twice)
    assert [f.message.rpartition("(line ")[2] for f in found] == ["12)", "19)"]
