"""Is a run without a process group given the rank -1? Then `rank == 0` would silence it."""

from __future__ import annotations

import re

from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy

_MINUS_ONE = lazy(
    r"rank[\"'),\s\w=:.]{0,80}?default\s*=\s*-1\b|rank[\"']?\]?\s*(?::\s*\w+\s*)?=\s*-1\b|rank[\"']\s{0,2}[,:]\s{0,2}-1\b|"
    r"rank[\"')\]]*\s*(?:[!=]=|>=?|in|not in)\s*[\[({]?\s*-1\b", re.IGNORECASE
)  # fmt: skip


@once_a_module
def writes_minus_one(module: SourceModule) -> bool:
    """True where the file gives a rank the value -1, as a default, in an assignment or a dict, or compares one with it."""
    return _MINUS_ONE.search(module.text) is not None
