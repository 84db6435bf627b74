"""Who reads a file that a function makes sure of, where the function does not: a loader it hands the path to, or its callers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.files.file_flow import Step, brought_out, steps_in
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.own_paths import callers_of
from codemods.files.source import FunctionNode, SourceModule, line_of, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LOADS = lazy(r"(?<!down)(?<!Down)(?<!up)[lL]oad|[rR]ead|\bopen|parse|restore|from_file|from_ckpt|from_checkpoint")
_KEEPS_NOTHING = lazy(r"Path$|Error$|Exception$|Lock$|Logger$|Handler$|Warning$")
_UP = 2


def handed_on(module: SourceModule, function: FunctionNode, below: ast.If, wanted: frozenset[str]) -> Step | None:
    """The place behind the test where the path goes on: to a function that loads by its name, or out by `return`."""
    for node in walk_scope(function):
        if not isinstance(node, (ast.Call, ast.Return)) or line_of(node) <= below.test.lineno:
            continue
        given = _given(module, node)
        if any(wanted & forms(module, v) for v in given):
            return Step(Act.READS, wanted, module, node)
    return None


def of_what_is_returned(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[Step]:
    """What the callers read by the path that the function gives back: `torch.load(path)` below `path = path_of(name)`."""
    for site in callers_of(project, module, function):
        outer, up = site.module.function_of(site.call), site.module.parent(site.call)
        if isinstance(up, ast.Call) and (read := file_call(site.module, up)) is not None and read.path is site.call:
            yield Step(read.act, frozenset(), site.module, up)
        if outer is None or not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
            continue
        name = f"<N:{up.targets[0].id}>"
        for step in steps_in(project, site.module, list(outer.body)):
            if step.act in (Act.READS, Act.LOADS) and name in step.forms and line_of(step.call) > up.lineno:
                yield step


def _given(module: SourceModule, node: ast.Call | ast.Return) -> list[ast.expr]:
    if isinstance(node, ast.Return):
        given = [node.value] if node.value is not None else []
    else:
        end = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        keeps = end[:1].isupper() and not _KEEPS_NOTHING.search(end)
        if not (_LOADS.search(end) or keeps) or file_call(module, node) is not None:
            return []
        given = [*node.args, *(k.value for k in node.keywords)]
    return [part for value in given for part in _parts(value)]


def _parts(value: ast.expr) -> list[ast.expr]:
    """A path, and those in a list or tuple of them."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return list(value.elts)
    if isinstance(value, ast.Dict):
        return list(value.values)
    if isinstance(value, ast.Call):  # `str(path)`
        return [value] if len(value.args) == 1 else []
    return [value] if isinstance(value, (ast.Name, ast.Attribute, ast.BinOp, ast.JoinedStr)) else []


def of_callers(
    project: Project, module: SourceModule, function: FunctionNode, write: Step, up: int = _UP
) -> Iterator[tuple[list[Step], Step]]:
    """(the write in the words of a caller, what that caller does behind the call), for callers of callers too."""
    for site in callers_of(project, module, function):
        outer = site.module.function_of(site.call)
        if outer is None or outer is function:
            continue
        said = [s for s in brought_out(project, FunctionSite(module, function), site.module, site.call, None)
                if s.call is write.call]  # fmt: skip
        if not said:
            continue
        steps = list(steps_in(project, site.module, list(outer.body)))
        if any(s.act is None for s in _between(steps, write)):
            continue  # it waits for the other ranks behind the write
        for step in _behind(steps, write):
            yield said, step
        if up > 1:
            yield from of_callers(project, site.module, outer, write, up - 1)


def _behind(steps: list[Step], write: Step) -> list[Step]:
    at = next((i for i, s in enumerate(steps) if s.call is write.call), len(steps))
    return steps[at + 1 :]


def _between(steps: list[Step], write: Step) -> list[Step]:
    """What stands behind the write, as far as the first thing that reads."""
    behind = _behind(steps, write)
    reads = next((i for i, s in enumerate(behind) if s.act in (Act.READS, Act.LOADS)), len(behind))
    return behind[:reads]
