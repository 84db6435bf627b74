"""Learning-rate schedules that Accelerate steps: how each is made, and what its lengths are counted in.

A prepared scheduler moves on by `num_processes` steps with each step of the optimizer. A length is right where it counts the
batches of all ranks: that of the loader before it is prepared, or a number of steps times the processes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.accelerators import Made, made_by
from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.origins import origins
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, child_nodes, once_a_module, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Scheduler -> its lengths with their places among the arguments: first what the whole takes, then what the warm-up takes.
_HALVES = {"num_training_steps": 2, "num_warmup_steps": 1}
LENGTHS: dict[str, dict[str, int]] = {
    "get_scheduler": {"num_training_steps": 3, "num_warmup_steps": 2},
    "get_linear_schedule_with_warmup": _HALVES,
    "get_cosine_schedule_with_warmup": _HALVES,
    "get_cosine_with_hard_restarts_schedule_with_warmup": _HALVES,
    "get_polynomial_decay_schedule_with_warmup": _HALVES,
    "get_constant_schedule_with_warmup": {"num_warmup_steps": 1},
    "CosineAnnealingLR": {"T_max": 1},
    "OneCycleLR": {"total_steps": 2},
    "LinearLR": {"total_iters": 3},
    "ConstantLR": {"total_iters": 2},
    "PolynomialLR": {"total_iters": 1},
    "StepLR": {"step_size": 1},
}
_SOURCES = ("torch.optim.lr_scheduler", "transformers", "diffusers")
PROCESSES = re.compile(r"num_processes|world_?size|n_?gpus?\b|num_gpus|num_devices|device_count|n_card", re.I)
_SETTINGS = re.compile(r"(?:\w+_)?(?:args|cfg|config|conf|opts|options|params|hparams|flags)|opt|self|hps", re.I)
_NUMBERS = frozenset({"int", "float", "round", "ceil", "floor", "max", "min"})
_DEPTH = 6
_EPOCHS = re.compile(r"(?:n|nb|num|max|total|train|warmup)?_?(?:train|warmup)?_?epochs?", re.I)
_FEW = 1000  # a number that is written out and smaller may count epochs


class Counted(Enum):
    """What a length is counted in."""

    STEPS = "a number of steps that is given"
    UNSHARDED = "the length of the loader as it is before it is prepared"
    SHARDED = "the length of the prepared loader, which is that of one rank's share"
    EITHER = "a number of steps that is given, or else the length of the loader before it is prepared"
    OWN = "a number of steps that is given, or else the length of one rank's share"
    UNKNOWN = ""


@record
class Length:
    """An argument of a schedule. scaled: the number of processes is a factor of it."""

    name: str
    node: ast.expr
    counted: Counted
    scaled: bool

    @property
    def is_warm_up(self) -> bool:
        return self.name == "num_warmup_steps"


@record
class Schedule:
    """A scheduler that is prepared. prepared: the call; made: what makes it."""

    module: SourceModule
    made: ast.Call
    prepared: ast.Call
    given: ast.expr

    @property
    def kind(self) -> str:
        """Its class; "scheduler" where an option says which one: `getattr(lr_scheduler, args.kind)(optimizer)`."""
        return last(dotted(self.made.func)) or "scheduler"


def prepared_schedules(project: Project, module: SourceModule) -> Iterator[Schedule]:
    """The schedules that this file hands to `prepare` of an Accelerator which steps them with the optimizer."""
    for call in module.calls_named("prepare"):
        if not isinstance(call.func, ast.Attribute) or not any("sched" in _text(module, a).lower() for a in call.args):
            continue
        made = made_by(project, module, call.func.value)
        if not made or not all(_steps_for_each_process(project, m) for m in made):
            continue
        for given in call.args:
            for origin in origins(project, module, given) if not isinstance(given, ast.Starred) else ():
                if not origin.known or origin.path or not isinstance(origin.node, ast.Call):
                    continue
                if makes_schedule(origin.module, origin.node):
                    yield Schedule(origin.module, origin.node, call, given)


def lengths(project: Project, schedule: Schedule) -> list[Length]:
    """The lengths that the schedule is given; none where `**options` may hold them."""
    call, out = schedule.made, []
    if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return []
    for name, place in LENGTHS.get(schedule.kind, {}).items():
        node = next((k.value for k in call.keywords if k.arg == name), call.args[place] if len(call.args) > place else None)
        if node is not None and not _is_small(schedule.module, node):
            read = Reading(project)
            read.follow(schedule.module, node, 0)
            out.append(Length(name, node, read.counted, read.scaled))
    return out


def _is_small(module: SourceModule, node: ast.expr) -> bool:
    """True for a number that rather counts epochs, or nothing, than steps; also by its name, `args.epochs`."""
    if _EPOCHS.fullmatch(last(dotted(node))):
        return True
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else []
    if len(bound) == 1 and isinstance(bound[0].value, ast.Constant):
        node = bound[0].value
    return isinstance(node, ast.Constant) and (not isinstance(node.value, int) or node.value < _FEW)


def speaks_of_processes(project: Project, schedule: Schedule) -> bool:
    """True where the number of processes is anywhere in what the schedule is made of."""
    read = Reading(project)
    for node in (*schedule.made.args, *(k.value for k in schedule.made.keywords)):
        read.follow(schedule.module, node, 0)
    return read.scaled or read.divided


def _text(module: SourceModule, node: ast.expr) -> str:
    return dotted(node) or module.text_of(node)


def makes_schedule(module: SourceModule, call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Call) and dotted(func.func) == "getattr" and func.args:
        return qualified(module, func.args[0]) == _SOURCES[0]
    name = qualified(module, call.func)
    return name.startswith(_SOURCES) and (last(name) in LENGTHS or name.startswith(_SOURCES[0]))


def _steps_for_each_process(project: Project, made: Made) -> bool:
    if made.may_hold("split_batches", "step_scheduler_with_optimizer", "dataloader_config"):
        return False
    split, own, loading = (made.keyword(n) for n in ("split_batches", "step_scheduler_with_optimizer", "dataloader_config"))
    if (split is not None and not _is(split, False)) or (own is not None and not _is(own, True)):
        return False
    return loading is None or all(
        isinstance(o.node, ast.Call) and not any(k.arg in ("split_batches", None) for k in o.node.keywords)
        for o in origins(project, made.module, loading)
    )


def _is(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


class Reading:
    """What an expression is made of, through names, settings and arguments."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.scaled = self.divided = self.unsharded = self.sharded = self.given = self.lost = False
        self.multiplied = False  # by a number that is written out, and small enough to be that of the processes
        self.seen: set[int] = set()
        self.measured: list[tuple[SourceModule, ast.Call]] = []  # each `len(...)`

    @property
    def counted(self) -> Counted:
        if self.lost or (self.sharded and self.unsharded):
            return Counted.UNKNOWN
        if self.sharded:
            return Counted.OWN if self.given else Counted.SHARDED
        if self.unsharded:
            return Counted.EITHER if self.given else Counted.UNSHARDED
        return Counted.UNKNOWN if self.multiplied else Counted.STEPS

    def follow(self, module: SourceModule, node: ast.AST, depth: int) -> None:
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        if depth > _DEPTH:
            self.lost = True
        elif isinstance(node, (ast.Name, ast.Attribute)):
            self._name(module, node, depth)
        elif isinstance(node, ast.Call):
            self._call(module, node, depth)
        elif isinstance(node, ast.IfExp):
            self._choice(module, node, depth)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)) and _speaks(node.right):
            self._share(module, node, depth)
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp)):
            self.multiplied = self.multiplied or _has_small_factor(node)
            for child in child_nodes(node):
                self.follow(module, child, depth)
        elif isinstance(node, ast.Subscript):
            self.lost = self.lost or not _is_setting(dotted(node.value))
        elif not isinstance(node, ast.Constant):
            self.lost = True

    def _choice(self, module: SourceModule, node: ast.IfExp, depth: int) -> None:
        """Of `n if counted else n * processes` each arm has a unit of its own: `n` may be another number in each."""
        parts = set()
        for arm in (node.body, node.orelse):
            alone = Reading(self.project)
            alone.follow(module, arm, depth)
            parts.add(alone.scaled or alone.divided)
            self.follow(module, arm, depth)
        self.lost = self.lost or len(parts) > 1

    def _share(self, module: SourceModule, node: ast.BinOp, depth: int) -> None:
        """The length of the whole loader, divided by the processes, is that of one rank's share; other quotients are not read."""
        self.divided = True
        whole = Reading(self.project)
        whole.seen = self.seen
        whole.follow(module, node.left, depth)
        self.measured += whole.measured
        self.sharded = self.sharded or whole.unsharded
        self.given = self.given or whole.given
        self.lost = self.lost or whole.lost or whole.scaled or not whole.unsharded

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> None:
        name = last(dotted(call.func))
        if PROCESSES.search(name):
            self.scaled = True
        elif name == "len" and call.args:
            self.measured.append((module, call))
            if is_prepared_above(module, call.args[0], call):
                self.sharded = True
            else:
                self.unsharded = True
        elif name in _NUMBERS:
            for argument in call.args:
                self.follow(module, argument, depth)
        else:
            found = [o for o in origins(self.project, module, call) if o.known and not o.path and o.node is not call]
            for origin in found:
                self.follow(origin.module, origin.node, depth + 1)
            self.lost = self.lost or not found

    def _name(self, module: SourceModule, node: ast.Name | ast.Attribute, depth: int) -> None:
        text = dotted(node)
        if PROCESSES.search(last(text)):
            self.scaled = True
            return
        here = _written_above(module, node, text)
        for value in here:
            self.follow(module, value, depth + 1)
        found = () if here else origins(self.project, module, node)
        found = tuple(o for o in found if o.known and not o.path and o.node is not node)
        for origin in found:
            self.follow(origin.module, origin.node, depth + 1)
        if here or found:
            counts = self.unsharded or self.sharded
            setting = isinstance(node, ast.Attribute) and _is_setting(text)
            self.given = self.given or (counts and setting and _may_be_given(module, text))
        elif not _is_given_setting(module, node, text) or _scaled_elsewhere(self.project, last(text)):
            self.lost = True


