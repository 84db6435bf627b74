"""A service in a process of its own, started again after each kill, and somebody who delivers until it is answered 202."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from tests.bot.served import SECRET

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def signed(event: str, delivery: str, payload: Any) -> tuple[bytes, dict[str, str]]:
    """The bytes and the headers of a delivery."""
    body = json.dumps(payload).encode()
    return body, {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": delivery,
        "x-hub-signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
    }


def push(slug: str, branch: str = "main") -> dict[str, Any]:
    return {"ref": f"refs/heads/{branch}", "repository": {"full_name": slug, "default_branch": branch}}


def comment(slug: str, number: int, said: int, text: str, *, author: str = "ada", of: str = "MEMBER") -> dict[str, Any]:
    by = {"login": author, "type": "User"}
    said_so = {"id": said, "body": text, "user": by, "author_association": of}
    issue = {"number": number, "pull_request": {}}
    return {"action": "created", "repository": {"full_name": slug}, "issue": issue, "comment": said_so}


class Service:
    """The process. Arguments: those of `tests.bot.served` behind the port."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder, self.arguments, self.starts = folder, arguments, 0
        self.environment = {**os.environ, **environment, "PYTHONPATH": str(ROOT)}
        self.port = free_port()
        self.http = httpx2.Client(transport=httpx2.HTTPTransport(), base_url=f"http://127.0.0.1:{self.port}", timeout=60)
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        command = [sys.executable, "-P", "-m", "tests.bot.served", str(self.port), *self.arguments]
        log = (self.folder / "log").open("ab")
        started = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        log.close()
        while True:  # until it listens
            try:
                self.http.get("/health")
                return started
            except httpx2.TransportError:
                assert started.poll() is None, (self.folder / "log").read_text()[-3000:]

    def deliver(self, event: str, delivery: str, payload: Any) -> int:
        """The status, 0 without an answer."""
        body, headers = signed(event, delivery, payload)
        try:
            return int(self.http.post("/webhook", content=body, headers=headers).status_code)
        except httpx2.TransportError:
            return 0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def again(self) -> None:
        self.process = self._started()

    def end(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)
