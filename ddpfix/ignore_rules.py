"""What a .gitignore says, as git reads it: patterns -> regular expressions, the last that fits wins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from codemods.runtime.record import record

_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~",
    "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r" \t\n\r\f\v", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


@record
class Rule:
    """A line of a .gitignore: the folder it holds for, its pattern, `!`, and whether it is for folders only."""

    base: str
    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool


def rules_of(folder: Path, base: str) -> tuple[Rule, ...]:
    """The rules of the .gitignore in `folder`, which is `base` below the root; none without one."""
    path = folder / ".gitignore"
    try:
        data = path.read_bytes() if path.is_file() else b""  # a pipe would be waited for
    except OSError:
        return ()
    lines = os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n")
    return tuple(rule for line in lines if (rule := parse(line.removesuffix("\r"), base)))


def parse(line: str, base: str) -> Rule | None:
    """One line; None for a blank line, a comment, and what can never fit."""
    if line.startswith("#"):
        return None
    body = _without_trailing_blanks(line)
    negated = body.startswith("!")
    body = body[1:] if negated else body
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    if not body:
        return None
    anchored = "/" in body
    pattern = _translated(body.removeprefix("/"))
    if pattern is None:
        return None
    return Rule(base, re.compile(pattern if anchored else f"(?:.*/)?{pattern}", re.DOTALL), negated, folders_only)


def is_ignored(name: str, is_dir: bool, rules: Iterable[Rule]) -> bool:
    """True for a path (relative to the root) that the rules leave out. What is in an ignored folder cannot come back."""
    ignored = False
    for rule in rules:
        if rule.folders_only and not is_dir:
            continue
        relative = name[len(rule.base) + 1 :] if rule.base else name
        if rule.pattern.fullmatch(relative):
            ignored = not rule.negated
    return ignored


def _without_trailing_blanks(line: str) -> str:
    """Blanks at the end do not count, unless a backslash stands before them."""
    end, i = 0, 0
    while i < len(line):
        step = 2 if line[i] == "\\" else 1
        if line[i] != " ":
            end = i + step
        i += step
    return line[:end]


def _translated(glob: str) -> str | None:
    out: list[str] = []
    i = 0
    while i < len(glob):
        c = glob[i]
        if c == "*":
            stars = len(glob[i:]) - len(glob[i:].lstrip("*"))
            out.append(_stars(glob, i, stars))
            # `**/` stands for any number of folders, none included, so it takes its slash along
            i += stars + (1 if out[-1].endswith(")?") else 0)
            continue
        if c == "?":
            out.append("[^/]")
        elif c == "[":
            found = _bracket(glob, i)
            if found is None:
                return None
            out.append(found[0])
            i = found[1]
            continue
        elif c == "\\":
            i += 1
            if i == len(glob):
                return None
            out.append(re.escape(glob[i]))
        else:
            out.append(re.escape(c))
        i += 1
    return "".join(out)


def _stars(glob: str, i: int, stars: int) -> str:
    before, after = glob[i - 1 : i] if i else "", glob[i + stars : i + stars + 1]
    if stars == 2 and before in ("", "/") and after in ("", "/"):
        return "(?:.*/)?" if after else ".+" if before else ".*"
    return "[^/]*"


def _bracket(glob: str, start: int) -> tuple[str, int] | None:
    """(a set as a regular expression, the index behind it); None where it is never closed."""
    i = start + 1
    negated = glob[i : i + 1] in ("!", "^")
    i += negated
    items: list[str] = []
    first = True
    while i < len(glob) and (glob[i] != "]" or first):
        first = False
        if glob.startswith("[:", i) and (end := glob.find(":]", i)) > 0:
            name = glob[i + 2 : end]
            if name not in _CLASSES:
                return None
            items.append(_CLASSES[name])
            i = end + 2
            continue
        low, i = _member(glob, i)
        if glob[i : i + 1] == "-" and glob[i + 1 : i + 2] not in ("", "]"):
            high, i = _member(glob, i + 1)
            items.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low))
        else:
            items.append(re.escape(low))
    if i >= len(glob):
        return None
    inside = "".join(items)
    if negated:
        return f"[^/{inside}]", i + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), i + 1


def _member(glob: str, i: int) -> tuple[str, int]:
    if glob[i] == "\\" and i + 1 < len(glob):
        i += 1
    return glob[i], i + 1
