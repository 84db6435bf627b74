"""Names and source text that a terminal or a runner of jobs takes for nothing but text."""

from __future__ import annotations

import re

# what moves a cursor, ends a line or turns the direction of text round
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# `##[error]`, `##vso[...]`, `##teamcity[...]` count anywhere in a line of a log, `::error::` at its beginning
_COMMAND = re.compile(r"##(?=\w*\[)")


def harmless(line: str) -> str:
    """One line that no terminal and no runner of jobs takes for anything but text: names and sources may hold what they like."""
    line = visible(line)
    return f"./{line}" if line.startswith("::") else line


def visible(line: str) -> str:
    """The text without what a terminal or a runner acts on, wherever it stands in a line."""
    if _UNSEEN.search(line):
        line = _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), line)
    if "##" in line:
        line = _COMMAND.sub("## ", line)
    return line
