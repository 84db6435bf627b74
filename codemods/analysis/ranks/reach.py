"""Which ranks reach a statement, callers included: a helper that is only called under a guard is under that guard."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS
from codemods.analysis.names import dotted, family, last
from codemods.analysis.ranks.both_arms import in_both_arms
from codemods.analysis.ranks.chosen_by_rank import is_chosen_by_rank, is_dealt_by_rank
from codemods.analysis.ranks.closed_branches import asks_a_parameter, open_uses
from codemods.analysis.ranks.excluded_modes import is_in_mode_of_one
from codemods.analysis.ranks.given_by_rank import ranks_of_receiver
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.left_before_start import is_left_before_start
from codemods.analysis.ranks.rank_guards import Ranks, both, ranks_at
from codemods.analysis.ranks.run_for_some import ranks_of_lambda, ranks_running
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.ranks.told_by_rank import told_by_rank
from codemods.analysis.ranks.uses import HandedOn, Uses, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_LAUNCHERS = frozenset(
    {"spawn", "start_processes", "notebook_launcher", "debug_launcher", "launch", "elastic_launch", "Process"}
)  # fmt: skip


def ranks_reaching(project: Project, module: SourceModule, node: ast.AST) -> Ranks:
    """The ranks that come to `node`, by the tests round it and by those round every call of its function."""
    here = both(ranks_at(module, node, project=project), ranks_of_lambda(project, module, node))
    if here.some:
        return here
    if in_turn(project, module, node):
        return Ranks.UNKNOWN
    function = module.function_of(node)
    return (_entering_for(project, module, function, node, frozenset()) or Ranks.ALL) if function else Ranks.ALL


def ranks_entering(project: Project, module: SourceModule, function: FunctionNode) -> Ranks:
    """The ranks that call `function`, as far as its callers in the project show it.

    ALL where none is seen, for then something outside calls it; UNKNOWN where there are too many to look at.
    """
    found = _entering(project, module, function, frozenset())
    return found or Ranks.ALL


def _entering(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> Ranks | None:
    """As `ranks_entering`; None where the answer hangs on a function that is being asked about already."""
    if id(function) in seen:
        return None
    key = ("ranks entering", module.path, function.lineno, function.name)
    return project.keep(key, lambda: _from_callers(project, module, function, seen | {id(function)}))


def _entering_for(
    project: Project, module: SourceModule, function: FunctionNode, node: ast.AST, seen: frozenset[int]
) -> Ranks | None:
    """As `_entering`, by those callers alone whose literal arguments lead to `node`."""
    if id(function) not in seen and asks_a_parameter(module, function, node):
        if called_by_framework(project, module, function) is None:
            uses = uses_of(project, module, function)
            let_in = open_uses(project, module, function, node, uses)
            told = told_by_rank(project, module, function, node, let_in)
            if told or (let_in is not uses and let_in.calls):
                return _from_uses(project, let_in, seen | {id(function)}, told)
    return _entering(project, module, function, seen)


def _from_callers(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> Ranks | None:
    ranks = called_by_framework(project, module, function)
    if ranks is None:
        ranks = _from_uses(project, uses_of(project, module, function), seen)
    owner = module.parent(function)
    if ranks in (None, Ranks.ALL) and isinstance(owner, ast.ClassDef):  # whoever has no object calls none of its methods
        having = _having(project, module, owner, seen)
        return ranks if having is Ranks.ALL else having
    return ranks


def _from_uses(
    project: Project, uses: Uses, seen: frozenset[int], told: Mapping[ast.Call, Ranks] | None = None
) -> Ranks | None:
    """told: by call, the ranks that its arguments lead to the place in question."""
    used = uses.outside_tests()  # a test of it runs on one process
    answers: set[Ranks | None] = set()
    for site in used.calls:
        coming = _coming(project, site.module, site.call, seen)
        if coming is Ranks.ALL and is_chosen_by_rank(project, site.module, site.call.func):
            coming = Ranks.UNKNOWN
        answers.add(None if coming is None else both(coming, told.get(site.call, Ranks.ALL) if told else Ranks.ALL))
    for place in used.handed_on:
        launched = to_a_launcher(place) and not _is_one_process(place)
        ranks = Ranks.ALL if launched else _coming(project, place.module, place.node, seen)
        if ranks is Ranks.ALL and is_dealt_by_rank(project, place.module, place.node):
            ranks = Ranks.UNKNOWN
        if ranks is not None and (running := ranks_running(project, place.module, place.node)).some:
            answers.add(both(ranks, running))
            continue
        answers.add(ranks if ranks in (None, Ranks.ALL) else Ranks.UNKNOWN)  # who calls it then is not shown
    if answers == {None} and not uses.more:
        return None  # runs of one process alone come by its callers
    answers.discard(None)
    if Ranks.ALL in answers or (not answers and not uses.more):
        return Ranks.ALL
    if uses.more:
        return Ranks.UNKNOWN
    if len(answers) > 1 and None not in answers and in_both_arms(project, used.calls):
        return Ranks.ALL
    return answers.pop() if len(answers) == 1 else Ranks.UNKNOWN


def to_a_launcher(place: HandedOn) -> bool:
    """True for what `mp.spawn` and the like run in each of the processes that they start."""
    return _handed_to(place) in _LAUNCHERS


def _is_one_process(place: HandedOn) -> bool:
    """True for the target of a `Process`: the test of the rank that it stands under says which rank it becomes."""
    return _handed_to(place) == "Process"


def _handed_to(place: HandedOn) -> str:
    """The name of the function that the place hands a function to, "" where it does something else with it."""
    up = place.module.parent(place.node)
    call = place.module.parent(up) if isinstance(up, ast.keyword) else up
    return last(dotted(call.func)) if isinstance(call, ast.Call) else ""


def _coming(project: Project, module: SourceModule, node: ast.AST, seen: frozenset[int]) -> Ranks | None:
    ranks = both(ranks_at(module, node, project=project), ranks_of_lambda(project, module, node))
    if ranks is Ranks.ALL:
        ranks = ranks_of_receiver(project, module, node)
    if in_turn(project, module, node):
        return Ranks.UNKNOWN
    if _is_of_one(project, module, node):
        return None  # there is one rank in that branch: it says nothing about a run of several
    outer = module.function_of(node)
    return _entering_for(project, module, outer, node, seen) if ranks is Ranks.ALL and outer is not None else ranks


def _is_of_one(project: Project, module: SourceModule, node: ast.AST) -> bool:
    return (
        is_of_one_process(module, node) or is_in_mode_of_one(project, module, node) or is_left_before_start(project, module, node)
    )


def _having(project: Project, module: SourceModule, owner: ast.ClassDef, seen: frozenset[int]) -> Ranks | None:
    """The ranks that make an object of the class; ALL where that is not shown."""
    if id(owner) in seen:
        return None

    def build() -> Ranks:
        made = constructions(project, module, owner)
        found = _from_uses(project, made, seen | {id(owner)}) if made is not None and made.calls else None
        return found or Ranks.ALL

    return project.keep(("ranks having", module.path, owner.lineno, owner.name), build)


def called_by_framework(project: Project, module: SourceModule, function: FunctionNode) -> Ranks | None:
    """The ranks on which a framework or Python itself calls the function; None where only the project does."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return None
    if function.name == "prepare_data":
        return Ranks.LOCAL_ZERO  # Lightning calls it on one process of each node
    if function.name == "_save" and _is_trainer_of_transformers(project, module, owner):
        # Under `self.args.should_save` in transformers 4; 5.23 calls it on every rank, and asks in its own `_save`.
        pin = transformers_pin(project, near=module.path)
        return Ranks.ZERO if pin is not None and pin.surely_below((5,)) else Ranks.UNKNOWN
    if function.name in LIGHTNING_HOOKS or function.name in HF_CALLBACK_HOOKS:
        return Ranks.ALL if class_facts(project, module, owner).external else None
    return Ranks.ALL if function.name.startswith("__") else None  # the constructor: see who makes the object


def _is_trainer_of_transformers(project: Project, module: SourceModule, owner: ast.ClassDef) -> bool:
    if class_facts(project, module, owner).is_a(Role.HF_TRAINER):
        return True
    starred = any(family(i.dotted) == "transformers" for i in module.imports.get("*", ()))
    return starred and any(last(dotted(base)).endswith("Trainer") for base in owner.bases)
