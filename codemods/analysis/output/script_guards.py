"""How the test for rank 0 is written outside the frameworks' classes: by what is bound above the place.

An accelerator, a Trainer, parsed TrainingArguments, a rank that was asked for, Lightning's own `rank_zero_only.rank`, and at
last the variable that every launcher of processes sets.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_in
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.functions import find_function
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.loading.programs import starts_group_before
from codemods.analysis.loading.spawned import in_file_of_workers
from codemods.analysis.model.signatures import defaults, parameters
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.minus_one import writes_minus_one
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.own_helpers import is_own_rank, own_flag, own_helper
from codemods.analysis.output.run_before import binds, bound_above, run_before
from codemods.analysis.output.set_attributes import is_sure_to_be_set
from codemods.analysis.output.trainer_guards import test_of_trainer
from codemods.analysis.output.worker_ranks import rank_of_worker
from codemods.analysis.own_trainers import made_own_trainer
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.given_numbers import is_given_a_number, is_left_at_its_default
from codemods.analysis.ranks.rank_attributes import is_given_by_others
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.rank_tests import asks_the_rank
from codemods.analysis.trainer.parsed_arguments import are_parsed_training_arguments
from codemods.api.findings import Applicability, Edit
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk, walk_scope
from codemods.rewriting.imports import plan_rank_zero_only, runs_at_import
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_RANK_NAMES = frozenset({"rank", "global_rank", "world_rank"})
_TRAINERS = frozenset({"lightning.pytorch.Trainer", "pytorch_lightning.Trainer", "lightning.Trainer"})
_TRAINS = lazy(rb"\.backward\(|Trainer\(|\.fit\(|DistributedDataParallel|\.train\(\)")
_COUNTED = lazy(r"gpu|device|world_size|num_proc|n_?proc", re.IGNORECASE)
_ENDS = frozenset({"destroy_process_group", "end_training", "cleanup"})
BY_LAUNCHER = "assumes that a launcher sets RANK for each process, as torchrun does"  # a test by `RANK`, written out
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_FLAG = "accelerator.is_main_process"
_ACCELERATOR = "accelerate.Accelerator"
_TRAINER_PRINTS_FROM = (2, 1)  # Lightning's changelog of 2.1: "Added `Trainer.print()`"
_FABRICS = frozenset({"lightning.fabric.Fabric", "lightning_fabric.Fabric", "lightning.Fabric"})


@record
class Spelling:
    """The text of the test, the imports it takes, and what it rests on where that is not shown.

    printer: a `print` that is silent where the test does not hold, or on all processes of a node but one, "" where none is
    known; takes_keywords: whether it takes those of Python's. asks_group: the test says nothing where no group has started yet.
    """

    test: str
    edits: tuple[Edit, ...] = ()
    assumes: str = ""
    printer: str = ""
    takes_keywords: bool = True
    asks_group: bool = False

    def level(self, highest: Applicability = Applicability.SAFE) -> Applicability:
        return min(highest, Applicability.UNSAFE, key=lambda a: a.rank) if self.assumes else highest


def script_guard(
    project: Project, module: SourceModule, statement: ast.stmt, function: FunctionNode | None, *, lines: bool
) -> Spelling | None:
    """The test for rank 0 that what stands above `statement` offers. lines: it is for printed lines, not for files."""
    for name, value in bound_above(module, function, statement):
        if _is_alone(module, value):
            return None
        if _is_too_early(project, module, value):
            continue
        if found := _of_object(project, module, name, value):
            return found
    if function is not None and (found := _of_argument(project, module, function)):
        return found
    if function is not None and (found := _of_attribute(project, module, function, statement)):
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
    found = _of_environment(module)
    if found is None:
        own = own_helper(project, module, function, statement)
        return Spelling(own, asks_group=True) if own and not in_file_of_workers(project, module) else None
    if in_file_of_workers(project, module):  # torch.multiprocessing.spawn sets no RANK: each process would be rank 0
        rank = rank_of_worker(module, function, statement)
        return Spelling(f"{rank} in (-1, 0)", assumes=f"assumes that {rank} is -1 or 0 without a process group") if rank else None
    own = own_flag(project, module, function, lines=lines) or own_helper(project, module, function, statement)
    return Spelling(own, assumes="assumes that the process group, where there is one, has been started by then") if own else found


def _of_object(project: Project, module: SourceModule, name: str, value: ast.expr) -> Spelling | None:
    made = _made_by(project, module, name, value)
    if made == _ACCELERATOR:
        return Spelling(f"{name}.is_main_process", printer=f"{name}.print")
    if made in _TRAINERS or made in _FABRICS:
        printer = f"{name}.print" if made in _FABRICS else printer_of_trainer(project, module, name)
        return Spelling(f"{name}.is_global_zero", printer=printer)
    if made and (test := test_of_trainer(module, name, [made])):
        return Spelling(test)
    if isinstance(value, ast.Call) and (test := test_of_trainer(module, name, made_own_trainer(project, module, value))):
        return Spelling(test)
    if made == "transformers.TrainingArguments":
        return Spelling(f"{name}.process_index == 0")
    if _asks_for_zero(project, module, value):
        return Spelling(name)
    if (name in _RANK_NAMES or _asks_the_group(module, value)) and _is_global_rank(module, value):
        return Spelling(f"{name} in (-1, 0)" if "-1" in module.text_of(value) else f"{name} == 0")
    if is_own_rank(project, module, value):
        return Spelling(f"{name} == 0", asks_group=True)
    return None


def printer_of_trainer(project: Project, module: SourceModule, name: str) -> str:
    """`trainer.print` of Lightning, where the pinned version has it; it speaks once on each node."""
    pin = lightning_pin(project, near=module.path)
    return f"{name}.print" if pin is not None and pin.surely_at_least(_TRAINER_PRINTS_FROM) else ""


def _asks_for_zero(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for the answer to a plain test of the global rank: `is_main = dist.get_rank() == 0`."""
    if not isinstance(value, ast.Compare) or writes_minus_one(module) or "-1" in module.text_of(value):
        return False
    asks = not is_text(module, value.left) and asks_the_rank(module, value, project)
    return asks and ranks_of_test(module, value, project=project) is Ranks.ZERO


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
            known = [v for v in inside if _is_zero(v) or _is_global_rank(module, v)]
            named = name in _RANK_NAMES or any(_asks_the_group(module, v) for v in known)
            if named and binds(above, name) and len(given) == len(inside) == len(known) and not all(map(_is_zero, known)):
                return Spelling(f"{name} == 0")
    return None


