"""A small stateful stand-in for Gitea: real git over HTTP, pull requests, comments, reviews, labels and issues in memory.

It answers the requests that the bot sends, and no other. The fields of a request are held against the lists below, those of
Gitea's own description of its interface (swagger.v1.json, version 1.23, as the npm package gitea-js has it).
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
from urllib.parse import parse_qsl, urlsplit

from tests.bot.contract import Refused
from tests.bot.githost import GitHost, git, send, token_of

TAKEN = {
    ("POST", "/pulls"): {"title", "head", "base", "body", "labels", "assignees"},
    ("PATCH", "/pulls/N"): {"title", "body", "base", "state"},
    ("POST", "/pulls/N/reviews"): {"body", "comments", "commit_id", "event"},
    ("POST", "/issues"): {"title", "body", "labels"},
    ("PATCH", "/issues/N"): {"title", "body", "state"},
    ("POST", "/issues/N/comments"): {"body"},
    ("PATCH", "/issues/comments/N"): {"body"},
    ("POST", "/issues/comments/N/reactions"): {"content"},
    ("POST", "/issues/N/labels"): {"labels"},
    ("POST", "/labels"): {"name", "color", "description"},
    ("POST", "/contents"): {"branch", "message", "files"},
}
REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
TIMES = {"created_at": "2026-01-01T00:00:00Z"}


@dataclass
class Repo:
    slug: str
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)
    about: dict[str, Any] = field(default_factory=dict)


class GiteaForge(GitHost):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.api = f"{self.url}/api/v1"
        self.repos: dict[str, Repo] = {}
        self.tokens: dict[str, str] = {}
        self._next = 100

    def may(self, token: str, slug: str, *, push: bool) -> int:
        return 200 if token in self.tokens else 401

    def add(self, slug: str, files: Mapping[str, bytes], **about: Any) -> Repo:
        self.create(slug, files)
        self.repos[slug] = Repo(slug, about=about)
        return self.repos[slug]

    def number(self) -> int:
        self._next += 1
        return self._next

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        url = urlsplit(request.path)
        headers = {"Content-Type": "application/json"}
        try:
            user = self.tokens.get(token_of(request.headers.get("Authorization", "")))
            if user is None:
                raise Refused(401, "token is required")
            path = url.path.removeprefix("/api/v1")
            query = dict(parse_qsl(url.query))
            status, found = self._route(request.command, path, query, json.loads(body) if body else {}, user)
            if isinstance(found, list):
                size, page = min(int(query.get("limit", 30)), 50), int(query.get("page", 1))
                rest = "&".join(f"{k}={v}" for k, v in query.items() if k != "page")
                if page * size < len(found):
                    headers["Link"] = f'<{self.api}{path}?{rest}&page={page + 1}>; rel="next"'
                found = found[(page - 1) * size : page * size]
        except Refused as refusal:
            status, found = refusal.status, {"message": refusal.message}
        plain = found.encode() if isinstance(found, str) else b"" if found is None else json.dumps(found).encode()
        send(request, status, plain, headers)

    def _route(self, verb: str, path: str, query: dict[str, str], body: dict[str, Any], user: str) -> tuple[int, Any]:
        if path == "/user":
            return 200, {"id": 1, "login": user}
        if owner := re.fullmatch(r"/orgs/([^/]+)/repos", path):
            return 200, [self._repo(r) for slug, r in sorted(self.repos.items()) if slug.startswith(f"{owner[1]}/")]
        match = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", path)
        repo = self.repos.get(match[1]) if match else None
        if match is None or repo is None:
            raise Refused(404, "The target couldn't be found.")
        rest = match[2] or ""
        shape = re.sub(r"/\d+", "/N", rest)
        if verb != "GET" and ((verb, shape) not in TAKEN or not set(body) <= TAKEN[verb, shape]):
            raise Refused(422, f"{verb} {shape} does not take {sorted(body)}")
        numbers = [int(n) for n in re.findall(r"/(\d+)", rest)]
        if re.match(r"/pulls/N", shape) and numbers[0] not in repo.pulls:
            raise Refused(404, "The target couldn't be found.")
        match verb, shape:
            case "GET", "":
                return 200, self._repo(repo)
            case "GET", "/pulls":
                return 200, [self.pull_json(repo, p) for p in reversed(repo.pulls.values())]
            case "POST", "/pulls":
                return 201, self._open(repo, body, user)
            case "GET", "/branch_protections":
                return 200, []
            case "GET", _ if found := re.fullmatch(r"/collaborators/(\w+)/permission", rest):
                return 200, {"permission": "write" if found[1] in repo.writers else "read"}
            case "GET", "/labels":
                return 200, [{"id": number, "name": name} for number, name in repo.labels.items()]
            case "POST", "/labels":
                repo.labels[self.number()] = body["name"]
                return 201, {"id": self._next, "name": body["name"]}
            case "GET", "/issues":
                asked = query["state"], query["created_by"]
                return 200, [i for i in repo.issues.values() if (i["state"], i["user"]["login"]) == asked]
            case "POST", "/issues":
                made = {"number": 900 + len(repo.issues), "state": "open", "user": {"login": user}, "html_url": "", **body}
                repo.issues[made["number"]] = made
                return 201, made
            case "PATCH", "/issues/N":
                repo.issues[numbers[0]] |= body
                return 201, repo.issues[numbers[0]]
            case "POST", "/contents":
                return 201, self._committed(repo, body, user)
        return self._about(verb, shape, repo, numbers, body, user)

    def _about(
        self, verb: str, shape: str, repo: Repo, numbers: list[int], body: dict[str, Any], user: str
    ) -> tuple[int, Any]:
        match verb, shape:
            case "GET", "/pulls/N":
                return 200, self.pull_json(repo, repo.pulls[numbers[0]])
            case "PATCH", "/pulls/N":
                repo.pulls[numbers[0]] |= body
                return 201, self.pull_json(repo, repo.pulls[numbers[0]])
            case "GET", "/pulls/N.diff":
                tip = self.pull_json(repo, repo.pulls[numbers[0]])["head"]["sha"]
                return 200, git(self.repository(repo.slug), "diff", f"refs/heads/main...{tip}")
            case "GET", "/pulls/N/reviews":
                return 200, [r for r in repo.reviews if r["on"] == numbers[0]]
            case "GET", "/pulls/N/reviews/N/comments":
                return 200, next(r["comments"] for r in repo.reviews if r["id"] == numbers[1])
            case "POST", "/pulls/N/reviews":
                said = [{"id": self.number(), "user": {"login": user}, **c} for c in body["comments"]]
                if any(c["old_position"] or not c["new_position"] or c["path"][:1] == "/" for c in said):
                    raise Refused(422, "no line")
                repo.reviews.append({"id": self.number(), "on": numbers[0], "comments_count": len(said), "comments": said})
                self.say(repo, numbers[0], user, body["body"])
                return 200, {"id": self._next}
            case "GET", "/issues/N/comments":
                return 200, [c for c in repo.comments.values() if c["on"] == numbers[0]]
            case "POST", "/issues/N/comments":
                return 201, repo.comments[self.say(repo, numbers[0], user, body["body"])]
            case "PATCH", "/issues/comments/N":
                repo.comments[numbers[0]]["body"] = body["body"]
                return 200, repo.comments[numbers[0]]
            case "POST", "/issues/comments/N/reactions" if body["content"] in REACTIONS:
                repo.reactions.append((numbers[0], body["content"]))
                return 201, {}
            case "POST", "/issues/N/labels" if set(body["labels"]) <= set(repo.labels):
                repo.pulls[numbers[0]]["labels"] = [repo.labels[n] for n in body["labels"]]
                return 200, []
        raise Refused(404, f"{verb} {shape}")

    def say(self, repo: Repo, number: int, author: str, body: str) -> int:
        said = self.number()
        repo.comments[said] = {"id": said, "body": body, "user": {"login": author}, "on": number}
        return said

    def _repo(self, repo: Repo) -> dict[str, Any]:
        return {
            "id": 7, "full_name": repo.slug, "default_branch": "main", "clone_url": f"{self.url}/{repo.slug}.git",
            "archived": False, "fork": False, "permissions": {"push": True}, "topics": [], **repo.about,
        }  # fmt: skip

    def pull_json(self, repo: Repo, pull: dict[str, Any]) -> dict[str, Any]:
        tip = self.tip(repo.slug, f"refs/heads/{pull['head']}")
        if pull["state"] == "open" and tip:
            pull["tip"] = tip
            git(self.repository(repo.slug), "update-ref", f"refs/pull/{pull['number']}/head", tip)
        elif pull["state"] == "open":
            pull["state"] = "closed"
        return {
            **{key: pull[key] for key in ("number", "state", "title", "body")}, **TIMES,
            "draft": pull["title"].startswith("WIP:"), "merged": pull.get("merged", False),
            "html_url": f"{self.url}/{repo.slug}/pulls/{pull['number']}",
            "user": {"login": pull["by"]}, "head": {"ref": pull["head"], "sha": pull["tip"], "repo_id": 7},
            "base": {"ref": pull["base"], "sha": self.tip(repo.slug, "refs/heads/main"), "repo_id": 7},
        }  # fmt: skip

    def _open(self, repo: Repo, body: dict[str, Any], user: str) -> dict[str, Any]:
        if any(p["head"] == body["head"] and p["state"] == "open" for p in repo.pulls.values()):
            raise Refused(409, "pull request already exists for these targets")
        number = len(repo.pulls) + 1
        repo.pulls[number] = {"number": number, "state": "open", "by": user, "tip": "", "labels": [], **body}
        return self.pull_json(repo, repo.pulls[number])

    def _committed(self, repo: Repo, body: dict[str, Any], user: str) -> dict[str, Any]:
        place, ref = self.repository(repo.slug), f"refs/heads/{body['branch']}"
        who = f"{user} <4711+mender[bot]@users.noreply.example.test> 1700000000 +0000"
        message = body["message"].encode()
        out = [f"commit {ref}\nauthor {who}\ncommitter {who}\ndata {len(message)}".encode(), message, f"from {ref}^0".encode()]
        for change in body["files"]:
            there = git(place, "rev-parse", "-q", "--verify", f"{ref}:{change['path']}", ok=False)
            if there != change.get("sha", "") or bool(there) == (change["operation"] == "create"):
                raise Refused(422, f"sha does not match [given: {change.get('sha')}, expected: {there}]")
            if change["operation"] == "delete":
                out.append(f"D {change['path']}".encode())
            else:
                data = base64.b64decode(change["content"], validate=True)
                out += [f"M 100644 inline {change['path']}\ndata {len(data)}".encode(), data]
        git(place, "fast-import", "--quiet", "--force", data=b"\n".join(out) + b"\n")
        return {"commit": {"sha": git(place, "rev-parse", ref)}, "verification": {"verified": True}}