def _has_small_factor(node: ast.expr) -> bool:
    """True for `args.steps * 8`: the 8 may be the processes that its author starts."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    numbers = (n.value for n in (node.left, node.right) if isinstance(n, ast.Constant))
    return any(isinstance(n, (int, float)) and 1 < n < _FEW and n == int(n) for n in numbers)


def _is_given_setting(module: SourceModule, node: ast.Name | ast.Attribute, text: str) -> bool:
    """True for `args.steps`, and for a parameter of a program that is called with its settings: `main(**settings)`."""
    if isinstance(node, ast.Attribute):
        return _is_setting(text)
    bound = bindings_of(module, node)
    function = module.function_of(node)
    if function is None or len(bound) != 1 or not bound[0].parameter or node.id not in defaults(function):
        return False
    calls = [c for c in module.calls_named(function.name) if dotted(c.func) == function.name]
    return bool(calls) and all(not c.args and c.keywords and all(k.arg is None for k in c.keywords) for c in calls)


def _speaks(node: ast.expr) -> bool:
    """True where the number of processes is a part of it by its name."""
    return any(PROCESSES.search(last(dotted(n))) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)))


def _is_setting(text: str) -> bool:
    holder = text.rpartition(".")[0]
    return bool(holder) and any(_SETTINGS.fullmatch(part) for part in holder.split("."))


def _may_be_given(module: SourceModule, text: str) -> bool:
    """True where a test asks whether the setting was given: `if args.max_train_steps is None:`."""
    return any(
        isinstance(t.ops[0], (ast.Is, ast.IsNot)) and dotted(t.left) == text for t in module.nodes(ast.Compare)
    )


def _scaled_elsewhere(project: Project, name: str) -> bool:
    """True where a line of the project multiplies the setting by something, or works it out from the processes."""

    def build() -> bool:
        pattern = re.compile(rb"\b" + name.encode() + rb"\b\s*(\*=|=[^=\n]*(num_processes|world_size|len\())")
        return any(pattern.search(project.read(path) or b"") for path in project.files_containing(name.encode()))

    return project.keep(("setting worked out", name), build)


def is_prepared_above(module: SourceModule, loader: ast.expr, at: ast.AST) -> bool:
    """True for the length of what a `prepare` above gives back."""
    name, line = dotted(loader), getattr(at, "lineno", 0)
    if not name:
        return False
    for assign in module.nodes(ast.Assign):
        value = assign.value
        if not isinstance(value, ast.Call) or last(dotted(value.func)) != "prepare" or assign.lineno > line:
            continue
        if module.function_of(assign) is not module.function_of(at):
            continue
        targets = [e for t in assign.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
        if any(dotted(t) == name for t in targets):
            return True
    return False


def _written_above(module: SourceModule, node: ast.expr, text: str) -> list[ast.expr]:
    """What the name is given in front of `node`: in its function above it, else anywhere in the file."""
    function, out = module.function_of(node), []
    for value in _written(module).get(text, ()):
        if module.function_of(value) is not function or value.lineno < node.lineno:
            out.append(value)
    return out


@once_a_module
def _written(module: SourceModule) -> dict[str, list[ast.expr]]:
    """Dotted name -> what it is assigned as a whole, or multiplied by, anywhere in the file."""
    found: dict[str, list[ast.expr]] = {}
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            found.setdefault(dotted(target), []).append(assign.value)
    for augmented in module.nodes(ast.AugAssign):
        found.setdefault(dotted(augmented.target), []).append(augmented.value)
    return found
