"""What only a GPU can be asked, answered as one that has nothing to wait for and nothing in its memory."""

from __future__ import annotations

import collections
import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

current = 0  # the GPU that set_device has named last, as with CUDA the first before


def number(device: Any) -> int:
    """The number of the GPU that is named; of one without a number, and of none, the present one."""
    if isinstance(device, int):
        return device if device >= 0 else current
    index = device.rpartition(":")[2] if isinstance(device, str) else getattr(device, "index", None)
    return int(index) if index is not None and str(index).isdigit() else current


def facts(torch: Any, processes: int) -> dict[str, Any]:
    """Functions and values of torch.cuda: what a GPU without work says of itself."""
    idle = {n: (lambda *_, **__: 0) for n in ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate")}
    stats = torch.cuda.memory_stats
    return {
        **{name: value for name, value in idle.items() if hasattr(torch.cuda, name)},
        "memory_stats": lambda *_, **__: collections.defaultdict(int, stats()),
        "memory_snapshot": lambda *_, **__: [],
        "initial_seed": torch.initial_seed,
        "default_generators": (torch.default_generator,) * processes,
        "can_device_access_peer": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: False,
        "get_sync_debug_mode": lambda: 0,
    }


def mark_nothing(torch: Any) -> None:
    """The marks for NVIDIA's profilers, which nobody reads here."""
    for module, names in ((torch.cuda.nvtx, ("range_push", "range_pop", "range_start", "range_end", "mark")),
                          (torch.cuda.profiler, ("start", "stop", "init"))):  # fmt: skip
        for name in names:
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: 0)


# Streams and events: all work is done when a call of the CPU returns


class _Answer:
    def __getattr__(self, name: str) -> Any:
        """What is not answered is told as CUDA's, so that nobody takes it for a fault of the program."""
        raise AttributeError("the CPU has no answer for %s.%s of CUDA" % (type(self).__name__, name))


class Properties(_Answer):
    """Of a GPU as it is told to the user's code."""

    def __init__(self, name: str, memory: int) -> None:
        self.name, self.total_memory = name, memory
        self.major, self.minor, self.multi_processor_count = 8, 0, os.cpu_count() or 1


class Device(_Answer):
    """`torch.cuda.device(i)` and the like as a context."""

    def __init__(self, device: Any = None, *_: Any, **__: Any) -> None:
        self.idx, self.prev_idx = number(device), -1

    def __enter__(self) -> Any:
        global current
        self.prev_idx, current = current, self.idx
        return self

    def __exit__(self, *_: Any) -> None:
        global current
        current = self.prev_idx


class Stream(Device):
    def synchronize(self) -> None:
        return None

    def wait_stream(self, *_: Any) -> None:
        return None

    wait_event = wait_stream

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def query(self) -> bool:
        return True


class Event(_Answer):
    def __init__(self, *_: Any, **__: Any) -> None:
        self.at = 0.0

    def record(self, *_: Any) -> None:
        self.at = time.perf_counter()

    def wait(self, *_: Any) -> None:
        return None

    synchronize = wait

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds."""
        return float(other.at - self.at) * 1000


@contextlib.contextmanager
def _stream(stream: Any) -> Iterator[None]:
    yield


def streams() -> dict[str, Any]:
    return {
        "device": Device,
        "device_of": type("device_of", (Device,), {}),
        "Stream": Stream,
        "Event": Event,
        "stream": _stream,
        "StreamContext": type("StreamContext", (Device,), {}),
        "current_stream": lambda *_, **__: Stream(),
        "default_stream": lambda *_, **__: Stream(),
    }
