"""How the test for rank 0 is written outside the frameworks' classes: by what is bound above the place.

An accelerator, a Trainer, parsed TrainingArguments, a rank that was asked for, Lightning's own `rank_zero_only.rank`, and at
last the variable that every launcher of processes sets.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.loading.programs import starts_group_before
from codemods.analysis.loading.spawned import in_file_of_workers
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.accelerator_guards import ACCELERATOR, made_by, of_argument, of_attribute
from codemods.analysis.output.environment_guards import of_environment
from codemods.analysis.output.global_ranks import (
    RANK_NAMES,
    asks_for_zero,
    asks_the_group,
    is_global_rank,
    is_zero,
    stands_for_zero,
)
from codemods.analysis.output.minus_one import writes_minus_one
from codemods.analysis.output.one_process_claims import TRAINERS, is_alone
from codemods.analysis.output.own_environment import own_rank_of_environment
from codemods.analysis.output.own_helpers import is_own_rank, own_flag, own_helper
from codemods.analysis.output.run_before import binds, bound_above, run_before
from codemods.analysis.output.set_attributes import is_sure_to_be_set
from codemods.analysis.output.spelled_test import GROUP_STARTED, Spelling
from codemods.analysis.output.trainer_guards import test_of_trainer
from codemods.analysis.output.worker_ranks import rank_of_worker
from codemods.analysis.own_trainers import made_own_trainer
from codemods.analysis.ranks.rank_attributes import is_given_by_others
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.rewriting.imports import plan_rank_zero_only
from codemods.store.project import Project

_ENDS = frozenset({"destroy_process_group", "end_training", "cleanup"})
_TRAINER_PRINTS_FROM = (2, 1)  # Lightning's changelog of 2.1: "Added `Trainer.print()`"
_FABRICS = frozenset({"lightning.fabric.Fabric", "lightning_fabric.Fabric", "lightning.Fabric"})


def script_guard(
    project: Project, module: SourceModule, statement: ast.stmt, function: FunctionNode | None, *, lines: bool
) -> Spelling | None:
    """The test for rank 0 that what stands above `statement` offers. lines: it is for printed lines, not for files."""
    for name, value in bound_above(module, function, statement):
        if is_alone(module, value):
            return None
        if _is_too_early(project, module, value):
            continue
        if lines and (found := _of_own_environment(project, module)):
            return found
        if found := _of_object(project, module, name, value):
            return found
    if lines and (found := _of_own_environment(project, module)):
        return found
    if function is not None and (found := of_argument(project, module, function)):
        return found
    if function is not None and (found := of_attribute(project, module, function, statement)):
        return found
    if function is not None and (found := _of_own_rank(project, module, function, statement)):
        return found
    if found := _of_branches(module, function, statement):
        return found
    if function is not None and (found := _of_module(project, module, function, statement)):
        return found
    if found := _of_settings(module, statement):
        return found
    if lines and (found := _of_group(module, function, statement)):
        return found
    if not lines and (found := _of_lightning(module)):
        return found
    found = of_environment(module)
    if found is None:
        own = own_helper(project, module, function, statement)
        return Spelling(own, asks_group=True) if own and not in_file_of_workers(project, module) else None
    if in_file_of_workers(project, module):  # torch.multiprocessing.spawn sets no RANK: each process would be rank 0
        rank = rank_of_worker(module, function, statement)
        return Spelling(f"{rank} in (-1, 0)", assumes=f"assumes that {rank} is -1 or 0 without a process group") if rank else None
    own = own_flag(project, module, function, lines=lines) or own_helper(project, module, function, statement)
    return Spelling(own, assumes=GROUP_STARTED) if own else found


def _of_own_environment(project: Project, module: SourceModule) -> Spelling | None:
    """By the project's own words, before what Lightning offers: one file asks in one way."""
    own = own_rank_of_environment(project, module)
    return Spelling(f"{own} == 0", by_launcher=True) if own and not in_file_of_workers(project, module) else None


def _of_object(project: Project, module: SourceModule, name: str, value: ast.expr) -> Spelling | None:
    made = made_by(project, module, name, value)
    if made == ACCELERATOR:
        return Spelling(f"{name}.is_main_process", printer=f"{name}.print")
    if made in TRAINERS or made in _FABRICS:
        printer = f"{name}.print" if made in _FABRICS else printer_of_trainer(project, module, name)
        return Spelling(f"{name}.is_global_zero", printer=printer)
    if made and (test := test_of_trainer(module, name, [made])):
        return Spelling(test)
    if isinstance(value, ast.Call) and (test := test_of_trainer(module, name, made_own_trainer(project, module, value))):
        return Spelling(test)
    if made == "transformers.TrainingArguments":
        return Spelling(f"{name}.process_index == 0")
    if asks_for_zero(project, module, value):
        return Spelling(name)
    if (name in RANK_NAMES or asks_the_group(module, value)) and is_global_rank(module, value):
        return Spelling(f"{name} in (-1, 0)" if "-1" in module.text_of(value) else f"{name} == 0")
    if is_own_rank(project, module, value):
        return Spelling(f"{name} == 0", asks_group=True)
    return None


def printer_of_trainer(project: Project, module: SourceModule, name: str) -> str:
    """`trainer.print` of Lightning, where the pinned version has it; it speaks once on each node."""
    pin = lightning_pin(project, near=module.path)
    return f"{name}.print" if pin is not None and pin.surely_at_least(_TRAINER_PRINTS_FROM) else ""


