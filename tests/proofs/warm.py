"""A process that has imported the frameworks once and forks the ranks of many runs: an import costs five seconds of CPU.

Each rank is a process of its own, in its own session, that runs the real script as `__main__` from its first line, under the
real tracer, the probe or neither; only the modules that it imports are there already. `DDPFIX_PROOFS_COLD=1` starts every rank
afresh instead.

    warm = Warm.begun(["torch", "lightning.pytorch"], env); run_ranks(..., start=warm.start)
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddpfix.diagnosis.probe import INJECTED as PROBE
from ddpfix.prove.ranks import TRACER, Launch, Process, spawned

FORKING = Path(__file__).with_name("forking.py")
INJECTED = {"_ddpfix_tracer": (TRACER,), "_ddpfix_probe": (TRACER, PROBE), "": ()}  # what watches a rank -> its folders


class Warm:
    """The forking process, seen from the tests."""

    def __init__(self, link: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self._socket, self._process = link, process
        self.python = ""  # what its forks take for the interpreter: the path of a command, "" for the real one
        self._lock = threading.Lock()
        self._ended: dict[int, int] = {}

    @classmethod
    def begun(cls, modules: Sequence[str], env: dict[str, str], injected: str = "_ddpfix_tracer") -> Warm:
        """Started afresh: with a seed of its own for the hashes of texts."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folders = os.pathsep.join(map(str, INJECTED[injected]))
        command = [sys.executable, str(FORKING), injected, folders, str(theirs.fileno()), *modules]
        with theirs:
            return cls(mine, subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL))

    def with_more(self, modules: Sequence[str]) -> Warm:
        """One that has been forked from this one, and has imported these as well."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._fork({"import": list(modules)}, theirs.fileno())
        return Warm(mine)

    def start(self, launch: Launch, stdout: int, stderr: int) -> Process:
        """Start a rank: `python script arguments` or `python -m …` by a fork, any other command in the ordinary way."""
        if launch.command[0] != sys.executable or (launch.command[1].startswith("-") and launch.command[1] not in ("-m", "-P")):
            return spawned(launch, stdout, stderr)
        return self.fork(launch, {1: stdout, 2: stderr})

    def fork(self, launch: Launch, files: Mapping[int, int]) -> Forked:
        """A fork that has these files open, by their numbers there. What `launch` runs is Python."""
        words = {"command": launch.command[1:], "cwd": str(launch.cwd), "env": dict(launch.env), "files": list(files)}
        if self.python:
            words["python"] = self.python
        return Forked(self, self._fork(words, *files.values()))

    def _fork(self, words: dict[str, Any], *fds: int) -> int:
        """The number of the process that comes of a request."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(words).encode()], fds)
            answer = self._receive()
            while "started" not in answer:
                answer = self._receive()
            return int(answer["started"])

    def _receive(self) -> dict[str, Any]:
        data = self._socket.recv(1 << 16)
        if not data:
            raise OSError("the process that forks the ranks has ended")
        answer: dict[str, Any] = json.loads(data)
        self._ended.pop(answer.get("started", 0), None)  # the kernel gives a number again: that was an older process
        self._ended |= {int(pid): status for pid, status in answer.get("ended", {}).items()}
        return answer

    def status(self, pid: int) -> int | None:
        with self._lock:
            if pid not in self._ended:
                self._socket.send(b'{"ask": 1}')
                while "asked" not in self._receive():
                    pass
            return self._ended.get(pid)

    def close(self) -> None:
        self._socket.close()
        if self._process:
            self._process.wait(10)


class Forked:
    """A rank that was forked."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self.warm, self.pid = warm, pid

    def poll(self) -> int | None:
        return self.warm.status(self.pid)
