"""The review page from a server on this machine: it saves decisions as they are made, and applies them at the end.

Only the loopback address is bound. Each request must name this machine as its host (a page elsewhere can point a name of its
own at 127.0.0.1) and show the token: in the URL for the page, in a header for what changes anything. What is applied is made
anew from the repository; no text that the page sends is ever written into it, and no file is sent but the page.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddpfix import decisions
from ddpfix.decisions import BadDecisions, Decisions
from ddpfix.git import GitRefusal
from ddpfix.review.items import Review
from ddpfix.review.page import Read, Served, page, policy
from ddpfix.review.session import carried
from ddpfix.run import Applied

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOSTS = ("127.0.0.1", "localhost")
LARGEST = 4 * 1024 * 1024  # of a request; a decision is forty bytes


@dataclass(frozen=True, slots=True)
class Work:
    """What the server does beside talking, given by those who may do it.

    scan: the findings as they are now. base: the commit that the repository stands on now. save: keep decisions. apply: make the
    accepted ones. summary: the text of the summary that was committed. read: the bytes of a file, for the page.
    """

    scan: Callable[[], Review]
    base: Callable[[], str]
    save: Callable[[Decisions], None]
    apply: Callable[[Decisions], Applied]
    summary: Callable[[Applied], str]
    read: Read
    branch: str
    name: str = ""


@dataclass
class Session:
    """One review from its beginning to its end. stop: called when it is over."""

    work: Work
    review: Review
    decided: Decisions
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    stop: Callable[[], None] = lambda: None
    applied: Applied | None = None

    def shown(self) -> tuple[str, str]:
        """(the page, the rules for the browser that belong to it)."""
        nonce = secrets.token_urlsafe(16)
        served = Served(self.token, nonce, self.work.branch)
        text = page(self.review, read=self.work.read, name=self.work.name, decided=self.decided, served=served)
        return text, policy(nonce, "", "", True) + "; frame-ancestors 'none'"

    def save(self, body: bytes) -> Decisions:
        """Keep what the page has decided. Raises BadDecisions for what cannot be decided here."""
        try:
            sent = decisions.from_json(body.decode("utf-8"), "what the page sent")
        except UnicodeDecodeError:
            raise BadDecisions("what the page sent cannot be read", "it is not UTF-8") from None
        known = self.review.by_id
        for key in sent.of:
            if key not in known and key not in self.decided.of:
                raise BadDecisions(f"{key} cannot be decided", "no finding of this review is called so", "reload the page")
        if told := [key for key in sent.accepted() if key in known and not known[key].acceptable]:
            raise BadDecisions(f"{told[0]} cannot be accepted", known[told[0]].why_not, "it can be rejected with a reason")
        if sent.base != self.review.base:
            raise BadDecisions("the page is older than the review", "the repository was read again since", "reload the page")
        beside = {key: decision for key, decision in self.decided.of.items() if key not in known}
        self.decided = Decisions(sent.base, {**beside, **sent.of})
        self.work.save(self.decided)
        return self.decided

    def keep(self, body: bytes) -> dict[str, Any]:
        """Save, as a request that wants to hear no more than that it was done."""
        self.save(body)
        return {}

    def apply(self, body: bytes) -> dict[str, Any]:
        """Make what is accepted, as the page tells it. A repository that has moved on is read again instead."""
        if self.applied:
            raise BadDecisions("nothing is left to apply", "it is done already", "close the page")
        sent = self.save(body)
        now = self.work.base()
        if now != self.review.base:
            return self._again(f"It stands on {now[:10]} now, the review on {self.review.base[:10]}.")
        try:
            applied = self.work.apply(sent)
        except GitRefusal as error:
            if "stale" in error.what:
                return self._again(f"{error.why}.")
            return {"message": f"{error.what}: {error.why}.", "todo": error.todo}
        if not applied.fixed.after:
            return {"message": applied.screen}
        self.applied = applied
        made = applied.committed
        return {
            "done": True,
            "branch": made.branch if made else "",
            "screen": applied.screen,
            "summary": self.work.summary(applied) if made else "",
        }

    def _again(self, why: str) -> dict[str, Any]:
        self.review = self.work.scan()
        now = carried(self.decided, self.review)
        self.decided = now.decisions
        self.work.save(self.decided)
        gone = f", {len(now.dropped)} dropped: found no more" if now.dropped else ""
        stand = f"{len(now.kept)} decision{'s' * (len(now.kept) != 1)} still stand{'s' * (len(now.kept) == 1)}{gone}"
        return {"stale": True, "message": f"{why} The findings were read again: {stand}. Nothing was applied."}


def application(session: Session) -> Starlette:
    """The server's answers."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    async def index(request: Request) -> Response:
        if not _is(request.query_params.get("token", ""), session.token):
            return _no("Open the address that ddpfix has printed: the token in it is missing or of another run.")
        text, rules = session.shown()
        return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": rules})

    routes = [
        Route("/", index),
        Route("/decisions", _posted(session, session.keep), methods=["POST"]),
        Route("/apply", _posted(session, session.apply), methods=["POST"]),
    ]
    own_host = Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False)
    return Starlette(routes=routes, middleware=[own_host])


HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def _is(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _no(why: str, status: int = 403) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(why + "\n", status, headers=HEADERS)


def _posted(session: Session, act: Callable[[bytes], Any]) -> Callable[[Request], Any]:
    """An answer to a request that must show the token; one at a time, away from the loop that talks."""
    import anyio
    import anyio.to_thread
    from starlette.background import BackgroundTask
    from starlette.responses import JSONResponse

    lock = anyio.Lock()

    async def answer(request: Request) -> Response:
        if not _is(request.headers.get("x-ddpfix-token", ""), session.token):
            return JSONResponse({"message": "the token is missing or of another run"}, 403, headers=HEADERS)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST:
                return JSONResponse({"message": "too long"}, 413, headers=HEADERS)
        try:
            async with lock:
                out = await anyio.to_thread.run_sync(act, body)
        except BadDecisions as error:
            return JSONResponse({"message": str(error)}, 422, headers=HEADERS)
        except OSError as error:
            return JSONResponse({"message": f"the decisions could not be saved: {error.strerror or error}"}, 500, headers=HEADERS)
        done = BackgroundTask(session.stop) if session.applied else None
        return JSONResponse(out, headers=HEADERS, background=done)

    return answer


def serve(session: Session, *, port: int, announce: Callable[[str], None]) -> None:
    """Serve until everything is applied or Ctrl-C. port: 0 for a free one. announce: told the address once it answers.

    Raises OSError where the port is taken, ModuleNotFoundError without the extra `web`.
    """
    import uvicorn

    app = application(session)
    with socket.create_server((HOSTS[0], port)) as listening:
        quiet: dict[str, Any] = {"log_level": "critical", "access_log": False, "server_header": False}
        config = uvicorn.Config(app, lifespan="off", ws="none", timeout_graceful_shutdown=3, **quiet)
        server = uvicorn.Server(config)

        def stop() -> None:
            server.should_exit = True

        session.stop = stop
        announce(address(listening.getsockname()[1], session.token))
        server.run(sockets=[listening])


def address(port: int, token: str) -> str:
    return f"http://{HOSTS[0]}:{port}/?token={token}"

