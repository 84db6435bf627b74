"""ddpfix on a real pseudo-terminal, driven as a person would: what is on the screen, a line typed, Ctrl-C, a resized window."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

PATIENCE = 180.0
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class OnTerminal:
    """`with OnTerminal(folder, "review") as person:` a child with a terminal of its own; it is gone afterwards."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 80, env: Mapping[str, str] | None = None) -> None:
        self.seen = ""
        self._read_to = 0
        self._ours, theirs = pty.openpty()
        self.resize(columns)
        own = {"DDPFIX_CACHE_DIR": str(folder / ".git" / "no-cache"), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        without = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CI")}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ddpfix.cli", *arguments],
            cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**without, **own, **(env or {})}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)

    def __enter__(self) -> OnTerminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._ours)

    def resize(self, columns: int, rows: int = 40) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, words: str) -> str:
        """What came up to and with `words`, since the last call; line ends as \\n."""
        ends = time.monotonic() + PATIENCE
        while words not in self.seen[self._read_to :]:
            assert time.monotonic() < ends, f"waited for {words!r}, saw:\n{self.seen[self._read_to :]}"
            if not self._more(0.2) and self.process.poll() is not None and not self._more(0.2):
                raise AssertionError(f"it ended before {words!r}, saw:\n{self.seen[self._read_to :]}")
        end = self.seen.index(words, self._read_to) + len(words)
        shown, self._read_to = self.seen[self._read_to : end], end
        return shown

    def type(self, line: str) -> None:
        os.write(self._ours, line.encode() + b"\n")

    def interrupt(self) -> None:
        os.write(self._ours, b"\x03")

    def hang_up_input(self) -> None:
        os.write(self._ours, b"\x04")

    def end(self) -> tuple[int, str]:
        """The exit status, and what came since the last `until`."""
        ends = time.monotonic() + PATIENCE
        while self._more(0.2) or self.process.poll() is None:
            assert time.monotonic() < ends, f"it did not end, saw:\n{self.seen[self._read_to :]}"
        shown, self._read_to = self.seen[self._read_to :], len(self.seen)
        return self.process.wait(timeout=PATIENCE), shown

    def _more(self, wait: float) -> bool:
        if not select.select([self._ours], [], [], wait)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


def plain(text: str) -> str:
    return ESCAPES.sub("", text)
