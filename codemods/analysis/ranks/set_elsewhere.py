"""May anybody but the methods of a class give its objects an attribute?"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted
from codemods.analysis.ranks.set_by_name import may_set_by_name
from codemods.files.source import SourceModule
from codemods.store.project import Project


def may_be_set_elsewhere(
    project: Project, module: SourceModule, home: ast.ClassDef, attribute: str, *, or_none: bool = False
) -> bool:
    """True unless this class alone sets the attribute, and nothing below the class body or in a base gives it a value.

    or_none: the class body may set it to None.
    """
    facts = class_facts(project, module, home)
    if facts.unresolved or len(facts.lineage) > 1 or any(_names_it(s, attribute, or_none) for s in home.body):
        return True
    if may_set_by_name(module, attribute):
        return True
    for path in project.files_containing(f".{attribute}".encode()):
        other = project.module(path)
        for node in other.nodes(ast.Attribute) if other else ():
            if other and node.attr == attribute and isinstance(node.ctx, (ast.Store, ast.Del)):
                if not _is_of_another(project, other, node, home):
                    return True
    return False


def _is_of_another(project: Project, module: SourceModule, node: ast.Attribute, home: ast.ClassDef) -> bool:
    """True where the class itself sets its attribute, or one that has nothing to do with it sets its own."""
    owner = module.class_of(node)
    if dotted(node.value) != "self" or owner is None:
        return False
    return owner is home or not any(site.node is home for site in class_facts(project, module, owner).lineage)


def _names_it(statement: ast.stmt, attribute: str, or_none: bool) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return statement.name == attribute
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    empty = or_none and isinstance(statement.value, ast.Constant) and statement.value.value is None
    return not empty and any(isinstance(t, ast.Name) and t.id == attribute for t in targets)
