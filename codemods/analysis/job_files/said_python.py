"""The Python that a job runs in, by the environment that a text activates or makes: which torch it can have at most.

The wheels on PyPI: 1.5.1 was the last torch for Python 3.5, 1.10.2 for 3.6, 1.13.1 for 3.7.
"""

from __future__ import annotations

from codemods.analysis.version_pins import Range, padded
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

# `source activate pytorch_p37`, `conda activate py36`, `conda create -n train python=3.7`, `FROM python:3.7-slim`
_NAMED = lazy(
    r"(?mi)^[^#\n]*?(?:\bactivate[ \t]+\S*?(?<![a-z])p(?:y(?:thon)?)?_?-?3\.?(?P<named>[5-7])(?!\d)"
    r"|\bpython(?:=|==|:|/)3\.(?P<stated>[5-7])(?!\d))"
)
_FIRST = padded((1, 0, 0))
_ENDED = {"5": padded((1, 6, 0)), "6": padded((1, 11, 0)), "7": padded((2, 0, 0))}


@record
class SaidPython:
    """The versions of torch that this Python can have, and the line that names it."""

    torch: Range
    line: int


def said_python(text: str) -> SaidPython | None:
    """The last old Python that is named; None where none is for which torch is no longer made."""
    every = list(_NAMED.finditer(text))
    if not every:
        return None
    found = every[-1]
    ended = _ENDED[found["named"] or found["stated"]]
    return SaidPython((_FIRST, ended), text[: found.start()].count("\n") + 1)
