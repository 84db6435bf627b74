"""Every fault point of every scenario, in two processes; keeps the counts as it goes, and writes the page made of them.

`python -m tests.faults.every [PART]`: PART, as `3/10`, takes every tenth point from the third on and writes nothing; the name of
a scenario takes that alone, and leaves the counts of the others as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.page import COUNTS, page
from tests.faults.points import KINDS, SCENARIOS, Scenario, lab, strike, survey

WORKERS = 2
KEPT_EVERY = 100
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
OWN = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.test",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.test",
}  # fmt: skip


class Tally:
    """What the runs came to, by scenario; a run that is stopped leaves what it had counted."""

    def __init__(self, scenarios: Sequence[Scenario], *, keep: bool) -> None:
        self.scenarios = scenarios
        self.points: dict[str, int] = {}
        self.ends = {scenario.name: Counter[str]() for scenario in SCENARIOS}
        self.lost = Counter[str]()
        self.lock = threading.Lock()
        self.keep = keep

    def add(self, scenario: Scenario, end: str) -> None:
        with self.lock:
            self.ends[scenario.name][end] += 1
            if sum(end.total() for end in self.ends.values()) % KEPT_EVERY == 0:
                self.write()

    def fail(self, scenario: Scenario, what: str) -> None:
        with self.lock:
            self.lost[scenario.name] += 1
            print(f"{scenario.name}: {what}", flush=True)

    def rows(self) -> dict[str, dict[str, object]]:
        return {
            scenario.name: {
                "points": self.points.get(scenario.name, 0),
                "runs": self.ends[scenario.name].total() + self.lost[scenario.name],
                "ends": dict(sorted(self.ends[scenario.name].items())),
                "failed": self.lost[scenario.name],
            }
            for scenario in self.scenarios
        }

    def write(self) -> None:
        if self.keep:
            version = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.split()[2]
            before = json.loads(COUNTS.read_text(encoding="utf-8"))["scenarios"] if COUNTS.exists() else {}
            rows = {**before, **self.rows()}
            in_order = {scenario.name: rows[scenario.name] for scenario in SCENARIOS if scenario.name in rows}
            counts = {"git": version, "kinds": list(KINDS), "scenarios": in_order}
            COUNTS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
            PAGE.write_text(page(), encoding="utf-8")


def work(worker: int, first: int, step: int, tally: Tally) -> None:
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, lab(Path(folder)) as made:
        for scenario in reversed(tally.scenarios):  # the short ones first
            points = survey(made, scenario)
            tally.points[scenario.name] = len(points)
            mine = range(first + worker * step, len(points) + 1, step * WORKERS)
            for at in [mine[n] for start in range(7) for n in range(start, len(mine), 7)]:  # all over the run from the beginning
                for kind in KINDS:
                    try:
                        tally.add(scenario, strike(made, scenario, at, kind))
                    except AssertionError as error:
                        tally.fail(scenario, f"{kind} at point {at} ({points[at - 1]}): {str(error)[:1500]}")
            print(f"worker {worker}: {scenario.name}: {len(points)} points", flush=True)


def main() -> int:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    part = given if "/" in given else ""
    chosen = [scenario for scenario in SCENARIOS if scenario.name == given or part or not given]
    first, _, step = (part or "1/1").partition("/")
    tally = Tally(chosen, keep=not part)
    with tempfile.TemporaryDirectory(prefix="faults-home-") as home:
        os.environ.update({**OWN, "HOME": home, "XDG_CONFIG_HOME": home})
        threads = [threading.Thread(target=work, args=(n, int(first), int(step), tally)) for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tally.write()
    print(json.dumps(tally.rows(), indent=1))
    return 1 if tally.lost.total() else 0


if __name__ == "__main__":
    sys.exit(main())
