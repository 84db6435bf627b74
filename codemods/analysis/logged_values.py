"""What the value of a `self.log` is: this rank's own number, a metric object, something already reduced, a constant."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import IntEnum

from codemods.analysis.class_index import ClassFacts, Role, class_facts, external_role, find_class
from codemods.analysis.metric_attributes import attribute_values, metric_attribute, self_attribute
from codemods.analysis.names import dotted, family, last, qualified
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk_scope

DEPTH = 12
STEPS = 400  # looks at one logged value; enough for every value seen in 79 repositories, and a bound for generated code


class Kind(IntEnum):
    """From the most harmless to the one that decides: of two operands the higher kind wins."""

    EQUAL = 0  # the same on every rank: a learning rate, an epoch, a constant
    LOCAL = 1  # a plain number or tensor of this rank, on the module's device
    CPU = 2  # a tensor that may sit on the CPU, where NCCL cannot reduce it (Lightning >= 2.1, issue #18803)
    UNKNOWN = 3
    LIST = 4  # worked out from a list that the steps filled
    REDUCED = 5  # gathered, reduced or computed by a metric
    METRIC_RESULT = 6  # what `metric(preds, y)` returned: the batch's value
    METRIC_OBJECT = 7


@dataclass(frozen=True, slots=True)
class Value:
    """A kind, and the text that shows it."""

    kind: Kind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a name is looked up."""

    project: Project
    facts: ClassFacts | None
    module: SourceModule
    function: FunctionNode | None
    spent: list[int] = field(default_factory=lambda: [0])

    def inside(self, module: SourceModule, function: FunctionNode | None, facts: ClassFacts | None) -> Scope:
        return Scope(self.project, facts, module, function, self.spent)


_REDUCERS = frozenset(
    {"all_gather", "all_reduce", "gather", "broadcast", "gather_for_metrics", "all_gather_object", "compute",
     "reduce_boolean_decision", "reduce_dict", "reduce_tensor", "reduce_mean", "sync_tensor", "all_reduce_mean", "all_gather_cat"}
)  # fmt: skip
_EQUAL_CALLS = frozenset({"get_last_lr", "get_lr", "optimizers", "lr_schedulers", "get_learning_rate", "_get_lr"})
_EQUAL_ATTRIBUTES = frozenset({"current_epoch", "global_step", "param_groups", "hparams", "world_size", "num_devices"})
_NUMBERS = frozenset({"float", "int", "len", "round", "item", "tolist", "bool"})
_NUMBER_FAMILIES = frozenset({"numpy", "math", "time", "statistics", "psutil"})
_ON_CPU = frozenset({"cpu", "numpy", "from_numpy"})
_NEW_TENSORS = frozenset(
    {"tensor", "as_tensor", "zeros", "ones", "full", "arange", "FloatTensor", "Tensor", "empty", "rand", "randn"}
)  # fmt: skip
_MODEL_WORDS = ("loss", "criterion", "crit", "model", "net", "encoder", "decoder", "head", "backbone", "forward", "step")


def join(values: list[Value]) -> Value:
    return max(values, key=lambda v: v.kind) if values else Value(Kind.UNKNOWN, "nothing to judge by")


def classify(scope: Scope, node: ast.expr, depth: int = 0) -> Value:
    """The kind of an expression at its place."""
    scope.spent[0] += 1
    if depth > DEPTH or scope.spent[0] > STEPS:
        return Value(Kind.UNKNOWN, f"{_short(scope, node)} takes too many steps to follow")
    if isinstance(node, ast.Constant):
        return Value(Kind.EQUAL, "a constant")
    if isinstance(node, ast.Name):
        return _name(scope, node, depth)
    if isinstance(node, ast.Attribute):
        return _attribute(scope, node, depth)
    if isinstance(node, ast.Subscript):
        return classify(scope, node.value, depth + 1)
    if isinstance(node, ast.Call):
        return _call(scope, node, depth)
    parts = [classify(scope, part, depth + 1) for part in _operands(node)]
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return arithmetic(parts)
    if parts:
        return join(parts)
    return Value(Kind.UNKNOWN, f"what {_short(scope, node)} is cannot be told")


