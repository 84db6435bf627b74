"""CUDA answered by the CPU, so that a program that names a GPU can be run without one.

What names a device (`.cuda()`, `.to(rank)`, `device="cuda:0"`) gets the CPU, by torch's own way to look at every call
(`torch.overrides.TorchFunctionMode`, as `torch.set_default_device` does). What only a GPU can be asked (`set_device`,
`synchronize`, streams, events) is answered as a machine with one GPU for each rank would. Libraries still see that there is
none; the user's own code is told that there is one, unless a framework drives the program: those choose their device by
themselves, and `fp16=torch.cuda.is_available()` has to be False there.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from _ddpfix_tracer import call_sites, counted_devices, cuda_answers, drivers, number_formats, recorder

_NAME = "the CPU, in place of a GPU"
_processes = 0  # of this machine: as many GPUs; 0: CUDA is left alone
_torch: Any = None
_mode: Any = None
_told = False


def answer(processes: int) -> None:
    """Answer from now on, or from the import of torch on."""
    global _processes
    _processes = processes
    counted_devices.name_visible(processes)
    if _torch is not None:
        try:
            _install(_torch)
        except Exception as error:  # in a worker that the program has started, it would look like an error of theirs
            recorder.write("note", text="CUDA is not answered: %s: %s" % (type(error).__name__, error))


def patch(torch: Any) -> None:
    """Look at torch right after its import."""
    global _torch
    _torch = torch
    if _processes:
        _install(torch)


def _install(torch: Any) -> None:
    global _mode
    if _mode is not None:
        return
    answers = {**cuda_answers.facts(torch, _processes), **_quiet(torch), **_facts(torch), **cuda_answers.streams()}
    for module in (torch.cuda, torch.cuda.random, torch.cuda.memory):
        for name, value in answers.items():
            if module is torch.cuda or hasattr(module, name):
                setattr(module, name, value)
    cuda_answers.mark_nothing(torch)
    for name in [n for n in dir(torch.cuda) if n.endswith("Tensor")]:
        setattr(torch.cuda, name, getattr(torch, name, None))
    torch.load = _loading(torch.load)
    torch.serialization.load = torch.load
    torch.nn.Module.to = _moving(torch.nn.Module.to)
    torch.set_default_device = _first_on_cpu(torch.set_default_device)
    torch.set_default_tensor_type = _first_on_cpu(torch.set_default_tensor_type)
    torch.nn.SyncBatchNorm.convert_sync_batchnorm = staticmethod(_kept_batch_norm)
    torch.Tensor.record_stream = _nothing()  # its own looks at the stream before the mode is asked
    torch.Generator = _generator(torch)
    for storage in ("UntypedStorage", "TypedStorage"):
        if hasattr(torch, storage):
            getattr(torch, storage).cuda = _itself
    counted_devices.number_devices(torch)
    counted_devices.accelerators(torch, drivers.none, _processes)
    _mode = _on_cpu(torch)
    _mode.__enter__()
    _in_threads(_mode)


def tell() -> None:
    """Note once that a GPU was asked for."""
    global _told
    if not _told:
        _told = True
        recorder.write("note", text="CUDA was asked for; the CPU answers for it")
        recorder.write("answered")


# Devices


def cpu_for(value: Any) -> Any:
    """"cpu" where `value` names a GPU; a number is one, True and False are none."""
    named = value.type if type(value).__name__ == "device" else value.partition(":")[0] if isinstance(value, str) else ""
    if named == "cuda" or (isinstance(value, int) and not isinstance(value, bool)):
        tell()
        return "cpu"
    return value


def _on_cpu(torch: Any) -> Any:
    """The mode that gives each function of torch the CPU for a GPU."""

    class OnCpu(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = getattr(func, "__name__", "")
            if name in ("cuda", "pin_memory") and args:
                tell()
                return args[0]
            if name == "to":
                args = (args[0], *(cpu_for(a) for a in args[1:]))
            elif name == "type" and len(args) == 2 and isinstance(args[1], str):
                args = (args[0], args[1].replace("torch.cuda.", "torch."))
            if kwargs.get("device") is not None:
                kwargs = {**kwargs, "device": cpu_for(kwargs["device"])}
            if kwargs.get("pin_memory") is True:
                kwargs = {**kwargs, "pin_memory": False}
            try:
                return func(*args, **kwargs)
            except (NotImplementedError, RuntimeError) as error:
                return number_formats.wider(torch, error, func, args, kwargs)

    return OnCpu()


def _in_threads(mode: Any) -> None:
    """Enter the mode in each thread that is started from now on: torch keeps its modes for each thread."""
    run = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(run)
    def in_mode(self: Any) -> None:
        with mode:
            run(self)

    threading.Thread._bootstrap_inner = in_mode  # type: ignore[attr-defined]


def _generator(torch: Any) -> type:
    """torch.Generator for a device that may be a GPU; what torch makes of it is torch's own."""
    own = torch.Generator

    class Kind(type(own)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, own)

        def __call__(cls, device: Any = "cpu") -> Any:
            return own(device=cpu_for(device))

    return Kind("Generator", (own,), {"__module__": "torch", "__qualname__": "Generator"})


