"""Do all ranks of a run with several processes come to a place? Shown by the functions on a way there, tests on it included."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from codemods.analysis.branches import leading_tests
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_test_file, is_test_module, ranks_in_file
from codemods.analysis.files.asked_by_given_functions import asks_by_given_function
from codemods.analysis.files.configured_trainers import behind_fit
from codemods.analysis.files.given_ranks import asks_for_a_rank
from codemods.analysis.files.handed_trainers import handed_a_trainer
from codemods.analysis.files.handed_ways import all_kept_to_some, places_of_all
from codemods.analysis.files.loose_ends import made_elsewhere
from codemods.analysis.files.main_only_values import asks_for_main_only
from codemods.analysis.files.named_classes import places_by_name
from codemods.analysis.files.own_paths import are_sure, callers_of
from codemods.analysis.files.saving_hooks import saving_calls
from codemods.analysis.files.shown_ranks import joins_below, shown_in
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.guards.imported_again import imports_again
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS
from codemods.analysis.job_files.documented_starts import launched_as_several
from codemods.analysis.loading.spawned import spawns_elsewhere
from codemods.analysis.names import dotted, last
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.one_process_claims import claims_one_process
from codemods.analysis.output.run_before import run_before
from codemods.analysis.ranks.cannot_run import is_behind_an_end
from codemods.analysis.ranks.closed_branches import wanted_above, wanted_at
from codemods.analysis.ranks.device_tests import asks_for_a_device
from codemods.analysis.ranks.failing_ranks import ranks_unless_one_fails
from codemods.analysis.ranks.first_device import is_tied_to_first_device
from codemods.analysis.ranks.given_by_rank import ranks_of_receiver
from codemods.analysis.ranks.hidden_packages import is_hidden
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.one_device import has_trainers_of_one_device
from codemods.analysis.ranks.rank_guards import Ranks, split_of
from codemods.analysis.ranks.reach import called_by_framework, to_a_launcher
from codemods.analysis.ranks.several_nodes import names_nodes
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.ranks.started_groups import starts_no_group
from codemods.analysis.ranks.sure_failures import is_behind_a_failure
from codemods.analysis.ranks.uses import CallSite, uses_of
from codemods.analysis.ranks.value_calls import calls_of_value
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 8  # a model's parts within parts, each with a constructor of its own
_NOTHING: Mapping[str, bool] = {}
_STARTED = frozenset({"spawn", "start_processes", "notebook_launcher", "debug_launcher", "elastic_launch", "Process"})
# Flags that nothing resolves, by the words for the one process that writes.
_FLAGS = lazy(
    r"main_?(?:proc|rank|worker|node)|is_?(?:main|root|primary|chief|lead)|master|rank_?(?:0|zero)|process_zero|global_zero"
    r"|is_logg|is_saving|args\.should_(?:save|log)\b|(?<![\w.\"'])(?:self\.)?main\b(?![\"'\w(.])", re.IGNORECASE
)


_ASSERTED = lazy(rb"\bassert [^\n]*(?:rank|main|master|primary|leader|chief)")


@record
class Way:
    """frames: the place itself, then the calls that lead to it, innermost first. shown: what speaks of several processes."""

    frames: tuple[tuple[SourceModule, ast.AST], ...]
    shown: Evidence


def way_of_every_rank(
    project: Project, module: SourceModule, node: ast.AST, seen: frozenset[int] = frozenset(), *, loose: bool = False,
    wanted: Mapping[str, bool] = _NOTHING,
) -> Way | None:  # fmt: skip
    """A way on which every rank comes to `node`; None where there is none without a test of the rank, or none that is shown.

    loose: classes that are only handed on count as made where they are handed to (`loose_ends`). wanted: what the parameters
    of the function have to be, by what stands at the end of the way.
    """
    if is_test_module(module) or is_for_some(project, module, node):
        return None
    if _refuses_others(project, module, node):
        return None
    if any(claims_one_process(module, above) for above in run_before(module, module.statement_of(node))):
        return None
    if is_behind_an_end(module, node) or is_tied_to_first_device(project, module) or has_trainers_of_one_device(project, module):
        return None
    if is_behind_a_failure(project, module, node) or is_hidden(project, module):
        return None
    function = module.function_of(node)
    if function is not None and _is_of_the_saving_one(project, module, function):
        return None
    if function is None and (again := imports_again(module, node)) is not None:
        return Way(((module, node),), again)
    if _is_prepare_data(module, function) or starts_processes(project, module, function) or runs_alone(module, function):
        return None  # what stands beside the start runs in the process that starts the others
    if (shown := shown_in(project, module, function)) is not None:
        return Way(((module, node),), shown) if _is_come_to(project, module, function) else None
    if (started := behind_fit(project, module, function, node)) is not None and _is_come_to(project, module, function):
        return Way(((module, node),), started)
    if function is None or _is_entry(project, module, function):
        joined = joins_below(project, module, function, node)
        if joined is not None:
            return Way(((module, node),), joined)
    if function is None and (launched := launched_as_several(project, module.path)) is not None:
        return Way(((module, node),), Evidence("static", "starts the script on several processes", *launched))
    if (handed_to := handed_a_trainer(project, module, function)) is not None:
        return Way(((module, node),), handed_to)
    if function is None or id(function) in seen or len(seen) >= _DEPTH:
        return None
    asked = {**wanted_at(module, function, node), **wanted}
    for site in callers_of(project, module, function):
        passed = wanted_above(module, function, site, asked)
        if passed is None or ranks_of_receiver(project, site.module, site.call).some:
            continue
        above = way_of_every_rank(project, site.module, site.call, seen | {id(function)}, loose=loose, wanted=passed)
        if above is not None:
            return Way(((module, node), *above.frames), above.shown)
    handed_on = uses_of(project, module, function).outside_tests().handed_on
    for home, place in places_of_all(project, handed_on, is_for_some):
        above = way_of_every_rank(project, home, place, seen | {id(function)}, loose=loose)
        if above is not None:
            return Way(((module, node), *above.frames), above.shown)
    for home, place in places_by_name(project, module, function) if loose else ():
        above = way_of_every_rank(project, home, place, seen | {id(function)}, loose=loose)
        if above is not None:
            return Way(((module, node), *above.frames), above.shown)
    handed = made_elsewhere(project, module, function) if loose else None
    return Way(((module, node), handed[0]), handed[1]) if handed is not None else None


def _is_of_the_saving_one(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for `_save` of a Trainer of transformers, unless the version is shown to call it on every rank."""
    if function.name != "_save" or called_by_framework(project, module, function) not in (Ranks.ZERO, Ranks.UNKNOWN):
        return False
    pin = transformers_pin(project, near=module.path)
    return pin is None or not pin.surely_at_least((5, 23))


