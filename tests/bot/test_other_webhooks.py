"""The messages of GitLab and of Gitea: what the service lets in, and the work that comes of it."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from ddpfix.bot import gitea_events, gitlab_events
from ddpfix.bot.events import Job
from ddpfix.bot.events import jobs as github_jobs
from ddpfix.bot.forge import Comment
from ddpfix.bot.messages import KINDS
from ddpfix.bot.numbers import Numbers
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.queue import Queue
from ddpfix.bot.state import passing
from ddpfix.bot.webhooks import application
from ddpfix.bot.worker import Worker
from ddpfix.metrics import text

SECRET = "a secret of the project"
PROJECT = {"path_with_namespace": "group/sub/one", "default_branch": "main"}
REPO = {"full_name": "team/one", "default_branch": "main"}
OWN = {"source_project_id": 1, "target_project_id": 1}
NOTE = {"id": 9, "note": "/ddpfix rerun", "noteable_type": "MergeRequest"}
SAID = Comment(9, "/ddpfix rerun", "ada", belongs=False)
OPENED = {"iid": 3, "action": "open", "source_branch": "x", **OWN}
BY_ADA = {"project": PROJECT, "user": {"username": "ada"}, "merge_request": {"iid": 3}}
ISSUE = {"action": "update", "author_id": 1, "description": "- [x] bring back"}


@pytest.mark.parametrize(
    ("event", "payload", "wanted"),
    [
        ("Push Hook", {"ref": "refs/heads/main", "after": "1" * 40, "project": PROJECT}, [Job("group/sub/one")]),
        ("Push Hook", {"ref": "refs/heads/main", "after": "0" * 40, "project": PROJECT}, []),
        ("Push Hook", {"ref": "refs/heads/other", "after": "1" * 40, "project": PROJECT}, []),
        ("Merge Request Hook", {"project": PROJECT, "object_attributes": OPENED}, [Job("group/sub/one", 3)]),
        ("Merge Request Hook", {"project": PROJECT, "object_attributes": {**OPENED, "action": "update"}}, []),
        ("Merge Request Hook", {"project": PROJECT, "object_attributes": {**OPENED, "action": "update", "oldrev": "1"}},
         [Job("group/sub/one", 3)]),
        ("Merge Request Hook", {"project": PROJECT, "object_attributes": {**OPENED, "source_branch": "ddpfix/safe"}}, []),
        ("Note Hook", {**BY_ADA, "object_attributes": NOTE}, [Job("group/sub/one", 3, SAID)]),
        ("Note Hook", {**BY_ADA, "object_attributes": {**NOTE, "note": "well done"}}, []),
        ("Note Hook", {**BY_ADA, "object_attributes": {**NOTE, "noteable_type": "Issue"}}, []),
        ("Issue Hook", {"project": PROJECT, "user": {"id": 2}, "changes": {"description": {}}, "object_attributes": ISSUE},
         [Job("group/sub/one")]),
        ("Issue Hook", {"project": PROJECT, "user": {"id": 1}, "changes": {"description": {}}, "object_attributes": ISSUE}, []),
        ("Issue Hook", {"project": PROJECT, "user": {"id": 2}, "changes": {"labels": {}}, "object_attributes": ISSUE}, []),
        ("Pipeline Hook", {}, []),
    ],
)  # fmt: skip
def test_what_a_message_of_gitlab_asks_for(event: str, payload: dict[str, Any], wanted: list[Job]) -> None:
    assert gitlab_events.jobs(event, payload, "ddpfix") == wanted


BOX = {"number": 900, "user": {"login": "ddpfix-bot"}, "body": "- [x] bring back", "pull_request": None}


@pytest.mark.parametrize(
    ("event", "payload", "wanted"),
    [
        ("push", {"ref": "refs/heads/main", "after": "1" * 40, "repository": REPO}, [Job("team/one")]),
        ("push", {"ref": "refs/heads/x", "after": "1" * 40, "repository": REPO}, []),
        ("pull_request", {"action": "synchronized", "repository": REPO, "pull_request": {"number": 3, "head": {"ref": "x"}}},
         [Job("team/one", 3)]),
        ("pull_request", {"action": "opened", "repository": REPO,
                          "pull_request": {"number": 3, "head": {"ref": "ddpfix/safe", "repo": REPO}}}, []),
        ("issue_comment", {"action": "created", "is_pull": True, "repository": REPO, "issue": {"number": 3},
                           "comment": {"id": 9, "body": "/ddpfix rerun", "user": {"login": "ada"}}}, [Job("team/one", 3, SAID)]),
        ("issue_comment", {"action": "created", "is_pull": False, "repository": REPO, "issue": {"number": 3},
                           "comment": {"id": 9, "body": "/ddpfix rerun", "user": {"login": "ada"}}}, []),
        ("issues", {"action": "edited", "repository": REPO, "issue": BOX, "sender": {"login": "ada"}}, [Job("team/one")]),
        ("issues", {"action": "edited", "repository": REPO, "issue": BOX, "sender": {"login": "ddpfix-bot"}}, []),
        ("release", {}, []),
    ],
)  # fmt: skip
def test_what_a_message_of_gitea_asks_for(event: str, payload: dict[str, Any], wanted: list[Job]) -> None:
    assert gitea_events.jobs(event, payload, "ddpfix") == wanted


def test_a_box_that_is_ticked_is_work_on_github_too() -> None:
    payload = {"action": "edited", "repository": REPO, "issue": {**BOX}, "sender": {"login": "ada", "type": "User"}}
    assert github_jobs("issues", payload, "ddpfix") == [Job("team/one")]
    payload["sender"] = {"login": "other[bot]", "type": "Bot"}
    assert github_jobs("issues", payload, "ddpfix") == []


GITLAB = {"x-gitlab-event": "Push Hook", "idempotency-key": "d-1", "x-gitlab-token": SECRET}
PUSHED = json.dumps({"ref": "refs/heads/main", "after": "1" * 40, "project": PROJECT, "repository": REPO}).encode()
SIGNED = hmac.new(SECRET.encode(), PUSHED, hashlib.sha256).hexdigest()
GITEA = {"x-gitea-event": "push", "x-gitea-delivery": "d-1", "x-gitea-signature": SIGNED}


BOTH = [("gitlab", GITLAB, "x-gitlab-token"), ("gitea", GITEA, "x-gitea-signature")]


@pytest.mark.parametrize(("kind", "headers", "secret"), BOTH)
def test_only_who_knows_the_secret_is_let_in_and_each_delivery_once(kind: str, headers: dict[str, str], secret: str) -> None:
    done: list[Job] = []

    def work(job: Job) -> list[Outcome]:
        done.append(job)
        return []

    worker = Worker(work, lambda outcome: None)
    with TestClient(application(worker, SECRET, messages=KINDS[kind])) as client:

        def sent(**other: str) -> int:
            given = {**headers, "content-type": "application/json", **{name.replace("_", "-"): v for name, v in other.items()}}
            return int(client.post("/webhook", content=PUSHED, headers={k: v for k, v in given.items() if v}).status_code)

        for wrong in ("", "another secret", "0" * 64):
            assert sent(**{secret.replace("-", "_"): wrong}) == 401
        assert [sent(), sent()] == [202, 200]
        nameless = {"idempotency_key": "", "x_gitea_delivery": ""}
        assert sent(**nameless) == 400
        assert worker.wait_until_idle(30)
    assert done == [Job("group/sub/one" if kind == "gitlab" else "team/one")]


def test_prometheus_reads_what_a_service_has_done() -> None:
    queue, told = Queue(passing().database()), list[Outcome]()
    numbers = Numbers(queue, told.append)
    queue.accept("d-1", [Job("a/b"), Job("a/c")])
    for action in ("created", "created", "failed"):
        numbers.tell(Outcome("a/b", "safe", action))
    lines = text(numbers.metrics()).splitlines()
    assert "ddpfix_bot_jobs_waiting 2" in lines and "ddpfix_bot_deliveries 1" in lines and len(told) == 3
    assert 'ddpfix_bot_outcomes_total{action="created"} 2' in lines and 'ddpfix_bot_outcomes_total{action="failed"} 1' in lines
