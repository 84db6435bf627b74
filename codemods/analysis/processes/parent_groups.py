"""`destroy_process_group` of the parent, where only the workers that it spawns make a process group."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handlers import tries_over
from codemods.analysis.names import last, qualified
from codemods.analysis.processes.starts import Start, reached_by, run_after
from codemods.analysis.ranks.uses import calls_of
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk, walk_block
from codemods.store.project import Project

# What else makes a process group.
_STARTS = frozenset({"init_process_group", "PartialState", "init_distributed", "init_distributed_mode", "setup_distributed"})
_WORDS = (b"Accelerator", b"deepspeed", b"lightning", b"Fabric(", b"init_device_mesh", b"TrainingArguments", b"megatron")


def destroyed_by_parent(project: Project, module: SourceModule, start: Start) -> ast.Call | None:
    """The call of the parent behind the start, on its way whatever comes of a test."""
    if any(module.holds(word) for word in _WORDS) or not _is_shown(project, module, module.function_of(start.call)):
        return None
    reached = reached_by(project, start.worker)
    if not any(_starts(s) for s in reached) and left(module, start.call, "the workers are not seen to make a process group"):
        return None
    if _others_start(project, module, reached, start.call) and left(module, start.call, "the parent may make a group, too"):
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


def _other_arms(module: SourceModule, node: ast.AST) -> list[ast.stmt]:
    """What the process does not run that comes to the node: `main(0)` in the `else` of the test under which it spawns."""
    found: list[ast.stmt] = []
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below is not up.test:
            found.extend(up.orelse if any(s is below for s in up.body) else up.body)
        elif isinstance(up, (ast.For, ast.AsyncFor, ast.While)):  # the next round may take the other arm
            found.clear()
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        below = up
    return found


def _others_start(project: Project, module: SourceModule, reached: list[FunctionSite], spawn: ast.Call) -> bool:
    """True where the parent may come to a start of the group outside of what the workers run."""
    own = {id(s.node) for s in reached}
    passed_by = {id(node) for statement in _other_arms(module, spawn) for node in walk(statement)}
    parent = module.function_of(spawn)  # whose calls are looked at one by one
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        if id(call) in passed_by or (function is not None and (id(function) in own or _is_for_importers(module, function))):
            continue
        if last(qualified(module, call.func)) in _STARTS:
            return True
        site = called_function(project, module, call)
        if site is not None and site.node is not parent and any(_starts(s) for s in reached_by(project, site)):
            return True
    return any(a.name == "*" for imported in module.nodes(ast.ImportFrom) for a in imported.names)


def _is_for_importers(module: SourceModule, function: FunctionNode) -> bool:
    """True for a function of the file that nothing in it names: who imports it is another program, and spawns nothing here."""
    if function.decorator_list or module.function_of(function) is not None or module.class_of(function) is not None:
        return False
    return not any(True for _ in module.reads_of(function.name))


def _starts(site: FunctionSite) -> bool:
    return any(last(qualified(site.module, n.func)) in _STARTS for n in walk_block(site.node.body) if isinstance(n, ast.Call))
