"""Collectives that every rank comes to, but not as often: loops over what one rank filled, the wrapper run by one rank, logs.

Most have no repair that is right without a decision; where the calls are logs, one is offered.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import Binding, bindings_in, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.frameworks import Pin, lightning_pin
from codemods.analysis.guards.guard_split import used_names
from codemods.analysis.hooks import EVALUATION_HOOKS, TEST_HOOKS, TRAINING_EPOCH_HOOKS
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import Collective, collective_at, defines, in_lightning, keyword_is
from codemods.analysis.ranks.given_on_all import is_so_on_all
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, ranks_at, speaks_of_ranks
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.rank_zero_forward import forwards_on_one_rank, parameter_of
from codemods.analysis.ranks.unwrapping import unwraps_first
from codemods.analysis.ranks.used_on_all import is_missing_elsewhere
from codemods.api.findings import DropKeyword, Edit, SetKeyword
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_PROGRESS = frozenset({"tqdm", "trange", "track", "ProgressBar", "progress"})
NOT_MONITORED = "assumes that nothing monitors it (a checkpoint, early stopping, a scheduler): the other ranks have no such value"
_NOT_IN_EACH = "log it on every rank, or with rank_zero_only=True, which Lightning has from 1.4 on"
_RANK_ZERO_ONLY_SINCE = (1, 4)  # an argument of `log` in 1.4.9, none in 1.3.8
_REDUCES_EPOCHS_SINCE = (1, 4)
_TESTED = "nothing monitors what a test logs, and no pin keeps the project at a Lightning that reduces it"
_EPOCH_HOOKS = EVALUATION_HOOKS | TRAINING_EPOCH_HOOKS


@record
class Uneven:
    """message: what happens. why: (line, text) of what shows it. edits: a repair; it is safe where `reason` is empty, else
    `reason` is what it assumes. Without a repair, `reason` says why there is none."""

    node: ast.AST
    message: str
    reason: str
    why: tuple[int, str]
    edits: tuple[Edit, ...] = ()


def uneven_collectives(project: Project, module: SourceModule) -> Iterator[Uneven]:
    yield from _decided_by_one_rank(project, module)
    yield from _rounds_by_rank(project, module)
    yield from _wrapper_on_one_rank(project, module)
    for node, message, reason, why, edits in forwards_on_one_rank(project, module):
        yield Uneven(node, message, reason, why, edits)
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
                    line = line_of(binding.node)
                    edits = logs_of_one_rank(project, module, [c for c, _ in _collectives_in(project, module, up)])
                    alone = "give every rank the same value first (broadcast it), or make the calls on one rank without a sync"
                    yield Uneven(
                        call,
                        f"`{name}` decides whether and how often {collective.text} is called (line {line_of(up)}), and only some "
                        f"ranks set it in line {line}: ranks that disagree hang, or get each other's values",
                        NOT_MONITORED if edits else alone,
                        (line, f"`{name}` is set under a rank test"),
                        edits,
                    )
                    break


def _collectives_in(project: Project, module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.AST, Collective]]:
    for inner in walk(node):
        if isinstance(inner, (ast.Call, ast.Attribute)) and (found := collective_at(module, inner, project)) is not None:
            yield inner, found


def logs_of_one_rank(project: Project, module: SourceModule, nodes: Sequence[ast.AST]) -> tuple[Edit, ...]:
    """`rank_zero_only=True` for `sync_dist=True` on each of the calls; nothing unless all of them are such logs.

    With it Lightning neither reduces the value nor waits, 1.6 included, and the logger shows that of rank 0.
    """
    if _may_lack_rank_zero_only(lightning_pin(project, near=module.path)):
        return ()
    edits: list[Edit] = []
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return ()
        if node.func.attr not in ("log", "log_dict") or any(k.arg in ("rank_zero_only", None) for k in node.keywords):
            return ()
        if not keyword_is(node, "sync_dist", True):
            return ()
        span = module.span(node)
        edits += [DropKeyword(module.path, span, "sync_dist"), SetKeyword(module.path, span, "rank_zero_only", "True")]
    return tuple(edits)


def _may_lack_rank_zero_only(pin: Pin | None) -> bool:
    """True where the pin names releases without `log(rank_zero_only=…)`."""
    if pin is None or pin.surely_at_least(_RANK_ZERO_ONLY_SINCE):
        return False
    return pin.minimum is not None or pin.surely_below(_RANK_ZERO_ONLY_SINCE)


def _deciding(up: ast.AST, below: ast.AST) -> ast.expr | None:
    if isinstance(up, (ast.For, ast.AsyncFor)) and below is not up.iter:
        return up.iter
    return up.test if isinstance(up, (ast.If, ast.While)) and below is not up.test else None


def _one_sided(
    project: Project, module: SourceModule, function: FunctionNode, name: str, user: ast.AST
) -> Binding | None:
    """The binding of a name above its use that only some ranks make, unless the others make one too or it is broadcast."""
    bound = [b for b in bindings_in(module, function, name) if b.parameter or line_of(b.node) < line_of(user)]
    sides = {id(b): ranks_at(module, b.node, project=project) for b in bound if not b.parameter}
    here = ranks_at(module, user, project=project)
    some = [b for b in bound if sides.get(id(b)) in (Ranks.ZERO, Ranks.LOCAL_ZERO)]
    if here is not Ranks.ALL or not some or any(r not in (Ranks.ALL, Ranks.ZERO, Ranks.LOCAL_ZERO) for r in sides.values()):
        return None
    last_one = some[-1]
    if last_one.value is None or _only_wraps(last_one.value, name) or bound[-1] is not last_one:
        return None
    if is_so_on_all(module, bound, last_one) or is_missing_elsewhere(project, module, user, name):
        return None
    for node in walk(function):
        if isinstance(node, ast.Call) and line_of(last_one.node) < line_of(node) < line_of(user) and name in used_names(node):
            if collective_at(module, node, project) or "broadcast" in last(dotted(node.func)):
                return None
    return last_one


def _only_wraps(value: ast.expr, name: str) -> bool:
    """`bar = tqdm(bar)`: as many rounds as before."""
    return name in used_names(value) or (isinstance(value, ast.Call) and last(dotted(value.func)) in _PROGRESS)


# A share of each rank


def _rounds_by_rank(project: Project, module: SourceModule) -> Iterator[Uneven]:
    """A collective in each round of a loop whose rounds the rank picks: `files[rank::world]`, `range(rank, n, world)`."""
    for loop in module.nodes(ast.For):
        share = _share(module, loop.iter, project)
        if share is None:
            continue
        for node, found in _collectives_in(project, module, loop):
            inner = next((up for up in module.ancestors(node) if isinstance(up, (ast.If, ast.For, ast.While, ast.Lambda))), None)
            if found.grouped or inner is not loop or module.function_of(node) is not module.function_of(loop):
                continue
            yield Uneven(
                node,
                f"{found.text} is called for each item of `{' '.join(module.text_of(share).split())}`, of which each rank may "
                "have another number: the ranks with more items wait for those that are done",
                "give every rank as many rounds (pad the shares, loop as often as the longest), or gather once behind the loop",
                (loop.lineno, "how often the loop runs is a matter of the rank"),
            )
            break


def _share(module: SourceModule, node: ast.expr, project: Project, depth: int = 0) -> ast.expr | None:
    """The part of a sequence that a rank takes by its number, behind `enumerate`, a progress bar and one name."""
    if not module.holds(b"rank") and not module.holds(b"process_index"):
        return None
    if isinstance(node, ast.Call):
        name = last(dotted(node.func))
        if name in ("range", "islice") and len(node.args) == (3 if name == "range" else 4):
            start = node.args[0 if name == "range" else 1]
            return node if rank_source(module, start, project) is not None else None
        passed_on = name in _PROGRESS | {"enumerate", "list", "sorted", "iter"} and bool(node.args)
        return _share(module, node.args[0], project, depth) if passed_on else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        lower = node.slice.lower
        return node if lower is not None and rank_source(module, lower, project) is not None else None
    if isinstance(node, ast.Name) and depth == 0:
        values = [b.value for b in bindings_of(module, node)]
        if len(values) == 1 and values[0] is not None:
            return _share(module, values[0], project, 1)
    return None


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
            between = isinstance(call, ast.Call) and guard.line < call.lineno < assign.lineno
            if isinstance(call, ast.Call) and between and _runs(project, module, call, target.id):
                yield Uneven(
                    call,
                    f"{module.text_of(call.func)} gets `{target.id}` while it is still the DDP wrapper, on rank 0 alone (it is "
                    f"unwrapped in line {assign.lineno}): with buffers every forward is a broadcast, so rank 0 waits",
                    f"take `{target.id}.module` before this line, on the same condition as in line {assign.lineno}",
                    (assign.lineno, module.text_of(assign)),
                )
                break


def _runs(project: Project, module: SourceModule, call: ast.Call, name: str) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == name:
        return True
    if not isinstance(call.func, ast.Name) or hasattr(builtins, call.func.id):
        return False
    given = [a for a in call.args if isinstance(a, ast.Name) and a.id == name]
    site = called_function(project, module, call) if given else None
    if site is None:
        return bool(given)
    parameters = [parameter_of(site.node, call, a) for a in given]
    return not all(p and unwraps_first(site.node, p) for p in parameters)


# Logs on one rank


def _logs_on_one_rank(project: Project, module: SourceModule) -> Iterator[Uneven]:
    """Epoch-level logs without a sync: Lightning 1.4 to 1.6 reduces them all the same."""
    calls = module.calls_named("log", "log_dict")
    if not calls or any(n.partition(".")[0] in ("lightning", "lightning_fabric") for n in module.imported_modules):
        return
    pin = lightning_pin(project, near=module.path)
    if pin is not None and (pin.surely_at_least((1, 7)) or pin.surely_below(_REDUCES_EPOCHS_SINCE)):
        return
    lacks = _may_lack_rank_zero_only(pin)
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
        newest = pin is None or pin.below is None
        if newest and function.name in TEST_HOOKS and left(module, call, _TESTED):
            continue
        yield Uneven(
            call,
            f"only rank 0 makes this {module.text_of(call.func)}: Lightning up to 1.6 reduces it over the ranks at the end of "
            "the epoch and hangs; from 1.7 on the other ranks lack the key, and what monitors it fails there",
            _NOT_IN_EACH if lacks else NOT_MONITORED,
            (guard.line, "only rank 0 passes the test"),
            () if lacks else (SetKeyword(module.path, module.span(call), "rank_zero_only", "True"),),
        )
