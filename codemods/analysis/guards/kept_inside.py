"""Does a function that some ranks alone call keep its output to rank 0 by itself, and wait outside of that test?"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.output.effects import Kind, effects_of_function
from codemods.files.source import SourceModule
from codemods.store.project import Project


def does_the_rest_on_zero(project: Project, module: SourceModule, call: ast.AST) -> bool:
    """True for a call of a project function whose collectives every rank meets, and whose output is kept to rank 0 inside."""
    site = called_function(project, module, call) if isinstance(call, ast.Call) else None
    if site is None or site.node.decorator_list:
        return False
    items = effects_of_function(project, site.module, site.node).items
    rest = [e for e in items if e.kind is not Kind.COLLECTIVE]
    return bool(rest) and len(rest) < len(items) and all(e.guarded for e in rest) and not any(
        e.guarded for e in items if e.kind is Kind.COLLECTIVE
    )
