"""What forges have in common on which the bot works with one token: one client, one account, one identity of its commits."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import httpx2

from ddpfix.bot.client import Client, Clock, Pace, plain_http
from ddpfix.bot.forge import Repository
from ddpfix.bot.login import Login
from ddpfix.git import Access


class TokenForge(ABC):
    """API: the public server's address. SCHEME: the word before the token; ACCOUNT: the key of the login in `/user`."""

    API: ClassVar[str]
    SCHEME: ClassVar[str]
    ACCOUNT: ClassVar[str]
    suggestion_limit = 20

    def __init__(
        self,
        login: Login,
        *,
        clock: Clock,
        api_url: str = "",
        pace: Pace | None = None,
        identity: tuple[str, str] | None = None,
        http: httpx2.Client | None = None,
    ) -> None:
        self._login = login
        self._identity = identity or ("ddpfix", "ddpfix@users.noreply.invalid")
        self._api_url = (api_url or self.API).rstrip("/")
        self._clock, self._pace, self._http = clock, pace, http or plain_http()
        self._client = Client(self._api_url, self._headers, clock=clock, pace=pace, http=self._http)
        self._urls: dict[str, str] = {}
        self._account = ""

    def _headers(self, renew: bool) -> Mapping[str, str]:
        return {"Authorization": f"{self.SCHEME} {self._login.token('', renew=renew)}"}

    def narrowed(self) -> Self:
        return self

    def secrets(self) -> Sequence[str]:
        plain = tuple(self._login.secrets())
        return (*plain, *(_basic(secret) for secret in plain))

    def account(self, slug: str) -> str:
        if not self._account:
            self._account = self._client.get("/user")[self.ACCOUNT]
        return self._account

    def identity(self) -> tuple[str, str]:
        return self._identity

    @abstractmethod
    def repository(self, slug: str) -> Repository:
        """Read it, and keep the address that git is given in `_urls`."""

    def access(self, slug: str) -> Access:
        if slug not in self._urls:
            self.repository(slug)
        return Access(self._urls[slug], f"Authorization: Basic {_basic(self._login.token(slug))}")


def _basic(token: str) -> str:
    return base64.b64encode(f"oauth2:{token}".encode()).decode()
