"""A file written whole: a new one under a passing name, then one rename, so that no reader and no kill ever sees half of it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

_BESIDE = re.compile(r"\.ddpfix-[0-9a-f]{12}")
PASSING = "passing-"


def replace_file(path: Path, content: bytes, mode: int | None, *, by: Path) -> None:
    """Give `path` the bytes and, if not None, the mode. The passing name is in the folder `by`, so that a kill leaves nothing
    beside the user's files; where that is on another file system it is beside `path`, and `sweep` takes it away.

    Raises OSError, with `path` as it was.
    """
    if _device(by) == _device(path.parent):
        try:
            _replace(by / f"{PASSING}{secrets.token_hex(6)}", path, content, mode)
            return
        except OSError as error:
            if error.errno != errno.EXDEV:  # one file system under two mounts
                raise
    _replace(path.with_name(f".ddpfix-{secrets.token_hex(6)}"), path, content, mode)


def _replace(passing: Path, path: Path, content: bytes, mode: int | None) -> None:
    try:
        with open(passing, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(passing, mode)
        os.replace(passing, path)
    except BaseException:
        with contextlib.suppress(OSError):
            passing.unlink(missing_ok=True)
        raise


def _device(folder: Path) -> int | None:
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def sweep(by: Path, folders: Iterable[Path] = ()) -> None:
    """Take away what killed writers left: passing names in `by`, and beside files in `folders`."""
    for folder in (by, *folders):
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                if _BESIDE.fullmatch(name) or (folder == by and name.startswith(PASSING)):
                    (folder / name).unlink(missing_ok=True)
