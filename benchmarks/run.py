"""`make bench`: ddpfix beside ruff on real trees, as ratios of processor time within one run.

    python -m benchmarks.run [FOLDER ...]

Without folders the packages of this virtual environment serve: transformers (a sparse tree: few files have to do with
several processes) and lightning (a dense one). Each is copied into a fresh git repository first. The must column is the
most that each figure may be.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, paired
from codemods.api.codemod import DISTRIBUTED

BIN = Path(sys.executable).parent
DDPFIX = [str(BIN / "ddpfix")]
RUFF = [str(BIN / "ruff"), "check", "--isolated", "--select", "F401", "--quiet", "--exit-zero"]
MUST = {"sparse": 2.0, "dense": 12.0, "warm": 4.0, "small": 0.7, "help": 0.4, "memory": 250.0}
DENSE = 0.3  # the share of files with a word of several processes from which a tree is a dense one
DIFF, EDIT = 0.6, 0.003  # seconds that writing the diff may take, and what each edit adds
RACY = 2.5  # seconds; ddpfix stores no report of files that are newer than this


def corpora(arguments: list[str]) -> Iterator[tuple[str, Path]]:
    """(name, folder) of the trees to measure."""
    if arguments:
        yield from ((Path(a).resolve().name, Path(a).resolve()) for a in arguments)
        return
    for name in ("transformers", "lightning"):
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            yield name, Path(next(iter(spec.submodule_search_locations)))
        else:
            print(f"{name} is not installed here: make install-torch")


def kind_of(files: list[Path]) -> str:
    """`dense` where many of the files have to do with several processes, else `sparse`."""
    speaking = sum(any(word in data for word in DISTRIBUTED) for data in (f.read_bytes() for f in files))
    return "dense" if speaking > DENSE * len(files) else "sparse"


def as_repository(source: Path, place: Path) -> Path:
    target = place / source.name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc", "*.so", ".git"), symlinks=True)
    subprocess.run(["git", "init", "--quiet"], cwd=target, check=True)
    subprocess.run(["git", "add", "--all"], cwd=target, check=True, capture_output=True)
    return target


def row(name: str, ratio: float, must: float, detail: str) -> None:
    mark = "ok" if ratio <= must else "OVER" if ratio > 2 * must else "over"
    print(f"{name:44}{ratio:9.2f}{must:9.2f}  {mark:5} {detail}")


def measure_tree(name: str, folder: Path) -> None:
    files = [f for f in folder.rglob("*.py") if f.is_file()]
    kind = kind_of(files)
    time.sleep(RACY)
    cold, other = paired([[*DDPFIX, "check", "--no-cache", "."], [*RUFF, "--no-cache", "."]], folder)
    row(f"{name} cold check : ruff", cold.cpu / other.cpu, MUST[kind], _ms(cold, other) + f", {len(files)} files, {kind}")
    warm, other = paired([[*DDPFIX, "check", "."], [*RUFF, "."]], folder)
    row(f"{name} warm check : ruff warm", warm.cpu / other.cpu, MUST["warm"], _ms(warm, other))
    row(f"{name} peak memory, MB", cold.peak, MUST["memory"], "")
    check, diff = paired([[*DDPFIX, "check", "--no-cache", "."], [*DDPFIX, "diff", "."]], folder, runs=3)
    shown = subprocess.run([*DDPFIX, "diff", "."], cwd=folder, check=False, capture_output=True, text=True).stdout
    edits = shown.count("\n@@ ")
    must = DIFF + EDIT * edits
    row(f"{name} diff over check, s", diff.cpu - check.cpu, must, f"{_ms(diff, check)}, {edits} edits")


def _ms(ours: Cost, theirs: Cost) -> str:
    cpu = f"{ours.cpu * 1000:.0f} ms to {theirs.cpu * 1000:.0f} ms of processor time"
    return f"{cpu}, wall {ours.wall:.2f} s to {theirs.wall:.2f} s"


SMALL = """import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        loss = self(batch)
        self.log("val/loss", loss)
"""


def main() -> None:
    print(f"{'':44}{'measured':>9}{'must':>9}")
    with tempfile.TemporaryDirectory(prefix="ddpfix-bench-") as folder:
        place = Path(folder)
        (place / "small").mkdir()
        (place / "small" / "model.py").write_text(SMALL, encoding="utf-8")
        small, helped = paired([[*DDPFIX, "check", "model.py"], [*DDPFIX, "--help"]], place / "small")
        row("check of one small file, s", small.wall, MUST["small"], "")
        row("ddpfix --help, s", helped.wall, MUST["help"], "")
        os.environ["DDPFIX_CACHE_DIR"] = str(place / "cache")
        for name, source in corpora(sys.argv[1:]):
            measure_tree(name, as_repository(source, place))


if __name__ == "__main__":
    main()
