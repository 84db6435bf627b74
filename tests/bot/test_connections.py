"""`bot serve` under connections that send slowly, a lot, or nonsense: memory, file handles and log stay bounded."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import logging
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ddpfix.bot import connections
from ddpfix.bot.client import ForgeError, same_host
from ddpfix.bot.connections import Room, Sparing
from ddpfix.bot.outcome import Outcome

SECRET = "a secret of the App"
SERVE = f"""
import resource, sys
from ddpfix.bot import connections, webhooks
from ddpfix.bot.worker import Worker
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
connections.SECONDS = float(sys.argv[2])
app = webhooks.application(Worker(lambda job: [], lambda outcome: None), {SECRET!r})
webhooks.serve(app, "127.0.0.1", int(sys.argv[1]))
"""


class Server:
    """The service as a process of its own, with 1,024 file handles, and its log."""

    def __init__(self, folder: Path, seconds: float) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = folder / "log"
        with self.log.open("wb") as log:
            command = [sys.executable, "-c", SERVE, str(self.port), str(seconds)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                if self.health() == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def health(self) -> int:
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        asked.request("GET", "/health")
        status = asked.getresponse().status
        asked.close()
        return status

    def deliver(self, body: bytes) -> int:
        signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "content-type": "application/json", "x-github-event": "push", "x-github-delivery": hashlib.sha256(body).hexdigest(),
            "x-hub-signature-256": signature,
        }  # fmt: skip
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        asked.request("POST", "/webhook", body, headers)
        status = asked.getresponse().status
        asked.close()
        return status

    def connect(self, data: bytes) -> socket.socket:
        one = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        one.setblocking(False)
        with contextlib.suppress(OSError):
            one.send(data)
        return one

    def memory(self, field: str = "VmRSS") -> int:
        """MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(row for row in status.splitlines() if row.startswith(field)).split()[1]) // 1024

    def handles(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(tmp_path, getattr(request, "param", 20.0))
    yield made
    made.process.kill()
    made.process.wait()


PUSH = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": "acme/one", "default_branch": "main"}}).encode()


@pytest.mark.parametrize("server", [300.0], indirect=True)  # nothing ends by the deadline of its headers
def test_2000_slow_connections_keep_nobody_out(server: Server) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    before = server.memory()
    half = b"POST /webhook HTTP/1.1\r\nHost: x\r\nX-Filler: " + b"a" * 12_000
    slow = [socket.socket() for _ in range(2000)]
    for one in slow:
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", server.port))
    try:
        flooded(slow, half)
        assert server.deliver(PUSH) == 202
        peak = server.memory("VmHWM")
        sys.stdout.write(f"2,000 slow connections: {before} MiB before, {peak} MiB at most, {server.handles()} handles\n")
        assert peak - before < 40
        assert server.handles() < connections.MOST + 64
        assert server.deliver(PUSH.replace(b"one", b"two")) == 202
        assert server.log.stat().st_size < 20_000
    finally:
        for one in slow:
            one.close()


def flooded(slow: Sequence[socket.socket], half: bytes) -> None:
    """Send `half` of a request on each as soon as it is connected, until the server has room for no more of them.

    It has then sent away all but the most that it holds: none waits in the kernel's queue any more. A connection that comes in
    the same moment as hundreds of others is sent away like them before it is read, however soon it sends.
    """
    waiting = {one.fileno(): one for one in slow}
    poll = select.poll()
    for number in waiting:
        poll.register(number, select.POLLOUT)
    until = time.monotonic() + 90
    while len(waiting) > connections.MOST:
        assert time.monotonic() < until, f"{len(waiting)} are still connected"
        for number, seen in poll.poll(1000):
            if seen & ~select.POLLOUT:
                poll.unregister(number)
                del waiting[number]
                continue
            with contextlib.suppress(OSError):
                waiting[number].send(half)
            poll.modify(number, select.POLLIN | select.POLLRDHUP)


def test_long_bodies_that_nobody_has_signed_take_no_memory(server: Server) -> None:
    before = server.memory()
    head = "POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 24000000\r\n"
    for signed in ("", f"X-Hub-Signature-256: sha256={'0' * 64}\r\n"):
        some = [server.connect(f"{head}{signed}\r\n".encode()) for _ in range(30)]
        for _ in range(40):
            for one in some:
                with contextlib.suppress(OSError):
                    one.send(b"x" * 600_000)
            time.sleep(0.01)
        assert server.deliver(PUSH + b" " * len(signed)) in (202, 200)
        for one in some:
            one.close()
    assert server.memory("VmHWM") - before < 160
    until = time.monotonic() + 10  # the server has to see that they are gone
    while (answer := server.deliver(PUSH + b" " * 1_000_000)) == 503 and time.monotonic() < until:
        time.sleep(0.1)
    assert answer == 202  # there is room again


@pytest.mark.parametrize("server", [1.0], indirect=True)
def test_headers_and_bodies_have_a_deadline(server: Server) -> None:
    head = "POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
    halves = [b"", b"POST /webhook HTTP/1.1\r\nHost", f"{head}X-Hub-Signature-256: sha256={'0' * 64}\r\n\r\n{{".encode()]
    for half in halves:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as one:
            one.sendall(half)
            began = time.monotonic()
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1000) == b""
            assert time.monotonic() - began < 3


