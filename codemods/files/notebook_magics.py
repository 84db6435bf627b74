"""What of a notebook's cell is no Python: magics (`%time`), shell lines (`!pip`), help (`print?`), and calls that stand for them.

A call has as many lines as what it stands for, and its indentation, so that every other line stays where it is. It is a call of
IPython's own object, as IPython makes one: what it does is unknown to every analysis.
"""

from __future__ import annotations

import ast
import io
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

# Cell magics behind which there is Python that this kernel runs; below any other stands something else, or another process's.
_PYTHON = frozenset({"capture", "prun", "time", "timeit", "debug", "memit", "mprun", "lprun", "notify", "heat", "wandb"})
_CELL_MAGIC = lazy(r"\s*%%(\w+)")
_MAGIC = lazy(r"[ \t]*(?:%{1,2}[A-Za-z_]|!|\?{1,2}[A-Za-z_%]|/[A-Za-z_])")
_ASSIGNED = lazy(r"([ \t]*[A-Za-z_][\w.\[\], \t'\"]*=[ \t]*)(?:!|%[A-Za-z_])(?!=)")
_HELP = lazy(r"[ \t]*%{0,2}[A-Za-z_][\w.\[\]'\"]*\?{1,2}[ \t]*;?[ \t]*(?:\r?\n)?\Z")
# Magics that IPython takes without their sign, where no variable has the name; as Python these lines would not be read.
_UNSIGNED = lazy(r"[ \t]*(?:pip|conda|mamba|uv|cd|ls|ll|mkdir|rmdir|rm|cp|mv|cat|pwd|load_ext|matplotlib)[ \t]+[\w./~$*'\"-]")
_MAY_HOLD = lazy(r"[%!?]|^[ \t]*/|^[ \t]*(?:pip|conda|mamba|uv|cd|ls|ll|mkdir|rmdir|rm|cp|mv|cat|load_ext|matplotlib)[ \t]", re.M)
STANDS_FOR = lazy(r"^[^\n]*get_ipython\(\)\._\(\d+\n*\)", re.M)
_TOKENS = lazy(
    r"#[^\r\n]*|(?:\"\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*(?:\"\"\"|\Z))|(?:'''(?:[^\\']|\\.|'(?!''))*(?:'''|\Z))"
    r"|\"(?:[^\"\\\r\n]|\\.)*\"?|'(?:[^'\\\r\n]|\\.)*'?|[()\[\]{}]|\\\r?\n|\r?\n",
    re.S,
)


@record
class Magic:
    """Whole lines, from `line` (from 0) on, without the last line's end: as the cell has them, and the call in their place."""

    line: int
    source: str
    python: str


def is_not_python(source: str) -> bool:
    """True for a cell that begins with a magic which takes the rest of the cell for something else."""
    found = _CELL_MAGIC.match(source)
    return found is not None and found.group(1) not in _PYTHON


def found_in(source: str, first: int) -> tuple[Magic, ...]:
    """The magics of a cell, numbered from `first`."""
    if _MAY_HOLD.search(source) is None:
        return ()
    lines = io.StringIO(source, newline="").readlines()
    out: list[Magic] = []
    for top, bottom in _logical_lines(source, lines):
        text = "".join(lines[top:bottom]).rstrip("\r\n")
        if (kept := _kept_of(lines[top], "".join(lines[top:bottom]))) is not None:
            call = f"get_ipython()._({first + len(out)}{chr(10) * (bottom - top - 1)})"
            out.append(Magic(top, text, kept + call))
    return tuple(out)


def as_python(source: str, magics: Sequence[Magic]) -> str:
    """The cell with its magics as calls."""
    if not magics:
        return source
    lines = io.StringIO(source, newline="").readlines()
    for magic in reversed(magics):
        bottom = magic.line + magic.source.count("\n") + 1
        last = lines[bottom - 1]
        lines[magic.line : bottom] = [magic.python + last[len(last.rstrip("\r\n")) :]]
    return "".join(lines)


def _kept_of(first: str, text: str) -> str | None:
    """What of the line stays before the call, its indentation or `name = `; None where the line is Python."""
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    if _MAGIC.match(first) or _HELP.fullmatch(text):
        return indent
    if found := _ASSIGNED.match(first):
        return found.group(1)
    if _UNSIGNED.match(first) and not _is_python(text):
        return indent
    return None


def _is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text.strip())
        except (SyntaxError, ValueError):
            return False
    return True


def _logical_lines(source: str, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of the lines that no bracket and no string of several lines goes over.

    A magic's own line ends where it ends, whatever brackets and quotes it holds, unless a backslash carries it on.
    """
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    top = 0
    while top < len(lines):
        bottom = _end_of_magic(lines, top) if _may_be_magic(lines[top]) else _end_of_python(source, starts, top)
        yield top, bottom
        top = bottom


def _may_be_magic(line: str) -> bool:
    return bool(_MAGIC.match(line) or _ASSIGNED.match(line) or (_UNSIGNED.match(line) and not _is_python(line)))


def _end_of_magic(lines: Sequence[str], top: int) -> int:
    while top < len(lines) - 1 and lines[top].rstrip("\r\n").endswith("\\"):
        top += 1
    return top + 1


def _end_of_python(source: str, starts: Sequence[int], top: int) -> int:
    depth, at = 0, starts[top]
    while found := _TOKENS.search(source, at):
        token, at = found.group(), found.end()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth = max(depth - 1, 0)
        elif token in ("\n", "\r\n") and not depth:
            break
    else:
        return len(starts) - 1
    return bisect_left(starts, at)
