"""Evaluation rounds of Accelerate that gather rows of samples: the loop, and the calls of `accelerator.gather` of each batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.loading.padded_counts import evaluates, trains
from codemods.analysis.loading.prepared_rounds import is_prepared
from codemods.analysis.loading.read_by_sample import goes_beyond, is_read_by_sample
from codemods.analysis.loading.rows_of_batch import is_made_of_batch
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import calls_of
from codemods.analysis.variance.paths import unpacked
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_OF_SAMPLES = lazy(r"pred|label|target|logit|output|answer|reference|hyp|generated|(^|_)seqs?(_|$)")
_LABELS = lazy(r"label|target|reference|\bgts?\b|ground_?truth|\by\b")
_LOSS = lazy(r"loss(?!_?masks?\b)|time|elapsed|norm")
_NUMBERS = frozenset({"mean", "sum", "item", "max", "min"})


@record
class Round:
    """loop: the evaluation loop, which stands in `where`. first: the first gather. calls: all that go together with it.

    beside_lists: lists are gathered beside them, which would be longer than tensors that are cut.
    """

    where: SourceModule
    loop: ast.For
    first: ast.Call
    calls: tuple[ast.Call, ...]
    beside_lists: bool = False


def gathered_rounds(project: Project, module: SourceModule) -> Iterator[Round]:
    """Once a loop, or a function that is called in one: predictions that are cut, and labels that are not, no longer fit."""
    told: set[int] = set()
    for call in module.calls_named("gather"):
        if id(call) in told or not _keeps_result(project, module, call):
            continue
        found = _round_of(project, module, call)
        if found is None or id(found[2]) in told:
            continue
        where, loop, scope = found
        told.add(id(scope))
        near = [c for c in module.calls_named("gather") if any(up is scope for up in module.ancestors(c))]
        calls = tuple(c for c in near if id(c) not in told and is_gather_of_rows(project, module, c))
        told |= {id(c) for c in calls}
        if calls:
            yield Round(where, loop, call, calls, module is where and goes_beyond(module, loop, calls))


def _round_of(
    project: Project, module: SourceModule, call: ast.Call
) -> tuple[SourceModule, ast.For, ast.For | FunctionNode] | None:
    """The loop, and what holds the calls that go together: by what is gathered says of itself, else by what it is made of."""
    if _is_of_samples(module, call.args[0]):
        return _loop_round(module, call) or _loop_of_callers(project, module, call)
    return _prepared_round(project, module, call)


def _prepared_round(project: Project, module: SourceModule, call: ast.Call) -> tuple[SourceModule, ast.For, ast.For] | None:
    """The evaluation loop through a prepared loader of whose batch the gathered rows are made, whatever they are called."""
    function = module.function_of(call)
    if function is None or not is_gather_of_rows(project, module, call):
        return None
    for loop in module.ancestors(call):
        if not isinstance(loop, ast.For) or module.function_of(loop) is not function or not _is_evaluation(module, loop):
            continue
        made = is_made_of_batch(project, module, call.args[0], loop) or is_read_by_sample(module, call, loop)
        if made and is_prepared(project, module, unpacked(loop.iter), loop):
            return module, loop, loop
    return None


def _keeps_result(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `accelerator.gather(predictions)` whose result is kept as it is."""
    if not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
        return False
    up = module.parent(call)
    if isinstance(up, ast.Subscript) or (isinstance(up, ast.Attribute) and up.attr in _NUMBERS):
        return False
    return is_accelerator(project, module, call.func.value) and not module.holds(b"drop_last=True") and not is_cut(module, call)


def _loop_round(module: SourceModule, call: ast.Call) -> tuple[SourceModule, ast.For, ast.For] | None:
    """The evaluation loop that the call stands in, of a function or of a script."""
    function = module.function_of(call)
    loop = next((n for n in module.ancestors(call) if isinstance(n, ast.For)), None)
    if loop is None or module.function_of(loop) is not function or not _is_evaluation(module, loop):
        return None
    if function is None and not _gathers_labels(module, loop):
        return None  # a script that keeps predictions by their order may leave out what is behind the last
    return module, loop, loop


