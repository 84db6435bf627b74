"""Collectives that every rank comes to, but not as often: loops over what one rank filled, the wrapper run by one rank, logs.

None of them has a repair that is right without a decision, so each is only told.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.guards.guard_split import used_names
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_EPOCH_HOOKS
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import collective_at, defines, in_lightning, keyword_is
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, ranks_at, speaks_of_ranks
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk

_PROGRESS = frozenset({"tqdm", "trange", "track", "ProgressBar", "progress"})
_EPOCH_HOOKS = EVALUATION_HOOKS | TRAINING_EPOCH_HOOKS


@dataclass(frozen=True, slots=True)
class Uneven:
    """message: what happens. reason: why there is no repair. why: (line, text) of what shows it."""

    node: ast.AST
    message: str
    reason: str
    why: tuple[int, str]


def uneven_collectives(project: Project, module: SourceModule) -> Iterator[Uneven]:
    yield from _decided_by_one_rank(project, module)
    yield from _wrapper_on_one_rank(project, module)
    yield from _logs_on_one_rank(project, module)


# How often is decided on one rank


def _decided_by_one_rank(project: Project, module: SourceModule) -> Iterator[Uneven]:
    seen: set[int] = set()
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        if function is None or not speaks_of_ranks(module, function, project):
            continue
        if (collective := collective_at(module, call, project)) is None or collective.grouped:
            continue
        below: ast.AST = call
        for up in module.ancestors(call):
            if up is function:
                break
            deciding = _deciding(up, below)
            below = up
            if deciding is None or id(up) in seen:
                continue
            for name in sorted(used_names(deciding)):
                if binding := _one_sided(project, module, function, name, up):
                    seen.add(id(up))
                    line: int = binding.node.lineno  # type: ignore[attr-defined]
                    yield Uneven(
                        call,
                        f"`{name}` decides whether and how often {collective.text} is called (line {up.lineno}), and only some "  # type: ignore[attr-defined]
                        f"ranks set it in line {line}: ranks that disagree hang, or get each other's values",
                        "give every rank the same value first (broadcast it), or make the calls on one rank without a sync",
                        (line, f"`{name}` is set under a rank test"),
                    )
                    break


def _deciding(up: ast.AST, below: ast.AST) -> ast.expr | None:
    if isinstance(up, (ast.For, ast.AsyncFor)) and below is not up.iter:
        return up.iter
    return up.test if isinstance(up, (ast.If, ast.While)) and below is not up.test else None


def _one_sided(
    project: Project, module: SourceModule, function: FunctionNode, name: str, user: ast.AST
) -> Binding | None:
    """The binding of a name above its use that only some ranks make, unless the others make one too or it is broadcast."""
    bound = [b for b in bindings_in(module, function, name) if b.parameter or b.node.lineno < user.lineno]  # type: ignore[attr-defined]
    sides = {id(b): ranks_at(module, b.node, project=project) for b in bound if not b.parameter}
    here = ranks_at(module, user, project=project)
    some = [b for b in bound if sides.get(id(b)) in (Ranks.ZERO, Ranks.LOCAL_ZERO)]
    if here is not Ranks.ALL or not some or any(r not in (Ranks.ALL, Ranks.ZERO, Ranks.LOCAL_ZERO) for r in sides.values()):
        return None
    last_one = some[-1]
    if last_one.value is None or _only_wraps(last_one.value, name) or bound[-1] is not last_one:
        return None
    for node in walk(function):
        if isinstance(node, ast.Call) and last_one.node.lineno < node.lineno < user.lineno and name in used_names(node):  # type: ignore[attr-defined]
            if collective_at(module, node, project) or "broadcast" in last(dotted(node.func)):
                return None
    return last_one


def _only_wraps(value: ast.expr, name: str) -> bool:
    """`bar = tqdm(bar)`: as many rounds as before."""
    return name in used_names(value) or (isinstance(value, ast.Call) and last(dotted(value.func)) in _PROGRESS)


# The DDP wrapper on one rank


def _wrapper_on_one_rank(project: Project, module: SourceModule) -> Iterator[Uneven]:
    """A model that is unwrapped on one rank, too late: it has been run through the wrapper before."""
    for assign in module.nodes(ast.Assign):
        value, function = assign.value, module.function_of(assign)
        if function is None or not isinstance(value, ast.Attribute) or value.attr != "module":
            continue
        target = assign.targets[0]
        if not isinstance(target, ast.Name) or dotted(value.value) != target.id:
            continue
        guard = next((g for g in guards_over(module, assign, project=project) if g.ranks is Ranks.ZERO), None)
        if guard is None:
            continue
        for call in walk(function):
            if isinstance(call, ast.Call) and guard.line < call.lineno < assign.lineno and _runs(call, target.id):
                yield Uneven(
                    call,
                    f"{module.text_of(call.func)} gets `{target.id}` while it is still the DDP wrapper, on rank 0 alone (it is "
                    f"unwrapped in line {assign.lineno}): with buffers every forward is a broadcast, so rank 0 waits",
                    f"take `{target.id}.module` before this line, on the same condition as in line {assign.lineno}",
                    (assign.lineno, module.text_of(assign)),
                )
                break


def _runs(call: ast.Call, name: str) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == name:
        return True
    if not isinstance(call.func, ast.Name) or hasattr(builtins, call.func.id):
        return False
    return any(isinstance(a, ast.Name) and a.id == name for a in call.args)


# Logs on one rank


def _logs_on_one_rank(project: Project, module: SourceModule) -> Iterator[Uneven]:
    """Epoch-level logs without a sync: Lightning 1.4 to 1.6 reduces them all the same."""
    calls = module.calls_named("log", "log_dict")
    if not calls or any(n.partition(".")[0] in ("lightning", "lightning_fabric") for n in module.imported_modules):
        return
    pin = lightning_pin(project, near=module.path)
    if pin is not None and pin.surely_at_least((1, 7)):
        return
    for call in calls:
        function = module.function_of(call)
        if function is None or function.name not in _EPOCH_HOOKS or not isinstance(call.func, ast.Attribute):
            continue
        if dotted(call.func.value) not in ("self", "pl_module") or not speaks_of_ranks(module, function, project):
            continue
        if not in_lightning(module, call, project):
            continue
        told = any(k.arg in ("sync_dist", "rank_zero_only", None) for k in call.keywords) or keyword_is(call, "on_epoch", False)
        guard = next((g for g in guards_over(module, call, project=project) if g.ranks in (Ranks.ZERO, Ranks.LOCAL_ZERO)), None)
        if told or guard is None or defines(module, call, call.func.attr, project):
            continue
        yield Uneven(
            call,
            f"only rank 0 makes this {module.text_of(call.func)}: Lightning up to 1.6 reduces it over the ranks at the end of "
            "the epoch and hangs; from 1.7 on the other ranks lack the key, and what monitors it fails there",
            "log it on every rank, or with rank_zero_only=True if nothing monitors it",
            (guard.line, "only rank 0 passes the test"),
        )
