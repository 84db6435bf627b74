"""Models in training that are given another type behind `accelerator.prepare`, which puts DDP round them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.literals import is_false
from codemods.analysis.names import dotted, qualified
from codemods.analysis.wrapped.moved_between_steps import CASTS, casts
from codemods.analysis.wrapped.wraps import Held, Side, held
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import FunctionNode, SourceModule, stands_above
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class CastBehind:
    """call: what changes the type. sure: the type is written there. always: the model is prepared in each run."""

    call: ast.Call
    inside: Held
    name: str
    sure: bool
    always: bool


def cast_behind_prepare(project: Project, module: SourceModule) -> Iterator[CastBehind]:
    for call in module.calls_named("to", *CASTS) if module.holds(b"ccelerat") and module.holds(b".backward(") else ():
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        function = module.function_of(call)
        sure = casts(module, call)
        if not isinstance(holder, ast.Name) or function is None or not (sure or _may_cast(module, call)):
            continue
        found = held(project, module, holder)
        if found is None or found.side is not Side.WRAPPER or not found.prepared or found.module is not module:
            continue
        if module.function_of(found.wrap) is not function or not stands_above(found.wrap, call) or _has_trained(module, call):
            continue
        tests = {id(up) for up in module.ancestors(found.wrap) if isinstance(up, ast.If)}
        mine = {id(up) for up in module.ancestors(call) if isinstance(up, ast.If)}
        if _is_cast_in_front(module, holder.id, found.wrap):
            continue
        if mine <= tests and _is_trained(module, function, holder.id, found.wrap):
            yield CastBehind(call, found, holder.id, sure, not tests - mine)


def _may_cast(module: SourceModule, call: ast.Call) -> bool:
    """True for `net.to(dtype=weight_dtype)` where a branch gives the name bfloat16; with float16 the scaler raises an error."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "dtype")]
    values = (b.value for g in given if isinstance(g, ast.Name) for b in bindings_of(module, g))
    return any(value is not None and qualified(module, value) == "torch.bfloat16" for value in values)


def _is_cast_in_front(module: SourceModule, name: str, wrap: ast.Call) -> bool:
    """True where it has the type already when it is prepared."""
    for call in module.calls_named("to", *CASTS):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and stands_above(call, wrap):
            if casts(module, call) or _may_cast(module, call):
                return True
    return False


def _has_trained(module: SourceModule, call: ast.Call) -> bool:
    """False only where each backward pass of the function comes further down."""
    function = module.function_of(call)
    passes = [c for c in module.calls_named(*BACKWARDS) if module.function_of(c) is function]
    return not passes or any(stands_above(c, call) for c in passes)


def _is_trained(module: SourceModule, function: FunctionNode, name: str, wrap: ast.Call) -> bool:
    """True where its parameters are handed to somebody above `prepare`, and nothing freezes all of them in each run."""
    for call in module.calls_named("requires_grad_"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and call.args and is_false(call.args[0]):
            if module.statement_of(call) in function.body:
                return False
    for call in module.calls_named("parameters"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and stands_above(call, wrap):
            if module.function_of(call) is function and not isinstance(module.parent(call), (ast.For, ast.comprehension)):
                return True
    return False
