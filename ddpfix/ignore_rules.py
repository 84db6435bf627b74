"""What a .gitignore says, for a folder whose files git does not list: pathspec reads the patterns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.runtime.record import record

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern


@record
class Rules:
    """The patterns of one .gitignore, and its folder below the root."""

    base: str
    spec: GitIgnoreSpec


def rules_of(folder: Path, base: str) -> tuple[Rules, ...]:
    """The rules of the .gitignore in `folder`, which is `base` below the root; none without one."""
    path = folder / ".gitignore"
    try:
        data = path.read_bytes() if path.is_file() else b""  # a pipe would be waited for
    except OSError:
        return ()
    if not data:
        return ()
    from pathspec import GitIgnoreSpec  # 60 ms, which a repository that git lists does not need

    lines = (line.removesuffix("\r") for line in os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n"))
    return (Rules(base, GitIgnoreSpec([pattern for line in lines for pattern in _patterns(GitIgnoreSpec, line)])),)


def _patterns(spec: type[GitIgnoreSpec], line: str) -> Iterable[GitIgnoreSpecPattern]:
    """The pattern of one line; none where it can never fit (an empty range of letters)."""
    try:
        return spec.from_lines([line]).patterns
    except (ValueError, re.error):
        return ()


def is_ignored(name: str, is_dir: bool, rules: Iterable[Rules]) -> bool:
    """True for a path (relative to the root) that the rules leave out; the last that fits wins."""
    ignored = False
    for one in rules:
        relative = name[len(one.base) + 1 :] if one.base else name
        found = one.spec.check_file(relative + "/" if is_dir else relative).include
        ignored = ignored if found is None else found
    return ignored