def _of_module(project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt) -> Spelling | None:
    """A rank that the file has bound above the definition of the function: it is there whenever that runs.

    One that stands for 0 without a group is asked for too early where the file has not started the group above it.
    """
    *_, top = (up for up in (statement, *module.ancestors(statement)) if isinstance(up, ast.stmt))
    for name, value in bound_above(module, None, top):
        early = _stands_for_zero(module, value) and not starts_group_before(project, module, value)
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
    asks = _stands_for_zero(module, value) or is_own_rank(project, module, value)
    return asks and group_comes_later(project, module, value) != ""


def _stands_for_zero(module: SourceModule, value: ast.expr) -> bool:
    """True where the group is asked, and the value is another one without a group."""
    return not isinstance(value, ast.Call) and _asks_the_group(module, value)


def _rebinds(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True where a function, or one round it, has a name of its own that is spelled alike."""
    round_it = [function, *(up for up in module.ancestors(function) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)))]
    given = (n for up in round_it for n in walk(up) if isinstance(n, (ast.arg, ast.Name)))
    return any(n.arg == name if isinstance(n, ast.arg) else n.id == name and isinstance(n.ctx, ast.Store) for n in given)


def _asks_the_group(module: SourceModule, value: ast.expr) -> bool:
    """True where the group itself is asked: whatever the name is, it holds the rank."""
    return any(isinstance(n, ast.Call) and qualified(module, n.func) == "torch.distributed.get_rank" for n in walk(value))


def _is_alone(module: SourceModule, value: ast.expr) -> bool:
    """True for a Trainer of one device on one node: the script runs as one process, whatever its strategy is called."""
    if not isinstance(value, ast.Call) or qualified(module, value.func) not in _TRAINERS:
        return False
    given = {k.arg: k.value for k in value.keywords}
    nodes = given.get("num_nodes")
    devices = given.get("devices", given.get("gpus"))
    single = isinstance(devices, ast.Constant) and devices.value in (1, "1")
    single |= isinstance(devices, ast.List) and len(devices.elts) == 1
    return single and (nodes is None or (isinstance(nodes, ast.Constant) and nodes.value == 1)) and None not in given


def claims_one_process(module: SourceModule, statement: ast.stmt) -> bool:
    """True for `assert len(args.gpus) == 1`: what follows is one process."""
    if not isinstance(statement, ast.Assert):
        return False
    compared = [n for n in walk(statement.test) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq)]
    of_one = [n for n in compared if isinstance(n.comparators[0], ast.Constant) and n.comparators[0].value == 1]
    return any(_COUNTED.search(origin_text(module, n.left)) for n in of_one)


def _made_by(project: Project, module: SourceModule, name: str, value: ast.expr) -> str:
    """The class of what a name is bound to, "" where nothing shows it; through a helper of the project for accelerators."""
    if not isinstance(value, ast.Call):
        return ""
    made = qualified(module, value.func)
    if last(dotted(value.func)) == "parse_args_into_dataclasses" and module.holds(b"transformers"):
        return "transformers.TrainingArguments" if are_parsed_training_arguments(project, module, name, value) else ""
    if "accelerator" in name and made != _ACCELERATOR and (found := find_function(project, module, value.func, value)):
        home, helper = found
        given = [v for r in walk_scope(helper) if isinstance(r, ast.Return) for v in _parts(r.value)]
        if any(_is_accelerator(home, v) for v in given):
            return _ACCELERATOR
    return made


def _parts(value: ast.expr | None) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, ast.Tuple) else [value] if value is not None else []


def _is_accelerator(module: SourceModule, value: ast.expr) -> bool:
    made = [value, *(values_of(module, value) if isinstance(value, ast.Name) else ())]
    return any(isinstance(v, ast.Call) and qualified(module, v.func) == _ACCELERATOR for v in made)


def _of_argument(project: Project, module: SourceModule, function: FunctionNode) -> Spelling | None:
    for argument in sure_arguments(function):
        written = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg == "accelerator" and (_imports(module, "accelerate") or written.endswith("Accelerator")):
            return Spelling(_FLAG, printer="accelerator.print")
        if argument.arg == "fabric" and (_imports(module, "lightning") or written.endswith("Fabric")):
            return Spelling("fabric.is_global_zero", printer="fabric.print")
        if argument.arg in _RANK_NAMES and module.holds(b"torch.distributed") and not writes_minus_one(module):
            number = is_given_a_number(project, module, function, argument.arg)
            if not number and not is_left_at_its_default(project, module, function, argument.arg):
                return Spelling(f"{argument.arg} == 0")
    return None


def print_of_accelerator(
    project: Project, module: SourceModule, statement: ast.stmt, function: FunctionNode | None
) -> str:
    """`accelerator.print` of an Accelerator that is bound above the place, or handed over; "" where there is none."""
    if not module.holds(b"ccelerat"):
        return ""
    for name, value in bound_above(module, function, statement):
        if _made_by(project, module, name, value) == _ACCELERATOR:
            return f"{name}.print"
    given = _of_argument(project, module, function) if function is not None else None
    return given.printer if given is not None and given.test == _FLAG else ""


def sure_arguments(function: FunctionNode) -> list[ast.arg]:
    """The arguments that are never None, as far as the signature shows it."""
    given = defaults(function)
    return [a for a in parameters(function, bound=False) if not _may_be_none(a, given.get(a.arg))]


def _may_be_none(argument: ast.arg, default: ast.expr | None) -> bool:
    if isinstance(default, ast.Constant) and default.value is None:
        return True
    written = ast.unparse(argument.annotation) if argument.annotation else ""
    return "Optional" in written or "None" in written


def _imports(module: SourceModule, *roots: str) -> bool:
    return any(i.dotted.startswith(roots) for found in module.imports.values() for i in found)


def _of_attribute(project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt) -> Spelling | None:
    if not isinstance(module.parent(function), ast.ClassDef) or not function.args.args or function.name == "__init__":
        return None
    owner = module.class_of(function)
    values = _own_accelerators(module).get(owner, ()) if module.holds(b"self.accelerator") else ()
    made = all(isinstance(v, ast.Call) and qualified(module, v.func) == _ACCELERATOR for v in values)
    if not values or not (made or owner in _asking_accelerators(module)):
        return None
    if not is_sure_to_be_set(project, module, statement, "accelerator"):
        return None
    return Spelling(f"self.{_FLAG}", printer="self.accelerator.print")


def _of_own_rank(project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt) -> Spelling | None:
    """`self.rank == 0`, where constructors of the class and its bases give it the global rank, and nobody anything else."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or function.name == "__init__" or not _is_of_an_object(function):
        return None
    given = class_values(project, class_facts(project, module, owner)).given
    for name in sorted(_RANK_NAMES & given.keys()):
        values = [(g.site.module, g.value) for g in given[name]]
        made = all(g.part is None and g.function is not None and g.function.name == "__init__" for g in given[name])
        known = made and all(_is_global_rank(m, v) and rank_source(m, v, project) is Ranks.ZERO for m, v in values)
        known = known and not any("-1" in m.text_of(v) or writes_minus_one(m) for m, v in values)
        if known and not is_given_by_others(project, name) and is_sure_to_be_set(project, module, statement, name):
            return Spelling(f"self.{name} == 0")
    return None


def _is_of_an_object(function: FunctionNode) -> bool:
    return bool(function.args.args) and function.args.args[0].arg == "self"


@once_a_module
def _asking_accelerators(module: SourceModule) -> frozenset[ast.ClassDef | None]:
    """The classes that ask an accelerator of theirs whether this is the main process: whoever made it, it can answer."""
    return frozenset(module.class_of(n) for n in module.nodes(ast.Attribute) if dotted(n) == f"self.{_FLAG}")


@once_a_module
def _own_accelerators(module: SourceModule) -> dict[ast.ClassDef | None, list[ast.expr]]:
    """The values that `self.accelerator` is given, by the class."""
    found: dict[ast.ClassDef | None, list[ast.expr]] = {}
    for assign in module.nodes(ast.Assign):
        if any(isinstance(t, ast.Attribute) and dotted(t) == "self.accelerator" for t in assign.targets):
            found.setdefault(module.class_of(assign), []).append(assign.value)
    return found


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
        if isinstance(t, ast.Attribute) and t.attr in _RANK_NAMES and isinstance(t.value, ast.Name)
        and module.class_of(a) is module.class_of(statement)
    ]  # fmt: skip
    sure = {id(s) for s in run_before(module, statement)}
    for assign, target in given:
        if id(assign) not in sure or module.function_of(assign) is not function:
            continue
        same = [a for a, t in given if dotted(t) == dotted(target)]
        known = all(_is_zero(a.value) or _is_global_rank(module, a.value) for a in same)
        if known and all(a.lineno < statement.lineno for a in same) and any(not _is_zero(a.value) for a in same):
            return dotted(target)
    return None


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 0


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


