"""What the trainers logged, as each rank has it; read from what they keep, so that no reading starts a collective."""

from __future__ import annotations

import functools
from typing import Any

from _ddpfix_tracer import recorder

# rates and durations differ between ranks by nature
_TIMES = ("_runtime", "_per_second", "_per_sec", "time")


def patch_lightning(module: Any) -> None:
    """Watch the entry points of Lightning's Trainer."""
    for name in ("fit", "validate", "test"):
        _after(module.Trainer, name, lambda trainer, stage=name: write_lightning(trainer, stage))


def patch_transformers(module: Any) -> None:
    """Watch the entry points of the Trainer of transformers."""
    for name in ("train", "evaluate"):
        _after(module.Trainer, name, lambda trainer, stage=name: write_transformers(trainer, stage))


_trainers: list[Any] = []


def _after(cls: Any, name: str, look: Any) -> None:
    method = getattr(cls, name)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        outer = not _trainers
        _trainers.append((self, look))
        try:
            return method(self, *args, **kwargs)
        finally:
            del _trainers[-1]
            if outer:
                _quietly(look, self)

    setattr(cls, name, call)


def write_running() -> None:
    """What the trainer that is at work has logged so far."""
    if _trainers:
        trainer, look = _trainers[0]
        _quietly(look, trainer)


def _quietly(look: Any, trainer: Any) -> None:
    try:
        look(trainer)
    except Exception as error:
        recorder.write("note", text="logged metrics are not seen: %s: %s" % (type(error).__name__, error))


def write_lightning(trainer: Any, stage: str) -> None:
    connector = getattr(trainer, "_logger_connector", None) or trainer.logger_connector
    found = dict(connector._callback_metrics)  # the public property may compute, and computing may wait for others
    values = {k: _number(v) for k, v in found.items()}
    recorder.write("metrics", source="Lightning", stage=stage, values=_comparable(values))


def write_transformers(trainer: Any, stage: str) -> None:
    values: dict[str, Any] = {}
    for row in trainer.state.log_history:
        for key, value in row.items():
            if key not in ("step", "epoch", "total_flos"):
                values["%s@%s" % (key, row.get("step"))] = _number(value)
    recorder.write("metrics", source="transformers", stage=stage, values=_comparable(values))


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _comparable(values: dict[str, Any]) -> dict[str, float]:
    kept = {k: v for k, v in values.items() if v is not None}
    return {k: v for k, v in kept.items() if not k.partition("@")[0].endswith(_TIMES)}
