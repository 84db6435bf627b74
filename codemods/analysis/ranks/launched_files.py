"""Is a file part of a program that a command of the repository starts by a launcher? What that sets is there then."""

from __future__ import annotations

from codemods.analysis.job_files.documented_starts import other_starts, script_names, starts
from codemods.analysis.loading.same_program import whole_program
from codemods.store.project import Project


def is_launched(project: Project, path: str) -> bool:
    """True where a command launches the file, a program that imports it, or a script that is not named."""
    return bool(project.observed) or project.launched or project.keep(("launched", path), lambda: _is_launched(project, path))


def _is_launched(project: Project, path: str) -> bool:
    launched = [s for s in starts(project) if s.several]
    if any(not s.script for s in launched) or other_starts(project, path):
        return True
    named = {s.path or s.script for s in launched}
    programs = (p for p in project.python_files if p in named or named.intersection(script_names(p)))
    return any(p == path or path in whole_program(project, p) for p in programs)
