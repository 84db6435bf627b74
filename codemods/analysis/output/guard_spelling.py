"""How the test for rank 0 is written at a place: the one the function uses already, else what its framework offers there."""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import is_accelerator, is_fabric
from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.functions import find_function
from codemods.analysis.guards.before_group import group_comes_later, is_of_group
from codemods.analysis.guards.shown_group import has_shown_group
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS, OBSERVERS
from codemods.analysis.model.signatures import has_parameter
from codemods.analysis.names import dotted, is_parameter, last
from codemods.analysis.output.absent_ranks import with_absent_rank
from codemods.analysis.output.accelerator_guards import print_of_accelerator, sure_arguments
from codemods.analysis.output.attached_trainer import may_be_attached, runs_by_the_trainer, runs_while_loading
from codemods.analysis.output.early_ranks import has_no_group_yet
from codemods.analysis.output.environment_guards import BY_LAUNCHER, by_environment
from codemods.analysis.output.groupless_branch import is_without_group
from codemods.analysis.output.one_process_claims import claims_one_process
from codemods.analysis.output.own_helpers import asks_own_helper, own_helper
from codemods.analysis.output.package_names import group_name, horovod_name
from codemods.analysis.output.run_before import bound_above, run_before
from codemods.analysis.output.script_guards import printer_of_trainer, script_guard
from codemods.analysis.output.set_attributes import is_set_by_methods, is_sure_to_be_set
from codemods.analysis.output.spelled_test import GROUP_STARTED, Spelling
from codemods.analysis.output.stored_keys import has_its_keys
from codemods.analysis.output.sure_tests import is_bound_before, is_field_set_before, is_sure, known_anyway, silences_one_process
from codemods.analysis.output.trainer_guards import test_of_trainer
from codemods.analysis.positions import above as above_it
from codemods.analysis.positions import behind
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test, speaks_of_ranks
from codemods.analysis.ranks.rank_tests import asks_the_rank
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.ranks.started_groups import asks_no_group
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.rewriting.imports import in_scope, plan_rank_zero_only, runs_at_import
from codemods.runtime.record import record, replace
from codemods.store.project import Project

__all__ = ["Spelling", "guard_for", "has_guard", "written_out"]

_STARTS = (
    "init_process_group", "init_distributed_mode", "init_distributed", "Accelerator", "Fabric", "setup_distributed", "ddp_setup",
)  # fmt: skip
_OF_THE_MODULE = "self.global_rank == 0"  # by the Trainer that is attached to it; without one every rank has 0
_OF_ITS_TRAINER = "self.trainer.is_global_zero"
_HAS_A_RANK = (1, 2, 0)  # the Lightning whose module has a rank: 1.1.8 has none, 1.2.10 has one
_NEAR = 3  # statements from a place to the test that it shares
_ENDS = ("destroy_process_group", "end_training", "cleanup")
_FRAMEWORK = (
    Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.HF_CALLBACK, Role.HF_TRAINER, Role.METRIC,
    Role.NN_MODULE, Role.DATASET, Role.HF_ARGUMENTS,
)  # fmt: skip


@record
class _Test:
    """A test of the rank in the test of `node`: all of it, or its first part."""

    ranks: Ranks
    node: ast.If
    test: ast.expr


def guard_for(project: Project, module: SourceModule, statement: ast.stmt, *, lines: bool = False) -> Spelling | None:
    """The test that lets rank 0 alone into `statement`, with one process and with many; None where none is sure to work.

    lines: the output is printed lines. They may stand there once for each node, so a test of the local rank that the
    function makes already will do; for files it would not.
    """
    if is_of_one_process(module, statement) or any(claims_one_process(module, s) for s in run_before(module, statement)):
        return None
    spelled = _guard_for(project, module, statement, lines=lines)
    spelled = with_absent_rank(project, module, statement, spelled) if spelled is not None else None
    if spelled is not None and not lines and spelled.test.endswith(".should_log"):  # one rank of each node may log
        spelled = replace(spelled, test=f"{spelled.test.removesuffix('should_log')}should_save")
    if spelled is not None and has_no_group_yet(project, module, statement, spelled.test):
        return None  # the test would let every process in
    asks = spelled is not None and not spelled.by_launcher and (spelled.asks_group or is_of_group(spelled.test))
    if spelled is None or not asks:
        return spelled
    if not group_comes_later(project, module, statement):
        shown = lines or spelled.assumes or has_shown_group(project, module, statement)  # a line too many is no lost file
        return spelled if shown else replace(spelled, assumes=GROUP_STARTED)
    # what asks the group is no guard above its start
    return _known_or(project, module, statement, by_environment(project, module), lines=lines)


