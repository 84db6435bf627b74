"""The collectives that only some ranks reach: under a test, behind an early exit, in a decorated function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.guards.chosen_functions import reached_by_choice
from codemods.analysis.guards.logged_under_a_test import logged_under_a_test
from codemods.analysis.hooks import NEEDED_ON_EVERY_RANK
from codemods.analysis.logged.behind_runs import is_behind_a_run
from codemods.analysis.logged.pending_metrics import (
    mixed_up_in_the_sanity_check,
    nothing_waits_in_training,
    waits_at_evaluation_end,
)
from codemods.analysis.ranks.collectives import AFTER_EVALUATION, PENDING, PROPERTIES, Collective, collective_at
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over, negated
from codemods.analysis.ranks.reached_collectives import Reached, reached_by
from codemods.files.left_alone import is_heard, left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

SHOWN = (Ranks.ZERO, Ranks.LOCAL_ZERO, Ranks.OTHERS, Ranks.LOCAL_OTHERS)
_Place = tuple[ast.Call | ast.Attribute, tuple[Guard, ...]]


@record
class Guarded:
    """A collective, or a call that leads to one, and the guards that keep ranks from it, innermost first."""

    node: ast.Call | ast.Attribute
    collective: Collective
    guards: tuple[Guard, ...]
    function: FunctionNode | None
    reached: Reached | None = None

    @property
    def guard(self) -> Guard:
        return next(g for g in self.guards if g.ranks in SHOWN)

    @property
    def text(self) -> str:
        return self.reached.text if self.reached else self.collective.text


def guarded_collectives(project: Project, module: SourceModule) -> tuple[Guarded, ...]:
    """Those of a file that no other branch matches, in source order."""
    return project.memo(("guarded collectives", module.path), lambda: _unmatched(project, module))


def _unmatched(project: Project, module: SourceModule) -> tuple[Guarded, ...]:
    shown: list[_Place] = []
    hidden: list[_Place] = []
    for place in _guarded_places(project, module):
        (hidden if _hides_ranks(place[1]) else shown).append(place)
    sites = [g for place in shown if (g := _collective(project, module, *place))]
    if is_heard():
        _leave_hidden(project, module, hidden)
    if not sites:  # those of ranks that the source does not show only matter beside others
        return ()
    others = [g for place in hidden if (g := _collective(project, module, *place))]
    by_ranks: dict[Ranks, list[Guarded]] = {}
    for site in sites:
        by_ranks.setdefault(site.guard.ranks, []).append(site)
    alone = (g for g in sorted(sites, key=_position) if not _is_matched(project, module, g, by_ranks, others))
    return tuple(g for g in alone if _counts(project, module, g))


def _leave_hidden(project: Project, module: SourceModule, hidden: list[_Place]) -> None:
    for node, guards in hidden:
        if _collective(project, module, node, guards) is not None:
            left(module, node, "it is not shown which ranks pass this test", at=guards[0].node)


def _position(site: Guarded) -> tuple[int, int]:
    return site.node.lineno, site.node.col_offset


def _guarded_places(project: Project, module: SourceModule) -> Iterator[_Place]:
    """What may be a collective and stands under a guard."""
    reads = [a for a in module.nodes(ast.Attribute) if a.attr in PROPERTIES]
    nodes: list[ast.Call | ast.Attribute] = [*module.nodes(ast.Call), *reads]
    for node in nodes:
        if guards := tuple(guards_over(module, node, project=project)):
            yield node, guards


def _collective(
    project: Project, module: SourceModule, node: ast.Call | ast.Attribute, guards: tuple[Guard, ...]
) -> Guarded | None:
    collective = collective_at(module, node, project)
    reached = None
    if collective is None and isinstance(node, ast.Call):
        reached = reached_by(project, module, node) or logged_under_a_test(project, module, node)
        reached = reached or reached_by_choice(project, module, node)
        collective = reached.collective if reached else None
    if collective is None or collective.name == "init_process_group":
        return None
    if collective.grouped and left(module, node, "it is of a group of ranks (`group=`), whose members are not shown"):
        return None
    return Guarded(node, collective, guards, module.function_of(node), reached)


def _is_matched(
    project: Project, module: SourceModule, site: Guarded, by_ranks: dict[Ranks, list[Guarded]], hidden: list[Guarded]
) -> bool:
    """True where the ranks that this guard keeps out have a collective of their own: they wait for each other.

    In the same function or class any will do; elsewhere in the file (a way in and a way out) one of the same name.
    hidden: those of ranks that the source does not show; `__enter__` and `__exit__` of a way to go one after another.
    """
    owner, name = module.class_of(site.node), site.collective.name

    def together(other: Guarded) -> bool:
        return other.function is site.function or (owner is not None and module.class_of(other.node) is owner)

    for other in by_ranks.get(negated(site.guard.ranks), ()):
        if other.collective.name == name or together(other):
            return left(module, site.node, "the other ranks have a collective of their own", at=other.node)
    for other in hidden:
        if other.collective.name == name and together(other):
            return left(module, site.node, "ranks that the source does not show have the same collective", at=other.node)
    if _other_branch_speaks(module, site.guard):
        return left(module, site.node, "the other branch makes calls, which may be the other half", at=site.guard.node)
    return _other_half_waits(project, module, site) and left(module, site.node, "the other half of the `with` waits under a test")


_HALVES = {"__enter__": "__exit__", "__exit__": "__enter__", "__aenter__": "__aexit__", "__aexit__": "__aenter__"}


def _other_half_waits(project: Project, module: SourceModule, site: Guarded) -> bool:
    """True where the other half of a context manager waits under a test, whatever it is: the ranks may go in turn."""
    other = _HALVES.get(site.function.name) if site.function else None
    owner = module.class_of(site.node) if other else None
    for method in owner.body if owner is not None else ():
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.name == other:
            calls = [c for test in walk(method) if isinstance(test, ast.If) for c in walk(test) if isinstance(c, ast.Call)]
            return any(collective_at(module, c, project) is not None for c in calls)
    return False


def _hides_ranks(guards: tuple[Guard, ...]) -> bool:
    """True under `rank == 1` or `rank == src`: part of a protocol whose ranks the source does not show."""
    return not any(g.ranks in SHOWN for g in guards)


def _other_branch_speaks(module: SourceModule, guard: Guard) -> bool:
    """True where the other branch of the test makes calls: they may be the other half of a protocol."""
    node = guard.node
    if not isinstance(node, (ast.If, ast.IfExp)):
        return False
    if guard.kind == "exit":
        other = [*node.body, *node.orelse] if isinstance(node, ast.If) else []
    elif guard.kind == "if":
        other = node.orelse if isinstance(node.orelse, list) else []
    else:
        other = node.body if isinstance(node.body, list) else []
    calls = [n for s in other for n in walk(s) if isinstance(n, ast.Call)]
    return any(not module.text_of(c.func).startswith(("print", "logger.", "logging.")) for c in calls)


def _counts(project: Project, module: SourceModule, site: Guarded) -> bool:
    """False where it is no collective in the pinned version, or measured to do no harm, or another rule's matter."""
    since = site.collective.since
    pin = lightning_pin(project, near=module.path) if since else None
    if since and pin is not None and pin.surely_below(since):
        return not left(module, site.node, "{} is no collective in the pinned Lightning", site.collective.name)
    name = site.function.name if site.function else ""
    if site.guard.kind == "decorator" and name in NEEDED_ON_EVERY_RANK:
        return False
    if site.collective.name not in PENDING:
        return True
    if is_behind_a_run(project, module, site.node):
        return False
    if site.function is None:
        return True
    if name in AFTER_EVALUATION:
        if site.reached is not None or site.guard.kind != "if":
            return False
        if later_collective(project, module, site) is not None:
            return waits_at_evaluation_end(project, module, site.function) is not None
        owner = module.class_of(site.node)  # the module's own hook comes behind those of the callbacks
        own = owner is not None and class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE)
        return not own and mixed_up_in_the_sanity_check(project, module, site.function) != ""
    return not nothing_waits_in_training(project)


def later_collective(project: Project, module: SourceModule, site: Guarded) -> Collective | None:
    """A collective behind the guard in the same function, which every rank comes to."""
    if site.function is None:
        return None
    end = getattr(site.guard.node, "end_lineno", 0)
    for node in walk(site.function):
        if isinstance(node, (ast.Call, ast.Attribute)) and node.lineno > end:
            found = collective_at(module, node, project)
            if found is not None and not any(g.ranks.some for g in guards_over(module, node, project=project)):
                return found
    return None
