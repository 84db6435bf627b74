"""What a call gives, for the value of a `self.log`: a project function's returns, a metric's result, a tensor of this rank."""

from __future__ import annotations

import ast
import re

from codemods.analysis.call_graph import find_function
from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.logged.host_metrics import host_metric
from codemods.analysis.logged.local_values import Path, in_slots, local_values
from codemods.analysis.logged.logged_values import Scope, attribute_by_pattern, classify, part_of_module, short, unknown
from codemods.analysis.logged.metric_states import own_state
from codemods.analysis.logged.value_kinds import (
    EQUAL_CALLS,
    MODEL_WORDS,
    NEW_TENSORS,
    NUMBER_FAMILIES,
    ON_CPU,
    REDUCERS,
    TENSOR_FAMILIES,
    TO_NUMBER,
    Kind,
    Value,
    is_gauge,
    join,
)  # fmt: skip
from codemods.analysis.metric_attributes import metric_attribute
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_roles import state_of
from codemods.files.source import FunctionNode, walk_scope
from codemods.runtime.lazy_pattern import lazy

CALLS = 12  # project functions deep
# A package's function that may put the lists of all ranks together itself.
_JOINS = lazy(r"gather|reduce|collect|dist|sync|all_|mpi|comm|merge|horovod|hvd", re.I)
_BUILTINS = frozenset({"sum", "max", "min", "abs", "sorted", "list", "tuple", "dict", "reversed", "zip", "enumerate"})


def call_value(scope: Scope, node: ast.Call, path: Path, depth: int) -> Value:
    name = qualified(scope.module, node.func)
    end = last(name) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    arguments = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
    if _reduces(node, end):
        return Value(Kind.REDUCED, f"{short(scope, node)} is already the value of all ranks")
    if end in EQUAL_CALLS:
        return Value(Kind.EQUAL, f"{short(scope, node)} is the same on every rank")
    if (end in TO_NUMBER and isinstance(node.func, ast.Name)) or (end == "item" and isinstance(node.func, ast.Attribute)):
        return _number(scope, node, arguments, depth)
    if end == "to" and isinstance(node.func, ast.Attribute):
        return _moved(scope, node, node.func.value, depth)
    if end in ON_CPU:
        return _on_cpu(scope, node, arguments, depth)
    if end == "cuda" and isinstance(node.func, ast.Attribute):
        return _on_device(scope, classify(scope, node.func.value, (), depth + 1))
    if name == "getattr" and len(arguments) >= 2 and dotted(arguments[0]) == "self":
        return attribute_by_pattern(scope, arguments[1], depth)
    if isinstance(node.func, ast.Name) and name in _BUILTINS and arguments and callee(scope, node) is None:
        return join([classify(scope, a, (), depth + 1) for a in arguments])
    if is_gauge(name) or end == "elapsed_time":
        return Value(Kind.GAUGE, f"{short(scope, node)} is this process's clock, or a gauge of its machine")
    if family(name) in NUMBER_FAMILIES or name.startswith("torch.cuda."):
        judged = [classify(scope, a, (), depth + 1) for a in arguments]
        hidden = [v for v in judged if v.kind >= Kind.LIST]
        traced = all(v.traced for v in judged)
        if not hidden and _shows_a_gauge(judged):
            return join(judged)
        return join(hidden) if hidden else Value(Kind.NUMBER, f"{short(scope, node)} is a number", traced)
    if (found := host_metric(scope, node, name)) is not None:
        return found
    if family(name) in TENSOR_FAMILIES and "." in name and (not end[:1].isupper() or end in NEW_TENSORS):
        return _tensor_call(scope, node, name, arguments, depth)
    return _project_call(scope, node, name, end, path, depth)


def _reduces(node: ast.Call, end: str) -> bool:
    if end == "compute":  # of a metric; one with arguments is some other calculation
        return isinstance(node.func, ast.Attribute) and not node.args and not node.keywords
    if end in ("gather", "reduce"):  # tensor.gather(1, index) and functools.reduce(f, xs) are something else
        holder = last(dotted(node.func.value)) if isinstance(node.func, ast.Attribute) else ""
        return holder in ("accelerator", "fabric", "strategy", "self", "dist", "distributed")
    return end in REDUCERS


