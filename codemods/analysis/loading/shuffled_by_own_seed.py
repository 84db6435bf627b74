"""Loaders that Lightning or Fabric shares out by a seed which each rank has for itself.

`seed_everything` leaves its number in `PL_GLOBAL_SEED`, and the DistributedSampler that the framework makes shuffles by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_fabric
from codemods.analysis.literals import is_true
from codemods.analysis.loading.handed_loaders import Handed, handed_loaders
from codemods.analysis.loading.origins import origins
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.loading.seeds import Seed, is_own_number, names_the_rank, seeds_in
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.seen_starts import is_of_several
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# The number may come from the parent, a worker that is spawned does not run the script again, and the sampler may be the user's.
_OTHERWISE = (b"PL_GLOBAL_SEED", b"ddp_spawn", b"ddp_notebook", b"ddp_fork", b"use_distributed_sampler", b"replace_sampler_ddp")
_SPREADS = (b"broadcast", b"all_reduce", b"all_gather")


@record
class OwnOrder:
    """own: what makes the seed another one on each rank, in `module`. handed: a loader that is shuffled by it."""

    seed: Seed
    module: SourceModule
    own: ast.expr
    handed: Handed
    drawn: bool


def orders_by_own_seed(project: Project, module: SourceModule) -> Iterator[OwnOrder]:
    """One for each such seed of a file that is the only one of its program."""
    seeds = [s for s in seeds_in(module) if _is_of_the_framework(project, s)]
    if len(seeds) != 1 or any(module.holds(word) for word in _SPREADS) or _is_otherwise(project):
        return
    seed = seeds[0]
    own = _own_part(project, module, seed)
    if own is None or ranks_reaching(project, module, seed.call).some or _is_seeded_elsewhere(project, seed):
        return
    handed = next((h for h in handed_loaders(project) if _is_shuffled(project, module, seed, h)), None)
    if handed is not None and is_of_several(project, module, seed.call):
        yield OwnOrder(seed, *own, handed, not names_the_rank(project, *own))


def _is_otherwise(project: Project) -> bool:
    return any(project.files_containing(word) for word in _OTHERWISE)


def _is_of_the_framework(project: Project, seed: Seed) -> bool:
    if seed.value is None or last(qualified(seed.module, seed.call.func)) != "seed_everything":
        return isinstance(seed.call.func, ast.Attribute) and seed.value is not None and _of_fabric(project, seed)
    return family(qualified(seed.module, seed.call.func)) == "lightning" or _of_fabric(project, seed)


def _of_fabric(project: Project, seed: Seed) -> bool:
    func = seed.call.func
    return isinstance(func, ast.Attribute) and func.attr == "seed_everything" and is_fabric(project, seed.module, func.value)


def _own_part(project: Project, module: SourceModule, seed: Seed) -> tuple[SourceModule, ast.expr] | None:
    """What stands in the seed, or in what its names are given, and is each process's own."""
    assert seed.value is not None
    if _is_own(project, module, seed.value):
        return module, seed.value
    for node in walk(seed.value):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            for origin in origins(project, module, node):
                if not origin.path and _is_own(project, origin.module, origin.node):
                    return origin.module, origin.node
            for value in _put_into(module, node) if isinstance(node, ast.Attribute) else ():
                if _is_own(project, module, value):
                    return module, value
    return None


def _put_into(module: SourceModule, field: ast.Attribute) -> Iterator[ast.expr]:
    """What a field is given in the same function, above: `config.seed = randint(0, 999)`."""
    name, function = dotted(field), module.function_of(field)
    for node in module.nodes(ast.Assign):
        if any(dotted(t) == name for t in node.targets) and module.function_of(node) is function and node.lineno < field.lineno:
            yield node.value


def _is_own(project: Project, module: SourceModule, value: ast.expr) -> bool:
    return names_the_rank(project, module, value) or is_own_number(value)


def _is_seeded_elsewhere(project: Project, seed: Seed) -> bool:
    """True where another seed may be the last one, or fixes what this one is drawn from."""
    for path in project.files_containing(b"seed"):
        other = project.module(path) if path.endswith(".py") and same_program(project, path, seed.module.path) else None
        if other is not None and any(not s.own and s.call is not seed.call for s in seeds_in(other)):
            return True
    return False


def _is_shuffled(project: Project, module: SourceModule, seed: Seed, handed: Handed) -> bool:
    """True for a loader that the framework gives a sampler which shuffles, once the seed is set."""
    loader = handed.loader
    wish = loader.argument("shuffle", 2)
    if loader.hides or loader.sampler is not None or loader.batch_sampler is not None or wish is None or not is_true(wish):
        return False
    if not same_program(project, module.path, handed.module.path):
        return False
    together = handed.module is module and module.function_of(handed.node) is module.function_of(seed.call)
    return not together or getattr(handed.node, "lineno", 0) > seed.call.lineno
