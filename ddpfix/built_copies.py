"""What setuptools copied: `build/lib/pkg/net.py` beside `pkg/net.py`. Nobody edits it, and the next build writes it anew."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BUILT = re.compile(r"^(?P<home>(?:.*/)?)build/lib(?:\.[^/]+)?/(?P<rest>.+)$")
_SOURCES = ("", "src/", "python/", "lib/")  # where the packages of a project lie, beside `build`


def built_copies(names: Iterable[str]) -> frozenset[str]:
    """The files below each `build/lib` that holds a Python file of which the original stands beside `build`."""
    known = set(names)
    folders: dict[str, list[str]] = {}
    copied: set[str] = set()
    for name in known:
        if (found := _BUILT.match(name)) is None:
            continue
        folder = name.removesuffix(found["rest"])
        folders.setdefault(folder, []).append(name)
        if name.endswith(".py") and any(f"{found['home']}{source}{found['rest']}" in known for source in _SOURCES):
            copied.add(folder)
    return frozenset(name for folder in copied for name in folders[folder])
