"""What the value of a `self.log` is: this rank's own number, a metric object, something already reduced, a constant."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.class_values import SETUP_METHODS, Given, class_values
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.logged.accumulated import heir_that_fills, puts_into
from codemods.analysis.logged.local_values import Bound, Path, counted_over, local_values
from codemods.analysis.logged.value_kinds import EQUAL_ATTRIBUTES, NEUTRAL, Kind, Value, arithmetic, join
from codemods.analysis.metric_attributes import loose_metric, metric_attribute, metric_named, self_attribute
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import PENDING
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import field, record
from codemods.store.project import Project

DEPTH = 40
STEPS = 1200  # looks at one logged value; enough for every value seen in 79 repositories, and a bound for generated code


@record(frozen=False)
class Budget:
    """What one question may cost, and what it has found out so far."""

    spent: int = 0
    attributes: dict[tuple[str, Path], Value] = field(default_factory=dict)
    calls: int = 0
    module: tuple[str, ClassFacts] | None = None  # the name under which the asking object holds a LightningModule, and its class


@record
class Scope:
    """Where a name is looked up. given: what the callers hand in for a parameter, each in its caller's scope."""

    project: Project
    facts: ClassFacts | None
    module: SourceModule
    function: FunctionNode | None
    given: Mapping[str, tuple[tuple[Scope, ast.expr], ...]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    names: dict[tuple[str, Path], Value] = field(default_factory=dict)

    def inside(
        self,
        module: SourceModule,
        function: FunctionNode | None,
        facts: ClassFacts | None,
        given: Mapping[str, tuple[tuple[Scope, ast.expr], ...]] | None = None,
    ) -> Scope:
        return Scope(self.project, facts, module, function, given or {}, self.budget)


def unknown(text: str) -> Value:
    return Value(Kind.UNKNOWN, text, traced=False)


def classify(scope: Scope, node: ast.expr, path: Path = (), depth: int = 0) -> Value:
    """The kind of an expression at its place; of its part `path` (keys and indices) where it is taken apart."""
    from codemods.analysis.logged.called_values import call_value

    scope.budget.spent += 1
    if depth > DEPTH or scope.budget.spent > STEPS:
        return unknown(f"{short(scope, node)} takes too many steps to follow")
    if isinstance(node, ast.Constant):
        return Value(Kind.EQUAL, "a constant")
    if isinstance(node, ast.Name):
        return _name(scope, node.id, path, depth)
    if isinstance(node, ast.Attribute):
        return _attribute(scope, node, path, depth)
    if isinstance(node, ast.Subscript):
        return _subscript(scope, node, path, depth)
    if isinstance(node, ast.Call):
        return call_value(scope, node, path, depth)
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        return arithmetic([classify(scope, part, (), depth + 1) for part in _operands(node)])
    return _display(scope, node, path, depth)


def _operands(node: ast.BinOp | ast.UnaryOp | ast.Compare) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, *node.comparators]


def _display(scope: Scope, node: ast.expr, path: Path, depth: int) -> Value:
    """Collections written out, comprehensions, alternatives."""
    if isinstance(node, ast.IfExp):
        return join([classify(scope, part, path, depth + 1) for part in (node.body, node.orelse)])
    if isinstance(node, ast.BoolOp):
        return join([classify(scope, part, path, depth + 1) for part in node.values])
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        chosen = [v for k, v in pairs if path and isinstance(k, ast.Constant) and k.value == path[0]]
        return _elements(scope, chosen or node.values, path, depth)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        index = path[0] if path else None
        if isinstance(index, int) and index < len(node.elts) and not any(isinstance(e, ast.Starred) for e in node.elts):
            return classify(scope, node.elts[index], path[1:], depth + 1)
        return _elements(scope, node.elts, path, depth)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return classify(scope, node.elt, path[1:], depth + 1)
    if isinstance(node, ast.DictComp):
        return classify(scope, node.value, path[1:], depth + 1)
    if isinstance(node, (ast.NamedExpr, ast.Starred)):
        return classify(scope, node.value, path, depth + 1)
    return unknown(f"it is not known what {short(scope, node)} is")


def _elements(scope: Scope, nodes: list[ast.expr], path: Path, depth: int) -> Value:
    if not nodes:
        return NEUTRAL  # an empty collection: what is put into it counts
    return join([classify(scope, n, path[1:], depth + 1) for n in nodes])


