"""A small stateful stand-in for GitLab: real git over HTTP, merge requests, notes, reactions and draft notes in memory.

It answers the requests that the bot sends, by what docs.gitlab.com/api says of them, and no other. GitLab publishes no
description as complete as GitHub's, so the fields of a request are held against the short lists below, written from those pages.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.bot.contract import Refused
from tests.bot.githost import GitHost, git, send, token_of

TAKEN = {
    ("POST", "/merge_requests"): {"source_branch", "target_branch", "title", "description", "remove_source_branch"},
    ("PUT", "/merge_requests/N"): {"title", "description", "state_event", "add_labels"},
    ("POST", "/merge_requests/N/notes"): {"body"},
    ("PUT", "/merge_requests/N/notes/N"): {"body"},
    ("POST", "/merge_requests/N/notes/N/award_emoji"): {"name"},
    ("POST", "/merge_requests/N/draft_notes"): {"note", "position"},
    ("POST", "/merge_requests/N/draft_notes/bulk_publish"): set(),
    ("POST", "/repository/commits"): {"branch", "commit_message", "actions"},
    ("POST", "/issues"): {"title", "description"},
    ("PUT", "/issues/N"): {"description"},
}
ASKED = re.compile(
    r'(?P<alias>\w+): project\(fullPath: "(?P<slug>[^"]*)"\) \{ (?:repository \{ exists tree \{ lastCommit \{ sha \} \} \}'
    r'|mergeRequest\(iid: "(?P<number>\d+)"\) \{ state createdAt mergedAt closedAt \}) \}'
)
POSITION = {"position_type", "new_line", "old_path", "new_path", "base_sha", "start_sha", "head_sha"}


@dataclass
class Project:
    slug: str
    merges: dict[int, dict[str, Any]] = field(default_factory=dict)
    notes: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    drafts: list[dict[str, Any]] = field(default_factory=list)
    awards: list[tuple[int, str]] = field(default_factory=list)
    developers: set[str] = field(default_factory=set)
    about: dict[str, Any] = field(default_factory=dict)
    protected: list[str] = field(default_factory=list)


class GitLabForge(GitHost):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.api = f"{self.url}/api/v4"
        self.projects: dict[str, Project] = {}
        self.tokens: dict[str, str] = {}
        self.complexity = 1000  # questions of one GraphQL request; GitLab says only that there is a bound
        self._next = 100

    def may(self, token: str, slug: str, *, push: bool) -> int:
        return 200 if token in self.tokens else 401

    def add(self, slug: str, files: Mapping[str, bytes], **about: Any) -> Project:
        self.create(slug, files)
        self.projects[slug] = Project(slug, about=about)
        return self.projects[slug]

    def number(self) -> int:
        self._next += 1
        return self._next

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        url = urlsplit(request.path)
        try:
            user = self.tokens.get(token_of(request.headers.get("Authorization", "")))
            if user is None:
                raise Refused(401, "401 Unauthorized")
            given = json.loads(body) if body else {}
            path = url.path.removeprefix("/api/v4")
            status, found = self._route(request.command, path, dict(parse_qsl(url.query)), given, user)
        except Refused as refusal:
            status, found = refusal.status, {"message": refusal.message}
        send(request, status, b"" if found is None else json.dumps(found).encode(), {"Content-Type": "application/json"})

    def _route(self, verb: str, path: str, query: dict[str, str], body: dict[str, Any], user: str) -> tuple[int, Any]:
        if path == "/api/graphql":
            return 200, self._graphql(body["query"])
        if path == "/user":
            return 200, {"id": 1, "username": user}
        if group := re.fullmatch(r"/groups/([^/]+)/projects", path):
            below = f"{unquote(group[1])}/"
            return 200, [self._project_json(p) for slug, p in sorted(self.projects.items()) if slug.startswith(below)]
        if path == "/users":
            return 200, [{"id": sum(query["username"].encode()), "username": query["username"]}]
        match = re.fullmatch(r"/projects/([^/]+)(/.*)?", path)
        project = self.projects.get(unquote(match[1])) if match else None
        if match is None or project is None:
            raise Refused(404, "404 Project Not Found")
        rest = match[2] or ""
        shape = re.sub(r"/\d+", "/N", rest)
        if verb != "GET" and ((verb, shape) not in TAKEN or not set(body) <= TAKEN[verb, shape]):
            raise Refused(400, f"{verb} {shape} does not take {sorted(body)}")
        numbers = [int(n) for n in re.findall(r"/(\d+)", rest)]
        if shape.startswith("/merge_requests/N"):
            if numbers[0] not in project.merges:
                raise Refused(404, "404 Not found")
            return self._merge(verb, shape.removeprefix("/merge_requests/N"), project, numbers, body, user)
        match verb, shape:
            case "GET", "":
                return 200, self._project_json(project)
            case "GET", "/merge_requests":
                found = [self.json(project, m) for m in reversed(project.merges.values())]
                return 200, [m for m in found if m["source_branch"] == query["source_branch"]]
            case "POST", "/merge_requests":
                return 201, self._open(project, body, user)
            case "GET", "/protected_branches":
                return 200, [{"name": name} for name in project.protected]
            case "GET", "/issues":
                found = [i for i in project.issues.values() if i["author"]["username"] == query["author_username"]]
                return 200, [i for i in found if i["state"] == query["state"]]
            case "POST", "/issues":
                made = {"iid": len(project.issues) + 1, "state": "opened", "author": {"username": user}, **body}
                project.issues[made["iid"]] = made | {"web_url": f"{self.url}/{project.slug}/-/issues/{made['iid']}"}
                return 201, project.issues[made["iid"]]
            case "PUT", "/issues/N":
                project.issues[numbers[0]] |= body
                return 200, project.issues[numbers[0]]
            case "POST", "/repository/commits":
                return 201, self._committed(project, body, user)
            case "GET", "/members/all/N":
                if numbers[0] not in {sum(name.encode()) for name in project.developers}:
                    raise Refused(404, "404 Not found")
                return 200, {"access_level": 30}
        raise Refused(404, f"404 {verb} {shape}")

    def _committed(self, project: Project, body: dict[str, Any], user: str) -> dict[str, Any]:
        repo, ref = self.repository(project.slug), f"refs/heads/{body['branch']}"
        who = f"{user} <4711+mender[bot]@users.noreply.example.test> 1700000000 +0000"
        message = body["commit_message"].encode()
        out = [f"commit {ref}\nauthor {who}\ncommitter {who}\ndata {len(message)}".encode(), message, f"from {ref}^0".encode()]
        for action in body["actions"]:
            there = git(repo, "rev-parse", "-q", "--verify", f"{ref}:{action['file_path']}", ok=False)
            if bool(there) != (action["action"] != "create"):
                raise Refused(400, "A file with this name doesn't exist")
            if action["action"] == "delete":
                out.append(f"D {action['file_path']}".encode())
            else:
                data = base64.b64decode(action["content"], validate=True)
                out += [f"M 100644 inline {action['file_path']}\ndata {len(data)}".encode(), data]
        git(repo, "fast-import", "--quiet", "--force", data=b"\n".join(out) + b"\n")
        return {"id": git(repo, "rev-parse", ref)}

    def _project_json(self, project: Project) -> dict[str, Any]:
        return {
            "id": 1, "path_with_namespace": project.slug, "default_branch": "main", "archived": False, "topics": [],
            "http_url_to_repo": f"{self.url}/{project.slug}.git",
            "permissions": {"project_access": {"access_level": 40}, "group_access": None}, **project.about,
        }  # fmt: skip

    def _graphql(self, query: str) -> dict[str, Any]:
        rows = query.removeprefix("query {").removesuffix("}").strip().split("\n")
        if len(rows) > self.complexity:
            said = f"Query has complexity of {len(rows)}, which exceeds max complexity of {self.complexity}"
            return {"data": None, "errors": [{"message": said}]}
        data: dict[str, Any] = {}
        for row in rows:
            asked = ASKED.fullmatch(row)
            if asked is None:
                return {"data": None, "errors": [{"message": f"Parse error on {row!r}"}]}
            project = self.projects.get(asked["slug"])
            data[asked["alias"]] = self._answer(project, asked["number"]) if project else None
        return {"data": data}

    def _answer(self, project: Project, number: str | None) -> dict[str, Any]:
        if number is None:
            tip = self.tip(project.slug, "refs/heads/main")
            return {"repository": {"exists": bool(tip), "tree": {"lastCommit": {"sha": tip} if tip else None}}}
        merge = project.merges.get(int(number))
        times = {"createdAt": "2026-01-01T00:00:00Z", "mergedAt": None, "closedAt": None}
        return {"mergeRequest": {"state": self.json(project, merge)["state"], **times} if merge else None}

    def json(self, project: Project, merge: dict[str, Any]) -> dict[str, Any]:
        if merge["state"] == "opened":
            tip = self.tip(project.slug, f"refs/heads/{merge['source_branch']}")
            if tip:
                merge["sha"] = tip
                git(self.repository(project.slug), "update-ref", f"refs/merge-requests/{merge['iid']}/head", tip)
            else:
                merge["state"] = "closed"
        base = self.tip(project.slug, "refs/heads/main")
        return {**merge, "diff_refs": {"base_sha": base, "start_sha": base, "head_sha": merge["sha"]}}

    def _open(self, project: Project, body: dict[str, Any], user: str) -> dict[str, Any]:
        branch = body["source_branch"]
        if not self.tip(project.slug, f"refs/heads/{branch}"):
            raise Refused(400, f"Source branch {branch!r} does not exist")
        for other in project.merges.values():
            if self.json(project, other)["source_branch"] == branch and other["state"] == "opened":
                raise Refused(409, f"Another open merge request already exists for this source branch: !{other['iid']}")
        return self.open_by_hand(project, branch, body["title"], body.get("description", ""), user)

    def open_by_hand(self, project: Project, branch: str, title: str, text: str = "", user: str = "ada") -> dict[str, Any]:
        number = len(project.merges) + 1
        project.merges[number] = {
            "iid": number, "state": "opened", "title": title, "description": text, "labels": [], "source_branch": branch,
            "target_branch": "main", "web_url": f"{self.url}/{project.slug}/-/merge_requests/{number}", "source_project_id": 1,
            "target_project_id": 1, "author": {"username": user}, "sha": "",
        }  # fmt: skip
        return self.json(project, project.merges[number])

    def note(self, project: Project, number: int, author: str, body: str, **more: Any) -> int:
        note = {"id": self.number(), "body": body, "author": {"username": author}, "on": number, "system": False, **more}
        project.notes[note["id"]] = note
        return int(note["id"])

    def _merge(
        self, verb: str, shape: str, project: Project, numbers: list[int], body: dict[str, Any], user: str
    ) -> tuple[int, Any]:
        merge = project.merges[numbers[0]]
        match verb, shape:
            case "GET", "":
                return 200, self.json(project, merge)
            case "PUT", "":
                merge |= {key: body[key] for key in ("title", "description") if key in body}
                merge["labels"] += [name for name in body.get("add_labels", "").split(",") if name]
                if body.get("state_event") == "close":
                    merge["state"] = "closed"
                return 200, self.json(project, merge)
            case "GET", "/notes":
                return 200, [n for n in project.notes.values() if n["on"] == merge["iid"]]
            case "POST", "/notes":
                return 201, project.notes[self.note(project, merge["iid"], user, body["body"])]
            case "PUT", "/notes/N":
                project.notes[numbers[1]]["body"] = body["body"]
                return 200, project.notes[numbers[1]]
            case "POST", "/notes/N/award_emoji":
                project.awards.append((numbers[1], body["name"]))
                return 201, {}
            case "GET", "/diffs":
                return 200, [{"new_path": path, "diff": text} for path, text in self._diffs(project, merge).items()]
            case "POST", "/draft_notes":
                self._must_be_on_an_added_line(project, merge, body["position"])
                project.drafts.append({"on": merge["iid"], **body})
                return 201, {}
            case "POST", "/draft_notes/bulk_publish":
                for draft in project.drafts:
                    self.note(project, draft["on"], user, draft["note"], type="DiffNote", position=draft["position"])
                project.drafts.clear()
                return 204, None
        raise Refused(404, f"404 {verb} {shape}")

    def _diffs(self, project: Project, merge: dict[str, Any]) -> dict[str, str]:
        tip = self.json(project, merge)["sha"]
        out = {}
        for part in git(self.repository(project.slug), "diff", f"refs/heads/main...{tip}").split("diff --git ")[1:]:
            head, _, hunks = part.partition("\n@@ ")
            out[head.partition("\n+++ b/")[2]] = f"@@ {hunks}"
        return out

    def _must_be_on_an_added_line(self, project: Project, merge: dict[str, Any], position: dict[str, Any]) -> None:
        at, added = 0, set()
        for row in self._diffs(project, merge).get(position["new_path"], "").split("\n"):
            if head := re.match(r"@@ \S+ \+(\d+)", row):
                at = int(head[1])
                continue
            if row.startswith("+"):
                added.add(at)
            at += not row.startswith("-")
        refs = self.json(project, merge)["diff_refs"]
        if set(position) != POSITION or position["new_line"] not in added or any(position[k] != v for k, v in refs.items()):
            raise Refused(400, '400 Bad request - Note {:line_code=>["can\'t be blank"]}')
