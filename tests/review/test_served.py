"""The served page: saved as one decides, applied at the end, and nobody else is let in."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ddpfix import catalog, engine, repository_state, run, undo
from ddpfix.decisions import Decision, Decisions, from_json
from ddpfix.discovery import discover
from ddpfix.review.served import Session, Work, serve
from ddpfix.settings import Settings
from tests.gitrepos import own_settings, put, sh
from tests.review.project import at, classifier, reviewed

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE = 180.0  # an answer of a busy machine is an answer
get = partial(httpx2.get, timeout=PATIENCE)
post = partial(httpx2.post, timeout=PATIENCE)


@dataclass
class Running:
    """A server of a repository, and what it saved."""

    repo: Path
    session: Session
    url: str = ""
    saved: list[Decisions] = field(default_factory=list)
    thread: threading.Thread | None = None

    @property
    def origin(self) -> str:
        return self.url.partition("/?")[0]

    def post(self, where: str, data: Any, token: str | None = None, **headers: str) -> httpx2.Response:
        shown = {"X-Ddpfix-Token": self.session.token if token is None else token, **headers}
        return post(f"{self.origin}/{where}", json=data, headers={k: v for k, v in shown.items() if v})

    def ended(self) -> bool:
        assert self.thread
        self.thread.join(PATIENCE)
        return not self.thread.is_alive()


def work(repo: Path, saved: list[Decisions]) -> Work:
    def apply(made: Decisions) -> run.Applied:
        (tree,) = discover([repo])
        options = run.Options(decisions=made, branch="ddpfix/review")
        return run.apply(tree, Settings(), catalog.selected(Settings().selection), options, command="ddpfix review --serve")

    return Work(
        scan=lambda: reviewed(repo), base=lambda: repository_state.head_of(repo), save=saved.append, apply=apply,
        summary=lambda _: (repo / "DDPFIX_SUMMARY.md").read_text(), read=engine.disk_reader(repo), branch="ddpfix/review",
    )  # fmt: skip


@contextmanager
def running(repo: Path, decided: Decisions | None = None) -> Iterator[Running]:
    found = reviewed(repo)
    saved: list[Decisions] = []
    made = Running(repo, Session(work(repo, saved), found, decided or Decisions(found.base)), saved=saved)
    known = threading.Event()

    def announce(url: str) -> None:
        made.url = url
        known.set()

    made.thread = threading.Thread(target=lambda: serve(made.session, port=0, announce=announce), daemon=True)
    made.thread.start()
    assert known.wait(10)
    try:
        yield made
    finally:
        made.session.stop()
        assert made.ended()


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    with running(classifier(tmp_path)) as made:
        yield made


# Who is let in


def test_only_this_machine_and_only_with_the_token(served: Running) -> None:
    where = urlsplit(served.url)
    assert where.hostname == "127.0.0.1" and parse_qs(where.query)["token"] == [served.session.token]
    assert len(served.session.token) >= 32
    assert get(served.url).status_code == 200
    for token in ("", "?token=", f"?token={served.session.token.swapcase()}", "?token=%ff", "?token=ä"):
        refused = get(f"{served.origin}/{token}")
        assert refused.status_code == 403 and "the address that ddpfix has printed" in refused.text
        assert served.repo.name not in refused.text
    for host in ("evil.example", "127.0.0.1.evil.example", "0.0.0.0"):
        assert get(served.url, headers={"Host": host}).status_code == 400
        assert served.post("decisions", {"version": 1, "decisions": {}}, Host=host).status_code == 400
    assert get(served.url, headers={"Host": "localhost:4711"}).status_code == 200, "as a forwarded port is asked for"


@pytest.mark.parametrize("where", ["decisions", "apply"])
def test_nothing_changes_without_the_token(served: Running, where: str) -> None:
    data = {"version": 1, "base": served.session.review.base, "decisions": {}}
    for token in ("", "wrong"):
        assert served.post(where, data, token=token).status_code == 403
    assert post(f"{served.origin}/{where}?token={served.session.token}", json=data).status_code == 403, "not in the URL"
    assert get(f"{served.origin}/{where}").status_code == 405
    assert served.saved == []


def test_no_file_of_the_repository_is_sent(served: Running) -> None:
    for path in ("/train.py", "/static/review.css", "/../train.py", "/.git/config", "/%2e%2e/train.py", "//train.py"):
        assert get(f"{served.origin}{path}", params={"token": served.session.token}).status_code in (403, 404), path
    text = get(served.url).text
    assert "self.save_hyperparameters" not in text and (served.repo / "classifier/resnet.py").read_text() not in text


def test_the_page_is_kept_by_nobody_and_runs_only_its_own_script(served: Running) -> None:
    first, second = get(served.url), get(served.url)
    headers = first.headers
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"
    rules = headers["content-security-policy"]
    assert "default-src 'none'" in rules and "connect-src 'self'" in rules and "frame-ancestors 'none'" in rules
    assert "unsafe" not in rules and rules != second.headers["content-security-policy"], "a nonce of its own for each answer"


# What is saved


def test_decisions_are_saved_as_the_file_has_them(served: Running) -> None:
    review = served.session.review
    safe, other = review.items[0].id, review.items[1].id
    decisions = {safe: "accept", other: {"verdict": "reject", "reason": "ours"}}
    assert served.post("decisions", {"version": 1, "base": review.base, "decisions": decisions}).status_code == 200
    assert served.saved == [Decisions(review.base, {safe: Decision("accept"), other: Decision("reject", "ours")})]
    assert f'"decisions":{{"{min(safe, other)}":' in get(served.url).text


def test_what_cannot_be_decided_is_refused(served: Running) -> None:
    review = served.session.review
    told = next(i for i in review.items if not i.acceptable)

    def send(decisions: object, base: str = review.base) -> tuple[int, str]:
        answer = served.post("decisions", {"version": 1, "base": base, "decisions": decisions})
        return answer.status_code, answer.json()["message"]

    status, said = send({told.id: "accept"})
    assert status == 422 and f"{told.id} cannot be accepted: a constructor runs before" in said
    assert send({"0" * 12: "accept"})[0] == 422
    assert send({"nonsense": "accept"})[0] == 422
    status, said = send({}, base="f" * 40)
    assert status == 422 and said.endswith("the repository was read again since; reload the page")
    assert post(
        f"{served.origin}/decisions", content=b"x" * (5 << 20), headers={"X-Ddpfix-Token": served.session.token}
    ).status_code == 413  # fmt: skip
    assert served.saved == []


def test_decisions_over_other_paths_stay(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    elsewhere = "abcdefabcdef"
    with running(repo, Decisions(sh(repo, "rev-parse", "HEAD"), {elsewhere: Decision("reject")})) as served:
        review = served.session.review
        served.post("decisions", {"version": 1, "base": review.base, "decisions": {review.items[0].id: "accept"}})
        assert set(served.saved[-1].of) == {elsewhere, review.items[0].id}


# What is applied


def test_apply_makes_what_was_accepted_and_ends(served: Running) -> None:
    review = served.session.review
    chosen = at(review, "classifier/resnet.py", 69, "DDP101")
    done = served.post("apply", {"version": 1, "base": review.base, "decisions": {chosen.id: "accept"}}).json()
    assert done["branch"] == "ddpfix/review"
    assert "Branch ddpfix/review" in done["screen"] and "(DDP101): " in done["summary"]
    assert sh(served.repo, "diff", "--stat", "main", "ddpfix/review", "--", "*.py").splitlines()[-1].startswith(" 1 file changed")
    assert served.ended()


def test_edited_lines_of_a_file_that_the_fix_does_not_touch_are_not_taken(served: Running) -> None:
    review = served.session.review
    chosen, other = at(review, "classifier/resnet.py", 69, "DDP101"), served.repo / "train.py"
    first = other.read_text().splitlines(keepends=True)[0]
    edited = [{"path": "train.py", "line": 1, "before": first, "after": "import os; os.abort()\n"}]
    body = {"version": 1, "base": review.base, "decisions": {chosen.id: {"verdict": "accept", "edited": edited}}}
    said = served.post("apply", body).json()
    assert "done" not in said and "Nothing to fix" in said["message"], said
    assert other.read_text().startswith(first)
    assert sh(served.repo, "branch", "--list", "ddpfix/*") == ""


def test_a_repository_that_moved_on_is_read_again(served: Running) -> None:
    review = served.session.review
    gone, stays = at(review, "train.py", 60, "DDP203"), at(review, "classifier/data.py", 62, "DDP203")
    text = (served.repo / "train.py").read_bytes().split(b"\n")
    del text[59]
    put(served.repo, {"train.py": b"\n".join(text)})
    sh(served.repo, "commit", "-qam", "one print less")
    body = {"version": 1, "base": review.base, "decisions": {gone.id: "accept", stays.id: "accept"}}
    said = served.post("apply", body).json()
    assert said["stale"] and "1 decision still stands, 1 dropped: found no more" in said["message"]
    assert sh(served.repo, "branch", "--list", "ddpfix/*") == ""
    assert served.saved[-1] == Decisions(sh(served.repo, "rev-parse", "HEAD"), {stays.id: Decision("accept")})
    assert served.post("decisions", body).status_code == 422, "the old page is told to reload"
    again = {**body, "base": served.session.review.base, "decisions": {stays.id: "accept"}}
    assert served.post("apply", again).json()["branch"] == "ddpfix/review"


def test_uncommitted_work_is_named_and_one_can_try_again(served: Running) -> None:
    review = served.session.review
    chosen = at(review, "classifier/resnet.py", 69, "DDP101")
    whole = (served.repo / "classifier/resnet.py").read_bytes()
    put(served.repo, {"classifier/resnet.py": whole + b"# mine\n"})
    body = {"version": 1, "base": review.base, "decisions": {chosen.id: "accept"}}
    said = served.post("apply", body).json()
    assert "uncommitted changes" in said["message"] and "classifier/resnet.py" in said["message"] and said["todo"]
    put(served.repo, {"classifier/resnet.py": whole})
    assert served.post("apply", body).json()["branch"] == "ddpfix/review"


# In the browser


@pytest.mark.browser
def test_from_the_first_click_to_the_branch(tab: Page, served: Running) -> None:
    review = served.session.review
    tab.goto(served.url)
    fix, no = at(review, "classifier/resnet.py", 69, "DDP101"), at(review, "train.py", 60, "DDP203")
    with tab.expect_response("**/decisions"):
        tab.locator(f"#f-{fix.id}").get_by_role("button", name="Accept").click()
    with tab.expect_response("**/decisions"):
        tab.locator(f"#f-{no.id}").get_by_role("button", name="Reject").click()
    tab.reload()
    assert tab.locator("#counts").inner_text().startswith("1 accepted · 1 rejected")
    tab.get_by_role("button", name="Apply…").click()
    asked = tab.get_by_role("dialog")
    assert "1 fix will be committed on the branch ddpfix/review" in asked.inner_text()
    asked.get_by_role("button", name="Apply", exact=True).click()
    result = tab.locator("#result")
    result.wait_for()
    assert "Committed on ddpfix/review" in result.inner_text() and "1 fix in 1 file" in result.inner_text()
    assert "# ddpfix: 1 fix in 1 file" in result.inner_text()
    assert sh(served.repo, "branch", "--show-current") == "ddpfix/review"
    assert served.ended()
    tab.keyboard.press("r")
    assert tab.locator("#counts").inner_text().startswith("1 accepted · 1 rejected"), "what is applied is not decided again"


@pytest.mark.browser
def test_a_changed_base_is_shown_on_the_page(tab: Page, served: Running) -> None:
    tab.goto(served.url)
    fix = at(served.session.review, "classifier/resnet.py", 69, "DDP101")
    tab.locator(f"#f-{fix.id}").get_by_role("button", name="Accept").click()
    put(served.repo, {"new.txt": b"x"})
    sh(served.repo, "add", "-A")
    sh(served.repo, "commit", "-qm", "more")
    tab.get_by_role("button", name="Apply…").click()
    tab.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
    tab.get_by_role("button", name="Show the findings of now").click()
    tab.wait_for_load_state()
    assert tab.locator("#counts").inner_text().startswith("1 accepted")
    assert tab.locator("h1 .base").inner_text() == sh(served.repo, "rev-parse", "HEAD")[:10]


def test_both_ways_to_decide_make_the_same_commits(tmp_path: Path) -> None:
    """The page's decisions and the same in a file: equal trees and messages."""
    repo = classifier(tmp_path)
    found = reviewed(repo)
    accepted = [i.id for i in found.items if i.acceptable and i.finding.code in ("DDP101", "DDP203")]
    sent = {"version": 1, "base": found.base, "decisions": dict.fromkeys(accepted, "accept")}
    shown = ("log", "--format=%T %s%n%b", "main..ddpfix/review")
    with running(repo) as served:
        assert served.post("apply", sent).json()["done"]
    by_page = sh(repo, *shown)
    assert by_page.count("\n") > 6
    undo.undo(repo)
    work(repo, []).apply(from_json(json.dumps(sent)))
    of_this_run = re.compile("ddpfix-run: [0-9a-f]+", re.I)
    assert of_this_run.sub("", sh(repo, *shown)) == of_this_run.sub("", by_page)
