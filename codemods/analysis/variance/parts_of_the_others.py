"""Results that the ranks hand over in files: rank 0 goes through the numbers of the others, and adds what each has written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.values import Link
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_LOADS = frozenset({"pickle.load", "torch.load", "numpy.load", "json.load", "joblib.load", "numpy.loadtxt"})
_COUNT = lazy(r"world_?size|num_processes|num_gpus|n_gpu|nprocs")
_HELD = lazy(r"`(?:[^`=]*= ?)?([A-Za-z_]\w*)\.\w+\(")  # `a, b = evaluator.result()`, `evaluator.add(...)` keeps it


def is_put_together(module: SourceModule, shown: ast.AST, chain: tuple[Link, ...]) -> bool:
    """True where an object on the way to a number is told what the files of the other ranks hold, in the same function."""
    names = {held[1] for link in chain if link.path == module.path and (held := _HELD.search(link.text))}
    function = module.function_of(shown)
    if not names or function is None or not module.holds(b"load"):
        return False
    return bool(names & set(_told_by_files(module, function)))


def _told_by_files(module: SourceModule, function: ast.AST) -> Iterator[str]:
    for loop in (n for n in walk(function) if isinstance(n, ast.For)):
        if _COUNT.search(ast.unparse(loop.iter).lower()) is None:
            continue
        calls = [n for statement in loop.body for n in walk(statement) if isinstance(n, ast.Call)]
        if any(qualified(module, c.func) in _LOADS for c in calls):
            told = (c for c in calls if isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name) and c.args)
            yield from (dotted(c.func).partition(".")[0] for c in told if last(dotted(c.func)) not in ("load", "join"))
