"""The ends of the process: streams that write any text, a file name that is no text too, and leaving when all is written."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def never_fail() -> None:
    """Write such characters as `\\udcff`, which is right inside JSON, too, instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def leave(program: Callable[[], NoReturn]) -> NoReturn:
    """Run the program and end the process as it says: at once after a plain check, which leaves nothing but its answer and
    whose trees take as long to take apart as a tenth of the run.
    """
    try:
        program()
    except SystemExit as end:
        if "ddpfix.cli.program" in sys.modules or not isinstance(end.code, int):
            raise
        sys.stderr.flush()
        os._exit(end.code)
