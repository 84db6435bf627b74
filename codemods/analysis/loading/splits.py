"""Where data are divided by random numbers: splits, and orders of which each rank takes its part; and what seeds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.literals import is_none
from codemods.analysis.loading.cut_by_helper import cut_by_helper
from codemods.analysis.loading.cut_in_two import cut_in_two
from codemods.analysis.loading.dealt_further_down import (
    dealt_names,
    is_dealt_by_sampler,
    is_dealt_by_shard,
    is_dealt_by_trainer,
    is_drawn_in_a_sampler,
)
from codemods.analysis.loading.mixed_in_sets import dealt_after_mixing
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.loading.seed_before import Seeding, seed_before
from codemods.analysis.loading.seeds import names_the_rank
from codemods.analysis.names import dotted, is_from, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import SourceModule, called_name
from codemods.runtime.record import record
from codemods.store.project import Project

_MAKES_EQUAL = frozenset({"broadcast", "broadcast_object_list", "all_gather", "all_gather_object", "scatter_object_list"})
_DRAWS = ("random_split", "train_test_split", "randperm", "permutation", "sample", "shuffle")
_IN_PLACE = ("random.shuffle", "numpy.random.shuffle")
_SAMPLERS = ("SubsetRandomSampler", "RandomSampler")  # a weighted one draws with replacement: its shares overlap anyway


@record
class Split:
    """A call that divides data at random. argument: what seeds it, `generator`, `random_state`, `seed`.

    source: "torch", "numpy", "random". taken: where each rank takes its part of it, for a permutation and what is mixed in place.
    dealt: a sampler does so. cut: it is cut into a part to train on and the rest, at `taken`, here or in a function.
    loader: a loader whose ranks share the indices of the data set that looks them up in it.
    """

    module: SourceModule
    call: ast.Call
    argument: str
    source: str
    taken: ast.AST | None = None
    dealt: bool = False
    cut: bool = False
    loader: Loader | None = None

    @property
    def given(self) -> ast.expr | None:
        found = next((k.value for k in self.call.keywords if k.arg == self.argument), None)
        if found is None and last(dotted(self.call.func)) == "random_split" and len(self.call.args) > 2:
            found = self.call.args[2]
        return None if is_none(found) else found

    @property
    def outcome(self) -> str:
        """What comes of it where each rank draws other numbers."""
        if not self.cut and called_name(self.call) in ("shuffle", *_SAMPLERS):
            return "each rank has the data in another order: their shares overlap, and some samples are never seen"
        if self.dealt:
            return "each rank has other samples, or another order of them: their shares overlap, and some samples are never seen"
        return "each rank divides the data in another way"

    @property
    def repair(self) -> str:
        """What to do about it where no argument of the call can be set."""
        if self.source == "random":
            return "mix them by a generator with a seed of its own, `random.Random(0).shuffle(…)`"
        if self.taken is not None and self.source == "numpy":
            return f"draw them by a generator with a seed of its own, `np.random.default_rng(0).{called_name(self.call)}(…)`"
        return f"give it {self.argument}={'torch.Generator().manual_seed(0)' if self.argument == 'generator' else '0'}"

    @property
    def hides(self) -> bool:
        return any(k.arg is None for k in self.call.keywords)


def splits_in(project: Project, module: SourceModule) -> Iterator[Split]:
    """The splits of a file that stay each rank's own: nobody makes them equal in the same function."""
    for call in module.calls_named(*_DRAWS, *_SAMPLERS):
        found = _split(project, module, call)
        if found is not None and not found.hides and not _made_equal(module, call):
            yield found


