"""Ranks that a file starts as processes of its own and then waits for one after the other, looking at none of the rest."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, end_of
from codemods.analysis.ranks.started_ranks import started_rank
from codemods.api.findings import Evidence
from codemods.files.left_alone import is_heard, left
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Whoever calls one of these looks at all of the children, or ends those that are left.
_LOOKS_AFTER = ("terminate", "kill", "killpg", "poll", "is_alive", "send_signal", "waitpid", "wait3", "wait4")
_WAITS = frozenset({"join", "wait", "communicate"})


@record
class WaitInTurn:
    """call: `process.join()`; loop: the loop over the processes; why: what shows that each of them is a rank."""

    call: ast.Call
    loop: ast.For | ast.expr
    why: Evidence


def waits_in_turn(project: Project, module: SourceModule) -> Iterator[WaitInTurn]:
    why = None if _looks_after(module) else _why_ranks(module, project)
    if why is None:
        for wait in module.calls_named(*_WAITS) if is_heard() else ():
            left(module, wait, "the file looks after its children, or these are not shown to be ranks")
        return
    for wait in module.calls_named(*_WAITS):
        if not isinstance(wait.func, ast.Attribute) or wait.args or wait.keywords:
            continue
        if (loop := _loop_over(module, wait)) is not None:
            yield WaitInTurn(wait, loop, why)


def _looks_after(module: SourceModule) -> bool:
    if any(isinstance(c.func, ast.Attribute) for c in module.calls_named(*_LOOKS_AFTER)):
        return True
    reads = [n for n in module.nodes(ast.Attribute) if n.attr in ("sentinel", "exitcode", "returncode")]
    return any(n.attr == "sentinel" or any(isinstance(up, ast.While) for up in module.ancestors(n)) for n in reads)


def _why_ranks(module: SourceModule, project: Project) -> Evidence | None:
    """What shows that the file starts ranks, several of them."""
    for call in module.calls_named("Process", "Popen"):
        if (why := started_rank(project, module, call)) and _is_repeated(module, call):
            return Evidence("static", f"a process is started: {why}", module.path, call.lineno)
    return None


def _is_repeated(module: SourceModule, call: ast.Call) -> bool:
    """True where the start stands in a loop or a comprehension, or in a function that is called in one."""
    if _repeats(module, call):
        return True
    function = module.function_of(call)
    return function is not None and any(_repeats(module, c) for c in module.calls_named(function.name))


def _repeats(module: SourceModule, node: ast.AST) -> bool:
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
    return False


def _loop_over(module: SourceModule, wait: ast.Call) -> ast.For | ast.expr | None:
    """The loop whose variable is waited for, also the wait in a comprehension; None where it is another object."""
    assert isinstance(wait.func, ast.Attribute)
    name = dotted(wait.func.value).partition(".")[0]
    for up in module.ancestors(wait):
        if isinstance(up, ast.For) and _names(up.target, name):
            return up if not _starts_in(up) else None
        if isinstance(up, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            if any(_names(part.target, name) for part in up.generators):
                return up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(target))


def _starts_in(loop: ast.For) -> bool:
    """True where the loop starts the child that it waits for: one runs at a time, so none is a rank beside another."""
    return any(isinstance(n, ast.Call) and end_of(n.func) in ("start", "Popen", "Process") for s in loop.body for n in walk(s))
