"""The issue that says what is open and what was closed, with boxes that those who may push can tick."""

from __future__ import annotations

import re

import pytest

from ddpfix.bot.dashboard import TITLE
from tests.bot.conftest import MODULE, World
from tests.bot.test_gitlab import Lab, gitlab, lab
from tests.bot.test_login import app_bot, app_key

__all__ = ["app_key", "gitlab", "lab"]
OTHER = b"""\
import lightning.pytorch as pl


class Other(pl.LightningModule):
    def test_step(self, batch, batch_idx):
        self.log("test/loss", self(batch))
"""


def board(world: World) -> str:
    (issue,) = world.repo.issues.values()
    assert issue["title"] == TITLE
    return re.sub(r" *<!-- .* -->", "", issue["body"])


def tick(world: World, words: str) -> None:
    """As a person does on the page of the issue."""
    (issue,) = world.repo.issues.values()
    assert issue["body"].count(f"- [ ] {words}") == 1, issue["body"]
    issue["body"] = issue["body"].replace(f"- [ ] {words}", f"- [x] {words}").replace("\n", "\r\n")


def test_it_says_what_is_open_and_a_second_run_writes_nothing(world: World) -> None:
    found = {o.topic: o.action for o in world.run(topics=("safe",), dashboard=True)}
    assert found == {"safe": "created", "dashboard": "created"}
    assert f"### Open\n\n- [ ] make afresh: `safe`: {world.pull_url(1)}" in board(world)
    before = world.forge.writes(world.slug)
    assert [o.action for o in world.run(topics=("safe",), dashboard=True)] == ["unchanged"]
    assert world.forge.writes(world.slug) == before


def test_a_box_makes_an_open_one_afresh_and_is_cleared(world: World) -> None:
    world.run(topics=("safe",), dashboard=True)
    world.commit({"mine.py": b"x = 1\n"}, branch="ddpfix/safe")
    assert world.run(topics=("safe",), dashboard=True)[0].action == "left-to-human"
    tick(world, "make afresh: `safe`")
    assert [o.action for o in world.run(topics=("safe",), dashboard=True)] == ["updated", "updated"]
    assert "[x]" not in board(world)
    assert [o.action for o in world.run(topics=("safe",), dashboard=True)] == ["unchanged"]


def test_a_box_brings_back_what_was_closed(world: World) -> None:
    world.run(topics=("safe",), dashboard=True)
    world.forge.close_pull(world.slug, 1)
    assert [o.action for o in world.run(topics=("safe",), dashboard=True)] == ["closed-by-human", "updated"]
    assert f"### Closed unmerged\n\n- [ ] bring back: `safe`: {world.pull_url(1)}" in board(world)
    tick(world, "bring back: `safe`")
    assert [o.action for o in world.run(topics=("safe",), dashboard=True)] == ["created", "updated"]
    assert world.pull_url(2) in board(world) and "Closed unmerged" not in board(world)


def test_what_could_not_be_done_is_told_with_its_reason(world: World) -> None:
    assert world.run(topics=("safe",), dashboard=True, per_hour=0)[0].action == "deferred"
    assert "### Not done\n\n- [ ] try again: `safe`: deferred: enough pull requests were opened" in board(world)


def test_a_repository_switches_it_on_and_nobody_else_gets_one(world: World) -> None:
    world.run(topics=("safe",))
    assert not world.repo.issues
    world.commit({".github/ddpfix.toml": b"dashboard = true\n"})
    assert world.run(topics=("safe",))[-1].topic == "dashboard" and len(world.repo.issues) == 1


def test_where_there_is_nothing_to_say_no_issue_is_opened(world: World) -> None:
    world.commit({"model.py": b"x = 1\n"})
    assert [o.action for o in world.run(topics=("safe",), dashboard=True)] == ["nothing"]
    assert not world.repo.issues


def test_a_box_that_a_stranger_wrote_is_none(world: World) -> None:
    world.run(topics=("safe",), dashboard=True)
    world.forge.close_pull(world.slug, 1)
    world.run(topics=("safe",), dashboard=True)
    own = dict(world.repo.issues[900])
    forged = own["body"].replace("[ ]", "[x]")
    world.repo.issues[800] = {**own, "number": 800, "body": forged, "user": {"login": "mallory"}}
    assert world.run(topics=("safe",), dashboard=True)[0].action == "closed-by-human"
    box = re.search(r"<!-- ddpfix:box .* -->", forged)
    assert box
    changed = box[0].replace("topic=safe", "topic=unsafe")
    own["body"] = own["body"].replace("### Closed", f"- [x] x {changed}\n\n### Closed")
    world.repo.issues[900] = own
    world.commit({"other.py": MODULE})
    assert world.run(topics=("safe", "unsafe"), dashboard=True)[0].action == "closed-by-human"


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_an_issue_that_the_forge_refuses_costs_no_pull_request(world: World, verb: str) -> None:
    from tests.bot.github_forge import Fault

    world.forge.faults.append(Fault(verb, f"{world.slug}/issues$", 410, message="Issues are disabled for this repo"))
    found = {o.topic: o for o in world.run(topics=("safe",), dashboard=True)}
    assert found["safe"].action == "created" and "Issues are disabled" in found["dashboard"].why


def test_an_app_writes_issues_with_a_token_that_can_do_nothing_else(world: World, app_key: str) -> None:
    world.commit({".github/ddpfix.toml": b"dashboard = true\n"})
    begun = len(world.forge.asked)
    assert [o.action for o in app_bot(world, app_key).repository(world.slug)] == ["created", "created"]
    asked = [body["permissions"] for _, path, body in world.forge.asked[begun:] if path.endswith("/access_tokens")]
    assert [set(found) for found in asked if "issues" in found] == [{"issues", "metadata"}]


def test_gitlab_has_one_too(lab: Lab) -> None:
    bot = lab.bot(topics=("safe",), dashboard=True)
    assert [o.action for o in bot.repository(lab.project.slug)] == ["created", "created"]
    (issue,) = lab.project.issues.values()
    assert f"make afresh: `safe`: {lab.forge.url}/{lab.project.slug}/-/merge_requests/1" in issue["description"]
    lab.project.merges[1]["state"] = "closed"
    bot.repository(lab.project.slug)
    issue["description"] = issue["description"].replace("- [ ] bring back", "- [x] bring back")
    assert [o.action for o in bot.repository(lab.project.slug)] == ["created", "updated"]
