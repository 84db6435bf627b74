"""How the user's code names and counts its GPUs: `torch.device(rank)`, torch.accelerator, CUDA_VISIBLE_DEVICES.

Libraries are told the truth, that there is none.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

from _ddpfix_tracer import call_sites, cuda_answers

_shown = ""  # what the user's code finds in CUDA_VISIBLE_DEVICES


def as_it_is(env: Any) -> Any:
    """A copy of `os.environ` that is given to another program, without the GPUs that are not there."""
    return {**env, "CUDA_VISIBLE_DEVICES": ""} if _shown and env.get("CUDA_VISIBLE_DEVICES") == _shown else env


def name_visible(processes: int) -> None:
    """Let `os.environ["CUDA_VISIBLE_DEVICES"]`, which is empty for this run, hold one GPU for each process.

    Only Python's own copy of it: CUDA itself, and what is started from here, still find it empty.
    """
    global _shown
    held = getattr(os.environ, "_data", None)
    key = b"CUDA_VISIBLE_DEVICES" if os.name == "posix" else "CUDA_VISIBLE_DEVICES"
    if isinstance(held, dict) and not held.get(key, b"-"):
        _shown = ",".join(map(str, range(processes)))
        held[key] = os.fsencode(_shown) if os.name == "posix" else _shown


def number_devices(torch: Any) -> None:
    """Let `torch.device(0)` in the user's code be a GPU: torch itself has no answer where no accelerator is built in."""
    own = torch.device

    class Kind(type(own)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, own)

        def __eq__(cls, other: Any) -> bool:
            return other is cls or other is own

        def __hash__(cls) -> int:
            return hash(own)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            first = args[0] if args else kwargs.get("type", kwargs.get("device"))
            if isinstance(first, int) and not isinstance(first, bool) and len(args) + len(kwargs) == 1:
                return own("cuda", first)
            return own(*args, **kwargs)

    shown = Kind("device", (), {"__module__": "torch", "__qualname__": "device", "__doc__": own.__doc__})

    class Torch(types.ModuleType):
        @property
        def device(self) -> Any:
            # by name: a pickle of the user's looks the class up from the same frame
            return shown if call_sites.asked(2, by="device") else own

        @device.setter
        def device(self, value: Any) -> None:
            self.__dict__["device"] = value

    torch.__class__ = Torch


def accelerators(torch: Any, there: Callable[[], bool], processes: int) -> None:
    """torch.accelerator of torch 2.6 and newer, which is CUDA for the user's code where `there`."""
    module = getattr(torch, "accelerator", None)
    if module is None:
        return
    memory = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")

    def current(*_: Any, **__: Any) -> Any:
        return torch.device("cuda") if there() else None

    def set_index(device: Any, *_: Any) -> None:
        cuda_answers.current = cuda_answers.number(device)

    answers: dict[str, Callable[..., Any]] = {
        "current_accelerator": current,
        "is_available": lambda *_, **__: there(),
        "device_count": lambda *_, **__: processes if there() else 0,
        **dict.fromkeys(("current_device_index", "current_device_idx"), lambda *_, **__: cuda_answers.current),
        **dict.fromkeys(("set_device_index", "set_device_idx"), set_index),
        **{name: lambda *_, **__: 0 for name in memory},
        "memory_stats": lambda *_, **__: torch.cuda.memory_stats(),
        "get_memory_info": lambda *_, **__: torch.cuda.mem_get_info(),
        "current_stream": lambda *_, **__: cuda_answers.Stream(),
        "device_index": cuda_answers.Device,
        **{name: lambda *_, **__: None for name in ("synchronize", "empty_cache", "empty_host_cache", "set_stream",
                                                    "reset_peak_memory_stats", "reset_accumulated_memory_stats")},
    }  # fmt: skip
    for name, answer in answers.items():
        if hasattr(module, name):
            setattr(module, name, _for_users(getattr(module, name), answer))


def _for_users(real: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return answer(*args, **kwargs) if call_sites.asked(2) else real(*args, **kwargs)

    return call
