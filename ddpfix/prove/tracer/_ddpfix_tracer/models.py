"""The models that DistributedDataParallel wraps: their collectives, their unused parameters, their weights at the end."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from _ddpfix_tracer import collectives, recorder, without_cuda

MODELS = 8  # of the models wrapped in one run, the last ones are looked at
BACKWARDS = 100  # as many first backward passes are looked at for parameters without a gradient

_models: list[Any] = []  # the models inside, never the wrapper: that one must be able to go before the process group does
_order: dict[int, int] = {}
_armed = False
_unused: dict[int, tuple[set[str], set[str], int]] = {}  # of a model: never seen with a gradient, once without one, passes
_written_at = -1


def patch(module: Any) -> None:
    """Watch torch.nn.parallel.distributed.DistributedDataParallel, and every backward pass."""
    hook(module, init=_watched_init, forward=_watched_forward, backward=_watched_backward)
    wrapper = module.DistributedDataParallel
    if hasattr(wrapper, "_sync_buffers"):
        wrapper._sync_buffers = collectives.watched(wrapper._sync_buffers, "ddp_buffers")


def patch_loading(module: Any) -> None:
    """Watch torch.nn.modules.module.Module.load_state_dict: what a rank loads to look at it is no result of the training.

    Where no step follows, the weights from before the first loading are those that are compared.
    """
    load = module.Module.load_state_dict

    @functools.wraps(load)
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(self is m or getattr(self, "module", None) is m for m in _models) and recorder.count(recorder.STEPS, 0):
            write_state("loaded")
        return load(self, *args, **kwargs)

    module.Module.load_state_dict = load_state_dict


def hook(module: Any, *, init: Any, forward: Any, backward: Any) -> None:
    """Put what `init`, `forward` and `backward` make of them in the place of the wrapper's own two and of torch's backward."""
    import torch

    wrapper = module.DistributedDataParallel
    wrapper.__init__ = init(wrapper.__init__)
    wrapper.forward = forward(wrapper.forward)
    torch.autograd.backward = backward(torch.autograd.backward)  # Tensor.backward looks it up there


def _watched_init(init: Any) -> Any:
    watched = collectives.watched(init, "ddp_init")

    @functools.wraps(init)
    def call(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = without_cuda.without_device_ids(args, kwargs)
        watched(self, module, *args, **kwargs)
        inner = getattr(self, "module", None)
        if inner is not None and recorder.recording() and not any(m is inner for m in _models):
            _order[id(inner)] = len(_order)
            _models.append(inner)
            del _models[:-MODELS]

    return call


def _watched_forward(forward: Any) -> Any:
    @functools.wraps(forward)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _armed
        import torch

        recorder.count(recorder.FORWARDS)
        try:
            out = forward(self, *args, **kwargs)
        finally:
            recorder.count(recorder.FORWARDS, -1)
        if torch.is_grad_enabled() and getattr(self, "require_backward_grad_sync", True):
            _armed = True
        return out

    return call


def _watched_backward(backward: Any) -> Any:
    synced = collectives.watched(backward, "ddp_gradients")

    @functools.wraps(backward)
    def call(*args: Any, **kwargs: Any) -> Any:
        global _armed
        if not _models or not recorder.recording():
            return backward(*args, **kwargs)
        run, _armed = (synced if _armed else backward), False
        out = run(*args, **kwargs)
        for model in _models:
            _look_for_unused(model)
        return out

    return call


def _look_for_unused(model: Any) -> None:
    try:
        never, once, passes = _unused.get(id(model), (set(), set(), 0))
        if passes >= BACKWARDS:
            return
        without = {name for name, p in model.named_parameters() if p.requires_grad and p.grad is None}
        now = (without if passes == 0 else never & without, once | without, passes + 1)
        _unused[id(model)] = now
        if passes == 0 or now[:2] != (never, once):  # at once: a rank that hangs is killed
            recorder.write("unused", model=_name(model), never=sorted(now[0]), sometimes=sorted(now[1] - now[0]), passes=now[2])
    except Exception as error:
        recorder.write("note", text="unused parameters are not seen: %s" % error)


def _name(model: Any) -> str:
    """The class and the place in the order of wrapping: the same on all ranks."""
    return "%s #%d" % (type(model).__name__, _order[id(model)])


def in_training() -> bool:
    """True where a wrapped model is in training mode."""
    return any(model.training for model in _models)


def write_state(when: str) -> None:
    """Digests of the weights and the unused parameters, unless nothing was trained since the last time."""
    global _written_at
    steps = recorder.count(recorder.STEPS, 0)
    if not _models or not recorder.recording() or steps == _written_at:
        return
    _written_at = steps
    for model in _models:
        try:
            name = _name(model)
            weights = {n: digest(p) for n, p in model.named_parameters()}
            buffers = {n: digest(b) for n, b in model.named_buffers()}
            recorder.write("weights", model=name, when=when, steps=steps, weights=weights, buffers=buffers)
        except Exception as error:
            recorder.write("note", text="weights are not compared: %s: %s" % (type(error).__name__, error))


def digest(tensor: Any) -> str:
    """A digest of a tensor's bytes, and its sum for people."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    data = plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    total = float(plain.double().sum()) if not plain.is_complex() else 0.0
    return "%s %.6g" % (hashlib.blake2b(data, digest_size=8).hexdigest(), total)

