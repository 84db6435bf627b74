"""`ddpfix review --html` and `--serve` as they are run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ddpfix.decisions import Decision, Decisions, read, write
from ddpfix.review.items import Review
from tests.gitrepos import own_settings, sh
from tests.programs import ddpfix
from tests.review.project import at, classifier, reviewed

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def repo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    own_settings(monkeypatch, tmp_path)
    return classifier(tmp_path)


@contextmanager
def serving(repo: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it printed."""
    own = {**os.environ, "DDPFIX_CACHE_DIR": str(repo / ".git" / "no-cache")}
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "review", "--serve", *more]
    with subprocess.Popen(command, cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own) as process:
        assert process.stdout
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def send(url: str, where: str, review: Review, decisions: dict[str, Any]) -> httpx2.Response:
    parts = urlsplit(url)
    token = parse_qs(parts.query)["token"][0]
    body = {"version": 1, "base": review.base, "decisions": decisions}
    return httpx2.post(f"http://{parts.netloc}/{where}", json=body, headers={"X-Ddpfix-Token": token}, timeout=180)


def test_the_commands_of_the_page_about_it_are_these() -> None:
    """Each is run by one of the tests here."""
    page = (Path(__file__).parents[2] / "docs" / "review-page.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console[^\n]*\n(.*?)```", page, re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    assert [words[1:] for words in lines if words[0] == "ddpfix"] == [
        ["review", "--html", "review.html"],
        ["review", "--serve"],
        ["apply", "--decisions", "ddpfix-decisions.json"],
        ["review", "--serve", "--port", "8377"],
    ]


def test_html_writes_one_file_and_asks_nothing(repo: Path) -> None:
    done = ddpfix(repo, "review", "--html", "out/review.html")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"out/review.html: 24 findings. Open it in a browser")
    assert "<!doctype html>" in (repo / "out/review.html").read_text()
    assert sh(repo, "status", "--porcelain") == "?? out/"


def test_html_takes_along_what_was_decided(repo: Path) -> None:
    review = reviewed(repo)
    first = review.items[0].id
    write(repo / "mine.json", Decisions(review.base, {first: Decision("accept")}))
    assert ddpfix(repo, "review", "--html", "review.html", "--decisions", "mine.json").returncode == 0
    assert f'"decisions":{{"{first}":{{"verdict":"accept"}}}}' in (repo / "review.html").read_text()


@pytest.mark.browser
def test_begun_in_a_browser_ended_with_apply(tab: Page, repo: Path) -> None:
    assert ddpfix(repo, "review", "--html", "review.html").returncode == 0
    tab.goto((repo / "review.html").as_uri())
    chosen = at(reviewed(repo), "classifier/resnet.py", 69, "DDP101")
    tab.locator(f"#f-{chosen.id}").get_by_role("button", name="Accept").click()
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Download decisions").click()
    waiting.value.save_as(repo / "ddpfix-decisions.json")
    done = ddpfix(repo, "apply", "--decisions", "ddpfix-decisions.json")
    assert done.returncode == 0 and b"1 fix in 1 file" in done.stdout


def test_serve_applies_on_the_branch_and_ends_by_itself(repo: Path) -> None:
    review = reviewed(repo)
    chosen = at(review, "classifier/resnet.py", 69, "DDP101")
    with serving(repo) as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert send(url, "decisions", review, {chosen.id: "accept"}).status_code == 200
        assert read(repo / "ddpfix-decisions.json").accepted() == (chosen.id,)
        done = send(url, "apply", review, {chosen.id: "accept"}).json()
        assert done["branch"] == "ddpfix/fixes"
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and out == done["screen"], err
    assert sh(repo, "branch", "--show-current") == "ddpfix/fixes"
    assert (repo / "DDPFIX_SUMMARY.md").read_text() == done["summary"]
    assert "ddpfix apply --decisions ddpfix-decisions.json --ignore DDP101 --branch" in done["summary"]
    assert "ddpfix review --serve" not in done["summary"]


def test_ctrl_c_ends_it_and_what_was_decided_is_kept(repo: Path) -> None:
    review = reviewed(repo)
    with serving(repo) as (process, url):
        send(url, "decisions", review, {review.items[0].id: {"verdict": "reject", "reason": "ours"}})
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "1 decision, kept in ddpfix-decisions.json.\n"), err
    assert read(repo / "ddpfix-decisions.json").of == {review.items[0].id: Decision("reject", "ours")}
    with serving(repo) as (_, again):
        assert '"reason":"ours"' in httpx2.get(again, timeout=180).text


def test_a_port_that_is_taken_is_named(repo: Path) -> None:
    with serving(repo) as (_, url):
        port = str(urlsplit(url).port)
        done = ddpfix(repo, "review", "--serve", "--port", port)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ddpfix: port {port} cannot be used: Address already in use. Give another --port".encode())


def test_without_the_extra_one_line_says_what_to_install(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('no', name='uvicorn')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = ddpfix(repo, "review", "--serve", env={"PYTHONPATH": path})
    assert done.returncode == 2
    assert done.stderr == b"ddpfix: --serve needs Starlette and uvicorn: uvicorn is not installed. pip install 'ddpfix[web]'\n"


def test_one_of_both(repo: Path) -> None:
    done = ddpfix(repo, "review", "--serve", "--html", "x.html")
    assert done.returncode == 2 and b"Give one of them." in done.stderr
    assert b"--html or --serve" in ddpfix(repo, "review").stderr