def _guard_for(project: Project, module: SourceModule, statement: ast.stmt, *, lines: bool) -> Spelling | None:
    function = module.function_of(statement)
    if function is None:
        return _used_already(project, module, None, statement, lines=lines) or script_guard(
            project, module, statement, None, lines=lines
        )
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef):
        facts = class_facts(project, module, owner)
        special = any(facts.is_a(role) for role in _FRAMEWORK) or bool(facts.unresolved)
        if function.name.startswith("__") and (special or function.name != "__init__"):
            return None
        found = _in_class(project, module, facts, function)
        if found is not None and _is_bound_to(function, found.test):
            if found.test not in (_OF_THE_MODULE, _OF_ITS_TRAINER) or runs_by_the_trainer(project, facts, function):
                return found
            if may_be_attached(project, facts, function) and (known := _by_import(module)) is not None:
                return known
        if function.name == "__init__":
            return script_guard(project, module, statement, function, lines=lines)
    if reused := _used_already(project, module, function, statement, lines=lines):
        return reused
    return _known_or(project, module, statement, script_guard(project, module, statement, function, lines=lines), lines=lines)


def _known_or(
    project: Project, module: SourceModule, statement: ast.stmt, found: Spelling | None, *, lines: bool
) -> Spelling | None:
    """What the function or the class asks already, in place of a variable of the launcher."""
    if found is None or found.assumes != BY_LAUNCHER:
        return found
    return known_anyway(project, module, statement, lines=lines) or found


def written_out(project: Project, module: SourceModule, statement: ast.stmt, *, imported: bool = True) -> Spelling | None:
    """The test of the process group itself, true for one process too; None where there may be no group yet, or none any more.

    Where the file has a function of the project that asks the same, by that.

    imported: only where the file speaks of torch.distributed itself. Horovod's processes have no group of torch, and ask it.
    """
    name = group_name(module)
    if name is None and (horovod := horovod_name(module)):
        return Spelling(f"{horovod}.rank() == 0") if module.calls_named("init") else None
    if name is None and not imported:
        root = in_scope(module, lambda dotted_name: dotted_name == "torch")
        name = f"{root}.distributed" if root else None
    if name is None or is_parameter(module, name.partition(".")[0], statement) or is_without_group(project, module, statement):
        return None
    if asks_no_group(project, module.path):
        return None  # the test would let every process in
    function = module.function_of(statement)
    for call in module.calls_named(*_STARTS, *_ENDS):
        early = call.lineno > statement.lineno if last(dotted(call.func)) in _STARTS else call.lineno < statement.lineno
        if early and module.function_of(call) is function:
            return None
    own = own_helper(project, module, module.function_of(statement), statement)
    root = own.partition("(")[0].partition(".")[0]
    if root in module.imports and not runs_at_import(module, module.imports[root][0].node):
        own = ""  # known in the function that imports it
    return Spelling(own or f"not {name}.is_initialized() or {name}.get_rank() == 0", asks_group=True)


def has_guard(project: Project, module: SourceModule, function: FunctionNode, *, lines: bool = False) -> bool:
    """True where some place of the function has a test: no place knows more names than its last statement."""
    key = ("has guard", module.path, function.lineno, function.name, lines)
    return project.keep(key, lambda: _guard_for(project, module, _last_statement(function), lines=lines) is not None)


def _last_statement(function: FunctionNode) -> ast.stmt:
    """The statement that begins last, not counting what is inside functions and classes."""
    found: ast.stmt = function.body[0]
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt) and node.lineno > found.lineno:
            found = node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("cases", "finalbody", "orelse", "handlers", "body"):
                block = getattr(node, name, None)
                stack += reversed(block) if isinstance(block, list) else ()
    return found


def _is_bound_to(function: FunctionNode, test: str) -> bool:
    """True unless the test speaks of `self` in a method that has none."""
    return not test.startswith("self.") or (bool(function.args.args) and function.args.args[0].arg == "self")


def _in_class(project: Project, module: SourceModule, facts: ClassFacts, function: FunctionNode) -> Spelling | None:
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    sure = {a.arg for a in sure_arguments(function)}
    if facts.unresolved:
        return None
    if facts.is_a(Role.LIGHTNING_CALLBACK):
        if function.name in LIGHTNING_HOOKS and len(arguments) > 1:
            name = arguments[1]
            return Spelling(f"{name}.is_global_zero", printer=printer_of_trainer(project, module, name))
        if "trainer" in sure:
            return Spelling("trainer.is_global_zero", printer=printer_of_trainer(project, module, "trainer"))
        return Spelling("pl_module.global_rank == 0") if "pl_module" in sure else None
    if facts.is_a(Role.LIGHTNING_MODULE):
        if function.name not in OBSERVERS:
            alone = runs_while_loading(project, facts, function)
            return _by_import(module) if alone else Spelling(_test_of_module(project, module))
        printer = "" if facts.opaque or facts.method("print") is not None else "self.print"
        return Spelling(_test_of_module(project, module), printer=printer, takes_keywords=False)
    if facts.is_a(Role.HF_CALLBACK):
        if function.name in HF_CALLBACK_HOOKS and len(arguments) > 3:
            return Spelling(f"{arguments[2]}.is_world_process_zero")
        return Spelling("state.is_world_process_zero") if "state" in sure else None
    if test := test_of_trainer(module, "self", facts.external):
        return Spelling(test)
    if facts.is_a(Role.LIGHTNING_DATA_MODULE):  # its trainer is None outside a run
        return _by_import(module)
    return None


