"""GitHub's GraphQL interface, as far as the bot asks it: read by GraphQL's own rules, answered from the state of the stand-in.

What is not known is null with an error beside it, as docs.github.com says of a repository that the token does not see.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.bot.contract import Refused
from tests.bot.githost import git

if TYPE_CHECKING:
    from tests.bot.github_forge import Account, GitHubForge

MOST = 100  # what the stand-in answers at once; GitHub gives up on long requests
_FIELD = re.compile(
    r'(?P<alias>\w+): repository\(owner: "(?P<owner>[^"]*)", name: "(?P<name>[^"]*)"\) '
    r"\{ (?:(?P<head>defaultBranchRef \{ target \{ oid \} \})"
    r"|pullRequest\(number: (?P<number>\d+)\) \{ state createdAt mergedAt closedAt \}) \}"
)
_COMMIT = "mutation ($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"


def answered(forge: GitHubForge, body: Mapping[str, Any], account: Account) -> dict[str, Any]:
    query = body["query"]
    if query == "query { viewer { login } }":
        return {"data": {"viewer": {"login": account.login}}}
    if query == _COMMIT:
        return _committed(forge, body["variables"]["input"], account)
    rows = query.removeprefix("query {").removesuffix("}").strip().split("\n")
    if len(rows) > MOST:
        raise Refused(502, "Something went wrong while executing your query.")
    data: dict[str, Any] = {}
    errors = []
    for row in rows:
        asked = _FIELD.fullmatch(row)
        if asked is None:
            return {"data": None, "errors": [{"message": f"Parse error on {row!r}"}]}
        slug = f"{asked['owner']}/{asked['name']}"
        data[asked["alias"]] = _answer(forge, slug, asked) if slug in forge.repos else None
        if slug not in forge.repos:
            errors.append({"type": "NOT_FOUND", "path": [asked["alias"]], "message": f"Could not resolve to {slug}."})
    return {"data": data, **({"errors": errors} if errors else {})}


def _answer(forge: GitHubForge, slug: str, asked: re.Match[str]) -> dict[str, Any]:
    if asked["head"]:
        tip = forge.tip(slug, "refs/heads/main")
        return {"defaultBranchRef": {"target": {"oid": tip}} if tip else None}
    pull = forge.repos[slug].pulls.get(int(asked["number"]))
    if pull is None:
        return {"pullRequest": None}
    said = forge.pull_json(slug, pull)
    state = "MERGED" if said["merged_at"] else said["state"].upper()
    times = {"createdAt": said["created_at"], "mergedAt": said["merged_at"], "closedAt": said["closed_at"]}
    return {"pullRequest": {"state": state, **times}}


def _committed(forge: GitHubForge, asked: Mapping[str, Any], account: Account) -> dict[str, Any]:
    """A commit by the account, with GitHub as its committer; every file is an ordinary one, whatever it was before."""
    slug, branch = asked["branch"]["repositoryNameWithOwner"], asked["branch"]["branchName"]
    repo, ref = forge.repository(slug), f"refs/heads/{branch}"
    if not account.write or forge.tip(slug, ref) != asked["expectedHeadOid"]:
        said = f"Expected branch to point to {asked['expectedHeadOid']} but it did not. Pull and try again."
        return {"data": {"createCommitOnBranch": None}, "errors": [{"type": "STALE_DATA", "message": said}]}
    email = f"4711+{account.login}@users.noreply.example.test"
    message = f"{asked['message']['headline']}\n\n{asked['message']['body']}".strip()
    out = [f"commit {ref}\nauthor {account.login} <{email}> 1700000000 +0000".encode()]
    out += [b"committer GitHub <noreply@example.test> 1700000000 +0000", b"data %d" % len(message.encode()), message.encode()]
    out.append(f"from {ref}^0".encode())
    for added in asked["fileChanges"]["additions"]:
        data = base64.b64decode(added["contents"], validate=True)
        out += [f"M 100644 inline {added['path']}\ndata {len(data)}".encode(), data]
    out += [f"D {gone['path']}".encode() for gone in asked["fileChanges"]["deletions"]]
    git(repo, "fast-import", "--quiet", "--force", data=b"\n".join(out) + b"\n")
    return {"data": {"createCommitOnBranch": {"commit": {"oid": git(repo, "rev-parse", ref)}}}}
