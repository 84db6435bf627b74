"""Lightning: which hooks run behind the wrap, and whether a Trainer of the project is given several processes.

`strategy.setup` wraps the model in front of `on_fit_start` in Lightning 2 (read in 2.0.9, 2.2.5, 2.4.0 and 2.6.6).
"""

from __future__ import annotations

import ast

from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

IN_FRONT = ("__init__", "setup", "configure_model", "configure_sharded_model", "prepare_data")
BEHIND = frozenset(
    {
        "on_fit_start", "on_train_start", "on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start",
        "on_train_batch_end", "training_step", "on_validation_start", "on_validation_end", "on_validation_epoch_start",
        "on_validation_epoch_end", "training_epoch_end", "validation_epoch_end", "on_epoch_start", "on_epoch_end",
    }
)  # fmt: skip
_COUNTS = ("devices", "gpus", "num_nodes", "num_processes", "tpu_cores")


def runs_on_several(project: Project) -> tuple[SourceModule, ast.Call] | None:
    """A Trainer of the project that is given a DDP strategy, or a number of devices above one."""
    return project.memo("lightning on several", lambda: _find(project))


def kept_to_one(project: Project) -> bool:
    """True where the project has Trainers, and every one of them is given one device in so many words."""
    return project.memo("lightning on one", lambda: _kept_to_one(project))


def _kept_to_one(project: Project) -> bool:
    found = [
        (module, call)
        for path in sorted(project.files_calling("Trainer")) if (module := project.module(path)) is not None
        for call in module.calls_named("Trainer") if last(qualified(module, call.func)) == "Trainer"
    ]  # fmt: skip
    return bool(found) and all(_one_device(call) for _, call in found)


def _one_device(call: ast.Call) -> bool:
    counts = [k.value for k in call.keywords if k.arg in _COUNTS]
    return bool(counts) and all(isinstance(v, ast.Constant) and v.value in (0, 1, None) for v in counts)


def _find(project: Project) -> tuple[SourceModule, ast.Call] | None:
    for path in sorted(project.files_calling("Trainer")):
        module = project.module(path)
        for call in module.calls_named("Trainer") if module is not None else ():
            if module is not None and qualified(module, call.func).startswith(("lightning", "pytorch_lightning")):
                if last(qualified(module, call.func)) == "Trainer" and _several(module, call):
                    return module, call
    return None


def _several(module: SourceModule, call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords if k.arg}
    counts = [given[name] for name in _COUNTS if name in given]
    if _one_device(call):
        return False
    if any(isinstance(v, ast.Constant) and isinstance(v.value, int) and v.value > 1 for v in counts):
        return True
    return any("ddp" in module.text_of(given[n]).lower() for n in ("strategy", "accelerator") if n in given)