def by_environment(project: Project, module: SourceModule) -> Spelling | None:
    """The test by `RANK`, which holds above the start of the group, too; None where nobody may have set it."""
    return None if in_file_of_workers(project, module) else _of_environment(module)


@once_a_module
def _of_environment(module: SourceModule) -> Spelling | None:
    """By `RANK`, which torchrun, accelerate and deepspeed set for each process, in a file that reads what they set.

    Where the file sets the variables itself it starts the processes, and they are not there yet. And only in a file that
    trains: a tool that cuts its input by rank prints of its own share.
    """
    if not reads_environment(module) or module.holds(b"PROCID") or not _TRAINS.search(module.data):
        return None
    system = module.imports.get("os", ())
    if not any(i.dotted == "os" and runs_at_import(module, i.node) for i in system):
        return None
    return Spelling('int(os.environ.get("RANK", 0)) == 0', assumes=BY_LAUNCHER)


@once_a_module
def reads_environment(module: SourceModule) -> bool:
    """True for a file that reads the variables of a launcher, and sets none of them."""
    if not any(v.encode() in module.data for v in _VARIABLES):
        return False
    reads = False
    for node in module.nodes(ast.Subscript):
        if dotted(node.value).endswith("environ") and _is_variable(node.slice):
            if not isinstance(node.ctx, ast.Load):
                return False
            reads = True
    for call in module.calls_named("get", "getenv", "setdefault", "update"):
        if call.args and _is_variable(call.args[0]) and dotted(call.func).endswith(("environ.get", "getenv")):
            reads = True
        elif "environ" in dotted(call.func) and last(dotted(call.func)) in ("setdefault", "update"):
            return False
    return reads


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _VARIABLES


