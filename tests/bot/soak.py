"""`make soak`: 1,000 deliveries to the bot as it is, on real git, while it is killed and stopped again and again.

Pushes to many repositories of several owners, commands in comments, and deliveries sent twice. Each 202 must come to something:
every repository ends with one pull request that fits its base, every command with its receipt.
"""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.bot.conftest import FILES, KEY, MODULE, TOKEN
from tests.bot.githost import git, import_commit
from tests.bot.github_forge import Account, Clock, GitHubForge
from tests.bot.service import Service, comment, push

DELIVERIES = int(os.environ.get("DDPFIX_SOAK", "1000"))
RESTARTS = 25  # of which every fifth is a SIGTERM
SLUGS = [f"own{n % 5}/r{n}" for n in range(40)]


def main() -> None:
    drawn = random.Random(18)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update({"HOME": name, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull})
        forge = GitHubForge(folder / "github", Clock())
        forge.accounts[TOKEN] = Account("mender[bot]")
        for slug in SLUGS:
            forge.add(slug, FILES).writers.add("ada")
        state = {"DDPFIX_STATE": str(folder / "state"), "DDPFIX_MARKS_KEY": KEY, "DDPFIX_TOKEN": TOKEN, "TMPDIR": name}
        service = Service(folder, "forge", forge.api, **state)
        begun = time.monotonic()
        try:
            for number, slug in enumerate(SLUGS):
                service.deliver("push", f"first{number}", push(slug))
            settle(folder)
            said, ends = deliver(service, forge, drawn)
            settle(folder)
        finally:
            service.kill()
        report(forge, said, ends, time.monotonic() - begun)
        forge.close()


def deliver(service: Service, forge: GitHubForge, drawn: random.Random) -> tuple[list[int], Counter[str]]:
    """(the ids of the commands, how the service was ended and how often). It dies at moments that nobody chose."""
    said, ends, lock = list[int](), Counter[str](), threading.Lock()
    accepted, over = [0], threading.Event()

    def end() -> None:
        for number in range(RESTARTS):
            while accepted[0] < (number + 1) * DELIVERIES // (RESTARTS + 1) and not over.is_set():
                time.sleep(0.01)
            with lock:
                if number % 5 == 4:
                    service.end()
                else:
                    service.kill()
                ends["SIGTERM" if number % 5 == 4 else "kill -9"] += 1
                service.again()

    ender = threading.Thread(target=end)
    ender.start()
    for number in range(DELIVERIES):
        slug = drawn.choice(SLUGS)
        if number % 4 == 3 and forge.repos[slug].pulls:
            ids = forge.say(slug, 1, "ada", "/ddpfix explain DDP101")
            said.append(ids)
            event, payload = "issue_comment", comment(slug, 1, ids, "/ddpfix explain DDP101")
        else:
            if number % 3 == 0:
                module = MODULE.replace(b"Model", b"Model%d" % number)
                files = {f"m{number}.py": module}
                import_commit(forge.repository(slug), "main", files, "by hand", parent="refs/heads/main^0")
            event, payload = "push", push(slug)
        for _ in range(1 + (number % 10 == 0)):  # some are sent twice
            while service.deliver(event, f"d{number}", payload) not in (200, 202):
                with lock:
                    pass
        accepted[0] += 1
        time.sleep(drawn.random() * 0.2)
    ender.join()
    return said, ends


def settle(folder: Path) -> None:
    """Until nothing waits any more."""

    def left() -> int:
        with sqlite3.connect(folder / "state" / "bot.sqlite") as tables:
            return int(tables.execute("SELECT count(*) FROM job").fetchone()[0])

    until = time.monotonic() + 1800
    while left() and time.monotonic() < until:
        time.sleep(0.5)
    assert not left(), f"{left()} jobs are left\n{(folder / 'log').read_text()[-3000:]}"


def report(forge: GitHubForge, said: list[int], ends: Counter[str], seconds: float) -> None:
    opened = Counter[int]()
    for slug in SLUGS if DELIVERIES >= 1000 else [s for s in SLUGS if forge.repos[s].pulls]:
        pulls = forge.repos[slug].pulls
        opened[len(pulls)] += 1
        base = forge.tip(slug, "refs/heads/main")
        assert git(forge.repository(slug), "merge-base", "refs/heads/main", "refs/heads/ddpfix/safe") == base, slug
        assert "sync_dist" in git(forge.repository(slug), "show", "refs/heads/ddpfix/safe:model.py"), slug
    receipts = Counter(i for slug in SLUGS for i, content in forge.repos[slug].reactions if content == "rocket")
    assert set(opened) <= {1}, opened
    assert set(said) <= set(receipts), f"{len(set(said) - set(receipts))} commands without a receipt"
    comments = [c for slug in SLUGS for c in forge.repos[slug].comments.values() if c["user"]["login"] == "mender[bot]"]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    sys.stdout.write(
        f"{DELIVERIES} deliveries to {len(SLUGS)} repositories, {dict(ends)}, {seconds:.0f} s, at most {peak} MB: "
        f"{opened[1]} repositories with one pull request each, none with two; {len(said)} commands, each with its receipt, "
        f"{sum(receipts.values()) - len(said)} done twice; {len(comments)} answers; none lost\n"
    )


if __name__ == "__main__":
    main()
