"""Iterators over a loader that are handed to `accelerator.prepare`, which gives back what is no loader as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.origins import all_known, origins
from codemods.analysis.loading.samplers import Loader, is_none, loader_of, samplers_of, shares_out
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_ITERATORS = frozenset({"iter", "enumerate", "itertools.cycle", "itertools.chain", "zip", "map"})


@record
class PreparedIterator:
    """An iterator that is handed to `prepare`. made: the call that makes it; loader: the expression in it that is the loader."""

    prepare: ast.Call
    made: ast.Call
    loader: ast.expr
    found: Loader


def prepared_iterators(project: Project, module: SourceModule) -> Iterator[PreparedIterator]:
    """One for each iterator that a training takes its batches of, while its loader is shared out in no other way."""
    for call in module.calls_named("prepare"):
        if not isinstance(call.func, ast.Attribute) or not is_accelerator(project, module, call.func.value):
            continue
        if ranks_at(module, call, project=project).some:
            continue
        for given in call.args:
            made = _made(project, module, given, call)
            if made is not None and not _trains(project, module, _target(module, call, given)):
                continue
            loader = _loader_in(project, module, made) if made is not None else None
            if made is not None and loader is not None:
                yield PreparedIterator(call, made, *loader)


def _made(project: Project, module: SourceModule, given: ast.expr, prepare: ast.Call) -> ast.Call | None:
    """The one call that makes the iterator; None where something else may have been handed over."""
    values: list[ast.expr] = []
    if isinstance(given, (ast.Name, ast.Attribute)):
        for bound in name_or_field_bindings(module, given):
            if bound.value is prepare or (bound.node is module.statement_of(prepare)):
                continue
            if bound.value is None or bound.part or getattr(bound.node, "lineno", 0) > prepare.lineno:
                return None
            values.append(bound.value)
    else:
        values.append(given)
    one = values[0] if len(values) == 1 else None
    return one if isinstance(one, ast.Call) and _is_iterator(project, module, one) else None


def _target(module: SourceModule, prepare: ast.Call, given: ast.expr) -> str:
    """The name that gets what `prepare` hands back for an argument."""
    statement = module.statement_of(prepare)
    if not isinstance(statement, ast.Assign) or statement.value is not prepare or len(statement.targets) != 1:
        return dotted(given)
    target = statement.targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return dotted(target)
    return dotted(target.elts[prepare.args.index(given)]) if len(target.elts) == len(prepare.args) else ""


def _trains(project: Project, module: SourceModule, name: str) -> bool:
    """True where a function with a backward pass takes the batches, and no place takes them on some ranks only.

    A prepared loader brings the random states of the ranks together when a pass begins: one rank alone would wait there.
    """
    reads = [r for r in module.reads_of(last(name)) if dotted(r) == name] if name else []
    takes = [r for r in reads if _is_taken(module, r)]
    trained = {id(module.function_of(c)) for c in module.calls_named("backward")}
    if not any(id(module.function_of(r)) in trained for r in takes):
        return False
    return all(ranks_reaching(project, module, r) is Ranks.ALL for r in takes)


def _is_taken(module: SourceModule, read: ast.AST) -> bool:
    """True for `next(batches)`, `for batch in batches` and the same through `enumerate`, `zip` and `tqdm`."""
    up = module.parent(read)
    while isinstance(up, ast.Call) and last(dotted(up.func)) in ("enumerate", "zip", "tqdm", "islice"):
        read, up = up, module.parent(up)
    if isinstance(up, ast.Call):
        return last(dotted(up.func)) == "next"
    return isinstance(up, ast.For) and up.iter is read


def _is_iterator(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `iter(x)` and its kin, and for a call of a generator function of the project."""
    if not call.args or isinstance(call.args[0], ast.Starred):
        return False
    site = called_function(project, module, call)
    if site is not None:
        return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(site.node))
    return qualified(module, call.func) in _ITERATORS


def _loader_in(project: Project, module: SourceModule, made: ast.Call) -> tuple[ast.expr, Loader] | None:
    """The loader that the iterator goes through, which is a plain one of torch and is not prepared itself."""
    for given in made.args:
        if not isinstance(given, (ast.Name, ast.Attribute, ast.Call)):
            continue
        found = origins(project, module, given)
        loaders = [loader_of(o) for o in found]
        known = [x for x in loaders if x is not None]
        if not all_known(found) or len(known) != len(found) or _is_prepared(module, given):
            continue
        if not any(_is_shared(project, x) for x in known):
            return given, known[0]
    return None


def _is_shared(project: Project, loader: Loader) -> bool:
    if loader.hides or loader.batch_sampler is not None:
        return True
    return any(shares_out(project, o) for o in samplers_of(project, loader) if not is_none(o))


def _is_prepared(module: SourceModule, node: ast.expr) -> bool:
    """True where the loader goes through a `prepare` of its own somewhere in the file."""
    name = dotted(node)
    calls = module.calls_named("prepare", "prepare_data_loader")
    return bool(name) and any(dotted(a) == name for call in calls for a in call.args)
