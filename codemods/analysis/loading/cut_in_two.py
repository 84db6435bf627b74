"""A permutation, or a list that is mixed, of which the function makes a part to train on and the rest: `rows[:n]`, `rows[n:]`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_PARTS = lazy(r"(^|_)(train|valid|val|test|dev|eval|holdout)[a-z]*\d*(_|$)")
# What is mixed there is mixed for each sample or batch, and divides no data set.
_EACH_TIME = lazy(r"^__(getitem|iter|call|next)__$|forward|collate|_step$|batch|augment|transform")


def cut_in_two(module: SourceModule, call: ast.Call, names: set[str]) -> ast.AST | None:
    """The first of two slices of one of the names that meet at one bound below the call, each put under a name of a part."""
    function = module.function_of(call)
    if function is None or mixes_each_time(function):
        return None
    parts = [p for p in _slices(module, function, names) if p.lineno > call.lineno]
    heads = {(dotted(p.value), _bound(p, first=True)): p for p in parts if _bound(p, first=True)}
    for part in parts:
        head = heads.get((dotted(part.value), _bound(part, first=False)))
        if head is not None and _bound(part, first=False) and _is_named(module, head) and _is_named(module, part):
            return head
    return None


def mixes_each_time(function: FunctionNode) -> bool:
    """True for a function that runs for each sample or batch."""
    return _EACH_TIME.search(function.name) is not None


def names_a_part(node: ast.AST) -> bool:
    """True for `train_rows`, `self.val`: a name that says what a part of the data is for."""
    return isinstance(node, (ast.Name, ast.Attribute)) and _PARTS.search(_own(node)) is not None


def _slices(module: SourceModule, function: FunctionNode, names: set[str]) -> list[ast.Subscript]:
    found = (module.parent(s) for s in module.nodes(ast.Slice))
    return [p for p in found if isinstance(p, ast.Subscript) and dotted(p.value) in names and module.function_of(p) is function]


def _bound(part: ast.Subscript, *, first: bool) -> str:
    """`n` of `rows[:n]`, or of `rows[n:]`."""
    if not isinstance(part.slice, ast.Slice) or part.slice.step is not None:
        return ""
    bound, open_end = (part.slice.upper, part.slice.lower) if first else (part.slice.lower, part.slice.upper)
    return ast.dump(bound) if bound is not None and open_end is None else ""


def _is_named(module: SourceModule, part: ast.Subscript) -> bool:
    """True where the part is put under a name of its own that says what it is for, as it is or read row by row."""
    statement = module.statement_of(part)
    if not isinstance(statement, ast.Assign):
        return False
    if isinstance(module.parent(part), ast.BinOp):
        return False  # `rows[n:] + rows[:n]` turns the list
    return any(names_a_part(n) for t in statement.targets for n in walk(t))


def _own(node: ast.Name | ast.Attribute) -> str:
    return (node.id if isinstance(node, ast.Name) else node.attr).lower()
