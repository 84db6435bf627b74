"""How a collective comes out from under a rank guard: the edits, and how far they may be trusted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.guards.early_returns import renest
from codemods.analysis.guards.guard_arms import guarded_block, is_commented
from codemods.analysis.guards.guard_place import Place, Repair, refused, statements_text
from codemods.analysis.guards.guard_split import Parts, parts_of
from codemods.analysis.guards.guarded_collectives import Guarded
from codemods.analysis.guards.hoisted_reads import hoist_reads
from codemods.analysis.guards.kept_inside import does_the_rest_on_zero
from codemods.analysis.guards.old_save_state import harm_of_all
from codemods.analysis.hooks import ONE_PROCESS_HOOKS
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effects import Kind, effects_of_function
from codemods.analysis.ranks.rank_guards import Ranks, split_of
from codemods.analysis.ranks.rank_tests import means_process_group
from codemods.analysis.ranks.same_way import is_same, parting_ways
from codemods.analysis.ranks.uneven_collectives import NOT_MONITORED, logs_of_one_rank
from codemods.analysis.short_texts import shorter
from codemods.api.findings import (
    Applicability,
    Edit,
    InsertAfter,
    InsertBefore,
    RemoveStatement,
    ReplaceExpression,
    Unwrap,
    WrapInGuard,
    lowest,
)
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
# Their collectives do nothing with one process (measured).
_NO_OPS = frozenset({"lightning", "fabric", "accelerate", "transformers", "torchmetrics"})
_WHOLE_RUNS = frozenset({"fit", "validate", "test", "predict", "train", "evaluate"})


def repair(project: Project, module: SourceModule, sites: list[Guarded]) -> Repair:
    """The repair of the collectives under one guard."""
    place = Place(project, module, sites, sites[0].function)
    guard = place.site.guard
    if why := _never(place):
        return Repair(reason=why)
    if guard.kind == "exit":
        made = renest(place)
    elif all(s.collective.is_read for s in sites):
        plain = guard.kind == "if" and isinstance(guard.node, ast.If)
        made = hoist_reads(place) if plain else Repair(reason="only a plain `if` by rank is taken apart")
    else:
        made = _split_body(place)
    if not made.edits:
        logs = logs_of_one_rank(project, module, [s.node for s in sites]) if guard.ranks is Ranks.ZERO else ()
        return Repair(logs, UNSAFE, NOT_MONITORED) if logs else made
    if test := _parting_test(place):
        alike = "make that the same on every rank first (reduce or broadcast it), or the collective still waits where it differs"
        text = shorter(module, test)
        return Repair(reason=f"it stands under `{text}` (line {test.lineno}), which may differ between the ranks: {alike}")
    level, reason = _trusted(place)
    return Repair(made.edits, lowest(made.level, level), made.reason or reason)


def _never(place: Place) -> str:
    """Why no repair is even tried, "" where one is."""
    site, guard = place.site, place.site.guard
    if any(s.reached is not None and not only_communicates(place.project, place.module, s.node) for s in place.sites):
        called = place.module.text_of(site.node.func) if isinstance(site.node, ast.Call) else site.text
        if all(does_the_rest_on_zero(place.project, place.module, s.node) for s in place.sites if s.reached is not None):
            return f"what else {called} does stands under a test for rank 0 already: call it on every rank, outside of this test"
        return f"{called} does other work besides: without the guard that would run on every rank too"
    if any(s.collective.name in _WHOLE_RUNS and s.collective.framework in ("lightning", "transformers") for s in place.sites):
        return "whether every rank should run it, or one process without the others, has to be decided"
    if any(s.collective.name == "DistributedDataParallel" for s in place.sites):
        return "what the other ranks train with has to be decided"
    saving = any(s.collective.writes_its_part for s in place.sites)
    if saving and (harm := harm_of_all(place.project, place.module)):
        return harm
    if guard.kind == "decorator":
        return "the decorator keeps the other ranks from the whole function: guard its file output inside instead"
    if place.function is not None and place.function.name in ONE_PROCESS_HOOKS:
        return f"{place.function.name} does not run on every rank: no collective can stand in it"
    if any(isinstance(up, ast.ExceptHandler) for up in place.module.ancestors(guard.node)):
        return "it stands in an exception handler: only the ranks that failed come there"
    if any(len(s.guards) > 1 for s in place.sites):
        return "more than one rank test stands round it"
    if guard.kind != "exit" and not guarded_block(guard, site.node):
        plain = guard.kind == "if" and isinstance(guard.node, ast.If)
        return "the test has an else" if plain else "only a plain `if` by rank is taken apart"
    if isinstance(guard.node, ast.stmt) and not place.module.is_whole(guard.node):
        return "the guard is an elif, or shares its line"
    return ""


def _parting_test(place: Place) -> ast.expr | None:
    """A test round the guard that is not shown to come out the same on every rank."""
    for up in place.module.ancestors(place.site.guard.node):
        if up is place.function:
            return None
        if isinstance(up, (ast.If, ast.While)) and not is_same(place.project, place.module, up.test):
            return up.test
    return None


def only_communicates(project: Project, module: SourceModule, call: ast.AST) -> bool:
    """True for a call of a project function that does nothing besides its collectives: `synchronize()`, `reduce_mean(x)`."""
    site = called_function(project, module, call) if isinstance(call, ast.Call) else None
    if site is None or site.node.decorator_list:
        return False
    items = effects_of_function(project, site.module, site.node).items
    return bool(items) and all(e.kind is Kind.COLLECTIVE and not e.guarded for e in items)


# Is the guard reached by all?


def _trusted(place: Place) -> tuple[Applicability, str]:
    """The level that the way to the guard and the collectives themselves allow, with the assumption where it is lower."""
    level, reason = _way(place)
    if level is SAFE and not group_shown(place):
        level, reason = UNSAFE, "assumes that there is a process group: without one the guard kept a single process away"
    for site in place.sites:
        if site.collective.writes_its_part:
            return UNSAFE, (
                "assumes that every process is meant to save its part; under plain DDP the guard hangs only with "
                "`automatic_checkpoint_naming`"
            )
        since = site.collective.since
        if since is not None:
            pin = lightning_pin(place.project, near=place.module.path)
            if pin is None or not pin.surely_at_least(since):
                version = ".".join(map(str, since))
                return UNSAFE, f"assumes Lightning {version} or newer, where it ends in a barrier; the project does not pin it"
    return level, reason


def _way(place: Place) -> tuple[Applicability, str]:
    guard = place.site.guard.node
    assert isinstance(guard, ast.stmt)
    for line, assumed in parting_ways(place.project, place.module, guard, place.function):
        if line != guard.lineno:
            return UNSAFE, f"assumes that {assumed} (line {line})"
    return SAFE, ""


def group_shown(place: Place) -> bool:
    """True where the collectives do nothing with one process, or the process group is there whenever the guard is asked.

    `rank == 0` with a rank of -1, or a helper that asks `is_initialized()`, keeps a single process away from `dist.barrier()`.
    """
    if all(s.collective.framework in _NO_OPS or _asks_itself(place, s) for s in place.sites):
        return True
    module, guard = place.module, place.site.guard.node
    assert isinstance(guard, (ast.If, ast.Match))
    test = guard.test if isinstance(guard, ast.If) else guard.subject
    if any(_asks_group(module, n) and not _chosen(module, n, (ast.IfExp,)) for n in walk(test)):
        return True
    # of a longer test everything but the rank stays
    if isinstance(test, ast.BoolOp) and any(means_process_group(module, v) for v in test.values):
        return True
    if all(_behind_group_test(module, s.node) for s in place.sites):
        return True
    above = [s for s in _run_before(place, guard) if isinstance(s, (ast.Expr, ast.Assign, ast.AnnAssign))]
    return any(_asks_group(module, n) and not _chosen(module, n, (ast.IfExp, ast.BoolOp)) for s in above for n in walk(s))


def _run_before(place: Place, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements above one, in its block and in the blocks of the function round it: they have run when it does."""
    below: ast.AST = statement
    for up in place.module.ancestors(statement):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(up, name, None)
            if isinstance(block, list) and below in block:
                yield from block[: block.index(below)]
        if up is place.function:
            return
        below = up


