"""`destroy_process_group` of the parent, where only the workers that it spawns make a process group."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handlers import tries_over
from codemods.analysis.names import last, qualified
from codemods.analysis.processes.starts import Start, reached_by, run_after
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import FunctionNode, SourceModule, walk_block
from codemods.store.project import Project

# What else makes a process group.
_STARTS = frozenset({"init_process_group", "PartialState", "init_distributed", "init_distributed_mode", "setup_distributed"})
_WORDS = (b"Accelerator", b"deepspeed", b"lightning", b"Fabric(", b"init_device_mesh", b"TrainingArguments", b"megatron")


def destroyed_by_parent(project: Project, module: SourceModule, start: Start) -> ast.Call | None:
    """The call of the parent behind the start, on its way whatever comes of a test."""
    if any(module.holds(word) for word in _WORDS) or not _is_shown(project, module, module.function_of(start.call)):
        return None
    reached = reached_by(project, start.worker)
    if not any(_starts(s) for s in reached) or _others_start(project, module, reached):
        return None
    for statement in run_after(module, start.end):
        if not isinstance(statement, ast.Expr) or not isinstance(call := statement.value, ast.Call):
            continue
        name = qualified(module, call.func)
        if name.startswith("torch.distributed.") and name.endswith(".destroy_process_group") and not (call.args or call.keywords):
            return None if any(tries_over(module, call)) else call
    return None


def _is_shown(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True for the block under `__main__`, the file itself, and a function that these alone call."""
    if function is None:
        return True
    sites = calls_of(project, module, function)
    return bool(sites) and all(s.module is module and s.module.function_of(s.call) is None for s in sites or ())


def _others_start(project: Project, module: SourceModule, reached: list[FunctionSite]) -> bool:
    """True where the file may come to a start of the group outside of what the workers run."""
    own = {id(s.node) for s in reached}
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        if function is not None and id(function) in own:
            continue
        if last(qualified(module, call.func)) in _STARTS:
            return True
        site = called_function(project, module, call)
        if site is not None and any(_starts(s) for s in reached_by(project, site)):
            return True
    return any(a.name == "*" for imported in module.nodes(ast.ImportFrom) for a in imported.names)


def _starts(site: FunctionSite) -> bool:
    return any(last(qualified(site.module, n.func)) in _STARTS for n in walk_block(site.node.body) if isinstance(n, ast.Call))
