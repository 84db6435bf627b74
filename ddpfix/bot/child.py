"""A process of its own for work on what strangers wrote: it can take no more than its share of time, memory and disk.

What comes back is read as values of this program's own classes (`unpickling`): nothing of it is run.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import resource
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from ddpfix import settings, unpickling
from ddpfix.git import GitRefusal, Most, OverLimit
from ddpfix.settings import SettingsError

MIB = 1024 * 1024
_LENGTH = struct.Struct(">Q")
LONGEST_ANSWER = 64 * MIB
# what git and Python need to run; no token, no key, no secret is among it
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "XDG_CONFIG_HOME")
_KEPT_KINDS = ("LC_", "GIT_", "PYTHON", "SSL_CERT_")


MOST = Most(paths=200_000, depth=100, names=64 * MIB, bytes=512 * MIB)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may take. seconds: of the clock, all its questions together. cpu: seconds of the child, and of each git.

    memory: bytes of address space of each process. file: bytes of one file that is written, such as what git fetches.
    """

    seconds: float
    cpu: int
    memory: int = 4096 * MIB
    file: int = 1024 * MIB
    most: Most = MOST


RUN = Limits(seconds=900, cpu=600)
REVIEW = Limits(seconds=120, cpu=90)  # anybody can ask for as many as he likes


class Worker(Protocol):
    """Answers questions about one repository. clone: the folder of its clone."""

    @property
    def clone(self) -> str: ...

    def ask(self, question: str, *given: object, **options: object) -> Any:  # noqa: ANN401
        """What a method of `inside.Inside` answers, and what it raises. Raises OverLimit."""


@contextmanager
def started(limits: Limits, clone: Path | None = None) -> Iterator[Worker]:
    """A child with limits, ended at the end together with all that it has started. clone: where one is kept, else it passes."""
    with tempfile.TemporaryDirectory(prefix="ddpfix-bot-", ignore_cleanup_errors=True) as folder:
        child = Child(clone or Path(folder) / "clone.git", limits)
        try:
            yield child
        finally:
            child.end()


@contextmanager
def here() -> Iterator[Worker]:
    """The same work in this process, without limits."""
    with tempfile.TemporaryDirectory(prefix="ddpfix-bot-", ignore_cleanup_errors=True) as folder:
        yield _Here(Path(folder) / "clone.git")


class _Here:
    def __init__(self, root: Path) -> None:
        from ddpfix.bot.inside import Inside

        self.clone = str(root)
        self._inside = Inside(root, None)

    def ask(self, question: str, *given: object, **options: object) -> Any:  # noqa: ANN401
        return getattr(self._inside, question)(*given, **options)


_live: set[Child] = set()
_ending = threading.Event()


def end_all() -> None:
    """End every child of this process, and begin none from now on: the program is about to end."""
    _ending.set()
    for one in tuple(_live):
        one.end()


