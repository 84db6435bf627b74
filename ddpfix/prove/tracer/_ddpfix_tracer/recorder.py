"""The two files of a rank: lines of JSON that survive a kill, and a page of counters that the watchdog reads.

The page holds four unsigned 64-bit numbers: collectives entered, collectives left, optimizer steps, wrapped models' forwards
that are under way.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import signal
import struct
import sys
import sysconfig
import threading
from typing import Any

PAGE = struct.Struct("<QQQQ")
STACK_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2) + (9 if hasattr(signal, "SIGRTMIN") else 0)
MOST = 200_000  # lines; a run that issues more is no longer a proof but a training

_file = -1
_page: Any = None
_stacks: Any = None
_numbers = [0, 0, 0, 0]
_lock = threading.Lock()
_lines = 0
_pid = 0
_folder = ""
rank_here = 0


def open_in(folder: str, rank: int) -> None:
    """Open the files of `rank` in `folder`, and dump the stacks there when STACK_SIGNAL comes."""
    global _file, _page, _stacks, _pid, _folder, rank_here
    _pid, _folder, rank_here = os.getpid(), folder, rank
    _file = os.open(os.path.join(folder, "trace-%d.jsonl" % rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(os.path.join(folder, "page-%d" % rank), "w+b") as page:
        page.write(b"\0" * PAGE.size)
        page.flush()
        _page = mmap.mmap(page.fileno(), PAGE.size)
    _stacks = open(os.path.join(folder, "stacks-%d.txt" % rank), "w")  # noqa: SIM115
    faulthandler.register(STACK_SIGNAL, file=_stacks, all_threads=True, chain=False)
    write(
        "start",
        pid=_pid,
        rank=rank,
        folder=os.getcwd(),
        python=sys.version.split()[0],
        main_thread=threading.main_thread().ident,
        library=library(),
    )


def library() -> list[str]:
    """The folders of the standard library: no user's code lies there but what is installed."""
    paths = sysconfig.get_paths()
    found = [paths[k] for k in ("stdlib", "platstdlib") if k in paths]
    return sorted({os.path.abspath(p) for p in found} | {os.path.dirname(os.path.abspath(os.__file__))})


def recording() -> bool:
    """True in the rank itself; False in what it forks (workers of a loader) and where nothing was opened."""
    return _file >= 0 and os.getpid() == _pid


def write(kind: str, **fields: Any) -> None:
    """One line; never raises."""
    global _lines
    if not recording() or _lines > MOST:
        return
    _lines += 1
    try:
        os.write(_file, (json.dumps({"t": kind, **fields}, default=str) + "\n").encode())
    except (OSError, ValueError):
        pass


def tell(folder: str, rank: int, kind: str, **fields: Any) -> None:
    """One line in the file of another process's rank."""
    file = os.open(os.path.join(folder, "trace-%d.jsonl" % rank), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, (json.dumps({"t": kind, **fields}, default=str) + "\n").encode())
    finally:
        os.close(file)


def where() -> str:
    """The folder that this process records into, "" for none."""
    return _folder if recording() else ""


def leave(folder: str, name: str, number: int) -> None:
    """A number in a file of its own, which is there whole or not at all."""
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        file.write(str(number))
    os.replace(path + ".new", path)


def count(slot: int, by: int = 1) -> int:
    """Add to a number of the page; the new value."""
    with _lock:
        _numbers[slot] += by
        if _page is not None and os.getpid() == _pid:
            PAGE.pack_into(_page, 0, *_numbers)
        return _numbers[slot]


ENTERED, LEFT, STEPS, FORWARDS = range(4)
