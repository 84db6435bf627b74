"""What a loop, a comprehension or `next(...)` goes through, and where a function goes through what it is handed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import walk, walk_block, walk_scope
from codemods.store.project import Project

_DEPTH = 2  # calls between the test and the loop

Lists = ast.ListComp | ast.SetComp | ast.DictComp


def passes_of(loops: list[ast.For], lists: list[Lists], calls: list[ast.Call]) -> Iterator[tuple[ast.AST, ast.expr, bool]]:
    """(loop, list or call, what it goes through, whether to the end)."""
    for loop in loops:
        yield loop, unpacked(loop.iter), not _is_left(loop) and not _takes_a_few(loop.iter)
    for made in lists:
        source = made.generators[0].iter
        yield made, unpacked(source), not _takes_a_few(source)
    for call in calls:
        if isinstance(call.func, ast.Name) and call.args:
            yield call, call.args[0], False


def _is_left(loop: ast.For) -> bool:
    """True for a loop that is left above its end: a few batches are wanted, not the set."""
    return any(isinstance(n, (ast.Break, ast.Return)) for n in walk_block(loop.body))


def _takes_a_few(source: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last(dotted(n.func)) == "islice" for n in walk(source))


def given_to(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def gone_through_in(
    project: Project, site: FunctionSite, call: ast.Call, given: ast.expr, depth: int = 0
) -> tuple[str, int, bool] | None:
    """Where the function goes through the argument, and whether to the end; None where it does not, or not all ranks may."""
    method = isinstance(site.module.parent(site.node), ast.ClassDef) and isinstance(call.func, ast.Attribute)
    bound = bind(site.node, call, bound=method) or {}
    name = next((n for n, value in bound.items() if value is given), "")
    if not name or depth > _DEPTH:
        return None
    names = _names_of(site, name)
    inside = [n for n in walk_scope(site.node) if isinstance(n, (ast.For, ast.Call, ast.ListComp, ast.SetComp, ast.DictComp))]
    loops = [n for n in inside if isinstance(n, ast.For)]
    lists = [n for n in inside if isinstance(n, (ast.ListComp, ast.SetComp, ast.DictComp))]
    calls = [n for n in inside if isinstance(n, ast.Call)]
    found: list[tuple[str, int, bool]] = []
    for node, source, whole in passes_of(loops, lists, [c for c in calls if dotted(c.func) == "next"]):
        walked = source.args[0] if isinstance(source, ast.Call) and dotted(source.func) == "iter" and source.args else source
        if isinstance(walked, ast.Name) and walked.id in names and not ranks_at(site.module, node, project=project).some:
            found.append((site.module.path, getattr(node, "lineno", 0), whole))
    for inner in calls:
        handed = next((a for a in given_to(inner) if isinstance(a, ast.Name) and a.id in names), None)
        further = called_function(project, site.module, inner) if handed is not None else None
        if handed is not None and further is not None and further.node is not site.node:
            deeper = gone_through_in(project, further, inner, handed, depth + 1)
            found += [deeper] if deeper is not None else []
    return max(found, key=lambda f: f[2], default=None)


def _names_of(site: FunctionSite, name: str) -> frozenset[str]:
    """The parameter and the names that stand for it (`shown = loader`, `shown = tqdm(loader)`).

    None of them where it is given another value: what the function goes through is not what it was handed.
    """
    names: set[str] = set()
    if not all(b.parameter or _stands_for(b, {name}) for b in bindings_in(site.module, site.node, name)):
        return frozenset()
    names.add(name)
    stored = (n.id for n in walk_scope(site.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    for other in dict.fromkeys(stored):
        bound = bindings_in(site.module, site.node, other)
        if bound and all(_stands_for(b, names) for b in bound):
            names.add(other)
    return frozenset(names)


def _stands_for(binding: Binding, names: set[str]) -> bool:
    if binding.value is None or binding.part:
        return False
    arms = [binding.value.body, binding.value.orelse] if isinstance(binding.value, ast.IfExp) else [binding.value]
    inner = [unpacked(arm) for arm in arms]
    return not _takes_a_few(binding.value) and all(isinstance(n, ast.Name) and n.id in names for n in inner)
