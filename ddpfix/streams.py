"""What stdout and stderr do with text that their encoding lacks: a file name that is no text, a mark in an ASCII terminal."""

from __future__ import annotations

import sys


def never_fail() -> None:
    """Write such characters as `\\udcff`, which is right inside JSON, too, instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
