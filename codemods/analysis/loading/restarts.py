"""Places where a training begins anew with a loader that has come to its end: `except StopIteration: batches = iter(loader)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, overriding
from codemods.analysis.handlers import takes
from codemods.analysis.loading.passes import Pass, drawn_from, evaluates, loops_round
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.uses import CallSite
from codemods.files.source import SourceModule, called_name, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_ENDS = frozenset({"StopIteration", "Exception"})


@record
class Restart:
    """A pass that begins anew. at: the call of `iter`, or of `itertools.cycle`; source: the loader.

    statement: what makes the iterator anew. loop: the loop over steps round it; None where the function has none. kept: the
    batches of the first pass are given again, whatever the sampler is told.
    """

    module: SourceModule
    at: ast.Call
    source: ast.expr
    statement: ast.stmt
    loop: ast.For | ast.While | None
    kept: bool = False

    @property
    def gone_through(self) -> Pass:
        loop = self.loop if self.loop is not None else ast.While(ast.Constant(True), [], [])
        return Pass(self.module, loop, self.source, CallSite(self.module, self.at))


def restarts(module: SourceModule) -> Iterator[Restart]:
    for call in (*module.calls_named("iter"), *module.calls_named("__iter__")):
        if (loader := _iterated(call)) is None or not dotted(loader):
            continue
        statement = module.statement_of(call)
        if isinstance(statement, ast.Assign) and statement.value is call and _is_trained(module, call):
            name = dotted(statement.targets[0])
            if name and _begins_anew(module, statement, name, loader):
                yield Restart(module, call, loader, statement, _steps(module, statement))
    for call in module.calls_named("cycle"):
        if qualified(module, call.func) == "itertools.cycle" and len(call.args) == 1 and _is_trained(module, call):
            yield Restart(module, call, call.args[0], module.statement_of(call), None, kept=True)


def _iterated(call: ast.Call) -> ast.expr | None:
    """`loader` for `iter(loader)` and `loader.__iter__()`."""
    if dotted(call.func) == "iter" and len(call.args) == 1:
        return call.args[0]
    own = isinstance(call.func, ast.Attribute) and call.func.attr == "__iter__" and not call.args
    return call.func.value if own and isinstance(call.func, ast.Attribute) else None


def is_only_loop(project: Project, restart: Restart) -> bool:
    """True where no loop stands round the one over steps, here or at a call: then its number never comes back."""
    return restart.loop is not None and not loops_round(project, restart.module, restart.loop)


def is_made_again(project: Project, restart: Restart) -> bool:
    """True where a loop over epochs makes the iterator anew each time: `for epoch in …: for a, b in zip(cycle(few), many)`."""
    return bool(loops_round(project, restart.module, restart.statement))


def files_of_steps(project: Project, restart: Restart) -> frozenset[str]:
    """The files of the functions that the loop over steps calls and that go backward; those of a base class in its heirs, too."""
    calls = [n for n in walk(restart.loop) if isinstance(n, ast.Call)] if restart.loop is not None else []
    steps = (step for call in calls for step in _called(project, restart.module, call))
    return frozenset(s.module.path for s in steps if _goes_backward(s) and not evaluates(s.node))


def _called(project: Project, module: SourceModule, call: ast.Call) -> Iterator[FunctionSite]:
    """What a call runs: the function itself, and the methods of heirs that stand in the place of one of `self`."""
    if (found := called_function(project, module, call)) is not None:
        yield found
    holder, _, name = dotted(call.func).rpartition(".")
    owner = module.class_of(call)
    if holder != "self" or owner is None:
        return
    for heir in overriding(project, ClassSite(module, owner), name) or ():
        yield FunctionSite(heir.module, heir.methods()[name])


def _goes_backward(step: FunctionSite) -> bool:
    return any(isinstance(n, ast.Call) and called_name(n) == "backward" for n in walk(step.node))


def _is_trained(module: SourceModule, call: ast.Call) -> bool:
    """False in a function that evaluates."""
    function = module.function_of(call)
    return function is None or not evaluates(function)


def _steps(module: SourceModule, statement: ast.stmt) -> ast.For | ast.While | None:
    """The nearest loop round a statement, in its function."""
    for up in module.ancestors(statement):
        if isinstance(up, (ast.For, ast.While)):
            return up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
    return None


def _begins_anew(module: SourceModule, statement: ast.Assign, name: str, loader: ast.expr) -> bool:
    """True where a batch could not be had of the iterator, or as many were had as the loader has."""
    below: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, ast.ExceptHandler):
            tried = module.parent(up)
            drawn = isinstance(tried, ast.Try) and any(_draws(n, name) for s in tried.body for n in walk(s))
            return drawn and takes(up, _ENDS)
        if isinstance(up, ast.If) and below in up.body and _asks_for_the_end(module, up, name, module.text_of(loader)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While)):
            return False
        below = up
    return False


def _draws(node: ast.AST, name: str) -> bool:
    """`next(batches)`, `batches.next()`."""
    drawn = drawn_from(node)
    return drawn is not None and dotted(drawn) == name


def _asks_for_the_end(module: SourceModule, test: ast.If, name: str, loader: str) -> bool:
    """`if step % len(loader) == 0:`, and `if batch is None:` of a batch that `next(batches, None)` gave."""
    if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(test.test)):
        lengths = (n for n in walk(test.test) if isinstance(n, ast.Call) and dotted(n.func) == "len" and n.args)
        return any(module.text_of(n.args[0]) == loader for n in lengths)
    asked = test.test
    if not isinstance(asked, ast.Compare) or not isinstance(asked.ops[0], ast.Is):
        return False
    given = (a for a in module.nodes(ast.Assign) if any(dotted(t) == dotted(asked.left) for t in a.targets))
    return any(_draws(a.value, name) and isinstance(a.value, ast.Call) and len(a.value.args) == 2 for a in given)
