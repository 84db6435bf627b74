"""May `self.log(key, value)` be given the metric that returned the value for the batch? What else is done with that metric."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import entries, family_of
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import SETUP_METHODS
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.local_values import local_values
from codemods.analysis.logged.log_calls import LogCall, logged_value
from codemods.analysis.names import dotted
from codemods.api.findings import Edit, InsertBefore, ReplaceExpression
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record


@record
class Forward:
    """`self.acc(preds, y)`, whose result is logged. inline: it stands in the log call itself."""

    call: ast.Call
    name: str
    inline: bool

    @property
    def written(self) -> str:
        return f"self.{self.name}"


def forward_of(log: LogCall) -> Forward | None:
    """The one call of an attribute of the module whose result the log call is handed, as it is."""
    value = logged_value(log.call)
    made: ast.expr | None = value
    if isinstance(value, ast.Name):
        bound = local_values(log.project, log.module, log.function).get(value.id, [])
        whole = len(bound) == 1 and not bound[0].path and bound[0].into is None and not bound[0].loop
        made = bound[0].value if whole else None
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return None
    if dotted(made.func) != f"self.{made.func.attr}":
        return None
    return Forward(made, made.func.attr, made is value)


def object_edits(log: LogCall, forward: Forward) -> list[Edit]:
    """The metric takes the place of its value; the call that updates it stays, above the log where it stood in it."""
    value = logged_value(log.call)
    assert value is not None
    module = log.module
    edits: list[Edit] = [ReplaceExpression(module.path, module.span(value), forward.written)]
    if forward.inline:
        text = module.text_of(forward.call)
        edits.append(InsertBefore(module.path, module.span(module.statement_of(log.call)), text))
    return edits


def why_not_object(log: LogCall, forward: Forward) -> str:
    """Why the metric itself cannot be logged here, "" where nothing is against it."""
    statement = log.module.statement_of(log.call)
    if forward.inline and (not log.module.is_whole(statement) or "\n" in log.module.text_of(forward.call)):
        return f"write {forward.written}(…) above it, and hand {forward.written} to log"
    if log.keyword("reduce_fx") is not None:
        return "reduce_fx does nothing for a metric object"
    if any(a.arg == "dataloader_idx" for a in log.function.args.args):
        return "the step runs for several loaders, and each needs a metric of its own"
    stages: set[str] = set()
    for use in _uses(log, forward.name):
        if use.kind == "call":
            stages |= _stages(log, use)
            if use.node is not forward.call.func:
                return f"line {use.line} of {use.module.path} updates it as well"
        elif use.kind == "reset" and not (use.function is not None and use.function.name.endswith("_start")):
            return f"line {use.line} of {use.module.path} empties it, which Lightning does for a metric that is logged"
        elif use.kind == "other":
            return f"line {use.line} of {use.module.path} does something else with it"
    if "training" in stages and len(stages) > 1:
        return "training and evaluation share it, and their samples would mix: make one for each"
    return _read_from_outside(log, forward.name)


@record
class _Use:
    """kind: made, call, read, reset or other."""

    kind: str
    node: ast.Attribute
    module: SourceModule
    function: FunctionNode | None

    @property
    def line(self) -> int:
        return self.node.lineno


def _uses(log: LogCall, name: str) -> Iterator[_Use]:
    for site in family_of(log.project, log.facts):
        for node in site.module.nodes(ast.Attribute):
            if node.attr == name and dotted(node) == f"self.{name}" and site.module.class_of(node) is site.node:
                function = site.module.function_of(node)
                yield _Use(_kind(site.module, node, function), node, site.module, function)


def _kind(module: SourceModule, node: ast.Attribute, function: FunctionNode | None) -> str:
    if not isinstance(node.ctx, ast.Load):
        return "made" if function is not None and function.name in SETUP_METHODS else "other"
    up = module.parent(node)
    if isinstance(up, ast.Call) and up.func is node:
        return "call"
    if isinstance(up, ast.Attribute):
        kinds = {"update": "call", "forward": "call", "reset": "reset", "compute": "read", "clone": "read"}
        return kinds.get(up.attr, "other")
    return "other"


def _stages(log: LogCall, use: _Use) -> set[str]:
    if use.function is None:
        return {"somewhere"}
    owner = use.module.class_of(use.node)
    facts = class_facts(log.project, use.module, owner) if owner is not None else log.facts
    found = entries(log.project, facts, use.function).hooks
    stages = {"training"} if found & TRAINING_HOOKS else set[str]()
    return stages | ({"evaluation"} if found & EVALUATION_HOOKS else set())


def _read_from_outside(log: LogCall, name: str) -> str:
    """A callback that empties the metric of the module it is handed."""
    word = f".{name}.reset(".encode()
    for path in log.project.files_containing(word):
        module = log.project.module(path)
        for call in module.calls_named("reset") if module is not None else ():
            receiver = dotted(call.func).removesuffix(f".{name}.reset")
            if dotted(call.func).endswith(f".{name}.reset") and receiver != "self":
                return f"line {call.lineno} of {path} empties it, which Lightning does for a metric that is logged"
    return ""
