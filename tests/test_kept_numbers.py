"""DDP404: numbers that rank 0 has put into a file, before the others come to the same function and read them."""

from __future__ import annotations

import pytest

from codemods.data_loading.unordered_labels import UnorderedLabels
from ddpfix.testing import findings_of

NUMBER = """\
def number(rows):
    numbers = {}
    for name in set(rows):
        numbers[name] = len(numbers)
    return numbers


"""
TABLE = """\
def table(path, rows):
    if os.path.exists(path):
        return read(path)
    numbers = number(rows)
    write(path, numbers)
    return numbers


"""
OPENED = TABLE.replace("    write(path, numbers)\n", '    with open(path, "w") as f:\n        json.dump(numbers, f)\n')
IN_ARMS = """\
def table(path, rows):
    if Path(path).exists():
        numbers = read(path)
    else:
        numbers = number(rows)
        write(path, numbers)
    return numbers


"""
FIRST = """\
def main(path, rows):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        table(path, rows)
        dist.barrier()
    else:
        dist.barrier()
    return table(path, rows)
"""
AT_ONCE = 'def main(path, rows):\n    dist.init_process_group("nccl")\n    return table(path, rows)\n'
HEAD = "import json\nimport os\nfrom pathlib import Path\n\nimport torch.distributed as dist\n\n\n"
END = "\n\nif __name__ == '__main__':\n    main('names.txt', read('rows.txt'))\n"


@pytest.mark.parametrize("table", [TABLE, OPENED, IN_ARMS])
def test_rank_zero_comes_first(table: str) -> None:
    assert not findings_of(UnorderedLabels, HEAD + NUMBER + table + FIRST + END)


def test_the_function_stands_in_another_file() -> None:
    files = {"run.py": f"{HEAD}from module import table\n\n\n{FIRST}{END}", "run.sh": "torchrun --nproc_per_node=2 run.py\n"}
    assert not findings_of(UnorderedLabels, HEAD + NUMBER + TABLE, files)


@pytest.mark.parametrize(
    ("table", "main"),
    [
        (TABLE, AT_ONCE),  # each rank finds the file missing
        (TABLE.replace("    write(path, numbers)\n", ""), FIRST),
        (TABLE.replace("write(path,", 'write("other.txt",'), FIRST),
        (TABLE.replace("    if os.path.exists(path):\n        return read(path)\n", ""), FIRST),
        (TABLE, FIRST.replace("    return table(path, rows)", "    return table(path, rows), number(rows)")),
    ],
)
def test_each_rank_numbers_for_itself(table: str, main: str) -> None:
    assert findings_of(UnorderedLabels, HEAD + NUMBER + table + main + END)
