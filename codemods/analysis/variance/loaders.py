"""Training loaders that a framework is given: do all ranks get as many batches?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Value
from codemods.files.source import SourceModule
from codemods.store.project import Project

_HOOKS = {"train_dataloader": (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE), "get_train_dataloader": (Role.HF_TRAINER,)}
_TAKE_SETTING = frozenset({"Accelerator", "DataLoaderConfiguration"})


def training_loaders(project: Project, module: SourceModule) -> Iterator[tuple[ast.stmt, Value]]:
    """The `return` of each hook that gives the framework a training loader over shares of unequal length."""
    if not any(name.encode() in module.data for name in _HOOKS) or project.files_containing(b"limit_train_batches"):
        return
    analysis = variance(project)
    for function in module.functions:
        owner = module.parent(function)
        if function.name not in _HOOKS or not isinstance(owner, ast.ClassDef):
            continue
        facts = class_facts(project, module, owner)
        if not any(facts.is_a(role) for role in _HOOKS[function.name]):
            continue
        if function.name == "get_train_dataloader" and project.files_containing(b"max_steps"):
            continue  # the Trainer begins the loader anew until all ranks have made as many
        site = FunctionSite(module, function)
        state = analysis.of(site)
        value = analysis.resolved(site, state.result) if state is not None and state.result is not None else Value()
        if value.differs and value.sized:
            returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
            yield (returns[-1] if returns else function), value


def uneven_batches(project: Project, module: SourceModule) -> Iterator[ast.keyword]:
    """`even_batches=False` of Accelerate, where nothing joins uneven inputs."""
    if b"even_batches" not in module.data or project.files_containing(b"join_uneven_inputs"):
        return
    loaders = module.calls_named("DataLoader")
    if loaders and all(any(k.arg == "drop_last" for k in c.keywords) for c in loaders):
        return  # what does not divide is left out
    for call in module.nodes(ast.Call):
        for keyword in call.keywords:
            off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg == "even_batches" and off and last(dotted(call.func)) in _TAKE_SETTING:
                yield keyword
