"""Who makes a model that is registered with timm: `create_model(name)` calls the function of that name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_own_test
from codemods.analysis.loading.same_program import reached
from codemods.analysis.names import last, qualified
from codemods.analysis.ranks.registered import is_chosen
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def makers_of(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls of timm that may make it, in programs that import its file; none where nothing chooses its name."""
    if not any(_registers(module, d) for d in function.decorator_list) or not is_chosen(project, function.name):
        return
    for path in sorted(project.files_containing(b"create_model(")):
        if not path.endswith(".py") or is_own_test(project, path) or module.path not in reached(project, path):
            continue
        maker = project.module(path)
        for call in maker.calls_named("create_model") if maker is not None else ():
            assert maker is not None
            name = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model_name"), None)
            other = isinstance(name, ast.Constant) and name.value != function.name
            if qualified(maker, call.func).startswith("timm.") and not other:
                yield maker, call


def _registers(module: SourceModule, decorator: ast.expr) -> bool:
    name = qualified(module, decorator)
    return name.startswith("timm.") and last(name) == "register_model"
