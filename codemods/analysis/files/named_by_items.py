"""Is a file named after an item of the loader that a loop goes through (`batch["scene"]`), or after a sample by its own name?

Other ranks may have other items.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, is_parameter, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

OWN_ITEMS = (
    "each rank may have items of its own: gather them and let rank 0 write, or put the rank into the name, unless somebody reads "
    "the file under this one"
)
_DEALS = lazy(rb"(?<!class )\bDistributed\w*Sampler\w*\(")
LOADERS = lazy(r"loader|batches|\bdl\b", re.IGNORECASE)
# What the names of single samples are called: `sid`, `image_id`, `utt_name`, `sample_ids`.
_SAMPLES = lazy(
    r"(?:sid|uid|qid|(?:sample|image|img|video|vid|clip|utt|utterance|item|example|query|passage|doc|scene|patient|case|frame)"
    r"_?(?:id|idx|index|key|name|hash))s?",
    re.IGNORECASE,
)
_ROUNDS = 4  # assignments that lead from the batch to the name, in any order


def is_named_by_an_item(module: SourceModule, path: ast.expr) -> bool:
    """True for a path made of what such a loop draws, over names that its body gives; the count of the items is no item."""
    for up in module.ancestors(path):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.For) and LOADERS.search(module.text_of(up.iter)):
            drawn = _made_of(up, _targets(up))
            return any(isinstance(n, ast.Name) and n.id in drawn for n in walk(path))
    return False


def is_named_by_a_sample(module: SourceModule, path: ast.expr) -> bool:
    """True for a path made of a parameter, or of a loop's item, that is called as a sample is: `f"{sid}.pt"`."""
    names = [n for n in walk(path) if isinstance(n, ast.Name)]
    for _ in range(2):
        values = [v for name in names for v in assigned(module, name, name.id)[:4]]
        names += [n for value in values for n in walk(value) if isinstance(n, ast.Name)]
    return any(_SAMPLES.fullmatch(n.id) and (is_parameter(module, n.id, n) or _is_drawn(module, n)) for n in names)


def _is_drawn(module: SourceModule, name: ast.Name) -> bool:
    """True for a target of the loop that it stands in."""
    loops = (up for up in module.ancestors(name) if isinstance(up, ast.For))
    return any(isinstance(n, ast.Name) and n.id == name.id for loop in loops for n in walk(loop.target))


def deals_out_items(project: Project) -> bool:
    """True where a file of the project gives a loader a sampler for several ranks, torch's or its own."""

    def search() -> bool:
        return any(_DEALS.search(project.read(p) or b"") for p in project.files_containing(b"Distributed") if not is_test_file(p))

    return project.keep("deals out items", search)


def _targets(loop: ast.For) -> set[str]:
    """The names of the items: of `for i, batch in enumerate(loader)` the second."""
    counted = isinstance(loop.iter, ast.Call) and last(dotted(loop.iter.func)) == "enumerate"
    parts = loop.target.elts[1:] if counted and isinstance(loop.target, ast.Tuple) else [loop.target]
    return {n.id for p in parts for n in walk(p) if isinstance(n, ast.Name)}


def _made_of(loop: ast.For, names: set[str]) -> set[str]:
    """The names with all that the body of the loop makes of them."""
    assigned = [n for s in loop.body for n in walk(s) if isinstance(n, (ast.Assign, ast.For))]
    for _ in range(_ROUNDS):
        before = len(names)
        for node in assigned:
            source, targets = (node.iter, [node.target]) if isinstance(node, ast.For) else (node.value, node.targets)
            if any(isinstance(n, ast.Name) and n.id in names for n in walk(source)):
                names |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if len(names) == before:
            break
    return names
