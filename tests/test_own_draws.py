from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

PROGRAM = """
import os
import random

import numpy as np
import torch
from accelerate import Accelerator


def main(folder, count):
    accelerator = Accelerator()
    model = accelerator.prepare(torch.nn.Linear(4, 4))
SEED
    LINES


if __name__ == "__main__":
    main("out", 4)
"""

OPENED = "with open(PATH, 'w') as f:\n        f.write('drawn')"


def program(draw: str, path: str, seed: str = "", write: str = OPENED) -> str:
    lines = draw + "\n    " + write.replace("PATH", path)
    return PROGRAM.replace("SEED", f"    {seed}" if seed else "").replace("LINES", lines)


@pytest.mark.parametrize(
    ("draw", "path"),
    [
        ("number = random.randint(0, 99999)", "os.path.join(folder, f'{number}.txt')"),
        ("number = torch.randint(0, 99999, (1,)).item()", "f'{folder}/{number}.txt'"),
        ("word = ''.join(random.choices('abcdef', k=8))", "folder + '/' + word"),
        ("numbers = np.random.randint(0, 9, (count,))\n    numbers = sorted(numbers.tolist())", "f'{folder}/{numbers[0]}.txt'"),
        ("name = str(np.random.randint(9999))\n    target = os.path.join(folder, name)", "target"),
    ],
)
def test_names_that_each_process_draws_are_its_own(draw: str, path: str) -> None:
    check_nothing(UnguardedFileIo, program(draw, path))
    assert findings_of(UnguardedFileIo, program(draw, "os.path.join(folder, 'a.txt')"))


@pytest.mark.parametrize("rank", ["accelerator.process_index", "7 + accelerator.process_index"])
def test_a_seed_of_the_rank_keeps_the_draws_apart(rank: str) -> None:
    draw = "number = random.randint(0, 99999)"
    check_nothing(UnguardedFileIo, program(draw, "f'{folder}/{number}.txt'", f"random.seed({rank})"))


@pytest.mark.parametrize(
    ("draw", "path", "seed"),
    [
        ("number = random.randint(0, 99999)", "f'{folder}/{number}.txt'", "random.seed(7)"),
        ("number = torch.randint(0, 9, (1,)).item()", "f'{folder}/{number}.txt'", "torch.manual_seed(count)"),
        ("rows = torch.rand(2, 3)", "f'{folder}/{rows.shape}.txt'", ""),
        ("rows = random.sample(range(9), count)", "f'{folder}/{len(rows)}.txt'", ""),
        ("g = torch.Generator()\n    n = torch.randint(0, 9, (1,), generator=g).item()", "f'{folder}/{n}.txt'", ""),
    ],
)
def test_names_that_may_be_the_same_on_every_rank(draw: str, path: str, seed: str) -> None:
    assert findings_of(UnguardedFileIo, program(draw, path, seed))


def test_objects_that_save_themselves() -> None:
    loop = "for i, picture in enumerate(model(folder).images):\n        picture.save(os.path.join(folder, NAME))"
    draw = "numbers = torch.randint(0, 9, (count,)).tolist()"
    assert not findings_of(UnguardedFileIo, program(draw, "", "", loop.replace("NAME", "f'{numbers[i]}.png'")))
    assert findings_of(UnguardedFileIo, program(draw, "", "", loop.replace("NAME", "f'{i}.png'")))
