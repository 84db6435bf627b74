"""Every fault point of every scenario, in two processes; writes the counts and the page made of them.

`python -m tests.faults.every [PART]`: PART, as `3/10`, takes every tenth point from the third on and writes nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from tests.faults.page import COUNTS, page
from tests.faults.points import KINDS, SCENARIOS, Scenario, lab, strike, survey

WORKERS = 2
OWN = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.test",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.test",
}  # fmt: skip


class Tally:
    """What the runs came to, by scenario."""

    def __init__(self) -> None:
        self.points: dict[str, int] = {}
        self.ends = {scenario.name: Counter[str]() for scenario in SCENARIOS}
        self.lost = Counter[str]()
        self.lock = threading.Lock()

    def add(self, scenario: Scenario, end: str) -> None:
        with self.lock:
            self.ends[scenario.name][end] += 1

    def fail(self, scenario: Scenario, what: str) -> None:
        with self.lock:
            self.lost[scenario.name] += 1
            print(f"{scenario.name}: {what}", flush=True)


def work(worker: int, first: int, step: int, tally: Tally) -> None:
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, lab(Path(folder)) as made:
        for scenario in SCENARIOS:
            points = survey(made, scenario)
            tally.points[scenario.name] = len(points)
            for at in range(first + worker * step, len(points) + 1, step * WORKERS):
                for kind in KINDS:
                    try:
                        tally.add(scenario, strike(made, scenario, at, kind))
                    except AssertionError as error:
                        tally.fail(scenario, f"{kind} at point {at} ({points[at - 1]}): {str(error)[:1500]}")
            print(f"worker {worker}: {scenario.name}: {len(points)} points", flush=True)


def main() -> int:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    first, _, step = (part or "1/1").partition("/")
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="faults-home-") as home:
        os.environ.update({**OWN, "HOME": home, "XDG_CONFIG_HOME": home})
        threads = [threading.Thread(target=work, args=(n, int(first), int(step), tally)) for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = {
        scenario.name: {
            "points": tally.points[scenario.name],
            "runs": sum(tally.ends[scenario.name].values()) + tally.lost[scenario.name],
            "ends": dict(sorted(tally.ends[scenario.name].items())),
            "failed": tally.lost[scenario.name],
        }
        for scenario in SCENARIOS
    }
    version = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.split()[2]
    counts = {"git": version, "kinds": list(KINDS), "scenarios": rows}
    if part:
        print(json.dumps(rows, indent=1))
    else:
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
        (Path(__file__).parents[2] / "docs" / "reliability.md").write_text(page(), encoding="utf-8")
    return 1 if sum(tally.lost.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
