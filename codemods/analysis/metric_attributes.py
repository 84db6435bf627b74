"""Which attributes of a class are torchmetrics objects, by the assignment that makes them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.names import dotted, qualified
from codemods.project import Project


@dataclass(frozen=True, slots=True)
class Made:
    """The assignment that shows what an attribute is: the class's written name, and where."""

    text: str
    path: str
    line: int


def self_attribute(node: ast.AST) -> str:
    """`x` for `self.x` (also for `self.x[...]` and `self.x.y`, whose first attribute counts), "" otherwise."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr if node.value.id == "self" else ""
        node = node.value
    return ""


def attribute_values(facts: ClassFacts, name: str) -> list[tuple[ClassSite, ast.expr]]:
    """Every value that `self.name` is given anywhere in the class and its project ancestors."""
    out: list[tuple[ClassSite, ast.expr]] = []
    for site in facts.lineage:
        for node in ast.walk(site.node):
            targets: list[ast.expr] = []
            value: ast.expr | None = None
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            for target in targets:
                if value is not None and isinstance(target, ast.Attribute) and dotted(target) == f"self.{name}":
                    out.append((site, value))
    return out


def metric_attribute(project: Project, facts: ClassFacts, value: ast.expr) -> Made | None:
    """What makes `self.x` a torchmetrics object, or None where that is not shown.

    Looks through ModuleDict and ModuleList: `self.metrics["acc"]` is one if all that is put in are.
    """
    name = self_attribute(value)
    if not name or isinstance(value, ast.Call):
        return None
    for site, made in attribute_values(facts, name):
        if found := metric_expression(project, site, made):
            return found
    return None


def metric_expression(project: Project, site: ClassSite, value: ast.expr) -> Made | None:
    """What in `value` is a torchmetrics object: a constructor, `.clone()` of one, a container of them, a conditional."""
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in ("clone", "to"):
            receiver = value.func.value
            if found := metric_expression(project, site, receiver):
                return found
            facts = class_facts(project, site.module, site.node)
            return metric_attribute(project, facts, receiver)
        name = qualified(site.module, value.func)
        if is_metric_class(project, site, name, value.func):
            return Made(f"{site.module.text_of(value.func)}(…)", site.module.path, value.lineno)
        if name.rpartition(".")[2] in ("ModuleList", "ModuleDict") and value.args:
            return metric_expression(project, site, value.args[0])
        return None
    inner: list[ast.expr] = []
    if isinstance(value, ast.Dict):
        inner = list(value.values)
    elif isinstance(value, (ast.List, ast.Tuple)):
        inner = list(value.elts)
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        inner = [value.elt]
    elif isinstance(value, ast.DictComp):
        inner = [value.value]
    elif isinstance(value, ast.IfExp):
        inner = [value.body, value.orelse]
    parts = [metric_expression(project, site, i) for i in inner]
    return parts[0] if parts and all(parts) else None


def is_metric_class(project: Project, site: ClassSite, name: str, func: ast.expr) -> bool:
    if external_role(name) is Role.METRIC:
        return True
    written = dotted(func)
    found = find_class(project, site.module, written) if written else None
    return found is not None and class_facts(project, found.module, found.node).is_a(Role.METRIC)
