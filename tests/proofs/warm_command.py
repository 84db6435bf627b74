"""`python` as a command whose process is a fork of one that has the frameworks imported: for what starts Python itself.

`ddpfix probe -- python train.py` and torchrun are run by the tests as a user runs them; the program that they start is this
command. It hands its arguments, folder, environment and open files to the tests' process, which has a fork made of it (warm.py),
hands on the signals that it is sent, and ends as the fork ended. What multiprocessing spawns is forked so, too; all else that is
asked with `-c` and the like, and what cannot be read, runs in the ordinary Python.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from ddpfix.prove.ranks import Launch
from tests.proofs.forking import FILES
from tests.proofs.warm import Forked, Warm

Choice = Callable[[Mapping[str, str]], Warm]

# The link is closed by the kernel when the command is killed: its fork goes then, too. Any other signal is handed on; none comes
# before there is somebody to have it.
COMMAND = """\
#!{python} -IS
import json, os, signal, socket, sys
words = sys.argv[1:]
while words[:1] in (["-u"], ["-B"]):  # of torchrun and of multiprocessing; the forks have what says the same
    del words[0]
spawned = words[:1] == ["-c"] and words[1].startswith("from multiprocessing.spawn import spawn_main")
known = spawned or words[:1] == ["-m"] or words[:2] == ["-P", "-m"]
if not known and not (words and os.path.isfile(words[0]) and not words[0].startswith("-")):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
own = {{signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT}}
handed = [s for s in signal.valid_signals() - own if signal.getsignal(s) is not signal.SIG_IGN]
signal.pthread_sigmask(signal.SIG_BLOCK, handed)
files = []
for number in map(int, os.listdir("/proc/self/fd")):
    try:
        os.fstat(number)
        files.append(number)
    except OSError:  # that of the folder itself
        pass
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect({place!r})
socket.send_fds(link, [json.dumps([words, os.getcwd(), dict(os.environ), files]).encode()], files)
for number in files:
    if number > 2:  # the others may wait for the end of a pipe
        os.close(number)
pid = int(link.recv(64) or sys.exit("no process could be forked"))
def hand_on(number, frame):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
for number in handed:
    signal.signal(number, hand_on)
signal.pthread_sigmask(signal.SIG_UNBLOCK, handed)
status = int(link.recv(64) or b"1")
signal.pthread_sigmask(signal.SIG_BLOCK, handed)
if status < 0:
    if -status not in own:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
sys.exit(status)
"""


def made(folder: Path, warm: Choice) -> str:
    """The path of such a command, in `folder`; it works until this process ends. warm: what forks for an environment."""
    place = f"\0ddpfix-{secrets.token_hex(12)}"  # no file: its path might be too long for a socket
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(place)
    listener.listen(16)
    command = folder / Path(sys.executable).name
    command.write_text(COMMAND.format(python=sys.executable, place=place))
    command.chmod(0o755)
    threading.Thread(target=_serve, args=(listener, warm), daemon=True).start()
    return str(command)


def _serve(listener: socket.socket, warm: Choice) -> None:
    while True:
        link, _ = listener.accept()
        threading.Thread(target=_run, args=(link, warm), daemon=True).start()


def _run(link: socket.socket, warm: Choice) -> None:
    with link:
        data, fds, _, _ = socket.recv_fds(link, 1 << 20, FILES)
        words, cwd, env, numbers = json.loads(data)
        try:
            process = warm(env).fork(Launch((sys.executable, *words), Path(cwd), env), dict(zip(numbers, fds, strict=True)))
        finally:
            for fd in fds:
                os.close(fd)
        with suppress(OSError):  # where the command has been killed since
            link.send(str(process.pid).encode())
        if (status := _end(process, link)) is None:
            _killed(process.pid)
        else:
            with suppress(OSError):
                link.send(str(status).encode())


def _end(process: Forked, link: socket.socket) -> int | None:
    """How the fork ended; None where the command has been killed before."""
    try:
        ended = os.pidfd_open(process.pid)
    except ProcessLookupError:  # it has ended, and another's question has asked for it
        return process.poll()
    try:
        while (status := process.poll()) is None:
            both: list[socket.socket | int] = [link, ended]
            ready, _, _ = select.select(both, [], [])
            if ended not in ready:
                return None
        return status
    finally:
        os.close(ended)


def _killed(pid: int) -> None:
    """Kill a fork with its group; it may not yet have one of its own."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
