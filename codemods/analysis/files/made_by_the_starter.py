"""What the process makes that starts the ranks: they are handed it, and make none of their own."""

from __future__ import annotations

import ast

from codemods.analysis.conditions import is_main_block
from codemods.analysis.files.every_rank import starts_processes
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_made_by_the_starter(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in the main block of a script that starts the ranks: those that are spawned do not run it again."""
    above = module.function_of(node) is None and any(map(is_main_block, module.ancestors(node)))
    return above and starts_processes(project, module, None)