def _of_branches(module: SourceModule, function: FunctionNode | None, statement: ast.stmt) -> Spelling | None:
    """A rank that both branches of an `if` or a `try` above the place have bound, to the group's or to 0 without one."""
    if not module.holds(b"rank"):
        return None
    for above in run_before(module, statement):
        if not isinstance(above, (ast.If, ast.Try)) or module.function_of(above) is not function:
            continue
        lines = [a for a in walk(above) if isinstance(a, ast.Assign)]
        for name in sorted({t.id for a in lines for t in a.targets if isinstance(t, ast.Name)}):
            given = [b.value for b in bindings_in(module, function, name)]
            inside = [a.value for a in lines if binds(a, name)]
            known = [v for v in inside if is_zero(v) or is_global_rank(module, v)]
            named = name in RANK_NAMES or any(asks_the_group(module, v) for v in known)
            if named and binds(above, name) and len(given) == len(inside) == len(known) and not all(map(is_zero, known)):
                return Spelling(f"{name} == 0")
    return None


def _of_module(project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt) -> Spelling | None:
    """A rank that the file has bound above the definition of the function: it is there whenever that runs.

    One that stands for 0 without a group is asked for too early where the file has not started the group above it.
    """
    *_, top = (up for up in (statement, *module.ancestors(statement)) if isinstance(up, ast.stmt))
    for name, value in bound_above(module, None, top):
        early = stands_for_zero(module, value) and not starts_group_before(project, module, value)
        if early or _rebinds(module, function, name):
            continue
        if found := _of_object(project, module, name, value):
            return found
    found = _of_branches(module, None, top)
    name = found.test.partition(" ")[0] if found is not None else ""
    bound = next((n for n in module.nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Store)), top)
    return found if starts_group_before(project, module, bound) and not _rebinds(module, function, name) else None


def _is_too_early(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `dist.get_rank() if dist.is_initialized() else 0` above the call that starts the group: it is 0 on every rank."""
    asks = stands_for_zero(module, value) or is_own_rank(project, module, value)
    return asks and group_comes_later(project, module, value) != ""


def _rebinds(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True where a function, or one round it, has a name of its own that is spelled alike."""
    round_it = [function, *(up for up in module.ancestors(function) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)))]
    given = (n for up in round_it for n in walk(up) if isinstance(n, (ast.arg, ast.Name)))
    return any(n.arg == name if isinstance(n, ast.arg) else n.id == name and isinstance(n.ctx, ast.Store) for n in given)


def _of_own_rank(project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt) -> Spelling | None:
    """`self.rank == 0`, where constructors of the class and its bases give it the global rank, and nobody anything else."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or function.name == "__init__" or not _is_of_an_object(function):
        return None
    given = class_values(project, class_facts(project, module, owner)).given
    for name in sorted(RANK_NAMES & given.keys()):
        values = [(g.site.module, g.value) for g in given[name]]
        made = all(g.part is None and g.function is not None and g.function.name == "__init__" for g in given[name])
        known = made and all(is_global_rank(m, v) and rank_source(m, v, project) is Ranks.ZERO for m, v in values)
        known = known and not any("-1" in m.text_of(v) or writes_minus_one(m) for m, v in values)
        if known and not is_given_by_others(project, name) and is_sure_to_be_set(project, module, statement, name):
            return Spelling(f"self.{name} == 0")
    return None


def _is_of_an_object(function: FunctionNode) -> bool:
    return bool(function.args.args) and function.args.args[0].arg == "self"


def _of_settings(module: SourceModule, statement: ast.stmt) -> Spelling | None:
    found = rank_of_settings(module, statement)
    return Spelling(f"{found} == 0") if found else None


def rank_of_settings(module: SourceModule, statement: ast.stmt) -> str | None:
    """`args.rank`, where the place comes behind `args.rank = dist.get_rank()` on every path."""
    if not module.holds(b".rank") or writes_minus_one(module):
        return None
    function = module.function_of(statement)
    given = [
        (a, t) for a in module.nodes(ast.Assign) for t in a.targets
        if isinstance(t, ast.Attribute) and t.attr in RANK_NAMES and isinstance(t.value, ast.Name)
        and module.class_of(a) is module.class_of(statement)
    ]  # fmt: skip
    sure = {id(s) for s in run_before(module, statement)}
    for assign, target in given:
        if id(assign) not in sure or module.function_of(assign) is not function:
            continue
        same = [a for a, t in given if dotted(t) == dotted(target)]
        known = all(is_zero(a.value) or is_global_rank(module, a.value) for a in same)
        if known and all(a.lineno < statement.lineno for a in same) and any(not is_zero(a.value) for a in same):
            return dotted(target)
    return None


def _of_group(module: SourceModule, function: FunctionNode | None, statement: ast.stmt) -> Spelling | None:
    """`dist.get_rank() == 0`, where the same function has started the group on every path, and not ended it."""
    if not module.holds(b"init_process_group"):
        return None
    spelled = None
    for above in run_before(module, statement):
        calls = [n for n in walk(above) if isinstance(n, ast.Call)] if module.function_of(above) is function else []
        if any(last(dotted(c.func)) in _ENDS for c in calls):
            return None
        if calls and isinstance(above, ast.Expr) and isinstance(above.value, ast.Call):
            holder = dotted(above.value.func).rpartition(".")[0]
            if holder and qualified(module, above.value.func) == "torch.distributed.init_process_group":
                spelled = Spelling(f"{holder}.get_rank() == 0")
    return spelled


def _of_lightning(module: SourceModule) -> Spelling | None:
    """`rank_zero_only.rank`, in a file that trains: Lightning reads it from the environment when it is imported.

    So it is known above the Trainer, in the children that Lightning starts too; where nobody has set it, it is 0 everywhere.
    """
    planned = plan_rank_zero_only(module) if module.holds(b".fit(") else None
    return Spelling(f"{planned.name}.rank == 0", planned.edits) if planned else None
