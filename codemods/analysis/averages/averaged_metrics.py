"""Metrics of a rank's own part of the data that are averaged over the ranks, though a mean of parts is not the metric.

What is reduced is followed back, through names, entries, loops over them and functions of the project, to the call that gives it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.averages.metered import SYNCHRONIZES, metered
from codemods.analysis.averages.metric_functions import gathers, metric_of_parts
from codemods.analysis.averages.metric_objects import metric_object
from codemods.analysis.averages.own_matrices import matrix_score
from codemods.analysis.averages.ranked_rows import ranks_all_rows
from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.callers import entries
from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.hooks import TRAINING_HOOKS
from codemods.analysis.logged.accumulated import fillers
from codemods.analysis.logged.epoch_numbers import is_kept_to_one_device
from codemods.analysis.logged.own_programs import evaluates_on_the_whole_set, nobody_fits
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import own_field
from codemods.analysis.variance.values import Cause
from codemods.files.source import FunctionNode, SourceModule, called_name, child_nodes, stands_above, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

# Scores of rows that are ranked.
_RANKED = lazy(r"(?<![a-z])(m?ap|auc|auroc|auprc?|roc|precision|recall|f1|eer)(?![a-z])", re.I)
_DEPTH = 6
_CALLS = 2


@record
class Metric:
    """The call that gives it, and what it gives, in words. outer: the call in the function that averages it. counts: it is
    worked out of counts, which can be added up.
    """

    module: SourceModule
    call: ast.Call
    words: str
    outer: ast.Call
    counts: bool = False


@record
class Averaged:
    """at: what averages it over the ranks. in_batches: for each batch."""

    at: ast.Call
    metric: Metric
    in_batches: bool
    logged: bool


def averaged_metrics(project: Project, module: SourceModule) -> Iterator[Averaged]:
    """Those of a file, one for each metric and function."""
    seen: set[tuple[int, int]] = set()
    passed_over: dict[tuple[int, str], bool] = {}  # function, by id: asked once, however many numbers it logs
    meters = ((call, given, False) for call, given in metered(project, module))
    for call, given, logged in (*_reductions(project, module), *synced_logs(project, module), *meters):
        function = module.function_of(call)
        if function is None:
            continue
        means = last(dotted(call.func)) if last(dotted(call.func)) == SYNCHRONIZES else ""
        if (id(function), means) not in passed_over:
            passed_over[id(function), means] = gathers(function, but=means) or _trains(function)
        if passed_over[id(function), means]:
            continue
        label = module.text_of(call) if logged else ""
        metric = _behind(project, module, given, _Search(function, module.class_of(function), label=label))
        if metric is None or (id(metric.outer), id(function)) in seen:
            continue
        if _is_whole_before(project, module, function) if logged else not _is_own(project, module, metric.outer):
            continue
        seen.add((id(metric.outer), id(function)))
        loop = any(isinstance(up, ast.For) for up in module.ancestors(metric.outer))
        step = logged and function.name.endswith("_step")
        yield Averaged(call, metric, step or (not logged and loop), logged)


def _trains(function: FunctionNode) -> bool:
    """True for a function of the training: that such a curve is rough is known."""
    if "train" in function.name:
        return True
    return any(isinstance(n, ast.Attribute) and n.attr in ("backward", "manual_backward") for n in walk(function))


def _is_whole_before(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where a method that calls this one, or fills an attribute that they read, has gathered; and for a training alone."""
    owner = module.class_of(function)
    if owner is None:
        return False
    facts = class_facts(project, module, owner)
    found = entries(project, facts, function)
    if found.hooks and found.hooks <= TRAINING_HOOKS:
        return True
    functions = [function, *(step.function for step in found.steps)]
    return any(map(gathers, (*functions, *fillers(project, facts, functions))))


def _is_own(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the metric is worked out of the rank's own data."""
    held = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for given in (*held, *call.args, *(k.value for k in call.keywords)):
        value = variance(project).value(module, given)
        if value.differs and value.cause is Cause.DATA:
            return True
    return False


# What averages


def _reductions(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr, bool]]:
    """(call, what it averages over the ranks, False): of torch, or of a function of the project that does it and divides."""
    for call in module.nodes(ast.Call):
        name = last(dotted(call.func))
        if "reduce" not in name or not call.args:
            continue
        if qualified(module, call.func).startswith("torch.distributed"):
            if not _takes_one(call):
                yield call, call.args[0], False
        elif (site := called_function(project, module, call)) is not None and site.node.name != "__init__":
            inside = [n for n in walk(site.node) if isinstance(n, ast.Call)]
            sums = [c for c in inside if qualified(site.module, c.func) == "torch.distributed.all_reduce"]
            if sums and not any(map(_takes_one, sums)):
                yield call, call.args[0], False


def _takes_one(call: ast.Call) -> bool:
    """True for the largest or smallest of all ranks."""
    return any(last(dotted(r)) in ("MAX", "MIN") for r in (*call.args[1:], *(k.value for k in call.keywords)))


