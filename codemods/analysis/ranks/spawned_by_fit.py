"""Does Lightning start the ranks of a program inside `fit` alone? What stands outside it is run by one process then.

`strategy="ddp_spawn"`, and what several devices meant below Lightning 2.0 where no strategy was named
(`AcceleratorConnector._choose_strategy` of 1.9; `strategy="ddp"` and 2.0 start the whole script anew for each rank).
"""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.names import dotted, family, qualified
from codemods.late_pattern import late
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule

_LAUNCHED = late(rb"torchrun|torch\.distributed\.(?:run|launch)|\bsrun\b|#SBATCH|LIGHTNING_LAUNCH|LSB_")
_COMMANDS = (".sh", ".md", ".rst", ".slurm", ".sbatch", ".job", ".yaml", ".yml", "Makefile")
_NAMING = ("strategy", "accelerator", "distributed_backend", "plugins")


def starts_ranks_in_fit(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where every Trainer that `function` (or the script) makes spawns its ranks, and no launcher starts the program."""
    if not module.holds(b"Trainer("):
        return False
    made = [c for c in module.calls_named("Trainer") if module.function_of(c) is function and _is_lightning(module, c)]
    if not made or not all(_spawns(project, module, call) for call in made):
        return False
    return not project.keep("launched from outside", lambda: _is_launched(project))


def _is_lightning(module: SourceModule, call: ast.Call) -> bool:
    return family(qualified(module, call.func)) == "lightning"


def _spawns(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if any(k.arg is None for k in call.keywords):
        return False
    given = {k.arg: k.value for k in call.keywords if k.arg in _NAMING}
    texts = [_text(module, v) for v in given.values()]
    if any(t is None for t in texts):
        return False
    if any("spawn" in (t or "") for t in texts):
        return True
    if set(given) - {"accelerator"} or texts not in ([], ["gpu"], ["auto"], ["cuda"]):
        return False
    pin = lightning_pin(project, near=module.path)
    return pin is not None and pin.surely_below((2, 0))


def _text(module: SourceModule, value: ast.expr) -> str | None:
    """The text that an argument surely is, a strategy's class by its name; None where it is not seen."""
    if isinstance(value, ast.Call):
        return dotted(value.func).lower()
    found = [value] if isinstance(value, ast.Constant) else assigned(module, value, dotted(value))
    texts = {v.value for v in found if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return texts.pop() if len(texts) == 1 and len(found) == 1 else None


def _is_launched(project: Project) -> bool:
    return any(_LAUNCHED.search(project.read(path) or b"") for path in project.files if path.endswith(_COMMANDS))
