"""Which runs of Weights & Biases may be there where a file reports: those of another program alone are not."""

from __future__ import annotations

from codemods.analysis.distribution import is_own_test
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.output.tracker_starts import RunStart, runs_of
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

# A logger of Lightning or a callback of transformers starts its run on rank 0, beside what else the project has.
_LIBRARIES = (b"WandbLogger", b"WandbCallback", b"TrainerCallback", b"TrainingArguments", b"report_to")


def runs_beside(project: Project, module: SourceModule) -> list[RunStart]:
    """The starts of runs that may come about in the processes which come to `module`.

    A script that nothing imports starts its runs in processes of its own. Where that leaves none, and no library is seen to
    start one for rank 0, it is not known who does: all starts of the project count.
    """
    starts = runs_of(project)
    if not _is_alone(project, module.path):
        return starts
    program = whole_program(project, module.path)
    beside = [s for s in starts if s.module.path in program or not _is_alone(project, s.module.path)]
    return beside if beside or may_be_started_by_a_library(project, program) else starts


def may_be_started_by_a_library(project: Project, paths: frozenset[str] | None = None) -> bool:
    """True where a file, or one of these, names what starts a run on rank 0 alone."""
    found = (path for word in _LIBRARIES for path in project.files_containing(word))
    return any(paths is None or path in paths for path in found)


def _is_alone(project: Project, path: str) -> bool:
    """True for a script that no other file imports: its processes run nothing of another script that is so."""
    return project.keep(("a program alone", path), lambda: _find_alone(project, path))


def _find_alone(project: Project, path: str) -> bool:
    if not project.fact(_is_script, path):
        return False
    return not any(p != path and not is_own_test(project, p) for p in project.files_importing(stem_of(path)))


@file_fact
def _is_script(path: str, data: bytes) -> bool:
    del path
    return b"__main__" in data
