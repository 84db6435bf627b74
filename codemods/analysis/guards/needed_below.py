"""Calls of the project's functions that raise without a process group: a loader whose sampler asks for the ranks."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import last, qualified
from codemods.analysis.ranks.closed_branches import open_uses, wanted_at
from codemods.analysis.ranks.uses import CallSite, Uses
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project


def makes_a_sampler(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where each run of this call makes a DistributedSampler that asks the group, by the arguments that it gives."""
    if not project.files_containing(b"DistributedSampler"):
        return False
    site = called_function(project, module, call)
    if site is None or not site.module.holds(b"DistributedSampler"):
        return False
    home, function = site.module, site.node
    uses = Uses((CallSite(module, call),), (), more=False)
    made = (n for n in walk_scope(function) if isinstance(n, ast.Call) and asks_the_group_for_ranks(home, n))
    return any(_is_always_run(home, function, n) and open_uses(home, function, n, uses).calls for n in made)


def asks_the_group_for_ranks(module: SourceModule, call: ast.Call) -> bool:
    """True for torch's sampler that is not told how many ranks there are."""
    name = qualified(module, call.func)
    if last(name) != "DistributedSampler" or not name.startswith("torch."):
        return False
    return len(call.args) < 2 and not any(k.arg in ("num_replicas", None) for k in call.keywords)


def _is_always_run(module: SourceModule, function: FunctionNode, call: ast.Call) -> bool:
    """True where nothing decides over it but parameters, and nothing returns above."""
    asked = wanted_at(module, function, call)
    for up in module.ancestors(call):
        if up is function:
            break
        if isinstance(up, (ast.For, ast.While, ast.Try, ast.IfExp, ast.BoolOp, ast.Lambda)):
            return False
        if isinstance(up, ast.If) and not {n.id for n in ast.walk(up.test) if isinstance(n, ast.Name)} <= set(asked):
            return False
    return not any(isinstance(n, (ast.Return, ast.Raise)) and n.lineno < call.lineno for n in walk_scope(function))
