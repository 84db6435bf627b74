"""`python` as a command whose process is a fork of one that has the frameworks imported: for what starts Python itself.

`ddpfix probe -- python train.py` and torchrun are run by the tests as a user runs them; the program that they start is this
command. It hands its arguments, folder, environment and output to the tests' process, which has a fork made of it (warm.py),
and ends as the fork ended. What is asked with `-c` and the like runs in the ordinary Python.
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
import time
from pathlib import Path

from ddpfix.prove.ranks import Launch
from tests.proofs.warm import Warm

# The link is closed by the kernel when the command is killed: its fork goes then, too.
COMMAND = """\
#!{python} -IS
import json, os, signal, socket, sys
words = sys.argv[1:]
if words[:1] == ["-u"]:  # torchrun gives it; the forks have PYTHONUNBUFFERED
    del words[0]
if not words or (words[0].startswith("-") and words[0] != "-m" and words[:2] != ["-P", "-m"]):
    os.execv({python!r}, [{python!r}, *words])
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect({place!r})
socket.send_fds(link, [json.dumps([words, os.getcwd(), dict(os.environ)]).encode()], [1, 2])
status = int(link.recv(64) or b"1")
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def made(folder: Path, warm: Warm) -> str:
    """The path of such a command, in `folder`; it works until this process ends."""
    place = f"\0ddpfix-{secrets.token_hex(12)}"  # no file: its path might be too long for a socket
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(place)
    listener.listen(16)
    command = folder / Path(sys.executable).name
    command.write_text(COMMAND.format(python=sys.executable, place=place))
    command.chmod(0o755)
    threading.Thread(target=_serve, args=(listener, warm), daemon=True).start()
    return str(command)


def _serve(listener: socket.socket, warm: Warm) -> None:
    while True:
        link, _ = listener.accept()
        threading.Thread(target=_run, args=(link, warm), daemon=True).start()


def _run(link: socket.socket, warm: Warm) -> None:
    with link:
        data, fds, _, _ = socket.recv_fds(link, 1 << 20, 2)
        words, cwd, env = json.loads(data)
        process = warm.start(Launch((sys.executable, *words), Path(cwd), env), *fds)
        for fd in fds:
            os.close(fd)
        while (status := process.poll()) is None:
            if select.select([link], [], [], 0)[0]:  # it has been killed
                os.killpg(process.pid, signal.SIGKILL)
                return
            time.sleep(0.02)
        link.send(str(status).encode())
