"""GitLab, by its REST interface (docs.gitlab.com/api/rest, version 4). A merge request is a pull request here."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from ddpfix.bot import gitlab_graphql
from ddpfix.bot.client import Client, ForgeError, same_host
from ddpfix.bot.forge import (
    ChangedFile,
    Comment,
    Fate,
    FileChange,
    Issue,
    Pull,
    PullState,
    Receipt,
    Repository,
    Suggestion,
    right_side,
)
from ddpfix.bot.graphql import seconds
from ddpfix.bot.token_forge import TokenForge

API = "https://gitlab.com/api/v4"
_RECEIPTS: Mapping[Receipt, str] = {"seen": "eyes", "done": "rocket", "refused": "confused"}
_STATES: Mapping[str, PullState] = {"opened": "open", "locked": "open", "merged": "merged"}
_DEVELOPER = 30  # the lowest role that may push
_DRAFT = "Draft: "


class GitLab(TokenForge):
    """A forge (see `ddpfix.bot.forge.Forge`). login: a project, group or personal token with the scope `api`."""

    name = "GitLab"
    API = API
    SCHEME = "Bearer"
    ACCOUNT = "username"

    def repository(self, slug: str) -> Repository:
        data = self._client.get(_project(slug))
        self._urls[slug] = same_host(data["http_url_to_repo"], self._api_url)
        return _repository(data)

    def listed(self, slug: str) -> Iterator[Repository]:
        asked = {"include_subgroups": "true", "archived": "false", "with_shared": "false", "order_by": "id"}
        yield from map(_repository, self._client.pages(f"/groups/{quote(slug, safe='')}/projects", asked))

    def heads(self, slugs: Sequence[str]) -> Mapping[str, str]:
        return gitlab_graphql.heads(self._graphql(), slugs)

    def fates(self, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
        return gitlab_graphql.fates(self._graphql(), pulls)

    def _graphql(self) -> Client:
        # beside v4 (docs.gitlab.com/api/graphql, "API endpoint")
        base = self._api_url.removesuffix("/v4")
        return Client(base, self._headers, clock=self._clock, pace=self._pace, http=self._http)

    def pulls(self, slug: str, branch: str) -> Sequence[Pull]:
        asked = {"source_branch": branch, "state": "all", "order_by": "created_at", "sort": "desc"}
        pulls = [p for p in map(_pull, self._client.pages(f"{_project(slug)}/merge_requests", asked)) if p.inside]
        return sorted(pulls, key=lambda p: -p.number)

    def pull(self, slug: str, number: int) -> Pull:
        return _pull(self._client.get(_merge(slug, number)))

    def pull_ref(self, number: int) -> str:
        return f"refs/merge-requests/{number}/head"

    def open_pull(self, slug: str, *, branch: str, base: str, title: str, body: str, draft: bool) -> Pull:
        asked = {"source_branch": branch, "target_branch": base, "description": body, "remove_source_branch": True}
        named = {**asked, "title": f"{_DRAFT if draft else ''}{title}"}
        return _pull(self._client.write("POST", f"{_project(slug)}/merge_requests", named))

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
            title = f"{_DRAFT}{title}"  # it is part of the title, and whether it is ready is not ours to say again
        given = {"title": title, "description": body, "target_branch": base, "state_event": "close" if close else None}
        self._client.write("PUT", _merge(slug, number), {k: v for k, v in given.items() if v is not None})

    def label(self, slug: str, number: int, labels: Sequence[str]) -> None:
        self._client.write("PUT", _merge(slug, number), {"add_labels": ",".join(labels)})

    def comments(self, slug: str, number: int) -> Sequence[Comment]:
        return [_comment(n) for n in self._notes(slug, number) if n.get("type") != "DiffNote"]

    def _notes(self, slug: str, number: int) -> list[Mapping[str, Any]]:
        return [n for n in self._client.pages(f"{_merge(slug, number)}/notes", {"sort": "asc"}) if not n.get("system")]

    def comment(self, slug: str, number: int, body: str) -> None:
        self._client.write("POST", f"{_merge(slug, number)}/notes", {"body": body})

    def edit_comment(self, slug: str, number: int, comment: int, body: str) -> None:
        self._client.write("PUT", f"{_merge(slug, number)}/notes/{comment}", {"body": body})

    def react(self, slug: str, number: int, comment: int, receipt: Receipt) -> None:
        self._client.write("POST", f"{_merge(slug, number)}/notes/{comment}/award_emoji", {"name": _RECEIPTS[receipt]})

    def may_write(self, slug: str, login: str) -> bool:
        found = self._client.get("/users", {"username": login})
        if not found:
            return False
        try:
            member = self._client.get(f"{_project(slug)}/members/all/{found[0]['id']}")
        except ForgeError as error:
            if error.status == 404:
                return False
            raise
        return int(member["access_level"]) >= _DEVELOPER

    def rules(self, slug: str, branch: str) -> Sequence[str]:
        found = self._client.pages(f"{_project(slug)}/protected_branches")
        return [f"protected branch {rule['name']}" for rule in found if fnmatchcase(branch, rule["name"])]

    def changed(self, slug: str, number: int) -> Mapping[str, ChangedFile]:
        found = self._client.pages(f"{_merge(slug, number)}/diffs")
        return {f["new_path"]: right_side(f.get("diff") or "") for f in found if not f.get("deleted_file")}

    def review_comments(self, slug: str, number: int) -> Sequence[Comment]:
        return [_comment(n) for n in self._notes(slug, number) if n.get("type") == "DiffNote"]

    def review(self, slug: str, pull: Pull, body: str, suggestions: Sequence[Suggestion]) -> None:
        """As drafts that nobody sees, published in one go."""
        refs = self._client.get(_merge(slug, pull.number))["diff_refs"]
        changed = self.changed(slug, pull.number)
        for suggestion in suggestions:
            line = max(n for n in changed[suggestion.path].changed if suggestion.first <= n <= suggestion.last)
            path = {"old_path": suggestion.path, "new_path": suggestion.path}
            position = {"position_type": "text", "new_line": line, **path, **refs}
            asked = {"note": _with_lines(suggestion, line), "position": position}
            self._client.write("POST", f"{_merge(slug, pull.number)}/draft_notes", asked)
        self._client.write("POST", f"{_merge(slug, pull.number)}/draft_notes/bulk_publish")

    def issues(self, slug: str) -> Sequence[Issue]:
        asked = {"state": "opened", "author_username": self.account(slug)}
        return [_issue(data) for data in self._client.pages(f"{_project(slug)}/issues", asked)]

    def open_issue(self, slug: str, title: str, body: str) -> Issue:
        return _issue(self._client.write("POST", f"{_project(slug)}/issues", {"title": title, "description": body}))

    def edit_issue(self, slug: str, number: int, body: str) -> None:
        self._client.write("PUT", f"{_project(slug)}/issues/{number}", {"description": body})

    def commit(self, slug: str, branch: str, base: str, message: str, changes: Sequence[FileChange]) -> str:
        asked = {"branch": branch, "commit_message": message, "actions": [_action(change) for change in changes]}
        return str(self._client.write("POST", f"{_project(slug)}/repository/commits", asked)["id"])


def _action(change: FileChange) -> dict[str, str]:
    if change.data is None:
        return {"action": "delete", "file_path": change.path}
    content = base64.b64encode(change.data).decode()
    return {"action": "update" if change.old else "create", "file_path": change.path, "content": content, "encoding": "base64"}


def _issue(data: Mapping[str, Any]) -> Issue:
    author = (data.get("author") or {}).get("username", "")
    return Issue(data["iid"], data.get("description") or "", author, data.get("web_url") or "")


def _with_lines(suggestion: Suggestion, line: int) -> str:
    from ddpfix.summary.markdown import fence

    reach = f"suggestion:-{line - suggestion.first}+{suggestion.last - line}"
    lines = suggestion.text.removesuffix("\n").split("\n")
    return "\n".join([suggestion.words, "", *fence(lines, reach), "", suggestion.mark])


def _project(slug: str) -> str:
    return f"/projects/{quote(slug, safe='')}"


def _merge(slug: str, number: int) -> str:
    return f"{_project(slug)}/merge_requests/{number}"


def _repository(data: Mapping[str, Any]) -> Repository:
    given = data.get("permissions") or {}
    levels = [(given.get(kind) or {}).get("access_level", 0) for kind in ("project_access", "group_access")]
    return Repository(
        slug=data["path_with_namespace"],
        id=str(data["id"]),
        default_branch=data.get("default_branch") or "main",
        archived=bool(data.get("archived")),
        fork=bool(data.get("forked_from_project")),
        may_push=not given or max(levels) >= _DEVELOPER,
        pulls=bool(data.get("merge_requests_enabled", True)),
        topics=tuple(data.get("topics") or ()),
    )


def _pull(data: Mapping[str, Any]) -> Pull:
    return Pull(
        number=data["iid"],
        state=_STATES.get(data["state"], "closed"),
        title=data["title"].removeprefix(_DRAFT),
        body=data.get("description") or "",
        draft=data["title"].startswith(_DRAFT),
        url=data["web_url"],
        author=(data.get("author") or {}).get("username", ""),
        branch=data["source_branch"],
        tip=data.get("sha") or "",
        base=data["target_branch"],
        inside=data.get("source_project_id") == data.get("target_project_id"),
        opened=seconds(data.get("created_at")),
        decided=seconds(data.get("merged_at") or data.get("closed_at")),
    )


def _comment(data: Mapping[str, Any]) -> Comment:
    author = data.get("author") or {}
    return Comment(data["id"], data.get("body") or "", author.get("username", ""), bool(author.get("bot")))
