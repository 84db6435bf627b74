"""What only GitLab's GraphQL interface answers in one request (docs.gitlab.com/api/graphql/reference, Project, MergeRequest)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ddpfix.bot.client import Client
from ddpfix.bot.forge import Fate, PullState
from ddpfix.bot.graphql import ask, seconds, text

AT_ONCE = 50
_HEAD = "repository { exists tree { lastCommit { sha } } }"
_FATE = "state createdAt mergedAt closedAt"
_STATES: Mapping[str, PullState] = {"merged": "merged", "closed": "closed"}


def heads(client: Client, slugs: Sequence[str]) -> Mapping[str, str]:
    """As `Forge.heads`."""
    found = ask(client, [f"project(fullPath: {text(slug)}) {{ {_HEAD} }}" for slug in slugs], at_once=AT_ONCE)
    repositories = ((slug, data["repository"]) for slug, data in zip(slugs, found, strict=True) if data)
    return {slug: _tip(repository) for slug, repository in repositories if repository}


def fates(client: Client, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
    """As `Forge.fates`."""
    asked = [
        f"project(fullPath: {text(slug)}) {{ mergeRequest(iid: {text(str(number))}) {{ {_FATE} }} }}" for slug, number in pulls
    ]
    found = ask(client, asked, at_once=AT_ONCE)
    return {pull: _fate((data or {}).get("mergeRequest")) for pull, data in zip(pulls, found, strict=True)}


def _tip(repository: Mapping[str, Any]) -> str:
    commit = (repository.get("tree") or {}).get("lastCommit")
    return str(commit["sha"]) if commit else ""


def _fate(data: Mapping[str, Any] | None) -> Fate | None:
    if not data:
        return None
    decided = data.get("mergedAt") or data.get("closedAt")
    return Fate(_STATES.get(data["state"], "open"), seconds(data.get("createdAt")), seconds(decided))
