"""The flag switched on in data that no wrapper of the file is seen to take: dicts, strategy names, assignments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.literals import is_true
from codemods.analysis.model.flag_setting import Setting, State
from codemods.analysis.model.flag_values import stored_by_call
from codemods.analysis.model.unused_flag import settings_in
from codemods.data.find_unused_parameters import HF_KEYWORD, ON_NAMES, RAW_KEYWORD
from codemods.files.source import SourceModule
from codemods.store.project import Project


def loose_settings(project: Project, module: SourceModule) -> Iterator[Setting]:
    """The flag switched on in data that no wrapper of this file is seen to take: dicts, strategy names, assignments."""
    claimed = {id(s.node) for w, _ in settings_in(project, module) for s in w.settings}
    for node in module.nodes(ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in (RAW_KEYWORD, HF_KEYWORD) and id(value) not in claimed:
                if isinstance(value, ast.Constant) and value.value is True:
                    yield Setting(State.ON, module, value, str(key.value), text=f'{{"{key.value}": True}}')
    for owner, name, value, _ in stored_by_call(module):
        if name in (RAW_KEYWORD, HF_KEYWORD) and is_true(value) and id(value) not in claimed:
            yield Setting(State.ON, module, value, name, text=f'{owner}["{name}"] = True')
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            name = _stored_name(target)
            if name in (RAW_KEYWORD, HF_KEYWORD) and is_true(assign.value) and id(assign.value) not in claimed:
                yield Setting(State.ON, module, assign.value, name, text=f"{module.text_of(target)} = True")
    for constant in module.nodes(ast.Constant):
        if constant.value in ON_NAMES and id(constant) not in claimed and _names_a_strategy(module, constant):
            yield Setting(State.ON, module, constant, "strategy", strategy=True, text=module.text_of(constant))
    for call in module.calls_named("dict"):
        for keyword in call.keywords:
            on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg in (RAW_KEYWORD, HF_KEYWORD) and on and id(keyword.value) not in claimed:
                yield Setting(State.ON, module, keyword.value, keyword.arg, text=f"dict({keyword.arg}=True)")


def _stored_name(target: ast.expr) -> str:
    """The key or attribute that an assignment sets; a plain name counts where a configuration in Python gives it a value."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _names_a_strategy(module: SourceModule, node: ast.Constant) -> bool:
    """True where the string is a value: an argument, an element, something assigned; not where it is compared or printed."""
    up = module.parent(node)
    while isinstance(up, (ast.IfExp, ast.BoolOp)):
        up = module.parent(up)
    if isinstance(up, ast.keyword):
        return up.arg is not None and "strategy" in up.arg
    if isinstance(up, ast.Assign):
        return any("strategy" in module.text_of(t) for t in up.targets)
    if isinstance(up, ast.Dict):
        pairs = zip(up.keys, up.values, strict=True)
        return any(v is node and isinstance(k, ast.Constant) and "strategy" in str(k.value) for k, v in pairs)
    return False