def _asks_itself(place: Place, site: Guarded) -> bool:
    """True where the function that is called asks whether there is a process group."""
    called = called_function(place.project, place.module, site.node) if site.reached and isinstance(site.node, ast.Call) else None
    if called is None:
        return False
    return any(isinstance(n, ast.Call) and last(dotted(n.func)) == "is_initialized" for n in walk_scope(called.node))


def _behind_group_test(module: SourceModule, node: ast.AST) -> bool:
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below in up.body and means_process_group(module, up.test):
            return True
        below = up
    return False


def _chosen(module: SourceModule, node: ast.AST, kinds: tuple[type[ast.expr], ...]) -> bool:
    """True if an expression round the call decides whether it is made."""
    return any(isinstance(up, kinds) for up in module.ancestors(node))


def _asks_group(module: SourceModule, node: ast.AST) -> bool:
    """A call that raises without a process group, or makes it."""
    if not isinstance(node, ast.Call):
        return False
    name = qualified(module, node.func)
    known = ("get_rank", "get_world_size", "init_process_group", "barrier", "all_reduce", "DistributedDataParallel")
    return name.startswith("torch.") and last(name) in known


# The body


def _split_body(place: Place) -> Repair:
    guard = place.site.guard.node
    assert isinstance(guard, (ast.If, ast.Match))
    block = guarded_block(place.site.guard, place.site.node)
    parts = parts_of(block, [s.node for s in place.sites])
    if parts is None:
        return Repair(reason="it stands in the middle of the guarded block: what belongs before and after it has to be decided")
    if why := refused(place, guard, block, parts):
        return Repair(reason=why)
    plain = guard if isinstance(guard, ast.If) and block is guard.body else None
    edits: list[Edit] = []
    if not parts.rest and plain is not None:
        edits = _without_guard(place, plain)
    elif not parts.rest:
        edits = _in_its_place(place, guard, parts)
    elif place.site.guard.alone and not (isinstance(guard, ast.If) and isinstance(guard.test, ast.BoolOp)):
        edits = _moved_out(place.module, guard, parts)
    elif plain is not None:
        edits = _guard_inside(place, plain, parts)
    if not edits:
        more = "the test has more than the rank in it: the collective belongs under the rest of it"
        return Repair(reason=f"{more}, but only once that comes out the same on every rank")
    return Repair(tuple(edits), SAFE)


