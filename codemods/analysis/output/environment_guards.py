"""The test by `RANK`, the variable that every launcher of processes sets."""

from __future__ import annotations

import ast

from codemods.analysis.loading.spawned import in_file_of_workers
from codemods.analysis.names import dotted, last
from codemods.analysis.output.spelled_test import Spelling
from codemods.analysis.ranks.launched_files import is_launched
from codemods.files.source import SourceModule, once_a_module
from codemods.files.text_file import PYTHON_KINDS, SHELL_KINDS
from codemods.rewriting.imports import plan_plain, runs_at_import
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TRAINS = lazy(rb"\.backward\(|Trainer\(|\.fit\(|DistributedDataParallel|\.train\(\)")
BY_LAUNCHER = "assumes that a launcher sets RANK for each process, as torchrun does"  # a test by `RANK`, written out
_TEXTS = (*SHELL_KINDS, *PYTHON_KINDS, ".md", ".rst", ".txt", ".yaml", ".yml")
_OTHER_LAUNCHERS = (b"srun ", b"mpirun", b"mpiexec", b"horovodrun", b"#SBATCH", b"jsrun")
_OTHER_STARTS = (
    b"mp.spawn(", b"multiprocessing.spawn(", b"start_processes(", b"notebook_launcher(", b"SLURM_PROCID", b"submitit",
    b"pytorch_lightning", b"lightning.pytorch", b"import lightning",
)  # fmt: skip
_SETTING = (b"torchrun", b"torch.distributed.launch", b"torch.distributed.run", b"accelerate launch", b"deepspeed ")
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})


def by_environment(project: Project, module: SourceModule) -> Spelling | None:
    """The test by `RANK`, which holds above the start of the group, too; None where nobody may have set it."""
    return None if in_file_of_workers(project, module) else of_environment(module)


def by_command(project: Project, module: SourceModule) -> Spelling | None:
    """The test by `RANK` for a file that a command of the repository launches; None where something else may start processes.

    torchrun, accelerate and deepspeed set the variable for each process. Slurm, MPI, horovod and Lightning set others, and what
    the project spawns by itself has none at all.
    """
    if not is_launched(project, module.path) or project.keep("ranks of other starters", lambda: _has_other_starters(project)):
        return None
    system = plan_plain(module, "os")
    return Spelling(f'int({system.name}.environ.get("RANK", 0)) == 0', system.edits) if system is not None else None


def may_lack_rank(project: Project) -> bool:
    """True where the texts start processes by what sets no RANK (Slurm, MPI, horovod), and by nothing that does."""

    def build() -> bool:
        if any(project.files_containing(word, kinds=_TEXTS) for word in _SETTING):
            return False
        return any(project.files_containing(word, kinds=_TEXTS) for word in _OTHER_LAUNCHERS)

    return project.keep("launchers that set no RANK", build)


def _has_other_starters(project: Project) -> bool:
    named = any(project.files_containing(word, kinds=_TEXTS) for word in _OTHER_LAUNCHERS)
    return named or any(project.files_containing(word) for word in _OTHER_STARTS)


@once_a_module
def of_environment(module: SourceModule) -> Spelling | None:
    """By `RANK`, which torchrun, accelerate and deepspeed set for each process, in a file that reads what they set.

    Where the file sets the variables itself it starts the processes, and they are not there yet. And only in a file that
    trains: a tool that cuts its input by rank prints of its own share.
    """
    if not reads_environment(module) or module.holds(b"PROCID") or not _TRAINS.search(module.data):
        return None
    system = module.imports.get("os", ())
    if not any(i.dotted == "os" and runs_at_import(module, i.node) for i in system):
        return None
    return Spelling('int(os.environ.get("RANK", 0)) == 0', assumes=BY_LAUNCHER)


@once_a_module
def reads_environment(module: SourceModule) -> bool:
    """True for a file that reads the variables of a launcher, and sets none of them."""
    if not any(v.encode() in module.data for v in _VARIABLES):
        return False
    reads = False
    for node in module.nodes(ast.Subscript):
        if dotted(node.value).endswith("environ") and _is_variable(node.slice):
            if not isinstance(node.ctx, ast.Load):
                return False
            reads = True
    for call in module.calls_named("get", "getenv", "setdefault", "update"):
        if call.args and _is_variable(call.args[0]) and dotted(call.func).endswith(("environ.get", "getenv")):
            reads = True
        elif "environ" in dotted(call.func) and last(dotted(call.func)) in ("setdefault", "update"):
            return False
    return reads


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _VARIABLES
