"""Generators that go through a loader again and again: `while True: for batch in loader: yield batch`.

Also those that begin it anew: `while True: try: yield next(batches) except StopIteration: batches = iter(loader)`. The loader is
what a caller hands over, or what the generator makes itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in, only_value
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.handed import handed
from codemods.analysis.loading.origins import Origin, all_known, origins
from codemods.analysis.loading.passes import drawn_from, leaves_samplers_alone
from codemods.analysis.loading.same_program import callers
from codemods.analysis.loading.samplers import (
    Loader,
    is_distributed_sampler,
    is_none,
    loader_of,
    made_loader,
    samplers_of,
    shuffles_by_callers,
)
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Endless:
    """A pass that never ends, over a loader with a shuffling DistributedSampler.

    loop: the `while`; through: the `for` or `yield from` in it, or what begins the loader anew (`restarts`); iterated: what that
    goes through; name: that of the loader.
    known: it is a loader of torch in every run. sure: each has such a sampler in every run. paths: the files in which loaders
    and samplers are made, and the callers'. others: the samplers of other loaders that it is handed, in other programs say.
    """

    function: FunctionNode
    loop: ast.While
    through: ast.stmt
    iterated: ast.expr
    name: str
    loader: Loader
    sampler: Origin
    known: bool
    sure: bool
    paths: frozenset[str]
    restarts: bool = False
    others: tuple[Origin, ...] = ()


def endless_passes(project: Project, module: SourceModule) -> Iterator[Endless]:
    """Those of a file whose callers hand over a loader with such a sampler."""
    for loop in module.nodes(ast.While):
        function = module.function_of(loop)
        anew = _begins_anew(loop) if function is not None else None
        if function is None or (through := anew or _goes_through(loop)) is None:
            continue
        statement, iterated = through
        restarts = anew is not None
        source = unpacked(iterated)
        parameters = {a.arg for a in (*function.args.posonlyargs, *function.args.args)}
        stored = {n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if isinstance(source, ast.Name) and source.id in parameters - stored:
            if (found := _with_samplers(project, module, function, source.id)) is not None:
                shared, known, sure, paths = found
                (loader, sampler), others = shared[0], tuple(dict.fromkeys(o for _, o in shared[1:]))
                yield Endless(
                    function, loop, statement, iterated, source.id, loader, sampler, known, sure, paths, restarts, others
                )
        elif isinstance(source, ast.Name) and (own := _made_here(project, module, function, source)) is not None:
            loader, sampler, sure, paths = own
            yield Endless(function, loop, statement, iterated, source.id, loader, sampler, True, sure, paths, restarts)


def _made_here(
    project: Project, module: SourceModule, function: FunctionNode, name: ast.Name
) -> tuple[Loader, Origin, bool, frozenset[str]] | None:
    """(the loader, its sampler, sure, paths), for a name that the generator gives one loader of its own making."""
    value = only_value(bindings_in(module, function, name.id))
    loader = made_loader(project, Origin(module, value)) if value is not None else None
    if loader is None or loader.sampler is None:
        return None
    samplers = samplers_of(project, loader)
    own = [o for o in samplers if is_distributed_sampler(project, o) and shuffles_by_callers(project, o, loader)]
    if not own or any(o not in own and not is_none(o) for o in samplers):
        return None
    sites = {site.module.path for site in callers(project, module, function)}
    return loader, own[0], len(own) == len(samplers), frozenset({module.path, *sites, *(o.module.path for o in samplers)})


def _goes_through(loop: ast.While) -> tuple[ast.stmt, ast.expr] | None:
    """The `for` or the `yield from` that is all an endless loop does, and that yields what it goes through."""
    if not isinstance(loop.test, ast.Constant) or not loop.test.value or len(loop.body) != 1:
        return None
    through = loop.body[0]
    if isinstance(through, ast.Expr) and isinstance(through.value, ast.YieldFrom):
        return through, through.value.value
    yields = isinstance(through, ast.For) and any(isinstance(n, ast.Yield) for s in through.body for n in walk(s))
    return (through, through.iter) if isinstance(through, ast.For) and yields and not through.orelse else None


def _begins_anew(loop: ast.While) -> tuple[ast.stmt, ast.expr] | None:
    """`batches = iter(loader)` where `next(batches)`, which is all that the loop yields, came to an end; and `loader`."""
    tried = loop.body[0] if isinstance(loop.test, ast.Constant) and loop.test.value and len(loop.body) == 1 else None
    if not isinstance(tried, ast.Try) or len(tried.body) != 1 or len(tried.handlers) != 1 or tried.orelse or tried.finalbody:
        return None
    given, handler = tried.body[0], tried.handlers[0]
    yielded = given.value.value if isinstance(given, ast.Expr) and isinstance(given.value, ast.Yield) else None
    drawn = drawn_from(yielded) if isinstance(yielded, ast.Call) and len(yielded.args) < 2 else None
    if not isinstance(drawn, ast.Name) or handler.type is None or dotted(handler.type) != "StopIteration":
        return None
    for statement in handler.body:
        if isinstance(statement, ast.Assign) and [dotted(t) for t in statement.targets] == [drawn.id]:
            made = statement.value
            if isinstance(made, ast.Call) and dotted(made.func) == "iter" and len(made.args) == 1 and not made.keywords:
                return statement, made.args[0]
    return None


def _with_samplers(
    project: Project, module: SourceModule, function: FunctionNode, name: str
) -> tuple[list[tuple[Loader, Origin]], bool, bool, frozenset[str]] | None:
    """(loaders with their samplers, known, sure, paths), as `Endless` has them; None where no caller hands over such a loader."""
    shared: list[tuple[Loader, Origin]] = []
    known = sure = True
    paths = {module.path}
    for site in callers(project, module, function):
        given = handed(FunctionSite(module, function), site.call).get(name)
        made = origins(project, site.module, given) if given is not None else ()
        made = tuple(o for o in made if o.known or dotted(o.node) != function.name)  # `loader = cycle(loader)`: what it gives
        loaders = [loader_of(o) for o in made]
        paths |= {site.module.path, *(o.module.path for o in made)}
        if not all_known(made) or None in loaders or any(x.hides_its_sampler for x in loaders if x is not None):
            known = False
        for loader in (x for x in loaders if x is not None and x.sampler is not None):
            samplers = samplers_of(project, loader)
            paths |= {o.module.path for o in samplers}
            own = [o for o in samplers if is_distributed_sampler(project, o) and shuffles_by_callers(project, o, loader)]
            if leaves_samplers_alone(site.module):  # else a framework gives the number of the round
                shared += [(loader, o) for o in own]
            sure = sure and len(own) == len(samplers)
        sure = sure and all(x is not None and x.sampler is not None for x in loaders)
    if not shared:
        return None
    return shared, known, sure and known, frozenset(paths)
