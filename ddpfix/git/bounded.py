"""git with an end: each call has a time-out, and what it has started ends with it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ddpfix.git.refusal import OverLimit
from ddpfix.git.runner import INHERITED, Result

_TOO_LARGE = os.strerror(errno.EFBIG)  # a file met its limit (setrlimit(2), RLIMIT_FSIZE); git runs with LC_ALL=C
SECONDS = 300.0  # of one call: a server that says nothing for so long says nothing


def call(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    data: bytes = b"",
    seconds: float = 0.0,
    memory: int = 0,
    own_group: bool = True,
) -> Result:
    """Run git to its end; a status other than 0 is no error here.

    seconds: `SECONDS` if not given. memory: bytes that git, and what it starts, may take each; 0 for no limit. own_group: git
    gets a group of processes of its own, which ends with it; not in a child
    whose whole group is ended from outside. Raises OverLimit when the time is up.
    """
    seconds = seconds or SECONDS
    # a server decides how much git keeps; where a system knows no such limit, there is none
    limit = ("sh", "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(memory >> 10)) if memory else ()
    with started((*limit, *command), env, own_group=own_group) as process:
        try:
            out, said = process.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            end(process, own_group=own_group)
            why = f"it took more than {seconds:g} s"
            raise OverLimit(f"git {_name(command)} was ended", why, "see what holds it up", "timeout") from None
        words = said.decode(errors="replace")
        if process.returncode and _TOO_LARGE in words:
            why = "what it holds is larger than one file may be here"
            raise OverLimit(f"git {_name(command)} was ended", why, "leave it out, or allow more")
        return Result(process.returncode, out, words)


def _name(command: Sequence[str]) -> str:
    return next((word for word in command[1:] if not word.startswith("-") and "=" not in word), "")


def started(command: Sequence[str], env: Mapping[str, str], *, own_group: bool) -> subprocess.Popen[bytes]:
    """git as a process with pipes, without the variables that a hook or an alias sets for another repository."""
    inherited = {name: value for name, value in os.environ.items() if name not in INHERITED}
    pipe = subprocess.PIPE
    # Python ignores SIGXFSZ, and git is to do so, too: it then says that a file is too large, where it would end without a word
    return subprocess.Popen(
        list(command), stdin=pipe, stdout=pipe, stderr=pipe, env={**inherited, **env}, start_new_session=own_group,
        restore_signals=False,
    )  # fmt: skip


def end(process: subprocess.Popen[bytes], *, own_group: bool) -> None:
    """End git now, and what it has started with it."""
    with suppress(ProcessLookupError):
        if own_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
