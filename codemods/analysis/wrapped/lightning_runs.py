"""Lightning: which hooks run behind the wrap, and whether a Trainer of the project is given several processes.

`strategy.setup` wraps the model in front of `on_fit_start` in Lightning 2 (read in 2.0.9, 2.2.5, 2.4.0 and 2.6.6).
"""

from __future__ import annotations

import ast

from codemods.analysis.names import last, qualified
from codemods.project import Project
from codemods.source import SourceModule

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
    if counts and all(isinstance(v, ast.Constant) and v.value in (0, 1, None) for v in counts):
        return False
    if any(isinstance(v, ast.Constant) and isinstance(v.value, int) and v.value > 1 for v in counts):
        return True
    return any("ddp" in module.text_of(given[n]).lower() for n in ("strategy", "accelerator") if n in given)
