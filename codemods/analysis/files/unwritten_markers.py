"""Questions for a file that says a run is over, `exists(join(out, "completed"))`, which nothing in the project ever writes."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.conditions import conjuncts
from codemods.analysis.model.signatures import returned
from codemods.files.source import SourceModule, called_name
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MARKER = lazy(r"[._]?(?:completed?|done|finished|success)", re.IGNORECASE)
_ASKS = ("exists", "isfile", "is_file", "lexists")
_TEXTS = (*SHELL_KINDS, ".md", ".yaml", ".yml", ".ipynb", "Makefile")
_DEPTH = 3


def is_of_unwritten_marker(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for such a question, for a name that holds its answer, and for the part of a function's result that is no other."""
    return _is_never(project, module, part, _DEPTH, asked=True)


def _is_never(project: Project, module: SourceModule, value: ast.expr, depth: int, *, asked: bool = False) -> bool:
    """asked: a question is wanted, and no bare `False`."""
    if isinstance(value, ast.Constant):
        return not asked and (not value.value or (value.value is True and _is_under_one(project, module, value, depth)))
    if isinstance(value, ast.Call):
        return _asks_for_one(project, value)
    if not isinstance(value, ast.Name) or not depth:
        return False
    bound = bindings_of(module, value)
    return len(bound) == 1 and _is_bound_so(project, module, value.id, bound[0], depth - 1)


def _is_bound_so(project: Project, module: SourceModule, name: str, bound: Binding, depth: int) -> bool:
    if bound.value is None or bound.parameter:
        return False
    if not bound.part:
        return _is_never(project, module, bound.value, depth, asked=True)
    index = _index_in(module, bound.value, name)
    site = called_function(project, module, bound.value) if isinstance(bound.value, ast.Call) and index is not None else None
    if site is None or index is None or site.node.decorator_list:
        return False
    given = [v.elts[index] for v in returned(site.node, site.module) if isinstance(v, ast.Tuple) and len(v.elts) > index]
    if not given or len(given) != len(returned(site.node, site.module)):
        return False
    if not any(isinstance(v, (ast.Name, ast.Call)) for v in given):
        return False
    return all(_is_never(project, site.module, v, depth) for v in given)


def _index_in(module: SourceModule, value: ast.expr, name: str) -> int | None:
    """Which part of the value `a, name = value` takes."""
    assign = module.parent(value)
    target = assign.targets[0] if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else None
    if not isinstance(target, ast.Tuple) or any(isinstance(t, ast.Starred) for t in target.elts):
        return None
    return next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Name) and t.id == name), None)


def _is_under_one(project: Project, module: SourceModule, node: ast.AST, depth: int) -> bool:
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and any(s is below for s in up.body):
            if depth and any(_is_never(project, module, t, depth - 1, asked=True) for t in conjuncts(up.test)):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def _asks_for_one(project: Project, call: ast.Call) -> bool:
    if called_name(call) not in _ASKS:
        return False
    path = call.args[0] if len(call.args) == 1 else call.func.value if isinstance(call.func, ast.Attribute) else None
    while isinstance(path, ast.Call) and path.args:
        path = path.args[-1]
    end = path.right if isinstance(path, ast.BinOp) else path
    text = end.value if isinstance(end, ast.Constant) and isinstance(end.value, str) else ""
    name = text.rpartition("/")[2]
    return _MARKER.fullmatch(name) is not None and project.keep(("unwritten", name), lambda: _is_unwritten(project, name))


def _is_unwritten(project: Project, name: str) -> bool:
    """True where each text of that name in Python stands in such a question, and no command makes the file."""
    word = re.escape(name.encode())
    text = rb"[\"'/]" + word + rb"[\"']"
    asked = re.compile(rb"(?:exists|isfile)\([^\n]*" + text + rb"|" + text + rb"[ )]*\.(?:exists|is_file)\(")
    made = re.compile(rb"(?:touch|>)[ ]*[^\s;&|]*" + word + rb"\b")
    texts = [project.read(p) or b"" for p in project.files_containing(name.encode())]
    if sum(len(re.findall(text, t)) for t in texts) != sum(len(asked.findall(t)) for t in texts):
        return False
    return not any(made.search(project.read(p) or b"") for p in project.files_containing(name.encode(), kinds=_TEXTS))
