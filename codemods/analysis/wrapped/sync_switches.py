"""Switches of DDP's average that act too late, or on the wrong micro batches.

DDP looks at `require_backward_grad_sync` in the forward: with it the forward arms the reducer, and the backward averages. A
switch between the two decides over the next micro batch. Measured with torch 2.13 on two processes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, stands_above, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

FLAG = "require_backward_grad_sync"
_SCHEDULES = lazy(r"(?i)sched|lr_|warmup|timer|prof|progress|bar\b|logger|ema")
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip
Loop = ast.For | ast.While


@record
class Late:
    """switch: the assignment behind the forward. backward: the pass that it is meant for."""

    switch: ast.Assign
    wrapper: str
    forward: ast.Call
    backward: ast.Call


@record
class Inverted:
    """node: the condition of the average, which is the opposite of `test`, under which the optimizer steps.

    averages: the gradients are averaged where `node` holds; under `no_sync() if node` they are not.
    """

    node: ast.expr
    test: ast.expr
    step: ast.Call
    averages: bool


def late_switches(module: SourceModule) -> Iterator[Late]:
    for switch, wrapper in _switches(module):
        loop = _loop(module, switch)
        if loop is None or not any(isinstance(n, ast.Compare) for n in walk(switch.value)):
            continue
        inside = [n for n in walk(loop) if isinstance(n, ast.Call) and module.function_of(n) is module.function_of(switch)]
        forwards = [c for c in inside if dotted(c.func) == wrapper]
        passes = [c for c in inside if last(dotted(c.func)) == "backward" or _is_backward(c)]
        behind = [c for c in passes if stands_above(switch, c)]
        above = [c for c in forwards if stands_above(c, switch)]
        if above and behind and len(above) == len(forwards) and not any(stands_above(c, switch) for c in passes):
            yield Late(switch, wrapper, above[-1], behind[0])


def _is_backward(call: ast.Call) -> bool:
    """True for `scaler.scale(loss).backward()`, whose holder has no dotted name."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _switches(module: SourceModule) -> Iterator[tuple[ast.Assign, str]]:
    """(assignment, the wrapper whose flag it sets)."""
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if len(assign.targets) == 1 and isinstance(target, ast.Attribute) and target.attr == FLAG:
            if wrapper := dotted(target.value):
                yield assign, wrapper


def _loop(module: SourceModule, node: ast.AST) -> Loop | None:
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.While)):
            return up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def inverted_switches(module: SourceModule) -> Iterator[Inverted]:
    """The conditions of an average that are the opposite of the step's, in one round of the loop."""
    found: list[tuple[ast.expr, bool]] = [(assign.value, True) for assign, _ in _switches(module)]
    found += list(_contexts(module))
    for node, averages in found:
        loop = _loop(module, node)
        for step, test in _steps(module, loop) if loop is not None else ():
            wanted = opposite(test) if averages else test
            if wanted is None or ast.dump(wanted) != ast.dump(node) or not _counts(node):
                continue
            if not _changes_between(module, loop, node, test):
                yield Inverted(node, test, step, averages)
                break


def _contexts(module: SourceModule) -> Iterator[tuple[ast.expr, bool]]:
    """The test of `model.no_sync() if test else nullcontext()`: the average is left out where it holds, or the other way."""
    for choice in module.nodes(ast.IfExp) if module.holds(b"no_sync") else ():
        quiet = [_names_no_sync(choice.body), _names_no_sync(choice.orelse)]
        if quiet == [True, False]:
            yield choice.test, False
        elif quiet == [False, True]:
            yield choice.test, True


def _names_no_sync(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "no_sync" for n in walk(node))


def _counts(node: ast.expr) -> bool:
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(node))


def opposite(test: ast.expr) -> ast.expr | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return None


def _steps(module: SourceModule, loop: ast.AST | None) -> Iterator[tuple[ast.Call, ast.expr]]:
    """(the optimizer's step, the test over it) in a loop."""
    for call in (n for n in walk(loop) if isinstance(n, ast.Call)) if loop is not None else ():
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            continue
        if _SCHEDULES.search(last(dotted(call.func.value))):
            continue
        below: ast.AST = call
        for up in module.ancestors(call):
            if up is loop or isinstance(up, (ast.For, ast.While)):
                break
            if isinstance(up, ast.If) and any(below is s for s in up.body) and _counts(up.test):
                yield call, up.test
                break
            below = up


def _changes_between(module: SourceModule, loop: ast.AST | None, node: ast.expr, test: ast.expr) -> bool:
    """True where a name of the condition is given something between the two."""
    names = {dotted(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))}
    first, then = (node, test) if stands_above(node, test) else (test, node)
    for one in walk(loop) if loop is not None else ():
        if any(dotted(t) in names for t in _targets(one)) and stands_above(first, one) and stands_above(one, then):
            return True
    return False


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
