"""How a program is started so that the other ranks run on when one of them has failed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.lasting_commands import LastingStart, lasting_commands
from codemods.analysis.ranks.waited_in_turn import waits_in_turn
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule
from codemods.store.project import Project

_TASKS = frozenset({"tasks_per_node", "slurm_tasks_per_node", "slurm_ntasks_per_node", "ntasks_per_node"})


def lasting_start(project: Project, module: SourceModule) -> LastingStart | None:
    """The first start in which the others outlive a rank that fails, of a script that imports the file."""
    return project.keep(("lasting start", module.path), lambda: _find(project, module))


def _find(project: Project, module: SourceModule) -> LastingStart | None:
    for start in _starts(project):
        script = project.module(start.script)
        if script is not None and (script is module or module.path in imported_files(project, script)):
            return start
    return None


def _starts(project: Project) -> tuple[LastingStart, ...]:
    def build() -> tuple[LastingStart, ...]:
        found = [*_by_processes(project), *_by_submitit(project), *lasting_commands(project)]
        return tuple({s.script: s for s in found}.values())

    return project.keep("lasting starts", build)


def _by_submitit(project: Project) -> Iterator[LastingStart]:
    """Programs that hand a function to submitit with several tasks on a node: it starts them by srun."""
    for path in project.files_containing(b"submitit"):
        module = project.module(path) if not is_test_file(path) else None
        if module is None or module.holds(b"kill-on-bad-exit") or module.holds(b"KILL_BAD_EXIT"):
            continue
        if not module.calls_named("submit", "map_array"):
            continue
        tasks = next((k for k in module.nodes(ast.keyword) if k.arg in _TASKS and not _is_one(k.value)), None)
        if tasks is not None:
            shown = Evidence("static", "submitit starts the tasks by srun, without --kill-on-bad-exit", path, tasks.value.lineno)
            cure = 'hand its srun `--kill-on-bad-exit=1` (`slurm_srun_args` of newer versions)'
            yield LastingStart(path, "srun, by which submitit starts the ranks,", cure, shown)


def _is_one(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (0, 1)


def _by_processes(project: Project) -> Iterator[LastingStart]:
    """Files that start their ranks as processes and join them in turn."""
    for path in project.files_containing(b".join()"):
        if b"Process(" not in (project.read(path) or b"") or is_test_file(path):
            continue
        module = project.module(path)
        found = next(iter(waits_in_turn(project, module)), None) if module is not None else None
        if module is not None and found is not None:
            shown = Evidence("static", "the parent waits for the ranks one after the other", path, found.call.lineno)
            yield LastingStart(path, "the parent process", "start the ranks by torch.multiprocessing.spawn", shown)
