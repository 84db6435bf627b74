"""The example classifier as a repository: 24 findings, one unsafe, one told, a group, and fixes that share imports and lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ddpfix.discovery import discover
from ddpfix.repository_state import head_of
from ddpfix.review.items import Review, ReviewItem, review
from ddpfix.settings import Settings
from tests.gitrepos import make

BEFORE = Path(__file__).parents[2] / "fixtures" / "examples" / "lightning-classifier" / "before"
STOPWATCH = b"""\
import time

import lightning.pytorch as pl


class Stopwatch(pl.Callback):
    def on_train_start(self, trainer, pl_module):
        self.started = time.time()
        print("start")

    def on_train_end(self, trainer, pl_module):
        print(time.time() - self.started)


STOPS = pl.callbacks.EarlyStopping(monitor="train/loss")
"""
FILES = {p.relative_to(BEFORE).as_posix(): p.read_bytes() for p in sorted(BEFORE.rglob("*")) if p.is_file()}
FILES["classifier/stopwatch.py"] = STOPWATCH
FILES["train.py"] += b"\nfrom classifier.stopwatch import Stopwatch\n\nCALLBACKS = [Stopwatch()]\n"


def classifier(folder: Path, *, name: str = "repo") -> Path:
    return make(folder, dict(FILES), name=name)


def reviewed(repo: Path) -> Review:
    """What a reviewer sees of a repository; looked at once for the same files, which most tests begin with."""
    (tree,) = discover([repo])
    files = tuple((path.relative_to(repo).as_posix(), path.read_bytes()) for path in sorted(repo.rglob("*")) if _is_file(path))
    if files not in _SEEN:
        _SEEN[files] = review(tree, Settings())
    return replace(_SEEN[files], root=tree.root, base=head_of(repo))


_SEEN: dict[tuple[tuple[str, bytes], ...], Review] = {}


def _is_file(path: Path) -> bool:
    return path.is_file() and ".git" not in path.parts


def at(found: Review, path: str, line: int, code: str) -> ReviewItem:
    (item,) = [i for i in found.items if (i.finding.path, i.finding.span.line, i.finding.code) == (path, line, code)]
    return item
