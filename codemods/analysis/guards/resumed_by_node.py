"""Is what local rank 0 of each node saves the state that its ranks go on from, once it is there?

A program that looks for its snapshot at its start (`if os.path.exists(path): load(path)`) does so on every rank. On disks of
their own the nodes need one each: with that of the first node alone the others would begin anew, and wait for ever.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.file_flow import Step
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ASKS = frozenset({"exists", "isfile", "is_file", "lexists"})


def is_resumed_on_each_node(project: Project, module: SourceModule, step: Step) -> bool:
    """True for a state that the file restores on every rank where it finds one."""
    if qualified(step.module, step.call.func if isinstance(step.call, ast.Call) else step.call) != "torch.save":
        return False
    return any(_restores_what_is_there(project, home) for home in {module.path: module, step.module.path: step.module}.values())


def _restores_what_is_there(project: Project, module: SourceModule) -> bool:
    if not module.holds(b"torch.load(") or not module.holds(b"load_state_dict("):
        return False
    restoring = {module.function_of(c) for c in module.calls_named("load_state_dict")}
    for load in module.calls_named("load"):
        function = module.function_of(load)
        if qualified(module, load.func) != "torch.load" or function not in restoring:
            continue
        places = [load, *(module.calls_named(function.name) if function is not None else ())]
        if any(_is_if_there(module, p) and not ranks_at(module, p, project=project).some for p in places):
            return True
    return False


def _is_if_there(module: SourceModule, call: ast.Call) -> bool:
    """True under a test that the path that the call is given is there."""
    given = {dotted(a) for a in (*call.args, *(k.value for k in call.keywords))} - {""}
    return any(asked in given for asked in _asked_above(module, call))


def _asked_above(module: SourceModule, call: ast.Call) -> Iterator[str]:
    for up in module.ancestors(call):
        if isinstance(up, ast.If):
            for asked in (n for n in ast.walk(up.test) if isinstance(n, ast.Call) and last(dotted(n.func)) in _ASKS):
                yield dotted(asked.args[0]) if asked.args else dotted(getattr(asked.func, "value", asked.func))
