"""Hooks of a validation that no Trainer runs, since no program hands it data to validate on.

Each `val_dataloader` of the program gives None, and each `fit` is handed a module with data to train on, or nothing more.
Lightning skips a loader that is None, and with no other one the whole validation, whatever hooks the module has.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import family
from codemods.analysis.ranks.unused import is_packaged
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_HOOKS = lazy(r"(?:on_)?validation_\w+")
_MENTION = lazy(rb"\bval_?(?:idation)?_?(?:data)?_?loaders?\b")
_DEFINED = lazy(rb"\bdef[ \t]+val_dataloader[ \t]*\(")
# What may validate, or hand data over, in a way that is not looked into.
_OPEN = lazy(rb"\.validate\(|LightningCLI|\binstantiate\(|getattr\(\s*(?:self\.)?trainer|\btrainer_fn\b|\.setattr\(")
_COMMENT = lazy(rb"(?m)^[ \t]*#.*$")
_TRAINS = frozenset({"model", "train_dataloader", "train_dataloaders", "datamodule", "ckpt_path"})
_MOST_FILES = 150


def is_hook_of_unfed_validation(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for `validation_step` and the like of a module that each program trains without data to validate on."""
    if _HOOKS.fullmatch(function.name) is None or is_packaged(project, module.path):
        return False
    return project.keep(("unfed validation", module.path), lambda: _is_unfed(project, module))


def _is_unfed(project: Project, module: SourceModule) -> bool:
    if not project.files_containing(b"def val_dataloader") or project.files_containing(b"validate(", kinds=(".ipynb",)):
        return False
    programs = [whole_program(project, p) for p in _fitting(project) if module.path in whole_program(project, p)]
    return bool(programs) and all(_feeds_none(project, files) for files in programs)


def _fitting(project: Project) -> list[str]:
    return [p for p in sorted(project.files_containing(b".fit(")) if not is_test_file(p)]


def _feeds_none(project: Project, files: frozenset[str]) -> bool:
    read = [m for p in sorted(files) if (m := project.module(p)) is not None] if len(files) <= _MOST_FILES else []
    texts = [_COMMENT.sub(b"", m.data) for m in read]
    if not texts or len(read) < len(files) or any(_OPEN.search(text) for text in texts):
        return False
    if sum(len(_MENTION.findall(t)) for t in texts) != sum(len(_DEFINED.findall(t)) for t in texts):
        return False  # one is handed over, or set, by name
    loaders = [(m, f) for m in read for f in m.functions if f.name == "val_dataloader"]
    calls = [c for m in read for c in m.calls_named("fit")]
    known = all(_is_of_lightning(project, m) for m in read)
    return bool(loaders) and all(map(_gives_nothing, (f for _, f in loaders))) and all(map(_trains_alone, calls)) and known


def _gives_nothing(function: FunctionNode) -> bool:
    """True for a body of `pass`, a docstring, `return` and `return None`."""
    for statement in function.body:
        if isinstance(statement, ast.Expr):
            empty = isinstance(statement.value, ast.Constant)
        elif isinstance(statement, ast.Return):
            empty = statement.value is None or (isinstance(statement.value, ast.Constant) and statement.value.value is None)
        else:
            empty = isinstance(statement, ast.Pass)
        if not empty:
            return False
    return not function.decorator_list


def _trains_alone(call: ast.Call) -> bool:
    """True for `trainer.fit(model, data)`: a third argument is data to validate on."""
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    return not starred and len(call.args) <= 2 and all(k.arg in _TRAINS for k in call.keywords)


def _is_of_lightning(project: Project, module: SourceModule) -> bool:
    """True where each data module is the project's own, over Lightning's base."""
    for node in module.nodes(ast.ClassDef):
        facts = class_facts(project, module, node)
        if facts.is_a(Role.LIGHTNING_DATA_MODULE) and (facts.opaque or any(family(n) != "lightning" for n in facts.external)):
            return False
    taken = (i.dotted for found in module.imports.values() for i in found if i.dotted.endswith("DataModule"))
    return all(family(name) == "lightning" or project.resolve(name, module.path) is not None for name in taken)
