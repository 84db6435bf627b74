"""A program made for several processes runs as one: the group, the number of devices, and a wrapper without a group."""

from __future__ import annotations

import functools
import inspect
import os
import socket
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from _ddpfix_tracer import groups, recorder, watched, without_cuda

_MARK = "_ddpfix_stand_in"


def _settle() -> bool:
    """Ask for gloo and the CPU where there is no GPU; True where there is one."""
    import torch

    gpu = bool(torch.cuda.is_available())
    watched.run_on(swap=not gpu, processes=1)
    return gpu


def _imported(torch: Any) -> None:
    """Before the program can ask for a GPU that is not there."""
    without_cuda.patch(torch)
    _settle()


# The group


def _distributed(module: Any) -> None:
    init = module.init_process_group

    @functools.wraps(init)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        if not recorder.recording():
            return init(*args, **kwargs)
        _settle()
        args, kwargs = watched.with_gloo(args, kwargs)
        kwargs = _alone(args, kwargs)
        out = init(*args, **kwargs)
        groups.keep(module.GroupMember.WORLD)
        return out

    module.init_process_group = init_process_group


def _alone(args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a group of one."""
    if any(kwargs.get(name, -1) not in (-1, alone) for name, alone in (("world_size", 1), ("rank", 0))):
        recorder.write("note", text="a group of several processes was asked for; run as one of one")
        kwargs = {**kwargs, "world_size": 1, "rank": 0}
    method = args[1] if len(args) > 1 else kwargs.get("init_method")
    given = {"RANK": kwargs.get("rank", -1) == 0, "WORLD_SIZE": kwargs.get("world_size", -1) == 1}
    if (method is None or str(method).startswith("env://")) and kwargs.get("store") is None:
        for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "")):
            if not os.environ.get(name) and not given.get(name):
                recorder.write("note", text="what a launcher sets (RANK, MASTER_PORT, ...) was not set: run as one of one")
                os.environ[name] = value or _free_port()
    return kwargs


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def _spawning(module: Any) -> None:
    """torch.multiprocessing.spawn(f, args, nprocs): f(0, *args), here."""
    spawn = module.spawn

    @functools.wraps(spawn)
    def call(fn: Any, args: Any = (), nprocs: int = 1, *more: Any, **kwargs: Any) -> Any:
        if not recorder.recording():
            return spawn(fn, args, nprocs, *more, **kwargs)
        recorder.write("note", text="%d processes were to be spawned; the first one's work is done in this one" % nprocs)
        fn(0, *args)
        return None

    module.spawn = call


# The wrapper


class _Silent:
    """In the place of a reducer or a logger: takes any call, and tells nobody."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def make_stand_in(wrapper: Any, module: Any, given: dict[str, Any]) -> bool:
    """Make of a DistributedDataParallel under construction one that passes calls through; False where the real one is needed.

    With one process there is nothing to average, and the real one would raise: without a process group, for a GPU that is not
    there, and in the second step where a parameter is left out and the flag is off, which is what the probe is to see. Its
    clone of the outputs would also join those that the loss uses with those that it does not.
    """
    import torch

    parameters = list(module.parameters())
    if given.get("mixed_precision") is not None or not any(p.requires_grad for p in parameters):
        return False  # the one casts, and for the other the real one has an error of its own
    ids = given.get("device_ids")
    torch.nn.Module.__init__(wrapper)
    wrapper.module = module
    wrapper.device_ids = list(ids) if ids else None
    wrapper.output_device = None
    wrapper.dim = 0
    wrapper.device = parameters[0].device
    wrapper.device_type = wrapper.device.type
    wrapper.process_group = None
    wrapper.require_backward_grad_sync = True
    wrapper.require_forward_param_sync = True
    wrapper.broadcast_buffers = False
    wrapper.gradient_as_bucket_view = False
    wrapper.find_unused_parameters = bool(given.get("find_unused_parameters", False))
    wrapper.static_graph = bool(given.get("static_graph", False))
    wrapper.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
    wrapper.reducer = _Silent()
    wrapper.logger = _Silent()
    setattr(wrapper, _MARK, True)
    text = "one process, nothing to average: DistributedDataParallel is a stand-in that passes calls through"
    recorder.write("note", text=text)
    return True


def named(init: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor behind `self` and `module`, each by its name: their order is not that of every torch."""
    names = list(inspect.signature(init).parameters)[2:]
    return {**dict(zip(names, args)), **kwargs}


def is_stand_in(wrapper: Any) -> bool:
    return wrapper.__dict__.get(_MARK) is True


def forward(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
    """What the stand-in does: inputs go to the model's device, as in the real one with one device, then the model runs."""
    if wrapper.device_ids and wrapper.device.type != "cpu":
        from torch.nn.parallel.scatter_gather import scatter_kwargs

        args_each, kwargs_each = scatter_kwargs(args, kwargs, [wrapper.device], 0)
        args, kwargs = (args_each or [()])[0], (kwargs_each or [{}])[0]
    return wrapper.module(*args, **kwargs)


def patch_wrapper(cls: Any) -> None:
    """The methods of DistributedDataParallel that speak to others do nothing where it is a stand-in."""
    for name in ("_sync_buffers", "_register_fused_optim", "register_comm_hook", "_set_static_graph", "_get_ddp_logging_data"):
        if hasattr(cls, name):
            setattr(cls, name, _unless_stand_in(getattr(cls, name), lambda self, *_, **__: {}))
    cls.join = _unless_stand_in(cls.join, lambda self, *_, **__: nullcontext()) if hasattr(cls, "join") else None
    cls.__getstate__ = _unless_stand_in(cls.__getstate__, lambda self: dict(self.__dict__))
    restore = cls.__setstate__

    @functools.wraps(restore)
    def setstate(self: Any, state: dict[str, Any]) -> None:
        if state.get(_MARK):
            self.__dict__.update(state)
        else:
            restore(self, state)

    cls.__setstate__ = setstate


def _unless_stand_in(method: Any, other: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (other if is_stand_in(self) else method)(self, *args, **kwargs)

    return call


# Lightning


def patch_lightning(trainer: Any) -> None:
    """Lightning's Trainer gets one device, and a strategy that starts no process."""
    init = trainer.__init__

    @functools.wraps(init)
    def on_one(self: Any, *args: Any, **kwargs: Any) -> Any:
        return init(self, *args, **(_on_one(kwargs) if recorder.recording() else kwargs))

    trainer.__init__ = on_one


def _on_one(kwargs: dict[str, Any]) -> dict[str, Any]:
    if not _settle():
        kwargs = watched.without_gpu(kwargs)
        if kwargs.get("sync_batchnorm"):
            kwargs = {**kwargs, "sync_batchnorm": False}
    elif kwargs.get("devices", "auto") not in (1, "1") or kwargs.get("num_nodes", 1) != 1:
        recorder.write("note", text="devices=%r was asked for; run with 1" % (kwargs.get("devices", "auto"),))
        kwargs = {**kwargs, "devices": 1, "num_nodes": 1}
    strategy = kwargs.get("strategy")
    if isinstance(strategy, str) and strategy.startswith(("ddp_spawn", "ddp_fork", "ddp_notebook")):
        recorder.write("note", text="strategy=%r starts processes; run as strategy='ddp'" % strategy)
        kwargs = {**kwargs, "strategy": "ddp" + strategy[strategy.index("_", 4) :] if strategy.count("_") > 1 else "ddp"}
    return kwargs


PATCHES: dict[str, Callable[[Any], None]] = {
    "torch": _imported,
    "torch.distributed.distributed_c10d": _distributed,
    "torch.multiprocessing.spawn": _spawning,
}
