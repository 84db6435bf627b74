"""Folders that Lightning numbers: `TensorBoardLogger(...).log_dir` without a version is the next free one for each process.

Where one process has made `version_0`, those that the Trainer starts later get `version_1`: they overwrite nothing of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import class_facts
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_LOGGERS = frozenset({"TensorBoardLogger", "CSVLogger"})
_DEPTH = 3


def is_in_numbered_folder(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True for a path below the `log_dir` of such a logger."""
    if not project.files_containing(b".log_dir") or not any(project.files_containing(f"{n}(".encode()) for n in _LOGGERS):
        return False
    return _is_in(project, module, path, _DEPTH)


def _is_in(project: Project, module: SourceModule, path: ast.expr, depth: int) -> bool:
    for node in walk(path):
        if isinstance(node, ast.Attribute) and node.attr == "log_dir" and _is_numbering(module, node.value):
            return True
        if depth > 0 and any(_is_in(project, home, value, depth - 1) for home, value in _behind(project, module, node)):
            return True
    return False


def _is_numbering(module: SourceModule, logger: ast.expr) -> bool:
    made = [logger] if isinstance(logger, ast.Call) else assigned(module, logger, dotted(logger)) if dotted(logger) else []
    calls = [v for v in made if isinstance(v, ast.Call) and last(dotted(v.func)) in _LOGGERS]
    return bool(calls) and all(_counts(c) for c in calls)


def _counts(call: ast.Call) -> bool:
    """True where the call leaves the version to the logger, as an option that is not given does."""
    given = {k.arg: k.value for k in call.keywords}
    version = given.get("version", call.args[2] if len(call.args) > 2 else None)
    if None in given or isinstance(version, (ast.Name, ast.Attribute)):
        return None not in given
    return version is None or (isinstance(version, ast.Constant) and version.value is None)


def _behind(project: Project, module: SourceModule, node: ast.AST) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What a name, a field, a property or an entry (`configs["log_dir"]`) was given."""
    if isinstance(node, ast.Subscript):
        text, function = module.text_of(node), module.function_of(node)
        for assign in module.nodes(ast.Assign):
            if module.function_of(assign) is function and any(module.text_of(t) == text for t in assign.targets):
                yield module, assign.value
    elif isinstance(node, (ast.Name, ast.Attribute)) and (name := dotted(node)):
        yield from ((module, value) for value in assigned(module, node, name))
        owner = module.class_of(node) if name == f"self.{last(name)}" else None
        found = class_facts(project, module, owner).method(last(name)) if owner is not None else None
        if found is not None:
            yield from ((found[0].module, value) for value in returned(found[1], found[0].module))
