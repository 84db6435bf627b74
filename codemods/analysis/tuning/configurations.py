"""What each training run of a project is set to: batch, accumulation, processes, logging and workers, by job."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.tuning.call_proposals import processes_for
from codemods.analysis.tuning.job_runs import Run, runs_in, runs_of
from codemods.analysis.tuning.profiles import ACCUMULATION, BATCH, LOGGING, WORKERS, Load, Tuning
from codemods.analysis.tuning.training_calls import training_calls
from codemods.files.text_file import TextFile
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Configured:
    """One run as it is set. job: the file that starts it, or that calls where no job does; numbers as texts, "?" for unknown."""

    job: str
    load: str
    logging: str
    workers: str


def configured(project: Project, paths: tuple[str, ...], tuning: Tuning) -> Iterator[Configured]:
    """The runs of the files in order: those of each job file, and the calls that no job starts."""
    for path in paths:
        module = project.module(path)
        if isinstance(module, TextFile):
            for run in runs_in(project, module):
                yield of_run(run)
        elif module is not None and not is_test_file(path) and (b"Arguments(" in module.data or b"Config(" in module.data):
            if runs_of(project, path):
                continue
            for call in training_calls(project, module):
                values = {n: call.setting(n).value for n in (BATCH, ACCUMULATION, LOGGING, WORKERS)}
                yield _configured(call.place.rpartition(":")[0], values, processes_for((), tuning).world)


def of_run(run: Run) -> Configured:
    """One run of a job file."""
    values = {n: run.value(n).value for n in (BATCH, ACCUMULATION, LOGGING, WORKERS)}
    return _configured(run.command.file.path, values, run.processes().world)


def _configured(job: str, values: dict[str, int | None], world: int) -> Configured:
    batch, accumulation = values[BATCH], values[ACCUMULATION]
    load = str(Load(batch, accumulation, world)) if batch and accumulation else "?"
    return Configured(job, load, *("?" if values[n] is None else str(values[n]) for n in (LOGGING, WORKERS)))