def arithmetic(parts: list[Value]) -> Value:
    """What an operator gives: with a tensor of this rank in it, it is one, on that tensor's device, whatever a weight is."""
    worst = join(parts)
    if worst.kind in (Kind.UNKNOWN, Kind.CPU):
        return next((p for p in parts if p.kind is Kind.LOCAL), worst)
    return worst


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return list(node.values)
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return list(node.elts)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [node.elt]
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.NamedExpr):
        return [node.value]
    return []


def _short(scope: Scope, node: ast.AST) -> str:
    text = " ".join(scope.module.text_of(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


# Names


def _name(scope: Scope, node: ast.Name, depth: int) -> Value:
    found: list[Value] = []
    for source, index in assigned_values(scope, node.id):
        if source is None:
            return Value(Kind.UNKNOWN, f"{node.id} is bound in a way that is not followed")
        if isinstance(source, ast.Name) and source.id == node.id:
            continue
        found.append(_element(scope, source, index, depth + 1, skip=node.id))
    found = [v for v in found if v is not _SELF]
    if found:
        worst = join(found)
        return worst if worst.text else Value(worst.kind, f"{node.id}")
    if _is_parameter(scope, node.id):
        return Value(Kind.UNKNOWN, f"{node.id} is handed in by the caller")
    return Value(Kind.UNKNOWN, f"{node.id} is not assigned in this function")


_SELF = Value(Kind.EQUAL, "itself")


def _element(scope: Scope, source: ast.expr, index: int | None, depth: int, *, skip: str) -> Value:
    """The kind of `source`, or of its element `index` where it is unpacked. `x = x + y` is judged by `y`."""
    if isinstance(source, (ast.Tuple, ast.List)) and index is not None and index < len(source.elts):
        return classify(scope, source.elts[index], depth)
    if isinstance(source, ast.Call) and index is not None and (inner := _returned(scope, source, index, depth)):
        return inner
    if isinstance(source, ast.BinOp):
        parts = [p for p in _operands(source) if not (isinstance(p, ast.Name) and p.id == skip)]
        if len(parts) < 2:
            return classify(scope, parts[0], depth) if parts else _SELF
    return classify(scope, source, depth)


def assigned_values(scope: Scope, name: str) -> list[tuple[ast.expr | None, int | None]]:
    """(value, index of the element if unpacked) of every assignment to a local name; (None, None) for a loop or `with`."""
    out: list[tuple[ast.expr | None, int | None]] = []
    if scope.function is None:
        return out
    for node in walk_scope(scope.function):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets = [node.target]
        elif isinstance(node, ast.comprehension):
            targets, value = [node.target], node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets = [node.optional_vars]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                out.append((value, None))
            elif isinstance(target, (ast.Tuple, ast.List)):
                for i, part in enumerate(target.elts):
                    if isinstance(part, ast.Name) and part.id == name:
                        out.append((value, i))
    return out


def _is_parameter(scope: Scope, name: str) -> bool:
    if scope.function is None:
        return False
    a = scope.function.args
    return any(arg.arg == name for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs])


# Attributes


def _attribute(scope: Scope, node: ast.Attribute, depth: int) -> Value:
    if node.attr in _EQUAL_ATTRIBUTES or "hparams" in dotted(node).split("."):
        return Value(Kind.EQUAL, f"{_short(scope, node)} is the same on every rank")
    if dotted(node).startswith("self.") and scope.facts is not None:
        return _own_attribute(scope, node, depth)
    return classify(scope, node.value, depth + 1)


def _own_attribute(scope: Scope, node: ast.Attribute, depth: int) -> Value:
    facts = scope.facts
    assert facts is not None
    name = self_attribute(node)
    if made := metric_attribute(scope.project, facts, node):
        return Value(Kind.METRIC_OBJECT, f"{made.text} in {made.path}:{made.line}")
    found = []
    for site, value in attribute_values(facts, name):
        if isinstance(value, (ast.List, ast.Dict, ast.ListComp)) or last(dotted(getattr(value, "func", None))) in (
            "list", "defaultdict", "dict", "deque",
        ):  # fmt: skip
            if is_filled_later(facts, name):
                return Value(Kind.LIST, f"self.{name} is filled step by step on each rank")
            found.append(Value(Kind.EQUAL, f"self.{name} is set once"))
            continue
        inner = scope.inside(site.module, site.module.function_of(value), facts)
        if isinstance(value, ast.Name):  # handed to the constructor: what it is, is the caller's business
            return Value(Kind.UNKNOWN, f"what self.{name} is, is decided by whoever makes the object")
        found.append(classify(inner, value, depth + 1))
    return join(found) if found else Value(Kind.UNKNOWN, f"where self.{name} comes from is not seen")


_FILLERS = frozenset({"append", "extend", "update", "add", "insert", "appendleft", "setdefault"})


def is_filled_later(facts: ClassFacts, name: str) -> bool:
    """True where a method other than `__init__` puts something into the collection `self.name`."""
    wanted = f"self.{name}"
    for site in facts.lineage:
        for method in site.methods().values():
            if method.name == "__init__":
                continue
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and node.attr in _FILLERS and _root_is(node.value, wanted):
                    return True
                if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _root_is(node.value, wanted):
                    return True
                if isinstance(node, ast.AugAssign) and _root_is(node.target, wanted):
                    return True
    return False


def _root_is(node: ast.expr, wanted: str) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) == wanted


