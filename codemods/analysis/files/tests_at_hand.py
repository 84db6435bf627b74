"""A test for rank 0 that the function or the class of a place makes somewhere, where none is sure to work at the place itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.rank_tests import asks_the_rank
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_OF_ACCELERATE = frozenset({"Accelerator"})
_OF_LIGHTNING = frozenset({"Fabric"})


@record
class AtHand:
    """text: the test. line: where it is made, or what it asks is bound. here: in the function of the place, else in its class.

    below: what it asks is bound further down than the place. of_node: it holds for the first rank of each node.
    """

    text: str
    line: int
    here: bool
    below: bool = False
    of_node: bool = False


def test_at_hand(project: Project, module: SourceModule, at: ast.stmt) -> AtHand | None:
    """The nearest test of the same function, of the whole run before one of a node; else one of its class that asks `self`."""
    function = module.function_of(at)
    if function is not None:
        found = list(_in(project, module, function))
        if found:
            text, line = min(found, key=lambda f: abs(f[1] - at.lineno))
            return AtHand(text, line, True, _is_bound_below(module, function, text, at))
        of_nodes = list(_of_nodes(project, module, function))
        if of_nodes:
            text, line = min(of_nodes, key=lambda f: abs(f[1] - at.lineno))
            return AtHand(text, line, True, _is_bound_below(module, function, text, at), of_node=True)
    owner = module.class_of(at)
    if owner is None:
        return None
    of_self = (AtHand(text, line, False) for text, line in _in(project, module, owner) if text.startswith("self."))
    return min(of_self, key=lambda f: abs(f.line - at.lineno), default=None)


def _is_bound_below(module: SourceModule, function: FunctionNode, test: str, at: ast.stmt) -> bool:
    names = {n.id for n in ast.walk(ast.parse(test, mode="eval")) if isinstance(n, ast.Name)}
    bound = [bindings_in(module, function, name) for name in names]
    return any(found and all(not b.parameter and line_of(b.node) > at.lineno for b in found) for found in bound)


def _of_nodes(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[str, int]]:
    """The tests for the first rank of a node: `training_args.local_rank in [-1, 0]`."""
    for node in walk(function):
        if isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, ast.BoolOp):
            asked = asks_the_rank(module, node.test, project)
            if asked and ranks_of_test(module, node.test, project=project) is Ranks.LOCAL_ZERO:
                yield " ".join(module.text_of(node.test).split()), node.test.lineno


def _in(project: Project, module: SourceModule, scope: ast.AST) -> Iterator[tuple[str, int]]:
    for node in walk(scope):
        if isinstance(node, (ast.If, ast.IfExp)):
            plain = not isinstance(node.test, ast.BoolOp) and asks_the_rank(module, node.test, project)
            if plain and ranks_of_test(module, node.test, project=project) is Ranks.ZERO:
                yield " ".join(module.text_of(node.test).split()), node.test.lineno
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and (target := dotted(node.targets[0])):
            if isinstance(node.value, ast.Call):
                made = last(qualified(module, node.value.func))
                if made in _OF_ACCELERATE:
                    yield f"{target}.is_main_process", node.lineno
                elif made in _OF_LIGHTNING:
                    yield f"{target}.is_global_zero", node.lineno
            if rank_source(module, node.value, project) is Ranks.ZERO:
                yield f"{target} == 0", node.lineno
