"""A test for rank 0 that the function or the class of a place makes somewhere, where none is sure to work at the place itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk

_OF_ACCELERATE = frozenset({"Accelerator"})
_OF_LIGHTNING = frozenset({"Fabric"})


@record
class AtHand:
    """text: the test. line: where it is made, or what it asks is bound. here: in the function of the place, else in its class."""

    text: str
    line: int
    here: bool


def test_at_hand(project: Project, module: SourceModule, at: ast.stmt) -> AtHand | None:
    """The nearest test of the same function, else one of its class that asks `self`."""
    function = module.function_of(at)
    if function is not None:
        found = [AtHand(text, line, True) for text, line in _in(project, module, function)]
        if found:
            return min(found, key=lambda f: abs(f.line - at.lineno))
    owner = module.class_of(at)
    if owner is None:
        return None
    of_self = (AtHand(text, line, False) for text, line in _in(project, module, owner) if text.startswith("self."))
    return min(of_self, key=lambda f: abs(f.line - at.lineno), default=None)


def _in(project: Project, module: SourceModule, scope: ast.AST) -> Iterator[tuple[str, int]]:
    for node in walk(scope):
        if isinstance(node, (ast.If, ast.IfExp)):
            if ranks_of_test(module, node.test, project=project) is Ranks.ZERO and not isinstance(node.test, ast.BoolOp):
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
