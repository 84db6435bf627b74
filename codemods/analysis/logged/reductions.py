"""Where a program puts numbers together from all ranks: it has the helper, and the reader of its logs expects it."""

from __future__ import annotations

import ast
import re

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import reached
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.number_words import is_number
from codemods.project import Project
from codemods.record import record
from codemods.source import FunctionNode, SourceModule, walk, walk_scope

_COLLECTIVES = ("all_reduce", "reduce", "gather", "gather_for_metrics", "all_gather", "all_gather_object", "gather_object")
_WORDS = (b"all_reduce", b"gather", b".reduce(")
_OBJECTS = ("accelerator", "fabric")
_HELPER = re.compile(
    r"^_?(all_?|dist_)?(reduce|average|mean|sync)_?(across_processes|dict|tensors?|mean|values?|loss(es)?|loss_dict|scalars?|metrics?)$"
    r"|^(all_?reduce|average_across_\w+|mean_across_\w+)$",
    re.I,
)
_FILES = 30  # of a program that are looked at


@record
class Reduction:
    """A call by which the program makes a number everybody's, or the helper that it has for it; as it is written."""

    path: str
    line: int
    text: str
    used: bool


def reduction_of_program(project: Project, path: str) -> Reduction | None:
    """`reduction_in` for a file; for one that shows parts of a loss, also that of a training which imports it and reduces."""
    if (own := reduction_in(project, path)) is not None:
        return own
    stem = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    users = [p for p in project.files_importing(stem) if not is_test_file(p) and path in reached(project, p)]
    found = (_of_file(project, p) for p in users[:_FILES] if b".backward(" in (project.read(p) or b""))
    return next((r for r in found if r is not None and r.used), None)


def reduction_in(project: Project, path: str) -> Reduction | None:
    """The first one in the file, else in what it imports; one that is used before a helper that nobody calls on a number."""
    return project.keep(("a reduction of the program", path), lambda: _find(project, path))


def _find(project: Project, path: str) -> Reduction | None:
    near = [path, *sorted(reached(project, path) - {path})[:_FILES]]
    found = [r for p in near if (r := _of_file(project, p)) is not None]
    return next((r for r in found if r.used), found[0] if found else None)


def _of_file(project: Project, path: str) -> Reduction | None:
    return project.keep(("a reduction of the file", path), lambda: _find_in(project, path))


def _find_in(project: Project, path: str) -> Reduction | None:
    data = project.read(path) or b""
    if is_test_file(path) or not (any(word in data for word in _WORDS) or b"reduce" in data):
        return None
    if (module := project.module(path)) is None:
        return None
    for call in module.nodes(ast.Call):
        if any(map(_names_number, call.args[:1])) and _puts_together(project, module, call):
            return Reduction(path, call.lineno, dotted(call.func), True)
    for function in module.functions:
        if _HELPER.search(function.name) and _is_helper(module, function):
            return Reduction(path, function.lineno, function.name, False)
    return None


def _puts_together(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if _is_collective(module, call):
        return True
    name = last(dotted(call.func))
    if not re.search(r"reduce|gather|across|average", name, re.I):
        return False
    site = called_function(project, module, call)
    return site is not None and _is_helper(site.module, site.node)


def _is_helper(module: SourceModule, function: FunctionNode) -> bool:
    return any(_is_collective(module, n) for n in walk_scope(function) if isinstance(n, ast.Call))


def _is_collective(module: SourceModule, call: ast.Call) -> bool:
    name = dotted(call.func)
    if last(name) not in _COLLECTIVES:
        return False
    if qualified(module, call.func).startswith("torch.distributed."):
        return True
    return any(part in _OBJECTS for part in name.split(".")[:-1])


def _names_number(node: ast.expr) -> bool:
    return any(is_number(n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)))
