"""What the trainers logged, as each rank has it; read from what they keep, so that no reading starts a collective."""

from __future__ import annotations

import functools
from typing import Any

from _ddpfix_tracer import recorder

# rates and durations differ between ranks by nature
_TIMES = ("_runtime", "_per_second", "_per_sec", "time")


# Lightning logs in these by the step unless it is asked for the epoch: each rank then holds its own last batch
_BY_STEP = ("training_step", "on_train_batch_start", "on_train_batch_end", "on_before_backward", "optimizer_step")
_own: set[str] = set()  # names that the user keeps for each rank, and those of a single step


def patch_module(module: Any) -> None:
    """Note what is logged for a rank alone: with an explicit `sync_dist=False`, or of a step."""
    log, log_dict = module.LightningModule.log, module.LightningModule.log_dict

    @functools.wraps(log)
    def one(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        _note(self, (name,), kwargs)
        return log(self, name, *args, **kwargs)

    @functools.wraps(log_dict)
    def several(self: Any, dictionary: Any, *args: Any, **kwargs: Any) -> Any:
        _note(self, tuple(dictionary), kwargs)
        plain = module.LightningModule.log
        module.LightningModule.log = log  # it hands `sync_dist` on, whether it was given or not
        try:
            return log_dict(self, dictionary, *args, **kwargs)
        finally:
            module.LightningModule.log = plain

    module.LightningModule.log, module.LightningModule.log_dict = one, several


def _note(module: Any, names: Any, given: dict[str, Any]) -> None:
    by_step = getattr(module, "_current_fx_name", None) in _BY_STEP
    epoch = given.get("on_epoch")
    of_step = by_step if epoch is None else not epoch
    for name in names:
        _own.add("%s_step" % name)
        if of_step or given.get("sync_dist") is False:
            _own.update((name, "%s_epoch" % name))


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
    # Lightning puts the number of the loader behind the name
    named = {k: v for k, v in found.items() if k.partition("/dataloader_idx_")[0] not in _own and not k.endswith(_TIMES)}
    recorder.write("metrics", source="Lightning", stage=stage, values=_numbers({k: _number(v) for k, v in named.items()}))


def write_transformers(trainer: Any, stage: str) -> None:
    values: dict[str, Any] = {}
    for row in trainer.state.log_history:
        for key, value in row.items():
            # train_loss: each rank's own by the Trainer's design
            if key not in ("step", "epoch", "total_flos", "train_loss") and not key.endswith(_TIMES):
                values["%s@%s" % (key, row.get("step"))] = _number(value)
    recorder.write("metrics", source="transformers", stage=stage, values=_numbers(values))


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {k: v for k, v in values.items() if v is not None}