def _without_guard(place: Place, guard: ast.If) -> list[Edit]:
    """The guard taken off, or its rank operand out of the test."""
    module = place.module
    test = guard.test
    if not isinstance(test, ast.BoolOp):
        return [Unwrap(module.path, module.span(guard))] if place.site.guard.alone else []
    _, text = _taken_apart(place, test)
    return [ReplaceExpression(module.path, module.span(test), text)] if text else []


def _in_its_place(place: Place, guard: ast.stmt, parts: Parts) -> list[Edit]:
    """The collectives in the place of a guard that has arms of `pass` besides, which a comment of the user's keeps."""
    module, span = place.module, place.module.span(guard)
    if is_commented(module, guard) or not place.site.guard.alone:
        return []
    return [RemoveStatement(module.path, span), InsertAfter(module.path, span, statements_text(module, parts.head))]


def _guard_inside(place: Place, guard: ast.If, parts: Parts) -> list[Edit]:
    """`if rank == 0 and args.save: work, barrier` -> `if args.save: (if rank == 0: work), barrier`."""
    rank, text = _taken_apart(place, guard.test)
    if rank is None:
        return []
    module, path = place.module, place.module.path
    first, last_one = module.span(parts.rest[0]), module.span(parts.rest[-1])
    inner = WrapInGuard(path, first, module.text_of(rank), last_one)
    return [ReplaceExpression(path, module.span(guard.test), text), inner]


def _taken_apart(place: Place, test: ast.expr) -> tuple[ast.expr | None, str]:
    """The rank operand of an `and`, and the text of the others; (None, "") unless these are the same on every rank."""
    if not isinstance(test, ast.BoolOp) or isinstance(test.op, ast.Or):
        return None, ""
    ranks = [v for v in test.values if split_of(place.module, v, place.project) is not None]
    kept = [v for v in test.values if v not in ranks]
    if len(ranks) != 1 or isinstance(ranks[0], ast.BoolOp) or not all(is_same(place.project, place.module, v) for v in kept):
        return None, ""
    return ranks[0], " and ".join(_operand(place.module, v) for v in kept)


def _operand(module: SourceModule, value: ast.expr) -> str:
    text = module.text_of(value)
    return f"({text})" if isinstance(value, (ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Lambda)) else text


def _moved_out(module: SourceModule, guard: ast.stmt, parts: Parts) -> list[Edit]:
    edits: list[Edit] = [RemoveStatement(module.path, module.span(s)) for s in [*parts.head, *parts.tail]]
    if parts.head:
        edits.append(InsertBefore(module.path, module.span(guard), statements_text(module, parts.head)))
    if parts.tail:
        edits.append(InsertAfter(module.path, module.span(guard), statements_text(module, parts.tail)))
    return edits
