"""Where the counts and predictions of the ranks come together behind an evaluation: in its function, or in what calls it."""

from __future__ import annotations

import ast

from codemods.analysis.averages.calls import is_process_count_in
from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import Role, class_facts, external_role
from codemods.analysis.loading.counted_once import counts_each_once
from codemods.analysis.loading.joined_files import joined_by_files
from codemods.analysis.loading.loss_weights import only_weighs_losses
from codemods.analysis.loading.metered_scores import adds_up_meters, scores_put_in
from codemods.analysis.loading.origins import made_class, origins
from codemods.analysis.loading.score_names import names_score
from codemods.analysis.loading.valid_rounds import is_told_which_count
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import calls_of
from codemods.analysis.wrapped.wraps import without_moves
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_JOINS = frozenset(
    {"all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "reduce", "gather", "gather_object"}
)  # fmt: skip
# What is averaged anyway, or is no sample's: a repeated one in a hundred moves it by less than the batches do.
_NO_COUNT = lazy(r"loss|nelbo|avg|average|mean|time|elapsed|norm|lr\b|size|length|numel|barrier|stop|flag|exit|done|reduceop\.m")
_AVERAGES = lazy(r"avg|average|mean|reduce_(value|tensor|dict)|loss")
_APART = lazy(
    r"uniq|dedup|duplic|\bset\(|\[\s*:\s*(len\((?!inputs|gpus|devices|batch)|n_|num_|total|self\.(n_|num|total|len)|dataset|real)|"
    r"(image|seq|sequence|sample|item|scene|frame)_?ids?(?!_(type|kind|mode|format)\b)(_\w+)?\b|by_(id|name)|index_(copy|put)_?\("
)
_LOGGER = lazy(r"\w*logger\w*")  # a `metric_logger` holds losses and times as well
_COMMENT = lazy(r"(?m)(?:^|[ \t])#.*$")
_GATHERS = lazy(r"sync|gather|merge|reduce|collect")
_CUT = lazy(r"\[\s*:\s*(size|len\(|n_|num_|total|dataset|real)")
_DEPTH = 3


def names_samples(text: str) -> bool:
    """True for code that tells samples apart by a name or number, or keeps each once; what a comment says of it is no code."""
    return _APART.search(_COMMENT.sub("", text)) is not None


@record
class Joined:
    module: SourceModule
    call: ast.Call


def joined_by_callers(project: Project, module: SourceModule, function: FunctionNode) -> Joined | None:
    """Where each caller puts what the function returns together over the ranks: `hits = all_ranks(evaluate(loader))`."""
    found: list[Joined] = []
    for site in calls_of(project, module, function) or ():
        scope = site.module.function_of(site.call)
        if scope is None or names_samples(site.module.text_of(scope)):
            return None
        names = _made_of(scope, site.module.statement_of(site.call))
        one = joined(project, site.module, scope, 0, after=site.call.lineno, of=names) if names else None
        if one is None:
            return None
        found.append(one)
    return found[0] if found else None


def _made_of(scope: FunctionNode, statement: ast.stmt) -> frozenset[str]:
    """The names that a statement gives its value, and those that are made of them below."""
    if not isinstance(statement, ast.Assign):
        return frozenset()
    names = {n.id for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}
    below = (n for n in walk_scope(scope) if isinstance(n, ast.Assign) and n.lineno > statement.lineno)
    for assign in sorted(below, key=lambda n: n.lineno):
        if any(isinstance(n, ast.Name) and n.id in names for n in walk(assign.value)):
            names |= {n.id for t in assign.targets for n in walk(t) if isinstance(n, ast.Name)}
    return frozenset(names)


def joined(
    project: Project, module: SourceModule, scope: ast.AST, depth: int, after: int = 0, of: frozenset[str] = frozenset()
) -> Joined | None:
    """The first call in a function or script, or in what it calls, that joins counts of the ranks.

    of: the names that it has to be handed one of; empty for any.
    """
    calls = [n for n in walk_scope(scope) if isinstance(n, ast.Call) and n.lineno >= after]
    calls = [c for c in calls if not of or any(isinstance(n, ast.Name) and n.id in of for n in walk(c))]
    calls = [c for c in calls if not is_told_which_count(module, c)]
    gathering = (_called(project, module, c) for c in calls if isinstance(c.func, ast.Attribute) and _GATHERS.search(c.func.attr))
    if any(site is not None and counts_each_once(site) for site in gathering):
        return None  # whoever counts each sample once knows of the padding; the averages beside it are of losses
    for call in calls:
        if _joins(module, call) or _computes(project, module, call):
            return Joined(module, call)
    if not of and (read := joined_by_files(module, scope)) is not None and read.lineno >= after:
        return Joined(module, read)
    for call in calls if depth < _DEPTH else ():
        inner = _called(project, module, call)
        if inner is not None and _averages_scores(module, call, inner):
            return Joined(module, call)
        if inner is not None and adds_up_meters(inner) and scores_put_in(module, scope, call):
            return Joined(module, call)
        if inner is None or (_AVERAGES.search(inner.node.name.lower()) and not _only_sums(inner)):
            continue
        if _collects_and_cuts(project, inner) or _cuts_to_parameter(inner.node):
            return None  # what it counts is put together elsewhere, too, but those who cut know of the padding
        if inner.node is not scope and not names_samples(inner.module.text_of(inner.node)):
            found = joined(project, inner.module, inner.node, depth + 1)
            if found is not None and not _NO_COUNT.search(_arguments(module, call)):
                return Joined(module, call) if depth == 0 else found
    return None


def _averages_scores(module: SourceModule, call: ast.Call, inner: FunctionSite) -> bool:
    """True for `reduce_mean(acc)`: a score is averaged over the ranks by a function of the project."""
    given = f"{_arguments(module, call)} {_made_from(module, call)}"  # a mean of the ranks' means weighs a repeated sample, too
    if not _AVERAGES.search(inner.node.name.lower()) or not names_score(given):
        return False
    calls = (n for n in walk_scope(inner.node) if isinstance(n, ast.Call))
    return any(last(name := qualified(inner.module, c.func)) in _JOINS and "dist" in name for c in calls)


def _made_from(module: SourceModule, call: ast.Call) -> str:
    """What the names that a call is handed are given: `scores` may be `[m.avg for m in metrics.values()]`."""
    names = (a for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name))
    values = (b.value for name in names for b in bindings_of(module, name) if b.value is not None and not b.part)
    return _LOGGER.sub("", " ".join(module.text_of(v).lower() for v in values))


