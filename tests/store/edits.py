"""Random edits of a tree on the disk, of the kinds that people make between two runs."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

SKIPPED = frozenset({".git", "__pycache__"})
_NAME = re.compile(rb"\b(?:class|def)[ \t]+(\w+)")
_WORD = re.compile(rb"[A-Za-z_]\w{3,}")
_NUMBER = re.compile(rb"\d+")
_LINES = (
    b"import torch.distributed as dist\n", b"from lightning.pytorch.utilities import rank_zero_only\n",
    b"    if dist.get_rank() == 0:\n        print('x')\n", b"    dist.barrier()\n", b"    self.log('loss', loss)\n",
    b"    print(loss)\n", b"torch.manual_seed(rank)\n", b"rank = int(os.environ['LOCAL_RANK'])\n", b"    return\n", b"    pass\n",
    b"# ddpfix: ignore[DDP101] not here\n", b"local_id = int(os.environ['RANK'])\n",
)  # fmt: skip
_OTHERS = (".yaml", ".yml", ".sh", ".txt", ".md", ".toml", ".ipynb", ".json", ".cfg")
_PINS = (b"torch==1.13\n", b"lightning==2.4\n", b"pytorch-lightning<2\n", b"transformers>=4.40\n", b"accelerate==0.20\n")


class Edits:
    """Of one folder; `original` is what it is put back to from time to time. names: which files there are."""

    def __init__(self, root: Path, original: Path, rng: random.Random) -> None:
        self.root, self._original, self._rng = root, original, rng
        self.made: list[str] = []

    def make(self) -> str:
        """One edit; what it was."""
        kinds: list[Callable[[Path], None]] = [
            self._line_out, self._line_twice, self._blank, self._line_in, self._line_in, self._line_in, self._renamed,
            self._renamed_everywhere, self._word, self._number, self._restored, self._restored, self._cut_off, self._guarded,
        ]  # fmt: skip
        if self._rng.random() < 0.15:
            kind: Callable[[Path], None] = self._rng.choice([self._deleted, self._copied, self._moved, self._pinned])
        else:
            kind = self._rng.choice(kinds)
        path = self._any_file()
        kind(path)
        return f"{kind.__name__} {path.relative_to(self.root)}"

    def _files(self, *ends: str) -> list[Path]:
        every = (p for p in self.root.rglob("*") if p.is_file() and SKIPPED.isdisjoint(p.parts))
        return sorted(p for p in every if not ends or p.name.endswith(ends))

    def _any_file(self) -> Path:
        ends = (".py",) if self._rng.random() < 0.8 else _OTHERS
        return self._rng.choice(self._files(*ends) or self._files())

    def _change(self, path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(True))))

    def _at(self, lines: list[bytes]) -> int:
        return self._rng.randrange(len(lines) or 1)

    def _line_out(self, path: Path) -> None:
        self._change(path, lambda lines: lines[: (at := self._at(lines))] + lines[at + 1 :])

    def _line_twice(self, path: Path) -> None:
        self._change(path, lambda lines: lines[: (at := self._at(lines)) + 1] + lines[at:])

    def _blank(self, path: Path) -> None:
        self._change(path, lambda lines: [*lines[: (at := self._at(lines))], b"\n", *lines[at:]])

    def _line_in(self, path: Path) -> None:
        new = self._rng.choice(_LINES)
        self._change(path, lambda lines: [*lines[: (at := self._at(lines))], new, *lines[at:]])

    def _guarded(self, path: Path) -> None:
        """A statement put below a test of the rank."""

        def change(lines: list[bytes]) -> list[bytes]:
            at = self._at(lines)
            line = lines[at] if lines else b""
            indent = line[: len(line) - len(line.lstrip())]
            return [*lines[:at], indent + b"if rank == 0:\n", b"    " + line, *lines[at + 1 :]]

        self._change(path, change)

    def _cut_off(self, path: Path) -> None:
        self._change(path, lambda lines: lines[: self._at(lines)])

    def _renamed(self, path: Path) -> None:
        """A class or a function under another name, in its own file alone."""
        data = path.read_bytes()
        if names := _NAME.findall(data):
            name = self._rng.choice(names)
            path.write_bytes(re.sub(rb"\b" + name + rb"\b", name + b"2", data))

    def _renamed_everywhere(self, path: Path) -> None:
        if names := _NAME.findall(path.read_bytes()):
            name = self._rng.choice(names)
            for other in self._files(".py"):
                data = other.read_bytes()
                if name in data:
                    other.write_bytes(re.sub(rb"\b" + name + rb"\b", name + b"_new", data))

    def _word(self, path: Path) -> None:
        """A word of another file in the place of one of this."""
        data, other = path.read_bytes(), self._any_file().read_bytes()
        old, new = _WORD.findall(data), _WORD.findall(other)
        if old and new:
            path.write_bytes(data.replace(self._rng.choice(old), self._rng.choice(new), self._rng.choice([1, -1])))

    def _number(self, path: Path) -> None:
        data = path.read_bytes()
        if found := _NUMBER.findall(data):
            path.write_bytes(data.replace(self._rng.choice(found), b"%d" % self._rng.randrange(9), 1))

    def _restored(self, path: Path) -> None:
        old = self._original / path.relative_to(self.root)
        if old.is_file():
            shutil.copyfile(old, path)

    def _deleted(self, path: Path) -> None:
        if len(self._files(".py")) > 2:
            path.unlink()

    def _copied(self, path: Path) -> None:
        every = [p for p in sorted(self._original.rglob("*")) if p.is_file() and SKIPPED.isdisjoint(p.parts)]
        old = self._rng.choice(every)  # what was deleted comes back, too
        new = self.root / old.relative_to(self._original)
        if self._rng.random() < 0.3:
            new = new.with_name(f"again_{new.name}")
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(old, new)

    def _moved(self, path: Path) -> None:
        folder = self._rng.choice(self._files()).parent
        path.rename(folder / path.name)

    def _pinned(self, path: Path) -> None:
        file = self.root / "requirements.txt"
        file.write_bytes((file.read_bytes() if file.is_file() else b"") + self._rng.choice(_PINS))
