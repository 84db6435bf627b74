"""The `self.log` calls of a LightningModule: which hooks they run under, what they log, by which key."""

from __future__ import annotations

import ast

from codemods.analysis.callers import Entries, entries
from codemods.analysis.class_index import ClassFacts, Role, class_facts, role_of_method
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_EPOCH_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.bare_objects import is_bare_object
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.logged.held_entries import held_entries
from codemods.analysis.logged.held_modules import Held, held_by
from codemods.analysis.logged.held_values import held_scope, seen_to_differ
from codemods.analysis.logged.literal_tests import answer_of
from codemods.analysis.logged.local_values import local_values
from codemods.analysis.logged.logged_values import Scope, classify, is_parameter, unknown
from codemods.analysis.logged.value_kinds import Kind, Value
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_STEPS = frozenset({"training_step", "validation_step", "test_step"})
CALLERS_DEEP = 3


@record
class LogCall:
    """A `self.log` or `pl_module.log` call and where it stands. held: it stands in another object, which holds the module."""

    module: SourceModule
    project: Project
    call: ast.Call
    facts: ClassFacts
    function: FunctionNode
    held: Held | None = None

    @property
    def is_log(self) -> bool:
        """True for `log`, False for `log_dict`."""
        return isinstance(self.call.func, ast.Attribute) and self.call.func.attr == "log"

    @property
    def on_self(self) -> bool:
        return self.held is None and isinstance(self.call.func, ast.Attribute) and dotted(self.call.func.value) == "self"

    @property
    def in_hooked_class(self) -> bool:
        """True in a method of a LightningModule or a Callback, whose hooks come to it through `self`."""
        if self.held is None:
            return True
        hooked = self.facts.is_a(Role.LIGHTNING_MODULE) or self.facts.is_a(Role.LIGHTNING_CALLBACK)
        return hooked and self.module.method_of(self.call) is not None

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


def as_any_log_call(module: SourceModule, project: Project, call: ast.Call) -> LogCall | None:
    """As above, and the calls of other objects that hold a LightningModule: `self.model.log(...)` of a task."""
    if (found := as_log_call(module, project, call)) is not None:
        return found
    place = module.method_of(call)
    function = module.function_of(call)
    held = held_by(project, module, call) if function is not None and (place is None or place[1] is function) else None
    if held is None or function is None:
        return None
    facts = class_facts(project, module, place[0]) if place is not None else held.owner
    return LogCall(module, project, call, facts, function, held) if facts is not None else None


# Hooks


def reached(log: LogCall) -> Entries | None:
    """The hooks the call runs under; None where no hook that logs is among them."""
    if log.held is not None:
        above = hooks_of(log)
        return above if above.hooks & (EVALUATION_HOOKS | TRAINING_HOOKS) else None
    found = _in_this_branch(log, entries(log.project, log.facts, log.function))
    if found.hooks & (EVALUATION_HOOKS | TRAINING_HOOKS) or (found.unknown and _looks_like_helper(log)):
        return found
    return None


def hooks_of(log: LogCall) -> Entries:
    """The hooks that reach the method of the call."""
    if log.in_hooked_class:
        return entries(log.project, log.facts, log.function)
    return held_entries(log.project, log.module, log.function)


def _in_this_branch(log: LogCall, found: Entries) -> Entries:
    """Without the callers whose literals lead into the other branch: `if stage == "val": self.log(...)`."""
    name = log.function.name
    if found.unknown or name in found.hooks:
        return found
    direct = [s for s in found.steps if isinstance(s.call.func, ast.Attribute) and s.call.func.attr == name]
    kept = [s for s in direct if not _leads_elsewhere(log, arguments_of(s.call, log.function, skip_self=True))]
    if len(kept) == len(direct) or not kept:
        return found
    above = [entries(log.project, log.facts, step.function) for step in kept]
    hooks = frozenset(hook for entry in above for hook in entry.hooks)
    steps = [*kept, *(step for entry in above for step in entry.steps)]
    return Entries(hooks, tuple(steps), found.outside, next((e.unknown for e in above if e.unknown), ""))


