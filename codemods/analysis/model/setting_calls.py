"""Calls by which Hydra makes objects of a class that a setting names: `instantiate(config.evaluator, loader=loader)`."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite
from codemods.analysis.distribution import is_test_module
from codemods.analysis.model.config_targets import targets_of_class
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import CallSite
from codemods.store.project import Project

_MADE = "hydra.utils.instantiate"


def calls_by_settings(project: Project, site: ClassSite) -> list[CallSite]:
    """The calls that are handed the mapping which names the class: by the key that it stands under."""
    calls = project.memo("calls by settings", lambda: _all_calls(project))
    if not calls:
        return []
    keys = {target.key for target in targets_of_class(project, site)}
    return [place for place in calls if last(dotted(place.call.args[0])) in keys]


def _all_calls(project: Project) -> list[CallSite]:
    modules = (project.module(path) for path in project.files_containing(b"instantiate("))
    return [
        CallSite(module, call)
        for module in modules
        if module is not None and not is_test_module(module)
        for call in module.calls_named("instantiate")
        if call.args and isinstance(call.args[0], ast.Attribute) and qualified(module, call.func) == _MADE
    ]
