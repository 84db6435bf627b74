"""DDP202: behind a folder that only one rank can make, what a callee writes is that one rank's alone."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import findings_of

RUN = """
import os
import torch.distributed as dist


class Run:
    def __init__(self, root):
        self.root = root
        self.note = os.path.join(self.root, "note.txt")
        self.prepare()

    def prepare(self):
        if not os.path.exists(self.root):
            os.makedirs(self.root)
            self.write_note()

    def write_note(self):
        with open(self.note, "w") as f:
            f.write("begun")


def main():
    run = Run("out")
    dist.init_process_group("gloo")


if __name__ == "__main__":
    main()
"""
HANDED = """
import os
import torch.distributed as dist


def write_note(path, text):
    with open(path, "w") as f:
        f.write(text)


def main():
    dist.init_process_group("gloo")
    root = "out"
    os.makedirs(root)
    write_note(os.path.join(root, "note.txt"), "begun")


if __name__ == "__main__":
    main()
"""


def test_the_one_rank_that_made_the_folder_writes() -> None:
    assert not findings_of(UnguardedFileIo, RUN)
    assert not findings_of(UnguardedFileIo, HANDED)


def test_every_rank_writes_where_a_folder_that_is_there_is_fine() -> None:
    for source in (RUN, HANDED):
        head, name, tail = source.partition("os.makedirs(self.root" if "self.root" in source else "os.makedirs(root")
        assert findings_of(UnguardedFileIo, f"{head}{name}, exist_ok=True{tail}")


def test_every_rank_writes_in_another_folder() -> None:
    assert findings_of(UnguardedFileIo, RUN.replace('os.path.join(self.root, "note.txt")', '"notes/note.txt"'))


def test_another_caller_comes_there_on_every_rank() -> None:
    assert findings_of(UnguardedFileIo, HANDED.replace("    root =", '    write_note("else.txt", "begun")\n    root ='))


OWN = """
import os
from pathlib import Path

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    name = sorted(os.listdir("todo"))[0]
    {made}
    {written}
    dist.barrier()


if __name__ == "__main__":
    main()
"""
WRITTEN = 'with open(f"pairs/{name}/top.txt", "w") as f:\n        f.write("first")'


def own(made: str, written: str = WRITTEN) -> str:
    return OWN.replace("{made}", made).replace("{written}", written)


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ('os.makedirs(f"pairs/{name}")', WRITTEN),
        ('os.mkdir(os.path.join("pairs", name))', WRITTEN),
        ('os.makedirs("pairs/" + name)', 'with open(os.path.join("pairs", name, "top.txt"), "w") as f:\n        f.write("1")'),
        ('os.makedirs(f"pairs/{name}/")', 'path = f"pairs/{name}/top.txt"\n    open(path, "w").write("1")'),
        ('(Path("pairs") / name).mkdir()', '(Path("pairs") / name / "top.txt").write_text("1")'),
        ('os.makedirs("pairs")', 'with open("pairs/top.txt", "w") as f:\n        f.write("first")'),
    ],
)
def test_a_folder_that_is_put_together(made: str, written: str) -> None:
    assert not findings_of(UnguardedFileIo, own(made, written))


@pytest.mark.parametrize(
    "made",
    [
        'os.makedirs(f"pairs/{name}", exist_ok=True)',
        'os.makedirs(f"others/{name}")',
        'os.makedirs(f"pairs/{name}/to")',
        'if not os.path.exists(f"pairs/{name}"):\n        os.makedirs(f"pairs/{name}")',
        'try:\n        os.makedirs(f"pairs/{name}")\n    except FileExistsError:\n        pass',
    ],
)
def test_a_folder_that_every_rank_comes_past(made: str) -> None:
    assert findings_of(UnguardedFileIo, own(made))


def test_a_state_below_such_a_folder() -> None:
    saved = 'torch.save({"a": 1}, f"pairs/{name}/top.pt")'
    assert not findings_of(UnguardedSave, own('os.makedirs(f"pairs/{name}")', saved))
    assert findings_of(UnguardedSave, own('os.makedirs(f"pairs/{name}", exist_ok=True)', saved))
