"""The forward of the DDP wrapper on rank 0 alone: `if rank == 0: evaluate(model)`.

With buffers (BatchNorm) each forward of the wrapper broadcasts them, in `eval()` and under `no_grad()` too (measured: rank 0 is
out of step with the others from there on). The module inside has the same weights and waits for nobody.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import Role, external_role
from codemods.analysis.loading.origins import origins
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, speaks_of_ranks
from codemods.analysis.ranks.unwrapping import unwraps_first
from codemods.analysis.variance.analysis import variance
from codemods.analysis.wrapped.arms import is_bare
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.made_models import classes_of
from codemods.analysis.wrapped.may_hold import sends_buffers
from codemods.analysis.wrapped.wraps import without_moves, wraps_by_apex
from codemods.api.findings import ReplaceExpression
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_QUIET = frozenset({"no_grad", "inference_mode"})
_MODES = frozenset({"eval", "train"})


def forwards_on_one_rank(
    project: Project, module: SourceModule
) -> Iterator[tuple[ast.expr, str, str, tuple[int, str], tuple[ReplaceExpression, ...]]]:
    """(place, message, reason without a repair, what shows it, edits) for each call that runs the wrapper on rank 0 only."""
    if not module.holds(b"DistributedDataParallel"):
        return
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        if not speaks_of_ranks(module, function, project):
            continue
        for name, site in _run_here(project, module, call):
            wrap = _wrapped(module, function, name)
            guard = next((g for g in guards_over(module, call, project=project) if g.ranks is Ranks.ZERO), None)
            if wrap is not None and (is_bare(module, call, name.id) or _waits_for_nobody(project, module, wrap)):
                continue
            if wrap is None or guard is None or wrap.lineno > call.lineno or guard.kind == "decorator":
                continue
            called = name.id if site is None else f"{module.text_of(call.func)}({name.id})"
            sure = wrap in (function.body if function is not None else module.tree.body)
            quiet = is_quiet(module, call) if site is None else _only_runs(site, name, call)
            waits = _metric_in(project, site)
            why = "" if sure and quiet and not waits else (
                f"{waits} waits for the other ranks as well" if waits else
                "without several processes there is no wrapper to take apart here" if not sure
                else "gradients may be wanted, or the model is used in other ways: what rank 0 does alone has to be decided"
            )  # fmt: skip
            yield (
                name,
                f"{called} runs the DDP wrapper on rank 0 alone: with buffers (BatchNorm) each forward is a broadcast; rank 0 "
                "is out of step with the others, or hangs",
                f"use the module inside, {name.id}.module, on rank 0: {why}" if why else "",
                (wrap.lineno, f"`{name.id}` is the wrapper"),
                () if why else (ReplaceExpression(module.path, module.span(name), f"{name.id}.module"),),
            )


def _metric_in(project: Project, site: FunctionSite | None) -> str:
    """`accuracy.compute()` of a metric of torchmetrics that the function is handed: the ranks meet in it, too."""
    for call in walk(site.node) if site is not None else ():
        held = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        if site is None or held is None or not isinstance(call, ast.Call) or last(dotted(call.func)) != "compute" or call.args:
            continue
        made = [(o.module, o.node) for o in origins(project, site.module, held) if o.known]
        calls = [(there, without_moves(node)) for there, node in made]
        if any(isinstance(c, ast.Call) and external_role(qualified(there, c.func)) is Role.METRIC for there, c in calls):
            return f"{site.module.text_of(call.func)}()"
    return ""


def _waits_for_nobody(project: Project, module: SourceModule, wrap: ast.Assign) -> bool:
    """True for a wrapper round a model whose class is seen to have no buffers (measured), and for apex's: no broadcast."""
    if wraps_by_apex(module):
        return True
    thing = variance(project).value(module, wrap.value).thing
    if thing is not None and (thing.site is not None or thing.layers) and not thing.waits:
        return True
    model = wrap.value.args[0] if isinstance(wrap.value, ast.Call) and wrap.value.args else None
    if not isinstance(wrap.value, ast.Call) or not classes_of(project, module, model):
        return False
    return not sends_buffers(project, Wrapped(module, wrap.value, model))


def _run_here(project: Project, module: SourceModule, call: ast.Call) -> Iterator[tuple[ast.Name, FunctionSite | None]]:
    """The names whose forward the call runs: its own, or an argument of a project function that calls it."""
    if isinstance(call.func, ast.Name):
        yield call.func, None
    names = [a for a in call.args if isinstance(a, ast.Name) and _wrapped(module, module.function_of(call), a)]
    site = called_function(project, module, call) if names else None
    for name in names if site is not None else ():
        if site is not None and (parameter := parameter_of(site.node, call, name)) and _calls(site.node, parameter):
            if not unwraps_first(site.node, parameter):
                yield name, site


def _wrapped(module: SourceModule, function: FunctionNode | None, name: ast.Name) -> ast.Assign | None:
    """The assignment that makes the name the wrapper, if it is the last one of the name in its function."""
    bound = bindings_in(module, function, name.id)
    node = bound[-1].node if bound else None
    value = bound[-1].value if bound else None
    if not isinstance(node, ast.Assign) or not isinstance(value, ast.Call):
        return None
    return node if last(qualified(module, value.func)) == "DistributedDataParallel" else None


def is_quiet(module: SourceModule, node: ast.AST) -> bool:
    """True under `torch.no_grad()`, as a block or as a decorator."""
    for up in module.ancestors(node):
        entered: list[ast.expr] = []
        if isinstance(up, (ast.With, ast.AsyncWith)):
            entered = [i.context_expr for i in up.items]
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            entered = up.decorator_list
        if any(last(dotted(e.func if isinstance(e, ast.Call) else e)) in _QUIET for e in entered):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
    return False


def parameter_of(function: FunctionNode, call: ast.Call, name: ast.expr) -> str:
    """The parameter that a positional argument of the call becomes, "" where that is not plain."""
    position = call.args.index(name)
    named = [*function.args.posonlyargs, *function.args.args]
    if any(isinstance(a, ast.Starred) for a in call.args[:position]) or (named and named[0].arg == "self"):
        return ""
    return named[position].arg if position < len(named) else ""


def _calls(function: FunctionNode, parameter: str) -> list[ast.Call]:
    return [
        n for n in walk_scope(function)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == parameter
    ]  # fmt: skip


def _only_runs(site: FunctionSite, name: ast.Name, call: ast.Call) -> bool:
    """True where the function runs the model without gradients and sets its mode, and does nothing else with it."""
    parameter = parameter_of(site.node, call, name)
    if not all(is_quiet(site.module, c) for c in _calls(site.node, parameter)):
        return False
    for node in walk(site.node):
        if isinstance(node, ast.Name) and node.id == parameter:
            up = site.module.parent(node)
            called = isinstance(up, ast.Call) and up.func is node
            if not called and not (isinstance(up, ast.Attribute) and up.attr in _MODES):
                return False
    return True