def test_sigterm_does_not_wait_for_slow_connections(server: Server) -> None:
    head = "POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
    halves = [b"", b"POST /webhook HTTP/1.1\r\nHost", f"{head}X-Hub-Signature-256: sha256={'0' * 64}\r\n\r\n{{".encode()]
    slow = [server.connect(half) for half in halves for _ in range(20)]
    assert server.health() == 200  # they are taken
    time.sleep(0.3)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    try:
        assert server.process.wait(19) == 0, server.log.read_text()
        assert time.monotonic() - began < connections.LAST + 6
        assert server.log.stat().st_size < 20_000
    finally:
        for one in slow:
            one.close()


def test_nonsense_does_not_fill_the_log(server: Server) -> None:
    for _ in range(200):
        server.connect(b"\x16\x03\x01 nonsense\r\n\r\n").close()
    assert server.health() == 200
    assert server.log.read_bytes().count(b"\n") <= 25


def test_lines_of_the_log_are_bounded() -> None:
    sparing = Sparing(most=3, longest=50)
    records = [logging.LogRecord("x", logging.ERROR, "f", 1, "%s\n\nb", ("a" * 900,), None) for _ in range(5)]
    assert [sparing.filter(r) for r in records] == [True, True, True, False, False]
    assert records[0].getMessage() == "a" * 50
    line = Outcome("acme/one", "", "failed", "\x1b[2J a\n::error::b " + "c" * 5000).line()
    assert len(line) == 1000
    assert line.startswith("acme/one: failed (\\x1b[2J a ::error::b c")


def test_room_is_given_back() -> None:
    room = Room(10)
    assert room.take(8)
    assert not room.take(3)
    room.give_back(8)
    assert room.take(10)


@pytest.mark.parametrize(
    "url",
    ["http://github.com/a", "https://evil.test/a", "https://github.com.evil.test/a", "https://u:p@github.com/a", "a/b"],
)
def test_an_address_elsewhere_gets_no_token(url: str) -> None:
    with pytest.raises(ForgeError, match="no token goes there"):
        same_host(url, "https://api.github.com")


def test_an_address_on_the_forge_s_host_does() -> None:
    for url, api in (
        ("https://github.com/a/b.git", "https://api.github.com"),
        ("https://ghe.example.test/a/b.git", "https://ghe.example.test/api/v3"),
        ("http://127.0.0.1:8080/a/b.git", "http://127.0.0.1:9090"),
    ):
        assert same_host(url, api) == url
