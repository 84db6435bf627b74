"""Attributes that spawned workers put on a function or a class of the file, and that the parent reads from its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import top_function
from codemods.analysis.names import is_parameter
from codemods.analysis.processes.starts import Start, reached_by, run_after
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class LeftAttribute:
    """put: where a worker puts it. read: where the parent reads what its own function does not have."""

    put: ast.Attribute
    read: ast.Attribute


def left_attributes(project: Project, module: SourceModule, start: Start) -> Iterator[LeftAttribute]:
    """`train.metric = metric` in a worker, `train.metric` in the parent; nothing where anybody else puts it."""
    if start.worker.module is not module:
        return
    own = {id(s.node) for s in reached_by(project, start.worker) if s.module is module}
    put: dict[tuple[str, str], ast.Attribute] = {}
    by_others: set[tuple[str, str]] = set()
    for node in module.nodes(ast.Attribute):
        if isinstance(node.ctx, ast.Store) and _is_function(module, node.value):
            key = (node.value.id, node.attr) if isinstance(node.value, ast.Name) else ("", "")
            if any(id(up) in own for up in module.ancestors(node)):
                put.setdefault(key, node)
            else:
                by_others.add(key)
    told: set[tuple[str, str]] = set()
    for statement in run_after(module, start.end) if put else ():
        for read in walk(statement):
            if isinstance(read, ast.Attribute) and isinstance(read.ctx, ast.Load) and isinstance(read.value, ast.Name):
                key = (read.value.id, read.attr)
                if key in put and key not in by_others and key not in told and _is_function(module, read.value):
                    told.add(key)
                    yield LeftAttribute(put[key], read)


def _is_function(module: SourceModule, node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Name) and top_function(module, node.id) is not None
        and not bindings_of(module, node) and not is_parameter(module, node.id, node) and not module.imports.get(node.id)
    )  # fmt: skip
