"""What a rank finds in its environment: what torchrun sets, a port to meet at, no GPU."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path


def rank_environment(env: Mapping[str, str], rank: int, world_size: int, port: int) -> dict[str, str]:
    """`env` with what torchrun sets for a worker (its documentation, "Environment Variables"), and no GPU to be seen."""
    out = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **env, "CUDA_VISIBLE_DEVICES": ""}
    if world_size < 1:
        return out
    if Path("/sys/class/net/lo").exists():
        out.setdefault("GLOO_SOCKET_IFNAME", "lo")
    numbers = {
        "RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "ROLE_RANK": rank,
        "WORLD_SIZE": world_size, "LOCAL_WORLD_SIZE": world_size, "GROUP_WORLD_SIZE": 1, "ROLE_WORLD_SIZE": world_size,
        "MASTER_PORT": port, "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0,
    }  # fmt: skip
    return out | {k: str(v) for k, v in numbers.items()} | {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "ddpfix"}


def devices(env: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in env.items() if k == "CUDA_VISIBLE_DEVICES"}


def free_port() -> int:
    """A port that nobody listens on, from below those that Linux gives to outgoing connections (32768 and up): between here and
    the start of rank 0 one of those could take it.
    """
    for _ in range(100):
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
