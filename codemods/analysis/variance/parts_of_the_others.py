"""Results that the ranks hand over in files: rank 0 goes through the numbers of the others, and adds what each has written.

In the function of the number, or in one that is given the rank's own part on the way to it, and gives back the whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.values import Link
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LOADS = frozenset(
    {"pickle.load", "torch.load", "numpy.load", "json.load", "joblib.load", "numpy.loadtxt", "mmcv.load", "mmengine.load"}
)
_WAITS = frozenset({"barrier", "wait_for_everyone", "synchronize"})
_COUNT = lazy(r"world_?size|num_processes|num_gpus|n_gpu|nprocs")
_HELD = lazy(r"`(?:[^`=]*= ?)?([A-Za-z_]\w*)\.\w+\(")  # `a, b = evaluator.result()`, `evaluator.add(...)` keeps it


def is_put_together(project: Project, module: SourceModule, shown: ast.AST, chain: tuple[Link, ...]) -> bool:
    """True where something on the way to a number is told, or exchanged for, what the files of the other ranks hold too."""
    return _is_told_here(module, shown, chain) or _is_exchanged(project, chain)


def _is_told_here(module: SourceModule, shown: ast.AST, chain: tuple[Link, ...]) -> bool:
    names = {held[1] for link in chain if link.path == module.path and (held := _HELD.search(link.text))}
    function = module.function_of(shown)
    if not names or function is None or not module.holds(b"load"):
        return False
    return bool(names & set(_told_by_files(module, function)))


def _is_exchanged(project: Project, chain: tuple[Link, ...]) -> bool:
    """True for `rows = merged(rows, n)` between two places of the way that `rows` goes, where `merged` reads all files."""
    for path in sorted({link.path for link in chain}):
        module = project.module(path)
        if module is not None and any(_exchanges(project, module, made, chain) for made in module.nodes(ast.Assign)):
            return True
    return False


def _exchanges(project: Project, module: SourceModule, made: ast.Assign, chain: tuple[Link, ...]) -> bool:
    target, call, function = made.targets[0], made.value, module.function_of(made)
    if not isinstance(target, ast.Name) or not isinstance(call, ast.Call) or function is None:
        return False
    if not any(isinstance(a, ast.Name) and a.id == target.id for a in (*call.args, *(k.value for k in call.keywords))):
        return False
    word = re.compile(rf"(?<![\w.]){re.escape(target.id)}\b")
    ends = range(function.lineno, (function.end_lineno or 0) + 1)
    lines = [x.line for x in chain if x.path == module.path and x.line in ends and word.search(x.text)]
    if not any(n < made.lineno for n in lines) or not any(n > made.lineno for n in lines):
        return False
    site = called_function(project, module, call)
    return site is not None and _reads_all_files(site.module, site.node)


def _reads_all_files(module: SourceModule, function: ast.AST) -> bool:
    """True for a function that loads a file of each rank, in a loop over their number, and waits for them before."""
    calls = [n for n in walk(function) if isinstance(n, ast.Call)]
    if not any(last(dotted(c.func)) in _WAITS for c in calls):
        return False
    loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.ListComp))]
    counted = (n for n in loops if _COUNT.search(ast.unparse(_counter(n)).lower()))
    inside = (n for loop in counted for n in walk(loop) if isinstance(n, ast.Call))
    return any(qualified(module, c.func) in _LOADS for c in inside)


def _counter(loop: ast.For | ast.ListComp) -> ast.expr:
    return loop.iter if isinstance(loop, ast.For) else loop.generators[0].iter


def _told_by_files(module: SourceModule, function: ast.AST) -> Iterator[str]:
    for loop in (n for n in walk(function) if isinstance(n, ast.For)):
        if _COUNT.search(ast.unparse(loop.iter).lower()) is None:
            continue
        calls = [n for statement in loop.body for n in walk(statement) if isinstance(n, ast.Call)]
        if any(qualified(module, c.func) in _LOADS for c in calls):
            told = (c for c in calls if isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name) and c.args)
            yield from (dotted(c.func).partition(".")[0] for c in told if last(dotted(c.func)) not in ("load", "join"))
