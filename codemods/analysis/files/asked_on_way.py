"""Files that a script of Lightning makes above `fit` where they are missing: the processes that start later find them."""

from __future__ import annotations

import ast

from codemods.analysis.files.before_fit import is_made_above_fit
from codemods.analysis.files.every_rank import Way
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.filled_on_demand import is_asked_for
from codemods.analysis.files.given_anew import values_above
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_there_for_the_others(project: Project, way: Way, path: ast.expr) -> bool:
    """True where a function on the way asks for the file, and the script comes to it before the other processes start."""
    return _is_asked_on(way, path) and is_made_above_fit(project, way)


def _is_asked_on(way: Way, path: ast.expr) -> bool:
    """True where the place, or a call that leads to it, stands under a test for the very path, over the parameters between."""
    home, node = way.frames[0]
    if is_asked_for(home, node, path):
        return True
    for caller, call in way.frames[1:]:
        handed = _handed(home, node, path, caller, call)
        if handed is None:
            return False
        home, node, path = caller, call, handed
        if is_asked_for(home, node, path):
            return True
    return False


def _handed(home: SourceModule, node: ast.AST, path: ast.expr, caller: SourceModule, call: ast.AST) -> ast.expr | None:
    """How a caller writes the path: what it gives for the parameter, or an attribute of the object that both are methods of."""
    function = home.function_of(node)
    if isinstance(path, ast.Name) and function is not None and isinstance(call, ast.Call):
        return arguments_of(function, call).get(path.id) if not any(values_above(home, function, path)) else None
    same = home is caller and home.class_of(node) is not None and home.class_of(node) is caller.class_of(call)
    return path if same and isinstance(path, ast.Attribute) else None
