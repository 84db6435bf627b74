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
from codemods.analysis.call_graph import called_function
from codemods.analysis.literals import is_true
from codemods.analysis.loading.gone_through import Lists, given_to, gone_through_in, passes_of
from codemods.analysis.loading.surely_shared import surely_shared
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause, Kind, Link, Proof
from codemods.data.rank_variance import LOADER_NAMES
from codemods.files.source import SourceModule, walk_block, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
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


def walked_alone(project: Project, module: SourceModule) -> Iterator[WalkedAlone]:
    """One for each pass that rank 0 alone makes, in the order of the file."""
    found = [*_here(project, module), *_behind_calls(project, module)]
    seen: set[int] = set()
    for one in sorted(found, key=lambda w: (getattr(w.node, "lineno", 0), getattr(w.node, "col_offset", 0))):
        if id(one.node) not in seen:
            seen.add(id(one.node))
            yield one


def _here(project: Project, module: SourceModule) -> Iterator[WalkedAlone]:
    lists: list[Lists] = [*module.nodes(ast.ListComp), *module.nodes(ast.SetComp), *module.nodes(ast.DictComp)]
    for node, source, whole in passes_of(module.nodes(ast.For), lists, module.calls_named("next")):
        loader = _loader(project, module, source)
        if loader is None or _is_handed_over(project, module, node, loader) or not _is_alone(project, module, node):
            continue
        if loader is source or _only_there(project, module, source):
            yield from _judged(project, module, node, loader, whole=whole)


def _behind_calls(project: Project, module: SourceModule) -> Iterator[WalkedAlone]:
    for call in module.nodes(ast.Call):
        loaders = [a for a in given_to(call) if _is_named_loader(a) and not _is_handed_over(project, module, call, a)]
        if not loaders or not _is_alone(project, module, call):
            continue
        site = called_function(project, module, call)
        for loader in loaders if site is not None else ():
            assert site is not None
            if (found := gone_through_in(project, site, call, loader)) is not None:
                path, line, whole = found
                yield from _judged(project, module, call, loader, whole=whole, loop=(path, line))


def _is_named_loader(node: ast.expr) -> bool:
    """True for `test_loader`, `self.loader`, and an entry of such a name (`loaders["test"]`)."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return LOADER_NAMES.search(last(dotted(node.value)).removesuffix("s")) is not None
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
    if prepare is None and not surely_shared(project, module, loader):
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
        if not name or name not in targets or module.class_of(call) is not owner:
            continue
        if module.function_of(call) is not home and "." not in name:
            continue
        if is_accelerator(project, module, call.func.value) and not ranks_at(module, call, project=project).some:
            return call
    return None


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