def _subscript(scope: Scope, node: ast.Subscript, path: Path, depth: int) -> Value:
    if self_attribute(node) and scope.facts is not None:
        if made := metric_attribute(scope.project, scope.facts, node):
            return Value(Kind.METRIC_OBJECT, f"{made.text} in {made.path}:{made.line}")
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return classify(scope, node.value, (key, *path) if key is not None else (), depth + 1)


def short(scope: Scope, node: ast.AST) -> str:
    text = " ".join(scope.module.text_of(node).split()) if hasattr(node, "lineno") else "it"
    return text if len(text) <= 60 else text[:57] + "..."


# Names


def _name(scope: Scope, name: str, path: Path, depth: int) -> Value:
    key = (name, path)
    if key in scope.names:
        return scope.names[key]
    scope.names[key] = NEUTRAL
    value = scope.names[key] = _name_now(scope, name, path, depth)
    return value


def _name_now(scope: Scope, name: str, path: Path, depth: int) -> Value:
    if scope.function is None:
        return unknown(f"{name} is not assigned here")
    bounds = local_values(scope.project, scope.module, scope.function).get(name, [])
    found = [_bound(scope, name, bound, path, depth + 1) for bound in bounds]
    if is_parameter(scope.function, name):
        found.append(_parameter(scope, name, path, depth + 1))
    found += _counted(scope, name, depth + 1) if found else []
    if not found:
        return unknown(f"{name} is not assigned in this function")
    return join(found)


def _counted(scope: Scope, name: str, depth: int) -> list[Value]:
    """What `name` counts the elements of, where the steps of this rank gathered them."""
    over = local_values(scope.project, scope.module, scope.function).get(counted_over(name), []) if scope.function else []
    judged = [classify(scope, b.value, (), depth) for b in over if b.value is not None]
    return [value for value in judged if value.kind is Kind.LIST]


def _bound(scope: Scope, name: str, bound: Bound, path: Path, depth: int) -> Value:
    if bound.value is None:
        return unknown(f"{name} is bound in a way that is not followed")
    if bound.into is not None:
        if path and bound.into is not Ellipsis and bound.into != path[0]:
            return NEUTRAL
        return classify(scope, bound.value, path[1:] if bound.into is not Ellipsis else (), depth)
    if bound.loop:
        return classify(scope, bound.value, (), depth)
    return classify(scope, bound.value, (*bound.path, *path), depth)


def is_parameter(function: FunctionNode, name: str) -> bool:
    a = function.args
    return any(arg.arg == name for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs])


_COUNTERS = frozenset({"batch_idx", "dataloader_idx", "optimizer_idx", "batch_nb", "loader_idx"})


def _parameter(scope: Scope, name: str, path: Path, depth: int) -> Value:
    """What a parameter holds: what the callers hand in; for a hook, what Lightning does."""
    function = scope.function
    assert function is not None
    if (callers := scope.given.get(name)) is not None:
        return join([classify(outer, node, path, depth) for outer, node in callers]) if callers else NEUTRAL
    if function.name not in LIGHTNING_HOOKS:
        return unknown(f"{name} is handed in by the caller")
    if name in _COUNTERS:
        return Value(Kind.EQUAL, f"{name} is a counter")
    if name in ("trainer", "pl_module", "self", "optimizer", "checkpoint"):
        return unknown(f"what {name} holds is not seen")
    if function.name.endswith("epoch_end"):
        return Value(Kind.LIST, f"{name} is what the steps of this rank returned")
    return Value(Kind.LOCAL, f"{name} is this rank's own")


# Attributes


def part_of_module(scope: Scope, node: ast.expr) -> tuple[ClassFacts, ast.Attribute] | None:
    """`self.x` as the held LightningModule would write what stands here as `self.host.x`; None for anything else."""
    held = scope.budget.module
    name = dotted(node)
    if held is None or not name.startswith(f"{held[0]}."):
        return None
    text = name.removeprefix(f"{held[0]}.")
    inner = ast.parse(f"self.{text}", mode="eval").body
    return (held[1], inner) if isinstance(inner, ast.Attribute) else None


def _attribute(scope: Scope, node: ast.Attribute, path: Path, depth: int) -> Value:
    name = dotted(node)
    if node.attr in EQUAL_ATTRIBUTES or "hparams" in name.split("."):
        return Value(Kind.EQUAL, f"{short(scope, node)} is the same on every rank")
    if node.attr in PENDING:
        return unknown("it is read back from the Trainer")
    if node.attr in ("device", "dtype"):
        return Value(Kind.EQUAL, "a device")
    if (part := part_of_module(scope, node)) is not None:
        return classify(scope.inside(part[0].lineage[0].module, None, part[0]), part[1], path, depth + 1)
    if name.startswith("self.") and scope.facts is not None:
        return _own_attribute(scope, node, path, depth)
    return classify(scope, node.value, (), depth + 1)


