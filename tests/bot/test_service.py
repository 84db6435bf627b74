"""`ddpfix bot serve` as the process that it is: it answers, works, and ends as it should when it is told to."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2

from tests.bot.conftest import TOKEN, World
from tests.bot.github_forge import Fault
from tests.bot.service import free_port

SECRET = "a webhook secret that nobody may see"


def start(world: World, folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "bot", "serve", "--port", str(port), "--topics", "safe"]
    env = {**os.environ, "DDPFIX_TOKEN": TOKEN, "DDPFIX_WEBHOOK_SECRET": SECRET, "DDPFIX_APP_ID": ""}
    full = [*command, "--api-url", world.forge.api]
    return subprocess.Popen(full, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_sigterm_in_a_wait_ends_at_once_and_the_next_start_goes_on(world: World, tmp_path: Path) -> None:
    limit, waits = {"Retry-After": "45"}, threading.Event()
    world.forge.faults.append(Fault("POST", r"/pulls$", 403, limit, "You have exceeded a secondary rate limit"))
    world.forge.before = lambda verb, path: waits.set() if verb == "POST" and path.endswith("/pulls") else None
    port = free_port()
    with start(world, tmp_path, port) as service:
        assert service.stdout and service.stderr
        assert b"listening" in service.stderr.readline()
        body = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": world.slug, "default_branch": "main"}})
        signature = hmac.new(SECRET.encode(), body.encode(), hashlib.sha256).hexdigest()
        headers = {"content-type": "application/json", "x-github-event": "push", "x-github-delivery": "1"}
        with httpx2.Client(transport=httpx2.HTTPTransport(retries=8), base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            signed = {**headers, "x-hub-signature-256": f"sha256={signature}"}
            assert client.post("/webhook", content=body, headers=signed).status_code == 202
        assert waits.wait(60)
        time.sleep(0.3)  # the answer is on its way
        at = time.monotonic()
        service.send_signal(signal.SIGTERM)
        said = service.communicate(timeout=60)
        assert time.monotonic() - at < 10, said  # the wait is one of 45 s
    assert world.repo.pulls == {}
    with start(world, tmp_path, port) as service:
        try:
            assert service.stdout and service.stderr
            assert b"1 waiting" in service.stderr.readline()
            assert service.stdout.readline().decode() == f"{world.slug} safe: created {world.pull_url(1)}\n"
        finally:
            service.send_signal(signal.SIGTERM)
            service.communicate(timeout=60)


def test_the_service_works_and_ends_when_told_to(world: World, tmp_path: Path) -> None:
    port = free_port()
    with start(world, tmp_path, port) as service:
        try:
            assert service.stdout and service.stderr
            assert b"listening" in service.stderr.readline()
            address = f"http://127.0.0.1:{port}"
            with httpx2.Client(transport=httpx2.HTTPTransport(retries=8), base_url=address, timeout=180) as client:
                assert client.get("/health").text == "well"
                body = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": world.slug, "default_branch": "main"}})
                signature = hmac.new(SECRET.encode(), body.encode(), hashlib.sha256).hexdigest()
                headers = {"content-type": "application/json", "x-github-event": "push", "x-github-delivery": "1"}
                assert client.post("/webhook", content=body, headers=headers).status_code == 401
                signed = {**headers, "x-hub-signature-256": f"sha256={signature}"}
                assert client.post("/webhook", content=body, headers=signed).status_code == 202
            said = service.stdout.readline().decode()
            arguments = Path(f"/proc/{service.pid}/cmdline").read_bytes() if Path("/proc").exists() else b""
        finally:
            service.send_signal(signal.SIGTERM)
            rest = service.communicate(timeout=180)
    assert said == f"{world.slug} safe: created {world.pull_url(1)}\n"
    assert service.returncode == 0, rest
    for secret in (TOKEN.encode(), SECRET.encode()):
        assert secret not in arguments
        assert secret not in said.encode() + rest[0] + rest[1]
