"""`make fleet-soak`: 300 repositories, with every kind that ends badly, on local processes and on a cluster that is killed.

It says what it measured; what must hold is asserted. Other programs on the machine make it slower: their load is told, too.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.bot.conftest import IDENTITY, KEY, TOKEN
from tests.bot.github_forge import Account, Clock, GitHubForge
from tests.fleet.soak_numbers import measured
from tests.fleet.soak_runs import Run, killed_publish, killed_run
from tests.fleet.soak_trees import CAUSES, made

COUNT = int(os.environ.get("DDPFIX_FLEET_SOAK", "300"))
KILLS = 5
WAVE = min(40, COUNT // 8)
LIMITS = ("--seconds", "60", "--memory", "1024", "--files", "2000")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update({"HOME": name, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "TMPDIR": name})
        for key in ("AUTHOR", "COMMITTER"):
            os.environ |= {f"GIT_{key}_NAME": "Ada", f"GIT_{key}_EMAIL": "ada@example.test"}
        forge = GitHubForge(folder / "forge", Clock())
        forge.accounts[TOKEN] = Account("mender[bot]")
        names = made(forge, "team", COUNT)
        for one in names:
            forge.know(f"team/{one}")
        say(f"{COUNT} repositories: {dict(Counter(one.partition('-')[0] for one in names))}")
        same(folder, forge, names)
        scale(folder, forge, [one for one in names if one.startswith(("made", "real"))][:24])
        engine(folder)
        forge.close()


def say(line: str) -> None:
    sys.stdout.write(f"{line} (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors)\n")
    sys.stdout.flush()


def campaign(folder: Path, name: str, forge: GitHubForge, names: list[str], *options: str, local: bool) -> Run:
    """A planned campaign, by paths or by the forge's names."""
    (folder / name).mkdir()
    listed = [str(forge.repository(f"team/{one}")) if local else f"team/{one}" for one in names]
    (folder / name / "repos.txt").write_text("".join(f"{line}\n" for line in listed))
    environment = {
        "DDPFIX_TOKEN": TOKEN, "DDPFIX_READ_TOKEN_127_0_0_1": TOKEN, "DDPFIX_MARKS_KEY": KEY,
        "DDPFIX_STATE": str(folder / name / "state"),
    }  # fmt: skip
    run = Run(folder / name, (*LIMITS, *options), environment)
    planned = run("plan", "repos.txt", "--server", forge.url, "--name", name)
    assert planned.returncode == 0, planned.stderr
    return run


def same(folder: Path, forge: GitHubForge, names: list[str]) -> None:
    """The same result here and on a cluster that is killed, and each repository with one pull request at most."""
    drawn = random.Random(23)
    begun, cpu = time.monotonic(), children()
    local = campaign(folder, "local", forge, names, "--workers", "2", local=True)
    assert local("run", *local.options).returncode == 1
    say(f"local: {time.monotonic() - begun:.0f} s, {children() - cpu:.0f} s of a processor")
    rows = local.rows()
    for one, (_, cause, _, _) in rows.items():
        assert cause == CAUSES.get(one.partition("-")[0], ""), (one, cause)
    begun = time.monotonic()
    cluster = campaign(folder, "cluster", forge, names, "--engine", "dask", "--workers", "2", local=False)
    workers, drivers = killed_run(cluster, len(names), KILLS, drawn)
    found = cluster.rows()
    differ = {one: (rows[one], found[one]) for one in rows if rows[one] != found[one]}
    assert not differ, differ
    counts = Counter(cause or "done" for _, cause, _, _ in found.values())
    say(f"cluster: {time.monotonic() - begun:.0f} s, {workers} workers and {drivers} drivers killed -9, the same: {dict(counts)}")
    begun = time.monotonic()
    who = f"{IDENTITY[0]} <{IDENTITY[1]}>"
    options = ("--waves", f"{WAVE},1", "--author", who, "--per-hour", "100000")
    killed = killed_publish(cluster, options, WAVE, KILLS, drawn)
    opened = Counter(len(repo.pulls) for repo in forge.repos.values())
    assert set(opened) == {0, 1} and opened[1] == cluster.pulls() == WAVE, opened
    seconds = time.monotonic() - begun
    say(f"publish: {seconds:.0f} s, killed -9 {killed} times: {opened[1]} repositories with one pull request, none with two")


def scale(folder: Path, forge: GitHubForge, names: list[str]) -> None:
    """Repositories a second with one worker and with two; and what a repository costs of a processor, whatever else runs."""
    rates, costs = {}, {}
    for workers in (1, 2):
        run = campaign(folder, f"scale{workers}", forge, names, "--workers", str(workers), local=True)
        begun, cpu = time.monotonic(), children()
        assert run("run", *run.options).returncode == 0
        spent, used = time.monotonic() - begun, children() - cpu
        rates[workers], costs[workers] = len(names) / spent, used / len(names)
        say(f"{workers} workers: {rates[workers]:.2f} repositories a second, {used / spent:.2f} processors at work")
    say(f"1 -> 2 workers: {rates[2] / rates[1]:.2f} times by the clock; {costs[1]:.2f} and {costs[2]:.2f} s of a processor each")


def engine(folder: Path) -> None:
    """What ledger and engine cost where there is nothing to do."""
    for kind, count in (("local", 10_000), ("dask", 2_000)):
        wall, cpu, peak = measured(folder, kind, count)
        each = 1000 * wall / count
        say(f"{kind}: {count} without work in {wall:.1f} s ({cpu:.1f} s of a processor), {each:.1f} ms each, {peak:.0f} MiB")
        assert each <= 50 and (kind != "local" or wall < 60)


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
