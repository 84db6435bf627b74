"""Loops that step the optimizer after several backward passes of a DDP wrapper, each of which averages the gradients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.losses import Backward, backward_passes, behind
from codemods.analysis.wrapped.wraps import Side, held
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SCHEDULES = lazy(r"sched|lr_|warmup|timer|prof|progress|bar\b|logger|ema", re.I)
_READS_GRADIENTS = frozenset({"grad", "clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "unscale_"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWNERS = (ast.For, ast.AsyncFor, ast.While, *_FUNCTIONS)
Round = ast.For | ast.FunctionDef


@record
class Accumulation:
    """round: the loop over the micro-batches, or the function that is called for each. step: the `if` over the optimizer's step.

    first: its statement with the first forward. wrapper: how the wrapper is written there. wrap: the call that makes it.
    obstacle: why the average cannot be left out by one line; "" where it can.
    """

    round: Round
    step: ast.If
    first: ast.stmt
    wrapper: str
    wrap: tuple[SourceModule, ast.Call]
    passes: tuple[Backward, ...]
    obstacle: str


def accumulations(project: Project, module: SourceModule) -> Iterator[Accumulation]:
    """Those of a file, one for a loop."""
    seen: set[int] = set()
    for call in module.calls_named("step"):
        if not _is_step(call) or (found := _under_a_count(module, call)) is None or id(found[0]) in seen:
            continue
        seen.add(id(found[0]))
        if (one := _judged(project, module, *found)) is not None:
            yield one


def _is_step(call: ast.Call) -> bool:
    """True for `optimizer.step()` and `scaler.step(optimizer)`."""
    holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return bool(holder) and _SCHEDULES.search(last(holder)) is None


def _under_a_count(module: SourceModule, call: ast.Call) -> tuple[Round, ast.If] | None:
    """(the round, the test in it) of `if (i + 1) % n == 0:` over a step; between both only `with` and `try` may stand."""
    test: ast.If | None = None
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, _OWNERS):
            return (up, test) if test is not None and isinstance(up, (ast.For, ast.FunctionDef)) else None
        if test is None and isinstance(up, ast.If) and below in up.body and _counts(up.test) and not _steps_in(up.orelse):
            test = up
        elif test is not None and not isinstance(up, (ast.With, ast.Try)):
            return None
        below = up
    return None


def _steps_in(block: list[ast.stmt]) -> bool:
    calls = (n for s in block for n in walk(s) if isinstance(n, ast.Call))
    return any(last(dotted(c.func)) == "step" and _is_step(c) for c in calls)


def _counts(test: ast.expr) -> bool:
    """True for a test of which a part is `(i + 1) % n == 0`, with a number that is no constant 1."""
    for part in walk(test):
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
            size = part.left.right if isinstance(part.left, ast.BinOp) and isinstance(part.left.op, ast.Mod) else None
            if isinstance(size, (ast.Name, ast.Attribute)) or (isinstance(size, ast.Constant) and size.value not in (0, 1)):
                return True
    return False


def _judged(project: Project, module: SourceModule, round_: Round, step: ast.If) -> Accumulation | None:
    block = module.block_of(step)
    passes = [b for b in backward_passes(module) if _statement_in(module, block, b.call) is not None]
    homes = {id(_statement_in(module, block, b.call)) for b in passes}
    if len(homes) != 1 or any(b.steps or _innermost(module, b.call) is not round_ for b in passes):
        return None
    at = block.index(step)
    backward = next(i for i, s in enumerate(block) if id(s) in homes)
    if backward >= at or _wipes(module, block, step):
        return None
    forwards = list(_forwards(project, module, block, passes))
    wrappers = {dotted(call.func) for call, _, _ in forwards}
    if len(wrappers) != 1 or "" in wrappers:
        return None
    first, place, wrap = min(forwards, key=lambda f: f[0].lineno)
    statement = _statement_in(module, block, first)
    if statement is None or block.index(statement) > backward:
        return None
    obstacle = _obstacle(module, block, step, (place, wrap), wrappers.pop()) or _changes(project, module, block[:at], step)
    return Accumulation(round_, step, statement, dotted(first.func), (place, wrap), tuple(passes), obstacle)


def _innermost(module: SourceModule, node: ast.AST) -> ast.AST | None:
    return next((up for up in module.ancestors(node) if isinstance(up, _OWNERS)), None)


def _statement_in(module: SourceModule, block: list[ast.stmt], node: ast.AST) -> ast.stmt | None:
    """The statement of the block that a node stands in."""
    round_it = {id(node), *(id(up) for up in module.ancestors(node))}
    return next((s for s in block if id(s) in round_it), None)


def _wipes(module: SourceModule, block: list[ast.stmt], step: ast.If) -> bool:
    """True where each round drops the gradients: nothing is accumulated."""
    calls = (c for c in module.calls_named("zero_grad") if _statement_in(module, block, c) is not None)
    return any(_statement_in(module, block, c) is not step for c in calls)


def _forwards(
    project: Project, module: SourceModule, block: list[ast.stmt], passes: list[Backward]
) -> Iterator[tuple[ast.Call, SourceModule, ast.Call]]:
    """(the call of the wrapper, the wrap and its file) for each that the loss is made of."""
    for one in (b for p in passes for b in behind(project, p)):
        if one.module is not module or _statement_in(module, block, one.call) is None or not dotted(one.call.func):
            continue
        found = held(project, module, one.call.func)
        if found is not None and found.side is Side.WRAPPER and not found.prepared:
            yield one.call, found.module, found.wrap


def _obstacle(
    module: SourceModule, block: list[ast.stmt], step: ast.If, wrap: tuple[SourceModule, ast.Call], wrapper: str
) -> str:
    if any(k.arg == "static_graph" for k in wrap[1].keywords) or wrap[0].holds(b"_set_static_graph"):
        return "with `static_graph` the first backward has to average"
    if any(wrapper in [dotted(a) for a in c.args] for c in module.calls_named("compile")):
        return f"`{wrapper}` is compiled: set it on the wrapper inside"
    function = module.function_of(step)
    others = (c for c in module.calls_named("step") if _is_step(c) and module.function_of(c) is function)
    if any(_statement_in(module, block, c) is not step for c in others):
        return "another step takes what has been gathered by then: those gradients have to be averaged, too"
    inside = {id(n) for n in walk(step)}
    for node in (n for s in block for n in walk(s) if id(n) not in inside):
        if isinstance(node, ast.Attribute) and node.attr in _READS_GRADIENTS:
            return f"line {node.lineno} works on the gradients of each micro-batch"
    return ""


def _changes(project: Project, module: SourceModule, above: list[ast.stmt], step: ast.If) -> str:
    """Why the test may come out in another way in front of the forward; "" where it does not."""
    stored = {dotted(n) for s in above for n in walk(s) if isinstance(getattr(n, "ctx", None), ast.Store)}
    for node in walk(step.test):
        if isinstance(node, ast.Call) and dotted(node.func) != "len":
            return f"`{module.text_of(node)}` in the test may give something else in front of the forward"
        if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) in stored:
            return f"`{dotted(node)}` of the test gets its value between the forward and the step"
        if isinstance(node, ast.NamedExpr):
            return "the test sets a name"
    moved = _set_by_calls(project, module, above) & {dotted(n) for n in walk(step.test) if isinstance(n, ast.Attribute)}
    return f"`{min(moved)}` of the test is set by a method that is called in front of it" if moved else ""


def _set_by_calls(project: Project, module: SourceModule, statements: list[ast.stmt]) -> set[str]:
    """The fields of `self` that the methods give a value which the statements call."""
    found: set[str] = set()
    for call in (n for s in statements for n in walk(s) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self":
            site = called_function(project, module, call)
            stores = (n for n in walk(site.node) if isinstance(n, ast.Attribute)) if site is not None else ()
            found |= {dotted(n) for n in stores if isinstance(n.ctx, ast.Store)}
    return found
