"""A thin client of a forge's REST interface: one serial, paced writer that waits as long as the forge asks and not longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import httpx2

USER_AGENT = "ddpfix"
Json = Any  # what a forge answers is its own
_PASSING = (500, 502, 503, 504)
_MOVED = (301, 302, 307, 308)


class Clock(Protocol):
    """The time, and waiting: given from outside, so that nobody has to wait for a test."""

    def now(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float) -> None: ...


class Stopped(BaseException):
    """The service is to end, so a job leaves its wait. It is no failure of the job, and nothing that catches those sees it."""


class SystemClock:
    """stop: may be called from any thread; whoever sleeps then, or wants to, gets Stopped."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise Stopped

    def stop(self) -> None:
        self._stopped.set()


@dataclass(frozen=True, slots=True)
class Pace:
    """gap: seconds between two writes, as GitHub asks. longest: a wait that is not sat out but told. tries: of one request.

    GitHub: "make requests for a single user serially", "wait at least one second between each" write
    (docs.github.com, best practices for using the REST API).
    """

    gap: float = 1.0
    longest: float = 900.0
    tries: int = 6


class ForgeError(Exception):
    """A request that the forge refused or did not answer. status: 0 without an answer.

    unsure: it may have been carried out all the same, so what it was about has to be read again before it is repeated.
    """

    def __init__(self, what: str, status: int, message: str, *, unsure: bool = False) -> None:
        super().__init__(f"{what}: {status or 'no answer'}: {message}")
        self.status = status
        self.message = message
        self.unsure = unsure


def plain_http() -> httpx2.Client:
    """A connection that follows no redirect: it could lead to another host, and the token with it."""
    return httpx2.Client(timeout=30, follow_redirects=False, headers={"User-Agent": USER_AGENT})


def same_host(url: str, api_url: str) -> str:
    """An address to clone from, if the token may go there: https on the forge's own host. Raises ForgeError.

    `api.github.com` belongs to `github.com`. Plain http is for a forge on this machine, whose interface is so, too.
    """
    place, api = urlsplit(url), urlsplit(api_url)
    hosts = {api.hostname, (api.hostname or "").removeprefix("api.")}
    if place.hostname in hosts and place.scheme in ("https", api.scheme) and not (place.username or place.password):
        return url
    where = f"{place.scheme}://{place.hostname}"
    raise ForgeError("the address to clone from", 200, f"it is on {where}, not on the forge's own host: no token goes there")


