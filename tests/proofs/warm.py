"""A process that has imported the frameworks once and forks the ranks of many runs: an import costs five seconds of CPU.

Each rank is a process of its own, in its own session, that runs the real script as `__main__` from its first line, under the
real tracer; only the modules that it imports are there already. `DDPFIX_PROOFS_COLD=1` starts every rank afresh instead.

    warm = Warm(python, ["torch", "lightning.pytorch"]); run_ranks(..., start=warm.start)
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from ddpfix.prove.ranks import TRACER, Launch, Process, spawned


class Warm:
    """The forking process, seen from the tests."""

    def __init__(self, modules: Sequence[str], env: dict[str, str]) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = mine
        self._lock = threading.Lock()
        self._ended: dict[int, int] = {}
        command = [sys.executable, __file__, str(theirs.fileno()), *modules]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL)
        theirs.close()

    def start(self, launch: Launch, stdout: int, stderr: int) -> Process:
        """Start a rank: `python script arguments` by a fork, any other command in the ordinary way."""
        if launch.command[0] != sys.executable or launch.command[1].startswith("-"):
            return spawned(launch, stdout, stderr)
        words = {"command": launch.command[1:], "cwd": str(launch.cwd), "env": dict(launch.env)}
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(words).encode()], [stdout, stderr])
            answer = self._receive()
            while "started" not in answer:
                answer = self._receive()
        return Forked(self, int(answer["started"]))

    def _receive(self) -> dict[str, Any]:
        data = self._socket.recv(1 << 16)
        if not data:
            raise OSError("the process that forks the ranks has ended")
        answer: dict[str, Any] = json.loads(data)
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
        self._process.wait(10)


class Forked:
    """A rank that was forked."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self.warm, self.pid = warm, pid

    def poll(self) -> int | None:
        return self.warm.status(self.pid)


# In the forking process


def serve(link: socket.socket, modules: Sequence[str]) -> None:
    """Import, then fork a rank for each request until the other end closes."""
    sys.path.insert(0, str(TRACER))
    import _ddpfix_tracer

    _ddpfix_tracer.start()
    sys.path.remove(str(TRACER))
    for name in modules:
        __import__(name)
    gc.freeze()  # no collection in a rank goes through what was imported here, which would also unshare its memory
    while True:
        data, fds, _, _ = socket.recv_fds(link, 1 << 20, 2)
        if not data:
            return
        words = json.loads(data)
        if "ask" in words:
            link.send(json.dumps({"asked": 1, "ended": _reaped()}).encode())
            continue
        pid = os.fork()
        if pid == 0:
            link.close()
            become(words, fds)
            return
        for fd in fds:
            os.close(fd)
        link.send(json.dumps({"started": pid, "ended": _reaped()}).encode())


def _reaped() -> dict[int, int]:
    out: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return out
        if pid == 0:
            return out
        out[pid] = os.waitstatus_to_exitcode(status)


def become(words: dict[str, Any], fds: Sequence[int]) -> None:
    """Turn this fork into `python script arguments`: session, streams, folder, environment, path, `__main__`."""
    import random
    import types

    import _ddpfix_tracer

    os.setsid()
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    for fd in fds:
        os.close(fd)
    os.chdir(words["cwd"])
    os.environ.clear()
    os.environ.update(words["env"])
    path = os.environ.pop("DDPFIX_TRACE_PYTHONPATH")
    os.environ["PYTHONPATH"] = path
    _ddpfix_tracer.begin()
    random.seed()
    script, *arguments = words["command"]
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=os.path.abspath(script), __builtins__=__builtins__)
    sys.modules["__main__"] = main
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    try:
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        frames = error.__traceback__
        sys.excepthook(type(error), error, frames.tb_next if frames else None)
        sys.exit(1)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
