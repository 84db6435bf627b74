"""Notebooks that name a function or class of a module: does one of them have several processes run it?

The kernel is one process. Others come from a launcher, from Lightning's Trainer, or from a function of the project that trains.
"""

from __future__ import annotations

import re

from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LAUNCHES = lazy(
    rb"torchrun|distributed\.(?:launch|run)|accelerate launch|deepspeed|\w*launcher\(|\bspawn\(|start_processes|LightningCLI|"
    rb"\bFabric\(|Torch(?:Trainer|Distributor)|HorovodRunner|\bray\b|(?<![\w.])(?:train|fit|run|main)\w*\(|!\s*python"
)
_TRAINER = lazy(rb"\bTrainer\(|\.fit\(")
_DEVICES = lazy(rb"\b(?:devices|gpus)[ ]*=[ ]*(?P<one>[\"']?1\b|\[[ ]*\d+[ ]*\])?")
_NODES = lazy(rb"\bnum_nodes\b|\bstrategy\b")


def may_run_several(project: Project, path: str, name: str) -> bool:
    """True for a notebook that may have several processes run the function or class of a module that is called so."""
    return project.keep(("notebook that runs", path, name), lambda: _may(project, path, name))


def _may(project: Project, path: str, name: str) -> bool:
    program = project.read(path) or b""
    word = re.escape(name.encode())
    own = re.search(rb"(?m)^[ \t]*(?:class|def)[ ]+" + word + rb"\b", program)
    if own and not re.search(rb"\bimport\b(?:[^\n(]*|[ ]*\([^)]*)\b" + word + rb"\b", program):
        return False  # one of its own
    if not program or _LAUNCHES.search(program) or _LAUNCHES.search(project.read_text(path) or b""):
        return True
    if b"ightning" not in program or not _TRAINER.search(program):
        return False
    given = list(_DEVICES.finditer(program))
    return not given or _NODES.search(program) is not None or any(m["one"] is None for m in given)
