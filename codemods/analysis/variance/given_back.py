"""The helpers of a LightningModule whose result its `training_step` gives back as it is: what they return is the loss."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite, class_facts, first_subclasses
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, walk_scope
from codemods.store.project import Project

_DEPTH = 3
_MOST_HEIRS = 4


def makes_the_loss(project: Project, owner: ClassSite, name: str) -> bool:
    """True for a method that a `training_step` of the class, or of an heir, gives back: `return self.step(batch)`."""

    def build() -> frozenset[str]:
        return frozenset(n for site in (owner, *first_subclasses(project, owner, _MOST_HEIRS)) for n in _of(project, site))

    return name in project.keep(("makes the loss", owner.module.path, owner.node.lineno), build)


def _of(project: Project, site: ClassSite) -> set[str]:
    facts = class_facts(project, site.module, site.node)
    found: set[str] = set()
    names = {"training_step"}
    for _ in range(_DEPTH):
        methods = [m[1] for n in names if (m := facts.method(n)) is not None]
        names = {n for m in methods for n in _given_back(m)} - found
        found |= names
    return found


def _given_back(function: FunctionNode) -> set[str]:
    """The methods whose result the function returns, at once or by a name that holds nothing else."""
    nodes = list(walk_scope(function))
    returned = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    names = {v.id for v in returned if isinstance(v, ast.Name)}
    given: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given.setdefault(node.targets[0].id, []).append(node.value)
    returned += [values[0] for name, values in given.items() if name in names and len(values) == 1]
    calls = (dotted(v.func) for v in returned if isinstance(v, ast.Call))
    return {c.removeprefix("self.") for c in calls if c.startswith("self.") and c.count(".") == 1}
