"""The report of a campaign: what was found where, how long merges took, what people rejected and why, what they refuse most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ddpfix import api
from ddpfix.bot.forge import Comment, Fate, Forge
from ddpfix.bot.inside import Inside
from ddpfix.bot.outcome import Outcome
from ddpfix.decisions import FILE, Decision, Decisions, to_json
from ddpfix.fleet import report
from ddpfix.fleet.ledger import Campaign, Ledger
from ddpfix.fleet.publish import refresh
from ddpfix.fleet.repositories import Target
from ddpfix.fleet.result import Result
from ddpfix.fleet.status import lines, status
from ddpfix.git import Access
from tests.fleet.conftest import MODULE, Fleet
from tests.gitrepos import sh

HOUR = 3600.0
NAMES = [f"team/r{number}" for number in range(6)]


class Answers:
    """A forge of which only the fates of pull requests and their comments are asked; the rest is in tests/bot."""

    def __init__(self, fates: dict[str, Fate | None], said: dict[str, list[Comment]]) -> None:
        self._fates, self._said = fates, said

    def account(self, slug: str) -> str:
        return "mender[bot]"

    def fates(self, pulls: list[tuple[str, int]]) -> dict[tuple[str, int], Fate | None]:
        return {(slug, number): self._fates[slug] for slug, number in pulls if slug in self._fates}

    def comments(self, slug: str, number: int) -> list[Comment]:
        return self._said.get(slug, [])


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger(tmp_path / "fleet.sqlite", new=True)
    book.plan(Campaign("log once <b>"), [Target(name, f"https://h/{name}.git") for name in NAMES])
    safe, told = ("DDP101", "safe", "a.py", 3, "logs"), ("DDP203", "display", "b.py", 9, "prints")
    rejected = (("DDP203", "b.py:9", "it is meant so"),)
    results = [Result(head="1", findings=(safe, told), rejected=rejected if number == 0 else ()) for number in range(5)]
    book.record(list(enumerate([*results, Result(cause="timeout", error="it takes more than 900 s")], 1)))
    for number in range(1, 6):
        url = f"https://h/team/r{number - 1}/pull/7"
        book.keep_pull((number, "DDP101", "created", "", 7, url, 1 + number // 4, "open", 100.0))
    book.keep_unpublished(5, "failed", "the server refused the push")
    return book


def asked(ledger: Ledger) -> list[Outcome]:
    told: list[Outcome] = []
    said = {
        NAMES[2]: [
            Comment(1, "Thanks, but we log on rank 0 <script>alert(1)</script>\nonly.", "ada"),
            Comment(2, "/ddpfix close", "ada"),
            Comment(3, "closed", "mender[bot]"),
            Comment(4, "deployed", "ci", by_bot=True),
            Comment(5, "/ddpfix ignore ddp101 repo", "ada"),
        ]
    }
    fates = {
        NAMES[0]: Fate("merged", 1000.0, 1000.0 + HOUR / 2), NAMES[1]: Fate("merged", 1000.0, 1000.0 + 48 * HOUR),
        NAMES[2]: Fate("closed", 1000.0, 2000.0), NAMES[3]: None, NAMES[4]: Fate("open", 1000.0),
    }  # fmt: skip
    forge: Forge = Answers(fates, said)  # type: ignore[assignment]
    assert refresh(ledger, forge, told.append) == 4
    return told


def test_it_says_what_became_of_the_pull_requests_and_what_people_refuse_most(ledger: Ledger) -> None:
    assert [outcome.line() for outcome in asked(ledger)] == ["team/r3 DDP101: gone (the forge no longer has it)"]
    text = report.markdown(ledger)
    assert "6 repositories: 5 done, 1 failed, 0 waiting." in text
    assert "Half of the 2 merged pull requests were merged within 24.2 hours." in text
    # of DDP203 everything that was decided was rejected; of DDP101 one of three
    assert "People refuse DDP203 most: 1 rejected in decisions, 100% of those decided." in text
    assert "| DDP101 | 5 | 2 | 1 | 0 | 33% |" in text and "| DDP203 | 0 | 0 | 0 | 1 | 100% |" in text
    assert "| `team/r0` | 2 | 1 | 1 |" in text
    assert "| under an hour | 1 |" in text and "| three days | 1 |" in text
    assert "| `team/r0` | DDP203 | `b.py:9` | it is meant so | decision |" in text
    assert "| `team/r2` | DDP101 | `#7` | Thanks, but we log on rank 0" in text and "<script>" not in text
    assert "/ddpfix ignore ddp101 repo" in text and "/ddpfix close" not in text and "deployed" not in text
    assert "| `team/r5` | it took longer than one repository may |" in text
    assert "| `team/r4` | failed | the server refused the push |" in text


def test_the_page_holds_the_same_and_nothing_that_a_stranger_wrote_is_markup(ledger: Ledger) -> None:
    asked(ledger)
    page = report.html(ledger)
    assert "<script" not in page and "log once &lt;b&gt;" in page and "&lt;script&gt;alert(1)" in page
    assert not re.search(r"""(?:src|href)=["'](?!data:,|https://h/team/)""", page), "it loads nothing"
    words = ("Findings by codemod", "Repositories with most to repair", "From the opening to the merge", "refuse DDP203 most")
    assert all(word in page for word in words)
    assert page.count('<rect class="merged"') == 3, "the wave with merges, and two times"


def test_the_status_names_merged_open_closed_and_what_failed(ledger: Ledger) -> None:
    asked(ledger)
    assert lines(status(ledger)) == [
        "log once <b>: 6 repositories: 5 done, 1 failed",
        "failed, timeout: 1",
        "DDP101 safe: 5 in 5 repositories",
        "DDP203 display: 5 in 5 repositories",
        "wave 2 was the last; 0 repositories with a safe fix have no pull request",
        "pull requests, open: 1",
        "pull requests, merged: 2",
        "pull requests, closed: 1",
        "pull requests, gone: 1",
        "without a pull request, failed: 1, such as team/r4: the server refused the push",
    ]


def test_what_is_rejected_in_a_decisions_file_of_the_repository_is_told_with_its_reason(fleet: Fleet) -> None:
    repo = fleet.add("one", {"train.py": MODULE})
    ((finding,),) = (checked.findings for checked in api.check(repo))
    made = Decisions(of={finding.id: Decision("reject", "meant so"), "0" * 12: Decision("reject", "of another time")})
    (repo / FILE).write_text(to_json(made))
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "decided")
    found = Inside(fleet.folder / "clone.git", None).survey(Access(repo.as_uri()), "main", select=(), ignore=())
    assert found.rejected == ((finding.code, f"train.py:{finding.span.line}", "meant so"),)


def test_a_campaign_that_found_nothing_yet_has_a_page(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "fleet.sqlite", new=True)
    book.plan(Campaign("new"), [Target("a/b", "https://h/a/b.git")])
    assert report.markdown(book) == "# new\n\n1 repositories: 0 done, 0 failed, 1 waiting.\n"
    assert "1 repositories" in report.html(book)