def _own_attribute(scope: Scope, node: ast.Attribute, path: Path, depth: int) -> Value:
    facts = scope.facts
    assert facts is not None
    name = self_attribute(node)
    if made := metric_attribute(scope.project, facts, node):
        return Value(Kind.METRIC_OBJECT, f"{made.text} in {made.path}:{made.line}")
    key = (name, path)
    known = scope.budget.attributes
    if key not in known:
        known[key] = NEUTRAL
        known[key] = _attribute_now(scope, facts, name, path if dotted(node) == f"self.{name}" else (), depth)
    return known[key]


def _attribute_now(scope: Scope, facts: ClassFacts, name: str, path: Path, depth: int) -> Value:
    from codemods.analysis.logged.changed_alike import is_changed_alike

    values = class_values(scope.project, facts)
    if name in values.filled:
        if all(_is_read_back(filler) for filler in values.fillers.get(name, [])):
            return Value(Kind.EQUAL, f"self.{name} keeps what the Trainer shows for other keys, which decide for themselves")
        if _gathered_before(scope, facts, name, depth):
            return Value(Kind.REDUCED, f"what is put into self.{name} is gathered over the ranks")
        return Value(Kind.LIST, f"self.{name} is filled step by step on each rank")
    if name in values.grown:
        if _gathered_before(scope, facts, name, depth):
            return Value(Kind.REDUCED, f"what is added to self.{name} is gathered over the ranks")
        kind = Kind.EQUAL if is_changed_alike(scope, facts, name, depth) else Kind.LIST
        return Value(kind, f"self.{name} is worked on step by step on each rank")
    if (heir := heir_that_fills(scope.project, facts, name)) is not None:
        return _attribute_now(scope, heir, name, path, depth)
    found = [_given(scope, facts, given, path, depth) for given in values.given.get(name, [])]
    if (method := facts.method(name)) and any(last(dotted(d)).endswith("property") for d in method[1].decorator_list):
        inner = scope.inside(method[0].module, method[1], facts)
        returns = [r.value for r in walk_scope(method[1]) if isinstance(r, ast.Return)]
        found += [classify(inner, value, path, depth + 1) for value in returns if value is not None]
    return join(found) if found else unknown(f"where self.{name} comes from is not seen")


def _gathered_before(scope: Scope, facts: ClassFacts, name: str, depth: int) -> bool:
    """True where each value that a step puts into `self.name` is that of all ranks already."""
    kinds = set()
    for put in puts_into(scope.project, facts, name):
        kinds.add(classify(scope.inside(put.site.module, put.function, facts), put.value, (), depth + 1).kind)
    return Kind.REDUCED in kinds and kinds <= {Kind.REDUCED, Kind.EQUAL}


def _is_read_back(node: ast.expr) -> bool:
    """`self.trainer.callback_metrics["val/loss"]`, `….get("val/loss").item()`: a number that another log call made."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute) and node.attr in PENDING:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _given(scope: Scope, facts: ClassFacts, given: Given, path: Path, depth: int) -> Value:
    """One value of an attribute. What the constructor is handed is configuration, the same on every rank."""
    once = given.function is None or given.function.name in SETUP_METHODS
    if once and isinstance(given.value, (ast.Name, ast.Constant)):
        return Value(Kind.EQUAL, f"{short(scope.inside(given.site.module, None, None), given.value)} is configuration")
    inner = scope.inside(given.site.module, given.function, facts)
    whole = (given.part, *path) if given.part is not None else path
    return classify(inner, given.value, whole, depth + 1)


def attribute_by_pattern(scope: Scope, key: ast.expr, depth: int) -> Value:
    """`getattr(self, f"{stage}_acc")`: every attribute whose name fits."""
    facts = scope.facts
    if facts is None:
        return unknown("getattr of something")
    if made := loose_metric(scope.project, facts):
        return Value(Kind.METRIC_OBJECT, f"{made.text} in {made.path}:{made.line}")
    parts = [key] if isinstance(key, ast.Constant) else key.values if isinstance(key, ast.JoinedStr) else []
    pattern = "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in parts)
    fitting = [n for n in class_values(scope.project, facts).given if pattern and re.fullmatch(pattern, n)]
    found = [metric_named(scope.project, facts, n) for n in fitting]
    if found and all(found) and (first := found[0]):
        return Value(Kind.METRIC_OBJECT, f"{first.text} in {first.path}:{first.line}")
    return unknown("the attribute's name is worked out")
