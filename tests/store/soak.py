"""Thousands of random edits of real trees: after each one, what is kept and worked out anew is what a cold run finds.

python -m tests.store.soak [--edits 300] [--seed 1] FOLDER…: folders that are read, never changed; the examples, if none is named.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from codemods.api.findings import Finding
from codemods.runtime.record import replace
from ddpfix import catalog, engine, settings
from ddpfix.discovery import discover
from ddpfix.results import Report
from tests.store.edits import SKIPPED, Edits

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"


def found(root: Path, *, kept: bool) -> Report:
    (tree,) = discover([root])
    chosen = settings.load(root)
    report = engine.check(tree, chosen, catalog.selected(chosen.selection), use_cache=kept)
    return replace(report, elapsed=0.0)


def differences(folder: Path, edits: int, rng: random.Random) -> list[str]:
    """What differed after which edit, in a copy of the folder."""
    told = []
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve() / "tree"
        os.environ["DDPFIX_CACHE_DIR"] = f"{place}/cache"
        shutil.copytree(folder, root, ignore=shutil.ignore_patterns(*SKIPPED), symlinks=True)
        made = Edits(root, folder, rng)
        found(root, kept=True)
        for number in range(edits):
            what = "; ".join(made.make() for _ in range(rng.choice([1, 1, 1, 2, 4])))
            try:
                kept, cold = found(root, kept=True), found(root, kept=False)
            except settings.SettingsError:
                continue  # an edit of the settings file
            if kept != cold:
                told.append(f"{folder.name} after edit {number} ({what})\n{told_apart(kept, cold)}")
                shutil.rmtree(f"{place}/cache")  # the next edit begins with what is right
                found(root, kept=True)
    return told


def told_apart(kept: Report, cold: Report) -> str:
    rows = [f"  kept: {_shown(f)}" for f in kept.findings if f not in cold.findings]
    rows += [f"  cold: {_shown(f)}" for f in cold.findings if f not in kept.findings]
    if kept.failed != cold.failed or (kept.scanned, kept.parsed) != (cold.scanned, cold.parsed):
        rows += [f"  kept: {kept.scanned} {kept.parsed} {kept.failed}", f"  cold: {cold.scanned} {cold.parsed} {cold.failed}"]
    return "\n".join(rows or ["  the order of the findings"])


def _shown(finding: Finding) -> str:
    return f"{finding.place} {finding.code} {finding.message[:100]} | {finding.reason[:100]} | {finding.evidence}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[])
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    for folder in given.folders or sorted(p for p in EXAMPLES.iterdir() if p.is_dir()):
        started = time.perf_counter()
        told = differences(folder.resolve(), given.edits, random.Random(f"{given.seed} {folder}"))
        print(f"{folder}: {given.edits} edits, {len(told)} differences, {time.perf_counter() - started:.0f} s", flush=True)
        for text in told:
            print(text, flush=True)
        wrong += len(told)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
