"""The whole program: every module of `commands` is a command, found by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import typer

from ddpfix.cli import commands
from ddpfix.cli.app import app
from ddpfix.cli.ends import INTERRUPTED

for _module in iter_modules(commands.__path__):
    import_module(f"{commands.__name__}.{_module.name}")


def run() -> int | None:
    """Read the command line and run its command: the status it ends with, None for one that says none."""
    try:
        code = app(standalone_mode=False)  # what `typer.Exit` held; typer makes 130 of Ctrl-C
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else None
