"""The web service of a GitHub App: it checks what comes, puts the work in the queue and answers at once."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ddpfix.bot.events import is_signed, jobs
from ddpfix.bot.worker import Worker

LARGEST = 25 * 1024 * 1024  # GitHub sends no payload beyond 25 MB


def application(worker: Worker, secret: str, *, prefix: str = "ddpfix", largest: int = LARGEST) -> Starlette:
    """POST /webhook and GET /health. `secret`: the one that the App's page holds too. The worker is started and stopped by it.

    202 is answered when the work is on the disk.
    """

    async def webhook(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return PlainTextResponse("send application/json", 415)
        body = await _bounded(request, largest)
        if body is None:
            return PlainTextResponse("too large", 413)
        if not is_signed(secret, body, request.headers.get("x-hub-signature-256", "")):
            return PlainTextResponse("the signature is not right", 401)
        delivery, event = request.headers.get("x-github-delivery", ""), request.headers.get("x-github-event", "")
        if not delivery or not event:
            return PlainTextResponse("X-GitHub-Delivery and X-GitHub-Event are wanted", 400)
        try:
            asked = jobs(event, json.loads(body), prefix)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return PlainTextResponse("this is no payload of that event", 400)
        try:
            if asked and not await run_sync(worker.accept, delivery, asked):
                return PlainTextResponse("seen before", 200)
        except sqlite3.Error:
            return PlainTextResponse("it cannot be kept now", 503)
        return PlainTextResponse(f"{len(asked)} to do", 202)

    async def health(request: Request) -> Response:
        return PlainTextResponse("well")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        worker.start()
        yield
        await run_sync(worker.stop)

    routes = [Route("/webhook", webhook, methods=["POST"]), Route("/health", health, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan)


async def _bounded(request: Request, largest: int) -> bytes | None:
    """The body, None as soon as it is longer than it may be."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > largest:
        return None
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > largest:
            return None
    return bytes(body)


def serve(app: Starlette, host: str, port: int) -> None:
    """Run until SIGTERM or SIGINT; the job in hand is finished first."""
    import uvicorn

    def ended(number: int, frame: object) -> None:
        raise SystemExit(0)

    # when it has shut down, uvicorn raises the signal once more for whoever had it before
    signal.signal(signal.SIGTERM, ended)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run()
