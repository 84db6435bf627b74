"""Loaders that the ranks share out, gone through by rank 0 alone: it sees its own share, or waits for the others.

Measured with Accelerate 1.15 on two processes: a prepared loader over a RandomSampler broadcasts the state of its generator when
a pass begins (`rng_types` is `["generator"]`), and rank 0 alone hangs there, or in its next collective; one over a
SequentialSampler has nothing to bring together, and gives rank 0 half of the set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.accelerators import is_accelerator, made_by
from codemods.analysis.bindings import bindings_of, name_or_field_bindings
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.literals import is_true
from codemods.analysis.loading.origins import Origin, origins
from codemods.analysis.loading.sampler_helpers import is_left_out, is_of_one_process
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, is_none, loader_of, samplers_of
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.values import Cause, Kind, Link, Proof
from codemods.data.rank_variance import LOADER_NAMES
from codemods.files.source import SourceModule, walk, walk_block, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_DEPTH = 2  # calls between the test and the loop
_ENDLESS = frozenset({"iter", "cycle"})
_OTHER_ORDERS = ("rng_types", "dispatch_batches", "use_seedable_sampler", "dataloader_config")
_PREPARE = frozenset({"prepare", "prepare_data_loader"})


class Harm(Enum):
    WAITS = "the pass begins with a broadcast"
    SHARE = "it sees its own share"


@record
class WalkedAlone:
    """node: the loop, `next(...)` or call of rank 0. loader: as it is written there. shared: what says that it is shared out.

    loop: where it is gone through, for a call of a function that does it. made: what shows that the loader shuffles.
    """

    node: ast.AST
    loader: ast.expr
    harm: Harm
    shared: Link
    loop: tuple[str, int] | None = None
    made: int = 0


_Lists = ast.ListComp | ast.SetComp | ast.DictComp


def walked_alone(project: Project, module: SourceModule) -> Iterator[WalkedAlone]:
    """One for each pass that rank 0 alone makes, in the order of the file."""
    found = [*_here(project, module), *_behind_calls(project, module)]
    seen: set[int] = set()
    for one in sorted(found, key=lambda w: (getattr(w.node, "lineno", 0), getattr(w.node, "col_offset", 0))):
        if id(one.node) not in seen:
            seen.add(id(one.node))
            yield one


def _here(project: Project, module: SourceModule) -> Iterator[WalkedAlone]:
    lists: list[_Lists] = [*module.nodes(ast.ListComp), *module.nodes(ast.SetComp), *module.nodes(ast.DictComp)]
    for node, source, whole in _passes(module.nodes(ast.For), lists, module.calls_named("next")):
        loader = _loader(project, module, source)
        if loader is None or _is_handed_over(project, module, node, loader) or not _is_alone(project, module, node):
            continue
        if loader is source or _only_there(project, module, source):
            yield from _judged(project, module, node, loader, whole=whole)


def _behind_calls(project: Project, module: SourceModule) -> Iterator[WalkedAlone]:
    for call in module.nodes(ast.Call):
        loaders = [a for a in _given(call) if _is_named_loader(a) and not _is_handed_over(project, module, call, a)]
        if not loaders or not _is_alone(project, module, call):
            continue
        site = called_function(project, module, call)
        for loader in loaders if site is not None else ():
            assert site is not None
            if (found := _walks(project, site, call, loader, 0)) is not None:
                path, line, whole = found
                yield from _judged(project, module, call, loader, whole=whole, loop=(path, line))


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def _is_named_loader(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and LOADER_NAMES.search(last(dotted(node))) is not None


def _is_handed_over(project: Project, module: SourceModule, node: ast.AST, loader: ast.expr) -> bool:
    """True for a parameter in a function that rank 0 alone calls: the call is told."""
    if not isinstance(loader, ast.Name) or not any(b.parameter for b in bindings_of(module, loader)):
        return False
    return not ranks_at(module, node, project=project).some


# Who comes here


def _is_alone(project: Project, module: SourceModule, node: ast.AST) -> bool:
    if ranks_reaching(project, module, node) not in _ZERO:
        return False
    return not _others_have_a_part(project, module, node)


def _others_have_a_part(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where the other arm of a test round it goes through something, too."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If):
            other = up.orelse if any(below is s for s in up.body) else up.body if any(below is s for s in up.orelse) else []
            if any(isinstance(n, (ast.For, ast.While)) for n in walk_block(other)):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


# What is gone through


def _passes(loops: list[ast.For], lists: list[_Lists], calls: list[ast.Call]) -> Iterator[tuple[ast.AST, ast.expr, bool]]:
    """(loop, list or call, what it goes through, whether to the end)."""
    for loop in loops:
        yield loop, unpacked(loop.iter), not _is_left(loop)
    for made in lists:
        yield made, unpacked(made.generators[0].iter), True
    for call in calls:
        if isinstance(call.func, ast.Name) and call.args:
            yield call, call.args[0], False


def _is_left(loop: ast.For) -> bool:
    """True for a loop that is left above its end: a few batches are wanted, not the set."""
    return any(isinstance(n, (ast.Break, ast.Return)) for n in walk_block(loop.body))


def _loader(project: Project, module: SourceModule, source: ast.expr) -> ast.expr | None:
    """The loader itself, or the one behind `iter(...)`, an endless generator, or a name that holds one of these."""
    if _is_named_loader(source) and not _is_iterator_name(module, source):
        return source
    if isinstance(source, (ast.Name, ast.Attribute)):
        values = [b.value for b in name_or_field_bindings(module, source) if b.value is not None and not b.part]
        source = values[0] if len(values) == 1 and values[0] is not None else source
    if not isinstance(source, ast.Call) or len(source.args) != 1 or not _is_named_loader(source.args[0]):
        return None
    site = called_function(project, module, source)
    yields = site is not None and any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(site.node))
    return source.args[0] if yields or (site is None and last(dotted(source.func)) in _ENDLESS) else None


def _is_iterator_name(module: SourceModule, node: ast.expr) -> bool:
    values = [b.value for b in name_or_field_bindings(module, node) if b.value is not None]
    return bool(values) and all(isinstance(v, ast.Call) and last(dotted(v.func)) in _ENDLESS for v in values)


def _only_there(project: Project, module: SourceModule, source: ast.expr) -> bool:
    """True where no other rank takes anything of the iterator: a pass that all have begun waits for nobody afterwards."""
    if not isinstance(source, (ast.Name, ast.Attribute)):
        return True
    name, owner = dotted(source), module.class_of(source)
    reads = [r for r in module.reads_of(last(name)) if dotted(r) == name and module.class_of(r) is owner]
    return all(ranks_reaching(project, module, r) in _ZERO for r in reads)


def _walks(
    project: Project, site: FunctionSite, call: ast.Call, given: ast.expr, depth: int
) -> tuple[str, int, bool] | None:
    """Where the function goes through the argument, and whether to the end; None where it does not, or not all ranks may."""
    method = isinstance(site.module.parent(site.node), ast.ClassDef) and isinstance(call.func, ast.Attribute)
    bound = bind(site.node, call, bound=method) or {}
    name = next((n for n, value in bound.items() if value is given), "")
    if not name or depth > _DEPTH or _is_set(site, name):
        return None
    inside = [n for n in walk_scope(site.node) if isinstance(n, (ast.For, ast.Call, ast.ListComp, ast.SetComp, ast.DictComp))]
    loops = [n for n in inside if isinstance(n, ast.For)]
    lists = [n for n in inside if isinstance(n, (ast.ListComp, ast.SetComp, ast.DictComp))]
    calls = [n for n in inside if isinstance(n, ast.Call)]
    found: list[tuple[str, int, bool]] = []
    for node, source, whole in _passes(loops, lists, [c for c in calls if dotted(c.func) == "next"]):
        walked = source.args[0] if isinstance(source, ast.Call) and dotted(source.func) == "iter" and source.args else source
        if isinstance(walked, ast.Name) and walked.id == name and not ranks_at(site.module, node, project=project).some:
            found.append((site.module.path, getattr(node, "lineno", 0), whole))
    for inner in calls:
        handed = next((a for a in _given(inner) if isinstance(a, ast.Name) and a.id == name), None)
        further = called_function(project, site.module, inner) if handed is not None else None
        if handed is not None and further is not None and further.node is not site.node:
            deeper = _walks(project, further, inner, handed, depth + 1)
            found += [deeper] if deeper is not None else []
    return max(found, key=lambda f: f[2], default=None)


def _is_set(site: FunctionSite, name: str) -> bool:
    """True where the function gives its parameter another value: what it goes through is not what it was handed."""
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(site.node))


# What comes of it


def _judged(
    project: Project,
    module: SourceModule,
    node: ast.AST,
    loader: ast.expr,
    *,
    whole: bool,
    loop: tuple[str, int] | None = None,
) -> Iterator[WalkedAlone]:
    value = variance(project).value(module, loader)
    origin = value.origin
    if value.kind is not Kind.LOADER or value.cause is not Cause.DATA or value.proof is not Proof.PROVEN or origin is None:
        return
    if origin.by_name:
        return
    prepare = _prepare(project, module, loader)
    if prepare is None and not _surely_shared(project, module, loader):
        return
    made = _shuffling(module, prepare, loader) if prepare is not None else 0
    if made and prepare is not None and not _is_seeded(project, module, prepare):
        yield WalkedAlone(node, loader, Harm.WAITS, origin, loop, made)
    elif whole:
        yield WalkedAlone(node, loader, Harm.SHARE, origin, loop)


def _prepare(project: Project, module: SourceModule, loader: ast.expr) -> ast.Call | None:
    """The call of Accelerate that every rank makes and that gives the loader; None for others and under a test of the rank."""
    name, owner, home = dotted(loader), module.class_of(loader), module.function_of(loader)
    for call in module.calls_named(*_PREPARE):
        statement = module.statement_of(call)
        if not isinstance(statement, ast.Assign) or statement.value is not call or not isinstance(call.func, ast.Attribute):
            continue
        targets = {dotted(e) for t in statement.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else (t,))}
        if name not in targets or module.class_of(call) is not owner:
            continue
        if module.function_of(call) is not home and "." not in name:
            continue
        if is_accelerator(project, module, call.func.value) and not ranks_at(module, call, project=project).some:
            return call
    return None


def _surely_shared(project: Project, module: SourceModule, loader: ast.expr) -> bool:
    """True for a loader of torch that has a DistributedSampler wherever it is made: a helper may be asked for a plain one."""
    found = [o for o in origins(project, module, loader) if not is_none(o)]  # nobody goes through None
    loaders = [made for o in found if (made := loader_of(o)) is not None]
    if not loaders or len(loaders) != len(found):
        return False
    samplers = [(made, samplers_of(project, made)) for made in loaders]
    return all(some and all(_is_shared_by(project, made, s) for s in some) for made, some in samplers)


def _is_shared_by(project: Project, loader: Loader, sampler: Origin) -> bool:
    if is_distributed_sampler(project, sampler) or is_of_one_process(project, loader, sampler):
        return True
    return is_left_out(loader, sampler)


def _shuffling(module: SourceModule, prepare: ast.Call, loader: ast.expr) -> int:
    """The line of the call that makes the loader with `shuffle=True`, 0 where that is not written out."""
    given = [a for a in prepare.args if dotted(a) == dotted(loader)] or (prepare.args if len(prepare.args) == 1 else [])
    made = [b.value for g in given for b in name_or_field_bindings(module, g) if b.value is not None and b.value is not prepare]
    made += [g for g in given if isinstance(g, ast.Call)]
    shuffled = [any(k.arg == "shuffle" and is_true(k.value) for k in c.keywords) for c in made if isinstance(c, ast.Call)]
    return getattr(made[0], "lineno", 0) if shuffled and all(shuffled) and len(shuffled) == len(made) else 0


def _is_seeded(project: Project, module: SourceModule, prepare: ast.Call) -> bool:
    """True where Accelerate may be told to seed the order (`use_seedable_sampler`), or what to bring together (`rng_types`)."""
    assert isinstance(prepare.func, ast.Attribute)
    made = made_by(project, module, prepare.func.value)
    if not made or any(m.hides for m in made):
        return any(project.files_containing(name.encode()) for name in _OTHER_ORDERS)
    return any(m.keyword(name) is not None for m in made for name in _OTHER_ORDERS)