# Calls


def _call(scope: Scope, node: ast.Call, depth: int) -> Value:
    name = qualified(scope.module, node.func)
    end = last(name) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    arguments = [a for a in node.args if not isinstance(a, ast.Starred)]
    if end in _REDUCERS:
        return Value(Kind.REDUCED, f"{_short(scope, node)} is already the value of all ranks")
    if end in _EQUAL_CALLS:
        return Value(Kind.EQUAL, f"{_short(scope, node)} is the same on every rank")
    if end in _NUMBERS or (end in ("sum", "max", "min", "abs", "mean") and isinstance(node.func, ast.Name)):
        inner = [*arguments, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        worst = join([classify(scope, a, depth + 1) for a in inner])
        return Value(Kind.LOCAL, worst.text) if worst.kind is Kind.CPU and end in _NUMBERS else worst
    if end in _ON_CPU:
        return Value(Kind.CPU, f"{_short(scope, node)} is on the CPU")
    if family(name) in _NUMBER_FAMILIES:
        inner_kinds = [v for a in arguments if (v := classify(scope, a, depth + 1)).kind >= Kind.LIST]
        return join(inner_kinds) if inner_kinds else Value(Kind.LOCAL, f"{_short(scope, node)} is a number")
    if family(name) == "torch":
        return _torch_call(scope, node, name, arguments, depth)
    if family(name) == "torchmetrics" and ".functional" in name:
        return Value(Kind.LOCAL, f"{_short(scope, node)} is this batch's own score")
    return _project_call(scope, node, name, end, depth)


def _torch_call(scope: Scope, node: ast.Call, name: str, arguments: list[ast.expr], depth: int) -> Value:
    if last(name) in _NEW_TENSORS and not any(k.arg in ("device",) for k in node.keywords):
        return Value(Kind.CPU, f"{_short(scope, node)} has no device")
    judged = [classify(scope, a, depth + 1) for a in arguments]
    worst = join([v for v in judged if v.kind >= Kind.LIST or v.kind is Kind.CPU] or [Value(Kind.LOCAL)])
    return worst if worst.text else Value(Kind.LOCAL, f"{_short(scope, node)} is computed from this rank's batch")


def _project_call(scope: Scope, node: ast.Call, name: str, end: str, depth: int) -> Value:
    func = node.func
    if isinstance(func, ast.Call):  # nn.MSELoss()(a, b)
        return Value(Kind.LOCAL, f"{_short(scope, node)} is computed from this rank's batch") if _is_model(
            scope, func
        ) else Value(Kind.UNKNOWN, f"what {_short(scope, func)} makes is not known")
    if name in ("self", "self.forward", "self.model", "pl_module"):
        return Value(Kind.LOCAL, f"{_short(scope, node)} is computed from this rank's batch")
    if name.startswith("self.") and name.count(".") == 1 and scope.facts is not None:
        return _own_call(scope, node, end, depth)
    if (inner := _returned(scope, node, None, depth)) is not None:
        return inner
    if isinstance(func, ast.Attribute):  # a method of something: x.mean(), outputs.loss.detach()
        receiver = classify(scope, func.value, depth + 1)
        if receiver.kind is Kind.METRIC_OBJECT:
            return Value(Kind.METRIC_RESULT, receiver.text)
        return receiver
    if end in ("sum", "max", "min", "zip", "enumerate"):
        return join([classify(scope, a, depth + 1) for a in node.args])
    return Value(Kind.UNKNOWN, f"what {end or _short(scope, func)}(…) returns is not known")


def _own_call(scope: Scope, node: ast.Call, end: str, depth: int) -> Value:
    """`self.x(...)`: a metric, a method, a sub-module."""
    facts = scope.facts
    assert facts is not None and isinstance(node.func, ast.Attribute)
    if made := metric_attribute(scope.project, facts, node.func):
        return Value(Kind.METRIC_RESULT, f"{made.text} in {made.path}:{made.line}")
    if facts.method(end):
        inner = _returned(scope, node, None, depth)
        return inner if inner is not None else Value(Kind.UNKNOWN, f"what {end} returns is not seen")
    for site, value in attribute_values(facts, end):
        if isinstance(value, ast.Call) and _is_model(scope.inside(site.module, None, facts), value):
            return Value(Kind.LOCAL, f"{_short(scope, node)} is computed from this rank's batch")
    if any(word in end.lower() for word in _MODEL_WORDS):
        return Value(Kind.LOCAL, f"{_short(scope, node)} is computed from this rank's batch")
    return Value(Kind.UNKNOWN, f"what self.{end} is, a metric or a function, is not seen")


def _is_model(scope: Scope, call: ast.Call) -> bool:
    """True for a call that makes an nn.Module: torch's own, or a project class."""
    name = qualified(scope.module, call.func)
    if external_role(name) is Role.NN_MODULE or family(name) in ("torchvision", "timm", "monai"):
        return True
    written = dotted(call.func)
    site = find_class(scope.project, scope.module, written) if written else None
    return site is not None and class_facts(scope.project, site.module, site.node).is_a(Role.NN_MODULE)


def _returned(scope: Scope, call: ast.Call, index: int | None, depth: int) -> Value | None:
    """The kind of what a project function or own method returns (its element `index` if unpacked); None if not found."""
    if depth > DEPTH:
        return None
    target = callee(scope, call)
    if target is None:
        return None
    inner, function = target
    returns = [r.value for r in walk_scope(function) if isinstance(r, ast.Return) and r.value is not None]
    values = []
    for value in returns:
        if index is not None and isinstance(value, ast.Tuple) and index < len(value.elts):
            value = value.elts[index]
        values.append(_parameters_as_local(inner, classify(inner, value, depth + 2)))
    return join(values) if values else None


def _parameters_as_local(scope: Scope, value: Value) -> Value:
    """Inside a helper, what the caller handed in is the rank's own batch: parameters count as local there."""
    if value.kind is Kind.UNKNOWN and value.text.endswith("handed in by the caller"):
        return Value(Kind.LOCAL, "computed from what the step hands in")
    return value


def callee(scope: Scope, call: ast.Call) -> tuple[Scope, FunctionNode] | None:
    """The project function or own method that a call leads to, with the scope of its body."""
    name = dotted(call.func)
    if name.startswith("self.") and name.count(".") == 1 and scope.facts is not None:
        found = scope.facts.method(name[5:])
        return (scope.inside(found[0].module, found[1], scope.facts), found[1]) if found else None
    if "." not in name:
        for function in scope.module.functions:
            if function.name == name and scope.module.class_of(function) is None:
                return scope.inside(scope.module, function, None), function
    full = qualified(scope.module, call.func)
    resolved = scope.project.resolve(full, scope.module.path) if (full and full != name) or full.startswith(".") else None
    if resolved is None or len(resolved.rest) != 1:
        return None
    other = scope.project.module(resolved.path)
    for function in other.functions if other else ():
        if function.name == resolved.rest[0] and other is not None and other.class_of(function) is None:
            return scope.inside(other, function, None), function
    return None
