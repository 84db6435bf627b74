"""The web service that hears a forge's messages: it checks what comes, puts the work in the queue and answers at once."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ddpfix.bot import connections
from ddpfix.bot.connections import SHORT, Room
from ddpfix.bot.messages import KINDS, Messages
from ddpfix.bot.worker import Worker

LARGEST = 25 * 1024 * 1024  # GitHub sends no payload beyond 25 MB


def application(
    worker: Worker, secret: str, *, prefix: str = "ddpfix", largest: int = LARGEST, messages: Messages = KINDS["github"]
) -> Starlette:
    """POST /webhook and GET /health. `secret`: the one that the forge's page holds too. The worker is started and stopped by it.

    202 is answered when the work is on the disk.
    """

    room = Room()

    async def webhook(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return PlainTextResponse("send application/json", 415)
        if not messages.may_be_right(secret, request.headers):  # nothing of its body is read
            return PlainTextResponse("the signature is not right", 401, {"connection": "close"})
        body = await _bounded(request, largest, room)
        if isinstance(body, Response):
            return body
        if not messages.is_right(secret, request.headers, body):
            return PlainTextResponse("the signature is not right", 401)
        delivery, event = messages.names(request.headers)
        if not delivery or not event:
            return PlainTextResponse(f"{messages.delivery[0]} and {messages.event} are wanted", 400)
        try:
            asked = messages.jobs(event, json.loads(body), prefix)
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


async def _bounded(request: Request, largest: int, room: Room) -> bytes | Response:
    """The body, or the answer as soon as it is longer than it may be, or than there is room for now."""
    said = request.headers.get("content-length", "")
    too_large = PlainTextResponse("too large", 413, {"connection": "close"})
    if said.isdecimal() and (len(said) > 12 or int(said) > largest):
        return too_large
    body, held = bytearray(), 0
    try:
        async for part in request.stream():
            body += part
            if len(body) > largest:
                return too_large
            if len(body) > SHORT:
                if not room.take(len(body) - held):
                    return PlainTextResponse("too much at once", 503, {"connection": "close", "retry-after": "60"})
                held = len(body)
        return bytes(body)
    except ClientDisconnect:
        return PlainTextResponse("gone", 400)
    finally:
        room.give_back(held)


def serve(app: Starlette, host: str, port: int) -> None:
    """Run until SIGTERM or SIGINT; the job in hand is finished first."""
    import uvicorn

    def ended(number: int, frame: object) -> None:
        raise SystemExit(0)

    # when it has shut down, uvicorn raises the signal once more for whoever had it before
    signal.signal(signal.SIGTERM, ended)
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, host=host, port=port, **quiet, **connections.config())
    uvicorn.Server(config).run()
