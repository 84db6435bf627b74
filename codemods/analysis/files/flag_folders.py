"""A folder whose being there says that the files in it are made: whoever finds it reads them, whoever does not writes them."""

from __future__ import annotations

import ast

from codemods.analysis.files.filled_on_demand import filled_on_demand
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project


def says_what_is_made(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where the test over the making of the folder decides, by the same path, who writes into it and who reads.

    The error of the slower rank is what keeps it from writing the same files: with `exist_ok` two ranks write them.
    """
    tests = [up.test for up in module.ancestors(call) if isinstance(up, ast.If)]
    if not tests:
        return False
    text = _text(module, path)
    asked = (found.asked for found in filled_on_demand(project, module) if not found.by_zero)
    return any(_text(module, a.path) == text and any(a.call in walk(test) for test in tests) for a in asked)


def _text(module: SourceModule, path: ast.expr) -> str:
    return "".join(module.text_of(path).split())
