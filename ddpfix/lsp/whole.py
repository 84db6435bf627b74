"""A look at all files of a project, in a process of its own, so that typing does not wait for it: what `ddpfix check` does.

The child reads one request from its stdin and writes a length and a pickle for each message: pairs (done, all) while it goes on,
then what was found in each file.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix import engine, judging, plugins
from ddpfix.lsp.held import project_at
from ddpfix.lsp.options import Options
from ddpfix.results import Judged

_LENGTH = struct.Struct(">Q")
_STEP = 25  # files between two messages


class WholeFailed(Exception):
    """The process ended without an answer."""


@record
class Request:
    """place: a folder or a file, as `Held` takes it. texts: those of the editor, by path."""

    place: str
    options: Options
    texts: Mapping[str, bytes]


class Whole:
    """One such look. `answer` waits for it, `end` ends it from another thread."""

    def __init__(self, request: Request) -> None:
        command = [sys.executable, "-m", "ddpfix.lsp.whole"]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._request = pickle.dumps(request)

    def answer(self, progress: Callable[[int, int], None]) -> dict[str, Judged]:
        """Raises WholeFailed."""
        with self._child as child:
            assert child.stdin is not None and child.stdout is not None
            try:
                child.stdin.write(self._request)
                child.stdin.close()
                while head := child.stdout.read(_LENGTH.size):
                    message = pickle.loads(child.stdout.read(_LENGTH.unpack(head)[0]))
                    if isinstance(message, dict):
                        return message
                    progress(*message)
            except (OSError, EOFError, pickle.UnpicklingError, struct.error):
                pass
        raise WholeFailed

    def end(self) -> None:
        self._child.kill()


def judged(request: Request, progress: judging.Progress) -> dict[str, Judged]:
    """What is found in each file. In this process, which ends with it."""
    found = project_at(Path(request.place), request.options, request.texts)
    tree, codemods = plugins.with_codemods(found.tree, found.settings)
    disk = engine.disk_reader(tree.root)

    def read(path: str) -> bytes | None:
        return request.texts[path] if path in request.texts else disk(path)

    project = engine.project_of(tree, found.settings, read, Project)
    project.failed = {}
    with engine.collector_off():
        return judging.judge_all(project, tree, found.settings, codemods, progress, ending=True)[0]


def main() -> None:
    if hasattr(os, "nice"):
        os.nice(10)  # who types goes first
    request = pickle.loads(sys.stdin.buffer.read())
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a plug-in prints is no message
    started = os.getpid()

    def send(message: object) -> None:
        data = pickle.dumps(message)
        out.write(_LENGTH.pack(len(data)) + data)
        out.flush()

    def tell(done: int, of: int) -> None:
        if done % _STEP == 0 and os.getpid() == started:  # those that share the work have the pipe, too
            send((done, of))

    send(judged(request, tell))
    os._exit(0)


if __name__ == "__main__":
    main()
