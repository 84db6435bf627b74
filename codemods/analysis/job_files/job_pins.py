"""The versions that a job file's own environment pins: the files it names, and those in the folder its image is built from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from codemods.analysis.frameworks import Pin, joined, pin_of, pins
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# `build: {path: ./image}` of Azure ML, `build: ./image` and `context: ./image` of Compose
_FOLDER = lazy(r"^[ \t-]*[\"']?(?:path|build|context)[\"']?[ \t]*:[ \t]*[\"']?([\w.][\w./-]*)", re.M)
_FILE = lazy(r"[\w.][\w./-]*\.(?:txt|in|ya?ml|toml|cfg|lock)\b")


def pin_of_job(project: Project, file: TextFile, *packages: str) -> Pin | None:
    """The pin that counts for what the job file starts: in what it names, else the one nearest to it."""
    found = [pin for package in packages for pin in pins(project, package)]
    named = set(_named(file)) if found else set()
    here = [pin for pin in found if named & {pin.path, dirname(pin.path) + "/"}]
    return joined(here) if here else pin_of(project, *packages, near=file.path)


def _named(file: TextFile) -> Iterator[str]:
    """Paths in the repository that the text may name, folders with a slash at the end."""
    for pattern, end in ((_FOLDER, "/"), (_FILE, "")):
        for match in pattern.finditer(file.text):
            written = match.group(match.lastindex or 0)
            for folder in {"", dirname(file.path)}:
                yield normpath(join(folder, written)) + end
