"""What a script reads from its environment that srun does not put there: RANK, LOCAL_RANK and WORLD_SIZE are set by torchrun.

Slurm's manual of srun: each task has SLURM_PROCID, SLURM_LOCALID and SLURM_NTASKS.
"""

from __future__ import annotations

import ast
import re
from posixpath import basename

from codemods.analysis.functions import functions_by_name
from codemods.analysis.job_files.command_lines import CommandLine, script_of
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import qualified
from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.launcher_variables import is_sure_to_come
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

OF_SLURM = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "WORLD_SIZE": "SLURM_NTASKS"}
# Who may put them there: what asks Slurm or MPI itself, or reads a file of variables.
_SETS = lazy(
    rb"SLURM|slurm|deepspeed|mpi4py|submitit|lightning|horovod|dotenv|putenv|idist|environ\.(?:setdefault|update)|"
    rb"environ[ \t]*\|=|environ\[[^\]\n]+\][ \t]*=(?!=)"
)
# A file that the job runs in its own shell, but for an environment of Python.
_SOURCED = lazy(r"(?m)^[ \t]*(?:source|\.)[ \t]+(?![^\n]*(?:activate|conda|bashrc|profile|modules?))\S")
_HANDED = ("rank", "init_method", "store", None)
_DEPTH = 3


@record
class UnsetRead:
    """variable: what is not there. module, node: where the script asks for it in every run. error: what it ends with."""

    variable: str
    module: SourceModule
    node: ast.expr
    error: str


def unset_by_srun(project: Project, command: CommandLine) -> UnsetRead | None:
    """The first of them that a script started by srun alone asks for; None where anything else may set it."""
    file = command.file
    if command.launcher or not file.path.endswith(SHELL_KINDS) or not any(basename(w.text) == "srun" for w in command.words):
        return None
    script = script_of(project, command)
    module = project.module(script) if script is not None else None
    if module is None or _SOURCED.search(file.text):
        return None
    read = next((r for r in _reads(module) if not re.search(rf"\b{r.variable}=", file.text)), None)
    if read is None or any(_SETS.search(project.read(p) or b"") for p in whole_program(project, module.path)):
        return None
    return read


def _reads(module: SourceModule) -> list[UnsetRead]:
    """In source order; the process group asks for all of them, but for those that it is handed."""
    items = (n for n in module.nodes(ast.Subscript) if isinstance(n.ctx, ast.Load) and environment(module, n) in OF_SLURM)
    found = [UnsetRead(environment(module, n), module, n, "KeyError") for n in items]
    for call in module.calls_named("init_process_group"):
        of_torch = qualified(module, call.func).startswith("torch.distributed.")
        if of_torch and len(call.args) < 2 and not any(k.arg in _HANDED for k in call.keywords):
            found.append(UnsetRead("RANK", module, call, "ValueError"))
    found.sort(key=lambda r: (r.node.lineno, r.node.col_offset))
    return [r for r in found if _is_run(module, r.node, _DEPTH)]


def _is_run(module: SourceModule, node: ast.AST, depth: int) -> bool:
    """True for what each run of the script comes to, in functions that the script itself calls too."""
    if depth == 0 or not is_sure_to_come(module, node):
        return False
    function = module.function_of(node)
    if function is None:
        return True
    if len(functions_by_name(module).get(function.name, ())) != 1 or module.class_of(function) is not None:
        return False
    calls = (c for c in module.calls_named(function.name) if isinstance(c.func, ast.Name))
    return any(_is_run(module, c, depth - 1) for c in calls)
