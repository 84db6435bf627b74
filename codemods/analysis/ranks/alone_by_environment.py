"""A program that tells each of its processes that it is alone: `RANK` 0 of a `WORLD_SIZE` of 1, whoever started how many."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.launcher_variables import is_sure_to_come, variables_set
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy

_ALONE = {"RANK": "0", "WORLD_SIZE": "1"}
# Those that start ranks of their own give each a rank and a number by hand.
_OTHERS = lazy(rb"\bspawn\(|start_processes\(|\bProcess\(|_launcher\(|\bworld_size[ ]*=|hvd\.init|horovod|\bray\b|\bPopen\b")


@once_a_module
def is_alone_by_environment(module: SourceModule) -> bool:
    """True for a file whose top gives each process a group of its own, and which starts no ranks: tasks share nothing then."""
    if not module.holds(b"WORLD_SIZE") or _OTHERS.search(module.data) is not None:
        return False
    given: dict[str, set[object]] = {}
    for found in variables_set(module):
        value = found.value.value if isinstance(found.value, ast.Constant) else None
        sure = module.function_of(found.statement) is None and is_sure_to_come(module, found.statement)
        given.setdefault(found.variable, set()).add(value if sure else None)
    return all(given.get(name) == {value} for name, value in _ALONE.items())
