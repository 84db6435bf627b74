"""What a class puts into its attributes step by step: `self.losses.append(loss)`, `self.total += loss.item()`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, subclasses
from codemods.analysis.class_values import SETUP_METHODS, class_values
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_PUTS = frozenset({"append", "extend", "add", "update", "insert", "appendleft"})


@record
class Put:
    """A value that a method puts into `self.name`, or adds to it."""

    site: ClassSite
    function: FunctionNode
    value: ast.expr


def puts_into(project: Project, facts: ClassFacts, name: str) -> tuple[Put, ...]:
    """What the methods of a class, the set-up apart, put into an attribute."""
    start = facts.lineage[0]
    key = ("puts into", start.module.path, start.node.lineno, name)
    return project.memo(key, lambda: tuple(_puts(facts, name)))


def fillers(project: Project, facts: ClassFacts, readers: Iterable[FunctionNode]) -> list[FunctionNode]:
    """The methods that fill an attribute which one of the readers reads."""
    read = {_own(n) for reader in readers for n in walk(reader) if isinstance(n, ast.Attribute)} - {""}
    return [put.function for name in sorted(read) for put in puts_into(project, facts, name)]


def heir_that_fills(project: Project, facts: ClassFacts, name: str) -> ClassFacts | None:
    """The first class below that puts something into a collection that this one makes empty, and itself leaves so."""
    values = class_values(project, facts)
    given = values.given.get(name, [])
    if not given or name in values.filled or not all(map(_is_empty, (g.value for g in given))):
        return None
    for site in subclasses(project, facts.lineage[0]):
        heir = class_facts(project, site.module, site.node)
        if name in class_values(project, heir).filled:
            return heir
    return None


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return dotted(node.func) in ("list", "dict") and not node.args and not node.keywords
    return not (node.elts if isinstance(node, ast.List) else node.keys if isinstance(node, ast.Dict) else [node])


def _puts(facts: ClassFacts, name: str) -> Iterator[Put]:
    for site in facts.lineage:
        for function in site.node.body:
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.name in SETUP_METHODS:
                continue
            for node in walk(function):
                value = _put(node, name)
                if value is not None:
                    yield Put(site, function, value)


def _put(node: ast.AST, name: str) -> ast.expr | None:
    if isinstance(node, ast.AugAssign) and _own(node.target) == name:
        return node.value
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) and _own(t) == name for t in node.targets):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS and node.args:
        return node.args[-1] if _own(node.func.value) == name else None
    return None


def _own(node: ast.AST) -> str:
    """`x` for `self.x`, `self.x[...]` and `self.x.setdefault(...)`."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return ""
    text = dotted(node)
    return text[5:] if text.startswith("self.") and text.count(".") == 1 else ""
