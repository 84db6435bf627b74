"""Dicts of losses that a function gives back with a tensor on the CPU in them: NCCL cannot reduce that one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.log_calls import LogCall
from codemods.analysis.logged.moved_values import is_moved
from codemods.analysis.logged.pending_metrics import Place
from codemods.analysis.names import dotted, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

_NEW = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy"})


def cpu_entry(log: LogCall) -> Place | None:
    """The first of the project: `return loss, {"total": total, "factor": torch.tensor(factor)}`, without a device.

    None where Lightning moves it.
    """
    if is_moved(log):
        return None
    project = log.project
    return project.keep("dict with a CPU tensor", lambda: next(_entries(project), None))


def _entries(project: Project) -> Iterator[Place]:
    paths = {p for name in _NEW for p in project.files_containing(f"{name}(".encode())}
    for path in sorted(p for p in paths if p.endswith(".py") and not is_test_file(p)):
        module = project.module(path)
        for node in module.nodes(ast.Dict) if module is not None else ():
            assert module is not None
            entry = next((v for v in node.values if _is_on_cpu(module, v)), None)
            if entry is not None and _is_given_back(module, node):
                yield Place(f"`{module.text_of(entry)}` of a dict that is given back", path, entry.lineno)


def _is_on_cpu(module: SourceModule, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or qualified(module, value.func) not in _NEW:
        return False
    return all(k.arg != "device" for k in value.keywords)


def _is_given_back(module: SourceModule, node: ast.Dict) -> bool:
    """True where the function returns the dict, or the name that it is given, alone or in a tuple."""
    statement, function = module.statement_of(node), module.function_of(node)
    names = {dotted(t) for t in statement.targets} if isinstance(statement, ast.Assign) and statement.value is node else set()
    for found in module.nodes(ast.Return):
        if found.value is None or module.function_of(found) is not function:
            continue
        parts = found.value.elts if isinstance(found.value, ast.Tuple) else [found.value]
        if any(p is node or (isinstance(p, ast.Name) and p.id in names) for p in parts):
            return function is not None
    return False
