"""Which modules are watched, and what is done at the end of the run."""

from __future__ import annotations

import atexit
import functools
import time
from collections.abc import Callable
from typing import Any

from _ddpfix_tracer import collectives, failing, groups, meeting, metrics, models, recorder, samplers, without_cuda

_steps = 0
_swap = False
_processes = 1


before_a_group: list[Callable[[Any, Any], None]] = []  # called with the size of the group that is asked for, and the rank in it


def begin(*, steps: int, swap: bool, processes: int) -> None:
    """steps: stop after as many optimizer steps, 0 never. swap: gloo where NCCL is asked for, the CPU for a GPU."""
    global _steps
    _steps = steps
    run_on(swap=swap, processes=processes)
    groups.settle_at_exit()
    atexit.register(end)


def run_on(*, swap: bool, processes: int) -> None:
    """What `with_gloo` and `without_gpu` go by."""
    global _swap, _processes
    _swap, _processes = swap, processes
    if swap:
        without_cuda.answer(processes)


def processes() -> int:
    """As many ranks as there are."""
    return _processes


def steps() -> int:
    """After as many the ranks stop, 0 never."""
    return _steps


def swaps() -> bool:
    """True where gloo and the CPU take the place of what is asked for."""
    return _swap


def end() -> None:
    """What is written when a rank has come to its end."""
    failing.tell()
    models.write_state("end")
    recorder.write("end", steps=recorder.count(recorder.STEPS, 0))


def _distributed(module: Any) -> None:
    init = module.init_process_group
    collectives.patch(module)
    opened = collectives.watched(init, "init_process_group", _met)

    @functools.wraps(init)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        for look in before_a_group:
            look(*meeting.size_and_rank(args, kwargs))
        out = opened(*args, **kwargs)
        if recorder.recording():
            groups.keep(module.GroupMember.WORLD)
        return out

    module.init_process_group = init_process_group
    new = module.new_group

    @functools.wraps(new)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        if _swap and "nccl" in str(kwargs.get("backend", "")).lower():
            kwargs = {**kwargs, "backend": "gloo"}
        out = new(*args, **kwargs)
        if recorder.recording():
            groups.keep(out)
        return out

    module.new_group = new_group
    destroy = module.destroy_process_group

    @functools.wraps(destroy)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        models.write_state("end")
        return destroy(*args, **kwargs)

    module.destroy_process_group = destroy_process_group
    has_nccl = module.is_nccl_available

    @functools.wraps(has_nccl)
    def is_nccl_available() -> bool:
        return (_swap and without_cuda.asked_by_user()) or bool(has_nccl())

    module.is_nccl_available = is_nccl_available
    work = getattr(module, "Work", None)
    if work is not None:
        work.wait = collectives.waiting(work.wait)


def _met(args: Any, kwargs: Any) -> Any:
    """The arguments of init_process_group for the ranks of this run."""
    return meeting.here(*with_gloo(args, kwargs), _processes) if _swap else (args, kwargs)


def with_gloo(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of init_process_group with gloo for NCCL, and without a device that is not there."""
    if not _swap:
        return args, kwargs
    asked = args[0] if args else kwargs.get("backend")
    if asked is not None and "nccl" in str(asked).lower():
        recorder.write("note", text="NCCL was asked for; run with gloo on the CPU")
        if args:
            args = ("gloo", *args[1:])
        else:
            kwargs = {**kwargs, "backend": "gloo"}
    if "cuda" in str(kwargs.get("device_id", "")):
        kwargs = {k: v for k, v in kwargs.items() if k != "device_id"}
    return args, kwargs


def _optimizer(module: Any) -> None:
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        recorder.write("note", text="this torch is too old to count optimizer steps")
        return
    register(_stepped)


def _stepped(*_: Any) -> None:
    if not recorder.recording():
        return
    done = recorder.count(recorder.STEPS)
    recorder.write("step", at=time.monotonic())
    if _steps and done >= _steps:
        models.write_state("stopped")
        metrics.write_running()
        recorder.write("stopped", steps=done)
        raise SystemExit(0)


def _lightning(module: Any) -> None:
    metrics.patch_lightning(module)
    init = module.Trainer.__init__

    @functools.wraps(init)
    def on_cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
        return init(self, *args, **without_gpu(kwargs))

    module.Trainer.__init__ = on_cpu


def without_gpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of Lightning's Trainer for as many CPU processes as there are, whatever was asked for."""
    if not _swap:
        return kwargs
    asked = kwargs.get("accelerator", "auto")
    if asked in ("gpu", "cuda", "mps", "tpu", "hpu"):
        recorder.write("note", text="a GPU was asked for; run on the CPU")
    elif asked not in ("auto", "cpu", None):
        return kwargs
    more = {"accelerator": "cpu", "devices": _processes, "num_nodes": 1}
    if kwargs.get("devices", "auto") not in ("auto", -1, "-1", _processes) or kwargs.get("num_nodes", 1) != 1:
        recorder.write("note", text="devices=%r was asked for; run with %d" % (kwargs.get("devices"), _processes))
    return {**kwargs, **more}


PATCHES: dict[str, Callable[[Any], None]] = {
    "torch": without_cuda.patch,
    "torch.distributed.distributed_c10d": _distributed,
    "torch.nn.parallel.distributed": models.patch,
    "torch.nn.modules.module": models.patch_loading,
    "torch.optim.optimizer": _optimizer,
    "torch.utils.data.distributed": samplers.patch,
    "lightning.pytorch.core.module": metrics.patch_module,
    "pytorch_lightning.core.module": metrics.patch_module,
    "pytorch_lightning.core.lightning": metrics.patch_module,  # before 1.8
    "lightning.pytorch.trainer.trainer": _lightning,
    "pytorch_lightning.trainer.trainer": _lightning,
    "transformers.trainer": metrics.patch_transformers,
}
