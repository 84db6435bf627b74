"""What a test in a model's code asks: a random number, the data, the configuration."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.model.flow_frame import Env, Frame
from codemods.analysis.model.flow_values import NONE, NOTHING, UNSET, Cause
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_RANDOM_TORCH = frozenset({"rand", "bernoulli", "randint", "randperm", "multinomial"})
_RANDOM_WORDS = frozenset(
    {"random", "uniform", "bernoulli_", "bernoulli", "randint", "choice", "random_sample", "rand", "randrange", "uniform_"}
)
_GENERATOR = lazy(r"(^|[._])(rng|random|generator|gen|np_random|rand)$")
_SCHEDULE = lazy(
    r"(^|[._])(epoch|current_epoch|global_step|step|iteration|num_updates|n_iter|steps|iters|batch_idx|training_step)$"
)
_RANK = lazy(r"(^|[._])(rank|global_rank|local_rank|is_global_zero|get_rank|is_main_process)$")
_DATA_CALLS = frozenset(
    {"any", "all", "item", "sum", "max", "min", "mean", "numel", "nonzero", "nelement", "isnan", "equal", "count_nonzero"}
)
_SHAPES = frozenset({"shape", "size", "dim", "ndim", "len"})


def is_random_call(module: SourceModule, call: ast.Call) -> bool:
    """`random.random()`, `np.random.rand()`, `torch.rand(1)`, `self.rng.uniform()`: a call that draws a random number."""
    name = qualified(module, call.func)
    if name.startswith(("random.", "numpy.random.", "secrets.")):
        return last(name) not in ("seed", "default_rng", "RandomState", "Random", "getstate")
    if name.startswith("torch."):
        return last(name) in _RANDOM_TORCH and not name.startswith("torch.nn")
    if isinstance(call.func, ast.Attribute) and call.func.attr in _RANDOM_WORDS:
        return bool(_GENERATOR.search(dotted(call.func.value)))
    return False


def cause_of(
    module: SourceModule, test: ast.expr, *, random: bool, parameters: frozenset[str], optional: frozenset[str] = NONE
) -> Cause:
    """What decides the test.

    random: a name in it holds a random number. parameters: those of the method it stands in; optional: those that have a
    default, and what is made of them alone (the cache of a decoder, say): training may never give them.
    """
    if random or any(isinstance(n, ast.Call) and is_random_call(module, n) for n in walk(test)):
        return Cause.RANDOM
    names = [dotted(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))]
    if any(_RANK.search(n) for n in names):
        return Cause.RANK
    if any(_SCHEDULE.search(n) for n in names):
        return Cause.SCHEDULE
    calls = [n for n in walk(test) if isinstance(n, ast.Call)]
    if any(isinstance(c.func, ast.Attribute) and c.func.attr in _DATA_CALLS for c in calls):
        return Cause.DATA
    roots = {n.partition(".")[0] for n in names if n}
    if roots and roots <= {"self"} | set(module.imports):
        return Cause.CONFIG
    if any(last(n) in _SHAPES for n in names):
        return Cause.ARGUMENT if any(r in optional for r in roots) or _asks_for_channels(test) else Cause.SHAPE
    return Cause.ARGUMENT if roots & parameters else Cause.OTHER


def _asks_for_channels(test: ast.expr) -> bool:
    """True for `x.shape[1] == 3` and `x.ndim == 4`: how the caller means the call, not what is in the batch."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return False
    asked, number = test.left, test.comparators[0]
    if not isinstance(number, ast.Constant):
        return False
    if isinstance(asked, ast.Call) and last(dotted(asked.func)) == "size" and asked.args:
        at: ast.expr = asked.args[0]
    elif isinstance(asked, ast.Subscript) and last(dotted(asked.value)) == "shape":
        at = asked.slice
    else:
        return last(dotted(asked.func if isinstance(asked, ast.Call) else asked)) in ("ndim", "dim")
    return not (isinstance(at, ast.Constant) and at.value == 0)


def varies(frame: Frame, env: Env, node: ast.expr, seen: frozenset[str] = NONE) -> bool:
    """True where an expression depends on what the method is given; loop counters, settings and literals do not."""
    for name in {n.id for n in walk(node) if isinstance(n, ast.Name)} - seen - {"self"}:
        if name in frame.parameters:
            value = env.get(name, NOTHING)
            if not value.index_of and value.constant is UNSET:
                return True
            continue
        sources = [*_sources(frame.function, name)]
        if any(varies(frame, env, source, seen | {name}) for source in sources):
            return True
    return False


def optional_names(frame: Frame, test: ast.expr) -> frozenset[str]:
    """The names of a test that hold a parameter with a default, or a part of one (`key, value = cache`)."""
    given = frozenset(defaults(frame.function))
    found = set()
    for name in {n.id for n in walk(test) if isinstance(n, ast.Name)}:
        sources = list(_sources(frame.function, name))
        made = [s for s in sources if {n.id for n in walk(s) if isinstance(n, ast.Name)} & given]
        if name in given or (made and name not in frame.parameters):
            found.add(name)
    return frozenset(found)


def _sources(function: FunctionNode | ast.Lambda, name: str) -> Iterator[ast.expr]:
    """What a local name is made of: assigned values, what a loop goes over."""
    for node in walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets, source = node.targets, node.value
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets, source = [node.target], node.iter
        elif isinstance(node, ast.AugAssign):
            targets, source = [node.target], node.value
        if any(_fills(t, name) for t in targets):
            yield source


def _fills(target: ast.expr, name: str) -> bool:
    """True where a target binds the name, or puts something into what it holds; an index in it is only read."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_fills(t, name) for t in target.elts)
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    return isinstance(target, ast.Name) and target.id == name
