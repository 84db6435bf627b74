"""The merge request flow of GitLab."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ddpfix.bot.client import Pace
from ddpfix.bot.events import Job
from ddpfix.bot.forge import Comment
from ddpfix.bot.gitlab import GitLab
from ddpfix.bot.login import FixedToken
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.repositories import Bot, BotOptions
from ddpfix.bot.worker import do
from tests.bot.conftest import FILES, FIXED, IDENTITY, MODULE, STATE
from tests.bot.githost import git, import_commit
from tests.bot.github_forge import Clock
from tests.bot.gitlab_forge import GitLabForge, Project
from tests.bot.test_reconcile import UNSAFE
from tests.bot.test_review import START

TOKEN = "glpat-0123456789abcdef"


@pytest.fixture(scope="session")
def gitlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLabForge]:
    host = GitLabForge(tmp_path_factory.mktemp("gitlab"))
    host.tokens[TOKEN] = "ddpfix-bot"
    yield host
    host.close()


class Lab:
    """A project in a nested group, and the bot that looks after it."""

    def __init__(self, forge: GitLabForge, project: Project, clock: Clock) -> None:
        self.forge, self.project, self.clock = forge, project, clock
        self.git = forge.repository(project.slug)

    def bot(self, **options: Any) -> Bot:
        lab = GitLab(FixedToken(TOKEN), clock=self.clock, api_url=self.forge.api, pace=Pace(gap=0.0), identity=IDENTITY)
        return Bot(lab, BotOptions(**{"confined": False, **options}), self.clock, STATE)

    def safe(self, **options: Any) -> Outcome:
        return self.bot(**{"topics": ("safe",), **options}).repository(self.project.slug)[0]

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        return import_commit(self.git, branch, files, "by hand", parent=f"refs/heads/{branch}^0")


@pytest.fixture
def lab(gitlab: GitLabForge, clock: Clock, request: pytest.FixtureRequest) -> Lab:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:60].strip("-")
    return Lab(gitlab, gitlab.add(f"group/sub/{name}", FILES), clock)


def test_fixes_come_as_a_merge_request_and_a_second_run_writes_nothing(lab: Lab) -> None:
    assert lab.safe(labels=("ddp",), confined=True).action == "created"
    merge = lab.project.merges[1]
    assert merge["title"] == "ddpfix: 1 safe fix in 1 file"
    assert merge["labels"] == ["ddp"]
    assert git(lab.git, "cat-file", "blob", "ddpfix/safe:model.py").encode() + b"\n" == FIXED
    before = len(lab.forge.log)
    assert lab.safe(confined=True).action == "unchanged"
    assert {verb for verb, path in lab.forge.log[before:] if "/api/" in path} == {"GET"}


def test_unsafe_fixes_are_a_draft_and_stay_one(lab: Lab) -> None:
    lab.commit({"hook.py": UNSAFE})
    assert lab.safe(topics=("unsafe",)).action == "created"
    assert lab.project.merges[1]["title"] == "Draft: ddpfix: 1 unsafe fix in 1 file"
    lab.commit({"hook2.py": UNSAFE})
    assert lab.safe(topics=("unsafe",)).action == "updated"
    assert lab.project.merges[1]["title"] == "Draft: ddpfix: 2 unsafe fixes in 2 files"
    assert lab.safe(topics=("unsafe",)).action == "unchanged"


def test_people_are_left_alone(lab: Lab) -> None:
    lab.safe()
    mine = lab.commit({"mine.py": b"x = 1\n"}, "ddpfix/safe")
    assert [lab.safe().action for _ in range(2)] == ["left-to-human"] * 2
    assert git(lab.git, "rev-parse", "ddpfix/safe") == mine
    assert len(lab.project.notes) == 1
    lab.project.merges[1]["state"] = "closed"
    git(lab.git, "update-ref", "refs/heads/ddpfix/safe", f"{mine}~1")
    assert lab.safe().action == "closed-by-human"
    assert lab.safe(reopen=True).action == "created"


def test_nothing_left_closes_it(lab: Lab) -> None:
    lab.safe()
    lab.commit({"model.py": FIXED})
    assert lab.safe().action == "closed"
    assert lab.project.merges[1]["state"] == "closed"
    assert git(lab.git, "rev-parse", "-q", "--verify", "ddpfix/safe", ok=False) == ""


def test_a_command_by_a_developer_and_by_a_stranger(lab: Lab) -> None:
    lab.safe()
    lab.project.developers.add("ada")
    for author, action, awards in (("mallory", "ignored", []), ("ada", "closed", ["eyes", "rocket"])):
        note = lab.forge.note(lab.project, 1, author, "/ddpfix close")
        job = Job(lab.project.slug, 1, Comment(note, "/ddpfix close", author))
        assert [o.action for o in do(lab.bot(), job)] == [action]
        assert [name for on, name in lab.project.awards if on == note] == awards


def test_suggestions_are_published_together(lab: Lab) -> None:
    lab.commit({"model.py": START})
    git(lab.git, "update-ref", "refs/heads/mine", "main")
    lab.commit({"model.py": MODULE + b'        self.log("val/twice", 2 * loss)\n'}, "mine")
    number = lab.forge.open_by_hand(lab.project, "mine", "Log more")["iid"]
    job = Job(lab.project.slug, number)
    assert do(lab.bot(), job)[0].action == "reviewed"
    found = [n for n in lab.project.notes.values() if n.get("type") == "DiffNote"]
    assert [n["position"]["new_line"] for n in found] == [9, 10]
    assert '```suggestion:-0+0\n        self.log("val/loss", loss, sync_dist=True)\n```' in found[0]["body"]
    assert do(lab.bot(), job)[0].action == "unchanged"
    assert len(lab.project.notes) == 3


def test_archived_and_forked_projects_are_left_alone(lab: Lab) -> None:
    for about, why in (({"archived": True}, "archived"), ({"forked_from_project": {"id": 1}}, "a fork"),
                       ({"permissions": {"project_access": {"access_level": 20}}}, "may not push"),
                       ({"topics": ["no-ddpfix"]}, "no-ddpfix")):  # fmt: skip
        lab.project.about = about
        outcome = lab.safe()
        assert outcome.action == "skipped"
        assert why in outcome.why
