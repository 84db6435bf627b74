"""A message of Gitea or Forgejo -> the work that it asks for (docs.gitea.com, "Webhooks"). They are close to GitHub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddpfix.bot.commands import parse
from ddpfix.bot.events import Job, checked, is_ticked, pushed, review_of
from ddpfix.bot.forge import Comment

_REVIEWED = ("opened", "synchronized", "reopened")


def jobs(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    """As `events.jobs`."""
    return checked(_asked(event, payload, prefix))


def _asked(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    action = payload.get("action", "")
    match event:
        case "push":
            return pushed(payload, deleted=payload["after"].strip("0") == "")
        case "pull_request" if action in _REVIEWED:
            return review_of(payload, prefix)
        case "issue_comment" if action == "created":
            said = payload["comment"]
            comment = Comment(int(said["id"]), said["body"] or "", said["user"]["login"], belongs=False)
            is_pull = payload.get("is_pull") or payload["issue"].get("pull_request")
            asked = is_pull and parse(comment.body)
            return [Job(payload["repository"]["full_name"], int(payload["issue"]["number"]), comment)] if asked else []
        case "issues" if action == "edited" and is_ticked(payload):
            return [Job(payload["repository"]["full_name"])]
    return []
