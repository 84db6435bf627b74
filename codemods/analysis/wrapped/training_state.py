"""Training state that one rank alone restores or changes: optimizer, schedule, loss scale, first epoch, weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.bindings import bindings_of, name_or_field_bindings, only_value
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import bind, defaults, parameters, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.wrapped.left_averages import averages_left_in
from codemods.analysis.wrapped.put_back import is_put_back
from codemods.analysis.wrapped.wraps import Held, held
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

ONE = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_NAMED = (
    ("scheduler", lazy(r"(?:^|_)(?:lr_)?sched(?:uler)?s?(?:\w|_\w+)?$")),
    ("scaler", lazy(r"(?:^|_)(?:grad_?)?scaler$")),
    ("optimizer", lazy(r"(?:^|_)opt(?:im(?:izer)?s?)?(?:_?\w{1,4}|(?<=izer)_\w+)?$")),
)
# Averages and records are rank 0's own.
_OWN = lazy(r"ema|averag|shadow|swa|teacher|log|writer|meter|metric|history|best")
_COUNTS = lazy(r"epoch|step|iter|start|first|begin")
_SHARING = lazy(r"broadcast|bcast|scatter|all_?gather|sync_|_sync$|synchroni[sz]e_(?!cuda)\w|share")


class What(Enum):
    """What differs between the ranks from there on."""

    OPTIMIZER = "the optimizer's state"
    SCHEDULER = "the schedule of the learning rate"
    SCALER = "the loss scale"
    WEIGHTS = "the weights"
    BUFFER = "a buffer"
    ALL = "the whole training state"
    COUNT = "where training begins"
    RATE = "the learning rate"


@record
class Change:
    """A place that only rank 0 comes to. node: the call or assignment; name: what is changed; guard: the rank test over it, None
    where it stands in a caller. restores: it is read from a file."""

    what: What
    node: ast.expr | ast.stmt
    name: str
    guard: Guard | None
    restores: bool = True


def changes(project: Project, module: SourceModule) -> Iterator[Change]:
    """Every change of training state that one rank makes alone and hands on to nobody."""
    found: list[tuple[What, ast.expr | ast.stmt, str, bool]]
    found = [*_calls(project, module), *_rates(module), *_counts(project, module)]
    for what, node, name, restores in found:
        if ranks_reaching(project, module, node) not in ONE:
            continue
        guard = next((g for g in guards_over(module, node, project=project) if g.ranks in ONE), None)
        if guard is not None and _asks_a_number_of_its_own(project, module, guard.node):
            continue
        if _is_of_one_rank(project, module, node, name) or _done_by_the_others(module, guard, name):
            continue
        if not handed_on(project, module, guard.node if guard is not None else node):
            yield Change(what, node, name, guard, restores)


def kind_of(module: SourceModule, receiver: ast.expr) -> What | None:
    """Optimizer, scheduler or scaler, by what the name is bound to, else by the name."""
    name = last(dotted(receiver))
    if not name or _OWN.search(dotted(receiver).lower()):
        return None
    for bound in name_or_field_bindings(module, receiver):
        made = qualified(module, bound.value.func) if isinstance(bound.value, ast.Call) else ""
        if "lr_scheduler" in made:
            return What.SCHEDULER
        if last(made) == "GradScaler":
            return What.SCALER
        if made.startswith("torch.optim."):
            return What.OPTIMIZER
    found = next((kind for kind, pattern in _NAMED if pattern.search(name.lower())), "")
    return {"optimizer": What.OPTIMIZER, "scheduler": What.SCHEDULER, "scaler": What.SCALER}.get(found)


def _calls(project: Project, module: SourceModule) -> Iterator[tuple[What, ast.Call, str, bool]]:
    yield from ((What.WEIGHTS, call, name, False) for call, name in averages_left_in(project, module))
    for call in module.calls_named("load_state_dict", "load_state", "register_buffer", "step"):
        if not isinstance(call.func, ast.Attribute):
            continue
        receiver, verb = call.func.value, call.func.attr
        name = dotted(receiver)
        if verb == "load_state":
            if "accelerator" in last(name).lower():
                yield What.ALL, call, name, True
        elif verb == "step":
            if kind_of(module, receiver) is What.SCHEDULER and isinstance(module.parent(call), ast.Expr):
                yield What.SCHEDULER, call, name, False
        elif verb == "load_state_dict" and (what := kind_of(module, receiver)) is not None:
            yield what, call, name, True
        elif not _OWN.search(name.lower()) and ranks_reaching(project, module, call) in ONE:
            inside = held(project, module, receiver)
            if inside is not None and not _is_behind(module, receiver, inside):
                continue
            if inside is not None and verb == "load_state_dict" and not is_put_back(project, module, call):
                yield What.WEIGHTS, call, name, True
            elif inside is not None and verb == "register_buffer" and _stays_here(project, call, inside.wrap):
                yield What.BUFFER, call, name, False


def _is_behind(module: SourceModule, receiver: ast.expr, inside: Held) -> bool:
    """True unless the wrap may come later: an attribute of self in a method that the order of the calls decides over."""
    if inside.module is not module or not dotted(receiver).startswith("self.") or "module" in dotted(receiver).split("."):
        return True
    wraps = module.function_of(inside.wrap)
    return wraps is module.function_of(receiver) or (wraps is not None and wraps.name == "__init__")


def _stays_here(project: Project, call: ast.Call, wrap: ast.Call) -> bool:
    """True for a buffer that DDP does not send: a new one, one that was None, or any where it is told to send none.

    One that is registered anew under its old name is sent with the next forward (measured on torch 2.13).
    """
    if any(k.arg == "broadcast_buffers" and isinstance(k.value, ast.Constant) and not k.value.value for k in wrap.keywords):
        return True
    name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(name, str):
        return False
    others = (
        c for path in project.files_containing(b"register_buffer") if (other := project.module(path)) is not None
        for c in other.calls_named("register_buffer") if c is not call and len(c.args) > 1
    )  # fmt: skip
    known = [c.args[1] for c in others if isinstance(c.args[0], ast.Constant) and c.args[0].value == name]
    return all(isinstance(value, ast.Constant) and value.value is None for value in known)


def _rates(module: SourceModule) -> Iterator[tuple[What, ast.stmt, str, bool]]:
    """`for group in optimizer.param_groups: group["lr"] = …` and `optimizer.param_groups[0]["lr"] = …`."""
    assigned: list[ast.Assign | ast.AugAssign] = [*module.nodes(ast.Assign), *module.nodes(ast.AugAssign)]
    for node in assigned:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant) or target.slice.value != "lr":
            continue
        loop = module.parent(node)
        source: ast.expr = target.value
        if isinstance(loop, ast.For) and dotted(loop.target) == dotted(target.value):
            source = loop.iter
        held_in = source.value if isinstance(source, ast.Subscript) else source
        if isinstance(held_in, ast.Attribute) and held_in.attr == "param_groups":
            yield What.RATE, node, dotted(held_in.value), False


def _counts(project: Project, module: SourceModule) -> Iterator[tuple[What, ast.stmt, str, bool]]:
    """`start = checkpoint["epoch"] + 1`, where a loop of every rank begins at `start`."""
    for assign in module.nodes(ast.Assign):
        parts: list[ast.expr] = assign.targets
        if len(parts) == 1 and isinstance(parts[0], ast.Tuple):
            parts = parts[0].elts if isinstance(assign.value, ast.Call) else []
        elif len(parts) > 1:
            continue
        for place, target in enumerate(parts):
            name = dotted(target)
            if not name or not _COUNTS.search(last(name).lower()):
                continue
            loaded = is_loaded(module, assign.value) or _loads(project, module, assign.value, place, len(parts))
            if loaded and ranks_at(module, assign, project=project) in ONE and _begins_a_loop(project, module, target, name):
                yield What.COUNT, assign, name, True


def _loads(project: Project, module: SourceModule, value: ast.expr, place: int, parts: int) -> bool:
    """True for a call of a function of the project that gives back, at the place, a value of a file that it reads."""
    site = called_function(project, module, value) if isinstance(value, ast.Call) else None
    for given in returned(site.node, site.module) if site is not None else ():
        assert site is not None
        whole = given.elts if isinstance(given, ast.Tuple) and parts > 1 else [given]
        if len(whole) == parts and is_loaded(site.module, whole[place]):
            return True
    return False


def is_loaded(module: SourceModule, value: ast.expr) -> bool:
    """True for what was read from a file: `torch.load(p)["epoch"]`, `state["epoch"]` of a `state` that was."""
    if isinstance(value, ast.Name):
        value = only_value(bindings_of(module, value)) or value
    if not any(isinstance(n, ast.Subscript) or (isinstance(n, ast.Call) and last(dotted(n.func)) == "get") for n in walk(value)):
        return False
    return any(is_load(n) or (isinstance(n, ast.Name) and _holds_loaded(module, n)) for n in walk(value))


def _holds_loaded(module: SourceModule, name: ast.Name) -> bool:
    return any(is_load(b.value) for b in bindings_of(module, name))


def is_load(node: ast.AST | None) -> bool:
    """`torch.load(...)`, `load_checkpoint(...)`."""
    return isinstance(node, ast.Call) and "load" in last(dotted(node.func)).lower() and "state_dict" not in dotted(node.func)


def _begins_a_loop(project: Project, module: SourceModule, target: ast.expr, name: str) -> bool:
    for read in module.reads_of(last(name)):
        home = module.class_of if name.startswith("self.") else module.function_of
        if dotted(read) != name or home(read) is not home(target):
            continue
        for up in module.ancestors(read):
            if isinstance(up, ast.Call) and last(dotted(up.func)) == "range":
                return not ranks_reaching(project, module, up).some
            if isinstance(up, ast.stmt):
                if isinstance(up, ast.While) and any(n is read for n in walk(up.test)):
                    return not ranks_reaching(project, module, up).some
                break
    return False


# What makes it right


def _asks_a_number_of_its_own(project: Project, module: SourceModule, test: ast.AST) -> bool:
    """True where the test asks a parameter that callers give a number or nothing: `def load(self, path, rank=0)`."""
    function = module.function_of(test)
    if function is None or not isinstance(test, ast.If):
        return False
    own = {p.arg for p in parameters(function, bound=False)}
    asked = {n.id for n in walk(test.test) if isinstance(n, ast.Name)} & own
    asked = {name for name in asked if "rank" in name or "gpu" in name or "main" in name}
    if not asked:
        return False
    method = isinstance(module.parent(function), ast.ClassDef)
    needed = asked - defaults(function).keys()
    given = [bind(function, site.call, bound=method) for site in uses_of(project, module, function).calls]
    given = [bound for bound in given if bound is None or needed <= bound.keys()]  # no call of another `train`
    if not given and needed:
        return False  # `mp.spawn(train)`: what starts it gives each process its own
    return all(bound is not None and all(_is_number(bound[n]) for n in asked if n in bound) for bound in given)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _is_of_one_rank(project: Project, module: SourceModule, node: ast.AST, name: str) -> bool:
    """True where only rank 0 has the object, or only rank 0 steps it: its training is its own."""
    receiver = next((n for n in walk(node) if dotted(n) == name and isinstance(n, (ast.Name, ast.Attribute))), None)
    bound = [b for b in name_or_field_bindings(module, receiver) if b.node is not node] if receiver is not None else []
    if bound and all(not b.parameter and ranks_at(module, b.node, project=project) in ONE for b in bound):
        return True
    if isinstance(node, ast.Call) and last(dotted(node.func)) == "step":
        return False  # a schedule, which each rank has for an optimizer that all of them step
    steps = [c for c in module.calls_named("step") if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == name]
    steps = [c for c in steps if c is not node]
    return bool(steps) and all(ranks_reaching(project, module, c) in ONE for c in steps)


def _done_by_the_others(module: SourceModule, guard: Guard | None, name: str) -> bool:
    """True where the other arm of the test, or a place that every rank comes to, does the like to the same object."""
    if guard is None:
        return False
    own = guard.node
    others = own.orelse if isinstance(own, ast.If) and guard.kind == "if" else own.body if isinstance(own, ast.If) else []
    if guard.kind == "exit":
        return False
    return any(dotted(n) == name for statement in others for n in walk(statement))


def _fills_nothing(module: SourceModule, call: ast.Call) -> bool:
    """`dist.broadcast(torch.tensor(lr), 0)`: what the others get goes into a tensor that nobody holds."""
    if qualified(module, call.func) != "torch.distributed.broadcast" or not call.args:
        return False
    return isinstance(call.args[0], ast.Call) and qualified(module, call.args[0].func) in ("torch.tensor", "torch.as_tensor")


def handed_on(project: Project, module: SourceModule, node: ast.AST, depth: int = 0) -> bool:
    """True where a broadcast stands further down, here or behind a call of this function."""
    function = module.function_of(node)
    line = getattr(node, "lineno", 0)
    for call in module.nodes(ast.Call):
        if call.lineno >= line and module.function_of(call) is function and _SHARING.search(last(dotted(call.func)).lower()):
            if not _fills_nothing(module, call):
                return True
    if function is None or depth >= 2:
        return False
    return any(handed_on(project, s.module, s.call, depth + 1) for s in uses_of(project, module, function).calls[:6])

