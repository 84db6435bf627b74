"""The folders of states that all ranks save together, each its own random numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.every_rank import way_of_every_rank
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project


def state_folders(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Where Accelerate's `save_state` puts what every rank saves: its argument, or the `project_dir` in which it names them."""
    saves = [c for c in module.calls_named("save_state") if "accelerator" in last(dotted(c.func).rpartition(".")[0]).lower()]
    # who calls a method of the name `save` is seldom seen
    saves = [c for c in saves if module.class_of(c) is None and way_of_every_rank(project, module, c) is not None]
    yield from ((c, c.args[0]) for c in saves if c.args)
    for call in module.calls_named("ProjectConfiguration") if any(not c.args and not c.keywords for c in saves) else ():
        given = {k.arg: k.value for k in call.keywords}
        named, path = given.get("automatic_checkpoint_naming"), given.get("project_dir")
        by_itself = isinstance(named, ast.Constant) and named.value is True
        if by_itself and path is not None and qualified(module, call.func).startswith("accelerate."):
            yield call, path
