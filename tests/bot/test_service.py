"""`ddpfix bot serve` as the process that it is: it answers, works, and ends as it should when it is told to."""

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

import httpx2

from tests.bot.conftest import TOKEN, World

SECRET = "a webhook secret that nobody may see"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_service_works_and_ends_when_told_to(world: World, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "bot", "serve", "--port", str(port), "--topics", "safe"]
    env = {**os.environ, "DDPFIX_TOKEN": TOKEN, "DDPFIX_WEBHOOK_SECRET": SECRET, "DDPFIX_APP_ID": ""}
    with subprocess.Popen(
        [*command, "--api-url", world.forge.api], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as service:
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