def _leads_elsewhere(log: LogCall, given: dict[str, ast.expr]) -> bool:
    below: ast.AST = log.call
    for up in log.module.ancestors(log.call):
        if up is log.function:
            return False
        if isinstance(up, ast.If) and below is not up.test:
            answer = answer_of(up.test, {n: v.value for n, v in given.items() if isinstance(v, ast.Constant)})
            if answer is not None and answer != any(s is below for s in up.body):
                return True
        below = up
    return False


def _looks_like_helper(log: LogCall) -> bool:
    """True for a method, called by nobody that is seen, of a class that has steps: a subclass elsewhere may call it."""
    if log.function.name in ("log", "log_dict", "__init__", "setup"):
        return False
    return any(m in _STEPS for site in log.facts.lineage for m in site.methods())


def epoch_level(log: LogCall, found: Entries) -> bool:
    """True if Lightning keeps a value of this call to the end of the epoch: evaluation by default, training on request."""
    if log.flag("on_epoch") is False:
        return False
    if log.keyword("on_epoch") is not None:
        return True
    defaults = found.hooks & (EVALUATION_HOOKS | TRAINING_EPOCH_HOOKS)
    return bool(defaults) or bool(found.unknown and not found.hooks)


def literal_parameters(log: LogCall, found: Entries) -> frozenset[str]:
    """The parameters of the method that every caller gives a literal."""
    names = [a.arg for a in [*log.function.args.posonlyargs, *log.function.args.args, *log.function.args.kwonlyargs]]
    calls = [s.call for s in found.steps if isinstance(s.call.func, ast.Attribute) and s.call.func.attr == log.function.name]
    if not calls or found.unknown:
        return frozenset()
    given = [arguments_of(c, log.function, skip_self=True) for c in calls]
    return frozenset(n for n in names if all(isinstance(g.get(n), ast.Constant) for g in given))


# Values


def scope_of(log: LogCall) -> Scope:
    """Where the call's names are looked up: a helper's parameters are what its callers hand in."""
    if log.held is not None and not log.in_hooked_class:
        return held_scope(Scope(log.project, log.facts, log.module, log.function), log.held)
    return _scope(Scope(log.project, log.facts, log.module, log.function), ())


def _scope(scope: Scope, above: tuple[FunctionNode, ...]) -> Scope:
    """The scope with its callers. `above`: functions that ask already; what they hand in comes from where they got it."""
    function = scope.function
    if function is None or scope.facts is None or len(above) >= CALLERS_DEEP:
        return scope
    found = entries(scope.project, scope.facts, function)
    if function.name in found.hooks or found.unknown:
        return scope
    given: dict[str, tuple[tuple[Scope, ast.expr], ...]] = {}
    for step in found.steps:
        called = step.call.func.attr if isinstance(step.call.func, ast.Attribute) else ""
        if called != function.name:
            continue
        asks = any(step.function is f for f in (*above, function))
        outer = scope if asks else _scope(scope.inside(step.site.module, step.function, scope.facts), (*above, function))
        for name, node in arguments_of(step.call, function, skip_self=True).items():
            given[name] = given.get(name, ()) if asks else (*given.get(name, ()), (outer, node))
    return scope.inside(scope.module, function, scope.facts, given)


def values(log: LogCall) -> list[tuple[str, Value]]:
    """(key, value) of the call: one for `log`, each entry of a literal dictionary for `log_dict`.

    Behind another object, what is not known is taken for equal unless the ranks' data are seen to come there.
    """
    found = _values(log)
    if log.held is None or any(v.kind not in (Kind.UNKNOWN, Kind.EQUAL) for _, v in found):
        return found
    link = seen_to_differ(log.project, log.module, log.call, logged_value(log.call))
    nothing = Value(Kind.EQUAL, "not seen to differ")
    return [(k, unknown(link) if link and v.kind is Kind.UNKNOWN else nothing) for k, v in found]


