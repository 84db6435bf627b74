"""The process that imports the frameworks once and turns its forks into ranks; the other end is in warm.py.

It imports nothing of ddpfix but what is put into a rank that is started afresh: the tracer, the probe, or nothing.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import importlib
import json
import os
import random
import runpy
import socket
import sys
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

FILES = 64  # that a process may be handed
HIGH = 512  # no number below is taken from one file while it still has to be given to another

held: list[object] = []  # to the end of the process


def watched(injected: str, folders: Sequence[str]) -> None:
    """Let the package `injected` watch all that is imported from now on; "" for none."""
    if injected:
        sys.path[:0] = folders
        importlib.import_module(injected).start()
        sys.path[:] = [p for p in sys.path if p not in folders]


def serve(injected: str, link: socket.socket, modules: Sequence[str]) -> NoReturn:
    """Import, then fork for each request until the other end closes: a rank, or a process that imports more and serves, too."""
    for name in modules:
        __import__(name)
    gc.freeze()  # no collection in a rank goes through what was imported here, which would also unshare its memory
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False  # torch would take each operator of its libraries out again: a third of what a rank costs
    while True:
        data, fds, _, _ = socket.recv_fds(link, 1 << 20, FILES)
        if not data:
            os._exit(0)
        words = json.loads(data)
        if "ask" in words:
            link.send(json.dumps({"asked": 1, "ended": _reaped()}).encode())
            continue
        pid = os.fork()
        if pid == 0:
            link.close()
            if "import" in words:
                serve(injected, socket.socket(fileno=fds[0]), words["import"])
            become(words, fds, injected)
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


def become(words: dict[str, Any], fds: Sequence[int], injected: str) -> NoReturn:
    """Turn this fork into `python script arguments`: session, open files, folder, environment, path, `__main__`.

    Or into `python -m module arguments`, with `-P` before it or without, or into `python -c code arguments`.
    """
    os.setsid()
    _open_as(words.get("files", (1, 2)), fds)
    os.chdir(words["cwd"])
    os.environ.clear()
    os.environ.update(words["env"])
    path = os.environ.pop("DDPFIX_TRACE_PYTHONPATH", None)
    if path is not None:
        os.environ["PYTHONPATH"] = path
    os.environ.pop("DDPFIX_INJECTED", None)
    if "torch.distributed" in sys.modules:  # what it read of the environment when it was imported
        sys.modules["torch.distributed"].set_debug_level_from_env()
    if injected:
        sys.modules[injected].begin()
    elif "torch.distributed" in sys.modules:
        _keep_groups(sys.modules["torch.distributed"])
    reseed()
    if "python" in words:
        _starts(words["python"])
    script, *arguments = words["command"]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if script == "-P":  # no folder of the program on the path
        script, *arguments = arguments
        del sys.path[0]
    elif script == "-m":
        sys.path[0] = os.getcwd()
    if script == "-m":
        sys.argv = arguments
        _end(_ran(lambda: runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)))
    sys.argv = [script, *arguments]
    if script == "-c":
        sys.path[0] = ""
        text, *sys.argv[1:] = arguments
        _end(_ran(lambda: exec(compile(text, "<string>", "exec"), main.__dict__)))
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    main.__dict__.update(__file__=os.path.abspath(script), __builtins__=__builtins__)
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    _end(_ran(lambda: exec(code, main.__dict__)))


def _open_as(numbers: Sequence[int], fds: Sequence[int]) -> None:
    """Have the files that were handed over open under these numbers, as the one who asked has them."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH) for fd in fds]
    for fd in fds:
        os.close(fd)
    for number, fd in zip(numbers, high, strict=True):
        os.dup2(fd, number)
        os.close(fd)


def _keep_groups(distributed: Any) -> None:
    """Never let a group's destructor run, which can wait for ever for a thread of gloo: `_ddpfix_tracer/groups.py` has the cause.

    The tracer does the same in the ranks that it watches. A fork ends without taking its objects apart, so no more is needed.
    """
    for name in ("init_process_group", "new_group"):
        setattr(distributed, name, _kept(getattr(distributed, name), distributed))


def _kept(made: Callable[..., Any], distributed: Any) -> Callable[..., Any]:
    @functools.wraps(made)
    def make(*args: Any, **kwargs: Any) -> Any:
        out = made(*args, **kwargs)
        held.append(out or distributed.GroupMember.WORLD)
        return out

    return make


def _starts(python: str) -> None:
    """Have this process take `python` for the interpreter of what it starts."""
    sys.executable = python
    if "multiprocessing.spawn" in sys.modules:
        sys.modules["multiprocessing.spawn"].set_executable(python)


def reseed() -> None:
    """Give this fork random numbers of its own, as a process that imports these modules has; they import nothing here."""
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _ran(program: Callable[[], object]) -> int:
    """Run the script; its exit status, as the interpreter works it out."""
    try:
        program()
    except SystemExit as asked:
        if asked.code is None or isinstance(asked.code, int):
            return (asked.code or 0) & 0xFF
        print(asked.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__  # as the interpreter does
        frames = error.__traceback__  # of this function and of what it calls, then the program's
        sys.excepthook(type(error), error, frames.tb_next.tb_next if frames and frames.tb_next else None)
        return 1
    return 0


def _end(status: int) -> NoReturn:
    """End as the interpreter does: threads are waited for, what is registered runs, the objects of the script go.

    But the modules are not taken apart: that unshares all of their memory, and took more than all that the rank did before.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.modules.pop("__main__").__dict__.clear()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    watched(sys.argv[1], sys.argv[2].split(os.pathsep))
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[3])), sys.argv[4:])
