"""Values that rank 0 has and that are None on the others: `writer = Writer() if rank == 0 else None`, a result that only rank 0
is given back.

Who comes to a place is answered by whoever asks here: a test of such a value is one of the rank, and guards are made of tests.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function, may_speak_of_ranks
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.rank_sets import Ranks, Split
from codemods.analysis.ranks.set_elsewhere import may_be_set_elsewhere
from codemods.analysis.ranks.several_processes import is_of_one_process, several_processes
from codemods.analysis.reaching import reaching
from codemods.data.rank_names import EXIT_CALLS, LOCAL_DECORATORS, ZERO_DECORATORS
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_PLAIN = frozenset({"no_grad", "inference_mode", "staticmethod", "classmethod"}) | ZERO_DECORATORS | LOCAL_DECORATORS
_DEPTH = 3


@record
class Partial:
    """A value of rank 0. node: where it gets it, in `module`; ranks: rank 0 of the run, or of each node."""

    module: SourceModule
    node: ast.AST
    ranks: Ranks


@record
class Asked:
    """Who comes to a place, and what a test says of ranks, as one question about both is answered. name: what tells it apart."""

    name: str
    ranks_at: Callable[[Project, SourceModule, ast.AST], Ranks]
    split_of: Callable[[Project, SourceModule, ast.expr], Split | None]


def none_elsewhere(project: Project, module: SourceModule, node: ast.expr, asked: Asked) -> Partial | None:
    """Where rank 0 gets the value of a name, an attribute of this object or a call that is None on all other ranks."""
    return _partial(project, module, node, asked, 0)


def _partial(project: Project, module: SourceModule, node: ast.expr, asked: Asked, depth: int) -> Partial | None:
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Call):
        return _given(project, module, node, asked, depth)
    if isinstance(node, ast.IfExp):
        return _chosen(project, module, node, asked)
    if isinstance(node, ast.Name):
        if node.id in module.imports:
            return None
        bound = bindings_of(module, node)
        return _of_bindings(project, module, reaching(module, node, bound), asked, depth) if bound else None
    if isinstance(node, ast.Attribute) and dotted(node.value) == "self":
        owner = module.class_of(node)
        bound = attribute_bindings(module, node)
        given = {id(b.node): b for b in bound}
        if any(is_none(given[id(s)].value) for s in _run_above(module, node) if id(s) in given):
            return None  # emptied for all of them
        if owner is None:
            return None
        found = _of_bindings(project, module, bound, asked, depth, empty=_is_none_in(owner, node.attr))
        own = found and not may_be_set_elsewhere(project, module, owner, node.attr, or_none=True)
        return found if own else None
    return None


def _of_bindings(
    project: Project, module: SourceModule, bound: Iterable[Binding], asked: Asked, depth: int, *, empty: bool = False
) -> Partial | None:
    """What holds for a name with these bindings; empty: something else makes it None first."""
    found: list[Partial] = []
    for one in bound:
        if one.parameter or one.value is None:
            return None
        if is_none(one.value):
            empty = True
        elif is_of_one_process(module, one.node):
            continue
        elif (ranks := asked.ranks_at(project, module, one.node)) in _OF_ZERO:
            found.append(Partial(module, one.node, ranks))
        elif ranks.some or one.part or (made := _partial(project, module, one.value, asked, depth + 1)) is None:
            return None
        else:
            empty = True
            found.append(made)
    return found[0] if found and empty and len({f.ranks for f in found}) == 1 else None


def _chosen(project: Project, module: SourceModule, node: ast.IfExp, asked: Asked) -> Partial | None:
    """`Writer() if rank == 0 else None`."""
    split = asked.split_of(project, module, node.test)
    if split is None:
        return None
    ranks = split.true if is_none(node.orelse) else split.false if is_none(node.body) else Ranks.ALL
    return Partial(module, node, ranks) if ranks in _OF_ZERO else None


# What functions give back


def _given(project: Project, module: SourceModule, call: ast.Call, asked: Asked, depth: int) -> Partial | None:
    if not may_speak_of_ranks(project, module, call):
        return None
    site = called_function(project, module, call)
    if site is None or site.node.name == "__init__" or isinstance(site.node, ast.AsyncFunctionDef):
        return None
    return gives_none_elsewhere(project, site, asked, depth)


def gives_none_elsewhere(project: Project, site: FunctionSite, asked: Asked, depth: int = 0) -> Partial | None:
    """Where a function gives rank 0 a value, and all others None."""
    key = ("gives none elsewhere", asked.name, *site.key, depth)
    return project.memo(key, lambda: _of_function(project, site, asked, depth))


def _of_function(project: Project, site: FunctionSite, asked: Asked, depth: int) -> Partial | None:
    module, function = site.module, site.node
    if any(last(qualified(module, d.func if isinstance(d, ast.Call) else d)) not in _PLAIN for d in function.decorator_list):
        return None
    found: list[Partial] = []
    for node in walk_scope(function):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return None
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and dotted(node.func) in EXIT_CALLS):
            if asked.ranks_at(project, module, node) not in (Ranks.ALL, *_OF_ZERO):
                return None  # the others do not come back
        if not isinstance(node, ast.Return) or node.value is None or is_none(node.value) or _is_for_one(module, node):
            continue
        ranks = asked.ranks_at(project, module, node)
        made = Partial(module, node, ranks) if ranks in _OF_ZERO else None
        if made is None and not ranks.some:
            made = _partial(project, module, node.value, asked, depth + 1)
        if made is None:
            return None
        found.append(made)
    return found[0] if found and len({f.ranks for f in found}) == 1 else None


def _is_for_one(module: SourceModule, node: ast.Return) -> bool:
    """True where a run of several processes has returned by then, or does not come here."""
    if is_of_one_process(module, node):
        return True
    return any(
        isinstance(s, ast.If) and several_processes(module, s.test) is True and leaves(s.body) for s in _run_above(module, node)
    )


def _run_above(module: SourceModule, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements above a place in its block, and in those round it."""
    below = node
    for up in module.ancestors(node):
        yield from above(module, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _is_none_in(owner: ast.ClassDef, attribute: str) -> bool:
    """True for `writer = None` in the class body."""
    for statement in owner.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == attribute for t in targets):
            return is_none(getattr(statement, "value", None))
    return False
