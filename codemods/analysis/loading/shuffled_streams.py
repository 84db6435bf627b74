"""Streams that are shuffled by each worker for itself, before the worker takes its part: the parts overlap.

A worker of torch seeds `random`, NumPy and torch with a number of its own (`base_seed + worker_id`), so that two workers shuffle
one list in two ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.loading.worker_branches import is_worker
from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SHUFFLES = frozenset({"random.shuffle", "numpy.random.shuffle"})
_SEEDED = lazy(r"[Ss]eed|\bRandom\b|default_rng|RandomState|[Gg]enerator|epoch")


@record
class ShuffledStream:
    """call: the shuffle in `__iter__`. name: what is shuffled. part: where the worker's number decides over its part."""

    call: ast.Call
    name: str
    part: ast.AST
    stream: str


def shuffled_streams(project: Project, module: SourceModule) -> Iterator[ShuffledStream]:
    for owner in module.nodes(ast.ClassDef) if module.holds(b"get_worker_info") else ():
        reads = module.methods_of(owner).get("__iter__")
        if reads is None or _SEEDED.search(module.text_of(owner)):
            continue
        facts = class_facts(project, module, owner)
        if not any(last(n) == "IterableDataset" and family(n) == "torch" for n in facts.external):
            continue
        yield from _in(module, owner, reads)


def _in(module: SourceModule, owner: ast.ClassDef, reads: FunctionNode) -> Iterator[ShuffledStream]:
    for call in (n for n in walk_scope(reads) if isinstance(n, ast.Call)):
        if qualified(module, call.func) not in _SHUFFLES or len(call.args) != 1 or not dotted(call.args[0]):
            continue
        name = dotted(call.args[0])
        behind = [n for n in walk_scope(reads) if stands_above(call, n)]
        part = next((n for n in behind if isinstance(n, ast.Attribute) and n.attr == "id" and is_worker(module, n.value)), None)
        taken = any(isinstance(n, ast.Subscript) and dotted(n.value) == name and isinstance(n.ctx, ast.Load) for n in behind)
        inner = any(isinstance(up, (ast.For, ast.While)) for up in module.ancestors(call))
        if part is not None and taken and not inner:
            yield ShuffledStream(call, name, part, owner.name)
            return
