"""The `self.log` calls of a LightningModule: which hooks they run under, what they log, by which key."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis import logged_values
from codemods.analysis.callers import Entries, entries
from codemods.analysis.class_index import ClassFacts, Role, role_of_method
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_EPOCH_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged_values import Kind, Scope, Value, classify
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule


@dataclass(frozen=True, slots=True)
class LogCall:
    """A `self.log` or `pl_module.log` call and where it stands."""

    module: SourceModule
    project: Project
    call: ast.Call
    facts: ClassFacts
    function: FunctionNode

    @property
    def is_log(self) -> bool:
        """True for `log`, False for `log_dict`."""
        return isinstance(self.call.func, ast.Attribute) and self.call.func.attr == "log"

    def keyword(self, name: str) -> ast.expr | None:
        return next((k.value for k in self.call.keywords if k.arg == name), None)

    def flag(self, name: str) -> bool | None:
        """The constant of a boolean keyword; None where it is absent or not a constant."""
        value = self.keyword(name)
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None


def as_log_call(module: SourceModule, project: Project, call: ast.Call) -> LogCall | None:
    """The call, if its receiver is a LightningModule: `self` in one, or the `pl_module` a Callback's hook was given."""
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return None
    receiver = call.func.value.id
    if receiver not in ("self", "pl_module"):
        return None
    place = role_of_method(project, module, call)
    if place is None:
        return None
    facts, function = place
    wanted = Role.LIGHTNING_MODULE if receiver == "self" else Role.LIGHTNING_CALLBACK
    return LogCall(module, project, call, facts, function) if facts.is_a(wanted) else None


def reached(log: LogCall) -> Entries | None:
    """The hooks the call runs under; None where no hook that logs is among them."""
    found = entries(log.project, log.facts, log.function)
    if found.hooks & (EVALUATION_HOOKS | TRAINING_HOOKS) or (found.unknown and _looks_like_helper(log)):
        return found
    return None


def _looks_like_helper(log: LogCall) -> bool:
    return log.function.name not in ("log", "log_dict", "__init__", "setup") and bool(_stages(log))


def _stages(log: LogCall) -> list[str]:
    return [m for s in log.facts.lineage for m in s.methods() if m in ("training_step", "validation_step", "test_step")]


def epoch_level(log: LogCall, reached: Entries) -> bool:
    """True if Lightning keeps a value of this call to the end of the epoch: evaluation by default, training on request."""
    if log.flag("on_epoch") is False:
        return False
    if log.keyword("on_epoch") is not None:
        return True
    defaults = reached.hooks & (EVALUATION_HOOKS | TRAINING_EPOCH_HOOKS)
    return bool(defaults) or bool(reached.unknown and not reached.hooks)


def values(log: LogCall) -> list[tuple[str, Value]]:
    """(key, value) of the call: one for `log`, each entry of a literal dictionary for `log_dict`."""
    scope = Scope(log.project, log.facts, log.module, log.function)
    node = logged_value(log.call)
    if node is None:
        return [("", Value(Kind.UNKNOWN, "the value is not given by position or name"))]
    if log.is_log:
        return [(key_text(log), classify(scope, node))]
    mapping = _literal_mapping(log, node)
    if mapping is not None:
        pairs = zip(mapping.keys, mapping.values, strict=True)
        return [(ast.unparse(k) if k else "**", classify(scope, v)) for k, v in pairs]
    value = classify(scope, node)
    if value.kind in (Kind.METRIC_OBJECT, Kind.REDUCED, Kind.METRIC_RESULT):
        return [("", value)]
    return [("", Value(Kind.UNKNOWN, f"the keys of {log.module.text_of(node)[:40]} are not written here"))]


def _literal_mapping(log: LogCall, node: ast.expr) -> ast.Dict | None:
    """The dictionary display that is logged: written in the call, or bound once to a name that nothing adds to."""
    if isinstance(node, ast.Dict):
        return node
    if not isinstance(node, ast.Name):
        return None
    scope = Scope(log.project, log.facts, log.module, log.function)
    found = logged_values.assigned_values(scope, node.id)
    if len(found) != 1 or not isinstance(found[0][0], ast.Dict) or found[0][1] is not None:
        return None
    for other in ast.walk(log.function):
        if isinstance(other, ast.Subscript) and isinstance(other.value, ast.Name) and other.value.id == node.id:
            if isinstance(other.ctx, ast.Store):
                return None
        if isinstance(other, ast.Attribute) and isinstance(other.value, ast.Name) and other.value.id == node.id:
            if other.attr in ("update", "setdefault", "pop"):
                return None
    return found[0][0]


def key_node(log: LogCall) -> ast.expr | None:
    return log.call.args[0] if log.call.args else log.keyword("name")


def key_text(log: LogCall) -> str:
    node = key_node(log)
    return str(node.value) if isinstance(node, ast.Constant) else log.module.text_of(node) if node else ""


def logged_value(call: ast.Call) -> ast.expr | None:
    """The value of a `log(name, value)` call, or the dictionary of a `log_dict(dictionary)` call."""
    index = 1 if isinstance(call.func, ast.Attribute) and call.func.attr == "log" else 0
    if len(call.args) > index and not any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
        return call.args[index]
    wanted = "value" if index else "dictionary"
    return next((k.value for k in call.keywords if k.arg == wanted), None)
