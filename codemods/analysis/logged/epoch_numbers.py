"""Numbers that a hook at the end of an epoch works out from what one rank collected, and shows as those of all data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import entries
from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.logged.local_values import local_values
from codemods.analysis.logged.logged_values import Scope, classify
from codemods.analysis.logged.measured_lists import holds_only_measurements
from codemods.analysis.logged.value_kinds import Kind
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.set_above import set_above
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_STAGES = ("train", "validation", "test")
_OLD_ENDS = frozenset({"training_epoch_end", "validation_epoch_end", "test_epoch_end"})
_ENDS = _OLD_ENDS | {f"on_{s}_epoch_end" for s in _STAGES} | {"on_validation_end", "on_test_end", "on_epoch_end"}
_AVERAGES = frozenset(
    {"mean", "nanmean", "average", "fmean", "median", "std", "var", "sum", "item", "amax", "amin", "argmax", "quantile"}
)  # fmt: skip
_SCORES = ("_score", "accuracy", "_auc", "_error", "f1", "precision", "recall")
_PRINTS = frozenset({"print", "rank_zero_info", "rank_zero_print"})
_WRITES_LINES = frozenset({"info", "print", "warning"})
_JOINS = frozenset({"stack", "cat", "concat", "tensor", "as_tensor", "hstack", "vstack", "FloatTensor"})
_OLD_KEYS = frozenset({"log", "progress_bar"})


@record
class Shown:
    """node: the expression of the number. how: what is done with it. source: the list that it is worked out from.
    joined: the expression that makes one tensor of the list, None where none does."""

    node: ast.expr
    how: str
    source: str
    joined: ast.expr | None


def shown_numbers(project: Project, module: SourceModule) -> Iterator[Shown]:
    for owner in module.nodes(ast.ClassDef):
        methods = [m for m in owner.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)) and _may_show(m)]
        facts = class_facts(project, module, owner) if methods else None
        if facts is None or not (facts.is_a(Role.LIGHTNING_MODULE) or facts.is_a(Role.LIGHTNING_CALLBACK)):
            continue
        for method in methods:
            found = entries(project, facts, method)
            if found.hooks and found.hooks <= _ENDS and not found.unknown:
                yield from _of_method(project, module, facts, method)


def _may_show(method: FunctionNode) -> bool:
    return any(isinstance(n, ast.Return) or (isinstance(n, ast.Call) and _how(n)) for n in walk_scope(method))


def _of_method(project: Project, module: SourceModule, facts: ClassFacts, method: FunctionNode) -> Iterator[Shown]:
    logs = _logs_what_is_returned(project, module)
    for node in walk_scope(method):
        for leaf, how in _shown_by(node, method, logs=logs):
            scope = Scope(project, facts, module, method)
            value = classify(scope, leaf)
            if value.kind is not Kind.LIST or not (parts := list(_worked_out(scope, leaf))):
                continue
            if holds_only_measurements(scope, leaf) and left(module, leaf, "it is a mean of times or of memory, not of data"):
                continue
            joined = next((p for e in parts for p in walk(e) if isinstance(p, ast.Call) and _joins(scope, p)), None)
            yield Shown(leaf, how, value.text, joined)
            break  # one finding for each line


def _logs_what_is_returned(project: Project, module: SourceModule) -> bool:
    """True before Lightning 1.0, which logs the dict under "log" that a hook returns; later ones leave it unread."""
    pin = lightning_pin(project, near=module.path)
    return pin is not None and pin.surely_below((1, 0))


def _shown_by(node: ast.AST, method: FunctionNode, *, logs: bool) -> Iterator[tuple[ast.expr, str]]:
    """(expression, how it is shown) for a statement or call that shows something. logs: what is returned is logged, too."""
    if logs and isinstance(node, ast.Return) and method.name in _OLD_ENDS and isinstance(node.value, ast.Dict):
        for key, value in zip(node.value.keys, node.value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in _OLD_KEYS:
                written = value if isinstance(value, ast.Dict) else _bound_once(method, value)
                if isinstance(written, ast.Dict):
                    yield from ((part, "returned to be logged") for part in written.values)
    if not isinstance(node, ast.Call) or not (how := _how(node)):
        return
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        yield from ((leaf, how) for leaf in _leaves(argument))


def _bound_once(method: FunctionNode, name: ast.expr) -> ast.expr | None:
    found = [
        n.value for n in walk_scope(method)
        if isinstance(n, ast.Assign) and isinstance(name, ast.Name) and [dotted(t) for t in n.targets] == [name.id]
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _how(call: ast.Call) -> str:
    """How a call shows its arguments, "" where it does not."""
    name = dotted(call.func)
    end = last(name) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
    if name in _PRINTS or name == "self.print":
        return "printed"
    receiver = name.rpartition(".")[0]
    if end in _WRITES_LINES and any(w in receiver.lower() for w in ("log", "console", "module")):
        return "printed"
    if end in ("log_metrics", "log_metric", "add_scalar", "add_scalars") or name == "wandb.log":
        return "given to the logger"
    return "given to the logger" if end == "log" and last(receiver) == "experiment" else ""


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """The numbers in what is shown: the places of a template, the values of a dictionary, the expression itself."""
    if isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _leaves(part.value)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _leaves(value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from _leaves(node.right)
    elif isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from _leaves(part)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        for part in node.args:
            yield from _leaves(part)
    elif not isinstance(node, ast.Constant):
        yield node


def _worked_out(scope: Scope, node: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
    """The expressions of a number, where one of them averages: followed through local names."""
    if _averages(node):
        yield node
        return
    if depth > 2 or scope.function is None:
        return
    for part in walk(node):
        if isinstance(part, ast.Name):
            for bound in local_values(scope.project, scope.module, scope.function).get(part.id, []):
                if bound.value is not None and bound.into is None and not bound.loop:
                    yield from _worked_out(scope, bound.value, depth + 1)


def _averages(node: ast.expr) -> bool:
    for part in walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
            return True
        if isinstance(part, ast.Call):
            end = called_name(part)
            if end in _AVERAGES or end.endswith(_SCORES):
                return True
    return False


def _joins(scope: Scope, call: ast.Call) -> bool:
    if last(dotted(call.func)) not in _JOINS or family(qualified(scope.module, call.func)) != "torch" or not call.args:
        return False
    return classify(Scope(scope.project, scope.facts, scope.module, scope.function), call.args[0]).kind is Kind.LIST


def is_kept_to_one_device(project: Project) -> bool:
    """True where every Trainer that is made has one device: nobody else's share is missing then."""
    return project.keep("one device alone", lambda: _one_device(project))


def _one_device(project: Project) -> bool:
    alone = []
    for path in project.files_containing(b"Trainer("):
        module = None if is_test_file(path) else project.module(path)
        for call in module.calls_named("Trainer") if module is not None else ():
            if module is None or family(qualified(module, call.func)) != "lightning":
                continue
            given = {k.arg: k.value for k in call.keywords}
            devices = given.get("devices", given.get("gpus"))
            devices = devices if devices is None else set_above(module, devices) or devices
            alone.append(isinstance(devices, ast.Constant) and devices.value in (1, "1") and "num_nodes" not in given)
    return bool(alone) and all(alone)
