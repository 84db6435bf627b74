"""What only GitHub's GraphQL interface does: the heads of many repositories, the fates of many pull requests in one request, and
commits that GitHub makes and signs.

docs.github.com/graphql: the objects Repository, Ref and PullRequest; the mutation createCommitOnBranch, whose commits are
"automatically signed by GitHub".
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from ddpfix.bot.client import Client, ForgeError
from ddpfix.bot.forge import Fate, FileChange, PullState
from ddpfix.bot.graphql import ask, complaint, seconds, text

AT_ONCE = 100
_HEAD = "defaultBranchRef { target { oid } }"
_FATE = "state createdAt mergedAt closedAt"
_COMMIT = "mutation ($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"
_STATES: Mapping[str, PullState] = {"MERGED": "merged", "CLOSED": "closed"}


def heads(client: Client, slugs: Sequence[str]) -> Mapping[str, str]:
    """As `Forge.heads`."""
    found = ask(client, [f"{_repository(slug)} {{ {_HEAD} }}" for slug in slugs], at_once=AT_ONCE)
    return {slug: _tip(data) for slug, data in zip(slugs, found, strict=True) if data}


def fates(client: Client, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
    """As `Forge.fates`."""
    asked = [f"{_repository(slug)} {{ pullRequest(number: {number}) {{ {_FATE} }} }}" for slug, number in pulls]
    found = ask(client, asked, at_once=AT_ONCE)
    return {pull: _fate((data or {}).get("pullRequest")) for pull, data in zip(pulls, found, strict=True)}


def signed_commit(client: Client, slug: str, branch: str, base: str, message: str, changes: Sequence[FileChange]) -> str:
    """As `Forge.commit`."""
    headline, _, body = message.partition("\n")
    asked = {
        "branch": {"repositoryNameWithOwner": slug, "branchName": branch},
        "expectedHeadOid": base,
        "message": {"headline": headline, "body": body.strip("\n")},
        "fileChanges": {
            "additions": [{"path": c.path, "contents": b64encode(c.data).decode()} for c in changes if c.data is not None],
            "deletions": [{"path": c.path} for c in changes if c.data is None],
        },
    }
    said = client.write("POST", "/graphql", {"query": _COMMIT, "variables": {"input": asked}})
    made = (said.get("data") or {}).get("createCommitOnBranch")
    if not made:
        raise ForgeError("createCommitOnBranch", 200, complaint(said))
    return str(made["commit"]["oid"])


def _repository(slug: str) -> str:
    owner, _, name = slug.partition("/")
    return f"repository(owner: {text(owner)}, name: {text(name)})"


def _tip(data: Mapping[str, Any]) -> str:
    branch = data["defaultBranchRef"]
    return str(branch["target"]["oid"]) if branch else ""


def _fate(data: Mapping[str, Any] | None) -> Fate | None:
    if not data:
        return None
    decided = data.get("mergedAt") or data.get("closedAt")
    return Fate(_STATES.get(data["state"], "open"), seconds(data.get("createdAt")), seconds(decided))