def _is_prepare_data(module: SourceModule, function: FunctionNode | None) -> bool:
    return function is not None and function.name == "prepare_data" and module.class_of(function) is not None


def _is_entry(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for the function that a script runs: called at the top of its own file alone."""
    sites = callers_of(project, module, function)
    return bool(sites) and all(s.module is module and module.function_of(s.call) is None for s in sites)


def is_for_some(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a test of the rank, or of something that only some ranks have, decides over the place in its function."""
    if ranks_unless_one_fails(project, module, node).some or in_turn(project, module, node):
        return True
    return any(_parts_ranks(project, module, test, taken=taken) for test, taken in leading_tests(module, node))


def _parts_ranks(project: Project, module: SourceModule, test: ast.expr, *, taken: bool) -> bool:
    several = several_processes(module, test)
    if several is not None and several is not taken:
        return True  # the arm for one process alone
    if _asks_for_holder(test) is (not taken):
        return True
    if (given := asks_for_a_rank(test)) is not None:
        return given is not taken  # whoever has none is one process alone; which of the ranks it is asks nobody
    text = module.text_of(test)
    if several is None and (names_rank(text) or _FLAGS.search(text) or asks_for_a_device(module, test)):
        return True
    if asks_for_main_only(project, module, test) or asks_by_given_function(project, module, test):
        return True
    function = module.function_of(test)
    analysis = variance(project)
    site = FunctionSite(module, function) if function else None
    state = analysis.of(site) if site else analysis.top_level(module)
    value = state.tests.get(id(test)) if state is not None else None
    return value is not None and analysis.resolved(site, value).cause is Cause.RANK


def _refuses_others(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a call in the statement, or in one above it, asserts the rank first: the others end there."""
    names = project.keep("functions that assert the rank", lambda: _asserting(project))
    if not names or not any(module.holds(name.encode()) for name in names):
        return False
    statement = module.statement_of(node)
    above = [s for s in run_before(module, statement) if isinstance(s, (ast.Expr, ast.Assign))]
    asked = (c for s in (statement, *above) for c in walk_scope(s) if isinstance(c, ast.Call) and c is not node)
    return any(last(dotted(c.func)) in names for c in asked)


def _asserting(project: Project) -> frozenset[str]:
    """The names of the project's functions that begin with an `assert` of the rank; no other function has that name."""
    found: set[str] = set()
    for path in project.files_containing(b"assert "):
        if is_test_file(path) or not _ASSERTED.search(project.read(path) or b"") or (module := project.module(path)) is None:
            continue
        for function in module.functions:
            if any(isinstance(s, ast.Assert) and _lets_some_pass(project, module, s.test) for s in function.body[:3]):
                found.add(function.name)
    return frozenset(n for n in found if not n.startswith("__") and len(_defining(project, n)) == 1)


def _lets_some_pass(project: Project, module: SourceModule, test: ast.expr) -> bool:
    split = split_of(module, test, project)
    return split is not None and split.true.some


def _defining(project: Project, name: str) -> list[str]:
    word = f"def {name}(".encode()
    return [path for path in project.files_containing(word) for _ in range((project.read(path) or b"").count(word))]


def _asks_for_holder(test: ast.expr) -> bool | None:
    """What `accelerator is not None` answers in a run of several processes that has one; None for any other test."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or ast.unparse(test.comparators[0]) != "None":
        return None
    if last(dotted(test.left)).lstrip("_") not in ("accelerator", "fabric"):
        return None
    return isinstance(test.ops[0], (ast.IsNot, ast.NotEq))


def _leaves(block: list[ast.stmt]) -> bool:
    return isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def starts_processes(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True for a function that starts the processes of the run, itself or by what it calls: it goes on in the one that waits."""
    if _starts(module, function) or spawns_elsewhere(project, module, function):
        return True
    if not any(module.holds(name.encode()) for name in _STARTED):
        return False
    calls = [c for c in module.nodes(ast.Call) if isinstance(c.func, ast.Name) and module.function_of(c) is function]
    sites = (called_function(project, module, c) for c in calls)
    return any(s is not None and s.module is module and s.node is not function and _starts(module, s.node) for s in sites)


def _starts(module: SourceModule, function: FunctionNode | None) -> bool:
    calls = module.calls_named(*_STARTED)
    return any(module.function_of(c) is function and (last(dotted(c.func)) != "Process" or c.keywords) for c in calls)


def runs_alone(module: SourceModule, function: FunctionNode | None) -> bool:
    """True where the function, or one round it, makes a Trainer of one device on one node: one process, whatever it is called."""
    scopes: list[FunctionNode | None] = [function]
    while scopes[-1] is not None:
        scopes.append(module.function_of(scopes[-1]))
    made = (c for c in module.calls_named("Trainer", "Fabric") if module.function_of(c) in scopes)
    return any(is_of_one(c) or _is_asserted(module, c, scopes) for c in made)


def _is_asserted(module: SourceModule, call: ast.Call, scopes: list[FunctionNode | None]) -> bool:
    """True where an `assert` of the function says that the devices are one."""
    devices = next((module.text_of(k.value) for k in call.keywords if k.arg in ("devices", "gpus")), "")
    asserted = (module.text_of(a.test) for a in module.nodes(ast.Assert) if module.function_of(a) in scopes)
    return bool(devices) and any(f"{devices} == 1" in text or f"len({devices}) == 1" in text for text in asserted)


def is_of_one(call: ast.Call) -> bool:
    """True for a Trainer of one device on one node."""
    given = {k.arg: k.value for k in call.keywords}
    devices, nodes = given.get("devices", given.get("gpus")), given.get("num_nodes")
    single = isinstance(devices, ast.Constant) and devices.value in (1, "1")
    single |= isinstance(devices, ast.List) and len(devices.elts) == 1
    return single and None not in given and (nodes is None or (isinstance(nodes, ast.Constant) and nodes.value == 1))


def _is_come_to(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """False for a function whose callers all let some ranks in alone, or are in the process that starts the others."""
    return _come_to(project, module, function, frozenset())


def _come_to(project: Project, module: SourceModule, function: FunctionNode | None, seen: frozenset[int]) -> bool:
    if function is None:
        return not starts_processes(project, module, None)
    if id(function) in seen or len(seen) >= _DEPTH:
        return True
    owner = module.parent(function)
    used = uses_of(project, module, function).outside_tests()
    if isinstance(owner, ast.ClassDef):
        if _is_of_the_saving_one(project, module, function):
            return False
        if function.name == "prepare_data" and class_facts(project, module, owner).external and not names_nodes(project):
            return False  # Lightning runs it on one process of a node
        if function.name in LIGHTNING_HOOKS | HF_CALLBACK_HOOKS and class_facts(project, module, owner).external:
            return True
    if any(to_a_launcher(place) and not calls_of_value(project, place.module, place.node) for place in used.handed_on):
        return True
    if (saving := saving_calls(project, module, function)) is not None:
        return any(_comes_by(project, site, seen | {id(function)}) for site in saving)
    callers = callers_of(project, module, function)
    named = list(places_by_name(project, module, function)) if not callers else []
    if any(_comes_by(project, CallSite(home, call), seen | {id(function)}) for home, call in named):
        return True
    if not callers:
        kept = all_kept_to_some(project, module, function, used.handed_on, is_for_some)
        return not used.more and not kept and function.name != "prepare_data"
    answers = [_comes_by(project, site, seen | {id(function)}) for site in callers]
    return any(answers) if are_sure(project, callers, function) else all(answers)


def is_of_the_starter(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for a place to which only the process comes that starts the others."""
    return not _come_to(project, module, module.function_of(node), frozenset())


def _comes_by(project: Project, site: CallSite, seen: frozenset[int]) -> bool:
    """True where every rank comes to a call."""
    outer = site.module.function_of(site.call)
    if is_test_module(site.module) or is_for_some(project, site.module, site.call):
        return False
    if is_behind_an_end(site.module, site.call) or is_tied_to_first_device(project, site.module):
        return False
    if is_behind_a_failure(project, site.module, site.call):
        return False
    if starts_processes(project, site.module, outer):
        return False
    if ranks_in_file(project, site.module) is None and starts_no_group(project, site.module.path):
        return False
    return _come_to(project, site.module, outer, seen)
