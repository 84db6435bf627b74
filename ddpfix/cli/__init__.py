"""The command line. Each command reads as a list of steps; only this package prints and ends the program."""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import NoReturn

from ddpfix import __version__, streams
from ddpfix.cli.ends import CLEAN, ERROR, INTERRUPTED

# what a full, closed or broken disk answers: nothing that ddpfix could have done otherwise
_OF_THE_MACHINE = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}


def main() -> NoReturn:
    """Run the command line. An error that was not foreseen is one line and exit 2, with --debug its traceback."""
    debug = "--debug" in sys.argv
    streams.never_fail()
    gc.disable()  # a run is short, and its trees are wanted to the end: each collection goes through millions of nodes
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        end(CLEAN)
    except Exception as error:
        if debug:
            raise
        end(tell(error))
    if code == INTERRUPTED:
        sys.stderr.write("\ninterrupted; nothing is half written\n")
    end(CLEAN if code is None else code)


def run(arguments: list[str]) -> int | None:
    """The status that a command line ends with. What reads every command line is loaded only where that is wanted."""
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"ddpfix {__version__}\n")
        return CLEAN
    from ddpfix.cli import plain

    if (asked := plain.asked_of_check(arguments)) is not None:
        from ddpfix.cli import checked

        return checked.check(asked)
    from ddpfix.cli import program

    return program.run()


def tell(error: Exception) -> int:
    """One line of what, why and what to do."""
    show = getattr(error, "show", None)
    if callable(show):  # the command line was not understood; the parser says so itself
        show()
        return ERROR
    names = {cls.__name__ for cls in type(error).__mro__}
    parts = [getattr(error, name, "") for name in ("what", "why", "todo")]
    if names & {"CommandError", "UnknownSelector", "NoSuchPath", "SettingsError", "ForgeError"}:
        said = str(error)
    elif all(isinstance(p, str) for p in parts) and parts[0]:
        what, why, todo = parts
        begins = todo if todo.startswith("git ") else todo[:1].upper() + todo[1:]
        said = f"{what}: {why}. {begins}"
    elif isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        where = error.filename2 or error.filename or "a file"
        said = f"{where} could not be read or written: {error.strerror}. See to that and run again"
    else:
        name = type(error).__name__
        text = " ".join(str(error).split())
        said = f"{name}: {text}. This is a defect of ddpfix: `ddpfix --debug …` shows where; please report it."
    from ddpfix.cli.showing import plain

    sys.stderr.write(f"ddpfix: {plain(said)}\n")
    return ERROR


def end(code: int) -> NoReturn:
    gc.freeze()  # or Python's own way out collects once more
    sys.exit(code)
