"""Fields that count how often a method was called (`self.steps += 1`): whatever else the object was told, they are alike."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, ClassSite
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import parameters
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk_scope


def counts_calls(facts: ClassFacts, name: str) -> bool:
    """True where the methods of a class give a field nothing but numbers that are written out, and no test but one of a flag
    that they are handed decides over it.
    """
    word, found = f"self.{name}", False
    for site in facts.lineage:
        if word not in site.module.text:
            continue
        for method in site.methods().values():
            for node in _changes(site.module, method).get(word, ()):
                if not _is_plain(site, method, node):
                    return False
                found = found or isinstance(node, ast.AugAssign)
    return found


def _changes(module: SourceModule, method: FunctionNode) -> dict[str, list[ast.AST]]:
    """What a method gives another value, by name, with the nodes that do: each of its fields is asked for by itself."""
    known = _known_changes(module)
    if method not in known:
        changes: dict[str, list[ast.AST]] = {}
        for node in walk_scope(method):
            for name in _changed(node):
                changes.setdefault(name, []).append(node)
        known[method] = changes
    return known[method]


@once_a_module
def _known_changes(module: SourceModule) -> dict[FunctionNode, dict[str, list[ast.AST]]]:
    return {}


def _changed(node: ast.AST) -> list[str]:
    """What a node gives another value; of `self.rows.append(x)` the list as well."""
    if isinstance(node, ast.Assign):
        return [dotted(n) for t in node.targets for n in ast.walk(t)]
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [dotted(n) for n in ast.walk(node.target)]
    func = node.func if isinstance(node, ast.Call) else None
    return [dotted(func.value)] if isinstance(func, ast.Attribute) else []


def _is_plain(site: ClassSite, method: FunctionNode, node: ast.AST) -> bool:
    if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or not isinstance(node.value, ast.Constant):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(not isinstance(t, ast.Attribute) for t in targets):
        return False
    early = any(isinstance(n, ast.Return) and n.lineno < node.lineno for n in walk_scope(method))
    return not early and _is_reached(site.module, method, node)


def _is_reached(module: SourceModule, method: FunctionNode, node: ast.AST) -> bool:
    """True where nothing stands round it but a `with`, and tests of a parameter by itself."""
    for up in module.ancestors(node):
        if up is method:
            return True
        flag = isinstance(up, ast.If) and isinstance(up.test, ast.Name) and up.test.id in parameters(method)
        if not flag and not isinstance(up, ast.With):
            return False
    return False
