"""Behind what only rank 0 fills: `if not self.scores: return`, where the others never put anything in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, last
from codemods.analysis.output.held_by_zero import is_behind_what_zero_is_given
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule
from codemods.store.project import Project

_EMPTY = frozenset({"dict", "list", "set", "OrderedDict", "defaultdict", "Counter", "deque"})
_FILLS = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft"})
_READS = frozenset({"items", "keys", "values", "get", "clear", "copy", "pop"})
_ASKS = frozenset({"len", "bool", "sorted", "sum", "min", "max", "list", "any", "all"})


def is_behind_what_zero_fills(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a container of the object is asked for on the way, and rank 0 alone puts anything into it."""
    if module.class_of(node) is None:
        return False
    if any(_is_filled_by_zero(project, module, field) for field in _fields_on_the_way(module, node)):
        return True
    return is_behind_what_zero_is_given(project, module, node)


def _fields_on_the_way(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    """The fields that hold something here: by a test round the place, and by one above that ends a rank whose field is empty."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and any(s is below for s in up.body):
            yield from (p for p in conjuncts(up.test) if _is_field(p))
        for statement in above(module, below):
            if isinstance(statement, ast.If) and leaves(statement.body):
                test = statement.test
                parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
                nots = (p.operand for p in parts if isinstance(p, ast.UnaryOp) and isinstance(p.op, ast.Not))
                yield from (p for p in nots if _is_field(p))
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _is_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_filled_by_zero(project: Project, module: SourceModule, field: ast.expr) -> bool:
    if not isinstance(field, ast.Attribute) or any(p != module.path for p in project.files_containing(f".{field.attr}".encode())):
        return False
    bound = attribute_bindings(module, field)
    if not bound or not all(b.value is not None and _is_empty(b.value) for b in bound):
        return False
    fills = False
    for mention in (n for n in module.nodes(ast.Attribute) if n.attr == field.attr and isinstance(n.ctx, ast.Load)):
        kind = _use(module, mention)
        if kind == "fills" and ranks_at(module, mention, project=project) is not Ranks.ZERO:
            return False
        if not kind or dotted(mention.value) != "self" or module.class_of(mention) is not module.class_of(field):
            return False
        fills = fills or kind == "fills"
    return fills


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, (ast.Dict, ast.List)):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    return isinstance(value, ast.Call) and last(dotted(value.func)) in _EMPTY and not any(
        isinstance(a, (ast.Call, ast.Dict, ast.List)) for a in value.args
    )  # fmt: skip


def _use(module: SourceModule, mention: ast.Attribute) -> str:
    """ "fills", "reads", or "" for what may do either."""
    up = module.parent(mention)
    if isinstance(up, ast.Subscript) and up.value is mention:
        return "fills" if isinstance(up.ctx, ast.Store) else "reads"
    if isinstance(up, ast.Attribute):
        called = isinstance(module.parent(up), ast.Call)
        return ("fills" if up.attr in _FILLS else "reads" if up.attr in _READS else "") if called else ""
    if isinstance(up, ast.Call):
        return "reads" if last(dotted(up.func)) in _ASKS and up.func is not mention else ""
    plain = isinstance(up, (ast.UnaryOp, ast.BoolOp, ast.Compare, ast.FormattedValue, ast.For, ast.comprehension))
    return "reads" if plain or (isinstance(up, (ast.If, ast.While, ast.IfExp)) and up.test is mention) else ""
