"""The bot on Gitea and Forgejo: the same promises as on GitHub and GitLab, where they can be kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ddpfix.bot.client import Pace
from ddpfix.bot.events import Job
from ddpfix.bot.forge import Comment, right_sides
from ddpfix.bot.gitea import Gitea
from ddpfix.bot.login import FixedToken
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.repositories import Bot, BotOptions
from ddpfix.bot.worker import do
from tests.bot.conftest import FILES, FIXED, IDENTITY, MODULE, STATE
from tests.bot.gitea_forge import GiteaForge, Repo
from tests.bot.githost import git, import_commit
from tests.bot.github_forge import Clock
from tests.bot.test_reconcile import UNSAFE
from tests.bot.test_review import START

TOKEN = "a" * 40


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GiteaForge]:
    host = GiteaForge(tmp_path_factory.mktemp("gitea"))
    host.tokens[TOKEN] = "ddpfix-bot"
    yield host
    host.close()


class Tea:
    """A repository, and the bot that looks after it."""

    def __init__(self, host: GiteaForge, repo: Repo, clock: Clock) -> None:
        self.host, self.repo, self.clock = host, repo, clock
        self.git = host.repository(repo.slug)
        self.forge = Gitea(FixedToken(TOKEN), clock=clock, api_url=host.api, pace=Pace(gap=0.0), identity=IDENTITY)

    def bot(self, **options: Any) -> Bot:
        return Bot(self.forge, BotOptions(**{"confined": False, **options}), self.clock, STATE)

    def safe(self, **options: Any) -> Outcome:
        return self.bot(**{"topics": ("safe",), **options}).repository(self.repo.slug)[0]

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        return import_commit(self.git, branch, files, "by hand", parent=f"refs/heads/{branch}^0")


@pytest.fixture
def tea(gitea: GiteaForge, clock: Clock, request: pytest.FixtureRequest) -> Tea:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:60].strip("-")
    return Tea(gitea, gitea.add(f"team/{name}", FILES), clock)


def test_fixes_come_as_a_pull_request_and_a_second_run_writes_nothing(tea: Tea) -> None:
    tea.repo.labels[5] = "there"
    assert tea.safe(labels=("ddp", "there")).action == "created"
    pull = tea.repo.pulls[1]
    assert (pull["title"], pull["labels"]) == ("ddpfix: 1 safe fix in 1 file", ["ddp", "there"])
    assert git(tea.git, "cat-file", "blob", "ddpfix/safe:model.py").encode() + b"\n" == FIXED
    before = len(tea.host.log)
    assert tea.safe().action == "unchanged"
    assert {verb for verb, path in tea.host.log[before:] if "/api/" in path} == {"GET"}
    for number in range(2, 70):  # among many others, which come in pages
        tea.repo.pulls[number] = {**pull, "number": number, "head": f"x{number}", "state": "closed", "tip": "0" * 40}
    assert tea.safe().action == "unchanged"


def test_unsafe_fixes_are_a_draft_and_stay_one(tea: Tea) -> None:
    tea.commit({"hook.py": UNSAFE})
    assert tea.safe(topics=("unsafe",)).action == "created"
    assert tea.repo.pulls[1]["title"] == "WIP: ddpfix: 1 unsafe fix in 1 file"
    tea.commit({"hook2.py": UNSAFE})
    assert tea.safe(topics=("unsafe",)).action == "updated"
    assert tea.repo.pulls[1]["title"] == "WIP: ddpfix: 2 unsafe fixes in 2 files"
    assert tea.safe(topics=("unsafe",)).action == "unchanged"


def test_people_are_left_alone(tea: Tea) -> None:
    tea.safe()
    mine = tea.commit({"mine.py": b"x = 1\n"}, "ddpfix/safe")
    assert [tea.safe().action for _ in range(2)] == ["left-to-human"] * 2
    assert git(tea.git, "rev-parse", "ddpfix/safe") == mine and len(tea.repo.comments) == 1
    tea.repo.pulls[1]["state"] = "closed"
    git(tea.git, "update-ref", "refs/heads/ddpfix/safe", f"{mine}~1")
    assert tea.safe().action == "closed-by-human"
    assert tea.safe(reopen=True).action == "created"


def test_nothing_left_closes_it(tea: Tea) -> None:
    tea.safe()
    tea.commit({"model.py": FIXED})
    assert tea.safe().action == "closed" and tea.repo.pulls[1]["state"] == "closed"
    assert git(tea.git, "rev-parse", "-q", "--verify", "ddpfix/safe", ok=False) == ""


def test_a_command_by_somebody_who_may_push_and_by_a_stranger(tea: Tea) -> None:
    tea.safe()
    tea.repo.writers.add("ada")
    for author, action, reactions in (("mallory", "ignored", []), ("ada", "closed", ["eyes", "rocket"])):
        said = tea.host.say(tea.repo, 1, author, "/ddpfix close")
        assert [o.action for o in do(tea.bot(), Job(tea.repo.slug, 1, Comment(said, "/ddpfix close", author)))] == [action]
        assert [content for on, content in tea.repo.reactions if on == said] == reactions


def test_suggestions_stand_on_lines_of_the_diff(tea: Tea) -> None:
    tea.commit({"model.py": START})
    git(tea.git, "update-ref", "refs/heads/mine", "main")
    tea.commit({"model.py": MODULE + b'        self.log("val/twice", 2 * loss)\n'}, "mine")
    opened = tea.forge.open_pull(tea.repo.slug, branch="mine", base="main", title="Log more", body="", draft=False)
    job = Job(tea.repo.slug, opened.number)
    assert do(tea.bot(), job)[0].action == "reviewed"
    (review,) = tea.repo.reviews
    assert [comment["new_position"] for comment in review["comments"]] == [9, 10]
    assert 'self.log("val/loss", loss, sync_dist=True)' in review["comments"][0]["body"]
    assert do(tea.bot(), job)[0].action == "unchanged" and len(tea.repo.reviews) == 1


def test_a_dashboard_and_commits_that_the_server_signs(tea: Tea) -> None:
    found = tea.bot(topics=("safe",), dashboard=True, signed=True).repository(tea.repo.slug)
    assert [o.action for o in found] == ["created", "created"], found
    assert git(tea.git, "log", "-1", "--format=%cn", "ddpfix/safe") == "ddpfix-bot"
    assert git(tea.git, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split() == ["ddpfix/safe", "main"]
    tea.repo.pulls[1]["state"] = "closed"
    bot = tea.bot(topics=("safe",), dashboard=True, signed=True)
    bot.repository(tea.repo.slug)
    (issue,) = tea.repo.issues.values()
    issue["body"] = issue["body"].replace("- [ ] bring back", "- [x] bring back")
    assert [o.action for o in bot.repository(tea.repo.slug)] == ["created", "updated"]


def test_an_organization_is_listed_and_fates_are_asked_one_by_one(tea: Tea) -> None:
    assert tea.repo.slug in [found.slug for found in tea.forge.listed("team")]
    tea.safe()
    tea.repo.pulls[1]["merged"] = True
    fates = tea.forge.fates([(tea.repo.slug, 1), (tea.repo.slug, 2)])
    merged = fates[tea.repo.slug, 1]
    assert merged and (merged.state, merged.opened) == ("merged", 1767225600.0) and fates[tea.repo.slug, 2] is None
    assert tea.forge.heads([tea.repo.slug]) == {}


def test_the_new_sides_of_a_diff() -> None:
    diff = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n x\n+y\n z\n"
        "diff --git a/gone.py b/gone.py\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        'diff --git "a/b\\303\\244d.py" "b/b\\303\\244d.py"\n--- /dev/null\n+++ "b/b\\303\\244d.py"\n@@ -0,0 +1 @@\n+x\n'
        "diff --git a/pic.png b/pic.png\nBinary files a/pic.png and b/pic.png differ\n"
    )
    found = right_sides(diff)
    assert {path: sorted(side.changed) for path, side in found.items()} == {"a.py": [2], "bäd.py": [1]}
