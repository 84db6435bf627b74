"""A program that starts its ranks itself, in each of the ranks that are started here: told as such, and ended."""

from __future__ import annotations

import functools
from typing import Any

from _ddpfix_tracer import call_sites, recorder


def patch(module: Any) -> None:
    """Watch torch.multiprocessing.spawn.spawn, called by the user's own code before it is in a group."""
    spawn = module.spawn

    @functools.wraps(spawn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if recorder.recording():
            at, via = call_sites.user_frame()
            if at is not None and not via and not _in_group():
                recorder.write("spawns", at=at)
                raise SystemExit("ddpfix: the program starts its ranks itself")
        return spawn(*args, **kwargs)

    module.spawn = call


def _in_group() -> bool:
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()
