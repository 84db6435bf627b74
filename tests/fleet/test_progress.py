"""What is seen of a run: a live table on a terminal, a line of JSON a repository otherwise, numbers for Prometheus on a port."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

from ddpfix.fleet.ledger import Taken
from ddpfix.fleet.progress import Progress, metrics
from ddpfix.fleet.result import Result
from ddpfix.metrics import Metric, one, served, text
from tests.fleet.conftest import MODULE, Fleet
from tests.programs import forked_python

ONE = Taken(1, "team/one", "https://h/team/one.git", 1, "", "")
TWO = Taken(2, "team/two", "https://h/team/two.git", 1, "", "")


def test_a_terminal_shows_one_table_and_no_lines_of_json(fleet: Fleet) -> None:
    fleet.add("one", {"train.py": MODULE})
    fleet.plan("one", "missing", options=("--name", "metrics"))
    env = {name: value for name, value in os.environ.items() if name != "CI"} | {"TERM": "xterm", "COLUMNS": "100"}
    ours, theirs = pty.openpty()
    command = [forked_python(env), *fleet.command("run", "--workers", "1")[1:]]
    with subprocess.Popen(command, cwd=fleet.folder, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as driver:
        os.close(theirs)
        seen = b""
        with suppress(OSError):  # the other side has ended
            while part := os.read(ours, 65536):
                seen += part
    os.close(ours)
    assert driver.returncode == 1
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    last = shown[shown.rindex("metrics") :]
    rows = [" ".join(line.split()) for line in last.splitlines() if line.strip()]
    assert rows[:5] == ["metrics", "0 waiting", "0 at work", "1 done", "1 failed"]
    assert "1 failed: git" in rows and "1 findings: safe fixes" in rows and '{"repository"' not in shown
    assert shown.count("metrics") > 1, "it is drawn again as the run goes on"


def test_prometheus_reads_how_a_run_goes_on() -> None:
    now = [100.0]
    progress = Progress({"waiting": 3, "done": 5}, lambda: now[0])
    progress.began(ONE)
    progress.began(TWO)
    now[0] += 30
    progress.ended(ONE, Result(cause="timeout", seconds=30.0))
    progress.ended(TWO, None)
    with served("127.0.0.1:0", lambda: metrics(progress)) as url, urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        page = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.removesuffix("metrics"), timeout=10)
    lines = page.splitlines()
    assert 'ddpfix_fleet_repositories{state="waiting"} 2' in lines and 'ddpfix_fleet_repositories{state="done"} 5' in lines
    assert 'ddpfix_fleet_failed_total{cause="timeout"} 1' in lines and "ddpfix_fleet_work_seconds_total 30" in lines
    assert "# TYPE ddpfix_fleet_failed_total counter" in lines
    assert progress.per_hour == 120 and progress.left == 60
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {re.split(r"[ {]", line)[0] for line in lines if not line.startswith("#")} <= names


def test_a_label_holds_whatever_it_holds() -> None:
    page = text([Metric("m", "gauge", "Some.", [({"name": 'a"b\\c\nd'}, 1.5)]), one("n", "counter", "More.", 2)])
    assert page == '# HELP m Some.\n# TYPE m gauge\nm{name="a\\"b\\\\c\\nd"} 1.5\n# HELP n More.\n# TYPE n counter\nn 2\n'


def test_an_address_that_cannot_be_used_is_an_error_before_any_work(fleet: Fleet) -> None:
    fleet.add("one", {"train.py": MODULE})
    fleet.plan("one")
    for address in ("9184", "127.0.0.1:port"):
        done = fleet("run", "--metrics", address)
        assert done.returncode == 2 and "--metrics cannot be used" in done.stderr and "Traceback" not in done.stderr
    assert fleet.status()["states"] == {"waiting": 1}