class Child:
    """The process, and the talk with it: a question, an answer."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self.clone = str(root)
        self._limits, self._left = limits, limits.seconds
        self._asked_by: int | None = None  # the thread that waits for an answer
        env = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_KINDS) or k.lower().endswith("_proxy")}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ddpfix.bot.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=env, start_new_session=True,
        )  # fmt: skip
        atexit.register(self.end)
        _live.add(self)
        if _ending.is_set():
            self.end()
        self._send((self.clone, limits, os.getpid()))

    def ask(self, question: str, *given: object, **options: object) -> Any:  # noqa: ANN401
        self._send((question, given, options))
        began = time.monotonic()
        self._asked_by = threading.get_ident()
        try:
            answer = self._answer(began + self._left)
        except BaseException:
            self.end()
            raise
        finally:
            self._asked_by = None
        self._left -= time.monotonic() - began
        return _told(answer)

    def end(self) -> None:
        """End the child and what it has started.

        The pipes are left to a thread that waits for an answer: it sees their end, and closes them. A pipe that is closed under
        it leaves its selector without a word, and the thread would wait until the time of the repository is up.
        """
        atexit.unregister(self.end)
        _live.discard(self)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._asked_by not in (None, threading.get_ident()):
            return
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()

    def _send(self, message: object) -> None:
        assert self._process.stdin
        with suppress(OSError, ValueError):  # it has ended: the answer says so
            self._process.stdin.write(_framed(message))
            self._process.stdin.flush()

    def _answer(self, until: float) -> tuple[object, ...]:
        (length,) = _LENGTH.unpack(self._bytes(_LENGTH.size, until))
        if length > LONGEST_ANSWER:
            raise self._over(f"its answer has more than {LONGEST_ANSWER // MIB} MiB", "size")
        answer = unpickling.Restricted(io.BytesIO(self._bytes(length, until)), _values()).load()
        if not isinstance(answer, tuple):
            raise self._over("its answer is no answer", "crash")
        return answer

    def _bytes(self, count: int, until: float) -> bytes:
        pipe = self._process.stdout
        if pipe is None or pipe.closed:
            raise self._over("the work on it has ended before", "crash")
        got = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while len(got) < count:
                if not ready.select(max(0.0, until - time.monotonic())):
                    raise self._over(f"it takes more than {self._limits.seconds:g} s", "timeout")
                part = os.read(pipe.fileno(), min(MIB, count - len(got)))
                if not part:
                    raise self._over(*self._ended())
                got += part
        return bytes(got)

    def _ended(self) -> tuple[str, str]:
        status = self._process.wait()
        if status == -signal.SIGXCPU:
            return f"it takes more than {self._limits.cpu} s of a processor", "timeout"
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"the work on it ended with {how}", "crash"

    def _over(self, why: str, kind: str) -> OverLimit:
        return OverLimit("it is left alone", why, "the next job goes on", kind)


def _values() -> tuple[ModuleType, ...]:
    """The modules of whose classes an answer may be made."""
    from ddpfix.bot import forge, inside, planning, preferences, remarks

    return (*unpickling.VALUES, forge, inside, planning, preferences, remarks, settings)


def _told(answer: tuple[object, ...]) -> object:
    """The answer, or what was raised in its place."""
    kind, *said = answer
    texts = [str(text) for text in said]
    match kind:
        case "answer":
            return said[0]
        case "refusal":
            raise GitRefusal(*texts)
        case "limit":
            raise OverLimit(*texts)
        case "settings":
            raise SettingsError(*texts)
    raise RuntimeError(*texts)


def _framed(message: object) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


# In the child


def main() -> None:
    """Answer the questions that come on stdin until there are no more."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)  # whatever is printed is no answer
    root, limits, parent = _read(questions)
    confine(limits)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    from ddpfix.bot.inside import Inside

    inside = Inside(Path(root), limits.most)
    while (asked := _read(questions)) is not None:
        question, given, options = asked
        answers.write(_framed(_tried(inside, question, given, options)))
        answers.flush()


def _end_with(parent: int) -> None:
    """The parent keeps the time; where it was killed, nobody wants the answer any more."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def confine(limits: Limits) -> None:
    """Let this process, and what it starts, take no more than that."""
    wanted = {resource.RLIMIT_CPU: limits.cpu, resource.RLIMIT_AS: limits.memory, resource.RLIMIT_FSIZE: limits.file}
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, hard if kind == resource.RLIMIT_CPU else most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(pipe: io.BufferedReader) -> Any:  # noqa: ANN401
    head = pipe.read(_LENGTH.size)
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0])) if len(head) == _LENGTH.size else None


def _tried(inside: object, question: str, given: tuple[object, ...], options: Mapping[str, object]) -> tuple[object, ...]:
    from ddpfix.catalog import UnknownSelector

    try:
        return "answer", getattr(inside, question)(*given, **options)
    except OverLimit as error:
        return "limit", *error.args, error.kind
    except GitRefusal as error:
        return "refusal", *error.args
    except (SettingsError, UnknownSelector) as error:
        return "settings", str(error)
    except MemoryError:
        return "limit", "it is left alone", "it takes more memory than one job may have", "the next job goes on", "memory"
    except Exception as error:
        return "defect", f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