def _loop_of_callers(
    project: Project, module: SourceModule, call: ast.Call
) -> tuple[SourceModule, ast.For, FunctionNode] | None:
    """The evaluation loops that hand their batch to the function of the call, where every call of it stands in one."""
    function = module.function_of(call)
    if function is None or module.function_of(function) is not None or not _gathers_labels(module, function):
        return None
    if any(isinstance(up, (ast.For, ast.While)) for up in module.ancestors(call)) or trains_in(function):
        return None
    sites = calls_of(project, module, function)
    loops = [(s.module, _loop_over_batches(s.module, s.call)) for s in sites or ()]
    first = next(((m, loop) for m, loop in loops if loop is not None), None)
    if first is None or any(loop is None or m.holds(b"drop_last=True") for m, loop in loops):
        left(module, call, "not every call of {} is seen in an evaluation loop that hands it its batch", function.name)
        return None
    return *first, function


def trains_in(function: FunctionNode) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("backward", "zero_grad") for n in walk(function))


def _loop_over_batches(module: SourceModule, call: ast.Call) -> ast.For | None:
    """The innermost loop round a call that is handed what the loop goes through, where that evaluates."""
    loop = next((n for n in module.ancestors(call) if isinstance(n, ast.For)), None)
    if loop is None or module.function_of(loop) is not module.function_of(call) or not _is_evaluation(module, loop):
        return None
    batch = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    given = [*call.args, *(k.value for k in call.keywords)]
    return loop if any(isinstance(n, ast.Name) and n.id in batch for g in given for n in walk(g)) else None


def _is_evaluation(module: SourceModule, loop: ast.For) -> bool:
    function = module.function_of(loop)
    if trains(loop):
        return False
    return evaluates(module, function if function is not None else module.tree) or _is_behind_eval(module, loop)


def _is_behind_eval(module: SourceModule, loop: ast.For) -> bool:
    """True where `model.eval()` stands before the loop, and no `model.train()` between: an epoch that trains, then evaluates."""
    block = module.block_of(loop)
    for statement in reversed(block[: block.index(loop)]):
        called = [n.func.attr for n in walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        if any(name in ("eval", "train") for name in called):
            alone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not statement.value.args
            return alone and called == ["eval"]
    return False


def _gathers_labels(module: SourceModule, scope: ast.AST) -> bool:
    """True where labels are gathered as well: a number is made of both."""
    calls = [c for c in module.calls_named("gather") if any(up is scope for up in module.ancestors(c))]
    return any(_LABELS.search(module.text_of(a).lower()) for c in calls for a in c.args)


def is_gather_of_rows(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a gather of names or parts that nothing reduces on the spot, and that are no losses."""
    if not isinstance(call.func, ast.Attribute) or len(call.args) != 1 or _LOSS.search(module.text_of(call.args[0]).lower()):
        return False
    parts = call.args[0].elts if isinstance(call.args[0], (ast.Tuple, ast.List)) else [call.args[0]]
    plain = all(isinstance(p, (ast.Name, ast.Attribute, ast.Subscript)) for p in parts)
    up = module.parent(call)
    reduced = isinstance(up, ast.Attribute) and up.attr in _NUMBERS
    return plain and not reduced and is_accelerator(project, module, call.func.value)


def _is_of_samples(module: SourceModule, node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return all(isinstance(p, (ast.Name, ast.Attribute, ast.Subscript)) for p in parts) and any(
        _OF_SAMPLES.search(module.text_of(p).lower()) for p in parts
    )


def is_cut(module: SourceModule, call: ast.Call) -> bool:
    """True where the names that take the result are cut in the function, as was done by hand before there was a function.

    So is what is made of them: `texts[: len(loader.dataset) - seen]`.
    """
    statement, function = module.statement_of(call), module.function_of(call)
    if any(module.function_of(n) is function and _is_what_is_left(n) for n in module.nodes(ast.Slice)):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    names = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    reads = (use for name in names for use in module.reads_of(name) if module.function_of(use) is function)
    return any(isinstance(up := module.parent(use), ast.Subscript) and isinstance(up.slice, ast.Slice) for use in reads)


def _is_what_is_left(piece: ast.Slice) -> bool:
    """True for `[: len(data) - seen]`."""
    upper = piece.upper
    counts = isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Sub)
    return upper is not None and counts and any(isinstance(n, ast.Call) and dotted(n.func) == "len" for n in walk(upper))
