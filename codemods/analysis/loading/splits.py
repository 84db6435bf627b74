"""Where data are divided by random numbers: splits, and permutations of which each rank takes its part; and what seeds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.passes import MOST_CALLERS
from codemods.analysis.loading.seeds import Seed, seeds_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.uses import uses_of
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk

_CLIMBS = 3
_MAKES_EQUAL = frozenset({"broadcast", "broadcast_object_list", "all_gather", "all_gather_object", "scatter_object_list"})


@record
class Split:
    """A call that divides data at random. argument: what seeds it, `generator` or `random_state`. source: "torch" or "numpy".

    taken: where each rank takes its part of it, for a permutation.
    """

    module: SourceModule
    call: ast.Call
    argument: str
    source: str
    taken: ast.AST | None = None

    @property
    def given(self) -> ast.expr | None:
        found = next((k.value for k in self.call.keywords if k.arg == self.argument), None)
        if found is None and last(dotted(self.call.func)) == "random_split" and len(self.call.args) > 2:
            found = self.call.args[2]
        return None if isinstance(found, ast.Constant) and found.value is None else found

    @property
    def hides(self) -> bool:
        return any(k.arg is None for k in self.call.keywords)


def splits_in(project: Project, module: SourceModule) -> Iterator[Split]:
    """The splits of a file that stay each rank's own: nobody makes them equal in the same function."""
    for call in module.calls_named("random_split", "train_test_split", "randperm", "permutation"):
        found = _split(project, module, call)
        if found is not None and not found.hides and not _made_equal(module, call):
            yield found


def _split(project: Project, module: SourceModule, call: ast.Call) -> Split | None:
    name = qualified(module, call.func)
    if last(name) == "random_split" and name.startswith("torch."):
        return Split(module, call, "generator", "torch")
    if name.startswith("sklearn.") and last(name) == "train_test_split":
        return Split(module, call, "random_state", "numpy")
    if name in ("torch.randperm", "numpy.random.permutation"):
        taken = _taken_by_rank(project, module, call)
        return Split(module, call, "generator", name.partition(".")[0], taken) if taken is not None else None
    return None


def _taken_by_rank(project: Project, module: SourceModule, call: ast.Call) -> ast.AST | None:
    """Where a slice with the rank in it takes a part of what a call gives a name in the same function."""
    up = module.statement_of(call)
    names = {dotted(t) for t in up.targets} - {""} if isinstance(up, ast.Assign) else set()
    function = module.function_of(call)
    for slice_ in module.nodes(ast.Slice):
        holder = module.parent(slice_)
        if isinstance(holder, ast.Subscript) and dotted(holder.value) in names and module.function_of(slice_) is function:
            if is_by_rank(project, module, slice_):
                return holder
    return None


def is_by_rank(project: Project, module: SourceModule, bounds: ast.Slice) -> bool:
    """True for `[rank::world]` and `[rank * n : (rank + 1) * n]`."""
    parts = [b for b in (bounds.lower, bounds.upper) if b is not None]
    nodes = [n for b in parts for n in walk(b) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
    return any(rank_source(module, n, project) is not None for n in nodes)


def _made_equal(module: SourceModule, call: ast.Call) -> bool:
    function = module.function_of(call)
    return any(module.function_of(c) is function for c in module.calls_named(*_MAKES_EQUAL))


def seed_above(project: Project, split: Split) -> Seed | None:
    """The last seed that is set before a split without a generator: above it in its function, or above a call of that."""
    return _above(project, split.module, split.call, split.source, 0)


def _above(project: Project, module: SourceModule, node: ast.AST, source: str, climbs: int) -> Seed | None:
    function = module.function_of(node)
    line = module.statement_of(node).lineno
    before: list[tuple[int, Seed]] = []
    for seed in seeds_of(project).found:
        if seed.own or not _seeds(seed, source):
            continue
        if seed.module is module and module.function_of(seed.call) is function and seed.call.lineno < line:
            before.append((seed.call.lineno, seed))
        owner = seed.module.function_of(seed.call)
        if owner is None or owner is function:
            continue
        for call in module.calls_named(owner.name):
            if module.function_of(call) is function and call.lineno < line:
                site = called_function(project, module, call)
                if site is not None and site.node is owner:
                    before.append((call.lineno, seed))
    if before:
        return max(before, key=lambda found: found[0])[1]
    if function is None or climbs >= _CLIMBS:
        return None
    for site in uses_of(project, module, function).outside_tests().calls[:MOST_CALLERS]:
        if not is_test_file(site.module.path):
            above = _above(project, site.module, site.call, source, climbs + 1)
            if above is not None:
                return above
    return None


def _seeds(seed: Seed, source: str) -> bool:
    name = qualified(seed.module, seed.call.func)
    if last(name) in ("seed_everything", "set_seed"):
        return True
    return name == "torch.manual_seed" if source == "torch" else name == "numpy.random.seed"


def without_rank(project: Project, module: SourceModule, value: ast.expr) -> ast.expr | None:
    """`seed` for `seed + rank`; None where the rank is in it in another way."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if rank_source(module, other, project) is not None and not _speaks(project, module, one):
            return one
    return None


def _speaks(project: Project, module: SourceModule, node: ast.expr) -> bool:
    nodes = [n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
    return any(rank_source(module, n, project) is not None for n in nodes)
