"""The files that a user asks for by name: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Put `text` into the file, with the folders above it. Raises OSError; an old file is then as it was."""
    data = text.encode("utf-8", "backslashreplace")
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout
        path.write_bytes(data)
        return
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        fresh.write_bytes(data)
        os.replace(fresh, target)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def append(path: Path, text: str) -> None:
    """Add `text` at the end of the file. Raises OSError."""
    with open(path, "ab") as file:
        file.write(text.encode("utf-8", "backslashreplace"))
