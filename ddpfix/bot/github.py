"""GitHub and GitHub Enterprise servers, by the REST interface (docs.github.com/rest, version 2022-11-28)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from urllib.parse import quote

import httpx2

from ddpfix.bot import github_graphql, one_by_one
from ddpfix.bot.client import Client, Clock, ForgeError, Pace, Turn, plain_http, same_host
from ddpfix.bot.forge import ChangedFile, Comment, Fate, FileChange, Issue, Pull, Receipt, Repository, Suggestion, right_side
from ddpfix.bot.github_values import a_comment, a_pull, a_repository, an_issue, on_lines
from ddpfix.bot.login import AppLogin, Login
from ddpfix.git import Access

API = "https://api.github.com"
_RECEIPTS: Mapping[Receipt, str] = {"seen": "eyes", "done": "rocket", "refused": "confused"}
_MAY_WRITE = ("admin", "maintain", "write")


class GitHub:
    """A forge (see `ddpfix.bot.forge.Forge`). api_url: of a GitHub Enterprise server `https://HOST/api/v3`."""

    name = "GitHub"
    suggestion_limit = 20  # above about 30 the server was seen to give up (reviewdog/reviewdog#355)

    def __init__(
        self,
        login: Login,
        *,
        clock: Clock,
        api_url: str = API,
        pace: Pace | None = None,
        identity: tuple[str, str] | None = None,
        http: httpx2.Client | None = None,
    ) -> None:
        self._login = login
        self._identity = identity
        self._api_url = api_url.rstrip("/")
        self._clock, self._pace = clock, pace
        # one connection and one turn for all repositories
        self._http = http or plain_http()
        self._turn = Turn()
        self._clients: dict[str, Client] = {}
        self._urls: dict[str, str] = {}
        self._account = ""

    def secrets(self) -> Sequence[str]:
        plain = tuple(self._login.secrets())
        return (*plain, *(_basic(secret) for secret in plain))

    def narrowed(self) -> GitHub:
        login = self._login.narrowed()
        if login is self._login:
            return self
        same = copy(self)
        same._login, same._clients = login, {}
        return same

    def _at(self, slug: str) -> Client:
        """The client for one repository: a token of an App is good for one only."""
        if slug not in self._clients:

            def headers(renew: bool) -> Mapping[str, str]:
                token = self._login.token(slug, renew=renew)
                return {
                    "Authorization": f"Bearer {token}",
                    "Accept": "application/vnd.github+json",
                    "X-GitHub-Api-Version": "2022-11-28",
                }

            self._clients[slug] = Client(
                self._api_url, headers, clock=self._clock, pace=self._pace, http=self._http, turn=self._turn
            )
        return self._clients[slug]

    def account(self, slug: str) -> str:
        if not self._account and isinstance(self._login, AppLogin):
            self._account = f"{self._login.slug()}[bot]"
        if not self._account:
            try:
                self._account = self._at(slug).get("/user")["login"]
            except ForgeError as error:
                if error.status != 403:
                    raise
                # a token of an App, such as the one of a workflow, is refused there, and answered here
                asked = {"query": "query { viewer { login } }"}
                answer = Client(_graphql(self._api_url), self._at(slug).headers, clock=self._clock, http=self._http)
                self._account = answer.write("POST", "/graphql", asked)["data"]["viewer"]["login"]
        return self._account

    def identity(self) -> tuple[str, str]:
        if self._identity is None:
            self._identity = ("ddpfix", "ddpfix@users.noreply.invalid")
            if isinstance(self._login, AppLogin):
                account = f"{self._login.slug()}[bot]"
                number = self._any().get(f"/users/{quote(account)}")["id"]
                host = "users.noreply.github.com" if self._api_url == API else f"users.noreply.{self._host()}"
                self._identity = (account, f"{number}+{account}@{host}")
        return self._identity

    def _host(self) -> str:
        return self._api_url.partition("://")[2].partition("/")[0].partition(":")[0]

    def _any(self) -> Client:
        return next(iter(self._clients.values()))

    def repository(self, slug: str) -> Repository:
        try:
            data = self._at(slug).get(_repo(slug))
        except ForgeError as error:
            if error.status != 404 or not isinstance(self._login, AppLogin):
                raise
            self._login.token(slug, renew=True)  # another installation may have it by now
            data = self._at(slug).get(_repo(slug))
        self._urls[slug] = same_host(data["clone_url"], self._api_url)
        return a_repository(data)

    def listed(self, slug: str) -> Iterator[Repository]:
        name = quote(slug, safe="")
        try:
            yield from map(a_repository, self._at(slug).pages(f"/orgs/{name}/repos", {"type": "all"}))
        except ForgeError as error:
            if error.status != 404:
                raise
            yield from map(a_repository, self._at(slug).pages(f"/users/{name}/repos", {"type": "owner"}))

    def heads(self, slugs: Sequence[str]) -> Mapping[str, str]:
        if self._is_app():
            return {}
        return github_graphql.heads(self._graphql(), slugs)

    def fates(self, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
        if self._is_app():
            return one_by_one.fates(self, pulls)
        return github_graphql.fates(self._graphql(), pulls)

    def _is_app(self) -> bool:
        """Whether its tokens are for one repository each: none of them may ask about many."""
        return isinstance(self._login, AppLogin)

    def _graphql(self) -> Client:
        return Client(_graphql(self._api_url), self._at("").headers, clock=self._clock, pace=self._pace, http=self._http)

    def access(self, slug: str) -> Access:
        if slug not in self._urls:
            self.repository(slug)
        return Access(self._urls[slug], f"Authorization: Basic {_basic(self._login.token(slug))}")

    def pulls(self, slug: str, branch: str) -> Sequence[Pull]:
        owner = slug.partition("/")[0]
        found = self._at(slug).pages(f"{_repo(slug)}/pulls", {"head": f"{owner}:{branch}", "state": "all"})
        pulls = [p for p in map(a_pull, found) if p.inside and p.branch == branch]
        return sorted(pulls, key=lambda p: -p.number)

    def pull(self, slug: str, number: int) -> Pull:
        return a_pull(self._at(slug).get(f"{_repo(slug)}/pulls/{number}"))

    def pull_ref(self, number: int) -> str:
        return f"refs/pull/{number}/head"

    def open_pull(self, slug: str, *, branch: str, base: str, title: str, body: str, draft: bool) -> Pull:
        asked = {"title": title, "head": branch, "base": base, "body": body, "draft": draft}
        try:
            return a_pull(self._at(slug).write("POST", f"{_repo(slug)}/pulls", asked))
        except ForgeError as error:
            # drafts are not to be had in private repositories of some plans
            if error.status != 422 or not draft or "draft" not in error.message.lower():
                raise
            return a_pull(self._at(slug).write("POST", f"{_repo(slug)}/pulls", {**asked, "draft": False}))

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
        given = {"title": title, "body": body, "base": base, "state": "closed" if close else None}
        self._at(slug).write("PATCH", f"{_repo(slug)}/pulls/{number}", {k: v for k, v in given.items() if v is not None})

    def label(self, slug: str, number: int, labels: Sequence[str]) -> None:
        self._at(slug).write("POST", f"{_repo(slug)}/issues/{number}/labels", {"labels": list(labels)})

    def comments(self, slug: str, number: int) -> Sequence[Comment]:
        return [a_comment(c) for c in self._at(slug).pages(f"{_repo(slug)}/issues/{number}/comments")]

    def comment(self, slug: str, number: int, body: str) -> None:
        self._at(slug).write("POST", f"{_repo(slug)}/issues/{number}/comments", {"body": body})

    def edit_comment(self, slug: str, number: int, comment: int, body: str) -> None:
        self._at(slug).write("PATCH", f"{_repo(slug)}/issues/comments/{comment}", {"body": body})

    def react(self, slug: str, number: int, comment: int, receipt: Receipt) -> None:
        self._at(slug).write("POST", f"{_repo(slug)}/issues/comments/{comment}/reactions", {"content": _RECEIPTS[receipt]})

    def may_write(self, slug: str, login: str) -> bool:
        try:
            found = self._at(slug).get(f"{_repo(slug)}/collaborators/{quote(login, safe='')}/permission")
        except ForgeError as error:
            if error.status == 404:
                return False
            raise
        return found.get("permission") in _MAY_WRITE

    def rules(self, slug: str, branch: str) -> Sequence[str]:
        found = self._at(slug).pages(f"{_repo(slug)}/rules/branches/{quote(branch, safe='')}")
        return sorted({rule["type"] for rule in found})

    def changed(self, slug: str, number: int) -> Mapping[str, ChangedFile]:
        files = self._at(slug).pages(f"{_repo(slug)}/pulls/{number}/files")
        return {f["filename"]: right_side(f.get("patch") or "") for f in files}

    def review_comments(self, slug: str, number: int) -> Sequence[Comment]:
        return [a_comment(c) for c in self._at(slug).pages(f"{_repo(slug)}/pulls/{number}/comments")]

    def review(self, slug: str, pull: Pull, body: str, suggestions: Sequence[Suggestion]) -> None:
        comments = [on_lines(s) for s in suggestions]
        asked = {"commit_id": pull.tip, "event": "COMMENT", "body": body, "comments": comments}
        self._at(slug).write("POST", f"{_repo(slug)}/pulls/{pull.number}/reviews", asked)

    def issues(self, slug: str) -> Sequence[Issue]:
        asked = {"state": "open", "creator": self.account(slug)}
        found = self._about_issues(slug).pages(f"{_repo(slug)}/issues", asked)
        return [an_issue(data) for data in found if "pull_request" not in data]

    def open_issue(self, slug: str, title: str, body: str) -> Issue:
        return an_issue(self._about_issues(slug).write("POST", f"{_repo(slug)}/issues", {"title": title, "body": body}))

    def edit_issue(self, slug: str, number: int, body: str) -> None:
        self._about_issues(slug).write("PATCH", f"{_repo(slug)}/issues/{number}", {"body": body})

    def _about_issues(self, slug: str) -> Client:
        """A client whose token may write issues, which no other one may."""
        login = self._login.for_issues()

        def headers(renew: bool) -> Mapping[str, str]:
            return {**self._at(slug).headers(False), "Authorization": f"Bearer {login.token(slug, renew=renew)}"}

        return Client(self._api_url, headers, clock=self._clock, pace=self._pace, http=self._http, turn=self._turn)

    def commit(self, slug: str, branch: str, base: str, message: str, changes: Sequence[FileChange]) -> str:
        client = Client(
            _graphql(self._api_url), self._at(slug).headers, clock=self._clock, pace=self._pace, http=self._http, turn=self._turn
        )
        return github_graphql.signed_commit(client, slug, branch, base, message, changes)


def _graphql(api_url: str) -> str:
    """The folder of `graphql`: beside `v3` on a server of one's own (docs.github.com, enterprise-server, graphql)."""
    return api_url.removesuffix("/v3")


def _basic(token: str) -> str:
    return base64.b64encode(f"x-access-token:{token}".encode()).decode()


def _repo(slug: str) -> str:
    owner, _, name = slug.partition("/")
    return f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
