"""What one function asks of one wrapper, in whole groups: a question and what it lets be reached change together or not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.guards.earlier_waits import earlier_wait
from codemods.analysis.handed import held_as
from codemods.analysis.names import dotted
from codemods.analysis.wrapped.asked_of_wrapper import Asked, asks_module_of_bare
from codemods.analysis.wrapped.loss_parts import LossParts
from codemods.analysis.wrapped.plain_parts import is_of_plain_class
from codemods.analysis.wrapped.second_tries import is_second_try
from codemods.analysis.wrapped.wrapper_tests import asks_for_wrapper, tests_over
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.record import replace
from codemods.store.project import Project


def whole_groups(
    project: Project, module: SourceModule, found: Iterable[Asked], passes: LossParts
) -> Iterator[list[Asked]]:
    """The questions of each function to each wrapper that are put right by the same change."""
    grouped: dict[tuple[int, str, str], list[Asked]] = {}
    halved: set[tuple[int, str, str]] = set()
    for one in found:
        key = (id(module.function_of(one.node)), one.receiver, one.key)
        if (is_second_try(module, one.node) or _is_kept_on_wrapper(project, one)) and left(module, one.node, "it is there"):
            halved.add(key)
            continue
        if is_of_plain_class(project, one.wrapped.module, one.wrapped.model):
            continue  # it ends where it is wrapped
        if one.inverse and passes.runs_past(one.node) and left(module, one.node, "DDP504 has it call the wrapper"):
            continue
        grouped.setdefault(key, []).append(one)
    for key, asked in grouped.items():
        first = asked[0]
        if first.asks_by_name and key in halved and left(module, first.node, "what it lets be reached is on the wrapper"):
            continue
        if not first.inverse or first.instead or any(passes.goes_past(a.node) for a in asked):
            yield asked
        elif (whole := _with_the_rest(project, module, asked)) is not None:
            yield whole


def _is_kept_on_wrapper(project: Project, one: Asked) -> bool:
    """True for `model.classes = 3` and `model.classes` where the project does both: what is put on the wrapper is found there."""
    if not isinstance(one.node, ast.Attribute) or one.inverse or one.node.attr != one.attribute:
        return False
    name = re.escape(one.attribute.encode())
    if isinstance(one.node.ctx, ast.Store):
        read = re.compile(rb"(?<![\w.])(?!self\b|cls\b)\w+\." + name + rb"\b(?!\s*=[^=])")
        return any(read.search(project.read(path) or b"") for path in project.files_containing(b"." + one.attribute.encode()))
    put = re.compile(rb"(?<![\w.])" + re.escape(dotted(one.node.value).encode()) + rb"\." + name + rb"\s*=[^=]")
    return put.search(one.wrapped.module.data) is not None


# `model.module` of a model that one process leaves bare


def _with_the_rest(project: Project, module: SourceModule, asked: list[Asked]) -> list[Asked] | None:
    """With every other `model.module` of the function that one process comes to; None where it ends elsewhere in any case."""
    first = asked[0]
    if _fails_below(project, module, first) and left(module, first.node, "a function that is called there asks the wrapper, too"):
        return None
    wait = None if first.wrapped.prepared else earlier_wait(project, module, first.node)
    if wait is not None and left(module, first.node, f"{wait[0]}:{wait[1]}, which is called above, needs the group anyway"):
        return None
    held = {id(a.node) for a in asked}
    rest = [n for n in _modules_of(module, module.function_of(first.node), first.receiver) if id(n) not in held]
    open_ = [n for n in rest if not _is_kept_away(module, n, first.receiver)]
    return [*asked, *(replace(first, node=n, holder=n, rest="") for n in open_)]


def _modules_of(module: SourceModule, function: ast.AST | None, receiver: str) -> Iterator[ast.Attribute]:
    for node in module.nodes(ast.Attribute):
        if node.attr == "module" and isinstance(node.ctx, ast.Load) and module.function_of(node) is function:
            if module.text_of(node.value) == receiver:
                yield node


def _is_kept_away(module: SourceModule, node: ast.Attribute, receiver: str) -> bool:
    """True where a test or the other half of a `try` sees to the bare model; `hasattr(model.module, "x")` does not."""
    if is_second_try(module, node):
        return True
    inside = re.compile(r"\b(?:hasattr|getattr|isinstance|type)\(" + re.escape(f"{receiver}.module") + r"\b")
    return any(asks_for_wrapper(inside.sub("", module.text_of(test))) for test in tests_over(module, node))


def _fails_below(project: Project, module: SourceModule, first: Asked) -> bool:
    """True where a function that is handed the model there asks it for `module`, and is not itself put right."""
    function = module.function_of(first.node)
    for call in module.nodes(ast.Call):
        given = [*call.args, *(k.value for k in call.keywords)]
        holder = next((g for g in given if dotted(g) == first.receiver), None)
        if holder is None or module.function_of(call) is not function:
            continue
        site = called_function(project, module, call)
        name = held_as(site, call, holder) if site is not None else ""
        if site is None or not name or not site.module.holds(b".module"):
            continue
        below = [n for n in _modules_of(site.module, site.node, name) if not _is_kept_away(site.module, n, name)]
        if below and not any(asks_module_of_bare(project, site.module, n) for n in below):
            return True
    return False
