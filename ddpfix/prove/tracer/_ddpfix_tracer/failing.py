"""The exception that ends a rank, told by the rank itself: what it prints may be drawn in boxes, or be of another process."""

from __future__ import annotations

import sys
from typing import Any

from _ddpfix_tracer import call_sites, recorder

_told = False


def tell(error: Any = None) -> None:
    """One row for `error`, or for what the interpreter has let end the program (`sys.last_value`); none where it ended well."""
    global _told
    error = error if error is not None else getattr(sys, "last_value", None)
    if _told or not isinstance(error, Exception):
        return
    _told = True
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else "%s.%s" % (kind.__module__, kind.__qualname__)
    recorder.write("failed", error=name, text=_text(error), at=_place(error.__traceback__))


def _text(error: Exception) -> str:
    try:
        return str(error)[:2000]
    except Exception:  # a `__str__` of the user's
        return ""


def _place(trace: Any) -> list[Any] | None:
    """The innermost line of the user's, of the program's own folder where one is."""
    found: list[Any] | None = None
    inside = False
    while trace is not None:
        code = trace.tb_frame.f_code
        shown = call_sites.shown(code.co_filename)
        here = bool(shown) and not shown.startswith("/")
        if shown and (here or not inside):
            found, inside = [shown, trace.tb_lineno, code.co_name], here
        trace = trace.tb_next
    return found
