"""The traceback of the user's program without the frames that stand between only because it is watched."""

from __future__ import annotations

import os
import sys
from typing import Any

from _ddpfix_tracer import call_sites


def keep_to_the_users() -> None:
    """Print uncaught exceptions as they would be without us."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        try:
            _strip(error, set())
            trace = error.__traceback__
        except Exception:
            pass
        before(kind, error, trace)

    sys.excepthook = hook


def _strip(error: Any, seen: set[int]) -> None:
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _without_ours(error.__traceback__)
        _strip(error.__cause__, seen)
        error = error.__context__


def _without_ours(trace: Any) -> Any:
    first = last = None
    while trace is not None:
        after = trace.tb_next
        if not os.path.abspath(trace.tb_frame.f_code.co_filename).startswith(tuple(call_sites.OURS)):
            if last is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = after
    if last is not None:
        last.tb_next = None
    return first
