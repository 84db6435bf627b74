"""Wrapped models that leave their device or their type between two steps of the training, as for an evaluation on the CPU.

A parameter whose data get another device or type gets a new gradient accumulator, also where it comes back. DDP's hooks stay with
the old one: from there on it averages nothing on the ranks that did so, and the others wait for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import bind, has_parameter, is_bound
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import calls_of
from codemods.analysis.wrapped.taken_off_by_one import goes_round_with
from codemods.analysis.wrapped.wraps import Held, held, inner_of, without_moves
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

CASTS = frozenset({"half", "double", "bfloat16"})
_TYPES = frozenset({"torch.float16", "torch.half", "torch.bfloat16", "torch.float64", "torch.double"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CLIMBS = 2
_ON_GPUS = (b"cuda", b"nccl")


@record
class Moved:
    """call: what moves the model. away: to the CPU, and not to another type.

    loop: the loop of `module` that trains it further; node: what of it comes to the move.
    """

    call: ast.Call
    inside: Held
    away: bool
    module: SourceModule
    loop: ast.stmt
    node: ast.AST


def moved_between_steps(project: Project, module: SourceModule) -> Iterator[Moved]:
    for call in module.calls_named("cpu", "to", *CASTS):
        away = _goes_to_cpu(module, call)
        if not isinstance(call.func, ast.Attribute) or not (away or casts(module, call)):
            continue
        holder = call.func.value
        found = held(project, module, holder) if isinstance(holder, (ast.Name, ast.Attribute)) else None
        if found is None or found.prepared or (away and not _is_on_gpu(found)):
            continue
        trained = _trained_further(project, module, call, holder, _CLIMBS)
        if trained is not None and (not away or _comes_back(module, call, holder, trained)):
            yield Moved(call, found, away, *trained[:3])


def casts(module: SourceModule, call: ast.Call) -> bool:
    """True for `half()`, `double()` and `to(torch.float16)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in CASTS:
        return not call.args
    return any(qualified(module, a) in _TYPES for a in (*call.args, *(k.value for k in call.keywords)))


def may_ask_for_one(found: Moved) -> bool:
    """True under a test inside the loop that compares with 0 what may be a rank by its place, if not by its name."""
    tests = [up.test for up in found.module.ancestors(found.node) if isinstance(up, ast.If) and stands_above(found.loop, up)]
    compared = (n for test in tests for n in walk(test) if isinstance(n, ast.Compare))
    return any(
        isinstance(c.ops[0], ast.Eq) and isinstance(c.comparators[0], ast.Constant) and c.comparators[0].value == 0
        and not isinstance(c.left, ast.BinOp) for c in compared
    )  # fmt: skip


def _goes_to_cpu(module: SourceModule, call: ast.Call) -> bool:
    if last(dotted(call.func)) == "cpu":
        return not call.args
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    if isinstance(given, ast.Call) and qualified(module, given.func) == "torch.device" and given.args:
        given = given.args[0]
    return isinstance(given, ast.Constant) and given.value == "cpu"


def _is_on_gpu(found: Held) -> bool:
    """True where DDP is told the devices, or the model goes to one in the file that wraps it."""
    given = next((k.value for k in found.wrap.keywords if k.arg == "device_ids"), None)
    inner = inner_of(found.wrap)
    moved = inner is not None and found.module.text_of(inner) != found.module.text_of(without_moves(inner))
    return (given is not None and not is_none(given)) or moved or any(found.module.holds(word) for word in _ON_GPUS)


def _trained_further(
    project: Project, module: SourceModule, node: ast.AST, holder: ast.expr, climbs: int
) -> tuple[SourceModule, ast.stmt, ast.AST, str] | None:
    """(file, loop, what of it stands in the loop, the model's name there) where the same wrapper makes further steps."""
    name = dotted(without_module(holder))
    function = module.function_of(node)
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, _LOOPS) and _trains(project, module, up):
            same = not _is_made_in(module, up, name) and goes_round_with(module, module.statement_of(node))
            return (module, up, node, name) if same else None
    if function is None or climbs == 0 or not has_parameter(function, name) or not _is_plain(module, function, node):
        return None
    for site in calls_of(project, module, function) or ():
        value = (bind(function, site.call, bound=is_bound(module, function)) or {}).get(name)
        if isinstance(value, (ast.Name, ast.Attribute)) and held(project, site.module, value) is not None:
            found = _trained_further(project, site.module, site.call, value, climbs - 1)
            if found is not None:
                return found
    return None


def without_module(holder: ast.expr) -> ast.expr:
    return holder.value if isinstance(holder, ast.Attribute) and holder.attr == "module" else holder


def _is_plain(module: SourceModule, function: FunctionNode, node: ast.AST) -> bool:
    """True for a statement that each call of the function comes to, with the model that it was handed."""
    statement = module.statement_of(node)
    return statement in function.body and not any(
        isinstance(s, (ast.Return, ast.Raise)) for s in walk(function) if isinstance(s, ast.stmt) and stands_above(s, statement)
    )


def _trains(project: Project, module: SourceModule, loop: ast.stmt) -> bool:
    calls = [n for n in walk_scope(loop) if isinstance(n, ast.Call)]
    if any(_is_backward(c) for c in calls):
        return True
    sites = (called_function(project, module, c) for c in calls if "train" in last(dotted(c.func)).lower())
    return any(_is_backward(n) for s in sites if s is not None for n in walk(s.node) if isinstance(n, ast.Call))


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in BACKWARDS


def _is_made_in(module: SourceModule, loop: ast.stmt, name: str) -> bool:
    """True where the loop gives the name another model; `model = model.to(device)` is the same."""
    for node in walk(loop):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and dotted(node) == name:
            assign = module.parent(node)
            if not isinstance(assign, ast.Assign) or dotted(without_moves(assign.value)) != name:
                return True
    return False


def _comes_back(
    module: SourceModule, call: ast.Call, holder: ast.expr, trained: tuple[SourceModule, ast.stmt, ast.AST, str]
) -> bool:
    """True where the model is brought to a device again, in its function below or in the loop."""
    there, loop, _, name = trained
    function = module.function_of(call)
    here = [(module, n, dotted(without_module(holder))) for n in walk(function)] if function is not None else []
    around = [(there, n, name) for n in walk(loop)]
    for file, node, held_as in (*here, *around):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node is not call:
            moves = node.func.attr == "cuda" or (node.func.attr == "to" and not _goes_to_cpu(file, node))
            if moves and dotted(without_module(node.func.value)) == held_as:
                return True
    return False
