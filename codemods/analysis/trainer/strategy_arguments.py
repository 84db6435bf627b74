"""Arguments of a strategy of Lightning that are given to the Trainer, which no version of it takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.trainer.lightning_trainers import keywords, trainer_calls
from codemods.analysis.trainer.trainer_keys import key_places
from codemods.analysis.trainer.trainer_tables import is_trainer_key
from codemods.data.lightning_arguments import OF_STRATEGIES, UNHEARD_OF
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class StrategyArgument:
    """at: where it is given. name: the argument; shown: the place as code calls it."""

    at: ast.AST
    name: str
    shown: str


def strategy_arguments(project: Project, module: SourceModule) -> Iterator[StrategyArgument]:
    """`Trainer(find_unused_parameters=True)`, and a key that is put into the configuration which a Trainer is made of."""
    named = [name for name in sorted(OF_STRATEGIES) if module.holds(name.encode())]
    for call in trainer_calls(project, module) if named else ():
        given = keywords(call)
        for name in named if not UNHEARD_OF & given.keys() else ():
            if name in given:
                yield StrategyArgument(given[name], name, f"{module.text_of(call.func)}({name}=…)")
    for name in named:
        for key in dict.fromkeys(_keys_set(module, name)):
            if is_trainer_key(project, key) and not _is_taken_out(project, key, name):
                places = (p for p in key_places(module, key, name) if p.stored is not None)
                yield from (StrategyArgument(p.node, name, f"{key}.{name}") for p in places)


def _keys_set(module: SourceModule, name: str) -> Iterator[str]:
    """The keys `x` of `config.x.name = …` and `config["x"]["name"] = …`."""
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            if isinstance(target, (ast.Attribute, ast.Subscript)) and _end(target) == name:
                yield _end(target.value)


def _end(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return str(node.slice.value) if isinstance(node.slice, ast.Constant) else ""
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_taken_out(project: Project, key: str, name: str) -> bool:
    """True where code reads the key as well: it may take it away before the Trainer is made."""
    for path in project.files_containing(name.encode()):
        module = project.module(path) if not is_test_file(path) else None
        if module is not None and any(p.stored is None for p in key_places(module, key, name)):
            return True
    return False
