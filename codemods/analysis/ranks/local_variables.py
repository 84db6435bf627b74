"""By which variable a program is told the number of a process on its node: by the launcher whose rank the program reads."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.values_behind import Value, values_behind
from codemods.files.source import SourceModule
from codemods.store.project import Project

# The variable for the node beside that for the whole run, by launcher: srun, mpirun. All others set LOCAL_RANK.
_BESIDE = {"SLURM_PROCID": "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_LOCAL_RANK"}
_DEPTH = 2


def asked_local_rank(project: Project, module: SourceModule, rank: ast.expr, system: str) -> str:
    """The text that asks for the number on the node, `rank` where nobody sets it. system: what the file calls `os`."""
    asked = module.text_of(rank)
    for variable in reversed(_variables(project, module, rank)):
        asked = f'{system}.environ.get("{variable}", {asked})'
    return f"int({asked})"


def _variables(project: Project, module: SourceModule, rank: ast.expr) -> list[str]:
    """LOCAL_RANK first, unless another launcher alone gives the rank."""
    found = dict.fromkeys(v for value in values_behind(project, module, rank) for v in _of_value(project, value, 0))
    return [*(["LOCAL_RANK"] if "LOCAL_RANK" in found or not found else []), *(v for v in found if v != "LOCAL_RANK")]


def _of_value(project: Project, value: Value, depth: int) -> list[str]:
    if variable := environment(value.module, value.node):
        return [_BESIDE.get(variable, "LOCAL_RANK")]
    if isinstance(value.node, ast.Constant):
        return []
    given = _given_to_group(value.module) if depth < _DEPTH else []
    told = [v for g in given for inner in values_behind(project, value.module, g) for v in _of_value(project, inner, depth + 1)]
    return told or ["LOCAL_RANK"]


def _given_to_group(module: SourceModule) -> list[ast.expr]:
    """The ranks by which the file joins the group: `dist.get_rank()` gives them back."""
    starts = module.calls_named("init_process_group") if module.holds(b"init_process_group") else []
    return [k.value for call in starts for k in call.keywords if k.arg == "rank"]
