"""Is a file one of programs that start a process group of torch in each run? One plain process ends there.

`torch.distributed.init_process_group(init_method="env://")` under no test, at the top of the file or where each run comes to: it
reads RANK and its kin, which a launcher gives. Whoever runs such a program launches it.
"""

from __future__ import annotations

import ast

from codemods.analysis.importing import users_by_step
from codemods.analysis.names import qualified
from codemods.analysis.ranks.run_by_programs import is_no_program
from codemods.analysis.ranks.sure_joins import joins_in_every_run
from codemods.files.source import SourceModule
from codemods.store.project import Project

_MOST_PROGRAMS = 8
_OWN = frozenset({"rank", "world_size", "store"})  # a process that says these itself needs no launcher


def has_a_group_in_each_run(project: Project, module: SourceModule) -> bool:
    """True where each program that has this file ends as one plain process, for want of what a launcher gives."""
    return project.keep(("group in each run", module.path), lambda: _find(project, module))


def _find(project: Project, module: SourceModule) -> bool:
    programs = _programs(project, module)
    if not programs or len(programs) > _MOST_PROGRAMS:
        return False
    return all(joins_in_every_run(project, program, _reads_the_launcher) for program in programs)


def _programs(project: Project, module: SourceModule) -> list[SourceModule]:
    """The file itself where it is run, or those that import it and are run."""
    if module.holds(b"__main__"):
        return [module]
    steps = users_by_step(project, module.path, lambda path: is_no_program(project, path))
    paths = {p for found in steps for p in found if b"__main__" in (project.read(p) or b"")}
    return [m for m in map(project.module, sorted(paths)) if m is not None]


def _reads_the_launcher(project: Project, module: SourceModule, call: ast.Call) -> bool:
    del project
    if qualified(module, call.func) != "torch.distributed.init_process_group" or len(call.args) > 2:
        return False
    given = {k.arg: k.value for k in call.keywords}
    method = call.args[1] if len(call.args) == 2 else given.get("init_method")
    if None in given or _OWN & given.keys():
        return False
    return method is None or (isinstance(method, ast.Constant) and method.value in (None, "env://"))
