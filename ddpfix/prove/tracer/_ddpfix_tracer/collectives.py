"""The calls that every rank must make alike: recorded in their order, with the user's line."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from _ddpfix_tracer import call_sites, recorder

# functions of torch.distributed.distributed_c10d at which a rank waits for others
NAMES = (
    *("init_process_group", "new_group", "split_group", "barrier", "monitored_barrier", "broadcast", "all_reduce"),
    *("all_reduce_coalesced", "reduce", "all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"),
    *("all_gather", "all_gather_single", "all_gather_into_tensor", "_all_gather_base", "all_gather_coalesced", "gather"),
    *("scatter", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base"),
    *("all_to_all", "all_to_all_single", "send", "recv", "send_object_list", "recv_object_list", "batch_isend_irecv"),
)
_inside = threading.local()


def patch(module: Any) -> None:
    """Watch every collective of torch.distributed.distributed_c10d."""
    for name in NAMES:
        function = getattr(module, name, None)
        if callable(function):
            setattr(module, name, watched(function, name))


def watched(function: Callable[..., Any], op: str, prepare: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """`function`, recorded as the collective `op`; one that is called by another is part of that one.

    prepare: (args, kwargs) -> (args, kwargs) before the call.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "op", None) or not recorder.recording():
            return function(*args, **kwargs)
        if prepare is not None:
            args, kwargs = prepare(args, kwargs)
        _inside.op = op
        number = enter(op, args, kwargs)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            recorder.write("raised", n=number, op=op, error="%s: %s" % (type(error).__name__, str(error)[:2000]))
            raise
        finally:
            _inside.op = None
            recorder.count(recorder.LEFT)

    return call


def waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, known to the watchdog as a place where a rank waits, but no collective of its own."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder.count(recorder.ENTERED)
        try:
            return function(*args, **kwargs)
        finally:
            recorder.count(recorder.LEFT)

    return call


def enter(op: str, args: Any, kwargs: Any) -> int:
    number: int = recorder.count(recorder.ENTERED)
    try:
        at, via = call_sites.user_frame()
        recorder.write("call", n=number, op=op, at=at, via=via, what=_what([*args, *kwargs.values()]))
    except Exception as error:
        recorder.write("call", n=number, op=op, at=None, via="", what="", note=str(error))
    return number


def _what(values: list[Any]) -> str:
    """Shape and type of the first tensor among the arguments, as text."""
    for value in values:
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        shape = getattr(first, "shape", None)
        if shape is not None and hasattr(first, "dtype"):
            return "%s %s" % (str(first.dtype).replace("torch.", ""), list(shape))
    return ""
