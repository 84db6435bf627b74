"""The rounds of each DistributedSampler that shuffles: the order it gave, and whether a model was in training then."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from _ddpfix_tracer import call_sites, models, recorder

MOST = 64  # rounds that are written

_seen: list[Any] = []  # a sampler's place is its number: the same on all ranks
_rounds = 0


def patch(module: Any) -> None:
    """Watch torch.utils.data.distributed.DistributedSampler; an heir with an `__iter__` of its own has an order of its own."""
    sampler = module.DistributedSampler
    order = sampler.__iter__

    @functools.wraps(order)
    def __iter__(self: Any) -> Any:
        if type(self).__iter__ is not __iter__ or not recorder.recording() or not getattr(self, "shuffle", False):
            return order(self)
        indices = list(order(self))
        _write(self, indices)
        return iter(indices)

    sampler.__iter__ = __iter__


def _write(sampler: Any, indices: list[int]) -> None:
    global _rounds
    _rounds += 1
    if _rounds > MOST:
        return
    try:
        import torch

        if not any(s is sampler for s in _seen):
            _seen.append(sampler)
        number = next(i for i, s in enumerate(_seen) if s is sampler)
        at, _ = call_sites.user_frame()
        order = hashlib.blake2b(repr(indices).encode(), digest_size=8).hexdigest()
        training = torch.is_grad_enabled() and models.in_training()
        steps = recorder.count(recorder.STEPS, 0)
        recorder.write("round", sampler=number, order=order, samples=len(indices), training=training, steps=steps, at=at)
    except Exception as error:
        recorder.write("note", text="the order of the samples is not seen: %s: %s" % (type(error).__name__, error))
