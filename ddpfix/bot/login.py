"""How the bot logs in: a token that is given, or a GitHub App that gets itself short-lived ones.

No secret is ever an argument of a command. They are read from the environment or from files, kept in memory, and taken out of
every text that is shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from ddpfix.bot.client import Client, Clock, ForgeError, Pace

SPARE = 300.0  # seconds before its end at which a token is renewed
# what the bot does, and nothing else: branches; pull requests with their comments and labels; to see a repository at all
PERMISSIONS: Mapping[str, str] = {"contents": "write", "pull_requests": "write", "metadata": "read"}
# for what strangers wrote, and for the machine's part that reads it
READING: Mapping[str, str] = {**PERMISSIONS, "contents": "read"}
ISSUES: Mapping[str, str] = {"issues": "write", "metadata": "read"}


class NoLogin(Exception):
    """Nothing to log in with, or something that cannot be used: what, why, what to do."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        super().__init__(f"{what}: {why}. {todo}")
        self.what, self.why, self.todo = what, why, todo


class Login(Protocol):
    """Gives the token for a repository; with `renew` a new one, because the forge no longer takes the last."""

    def token(self, slug: str, *, renew: bool = False) -> str: ...

    def narrowed(self) -> Login:
        """The same login whose tokens cannot write contents; itself where tokens are not made but given."""

    def for_issues(self) -> Login:
        """The same login whose tokens can write issues and nothing else; itself where tokens are not made but given."""

    def secrets(self) -> Iterable[str]:
        """Everything that may be in no text."""


@dataclass(frozen=True)
class FixedToken:
    """A token that somebody made for the bot."""

    value: str = field(repr=False)

    def token(self, slug: str, *, renew: bool = False) -> str:
        return self.value

    def narrowed(self) -> FixedToken:
        return self

    def for_issues(self) -> FixedToken:
        return self

    def secrets(self) -> Iterable[str]:
        return (self.value,)


class AppLogin:
    """A GitHub App: a signed claim (JWT) gets a token for one repository with the permissions the bot needs, for an hour.

    docs.github.com, "Generating a JSON Web Token (JWT) for a GitHub App": RS256, `iat` a minute back against clocks that
    differ, `exp` at most ten minutes ahead, `iss` the App's id or client id.
    """

    def __init__(self, app_id: str, key: str, *, api_url: str, clock: Clock, pace: Pace | None = None) -> None:
        self._app_id, self._key, self._clock = app_id, key, clock
        self._client = Client(api_url, self._as_app, clock=clock, pace=pace)
        self._installations: dict[str, int] = {}
        self._tokens: dict[str, tuple[str, float]] = {}
        self._permissions = PERMISSIONS
        self._narrow: AppLogin | None = None
        self._issues: AppLogin | None = None

    def narrowed(self) -> AppLogin:
        if self._narrow is None:
            self._narrow = self._with(READING)
        return self._narrow

    def for_issues(self) -> AppLogin:
        if self._issues is None:
            self._issues = self._with(ISSUES)
        return self._issues

    def _with(self, permissions: Mapping[str, str]) -> AppLogin:
        same = copy(self)
        same._permissions, same._tokens = permissions, {}
        return same

    def _as_app(self, renew: bool) -> Mapping[str, str]:
        import jwt

        now = int(self._clock.now())
        try:
            claim = jwt.encode({"iat": now - 60, "exp": now + 540, "iss": self._app_id}, self._key, algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError):
            raise NoLogin("the App's key cannot be used", "it is no RSA key in PEM", "Give the file that GitHub made.") from None
        return {"Authorization": f"Bearer {claim}", "Accept": "application/vnd.github+json"}

    def token(self, slug: str, *, renew: bool = False) -> str:
        known, until = self._tokens.get(slug, ("", 0.0))
        if known and not renew and self._clock.now() < until - SPARE:
            return known
        if renew and self._narrow is not None:
            self._narrow._tokens.pop(slug, None)  # what ended this one ended that, too
        try:
            made = self._made(slug, {"repositories": [slug.partition("/")[2]], "permissions": dict(self._permissions)})
        except ForgeError as error:
            if error.status not in (404, 422):
                raise
            # the App was installed anew, under another number, or the repository goes by another name now
            self._installations.pop(slug, None)
            made = self._made(slug, {"repository_ids": [self._number(slug)], "permissions": dict(self._permissions)})
        self._tokens[slug] = (made["token"], datetime.fromisoformat(made["expires_at"]).timestamp())
        return str(made["token"])

    def _made(self, slug: str, wanted: Mapping[str, object]) -> Mapping[str, str]:
        """A token of the installation with the repository. Without a list of permissions it has all that the App was given."""
        owner, _, name = slug.partition("/")
        if slug not in self._installations:
            found = self._client.get(f"/repos/{quote(owner)}/{quote(name)}/installation")
            self._installations[slug] = int(found["id"])
        path = f"/app/installations/{self._installations[slug]}/access_tokens"
        made: Mapping[str, str] = self._client.write("POST", path, wanted)
        return made

    def _number(self, slug: str) -> int:
        """A repository's number, whatever it is called by now; asked with a token that can do nothing else."""
        made = self._made(slug, {"permissions": {"metadata": "read"}})
        asked = Client(self._client.base_url, lambda renew: {"Authorization": f"Bearer {made['token']}"}, clock=self._clock)
        owner, _, name = slug.partition("/")
        return int(asked.get(f"/repos/{quote(owner)}/{quote(name)}")["id"])

    def slug(self) -> str:
        """The App's own name; its account is called `<slug>[bot]`."""
        return str(self._client.get("/app")["slug"])

    def secrets(self) -> Iterable[str]:
        others = [login._tokens for login in (self._narrow, self._issues) if login]
        return (self._key, *(token for tokens in (self._tokens, *others) for token, _ in tokens.values()))


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets."""
    for secret in sorted({s for s in secrets if s}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def from_file_or_environment(file: Path | None, names: Iterable[str], what: str) -> str:
    """A secret, without the white space around it; "" where there is none. Raises NoLogin for a file that cannot be read."""
    if file:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise NoLogin(f"{what} cannot be read from {file}", why, "Give a file that you may read.") from None
    return next((value.strip() for name in names if (value := os.environ.get(name, "").strip())), "")
