"""What seeds the numbers of a library last before a place runs: in its function, or above a call of that."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.loading.same_program import runs_of
from codemods.analysis.loading.seeds import (
    SEEDERS,
    Seed,
    argument_of,
    depends_on_rank,
    is_of_rank,
    is_rank_added,
    names_the_rank,
    seed_at,
    seeds_in,
)
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, stands_above, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_CLIMBS = 3


@record
class Seeding:
    """A call that seeds, itself or by a helper. seed: what is set in the end. of_rank: it is seen to differ between the ranks."""

    module: SourceModule
    call: ast.Call
    seed: Seed
    of_rank: bool


def seed_before(project: Project, module: SourceModule, node: ast.AST, source: str) -> Seeding | None:
    """The last seed of "torch", "numpy" or "random" that is set before `node` runs; None where none is seen."""
    return _before(project, module, node, source, 0)


def _before(project: Project, module: SourceModule, node: ast.AST, source: str, climbs: int) -> Seeding | None:
    function = module.function_of(node)
    statement = module.statement_of(node)
    found: list[Seeding] = []
    for call in module.nodes(ast.Call):
        if stands_above(call, statement) and module.function_of(call) is function:
            found += _of_call(project, module, call, source)
    if found:
        return max(found, key=lambda one: one.call.lineno)
    if function is None or climbs >= _CLIMBS:
        return None
    for site in runs_of(project, module, function):
        if (above := _before(project, site.module, site.call, source, climbs + 1)) is not None:
            return above
    return None


def _of_call(project: Project, module: SourceModule, call: ast.Call, source: str) -> Iterator[Seeding]:
    """The seeds that a call sets: itself, by a helper of the project in its own body, or by one that is not seen."""
    name = last(dotted(call.func))
    own = seed_at(module, call) if name in SEEDERS else None
    if own is not None:
        if not own.own and _seeds(own, source):
            yield Seeding(module, call, own, is_of_rank(project, own))
        return
    named = "seed" in name.lower()
    if not named and not call.args:
        return
    site = called_function(project, module, call)
    if site is not None:
        for seed in seeds_in(site.module) if site.module.holds(b"seed") else ():
            if not seed.own and site.module.function_of(seed.call) is site.node and _seeds(seed, source):
                yield Seeding(module, call, seed, _is_handed_rank(project, module, call, site, seed))
    elif named and name not in SEEDERS and dotted(call.func).partition(".")[0] in module.imports and call.args:
        seed = Seed(module, call, call.args[0], False)
        yield Seeding(module, call, seed, any(names_the_rank(project, module, a) for a in call.args))


def _is_handed_rank(project: Project, module: SourceModule, call: ast.Call, site: FunctionSite, seed: Seed) -> bool:
    """True where what this call hands to the helper, or the helper itself, puts the rank into the seed."""
    if seed.value is None or names_the_rank(project, site.module, seed.value):
        return is_of_rank(project, seed)
    given = {n.id: argument_of(site.node, n.id, call) for n in walk(seed.value) if isinstance(n, ast.Name)}
    handed = {name: value for name, value in given.items() if value is not None}
    if not handed:
        return is_of_rank(project, seed)
    return any(
        depends_on_rank(project, module, value) or is_rank_added(project, site.module, site.node, name)
        for name, value in handed.items()
    )


def _seeds(seed: Seed, source: str) -> bool:
    name = qualified(seed.module, seed.call.func)
    if last(name) in ("seed_everything", "set_seed"):
        return True
    return name in ("torch.manual_seed", "torch.random.manual_seed") if source == "torch" else name in _OTHERS[source]


_OTHERS = {"numpy": ("numpy.random.seed",), "random": ("random.seed",)}
