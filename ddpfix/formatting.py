"""The repository's own formatter, run on copies of the changed files beside a copy of its settings."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SETTINGS_FILES = (
    "pyproject.toml", "setup.cfg", "tox.ini", ".editorconfig", "ruff.toml", ".ruff.toml", ".style.yapf", ".isort.cfg",
    ".flake8", ".clang-format",
)  # fmt: skip


class FormatFailed(Exception):
    """The formatter did not do its work; nothing was committed."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what, self.why = what, why
        self.todo = "Nothing was written. Repair the command, or leave --format-command out."


def formatted(root: Path, command: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """`files` as the formatter leaves them. The command is split like a shell's line and given the Python files; no shell runs.

    Raises FormatFailed where it cannot be started, fails, or leaves a file that is no Python any more.
    """
    words = shlex.split(command)
    python = sorted(path for path in files if path.endswith(".py"))
    if not python:
        return dict(files)
    with tempfile.TemporaryDirectory(prefix="ddpfix-format-") as folder:
        base = Path(folder)
        for name in SETTINGS_FILES:
            if (root / name).is_file():
                shutil.copy(root / name, base / name)
        for path, data in files.items():
            target = base / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        try:
            done = subprocess.run([*words, *python], cwd=base, capture_output=True, text=True, check=False)
        except OSError as error:
            raise FormatFailed(command, error.strerror or str(error)) from None
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise FormatFailed(command, f"it ended with {done.returncode}: {lines[-1] if lines else 'no message'}")
        return {path: (base / path).read_bytes() for path in files}