def synced_logs(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr, bool]]:
    """(call, what it logs, True): `self.log(key, value, sync_dist=True)` of a LightningModule that evaluates."""
    if not module.holds(b"sync_dist"):
        return
    if is_kept_to_one_device(project) or nobody_fits(project) or evaluates_on_the_whole_set(project):
        return
    for call in module.calls_named("log", "log_dict"):
        synced = next((k.value for k in call.keywords if k.arg == "sync_dist"), None)
        if synced is None or dotted(call.func).partition(".")[0] != "self":
            continue
        owner = module.class_of(call)
        facts = class_facts(project, module, owner) if owner is not None else None
        if facts is None or not facts.is_a(Role.LIGHTNING_MODULE) or not _is_true(project, facts, synced):
            continue
        place = 1 if last(dotted(call.func)) == "log" else 0
        given = next((k.value for k in call.keywords if k.arg in ("value", "dictionary")), None)
        given = call.args[place] if given is None and len(call.args) > place else given
        if given is not None and not any(k.arg == "reduce_fx" for k in call.keywords):
            yield call, given, True


def _is_true(project: Project, facts: ClassFacts, node: ast.expr) -> bool:
    """True for `True`, and for `self.many` that the class gives nothing else."""
    if isinstance(node, ast.Constant):
        return node.value is True
    name = own_field(dotted(node))
    given = class_values(project, facts).given.get(name, []) if name else []
    return bool(given) and all(isinstance(g.value, ast.Constant) and g.value.value is True for g in given)


# What it is made of


class _Search:
    """One question. function: where it is asked; owner: the class that asks it; calls: how many were gone into. label: what
    Lightning logs, and under which name, as it is written."""

    def __init__(self, function: FunctionNode | None, owner: ast.ClassDef | None, calls: int = 0, label: str = "") -> None:
        self.function, self.owner, self.calls, self.label = function, owner, calls, label
        self.seen: set[int] = set()
        self.left = 200


def _behind(
    project: Project, module: SourceModule, node: ast.AST, search: _Search, depth: int = 0, key: object = None
) -> Metric | None:
    if id(node) in search.seen or depth > _DEPTH or search.left <= 0:
        return None
    search.seen.add(id(node))
    search.left -= 1
    if isinstance(node, ast.Call):
        return _of_call(project, module, node, search, depth, key)
    if isinstance(node, ast.Dict) and key is not None:
        picked = [v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
        return _behind(project, module, picked[0], search, depth, None) if picked else None
    if isinstance(node, ast.Subscript):
        entry = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _behind(project, module, node.value, search, depth, entry)
    if isinstance(node, ast.Name):
        return _of_name(project, module, node, search, depth, key)
    return _first(project, module, child_nodes(node), search, depth, key)


def _first(
    project: Project, module: SourceModule, nodes: Iterator[ast.AST] | list[ast.AST], search: _Search, depth: int, key: object
) -> Metric | None:
    for node in nodes:
        if (found := _behind(project, module, node, search, depth, key)) is not None:
            return found
    return None


def _of_call(
    project: Project, module: SourceModule, call: ast.Call, search: _Search, depth: int, key: object
) -> Metric | None:
    words = metric_of_parts(module, call)
    owner = module.class_of(call)
    if not words and (search.calls == 0 or owner is search.owner):
        words = metric_object(project, module, class_facts(project, module, owner) if owner is not None else None, call)
    if words:
        return Metric(module, call, words, call)
    if words := matrix_score(project, module, call, key):
        return Metric(module, call, words, call, counts=True)
    if search.label and search.calls == 0 and search.function is not None and _RANKED.search(search.label):
        if ranks_all_rows(project, module, call, search.function):
            return Metric(module, call, f"`{called_name(call)}`", call)
    site = called_function(project, module, call)
    if site is None:
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        return _first(project, module, [*([held] if held is not None else []), *call.args], search, depth + 1, key)
    if search.calls >= _CALLS or gathers(site.node):
        return None
    inner = _Search(site.node, search.owner, search.calls + 1)
    for value in returned(site.node, site.module):
        found = _behind(project, site.module, value, inner, 0, key)
        if found is not None:
            return replace(found, outer=call)
    return None


def _of_name(project: Project, module: SourceModule, name: ast.Name, search: _Search, depth: int, key: object) -> Metric | None:
    for bound in bindings_of(module, name):
        if bound.parameter or module.function_of(bound.node) is not search.function or not stands_above(bound.node, name):
            continue
        if isinstance(bound.node, ast.For):
            found = _behind(project, module, bound.node.iter, search, depth + 1, key)
        else:
            found = _behind(project, module, bound.value, search, depth + 1, key) if bound.value is not None else None
        if found is not None:
            return found
    return _first(project, module, list(_put_under(module, name, search.function, key)), search, depth + 1, None)


def _put_under(module: SourceModule, name: ast.Name, function: FunctionNode | None, key: object) -> Iterator[ast.expr]:
    """`scores["f1"] = value` above the use of `scores`: what is put under the key that is wanted, or may be that one."""
    for node in module.nodes(ast.Assign):
        first = node.targets[0]
        for target in first.elts if isinstance(first, ast.Tuple) else [first]:
            if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name) or target.value.id != name.id:
                continue
            other = key is not None and isinstance(target.slice, ast.Constant) and target.slice.value != key
            if not other and module.function_of(node) is function and stands_above(node, name):
                yield node.value
