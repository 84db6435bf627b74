"""A message of GitHub -> the work that it asks for: pure functions of what was delivered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddpfix.bot.commands import parse
from ddpfix.bot.forge import Comment

_SLUG = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.A)
# `author_association`: others than these may not write, and are not worth a request. A member of an organization who keeps
# that to himself appears as a contributor (orgs/community/discussions/18690), so of those the forge is asked.
_BELONGS, _PERHAPS = ("OWNER", "MEMBER", "COLLABORATOR"), "CONTRIBUTOR"
_REVIEWED = ("opened", "synchronize", "reopened", "ready_for_review")


@dataclass(frozen=True, slots=True)
class Job:
    """Work on one repository. number: the pull request to review, or that of `comment`; 0: the repository as a whole."""

    slug: str
    number: int = 0
    comment: Comment | None = None


def jobs(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    """What an event asks for, [] for one that asks for nothing.

    Raises KeyError, TypeError, ValueError for a payload of another shape.
    """
    return checked(_asked(event, payload, prefix))


def checked(asked: list[Job]) -> list[Job]:
    """The same jobs. Raises ValueError where one is about what is no repository."""
    for job in asked:
        if not _SLUG.fullmatch(job.slug):
            raise ValueError("no name of a repository")
    return asked


def is_ticked(payload: Mapping[str, Any]) -> bool:
    """Whether somebody ticked a box in an issue that he did not open, such as the dashboard; the issue itself is read later."""
    issue = payload["issue"]
    by_another = issue["user"]["login"] != payload["sender"]["login"]
    return by_another and not issue.get("pull_request") and "[x] " in (issue["body"] or "")


def pushed(payload: Mapping[str, Any], *, deleted: bool) -> list[Job]:
    """The repository as a whole, after a push to its default branch."""
    repository = payload["repository"]
    is_base = payload["ref"] == f"refs/heads/{repository['default_branch']}" and not deleted
    return [Job(repository["full_name"])] if is_base else []


def review_of(payload: Mapping[str, Any], prefix: str) -> list[Job]:
    """The pull request of the message, but for the bot's own."""
    pull, slug = payload["pull_request"], payload["repository"]["full_name"]
    head = pull["head"]
    own = head["ref"].startswith(f"{prefix}/") and (head.get("repo") or {}).get("full_name") == slug
    return [] if own else [Job(slug, int(pull["number"]))]


def _asked(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    action = payload.get("action", "")
    match event:
        case "installation" if action in ("created", "unsuspend"):
            return [Job(r["full_name"]) for r in payload.get("repositories") or ()]
        case "installation_repositories" if action == "added":
            return [Job(r["full_name"]) for r in payload["repositories_added"]]
        case "push":
            return pushed(payload, deleted=bool(payload.get("deleted")))
        case "pull_request" if action in _REVIEWED:
            return review_of(payload, prefix)
        case "issue_comment" if action == "created":
            issue, said = payload["issue"], payload["comment"]
            by, of = said["user"], said.get("author_association", _PERHAPS)
            comment = Comment(int(said["id"]), said["body"] or "", by["login"], by["type"] == "Bot", of in _BELONGS)
            heard = of in _BELONGS or of == _PERHAPS
            asked = heard and "pull_request" in issue and not comment.by_bot and parse(comment.body)
            return [Job(payload["repository"]["full_name"], int(issue["number"]), comment)] if asked else []
        case "issues" if action == "edited" and payload["sender"].get("type") != "Bot" and is_ticked(payload):
            return [Job(payload["repository"]["full_name"])]
    return []
