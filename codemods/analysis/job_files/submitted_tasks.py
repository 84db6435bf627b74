"""Do Hydra's settings submit a script to Slurm with several tasks on a node? All of them start together, each as one rank."""

from __future__ import annotations

from posixpath import dirname

from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LAUNCHERS = (b"submitit_slurm", b"submitit_launcher.SlurmLauncher")
_TASKS = lazy(rb"(?m)^[ \t]*tasks_per_node:[ \t]*(?!1[ \t]*(?:#|\r?$))[^\s#]")


def is_submitted_as_several(project: Project, path: str) -> bool:
    """True for a script beside, or above, such settings."""
    home = dirname(path)
    for word in _LAUNCHERS:
        for settings in project.files_containing(word, kinds=(".yaml", ".yml")):
            below = not home or settings.startswith(f"{home}/")
            if below and _TASKS.search(project.read(settings) or b""):
                return True
    return False