def _is_global_rank(module: SourceModule, value: ast.expr) -> bool:
    text = module.text_of(value)
    if isinstance(value, ast.IfExp):  # `dist.get_rank() if dist.is_initialized() else 0`
        arms = (value.body, value.orelse)
        return all(_is_zero(a) or _is_global_rank(module, a) for a in arms) and not all(map(_is_zero, arms))
    if is_text(module, value):
        return False
    if isinstance(value, ast.Call) and qualified(module, value.func) == "torch.distributed.get_rank":
        return True
    return "RANK" in text and "LOCAL" not in text and "environ" in text and isinstance(value, ast.Call)


def is_text(module: SourceModule, node: ast.expr, depth: int = 0) -> bool:
    """True for what may be the text of an environment variable: `os.environ["RANK"]` without `int(…)`."""
    if isinstance(node, ast.Subscript):
        return dotted(node.value).endswith("environ")
    if isinstance(node, ast.Call):
        return dotted(node.func).endswith(("environ.get", "getenv"))
    if isinstance(node, ast.BoolOp):
        return any(is_text(module, value, depth) for value in node.values)
    if isinstance(node, (ast.Name, ast.Attribute)) and depth < 3:
        return any(is_text(module, value, depth + 1) for value in values_of(module, node))
    return False
