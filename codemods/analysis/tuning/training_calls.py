"""The calls that make TrainingArguments, and which layer gives each of their parameters its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from codemods.analysis.trainer.argument_calls import training_argument_calls
from codemods.analysis.tuning.options import Option, option_behind
from codemods.analysis.tuning.profiles import DEFAULTS
from codemods.api.findings import Edit, ReplaceExpression, SetKeyword
from codemods.data.training_arguments import FIELDS
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

Layer = Literal["keyword", "option", "absent", "unknown"]


@record
class Setting:
    """One parameter of a call. value: None where it is not known, with `why`. option: what a job can give it by."""

    name: str
    layer: Layer
    value: int | None
    node: ast.expr | None = None
    option: Option | None = None
    why: str = ""


@record
class TrainingCall:
    """A call of TrainingArguments or an heir."""

    project: Project
    module: SourceModule
    call: ast.Call

    @property
    def shown(self) -> str:
        return f"{self.module.text_of(self.call.func)}(…)"

    @property
    def place(self) -> str:
        return f"{self.module.path}:{self.call.lineno}"

    def keyword(self, name: str) -> ast.expr | None:
        return next((k.value for k in self.call.keywords if k.arg == name), None)

    @property
    def is_spread(self) -> bool:
        return any(k.arg is None for k in self.call.keywords) or len(self.call.args) > 1

    def literal(self, name: str) -> object:
        """The constant that the keyword is given, None for anything else."""
        value = self.keyword(name)
        return value.value if isinstance(value, ast.Constant) else None

    def setting(self, name: str) -> Setting:
        value = self.keyword(name)
        if value is None:
            if self.is_spread:
                return Setting(name, "unknown", None, why=f"what stands behind ** may give {name}")
            return Setting(name, "absent", DEFAULTS.get(name))
        if isinstance(value, ast.Constant):
            whole = value.value if type(value.value) is int else None
            return Setting(name, "keyword", whole, value, why="" if whole is not None else f"{name} is no whole number")
        option = option_behind(self.project, self.module, value)
        if option is None:
            return Setting(name, "unknown", None, value, why=f"{name} is computed: {self.module.text_of(value)}")
        return Setting(name, "option", option.value, value, option)

    def given(self, setting: Setting, new: int) -> Edit:
        """The edit that gives the parameter another value in the layer it comes from."""
        if setting.layer == "option" and setting.option is not None and setting.option.node is not None:
            module = setting.option.module
            return ReplaceExpression(module.path, module.span(setting.option.node), str(new))
        return SetKeyword(self.module.path, self.module.span(self.call), setting.name, str(new))


def training_calls(project: Project, module: SourceModule) -> Iterator[TrainingCall]:
    """Those of a file that name a field of TrainingArguments, so that another class of that name is left alone."""
    for call in training_argument_calls(project, module):
        if call.args or any(k.arg in FIELDS or k.arg is None for k in call.keywords):
            yield TrainingCall(project, module, call)
