"""The command line. Each command reads as a list of steps; only this package prints and ends the program."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import NoReturn

import typer

from ddpfix import streams
from ddpfix.cli import app, commands
from ddpfix.cli.app import CLEAN, INTERRUPTED, TROUBLE
from ddpfix.cli.showing import note

for _module in iter_modules(commands.__path__):
    import_module(f"{commands.__name__}.{_module.name}")


def main() -> NoReturn:
    """Run the command line. An error that was not foreseen is one line and exit 2, with --debug its traceback."""
    debug = "--debug" in sys.argv
    streams.never_fail()
    gc.disable()  # a run is short, and its trees are wanted to the end: each collection goes through millions of nodes
    try:
        code = app.app(standalone_mode=False)  # what `typer.Exit` held; typer makes 130 of Ctrl-C
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        end(CLEAN)
    except Exception as error:
        if debug:
            raise
        end(tell(error))
    if code == INTERRUPTED:
        note("\ninterrupted; nothing is half written")
    end(code if isinstance(code, int) else CLEAN)


def tell(error: Exception) -> int:
    """One line of what, why and what to do."""
    show = getattr(error, "show", None)
    if callable(show):  # the command line was not understood; the parser says so itself
        show()
        return TROUBLE
    names = {cls.__name__ for cls in type(error).__mro__}
    parts = [getattr(error, name, "") for name in ("what", "why", "todo")]
    if names & {"Trouble", "UnknownSelector", "NoSuchPath", "SettingsError"}:
        note(f"ddpfix: {error}")
    elif all(isinstance(p, str) for p in parts) and parts[0]:
        what, why, todo = parts
        begins = todo if todo.startswith("git ") else todo[:1].upper() + todo[1:]
        note(f"ddpfix: {what}: {why}. {begins}")
    else:
        name = type(error).__name__
        text = " ".join(str(error).split())
        note(f"ddpfix: {name}: {text}. This is a defect of ddpfix: `ddpfix --debug …` shows where; please report it.")
    return TROUBLE


def end(code: int) -> NoReturn:
    gc.freeze()  # or Python's own way out collects once more
    sys.exit(code)
