"""The files that a script comes to: by its imports, and by the classes that its Hydra settings name as they stand."""

from __future__ import annotations

from codemods.analysis.job_files.hydra_programs import hydra_program
from codemods.analysis.job_files.hydra_runs import hydra_runs
from codemods.analysis.loading.same_program import whole_program
from codemods.store.project import Project

_TARGET = "_target_"


def program_files(project: Project, script: str) -> frozenset[str]:
    """What a command's own choices add to the settings is left out: it may be put in the place of what they name."""
    found = whole_program(project, script)
    program = hydra_program(project, script) if script else None
    runs = hydra_runs(project, program) if program else ()
    if not runs:
        return found
    named = [value for keys, value in runs[0].values.items() if keys and keys[-1] == _TARGET and value]
    resolved = (project.resolve(name, script) for name in named)
    return found.union(*(whole_program(project, r.path) for r in resolved if r is not None))
