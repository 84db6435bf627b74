"""A stateful stand-in for GitHub: real git over HTTP, its state in memory, every request held against GitHub's own description.

Rules that the description does not state are made by hand: one open pull request for a branch, texts of at most 65,536
characters, review comments only on lines of the diff, tokens that end, App claims of at most ten minutes.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import RLock
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt

from tests.bot.contract import Contract, Refused
from tests.bot.githost import GitHost, git, send, token_of
from tests.bot.github_answers import answered

LONGEST = 65_536
OPENED, DECIDED = "2026-01-01T00:00:00Z", "2026-01-03T12:00:00Z"  # of every pull request
R = "/repos/{owner}/{repo}"


class Clock:
    """Time that passes only where somebody waits for it."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@dataclass
class Account:
    login: str
    write: bool = True
    until: float = float("inf")
    slugs: tuple[str, ...] = ()
    workflow: bool = False
    pulls: bool = False
    issues: bool = True


@dataclass
class Repo:
    slug: str
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)


@dataclass
class Fault:
    """What goes wrong with the next request of a kind. lost: it is carried out, and the answer never comes."""

    verb: str
    pattern: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "something broke"
    lost: bool = False


class GitHubForge(GitHost):
    page_size = 100

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__(folder)
        self.clock = clock
        self.api = f"{self.url}/api/v3"
        self.contract = Contract()
        self.repos: dict[str, Repo] = {}
        self.accounts: dict[str, Account] = {}
        self.ids: dict[str, int] = {}
        self.app_key: Any = None
        self.installation = 77
        self.people: set[str] = set()  # owners that are no organizations
        self.faults: list[Fault] = []
        self.moved: dict[str, str] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.before: Callable[[str, str], None] = lambda verb, path: None
        self._next = 1000
        self._lock = RLock()

    def writes(self, slug: str) -> list[tuple[str, str]]:
        """Requests that were to change something of a repository, pushes included."""
        mine = [(verb, path) for verb, path in self.log if slug in path]
        return [(v, p) for v, p in mine if v != "GET" and not p.endswith("git-upload-pack")]

    def may(self, token: str, slug: str, *, push: bool) -> int:
        account = self.accounts.get(token)
        if account is None or account.until <= self.clock.now() or (account.slugs and slug not in account.slugs):
            return 401
        return 403 if push and not account.write else 200

    # Requests

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        url = urlsplit(request.path)
        path = url.path.removeprefix("/api/v3")
        given = json.loads(body) if body else None
        headers = {"Content-Type": "application/json", "X-RateLimit-Remaining": "4000"}
        self.before(request.command, path)
        fault = next((f for f in self.faults if f.verb == request.command and re.search(f.pattern, path)), None)
        try:
            if fault:
                self.faults.remove(fault)
                if not fault.lost:
                    raise Refused(fault.status, fault.message, headers=fault.headers)
            with self._lock:
                status, found = self._carried_out(request, path, dict(parse_qsl(url.query)), given)
            if isinstance(found, list):
                found, headers = self._page(found, url.query, request.path, headers)
        except Refused as refusal:
            status, headers = refusal.status, {**headers, **refusal.headers}
            found = {"message": refusal.message, "errors": refusal.errors}
        if fault and fault.lost:
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        send(request, status, b"" if found is None else json.dumps(found).encode(), headers)

    def _page(self, found: list[Any], query: str, path: str, headers: dict[str, str]) -> tuple[list[Any], dict[str, str]]:
        asked = dict(parse_qsl(query))
        size, page = min(int(asked.get("per_page", 30)), self.page_size), int(asked.get("page", 1))
        if page * size < len(found):
            rest = "&".join(f"{k}={v}" for k, v in asked.items() if k != "page")
            headers = {**headers, "Link": f'<{self.url}{path.partition("?")[0]}?{rest}&page={page + 1}>; rel="next"'}
        return found[(page - 1) * size : page * size], headers

    def _carried_out(self, request: BaseHTTPRequestHandler, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path.endswith("/graphql"):
            account = self.accounts.get(token_of(request.headers.get("Authorization", "")))
            if account is None or account.until <= self.clock.now():
                raise Refused(401, "Bad credentials")
            return 200, answered(self, body, account)
        template, values = self.contract.check(request.command, path, query, body)
        self.asked.append((request.command, template, body))
        token = token_of(request.headers.get("Authorization", ""))
        if template in ("/app", "/app/installations/{installation_id}/access_tokens", f"{R}/installation"):
            return self._app(token, template, values, body)
        slug = f"{values['owner']}/{values['repo']}" if "owner" in values else ""
        account = self.accounts.get(token)
        if account is None or account.until <= self.clock.now():
            raise Refused(401, "Bad credentials")
        if slug in self.moved:
            rest = path.removeprefix(f"/repos/{slug}")
            raise Refused(301, "Moved Permanently", headers={"Location": f"{self.moved[slug]}{rest}"})
        if slug and (slug not in self.repos or (account.slugs and slug not in account.slugs)):
            raise Refused(404, "Not Found")
        if "/issues" in template and "comment" not in template and "labels" not in template and not account.issues:
            raise Refused(403, "Resource not accessible by integration")
        if request.command != "GET" and not (account.write or account.pulls or account.issues):
            raise Refused(403, "Resource not accessible by integration")
        return self._route(request.command, template, values, query, body or {}, account)

    def _app(self, token: str, template: str, values: dict[str, str], body: Any) -> tuple[int, Any]:
        try:
            claim = jwt.decode(token, self.app_key, algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False})
        except jwt.PyJWTError:
            raise Refused(401, "A JSON web token could not be decoded") from None
        if not claim["iat"] <= self.clock.now() < claim["exp"] or claim["exp"] - self.clock.now() > 600:
            raise Refused(401, "'Expiration time' claim ('exp') is too far in the future")
        if template == "/app":
            return 200, {"slug": "mender", "id": int(claim["iss"])}
        if template == f"{R}/installation":
            slug = f"{values['owner']}/{values['repo']}"
            if slug in self.moved:
                raise Refused(301, "Moved Permanently", headers={"Location": f"{self.moved[slug]}/installation"})
            if slug not in self.repos:
                raise Refused(404, "Not Found")
            return 200, {"id": self.installation}
        if int(values["installation_id"]) != self.installation:
            raise Refused(404, "Not Found")
        numbers = {number: slug for slug, number in self.ids.items()}
        slugs = [f"{next(iter(self.repos)).partition('/')[0]}/{name}" for name in body.get("repositories", ())]
        slugs += [numbers.get(number, "") for number in body.get("repository_ids", ())]
        if any(slug not in self.repos for slug in slugs):
            why = "There is at least one repository that does not exist or is not accessible to the parent installation."
            raise Refused(422, why)
        made = f"ghs_{secrets.token_hex(18)}"
        until = self.clock.now() + 3600
        write = body["permissions"].get("contents") == "write"
        pulls = body["permissions"].get("pull_requests") == "write"
        issues = body["permissions"].get("issues") == "write"
        self.accounts[made] = Account("mender[bot]", write, until, tuple(slugs), pulls=pulls, issues=issues)
        return 201, {"token": made, "expires_at": datetime.fromtimestamp(until, UTC).isoformat().replace("+00:00", "Z")}

    # State

    def add(self, slug: str, files: Mapping[str, bytes], **about: Any) -> Repo:
        self.create(slug, files)
        return self.know(slug, **about)

    def know(self, slug: str, **about: Any) -> Repo:
        """A repository whose files somebody else has made."""
        self.repos[slug] = Repo(slug, about=about)
        self.ids[slug] = self.number()
        return self.repos[slug]

    def number(self) -> int:
        self._next += 1
        return self._next

    def say(self, slug: str, number: int, author: str, body: str, *, bot: bool = False) -> int:
        """A comment by somebody; its id."""
        comment: dict[str, Any] = {"id": self.number(), "body": body, "user": {"login": author, "type": "Bot" if bot else "User"}}
        self.repos[slug].comments[comment["id"]] = comment | {"on": number}
        return int(comment["id"])

    def close_pull(self, slug: str, number: int) -> None:
        self.repos[slug].pulls[number]["state"] = "closed"

    def merge(self, slug: str, number: int) -> None:
        pull = self.repos[slug].pulls[number]
        repo = self.repository(slug)
        tree = git(repo, "rev-parse", f"{pull['branch']}^{{tree}}")
        parents = ("-p", self.tip(slug, "refs/heads/main"), "-p", self.tip(slug, f"refs/heads/{pull['branch']}"))
        made = git(repo, "-c", "user.name=Ada", "-c", "user.email=ada@example.test", "commit-tree", tree, *parents, "-m", "Merge")
        git(repo, "update-ref", "refs/heads/main", made)
        pull |= {"state": "closed", "merged": True}

    def pull_json(self, slug: str, pull: dict[str, Any]) -> dict[str, Any]:
        if pull["state"] == "open":
            tip = self.tip(slug, f"refs/heads/{pull['branch']}")
            if tip:
                pull["tip"] = tip
                git(self.repository(slug), "update-ref", f"refs/pull/{pull['number']}/head", tip)
            elif pull["from"] == slug:
                pull["state"] = "closed"
        return {
            "number": pull["number"], "state": pull["state"], "title": pull["title"], "body": pull["body"],
            "draft": pull["draft"], "html_url": f"{self.url}/{slug}/pull/{pull['number']}", "user": {"login": pull["author"]},
            "created_at": OPENED, "closed_at": None if pull["state"] == "open" else DECIDED,
            "merged_at": DECIDED if pull.get("merged") else None, "labels": [{"name": n} for n in pull["labels"]],
            "head": {"ref": pull["branch"], "sha": pull["tip"], "repo": {"full_name": pull["from"]}},
            "base": {"ref": pull.get("base", "main"), "sha": self.tip(slug, "refs/heads/main"), "repo": {"full_name": slug}},
        }  # fmt: skip

    def open_by_hand(self, slug: str, branch: str, title: str = "mine", *, source: str = "") -> int:
        """A pull request by a person, on a branch that is there."""
        pulls = self.repos[slug].pulls
        number = len(pulls) + 1
        pulls[number] = {
            "number": number, "state": "open", "title": title, "body": "", "draft": False, "branch": branch, "author": "ada",
            "tip": self.tip(slug, f"refs/heads/{branch}"), "from": source or slug, "labels": [],
        }  # fmt: skip
        self.pull_json(slug, pulls[number])
        return number

    def _text(self, text: str | None) -> str:
        if text and len(text) > LONGEST:
            raise Refused(422, "Validation Failed", [{"field": "body", "message": f"body is too long (maximum is {LONGEST})"}])
        return text or ""

    def _route(
        self, verb: str, template: str, values: dict[str, str], query: dict[str, str], body: dict[str, Any], account: Account
    ) -> tuple[int, Any]:
        if template == "/user":
            if account.workflow:
                raise Refused(403, "Resource not accessible by integration")
            return 200, {"id": 4711, "login": account.login}
        if template == "/users/{username}":
            return 200, {"id": 4711, "login": values["username"]}
        if template in ("/orgs/{org}/repos", "/users/{username}/repos"):
            owner = values.get("org") or values["username"]
            found = [self._repo_json(slug, account) for slug in sorted(self.repos) if slug.startswith(f"{owner}/")]
            if not found or (owner in self.people) != ("username" in values):
                raise Refused(404, "Not Found")
            return 200, found
        slug = f"{values['owner']}/{values['repo']}"
        repo = self.repos[slug]
        match verb, template.removeprefix(R):
            case "GET", "":
                return 200, self._repo_json(slug, account)
            case "GET", "/pulls":
                wanted = [p for p in repo.pulls.values() if f"{p['from'].partition('/')[0]}:{p['branch']}" == query["head"]]
                found = [self.pull_json(slug, p) for p in reversed(wanted)]
                return 200, [p for p in found if query.get("state", "open") in ("all", p["state"])]
            case "POST", "/pulls":
                return 201, self._open(slug, repo, body, account)
            case "GET", "/rules/branches/{branch}":
                return 200, repo.rules
            case "GET", "/collaborators/{username}/permission":
                return 200, {"permission": "write" if values["username"] in repo.writers else "read"}
            case "GET", "/issues":
                own = [i for i in repo.issues.values() if i["user"]["login"] == query.get("creator", i["user"]["login"])]
                return 200, [i for i in own if i["state"] == query.get("state", "open")]
            case "POST", "/issues":
                number = 900 + len(repo.issues)
                repo.issues[number] = {
                    "number": number, "title": body["title"], "body": self._text(body.get("body")), "state": "open",
                    "user": {"login": account.login}, "html_url": f"{self.url}/{slug}/issues/{number}",
                }  # fmt: skip
                return 201, repo.issues[number]
            case "PATCH", "/issues/{issue_number}":
                repo.issues[int(values["issue_number"])]["body"] = self._text(body["body"])
                return 200, repo.issues[int(values["issue_number"])]
            case "PATCH", "/issues/comments/{comment_id}":
                repo.comments[int(values["comment_id"])]["body"] = self._text(body["body"])
                return 200, repo.comments[int(values["comment_id"])]
            case "POST", "/issues/comments/{comment_id}/reactions":
                repo.reactions.append((int(values["comment_id"]), body["content"]))
                return 201, {"id": self.number()}
        number = int(values.get("pull_number") or values["issue_number"])
        if number not in repo.pulls:
            raise Refused(404, "Not Found")
        return self._about_pull(verb, template.removeprefix(R), slug, repo.pulls[number], body, account)

    def _repo_json(self, slug: str, account: Account) -> dict[str, Any]:
        return {
            "id": self.ids[slug], "full_name": slug, "default_branch": "main", "clone_url": f"{self.url}/{slug}.git",
            "archived": False, "fork": False, "permissions": {"push": account.write}, "topics": [], **self.repos[slug].about,
        }  # fmt: skip

    def _open(self, slug: str, repo: Repo, body: dict[str, Any], account: Account) -> dict[str, Any]:
        branch = body["head"]
        tip, base = self.tip(slug, f"refs/heads/{branch}"), self.tip(slug, f"refs/heads/{body['base']}")
        if not tip or not base:
            raise Refused(422, "Validation Failed", [{"field": "head" if base else "base", "code": "invalid"}])
        if any(p["branch"] == branch and p["state"] == "open" for p in repo.pulls.values()):
            owner = slug.partition("/")[0]
            raise Refused(422, "Validation Failed", [{"message": f"A pull request already exists for {owner}:{branch}."}])
        if git(self.repository(slug), "rev-list", "--count", f"{base}..{tip}") == "0":
            raise Refused(422, "Validation Failed", [{"message": f"No commits between {body['base']} and {branch}"}])
        number = len(repo.pulls) + 1
        repo.pulls[number] = {
            "number": number, "state": "open", "title": body["title"], "body": self._text(body.get("body")), "branch": branch,
            "draft": body.get("draft", False), "author": account.login, "tip": tip, "from": slug, "labels": [],
        }  # fmt: skip
        return self.pull_json(slug, repo.pulls[number])

    def _about_pull(
        self, verb: str, rest: str, slug: str, pull: dict[str, Any], body: dict[str, Any], account: Account
    ) -> tuple[int, Any]:
        repo, number = self.repos[slug], pull["number"]
        match verb, rest:
            case "GET", "/pulls/{pull_number}":
                return 200, self.pull_json(slug, pull)
            case "PATCH", "/pulls/{pull_number}":
                self._text(body.get("body"))
                pull |= {key: body[key] for key in ("title", "body", "state", "base") if key in body}
                return 200, self.pull_json(slug, pull)
            case "GET", "/issues/{issue_number}/comments":
                return 200, [c for c in repo.comments.values() if c["on"] == number]
            case "POST", "/issues/{issue_number}/comments":
                made = self.say(slug, number, account.login, self._text(body["body"]), bot=True)
                return 201, repo.comments[made]
            case "POST", "/issues/{issue_number}/labels":
                pull["labels"] = list(dict.fromkeys([*pull["labels"], *body["labels"]]))
                return 200, [{"name": name} for name in pull["labels"]]
            case "GET", "/pulls/{pull_number}/files":
                return 200, [{"filename": path, "patch": patch} for path, patch in self._patches(slug, pull).items()]
            case "GET", "/pulls/{pull_number}/comments":
                return 200, [c for review in repo.reviews if review["on"] == number for c in review["comments"]]
            case "POST", "/pulls/{pull_number}/reviews":
                return 200, self._review(slug, pull, body, account)
        raise Refused(501, f"{verb} {rest}")

    def _patches(self, slug: str, pull: dict[str, Any]) -> dict[str, str]:
        self.pull_json(slug, pull)
        out = {}
        for part in git(self.repository(slug), "diff", f"refs/heads/main...{pull['tip']}").split("diff --git ")[1:]:
            head, mark, hunks = part.partition("\n@@ ")
            out[head.partition("\n+++ b/")[2].rstrip("\t")] = f"@@ {hunks}" if mark else ""
        return out

    def _review(self, slug: str, pull: dict[str, Any], body: dict[str, Any], account: Account) -> dict[str, Any]:
        patches = self._patches(slug, pull)
        for comment in body.get("comments", ()):
            hunks = [
                range(int(m[1]), int(m[1]) + int(m[2] or 1))
                for m in re.finditer(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", patches.get(comment["path"], ""), re.M)
            ]
            ends = (comment.get("start_line", comment["line"]), comment["line"])
            if not any(all(line in hunk for line in ends) for hunk in hunks):
                raise Refused(422, "Unprocessable Entity", ["Line could not be resolved"])
            self._text(comment["body"])
            comment |= {"id": self.number(), "user": {"login": account.login, "type": "Bot"}}
        review = {"id": self.number(), "on": pull["number"], "body": body.get("body"), "comments": body.get("comments", [])}
        self.repos[slug].reviews.append(review)
        return review