def _itself(storage: Any, *_: Any, **__: Any) -> Any:
    tell()
    return storage


def _moving(to: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(to)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs = {k: cpu_for(v) if k == "device" else v for k, v in kwargs.items()}
        return to(self, *(cpu_for(a) for a in args), **kwargs)

    return call


def _loading(load: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load)
    def call(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return load(f, "cpu", *args, **kwargs)

    return call


def _first_on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(value: Any) -> Any:
        if isinstance(value, str):
            value = value.replace("torch.cuda.", "torch.")
        return function(cpu_for(value))

    return call


def without_device_ids(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of DistributedDataParallel behind the module, for one that is on the CPU."""
    if _mode is None:
        return args, kwargs
    return (*(None for _ in args[:2]), *args[2:]), {k: v for k, v in kwargs.items() if k not in ("device_ids", "output_device")}


def _kept_batch_norm(module: Any, process_group: Any = None) -> Any:
    recorder.write("note", text="SyncBatchNorm needs a GPU: each rank normalizes by its own batch here")
    return module


# What a GPU is asked


def _quiet(torch: Any) -> dict[str, Callable[..., None]]:
    """Calls that change a GPU's state and have nothing to say."""
    names = (
        *("synchronize", "empty_cache", "ipc_collect", "init", "set_per_process_memory_fraction", "set_stream"),
        *("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "reset_accumulated_memory_stats"),
        *("manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"),
        *("reset_peak_host_memory_stats", "reset_accumulated_host_memory_stats", "set_sync_debug_mode", "_sleep"),
        *("_record_memory_history", "_dump_snapshot"),
    )

    return {name: _nothing() for name in names if hasattr(torch.cuda, name)}


def _nothing() -> Callable[..., None]:
    """A function of its own for each name: torch._dynamo looks functions up by what they are."""

    def nothing(*_: Any, **__: Any) -> None:
        if asked_by_user():  # torch.manual_seed asks each time
            tell()

    return nothing


def _facts(torch: Any) -> dict[str, Callable[..., Any]]:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = 0
    available, initialized = torch.cuda.is_available, torch.cuda.is_initialized

    def device_count() -> int:
        return _processes if asked_by_user() else 0

    def is_available() -> bool:
        return (asked_by_user() and drivers.none()) or bool(available())

    def set_device(device: Any) -> None:
        tell()
        cuda_answers.current = cuda_answers.number(device)

    def for_users(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        """`answer` for the user's code: torch's compiler asks for what only a real GPU has, and knows what to do without."""
        real = getattr(torch.cuda, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return answer() if asked_by_user() else real(*args, **kwargs)

        return call

    told = {
        "get_device_name": lambda: _NAME,
        "get_device_capability": lambda: (8, 0),
        "get_device_properties": lambda: cuda_answers.Properties(_NAME, memory),
        "mem_get_info": lambda: (memory, memory),
    }
    return {
        "device_count": device_count,
        "is_available": is_available,
        "set_device": set_device,
        "current_device": lambda: cuda_answers.current,
        "is_initialized": lambda: asked_by_user() or bool(initialized()),
        **{name: for_users(name, answer) for name, answer in told.items()},
        "memory_summary": lambda *_, **__: "",
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
    }


def asked_by_user() -> bool:
    """True where the function that asks is called by the user's code itself."""
    return call_sites.asked(3)
