"""Data that somebody puts in another order in each epoch: the sampler's own order is then the same, and the batches are not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.loading.passes import Epochs
from codemods.analysis.loading.untold import Untold
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_REORDERS = lazy(r"shuffle|permut|resampl|reorder|re_?generate|re_?draw|mix_up_order", 2)  # 2: re.IGNORECASE
_DATA = frozenset({"dataset", "data_source"})  # what loaders and samplers call it


def is_reordered(missing: Untold, epochs: Epochs) -> bool:
    """True where a round, down to the pass, has the data or the loader change its order: `loader.dataset.shuffle(epoch)`."""
    names = _DATA | {last(dotted(missing.found.source)), *_given_to(missing.sampler.node)} - {""}
    return any(_changes_order(call, names) for module, body in _on_the_way(missing, epochs) for call in _calls(module, body))


def _given_to(sampler: ast.expr) -> Iterator[str]:
    """The name of what a sampler deals out."""
    if isinstance(sampler, ast.Call):
        given = sampler.args[0] if sampler.args else next((k.value for k in sampler.keywords if k.arg == "dataset"), None)
        yield last(dotted(given))


def _on_the_way(missing: Untold, epochs: Epochs) -> Iterator[tuple[SourceModule, ast.AST]]:
    """The loop over epochs, and the functions from there down to the pass."""
    yield epochs.module, epochs.loop
    below = [(site.module, site.call) for site in epochs.way[1:]] + [(missing.found.module, missing.found.loop)]
    for module, node in below if epochs.way else ():
        if (function := module.function_of(node)) is not None:
            yield module, function


def _calls(module: SourceModule, body: ast.AST) -> Iterator[ast.Call]:
    inside = (n for n in walk(body) if isinstance(n, ast.Call))
    return (call for call in inside if _REORDERS.search(last(dotted(call.func))) is not None)


def _changes_order(call: ast.Call, names: frozenset[str]) -> bool:
    """True for a method of the data, and for a function that is handed the data or a list in it: `random.shuffle(data.rows)`."""
    func = call.func
    if isinstance(func, ast.Attribute) and last(dotted(func.value)) in names:
        return True
    return any(set(dotted(a).split(".")) & names for a in call.args)
