"""Calls of the project's functions that raise without a process group: what they make or write asks it for the ranks."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import last, qualified
from codemods.analysis.ranks.closed_branches import open_uses, wanted_at
from codemods.analysis.ranks.uses import CallSite, Uses
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_SAMPLER = (b"DistributedSampler",)
_QUESTIONS = (b"get_rank(", b"get_world_size(", b"barrier(")
_ASKED = frozenset(f"torch.distributed.{name}" for name in ("get_rank", "get_world_size", "barrier"))


def makes_a_sampler(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where each run of this call makes a DistributedSampler that asks the group, by the arguments that it gives."""
    return _is_asked(project, module, call, _SAMPLER, asks_the_group_for_ranks)


def asks_the_group(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where each run of this call asks the group: for its rank or its size, to wait, or for a sampler."""
    if makes_a_sampler(project, module, call):
        return True
    return _is_asked(project, module, call, _QUESTIONS, lambda m, c: not c.args and qualified(m, c.func) in _ASKED)


def _is_asked(
    project: Project,
    module: SourceModule,
    call: ast.Call,
    words: tuple[bytes, ...],
    asks: Callable[[SourceModule, ast.Call], bool],
) -> bool:
    """True where the function that is called asks on each way through it, by the arguments of the call."""
    if not any(project.files_containing(word) for word in words):
        return False
    site = called_function(project, module, call)
    if site is None or not any(site.module.holds(word) for word in words):
        return False
    home, function = site.module, site.node
    uses = Uses((CallSite(module, call),), (), more=False)
    made = (n for n in walk_scope(function) if isinstance(n, ast.Call) and asks(home, n))
    return any(_is_always_run(home, function, n) and open_uses(project, home, function, n, uses).calls for n in made)


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
