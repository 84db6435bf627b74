"""`make bench`: ddpfix beside ruff on real trees, as ratios of processor time within one run.

    python -m benchmarks.run [FOLDER ...]

Without folders the packages of this virtual environment serve: transformers (a sparse tree: few files have to do with
several processes) and lightning (a dense one). Each is copied into a fresh git repository first.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, paired

BIN = Path(sys.executable).parent
DDPFIX = [str(BIN / "ddpfix")]
RUFF = [str(BIN / "ruff"), "check", "--isolated", "--select", "F401", "--quiet", "--exit-zero"]
MUST = {"sparse": 1.0, "dense": 6.0, "warm": 2.0, "small": 0.35, "help": 0.4, "memory": 250.0}


def corpora(arguments: list[str]) -> Iterator[tuple[str, Path, str]]:
    """(name, folder, kind) of the trees to measure."""
    if arguments:
        yield from ((Path(a).name, Path(a), "sparse") for a in arguments)
        return
    for name, kind in (("transformers", "sparse"), ("lightning", "dense")):
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            yield name, Path(next(iter(spec.submodule_search_locations))), kind


def as_repository(source: Path, place: Path) -> Path:
    target = place / source.name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc", "*.so", ".git"), symlinks=True)
    subprocess.run(["git", "init", "--quiet"], cwd=target, check=True)
    subprocess.run(["git", "add", "--all"], cwd=target, check=True, capture_output=True)
    return target


def row(name: str, ratio: float, must: float, detail: str) -> None:
    mark = "ok" if ratio <= must else "OVER" if ratio > 2 * must else "over"
    print(f"{name:44}{ratio:9.2f}{must:9.2f}  {mark:5} {detail}")


def measure_tree(name: str, folder: Path, kind: str) -> None:
    files = sum(1 for _ in folder.rglob("*.py"))
    cold, other = paired([[*DDPFIX, "check", "--no-cache", "."], [*RUFF, "--no-cache", "."]], folder)
    row(f"{name} cold check : ruff", cold.cpu / other.cpu, MUST[kind], _ms(cold, other) + f", {files} files")
    warm, other = paired([[*DDPFIX, "check", "."], [*RUFF, "."]], folder)
    row(f"{name} warm check : ruff warm", warm.cpu / other.cpu, MUST["warm"], _ms(warm, other))
    row(f"{name} peak memory, MB", cold.peak, MUST["memory"], "")
    check, diff = paired([[*DDPFIX, "check", "--no-cache", "."], [*DDPFIX, "diff", "."]], folder, runs=3)
    row(f"{name} diff over check, s", diff.cpu - check.cpu, 0.6, _ms(diff, check))


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
        for name, source, kind in corpora(sys.argv[1:]):
            measure_tree(name, as_repository(source, place), kind)


if __name__ == "__main__":
    main()
