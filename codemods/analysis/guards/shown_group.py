"""Is there a process group at a place, on every way that leads there? What asks it for the rank is a test only then.

`not dist.is_initialized() or dist.get_rank() == 0` is true on every rank of a run in which nobody has started the group yet, or
ever does: a launcher alone sets variables.
"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassFacts, Role, class_facts, external_role, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.guards.before_group import starts_at, starts_inside
from codemods.analysis.guards.called_with_group import called_with_group
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.attached_trainer import runs_while_loading
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.reach import called_by_framework
from codemods.analysis.ranks.started_groups import starts_no_group
from codemods.files.source import FunctionNode, SourceModule, line_of, walk_scope
from codemods.store.project import Project

_CLIMBS = 5
_NEEDS_ONE = frozenset(
    {"barrier", "all_reduce", "all_gather", "broadcast", "all_gather_object", "broadcast_object_list", "new_group"}
)  # fmt: skip
_WRAPS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel"})
_LIBRARIES = frozenset({"deepspeed.initialize", "deepspeed.init_distributed"})
_TRAINS = (Role.HF_TRAINER, Role.HF_CALLBACK)
_HOOKED = (Role.LIGHTNING_MODULE, Role.LIGHTNING_CALLBACK, Role.LIGHTNING_DATA_MODULE, *_TRAINS)


def has_shown_group(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where, on each way that is seen to lead to `node`, something above starts the group, or fails without one.

    A start under a test counts (`if args.distributed:`): a run that it leaves out has one process. So do callers which belong to
    programs that join no others, beside one that does.
    """
    return _has(project, module, node, frozenset())


def _has(project: Project, module: SourceModule, node: ast.AST, seen: frozenset[int]) -> bool:
    function = module.function_of(node)
    if _is_started_above(project, module, function, node):
        return True
    if function is None or id(function) in seen or len(seen) >= _CLIMBS:
        return False
    if _is_run_by_a_trainer(project, module, function) or called_with_group(project, module, function):
        return True
    outer = module.function_of(function)
    if outer is not None and _is_started_above(project, module, outer, function):
        return True
    sites = [s for s in callers_of(project, module, function) if not is_test_file(s.module.path)]
    shown = {id(s) for s in sites if _has(project, s.module, s.call, seen | {id(function)})}
    return bool(shown) and all(id(s) in shown or starts_no_group(project, s.module.path) for s in sites)


def _is_started_above(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.AST) -> bool:
    scope = function if function is not None else module.tree
    return any(
        line_of(call) < line_of(node) and _is_on_the_way(module, call, node) and _gives_group(project, module, call)
        for call in walk_scope(scope) if isinstance(call, ast.Call)
    )  # fmt: skip


def _gives_group(project: Project, module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    end = last(name)
    if end in _WRAPS or name in _LIBRARIES or (name.startswith("torch.distributed.") and end in _NEEDS_ONE):
        return True
    if starts_at(project, module, call):
        return True
    made = find_class(project, module, dotted(call.func)) if end[:1].isupper() else None
    if made is None:
        return external_role(name) is Role.HF_TRAINER
    facts = class_facts(project, made.module, made.node)
    return facts.is_a(Role.HF_TRAINER) or _is_made_with_group(project, facts)


def _is_made_with_group(project: Project, facts: ClassFacts) -> bool:
    """True for a class whose constructor starts the group."""
    method = facts.method("__init__")
    return method is not None and starts_inside(project, FunctionSite(method[0].module, method[1]))


def _is_on_the_way(module: SourceModule, call: ast.Call, node: ast.AST) -> bool:
    """False in another arm of a branch, and in one that ends above the place."""
    round_it = {id(up) for up in module.ancestors(node)}
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        if isinstance(up, ast.If) and below is not up.test:
            arm = up.body if any(s is below for s in up.body) else up.orelse
            if id(up) in round_it and not any(id(s) in round_it or s is node for s in arm):
                return False
            if id(up) not in round_it and leaves(arm):
                return False
        below = up
    return True


def _is_run_by_a_trainer(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for the hooks of a framework's classes, which it runs when it has started, and for any method of a Trainer."""
    owner = module.class_of(function)
    if owner is None or function.name == "__init__":
        return False
    facts = class_facts(project, module, owner)
    if any(facts.is_a(role) for role in _TRAINS):
        return True
    hooked = any(facts.is_a(role) for role in _HOOKED) and not runs_while_loading(project, facts, function)
    if hooked and called_by_framework(project, module, function) is not None:
        return True
    return _is_made_with_group(project, facts)
