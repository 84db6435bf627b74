"""Is the epoch of a sampler set under a test of the rank? The ranks then deal the data out in different orders."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_HANDING_OUT = ("__iter__", "__getitem__", "__next__")
_PARTS = frozenset({Ranks.ZERO, Ranks.LOCAL_ZERO, Ranks.OTHERS, Ranks.LOCAL_OTHERS})


@record
class EpochOnSome:
    """A call of `set_epoch` in a loop that every rank goes through, and the ranks that make it."""

    call: ast.Call
    ranks: Ranks
    test: ast.expr


def epochs_on_some(project: Project, module: SourceModule) -> Iterator[EpochOnSome]:
    """The calls of a file that only some ranks make, where no call for the others stands in the same loop."""
    for call in module.calls_named("set_epoch"):
        loop = next((up for up in module.ancestors(call) if isinstance(up, (ast.For, ast.While))), None)
        if loop is None or (ranks := ranks_at(module, call, project=project)) not in _PARTS:
            continue
        if ranks_at(module, loop, project=project).some or _is_set_elsewhere(module, loop, call):
            continue
        if _hands_nothing_out(project, module, call):
            continue
        if _is_gone_through_there(project, module, call) and left(module, call, "no other rank goes through its loader"):
            continue
        test = next((up.test for up in module.ancestors(call) if isinstance(up, (ast.If, ast.IfExp))), None)
        if test is not None:
            yield EpochOnSome(call, ranks, test)


def _is_gone_through_there(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the loaders of the sampler are read by some ranks alone, but for their length."""
    sampler = dotted(getattr(call.func, "value", call))
    loaders = [n for n in module.nodes(ast.Assign) if isinstance(n.value, ast.Call) and _takes(n.value, sampler)]
    names = {t.id for n in loaders for t in n.targets if isinstance(t, ast.Name)}
    if not sampler or not names or any(not isinstance(t, ast.Name) for n in loaders for t in n.targets):
        return False
    reads = [r for name in names for r in module.reads_of(name) if isinstance(r, ast.Name) and not _is_length(module, r)]
    return bool(reads) and all(ranks_at(module, r, project=project) in _PARTS for r in reads)


def _takes(call: ast.Call, sampler: str) -> bool:
    return any(k.arg in ("sampler", "batch_sampler") and dotted(k.value) == sampler for k in call.keywords)


def _is_length(module: SourceModule, read: ast.AST) -> bool:
    up = module.parent(read)
    return isinstance(up, ast.Call) and dotted(up.func) == "len"


def _hands_nothing_out(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for an object of a class of the project that is no sampler and no data: a meter that is told the epoch."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    made = [b.value for b in bindings_of(module, receiver)] if isinstance(receiver, ast.Name) else []
    sites = [find_class(project, module, dotted(v.func)) if isinstance(v, ast.Call) else None for v in made]
    known = [class_facts(project, s.module, s.node) for s in sites if s is not None]
    if not known or len(known) != len(made):
        return False
    return not any(f.method(name) for f in known for name in _HANDING_OUT) and not any(f.external or f.unresolved for f in known)


def _is_set_elsewhere(module: SourceModule, loop: ast.AST, call: ast.Call) -> bool:
    """True where the loop sets the epoch of the same sampler elsewhere, on every rank or on others."""
    receiver = dotted(getattr(call.func, "value", call))
    same = (c for c in module.calls_named("set_epoch") if c is not call and dotted(getattr(c.func, "value", c)) == receiver)
    return any(loop in module.ancestors(c) for c in same)