def _only_sums(inner: FunctionSite) -> bool:
    """True for a `reduce_tensor` that sums over the ranks, and divides nothing: it gives a count of all ranks for a count."""
    nodes = list(walk_scope(inner.node))
    joins = [n for n in nodes if isinstance(n, ast.Call) and last(dotted(n.func)) == "all_reduce"]
    ops = [next((k.value for k in c.keywords if k.arg == "op"), c.args[1] if len(c.args) > 1 else None) for c in joins]
    sums = bool(joins) and all(op is None or last(dotted(op)) == "SUM" for op in ops)
    divides = any(isinstance(n, (ast.BinOp, ast.AugAssign)) and isinstance(n.op, (ast.Div, ast.FloorDiv)) for n in nodes)
    return sums and not divides and not any("div" in last(dotted(n.func)) for n in nodes if isinstance(n, ast.Call))


def _collects_and_cuts(project: Project, site: FunctionSite) -> bool:
    """True for a function that calls one that collects the results of all ranks, and leaves out what is repeated."""
    calls = (n for n in walk_scope(site.node) if isinstance(n, ast.Call) and "collect" in last(dotted(n.func)))
    inner = (called_function(project, site.module, call) for call in calls)
    return any(i is not None and _CUT.search(i.module.text_of(i.node)) is not None for i in inner)


def _cuts_to_parameter(function: FunctionNode) -> bool:
    """True for a function with `rows[:count]`, where a call says how many there are."""
    names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
    cuts = (n for n in walk_scope(function) if isinstance(n, ast.Slice) and n.lower is None)
    return any(isinstance(c.upper, ast.Name) and c.upper.id in names for c in cuts)


def _joins(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    if _gathers_by_an_object(call, name):
        return not _NO_COUNT.search(_arguments(module, call))
    if last(name) not in _JOINS or not (name.startswith("torch.distributed") or dotted(call.func).startswith("dist.")):
        return False
    return not _NO_COUNT.search(_arguments(module, call)) and not only_weighs_losses(module, call)


def _gathers_by_an_object(call: ast.Call, name: str) -> bool:
    """True for `pl_module.all_gather(rows)` and `fabric.all_gather(rows)`, which give back the rows of all ranks.

    torch's own takes the list to fill as well.
    """
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "all_gather" or len(call.args) != 1:
        return False
    return not name.startswith("torch.") and not dotted(call.func).startswith("dist.")


def _computes(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `compute()` of a torchmetrics object, which puts the counts of the ranks together; no mean of what it is told."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "compute" or call.args:
        return False
    made = origins(project, module, call.func.value)
    calls = [(o.module, without_moves(o.node)) for o in made]
    names = [qualified(there, node.func) if isinstance(node, ast.Call) else "" for there, node in calls]
    return bool(names) and all(external_role(n) is Role.METRIC and not _NO_COUNT.search(last(n).lower()) for n in names)


def _arguments(module: SourceModule, call: ast.Call) -> str:
    """The text of what a call is handed, but for the number of processes, which says nothing of what is gathered.

    Of a list that holds scores and counts beside losses (`[loss, confusion]`) it is that of the scores and counts.
    """
    given = [a for a in (*call.args, *(k.value for k in call.keywords)) if not is_process_count_in(module, a)]
    texts = [module.text_of(e).lower() for a in given for e in (a.elts if isinstance(a, (ast.List, ast.Tuple)) else [a])]
    scores = [t for t in texts if not _NO_COUNT.search(t)] if any(map(names_score, texts)) and len(given) == 1 else texts
    return " ".join(scores)


def _called(project: Project, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    site = called_function(project, module, call)
    if site is not None or not isinstance(call.func, ast.Attribute):
        return site
    for origin in origins(project, module, call.func.value):
        owner = made_class(project, origin)
        found = class_facts(project, owner.module, owner.node).method(call.func.attr) if owner is not None else None
        if found is not None:
            return FunctionSite(found[0].module, found[1])
    return None