def _test_of_module(project: Project, module: SourceModule) -> str:
    """How a LightningModule asks, the same in each of its methods."""
    pin = lightning_pin(project, near=module.path)
    return _OF_ITS_TRAINER if pin is not None and pin.surely_below(_HAS_A_RANK) else _OF_THE_MODULE


def _by_import(module: SourceModule) -> Spelling | None:
    """By Lightning's `rank_zero_only.rank`, which is known from the import on, without a Trainer."""
    planned = plan_rank_zero_only(module)
    return Spelling(f"{planned.name}.rank == 0", planned.edits) if planned else None


def _used_already(
    project: Project, module: SourceModule, function: FunctionNode | None, statement: ast.stmt, *, lines: bool
) -> Spelling | None:
    """A plain test for rank 0 that is made above the place, of names that are known there."""
    if not speaks_of_ranks(module, function, project):
        return None
    wanted = (Ranks.ZERO, Ranks.LOCAL_ZERO) if lines else (Ranks.ZERO,)
    found = [t for t in _tests_of_zero(project, module).get(function, ()) if t.ranks in wanted]
    before = {id(s) for s in run_before(module, statement)} if found else set()
    near = {id(s) for s in _beside(module, statement)}
    for known_test in sorted(found, key=lambda t: (id(t.node) not in near, wanted.index(t.ranks), t.test is not t.node.test)):
        node, test = known_test.node, known_test.test
        names = [n for n in ast.walk(test) if isinstance(n, ast.Name)]
        if not names or not is_sure(module, test) or silences_one_process(project, module, test):
            continue
        if id(node) not in before and not _has_its_fields(project, module, test, statement):
            continue
        if id(node) not in before and not has_its_keys(module, test, statement):
            continue
        known = id(node) in before or all(
            is_bound_before(module, n, statement) or is_field_set_before(project, module, n, statement) for n in names
        )
        above = node.lineno < statement.lineno and function is not None
        if known or (above and all(_is_known(project, module, function, n.id, statement) for n in names)):
            printer = _printer_beside(project, module, test) or print_of_accelerator(project, module, statement, function)
            return Spelling(module.text_of(test), printer=printer, asks_group=asks_own_helper(project, module, test))
    return None


def _beside(module: SourceModule, statement: ast.stmt) -> list[ast.stmt]:
    """What stands near a place in its block: a guard there takes what is next to it in, or is read with it."""
    return [*above_it(module, statement)[-_NEAR:], *behind(module, statement)[:_NEAR]]


def _printer_beside(project: Project, module: SourceModule, test: ast.expr) -> str:
    """`accelerator.print` for `accelerator.is_main_process`, `fabric.print` for `fabric.global_rank == 0`: once for each node."""
    asked = test.left if isinstance(test, ast.Compare) else test
    if not isinstance(asked, ast.Attribute) or not (name := dotted(asked.value)):
        return ""
    if asked.attr in ("is_main_process", "is_local_main_process") and is_accelerator(project, module, asked.value):
        return f"{name}.print"
    if asked.attr in ("is_global_zero", "global_rank", "local_rank") and is_fabric(project, module, asked.value):
        return f"{name}.print"
    return ""


def _has_its_fields(project: Project, module: SourceModule, test: ast.expr, statement: ast.stmt) -> bool:
    """False for `self.accelerator.is_main_process` where another method sets the field, and may not have run."""
    owner = module.class_of(statement)
    fields = {n.attr for n in walk(test) if isinstance(n, ast.Attribute) and dotted(n.value) == "self"}
    return owner is None or all(
        not is_set_by_methods(project, module, owner, name) or is_sure_to_be_set(project, module, statement, name)
        for name in sorted(fields)
    )


def tests_for_zero(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True where the function of a place tests for rank 0 by itself."""
    return module.function_of(statement) in _tests_of_zero(project, module)


def _tests_of_zero(project: Project, module: SourceModule) -> dict[FunctionNode | None, list[_Test]]:
    """The plain tests for rank 0, global or local, of a file by the function they stand in."""
    return project.memo(("tests of zero", module.path), lambda: _find_tests(project, module))


def _find_tests(project: Project, module: SourceModule) -> dict[FunctionNode | None, list[_Test]]:
    """The first part of `rank == 0 and args.track` counts as well: it is asked wherever the whole test is."""
    found: dict[FunctionNode | None, list[_Test]] = {}
    for node in module.nodes(ast.If):
        test = node.test.values[0] if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else node.test
        if not isinstance(test, (ast.BoolOp, ast.UnaryOp)):
            ranks = ranks_of_test(module, test, project=project)
            if ranks in (Ranks.ZERO, Ranks.LOCAL_ZERO) and asks_the_rank(module, test, project):
                found.setdefault(module.function_of(node), []).append(_Test(ranks, node, test))
    return found


def _is_known(
    project: Project, module: SourceModule, function: FunctionNode | None, name: str, statement: ast.stmt
) -> bool:
    if function is not None and has_parameter(function, name):
        return True
    if name in module.imports or any(bound == name for bound, _ in bound_above(module, function, statement)):
        return True
    return find_function(project, module, ast.Name(name, ast.Load()), statement) is not None

