"""Results of an evaluation that every rank prints, each that of its own share: there are as many of them as ranks."""

from __future__ import annotations

import ast

from codemods.analysis.output.muted_print import is_muted
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.variance.number_words import is_number, named_by_texts
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Value
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# A line that says whose number it is, or that it is a part.
_OWN = lazy(r"rank|local|gpu|cuda|device|node|proc|worker|shard|part|\bpid\b", 2)
_LOOPS = (ast.For, ast.AsyncFor)


def may_print_on_all(module: SourceModule, node: ast.Call) -> bool:
    """True for a `print` of what reads like a number, behind a loop of its function: told before anything is interpreted."""
    function = module.function_of(node)
    if not isinstance(node.func, ast.Name) or node.func.id != "print" or function is None or _OWN.search(module.text_of(node)):
        return False
    inner = [n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and n is not node.func]
    if not any(map(is_number, inner)) and not named_by_texts(node):
        return False
    return any(isinstance(n, _LOOPS) and (n.end_lineno or n.lineno) < node.lineno for n in walk(function))


def prints_on_all(project: Project, module: SourceModule, node: ast.Call) -> bool:
    """True where every rank comes to the `print`, and nothing keeps the others' quiet."""
    function = module.function_of(node)
    if function is None or ranks_at(module, node, project=project) is not Ranks.ALL:
        return False
    return ranks_entering(project, module, function) is Ranks.ALL and not is_muted(project, module, node)


def is_end_of_its_way(state: State, value: Value) -> bool:
    """True for what the own batches gave, in a function that reduces nothing, and hands nothing of it to its caller.

    What it gives back is judged where the caller shows it, or goes by it; the caller may reduce it, too.
    """
    if not value.mean or not value.is_of_own_data or state.carries():
        return False
    return not any(r.is_of_own_data or r.params or any(p.is_of_own_data for p in r.parts) for r in state.returns)
