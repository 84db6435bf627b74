"""Why a place is left alone, said by the code that leaves it.

`if is_guarded(call) and left(module, call, "{} keeps every rank out", test): continue`: it is always True, and does nothing
but where somebody listens (`--why-not`). A sentence is put together there alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from codemods.api.findings import Span
from codemods.files.source import SourceModule
from codemods.runtime.record import record

_LONGEST = 70  # characters of a piece of source in a sentence


@record
class Left:
    """A place that was left alone. line to end_line: the place that was judged; at: where the reason stands, `path:line`, if that
    is another place.
    """

    path: str
    line: int
    end_line: int
    why: str
    at: tuple[str, int] | None = None


_heard: list[Callable[[Left], None]] = []


def left(
    module: SourceModule | str,
    place: ast.AST | Span | None,
    why: str,
    *parts: ast.AST | str | int,
    at: ast.AST | None = None,
    within: SourceModule | None = None,
) -> bool:
    """Says that `place` is left alone (None: the whole file), and is True.

    module: the file, or its path. parts: what stands for each `{}` of `why`, a node as its source. at: where the reason is seen,
    in the file `within` where that is another one.
    """
    if _heard:
        path = module if isinstance(module, str) else module.path
        line, end = _lines(place)
        said = why.format(*[_worded(part) for part in parts])
        seen = None if at is None else (within.path if within is not None else path, getattr(at, "lineno", 0))
        for hear in _heard:
            hear(Left(path, line, end, said, seen))
    return True


def is_heard() -> bool:
    """True where somebody listens: a sentence that is dear to make is made then alone."""
    return bool(_heard)


@contextmanager
def hearing(hear: Callable[[Left], None]) -> Iterator[None]:
    """All that is left alone meanwhile is told to `hear`."""
    _heard.append(hear)
    try:
        yield
    finally:
        _heard.remove(hear)


def _lines(place: ast.AST | Span | None) -> tuple[int, int]:
    if place is None:
        return 0, 0
    if isinstance(place, Span):
        return place.line, place.end_line
    first = getattr(place, "lineno", 0)
    if isinstance(place, ast.stmt) and isinstance(body := getattr(place, "body", None), list) and body:
        return first, max(first, body[0].lineno - 1)  # the header: what stands below it is judged for itself
    return first, getattr(place, "end_lineno", None) or first


def _worded(part: ast.AST | str | int) -> str:
    text = " ".join((ast.unparse(part) if isinstance(part, ast.AST) else str(part)).split())
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`" if isinstance(part, ast.AST) else text
