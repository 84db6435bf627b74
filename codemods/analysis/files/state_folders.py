"""The folders of states that all ranks save together, each its own random numbers: Accelerate's and those of a Trainer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.every_rank import way_of_every_rank
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.trainer.trainer_calls import TrainerCall, constant, is_off, keyword, trainer_calls
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project


def state_folders(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    """(the call, what its folder is made of, the name of the folder where it has one)."""
    yield from ((call, path, "") for call, path in _of_accelerate(project, module))
    yield from _of_trainers(project, module)


def _of_accelerate(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr]]:
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


def _of_trainers(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    """The `output_dir` of each Trainer of transformers, part after part: each rank saves its random numbers there."""
    if not module.holds(b"output_dir") or not module.calls_named("train"):
        return
    for trainer in trainer_calls(project, module):
        given = trainer.argument("args") or next(iter(trainer.call.args[1:2]), None)
        holder = dotted(given) if isinstance(given, (ast.Name, ast.Attribute)) else ""
        name = f"{holder}.output_dir" if holder else "output_dir"
        yield from ((trainer.call, path, name) for path in _parts_of_folder(trainer, name))


def _parts_of_folder(trainer: TrainerCall, name: str) -> list[ast.expr]:
    """What stands for the folder where the Trainer is made: `arguments.output_dir = …` above it, and what they are given."""
    module, made, found = trainer.module, trainer.arguments.call, list[ast.expr]()
    if made is not None and not _keeps_states(made) and left(module, trainer.call, "the Trainer saves no state of the ranks"):
        return []
    for statement in reversed(_written_above(module, trainer.call, name)):
        if _is_under_a_test(module, statement, trainer.call):
            left(module, statement, "the folder is named so on some ways only")
            return found
        found.insert(0, statement.value)
        if isinstance(statement, ast.Assign) and not any(dotted(n) == name for n in walk(statement.value)):
            return found
    path = keyword(made, "output_dir") if made is not None else None
    return [path, *found] if path is not None else found


def _keeps_states(arguments: ast.Call) -> bool:
    strategy = keyword(arguments, "save_strategy")
    return not (strategy is not None and is_off(strategy)) and constant(keyword(arguments, "save_only_model")) is not True


def _written_above(module: SourceModule, call: ast.Call, name: str) -> list[ast.Assign | ast.AugAssign]:
    """The statements of the same function that write the field above a call, in their order."""
    found: list[ast.Assign | ast.AugAssign] = []
    written: list[ast.Assign | ast.AugAssign] = [*module.nodes(ast.Assign), *module.nodes(ast.AugAssign)]
    for statement in written:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if statement.lineno < call.lineno and name in map(dotted, targets):
            if module.function_of(statement) is module.function_of(call):
                found.append(statement)
    return sorted(found, key=lambda s: s.lineno)


def _is_under_a_test(module: SourceModule, statement: ast.stmt, call: ast.Call) -> bool:
    round_call = {id(up) for up in module.ancestors(call)}
    tests = (ast.If, ast.Try, ast.For, ast.While)
    return any(isinstance(up, tests) and id(up) not in round_call for up in module.ancestors(statement))
