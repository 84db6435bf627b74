"""Is what a call gives dealt out to the ranks further down: by a DistributedSampler, by Accelerate, by a Trainer?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.loading.origins import Origin, made_facts, origins
from codemods.analysis.loading.prepared_data import prepared_data
from codemods.analysis.loading.samplers import is_distributed_sampler
from codemods.analysis.loading.seeds import names_the_rank
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.trainer_calls import trainer_calls
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_DATA = ("train_dataset", "eval_dataset")
# What is asked of rows this way is the same in whatever order they stand, or is no rows.
_SUMMARIES = frozenset(
    {"columns", "shape", "size", "dtypes", "unique", "nunique", "mean", "std", "min", "max", "sum", "value_counts", "features",
     "column_names", "num_rows", "describe", "info"}
)  # fmt: skip
_EQUALS = ("seed", "broadcast", "fork_rng", "set_rng_state", "enerator")


def is_dealt_by_trainer(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where a Trainer of the same function is handed it as data, and makes its loaders itself."""
    for trainer in trainer_calls(project, module):
        given = [value for name in _DATA if (value := trainer.argument(name)) is not None]
        if trainer.method("get_train_dataloader") is None and any(_comes_to(module, node, value) for value in given):
            return True
    return False


def is_dealt_by_sampler(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where a DistributedSampler of the same function, an heir of it, or a loader that Accelerate prepares is handed what is
    made of it.
    """
    return any(
        _comes_to(module, node, data) and not _is_sorted_between(module, node, data) for data in _by_index(project, module)
    )


def dealt_names(project: Project, module: SourceModule, node: ast.Call, names: set[str]) -> ast.expr | None:
    """What a DistributedSampler of the function, or Accelerate, deals out below, where what the names hold is in it and nothing
    sorts it.
    """
    for data in _by_index(project, module):
        if module.function_of(data) is not module.function_of(node) or data.lineno <= node.lineno:
            continue
        if names and _holds(module, data, names, node.lineno) and not _is_sorted_between(module, node, data):
            return data
    return None


def is_dealt_by_shard(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where each rank takes its share of it by its number: `rows.shard(num_shards=world, index=rank)` of `datasets`."""
    for call in module.calls_named("shard"):
        index = next((k.value for k in call.keywords if k.arg == "index"), call.args[1] if len(call.args) > 1 else None)
        if index is None or not isinstance(call.func, ast.Attribute) or not _is_the_rank(project, module, index):
            continue
        later = module.statement_of(call) is not module.statement_of(node) or any(n is node for n in walk(call.func.value))
        if later and _comes_to(module, node, call.func.value) and not _is_sorted_between(module, node, call):
            return True
    return False


def _is_the_rank(project: Project, module: SourceModule, index: ast.expr) -> bool:
    made = origins(project, module, index) if isinstance(index, ast.Name) else ()
    return names_the_rank(project, module, index) or (
        bool(made) and all(o.known and not o.path and names_the_rank(project, o.module, o.node) for o in made)
    )


def _is_sorted_between(module: SourceModule, node: ast.expr, end: ast.expr) -> bool:
    sorts = (c for c in module.calls_named("sort", "sorted") if module.function_of(c) is module.function_of(end))
    return any(node.lineno <= c.lineno <= end.lineno for c in sorts)


def is_drawn_in_a_sampler(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for a sampler that an heir of DistributedSampler goes through, by the numbers that each rank has for itself."""
    return any(_comes_to(module, node, inner) for inner in _dealt(project, module, wrappers=True))


def _by_index(project: Project, module: SourceModule) -> Iterator[ast.expr]:
    """The data of which each rank gets some indices."""
    yield from _dealt(project, module)
    yield from prepared_data(project, module)


def _dealt(project: Project, module: SourceModule, *, wrappers: bool = False) -> Iterator[ast.expr]:
    """What the samplers of a file deal out. wrappers: only those of a class with an `__iter__` of its own."""
    for call in module.nodes(ast.Call):
        if not (_is_wrapper(project, module, call) if wrappers else _is_sampler(project, module, call)):
            continue
        first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("dataset", "sampler")), None)
        if first is not None:
            yield first


def _is_sampler(project: Project, module: SourceModule, call: ast.Call) -> bool:
    return is_distributed_sampler(project, Origin(module, call)) or _heir(project, module, call) is not None


def _heir(project: Project, module: SourceModule, call: ast.Call) -> ClassFacts | None:
    facts = made_facts(project, Origin(module, call))
    is_heir = facts is not None and any(last(n) == "DistributedSampler" and n.startswith("torch.") for n in facts.external)
    return facts if is_heir else None


def _is_wrapper(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a class of which nothing gives the ranks the same random numbers."""
    facts = _heir(project, module, call)
    if facts is None or facts.method("__iter__") is None:
        return False
    texts = [site.module.text_of(site.node) for site in facts.lineage]
    return not any(word in text for text in texts for word in _EQUALS)


def _comes_to(module: SourceModule, node: ast.expr, end: ast.expr) -> bool:
    """True where `end` is made of `node`: by the names of one function that are given values with it, from there on down."""
    if any(n is node for n in walk(end)):
        return True
    function = module.function_of(end)
    if module.function_of(node) is not function:
        return False
    return _holds(module, end, set(), module.statement_of(node).lineno, node)


def _holds(module: SourceModule, end: ast.expr, names: set[str], since: int, node: ast.expr | None = None) -> bool:
    """True where `end` is made of what the names hold from a line on, or of `node`, in one function."""
    function = module.function_of(end)
    for assign in sorted(module.nodes(ast.Assign), key=lambda a: a.lineno):
        if assign.lineno < since or assign.lineno > end.lineno or module.function_of(assign) is not function:
            continue
        given = {name for target in assign.targets if (name := dotted(target))}
        if any(n is node for n in walk(assign.value)) or _uses(module, assign.value, names):
            names = names | given
        elif node is None and assign.lineno > since:
            names = names - given  # it holds something else from here on
    return _uses(module, end, names)


def _uses(module: SourceModule, value: ast.expr, names: set[str]) -> bool:
    """True where the rows of one of the names go into a value, and not only how many there are, or what they have in common."""
    named = (n for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) in names)
    return any(not _is_summed_up(module, n) for n in named)


def _is_summed_up(module: SourceModule, node: ast.expr) -> bool:
    """True under `len(rows)`, and for `rows.label.unique()`."""
    below, up = node, module.parent(node)
    while isinstance(up, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(up, ast.Attribute) and up.attr in _SUMMARIES:
            return True
        if isinstance(up, ast.Call) and up.func is not below:
            return dotted(up.func) == "len"
        if isinstance(up, ast.Subscript) and up.value is not below:
            return False
        below, up = up, module.parent(up)
    return False
