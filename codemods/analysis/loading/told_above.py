"""A sampler that is told the number of the epoch, and right behind it one that stays: the second call undoes the first."""

from __future__ import annotations

import ast

from codemods.analysis.loading.epoch_stays import EpochStays
from codemods.analysis.loading.origins import all_known, origins
from codemods.analysis.loading.samplers import is_distributed_sampler, is_none, made_loader, samplers_of
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project


def told_above(project: Project, module: SourceModule, found: EpochStays) -> ast.Call | None:
    """The call in the same function, in front of this one, that tells the same sampler the number of the round."""
    function = module.function_of(found.call)
    for call in module.calls_named("set_epoch") if found.counted else ():
        if call.lineno >= found.call.lineno or module.function_of(call) is not function or len(call.args) != 1:
            continue
        if dotted(call.args[0]) == found.counted and _are_one(project, module, call, found.call):
            return call
    return None


def _are_one(project: Project, module: SourceModule, one: ast.Call, other: ast.Call) -> bool:
    if dotted(one.func) == dotted(other.func):
        return True
    mine, theirs = _samplers(project, module, one), _samplers(project, module, other)
    return mine is not None and mine == theirs


def _samplers(project: Project, module: SourceModule, call: ast.Call) -> frozenset[int] | None:
    """The DistributedSamplers that a call may tell; None where one of them is not seen."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if receiver is None:
        return None
    made = list(origins(project, module, receiver))
    if not all_known(tuple(made)) and isinstance(receiver, ast.Attribute) and receiver.attr == "sampler":
        made = []
        for origin in origins(project, module, receiver.value):
            loader = made_loader(project, origin)
            if loader is None:
                return None
            made += samplers_of(project, loader)
    known = [o for o in made if not is_none(o)]
    if not known or not all(is_distributed_sampler(project, o) for o in known):
        return None
    return frozenset(id(o.node) for o in known)


def whole_statement(module: SourceModule, call: ast.Call) -> ast.stmt | None:
    """The statement that is nothing but this call, with the test that is over nothing else."""
    statement = module.parent(call)
    if not isinstance(statement, ast.Expr):
        return None
    found: ast.stmt = statement
    while isinstance(up := module.parent(found), ast.If) and up.body == [found] and not up.orelse and _is_plain(up.test):
        found = up
    return found


def _is_plain(test: ast.expr) -> bool:
    """True for a test that calls nothing."""
    return not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in ast.walk(test))
