"""Gitea and Forgejo, by their REST interface (docs.gitea.com/api, version 1, which Forgejo keeps).

It is close to GitHub's. What differs: a draft is a title that begins with `WIP:`, labels go by number, a list of pull requests
knows no branch, and there is no GraphQL.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from ddpfix.bot import one_by_one
from ddpfix.bot.client import ForgeError, same_host
from ddpfix.bot.forge import ChangedFile, Comment, Fate, FileChange, Issue, Pull, Receipt, Repository, Suggestion, right_sides
from ddpfix.bot.graphql import seconds
from ddpfix.bot.token_forge import TokenForge

API = "https://gitea.com/api/v1"
_RECEIPTS: Mapping[Receipt, str] = {"seen": "eyes", "done": "rocket", "refused": "confused"}
_MAY_WRITE = ("owner", "admin", "write")
_DRAFT = "WIP: "
_COLOUR = "2c5aa0"  # a new label needs one
_PAGE = {"limit": 50}  # the most that a server gives by default (MAX_RESPONSE_ITEMS)


class Gitea(TokenForge):
    """A forge (see `ddpfix.bot.forge.Forge`). login: a token with `write:repository`, `write:issue` and `read:user`."""

    name = "Gitea"
    API = API
    SCHEME = "token"
    ACCOUNT = "login"

    def repository(self, slug: str) -> Repository:
        data = self._client.get(_repo(slug))
        self._urls[slug] = same_host(data["clone_url"], self._api_url)
        if "topics" not in data:  # before 1.23
            data = {**data, **self._client.get(f"{_repo(slug)}/topics")}
        return _repository(data)

    def listed(self, slug: str) -> Iterator[Repository]:
        name = quote(slug, safe="")
        try:
            yield from map(_repository, self._client.pages(f"/orgs/{name}/repos", _PAGE))
        except ForgeError as error:
            if error.status != 404:
                raise
            yield from map(_repository, self._client.pages(f"/users/{name}/repos", _PAGE))

    def heads(self, slugs: Sequence[str]) -> Mapping[str, str]:
        return {}  # there is no such request: a git request a repository is as good

    def fates(self, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
        return one_by_one.fates(self, pulls)

    def pulls(self, slug: str, branch: str) -> Sequence[Pull]:
        found = map(_pull, self._client.pages(f"{_repo(slug)}/pulls", {"state": "all", **_PAGE}))
        return sorted((p for p in found if p.inside and p.branch == branch), key=lambda p: -p.number)

    def pull(self, slug: str, number: int) -> Pull:
        return _pull(self._client.get(f"{_repo(slug)}/pulls/{number}"))

    def pull_ref(self, number: int) -> str:
        return f"refs/pull/{number}/head"

    def open_pull(self, slug: str, *, branch: str, base: str, title: str, body: str, draft: bool) -> Pull:
        asked = {"title": f"{_DRAFT if draft else ''}{title}", "head": branch, "base": base, "body": body}
        return _pull(self._client.write("POST", f"{_repo(slug)}/pulls", asked))

    def edit_pull(
        self,
        slug: str,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
        close: bool = False,
    ) -> None:
        if title is not None and self.pull(slug, number).draft:
            title = f"{_DRAFT}{title}"  # whether it is ready is not ours to say again
        given = {"title": title, "body": body, "base": base, "state": "closed" if close else None}
        self._client.write("PATCH", f"{_repo(slug)}/pulls/{number}", {k: v for k, v in given.items() if v is not None})

    def label(self, slug: str, number: int, labels: Sequence[str]) -> None:
        known = {label["name"]: label["id"] for label in self._client.pages(f"{_repo(slug)}/labels", _PAGE)}
        for name in labels:
            if name not in known:
                made = self._client.write("POST", f"{_repo(slug)}/labels", {"name": name, "color": f"#{_COLOUR}"})
                known[name] = made["id"]
        self._client.write("POST", f"{_issue(slug, number)}/labels", {"labels": [known[name] for name in labels]})

    def comments(self, slug: str, number: int) -> Sequence[Comment]:
        return [_comment(c) for c in self._client.pages(f"{_issue(slug, number)}/comments", _PAGE)]

    def comment(self, slug: str, number: int, body: str) -> None:
        self._client.write("POST", f"{_issue(slug, number)}/comments", {"body": body})

    def edit_comment(self, slug: str, number: int, comment: int, body: str) -> None:
        self._client.write("PATCH", f"{_repo(slug)}/issues/comments/{comment}", {"body": body})

    def react(self, slug: str, number: int, comment: int, receipt: Receipt) -> None:
        asked = {"content": _RECEIPTS[receipt]}
        self._client.write("POST", f"{_repo(slug)}/issues/comments/{comment}/reactions", asked)

    def may_write(self, slug: str, login: str) -> bool:
        try:
            found = self._client.get(f"{_repo(slug)}/collaborators/{quote(login, safe='')}/permission")
        except ForgeError as error:
            if error.status == 404:
                return False
            raise
        return found.get("permission") in _MAY_WRITE

    def rules(self, slug: str, branch: str) -> Sequence[str]:
        found = self._client.get(f"{_repo(slug)}/branch_protections")
        names = [rule.get("rule_name") or rule.get("branch_name") or "" for rule in found]
        return [f"protected branch {name}" for name in names if fnmatchcase(branch, name)]

    def changed(self, slug: str, number: int) -> Mapping[str, ChangedFile]:
        return right_sides(self._client.text(f"{_repo(slug)}/pulls/{number}.diff"))

    def review_comments(self, slug: str, number: int) -> Sequence[Comment]:
        at = f"{_repo(slug)}/pulls/{number}/reviews"
        reviews = [review for review in self._client.pages(at, _PAGE) if review.get("comments_count")]
        return [_comment(c) for review in reviews for c in self._client.get(f"{at}/{review['id']}/comments")]

    def review(self, slug: str, pull: Pull, body: str, suggestions: Sequence[Suggestion]) -> None:
        comments = [_on_line(s) for s in suggestions]
        asked = {"commit_id": pull.tip, "event": "COMMENT", "body": body, "comments": comments}
        self._client.write("POST", f"{_repo(slug)}/pulls/{pull.number}/reviews", asked)

    def issues(self, slug: str) -> Sequence[Issue]:
        asked: dict[str, str | int] = {"type": "issues", "state": "open", "created_by": self.account(slug), **_PAGE}
        return [_an_issue(data) for data in self._client.pages(f"{_repo(slug)}/issues", asked)]

    def open_issue(self, slug: str, title: str, body: str) -> Issue:
        return _an_issue(self._client.write("POST", f"{_repo(slug)}/issues", {"title": title, "body": body}))

    def edit_issue(self, slug: str, number: int, body: str) -> None:
        self._client.write("PATCH", _issue(slug, number), {"body": body})

    def commit(self, slug: str, branch: str, base: str, message: str, changes: Sequence[FileChange]) -> str:
        asked = {"branch": branch, "message": message, "files": [_change(change) for change in changes]}
        made = self._client.write("POST", f"{_repo(slug)}/contents", asked)
        return str(made["commit"]["sha"])


def _change(change: FileChange) -> dict[str, str]:
    said = {"path": change.path, "operation": "delete" if change.data is None else "update" if change.old else "create"}
    if change.data is not None:
        said["content"] = base64.b64encode(change.data).decode()
    return {**said, "sha": change.old} if change.old else said


def _on_line(suggestion: Suggestion) -> dict[str, object]:
    """A comment stands on one line here, and a suggestion is a block to copy."""
    from ddpfix.summary.markdown import fence

    block = "\n".join(fence(suggestion.text.removesuffix("\n").split("\n")))
    body = f"{suggestion.words}\n\n{block}\n\n{suggestion.mark}"
    return {"path": suggestion.path, "new_position": suggestion.last, "old_position": 0, "body": body}


def _repo(slug: str) -> str:
    owner, _, name = slug.partition("/")
    return f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"


def _issue(slug: str, number: int) -> str:
    return f"{_repo(slug)}/issues/{number}"


def _repository(data: Mapping[str, Any]) -> Repository:
    return Repository(
        slug=data["full_name"],
        id=str(data["id"]),
        default_branch=data.get("default_branch") or "main",
        archived=bool(data.get("archived")),
        fork=bool(data.get("fork")),
        may_push=bool((data.get("permissions") or {}).get("push", True)),
        pulls=bool(data.get("has_pull_requests", True)),
        topics=tuple(data.get("topics") or ()),
    )


def _pull(data: Mapping[str, Any]) -> Pull:
    head, base = data["head"], data["base"]
    title = data["title"]
    return Pull(
        number=data["number"],
        state="merged" if data.get("merged") else "open" if data["state"] == "open" else "closed",
        title=title.removeprefix(_DRAFT),
        body=data.get("body") or "",
        draft=bool(data.get("draft", title.startswith(_DRAFT))),
        url=data["html_url"],
        author=(data.get("user") or {}).get("login", ""),
        branch=head["ref"],
        tip=head["sha"],
        base=base["ref"],
        inside=head.get("repo_id") == base.get("repo_id"),
        opened=seconds(data.get("created_at")),
        decided=seconds(data.get("merged_at") or data.get("closed_at")),
    )


def _comment(data: Mapping[str, Any]) -> Comment:
    return Comment(data["id"], data.get("body") or "", (data.get("user") or {}).get("login", ""))


def _an_issue(data: Mapping[str, Any]) -> Issue:
    return Issue(data["number"], data.get("body") or "", (data.get("user") or {}).get("login", ""), data.get("html_url") or "")
