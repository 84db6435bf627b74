"""May a LightningModule have its Trainer when a method runs? `self.global_rank` is 0 on every rank without one.

A constructor runs before `fit` attaches the Trainer, and Fabric attaches none at all: a test of the member is true everywhere.
"""

from __future__ import annotations

from codemods.analysis.callers import entries
from codemods.analysis.class_index import ClassFacts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.names import family, qualified
from codemods.project import Project
from codemods.source import FunctionNode


def may_be_attached(project: Project, facts: ClassFacts, function: FunctionNode) -> bool:
    """False where nobody is seen to call the method but constructors, and in a project that trains with Fabric alone."""
    if _trains_with_fabric_alone(project):
        return False
    if function.name in LIGHTNING_HOOKS:
        return True
    found = entries(project, facts, function)
    if found.hooks or found.outside:
        return True
    known = [s.function.name for s in found.steps if s.function.name != function.name]
    return bool(known) and "__init__" not in known


def _trains_with_fabric_alone(project: Project) -> bool:
    return project.keep("trains with fabric alone", lambda: _makes(project, "Fabric") and not _makes(project, "Trainer"))


def _makes(project: Project, name: str) -> bool:
    """True where the project's own code makes Lightning's object of that name."""
    for path in project.files_containing(f"{name}(".encode()):
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named(name) if module is not None else ():
            if module is not None and family(qualified(module, call.func)) == "lightning":
                return True
    return False
