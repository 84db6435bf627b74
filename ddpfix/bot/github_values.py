"""What GitHub answers as the bot's own values (docs.github.com/rest, version 2022-11-28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddpfix.bot.forge import Comment, Issue, Pull, Repository, Suggestion
from ddpfix.bot.graphql import seconds


def a_repository(data: Mapping[str, Any]) -> Repository:
    return Repository(
        slug=data["full_name"],
        id=str(data["id"]),
        default_branch=data["default_branch"],
        archived=bool(data.get("archived") or data.get("disabled")),
        fork=bool(data.get("fork")),
        may_push=bool((data.get("permissions") or {}).get("push", True)),
        pulls=bool(data.get("has_pull_requests", True)),
        topics=tuple(data.get("topics") or ()),
    )


def a_pull(data: Mapping[str, Any]) -> Pull:
    head, base = data["head"], data["base"]
    # the repository of a head is gone (null) where a fork was deleted
    inside = bool(head.get("repo")) and head["repo"]["full_name"] == base["repo"]["full_name"]
    return Pull(
        number=data["number"],
        state="merged" if data.get("merged_at") else "open" if data["state"] == "open" else "closed",
        title=data["title"],
        body=data.get("body") or "",
        draft=bool(data.get("draft")),
        url=data["html_url"],
        author=(data.get("user") or {}).get("login", ""),
        branch=head["ref"],
        tip=head["sha"],
        base=base["ref"],
        inside=inside,
        opened=seconds(data.get("created_at")),
        decided=seconds(data.get("merged_at") or data.get("closed_at")),
    )


def an_issue(data: Mapping[str, Any]) -> Issue:
    return Issue(data["number"], data.get("body") or "", (data.get("user") or {}).get("login", ""), data.get("html_url") or "")


def a_comment(data: Mapping[str, Any]) -> Comment:
    user = data.get("user") or {}
    return Comment(data["id"], data.get("body") or "", user.get("login", ""), user.get("type") == "Bot")


def on_lines(suggestion: Suggestion) -> dict[str, object]:
    from ddpfix.summary.markdown import fence

    block = "\n".join(fence(suggestion.text.removesuffix("\n").split("\n"), "suggestion"))
    place: dict[str, object] = {"path": suggestion.path, "line": suggestion.last, "side": "RIGHT"}
    if suggestion.first < suggestion.last:
        place |= {"start_line": suggestion.first, "start_side": "RIGHT"}
    return {**place, "body": f"{suggestion.words}\n\n{block}\n\n{suggestion.mark}"}