class Turn:
    """Whose turn it is to write: clients of one forge share it, so that there is one writer however many tokens there are."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.free_at = 0.0


class Client:
    """Requests to one forge. `headers` is asked before every request; with True it must bring a new token."""

    def __init__(
        self,
        base_url: str,
        headers: Callable[[bool], Mapping[str, str]],
        *,
        clock: Clock,
        pace: Pace | None = None,
        http: httpx2.Client | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.headers = headers
        self._clock = clock
        self._pace = pace or Pace()
        self._http = http or plain_http()
        self._turn = turn or Turn()

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Json:
        """What the forge holds. Raises ForgeError."""
        return _content(self._sent("GET", self._url(path), params=params))

    def pages(self, path: str, params: Mapping[str, str | int] | None = None) -> Iterator[Any]:
        """The items of a list, however many pages it has (the `next` of the Link header, RFC 8288)."""
        url, asked = self._url(path), {"per_page": 100, **(params or {})}
        while url:
            answer = self._sent("GET", url, params=asked)
            yield from _content(answer) or ()
            url, asked = answer.links.get("next", {}).get("url", ""), {}
            if url and not url.startswith(f"{self.base_url}/"):
                raise ForgeError("GET", answer.status_code, "the next page is said to be on another host")

    def ask(self, path: str, body: Mapping[str, object]) -> Json:
        """A question that is sent as a POST and changes nothing: it is no write, so it may be sent again. Raises ForgeError."""
        return _content(self._sent("POST", self._url(path), body=body, changes=False))

    def text(self, path: str) -> str:
        """What the forge holds that is no JSON, such as a patch. Raises ForgeError."""
        return self._sent("GET", self._url(path)).text

    def write(self, verb: str, path: str, body: Mapping[str, object] | None = None) -> Json:
        """One change. Raises ForgeError; `unsure` where it may have been made."""
        with self._turn.lock:
            return _content(self._sent(verb, self._url(path), body=body))

    def _url(self, path: str) -> str:
        return f"{self.base_url}/{path.lstrip('/')}"

    def _sent(
        self,
        verb: str,
        url: str,
        *,
        params: Mapping[str, str | int] | None = None,
        body: Mapping[str, object] | None = None,
        changes: bool | None = None,
    ) -> httpx2.Response:
        what = f"{verb} {url.removeprefix(self.base_url)}"
        changes = verb != "GET" if changes is None else changes
        makes = changes and verb == "POST"
        renewed = False
        for attempt in range(self._pace.tries):
            last = attempt == self._pace.tries - 1
            try:
                answer = self._once(verb, url, params, body, renew=renewed, changes=changes)
            except httpx2.TransportError as error:
                landed = makes and not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if landed or last:
                    raise ForgeError(what, 0, type(error).__name__, unsure=landed) from None
                self._clock.sleep(2.0**attempt)
                continue
            if answer.status_code < 300:
                return answer
            if answer.status_code in _MOVED and verb == "GET" and not last:
                # a repository that was renamed; its new name comes with the answer, so only reading follows
                url, params = self._moved(what, url, answer), None
                continue
            if answer.status_code == 401 and not renewed and not last:
                renewed = True  # a token that ran out on the way
                continue
            wait = self._wait(answer, attempt)
            refusal = _refusal(what, answer, unsure=makes and answer.status_code in _PASSING)
            if wait is None or last or refusal.unsure or wait > self._pace.longest:
                raise refusal
            self._clock.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _moved(self, what: str, url: str, answer: httpx2.Response) -> str:
        """Where a request is sent on to, on this host alone: the token goes along."""
        place = urljoin(url, answer.headers.get("location", ""))
        if place == url or not place.startswith(f"{self.base_url}/"):
            raise ForgeError(what, answer.status_code, "it is sent on to another host, where the token must not go")
        return place

    def _once(
        self,
        verb: str,
        url: str,
        params: Mapping[str, str | int] | None,
        body: Mapping[str, object] | None,
        *,
        renew: bool,
        changes: bool,
    ) -> httpx2.Response:
        headers = self.headers(renew)
        if changes:
            if (gap := self._turn.free_at - self._clock.now()) > 0:
                self._clock.sleep(gap)
            self._turn.free_at = self._clock.now() + self._pace.gap
        return self._http.request(verb, url, params=dict(params) if params else None, json=body, headers=dict(headers))

    def _wait(self, answer: httpx2.Response, attempt: int) -> float | None:
        """Seconds after which the same request may be sent again, None for never."""
        if answer.status_code in (403, 429):
            if after := _number(answer.headers.get("retry-after")):
                return after
            if answer.headers.get("x-ratelimit-remaining", answer.headers.get("ratelimit-remaining")) == "0":
                until = answer.headers.get("x-ratelimit-reset", answer.headers.get("ratelimit-reset"))
                return max(1.0, (_number(until) or 0.0) - self._clock.now()) + 1
            if answer.status_code == 429 or "secondary rate limit" in answer.text.lower():
                return float(60 * 2**attempt)
            return None
        if answer.status_code in _PASSING:
            return _number(answer.headers.get("retry-after")) or float(2**attempt)
        return None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _content(answer: httpx2.Response) -> Json:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        what = f"{answer.request.method} {answer.request.url.path}"
        unsure = answer.request.method == "POST"
        raise ForgeError(what, answer.status_code, "the answer is no JSON: is --api-url right?", unsure=unsure) from None


def _refusal(what: str, answer: httpx2.Response, *, unsure: bool) -> ForgeError:
    """The forge's own words, without what was sent."""
    try:
        data = answer.json()
        if not isinstance(data, dict):
            raise ValueError
    except ValueError:
        return ForgeError(what, answer.status_code, " ".join(answer.text.split())[:300], unsure=unsure)
    message = data.get("message") or data.get("error_description") or data.get("error") or ""
    parts = [message if isinstance(message, str) else str(message)]
    parts += [e if isinstance(e, str) else str(e.get("message") or e.get("code") or e) for e in data.get("errors") or ()]
    return ForgeError(what, answer.status_code, "; ".join(part for part in parts if part), unsure=unsure)