def _values(log: LogCall) -> list[tuple[str, Value]]:
    scope = scope_of(log)
    node = logged_value(log.call)
    if node is None:
        return [("", unknown("the value is not given by position or name"))]
    if log.is_log:
        return [(key_text(log), _entry(log, scope, node))]
    mapping = literal_mapping(log)
    if mapping is not None:
        pairs = zip(mapping.keys, mapping.values, strict=True)
        return [(_plain(k), _entry(log, scope, v)) for k, v in pairs]
    value = classify(scope, node)
    if value.kind in (Kind.METRIC_OBJECT, Kind.REDUCED, Kind.METRIC_RESULT, Kind.LIST):
        return [("", value)]
    text = " ".join(log.module.text_of(node).split())[:40]
    return [("", unknown(f"the keys of {text} are not written here"))]


def _entry(log: LogCall, scope: Scope, node: ast.expr) -> Value:
    value = classify(scope, node)
    if value.kind in (Kind.UNKNOWN, Kind.LIST) and log.on_self and is_bare_object(log.project, log.facts, node):
        return Value(Kind.METRIC_OBJECT, f"{log.module.text_of(node)} is an object, which reduces itself")
    return value


def _plain(key: ast.expr | None) -> str:
    if key is None:
        return "**"
    return str(key.value) if isinstance(key, ast.Constant) else ast.unparse(key)


def literal_mapping(log: LogCall) -> ast.Dict | None:
    """The dictionary display that `log_dict` logs: written in the call, or bound once to a name that nothing adds to."""
    node = logged_value(log.call)
    if isinstance(node, ast.Name) and not is_parameter(log.function, node.id):
        found = local_values(log.project, log.module, log.function).get(node.id, [])
        node = found[0].value if len(found) == 1 and not found[0].path and not found[0].loop else None
        if isinstance(node, ast.Dict) and _is_changed(log):
            return None
    if not isinstance(node, ast.Dict) or any(k is None for k in node.keys):
        return None
    return node


def _is_changed(log: LogCall) -> bool:
    """True where the logged name is handed to another call, or loses entries: what it holds then is not seen."""
    name = logged_value(log.call)
    assert isinstance(name, ast.Name)
    for node in ast.walk(log.function):
        if isinstance(node, ast.Delete):
            if any(isinstance(t, ast.Subscript) and dotted(t.value) == name.id for t in node.targets):
                return True
        if not isinstance(node, ast.Call) or node is log.call:
            continue
        method = isinstance(node.func, ast.Attribute) and dotted(node.func.value) == name.id
        if method and node.func.attr not in ("items", "values", "keys", "get", "copy"):  # type: ignore[attr-defined]
            return True
        own = isinstance(node.func, ast.Attribute) and node.func.attr in ("log", "log_dict")
        if not own and any(isinstance(a, ast.Name) and a.id == name.id for a in node.args):
            return True
    return False


# Keys


def key_node(log: LogCall) -> ast.expr | None:
    return log.call.args[0] if log.call.args else log.keyword("name")


def key_text(log: LogCall) -> str:
    node = key_node(log)
    return str(node.value) if isinstance(node, ast.Constant) else log.module.text_of(node) if node else ""


def key_nodes(log: LogCall) -> list[ast.expr]:
    """The expressions of the keys that the call logs, as far as they are written there."""
    if log.is_log:
        node = key_node(log)
        return [node] if node is not None else []
    mapping = literal_mapping(log)
    return [k for k in mapping.keys if k is not None] if mapping else []


def logged_value(call: ast.Call) -> ast.expr | None:
    """The value of a `log(name, value)` call, or the dictionary of a `log_dict(dictionary)` call."""
    index = 1 if isinstance(call.func, ast.Attribute) and call.func.attr == "log" else 0
    if len(call.args) > index and not any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
        return call.args[index]
    wanted = "value" if index else "dictionary"
    return next((k.value for k in call.keywords if k.arg == wanted), None)
