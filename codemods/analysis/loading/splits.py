"""Where data are divided by random numbers: splits, and permutations of which each rank takes its part; and what seeds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.same_program import callers
from codemods.analysis.loading.seeds import SEEDERS, Seed, names_the_rank, seeds_in
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, stands_above

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
    for call in module.calls_named("random_split", "train_test_split", "randperm", "permutation", "sample"):
        found = _split(project, module, call)
        if found is not None and not found.hides and not _made_equal(module, call):
            yield found


def _split(project: Project, module: SourceModule, call: ast.Call) -> Split | None:
    name = qualified(module, call.func)
    if last(name) == "random_split" and name.startswith("torch."):
        return Split(module, call, "generator", "torch")
    if name.startswith("sklearn.") and last(name) == "train_test_split":
        return Split(module, call, "random_state", "numpy")
    if _is_a_part_of_rows(module, call):
        return Split(module, call, "random_state", "numpy")
    if name in ("torch.randperm", "numpy.random.permutation"):
        taken = _taken_by_rank(project, module, call)
        return Split(module, call, "generator", name.partition(".")[0], taken) if taken is not None else None
    return None


def _is_a_part_of_rows(module: SourceModule, call: ast.Call) -> bool:
    """True for `train = rows.sample(frac=0.9)` of pandas where `rows.drop(train.index)` is the rest."""
    up = module.parent(call)
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "sample" or not isinstance(up, ast.Assign):
        return False
    taken = {f"{dotted(t)}.index" for t in up.targets if dotted(t)}
    if not any(k.arg in ("frac", "n") for k in call.keywords):
        return False
    function = module.function_of(call)
    drops = (c for c in module.calls_named("drop") if module.function_of(c) is function and c.args)
    return any(dotted(c.args[0]) in taken for c in drops)


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
    return any(names_the_rank(project, module, b) for b in (bounds.lower, bounds.upper) if b is not None)


def _made_equal(module: SourceModule, call: ast.Call) -> bool:
    function = module.function_of(call)
    return any(module.function_of(c) is function for c in module.calls_named(*_MAKES_EQUAL))


def seed_above(project: Project, split: Split) -> Seed | None:
    """The last seed that is set before a split without a generator: above it in its function, or above a call of that."""
    return _above(project, split.module, split.call, split.source, 0)


def _above(project: Project, module: SourceModule, node: ast.AST, source: str, climbs: int) -> Seed | None:
    function = module.function_of(node)
    statement = module.statement_of(node)
    before: list[tuple[int, Seed]] = []
    for call in module.nodes(ast.Call):
        if stands_above(call, statement) and module.function_of(call) is function:
            before += [(call.lineno, s) for s in _seeds_of_call(project, module, call) if _seeds(s, source)]
    if before:
        return max(before, key=lambda found: found[0])[1]
    if function is None or climbs >= _CLIMBS:
        return None
    for site in callers(project, module, function):
        if (above := _above(project, site.module, site.call, source, climbs + 1)) is not None:
            return above
    return None


def _seeds_of_call(project: Project, module: SourceModule, call: ast.Call) -> list[Seed]:
    """The seeds that a call sets: itself, or a helper of the project in its own body."""
    if last(dotted(call.func)) in SEEDERS and (own := [s for s in seeds_in(module) if s.call is call and not s.own]):
        return own
    if "seed" not in last(dotted(call.func)).lower() and not call.args:
        return []
    site = called_function(project, module, call)
    if site is None or not site.module.holds(b"seed"):
        return []
    return [s for s in seeds_in(site.module) if not s.own and site.module.function_of(s.call) is site.node]


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
        if rank_source(module, other, project) is not None and not names_the_rank(project, module, one):
            return one
    return None
