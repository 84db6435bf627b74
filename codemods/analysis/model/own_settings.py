"""Whose flag is it that a LightningModule makes of its own settings, and is it on wherever the repository gives it?"""

from __future__ import annotations

import ast
from posixpath import dirname

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.model.config_flags import config_settings
from codemods.analysis.model.flag_setting import Setting, State
from codemods.analysis.model.model_usage import Entry, Usage
from codemods.files.source import walk
from codemods.files.text_file import YAML_KINDS, TextFile
from codemods.store.project import Project


def is_for_another(project: Project, setting: Setting, usage: Usage) -> bool:
    """True where a method of a LightningModule makes it of `self`, and the model of the usage has not that method."""
    module = setting.module
    function, owner = module.function_of(setting.node), module.class_of(setting.node)
    if usage.entry is not Entry.TRAINING_STEP or not isinstance(function, ast.FunctionDef) or owner is None:
        return False
    if module.methods_of(owner).get(function.name) is not function or not function.args.args:
        return False
    own = function.args.args[0].arg
    if not any(isinstance(node, ast.Name) and node.id == own for node in walk(setting.node)):
        return False
    facts = class_facts(project, module, owner)
    asked = class_facts(project, usage.site.module, usage.site.node)
    if not facts.is_a(Role.LIGHTNING_MODULE) or asked.opaque:
        return False
    found = asked.method(function.name)
    return found is None or found[1] is not function


def is_given_on(project: Project, setting: Setting) -> bool:
    """True where the file itself sets the key that is read to True, and each YAML file beside it does.

    Where none beside it names the flag, those of the whole project are asked.
    """
    if not isinstance(setting.node, ast.Attribute):
        return False
    key, module = setting.node.attr, setting.module
    given = [
        assign.value
        for assign in module.nodes(ast.Assign)
        if any(isinstance(target, ast.Attribute) and target.attr == key for target in assign.targets)
    ]
    if not given or not all(isinstance(value, ast.Constant) and value.value is True for value in given):
        return False
    named = project.files_containing(key.encode(), kinds=YAML_KINDS)
    beside = [path for path in named if dirname(path) == dirname(module.path)] or named
    return all(_is_on_in(project, path, key) for path in beside)


def _is_on_in(project: Project, path: str, key: str) -> bool:
    file = project.module(path)
    settings = [s for s in config_settings(file) if s.text.startswith(f"{key}:")] if isinstance(file, TextFile) else []
    return bool(settings) and all(s.state is State.ON for s in settings)
