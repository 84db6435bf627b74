"""Scores that a class works out of the counts that it has added up: `tp / (tp + fp + fn)`."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, called_name, walk, walk_scope

_DEPTH = 3


def divides_counts(facts: ClassFacts, method: FunctionNode) -> bool:
    """True where the method divides counts of the object by a sum of several: how large that gets is for the rows to say.

    What is divided by one count alone may be a mean, whose mean over the ranks is right.
    """
    counted = _added_up(facts)
    for node in walk_scope(method) if counted else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            below = _terms(method, node.right)
            if len(below) > 1 and all(_field(term) in counted for term in (*below, *_terms(method, node.left))):
                return True
    return False


def brings_ranks_together(facts: ClassFacts) -> bool:
    """True where a method of the class speaks to the other ranks: its counts may be those of all."""
    calls = (n for site in facts.lineage for m in site.methods().values() for n in walk(m) if isinstance(n, ast.Call))
    return any(any(word in called_name(c) for word in ("reduce", "gather", "synchronize")) for c in calls)


def _added_up(facts: ClassFacts) -> set[str]:
    """The fields that a method adds to, or to entries of which it does."""
    methods = (m for site in facts.lineage for m in site.methods().values())
    added = (n for m in methods for n in walk(m) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add))
    return {_field(n.target) for n in added} - {""}


def _field(node: ast.AST) -> str:
    """`hits` for `self.hits`, `self.hits[i]` and `self.hits[i].all`."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute) and dotted(node.value) == "self":
            return node.attr
        node = node.value
    return ""


def _terms(method: FunctionNode, node: ast.expr, depth: int = 0) -> list[ast.expr]:
    """What a sum adds, each written one way once, without constants and factors; names stand for what they are given."""
    found = {ast.dump(term): term for term in _summed(method, node, depth)}
    return list(found.values())


def _summed(method: FunctionNode, node: ast.expr, depth: int) -> list[ast.expr]:
    if isinstance(node, ast.Constant):
        return []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        numbers = [side for side in (node.left, node.right) if isinstance(side, ast.Constant)]
        return _summed(method, node.right if node.left in numbers else node.left, depth) if numbers else [node]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_summed(method, node.left, depth), *_summed(method, node.right, depth)]
    if isinstance(node, ast.Name) and depth < _DEPTH:
        given = [n.value for n in walk_scope(method) if isinstance(n, ast.Assign) and [dotted(t) for t in n.targets] == [node.id]]
        return _summed(method, given[0], depth + 1) if len(given) == 1 else [node]
    return [node]