def _number(scope: Scope, node: ast.Call, arguments: list[ast.expr], depth: int) -> Value:
    inner = [*arguments, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
    worst = join([classify(scope, a, (), depth + 1) for a in inner])
    if worst.kind in (Kind.CPU, Kind.LOCAL, Kind.UNKNOWN):
        return Value(Kind.NUMBER, f"{short(scope, node)} is a number", traced=worst.traced)
    return worst


def _moved(scope: Scope, node: ast.Call, receiver: ast.expr, depth: int) -> Value:
    """`x.to(...)`: on the module's device, on the CPU, or where it was."""
    value = classify(scope, receiver, (), depth + 1)
    targets = [*node.args, *[k.value for k in node.keywords if k.arg == "device"]]
    if any(isinstance(t, ast.Constant) and str(t.value).startswith("cpu") for t in targets):
        return Value(Kind.CPU, f"{short(scope, node)} is on the CPU") if value.kind < Kind.CPU else value
    if any(last(dotted(t)) == "device" or last(dotted(t)) in ("type_as",) for t in targets):
        return _on_device(scope, value)
    return value


def _on_device(scope: Scope, value: Value) -> Value:
    return Value(Kind.LOCAL, value.text, value.traced) if value.kind is Kind.CPU else value


def _on_cpu(scope: Scope, node: ast.Call, arguments: list[ast.expr], depth: int) -> Value:
    inner = [*arguments, *([node.func.value] if isinstance(node.func, ast.Attribute) and not arguments else [])]
    value = join([classify(scope, a, (), depth + 1) for a in inner])
    if value.kind >= Kind.LIST:
        return value
    return Value(Kind.CPU, f"{short(scope, node)} is on the CPU", value.traced)


def _tensor_call(scope: Scope, node: ast.Call, name: str, arguments: list[ast.expr], depth: int) -> Value:
    """A function of torch & co.: its result is where its arguments are."""
    given = [*arguments, *[k.value for k in node.keywords if k.arg not in ("device", "dtype", "reduction", "dim")]]
    judged = [classify(scope, a, (), depth + 1) for a in given]
    deciding = [v for v in judged if v.kind >= Kind.LIST]
    if deciding:
        return join(deciding)
    if _shows_a_gauge(judged):
        return join(judged)
    if last(name) in NEW_TENSORS:
        return _new_tensor(scope, node, judged)
    for kind in (Kind.CPU, Kind.LOCAL):
        if found := next((v for v in judged if v.kind is kind), None):
            text = f"{short(scope, node)} is computed from this rank's batch" if kind is Kind.LOCAL else found.text
            return Value(kind, text, all(v.traced for v in judged))
    if judged and all(v.kind is Kind.EQUAL for v in judged):
        return join(judged)
    return unknown(next((v.text for v in judged if v.kind is Kind.UNKNOWN), f"what {short(scope, node)} works on is not seen"))


def _shows_a_gauge(judged: list[Value]) -> bool:
    """True for what is made of clocks and gauges alone, with constants."""
    return bool(judged) and max(v.kind for v in judged) is Kind.GAUGE


def _new_tensor(scope: Scope, node: ast.Call, judged: list[Value]) -> Value:
    device = next((k.value for k in node.keywords if k.arg == "device"), None)
    made = [v for v in judged if v.kind is not Kind.EQUAL]
    if not made:
        return Value(Kind.EQUAL, f"{short(scope, node)} is a constant")
    if device is None or (isinstance(device, ast.Constant) and str(device.value).startswith("cpu")):
        return Value(Kind.CPU, f"{short(scope, node)} has no device" if device is None else f"{short(scope, node)} is on the CPU")
    return Value(Kind.LOCAL, f"{short(scope, node)} is on the module's device", all(v.traced for v in made))


def _project_call(scope: Scope, node: ast.Call, name: str, end: str, path: Path, depth: int) -> Value:
    func = node.func
    if (part := part_of_module(scope, func)) is not None:
        return _of_held(scope, node, part, path, depth)
    if isinstance(func, ast.Call):  # nn.MSELoss()(a, b)
        if is_model(scope, func):
            return _batch_result(scope, node, depth)
        made = dotted(func.func) == "super"
        return unknown("what the base class returns is not seen" if made else f"what {short(scope, func)} makes is not known")
    if name in ("self", "self.forward", "pl_module"):
        return _through_forward(scope, node, scope.facts if name != "pl_module" else None, path, depth)
    if name.startswith("self.") and name.count(".") == 1 and scope.facts is not None:
        return _own_call(scope, node, end, path, depth)
    if (inner := _returned(scope, node, path, depth)) is not None:
        return inner
    if is_model(scope, node):
        return Value(Kind.EQUAL, f"{short(scope, node)} is a module")
    if (worked := _by_a_package(scope, node, name, depth)) is not None:
        return worked
    if isinstance(func, ast.Attribute):  # a method of something: x.mean(), outputs.loss.detach()
        return _method_call(scope, node, func, path, depth)
    return unknown(f"what {end or short(scope, func)}(…) returns is not known")


def _by_a_package(scope: Scope, node: ast.Call, name: str, depth: int) -> Value | None:
    """A number that a function of a package works out of what this rank has gathered in its steps; None for any other."""
    root = dotted(node.func).partition(".")[0]
    if not root or root not in scope.module.imports or _JOINS.search(name) or scope.project.resolve(name, scope.module.path):
        return None
    if name.startswith("."):
        return None  # a file of the project that is not there
    given = [a.value if isinstance(a, ast.Starred) else a for a in [*node.args, *(k.value for k in node.keywords)]]
    given += [v for a in given if isinstance(a, ast.Name) for v in _put_into_slots(scope, a.id)]
    worked = [v for a in given if (v := classify(scope, a, (), depth + 1)).kind is Kind.LIST]
    return join(worked) if worked else None


def _put_into_slots(scope: Scope, name: str) -> list[ast.expr]:
    """`row` of `classes[i].append(row)`."""
    if scope.function is None:
        return []
    bounds = local_values(scope.project, scope.module, scope.function).get(in_slots(name), [])
    return [b.value for b in bounds if b.value is not None]


def _of_held(scope: Scope, node: ast.Call, part: tuple[ClassFacts, ast.Attribute], path: Path, depth: int) -> Value:
    """`self.host.accuracy(...)`: a metric, a method, a sub-module of the module that the object holds."""
    facts, written = part
    if made := metric_attribute(scope.project, facts, written):
        kind = Kind.REDUCED if made.each_step else Kind.METRIC_RESULT
        return Value(kind, f"{made.text} in {made.path}:{made.line}")
    inner = scope.inside(facts.lineage[0].module, None, facts)
    if dotted(written).count(".") == 1 and (found := facts.method(written.attr)):
        body = scope.inside(found[0].module, found[1], facts)
        value = _of_returns(scope, node, body, found[1], path, depth)
        return value if value is not None else unknown(f"what {written.attr} returns is not seen")
    if _is_part(inner, written):
        return _batch_result(scope, node, depth)
    return unknown(f"what {short(scope, node.func)}(…) returns is not known")


def _batch_result(scope: Scope, node: ast.Call, depth: int) -> Value:
    """What a network or a loss gives: a tensor of this rank, unless what goes in is already more than its batch."""
    given = [a.value if isinstance(a, ast.Starred) else a for a in [*node.args, *(k.value for k in node.keywords)]]
    judged = [classify(scope, a, (), depth + 1) for a in given]
    if deciding := [v for v in judged if v.kind in (Kind.LIST, Kind.REDUCED)]:
        return join(deciding)
    return Value(Kind.LOCAL, f"{short(scope, node)} is computed from this rank's batch", all(v.traced for v in judged))


def _method_call(scope: Scope, node: ast.Call, func: ast.Attribute, path: Path, depth: int) -> Value:
    if isinstance(func.value, ast.Call) and dotted(func.value.func) == "super":
        return unknown("what the base class returns is not seen")
    if _is_part(scope, func.value):
        return _batch_result(scope, node, depth)
    # d.items(), d.values() keep what is inside; d.get("k") and d.pop("k") choose
    if func.attr in ("get", "pop") and node.args and isinstance(node.args[0], ast.Constant):
        return classify(scope, func.value, (node.args[0].value, *path), depth + 1)
    receiver = classify(scope, func.value, (), depth + 1)
    if receiver.kind in (Kind.UNKNOWN, Kind.LIST) and (whole := _of_object(scope, node, path, depth)) is not None:
        return whole
    if receiver.kind is Kind.METRIC_OBJECT:
        return Value(Kind.METRIC_RESULT, receiver.text) if func.attr == "forward" else _of_metric(scope, node, func)
    judged = [classify(scope, a, (), depth + 1) for a in node.args if not isinstance(a, ast.Starred)]
    if receiver.kind is Kind.EQUAL and any(v.kind is not Kind.EQUAL for v in judged):
        return unknown(f"what {short(scope, func)}(…) returns is not known")
    return join([receiver, *(v for v in judged if v.kind in (Kind.LIST, Kind.REDUCED))])


def _of_metric(scope: Scope, node: ast.Call, func: ast.Attribute) -> Value:
    """What a method of a metric gives: at the end of an epoch its states are all that the rank's steps put into it."""
    at_end = scope.function is not None and scope.function.name.endswith("epoch_end")
    state = own_state(scope.project, scope.facts, node) if at_end and scope.facts is not None else None
    if state is None:
        return unknown(f"what {func.attr} gives is not seen")
    read = f"`self.{state.name}` in {state.path}:{state.line}, which torchmetrics puts together in `compute` alone"
    return Value(Kind.LIST, f"{short(scope, func)} reads the rank's own {read}")


def _of_object(scope: Scope, node: ast.Call, path: Path, depth: int) -> Value | None:
    """What a method of an object of the project gives back, where that is the value of all ranks: it asks metrics of its own."""
    state = state_of(variance(scope.project), scope.module, node)
    site = state.targets.get(id(node)) if state is not None and any(m.carries for m in state.met.get(id(node), ())) else None
    owner = site.module.parent(site.node) if site is not None else None
    if site is None or not isinstance(owner, ast.ClassDef):
        return _of_metrics_kept(scope, node, path, depth)
    inner = scope.inside(site.module, site.node, class_facts(scope.project, site.module, owner))
    found = _of_returns(scope, node, inner, site.node, path, depth)
    return found if found is not None and found.kind is Kind.REDUCED else None


def _of_metrics_kept(scope: Scope, node: ast.Call, path: Path, depth: int) -> Value | None:
    """As above, of `self.x` that is made of one class of the project, whose file works with torchmetrics."""
    name = dotted(node.func).split(".")
    if len(name) != 3 or name[0] != "self" or scope.facts is None:
        return None
    given = class_values(scope.project, scope.facts).given.get(name[1], [])
    made = [(g, dotted(g.value.func)) for g in given if isinstance(g.value, ast.Call) and g.part is None]
    sites = [find_class(scope.project, g.site.module, written) for g, written in made if written]
    site = sites[0] if sites and len(sites) == len(given) else None
    if site is None or any(s is None or s.node is not site.node for s in sites):
        return None
    facts = class_facts(scope.project, site.module, site.node)
    method = facts.method(name[2])
    if method is None or all(family(n) != "torchmetrics" for n in method[0].module.imported_modules):
        return None
    found = _of_returns(scope, node, scope.inside(method[0].module, method[1], facts), method[1], path, depth)
    return found if found is not None and found.kind is Kind.REDUCED else None


def _is_part(scope: Scope, node: ast.expr) -> bool:
    """True for `self.model` and what hangs on it, where the class makes a network of it."""
    name = dotted(node)
    return name.startswith("self.") and scope.facts is not None and bool(_made_model(scope, name.split(".")[1]))


def _own_call(scope: Scope, node: ast.Call, end: str, path: Path, depth: int) -> Value:
    """`self.x(...)`: a metric, a method, a sub-module."""
    facts = scope.facts
    assert facts is not None and isinstance(node.func, ast.Attribute)
    if made := metric_attribute(scope.project, facts, node.func):
        kind = Kind.REDUCED if made.each_step else Kind.METRIC_RESULT
        return Value(kind, f"{made.text} in {made.path}:{made.line}")
    if facts.method(end):
        inner = _returned(scope, node, path, depth)
        return inner if inner is not None else unknown(f"what {end} returns is not seen")
    if site := _made_model(scope, end):
        inner_facts = class_facts(scope.project, site.module, site.node) if isinstance(site, ClassSite) else None
        return _through_forward(scope, node, inner_facts, path, depth)
    if any(word in end.lower() for word in MODEL_WORDS) and "metric" not in end.lower():
        return _batch_result(scope, node, depth)
    return unknown(f"what self.{end} is, a metric or a function, is not seen")


def _made_model(scope: Scope, attribute: str) -> ClassSite | bool:
    """The project class that `self.attribute` is made of, True for a module of torch's; False where it is none."""
    assert scope.facts is not None
    for given in class_values(scope.project, scope.facts).given.get(attribute, []):
        if isinstance(given.value, ast.Call):
            inner = scope.inside(given.site.module, None, scope.facts)
            if is_model(inner, given.value):
                written = dotted(given.value.func)
                return find_class(scope.project, given.site.module, written) or True if written else True
    return False


def is_model(scope: Scope, call: ast.Call) -> bool:
    """True for a call that makes an nn.Module (no metric): torch's own, or a project class."""
    name = qualified(scope.module, call.func)
    if external_role(name) is Role.NN_MODULE or (family(name) in ("torchvision", "timm", "monai") and last(name)[:1].isupper()):
        return True
    written = dotted(call.func)
    site = find_class(scope.project, scope.module, written) if written else None
    facts = class_facts(scope.project, site.module, site.node) if site else None
    return facts is not None and facts.is_a(Role.NN_MODULE) and not facts.is_a(Role.METRIC)


def _through_forward(scope: Scope, node: ast.Call, facts: ClassFacts | None, path: Path, depth: int) -> Value:
    """What a module gives for this rank's batch; of a dictionary that its `forward` returns, the entry that is meant."""
    batch = _batch_result(scope, node, depth)
    method = facts.method("forward") if facts is not None and path else None
    if facts is None or method is None:
        return batch
    found = _of_returns(scope, node, scope.inside(method[0].module, method[1], facts), method[1], path, depth)
    return found if found is not None and found.kind in (Kind.EQUAL, Kind.NUMBER, Kind.REDUCED, Kind.METRIC_RESULT) else batch


def _returned(scope: Scope, call: ast.Call, path: Path, depth: int) -> Value | None:
    """The kind of what a project function or own method returns (its part `path`); None if it is not found."""
    target = callee(scope, call)
    return _of_returns(scope, call, target[0], target[1], path, depth) if target is not None else None


def _of_returns(scope: Scope, call: ast.Call, inner: Scope, function: FunctionNode, path: Path, depth: int) -> Value | None:
    if scope.budget.calls >= CALLS:
        return None
    scope.budget.calls += 1
    try:
        own = bool(function.args.args) and function.args.args[0].arg == "self"
        given = {name: ((scope, node),) for name, node in arguments_of(call, function, skip_self=own).items()}
        body = inner.inside(inner.module, function, inner.facts, given)
        returns = [r.value for r in walk_scope(function) if isinstance(r, ast.Return) and r.value is not None]
        return join([classify(body, value, path, depth + 1) for value in returns]) if returns else None
    finally:
        scope.budget.calls -= 1


def arguments_of(call: ast.Call, function: FunctionNode, *, skip_self: bool) -> dict[str, ast.expr]:
    """Parameter -> the expression handed in for it, its default where the call leaves it out."""
    a = function.args
    names = [arg.arg for arg in [*a.posonlyargs, *a.args]][1 if skip_self else 0 :]
    out: dict[str, ast.expr] = {}
    for name, default in zip(reversed(names), reversed(a.defaults), strict=False):
        out[name] = default
    out |= {arg.arg: d for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    if any(k.arg is None for k in call.keywords):
        return {}
    for name, argument in zip(names, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            return {}
        out[name] = argument
    return out | {k.arg: k.value for k in call.keywords if k.arg}


def callee(scope: Scope, call: ast.Call) -> tuple[Scope, FunctionNode] | None:
    """The project function or own method that a call leads to, with the scope of its body."""
    name = dotted(call.func)
    if name.startswith(("self.", "cls.")) and name.count(".") == 1 and scope.facts is not None:
        found = scope.facts.method(name.partition(".")[2])
        return (scope.inside(found[0].module, found[1], scope.facts), found[1]) if found else None
    if not name or name.startswith("self."):
        return None
    site = find_function(scope.project, scope.module, name)
    if site is None or site.node.name == "__init__":
        return None
    return scope.inside(site.module, site.node, None), site.node
