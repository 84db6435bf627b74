"""What the CPU has not for a number format that a GPU has it for (`torch.histc` of integers): computed in a wider one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from _ddpfix_tracer import recorder

_told: set[str] = set()


def wider(torch: Any, error: Exception, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `func` gives in a wider format, cast back. Raises `error` where it says another thing, or `func` works in place."""
    name = getattr(func, "__name__", "")
    if "not implemented for '" not in str(error) or (name.endswith("_") and not name.endswith("__")) or "out" in kwargs:
        raise error
    wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    wide.update(dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.float64))
    back: dict[Any, Any] = {}

    def up(value: Any) -> Any:
        to = wide.get(value.dtype) if isinstance(value, torch.Tensor) else None
        if to is None:
            return value
        back.setdefault(to, value.dtype)
        return value.to(to)

    args, kwargs = [up(a) for a in args], {k: up(v) for k, v in kwargs.items()}
    if not back:
        raise error
    try:
        out = func(*args, **kwargs)
    except Exception:
        raise error from None
    if name not in _told:
        _told.add(name)
        recorder.write("note", text="%s is computed in another number format, which the CPU has it for" % name)
    return out.to(back[out.dtype]) if isinstance(out, torch.Tensor) and out.dtype in back else out
