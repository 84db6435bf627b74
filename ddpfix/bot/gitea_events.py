"""A message of Gitea or Forgejo -> the work that it asks for (docs.gitea.com, "Webhooks"). They are close to GitHub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddpfix.bot.commands import parse
from ddpfix.bot.events import Job, checked, is_ticked
from ddpfix.bot.forge import Comment

_REVIEWED = ("opened", "synchronized", "reopened")


def jobs(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    """As `events.jobs`."""
    return checked(_asked(event, payload, prefix))


def _asked(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    action = payload.get("action", "")
    match event:
        case "push":
            repository = payload["repository"]
            is_base = payload["ref"] == f"refs/heads/{repository['default_branch']}" and payload["after"].strip("0") != ""
            return [Job(repository["full_name"])] if is_base else []
        case "pull_request" if action in _REVIEWED:
            pull, slug = payload["pull_request"], payload["repository"]["full_name"]
            head = pull["head"]
            own = head["ref"].startswith(f"{prefix}/") and (head.get("repo") or {}).get("full_name") == slug
            return [] if own else [Job(slug, int(pull["number"]))]
        case "issue_comment" if action == "created":
            said = payload["comment"]
            comment = Comment(int(said["id"]), said["body"] or "", said["user"]["login"], belongs=False)
            is_pull = payload.get("is_pull") or payload["issue"].get("pull_request")
            asked = is_pull and parse(comment.body)
            return [Job(payload["repository"]["full_name"], int(payload["issue"]["number"]), comment)] if asked else []
        case "issues" if action == "edited" and is_ticked(payload):
            return [Job(payload["repository"]["full_name"])]
    return []