def _split(project: Project, module: SourceModule, call: ast.Call) -> Split | None:
    name = qualified(module, call.func)
    if last(name) == "random_split" and name.startswith("torch."):
        return Split(module, call, "generator", "torch")
    if name.startswith("sklearn.") and last(name) == "train_test_split":
        return Split(module, call, "random_state", "numpy")
    if _is_of_datasets(module, call) or _is_order_of_datasets(project, module, call):
        given = any(k.arg == "generator" for k in call.keywords)
        return Split(module, call, "generator" if given else "seed", "numpy")
    if last(name) in _SAMPLERS:
        wrapped = name.startswith("torch.") and is_drawn_in_a_sampler(project, module, call)
        return Split(module, call, "generator", "torch") if wrapped else None
    if _is_a_part_of_rows(module, call) or _are_dealt_rows(project, module, call):
        return Split(module, call, "random_state", "numpy")
    if name in ("torch.randperm", "numpy.random.permutation", *_IN_PLACE):
        names = _names_of(module, call, in_place=name in _IN_PLACE)
        own, source = _taken_by_rank(project, module, call, names), name.partition(".")[0]
        taken = own or dealt_names(project, module, call, names)
        if taken is None and (half := cut_in_two(module, call, names) or cut_by_helper(project, module, call, names)) is not None:
            return Split(module, call, "generator", source, half, cut=True)
        if taken is None and (loader := dealt_after_mixing(project, module, call, names)) is not None:
            return Split(module, call, "generator", source, loader.call, dealt=True, loader=loader)
        return Split(module, call, "generator", source, taken, own is None) if taken is not None else None
    return None


def _names_of(module: SourceModule, call: ast.Call, *, in_place: bool) -> set[str]:
    if in_place:
        return {dotted(call.args[0])} - {""} if len(call.args) == 1 else set()
    up = module.statement_of(call)
    return {dotted(t) for t in up.targets} - {""} if isinstance(up, ast.Assign) else set()


def _is_of_datasets(module: SourceModule, call: ast.Call) -> bool:
    """True for `rows.train_test_split(test_size=0.1)` of a data set of the package `datasets`, which draws by numpy's numbers."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "train_test_split":
        return False
    if dotted(call.func.value).partition(".")[0] in module.imports:
        return False
    if any(k.arg == "shuffle" and not (isinstance(k.value, ast.Constant) and k.value.value is True) for k in call.keywords):
        return False
    return len(call.args) < 2 and any(is_from(name, "datasets") for name in module.imported_modules)


def _is_order_of_datasets(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `rows.shuffle()` of the package `datasets`, which the Trainer, `shard`, a sampler or Accelerate deals out then."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "shuffle" or call.args:
        return False
    if dotted(call.func.value).partition(".")[0] in module.imports or any(k.arg == "buffer_size" for k in call.keywords):
        return False
    if module.holds(b"streaming") or not any(is_from(name, "datasets") for name in module.imported_modules):
        return False
    dealt = is_dealt_by_trainer(project, module, call) or is_dealt_by_shard(project, module, call)
    return dealt or is_dealt_by_sampler(project, module, call)


def _are_dealt_rows(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for rows that pandas draws (`rows.sample(frac=1)`), of which each rank is then given its share."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "sample":
        return False
    if dotted(call.func.value).partition(".")[0] in module.imports:
        return False
    drawn = any(k.arg in ("frac", "n", "random_state") for k in call.keywords)
    return drawn and is_dealt_by_sampler(project, module, call)


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


def _taken_by_rank(project: Project, module: SourceModule, call: ast.Call, names: set[str]) -> ast.AST | None:
    """Where a slice with the rank in it takes a part of what a call gives a name in the same function."""
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


def seed_above(project: Project, split: Split) -> Seeding | None:
    """The last seed that is set before a split without a generator: above it in its function, or above a call of that."""
    return seed_before(project, split.module, split.call, split.source)


def without_rank(project: Project, module: SourceModule, value: ast.expr) -> ast.expr | None:
    """`seed` for `seed + rank`, or for a name of it; None where the rank is in it in another way."""
    if isinstance(value, ast.Name):
        bound = bindings_of(module, value)
        here = len(bound) == 1 and module.function_of(bound[0].node) is module.function_of(value)
        value = bound[0].value if here and bound[0].value is not None and not bound[0].part else value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if _is_times_the_rank(project, module, other) and not names_the_rank(project, module, one):
            return one
    return None


def _is_times_the_rank(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for the rank, and for a product with it, which is 0 on rank 0."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return any(_is_times_the_rank(project, module, factor) for factor in (value.left, value.right))
    return rank_source(module, value, project) is not None
