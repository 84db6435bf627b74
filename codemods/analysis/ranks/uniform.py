"""Is a statement reached in the same way on every rank? What stands between it and the top of its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.exit_places import other_branch, same_loop
from codemods.analysis.ranks.rank_branches import takes_all
from codemods.analysis.ranks.rank_guards import ORDERED_CONTEXTS
from codemods.analysis.short_texts import shorter
from codemods.files.source import FunctionNode, SourceModule, line_of, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project


class Sameness(IntEnum):
    """Does a test give the same answer on every rank?"""

    NO = 0  # it may differ: made of data
    ASSUMED = 1  # made of configuration and stage names
    CERTAIN = 2  # made of literals and of what Lightning itself keeps equal


# What Lightning keeps equal on all ranks, as attributes of the module or the Trainer.
_KEPT_EQUAL = frozenset(
    {"sanity_checking", "current_epoch", "global_step", "training", "validating", "testing", "predicting", "fitting", "state",
     "world_size", "num_devices", "max_epochs", "fast_dev_run", "automatic_optimization"}
)  # fmt: skip
_CONFIGURATION = frozenset(
    {"hparams", "cfg", "config", "args", "opt", "conf", "params", "configs", "options", "trainer", "fit_loop", "logger",
     "loggers", "stage", "is_last_batch", "training_args", "save_hyperparameters"}
)  # fmt: skip
_STAGE_NAMES = frozenset(
    {"stage", "phase", "mode", "split", "prefix", "train", "is_train", "training", "step_type", "optimizer_idx", "dataloader_idx",
     "batch_idx"}
)  # fmt: skip
_CERTAIN_NAMES = frozenset({"dataloader_idx", "optimizer_idx", "True", "False"})
_PLAIN_CALLS = frozenset(
    {"isinstance", "hasattr", "getattr", "len", "bool", "is_initialized", "get_world_size", "callable", "range"}
)  # fmt: skip
_TEXT_METHODS = frozenset({"startswith", "endswith", "lower", "upper", "format", "get", "keys"})
# Decorators that call what they decorate, each time and on every rank.
_TURNS = (ast.Return, ast.Continue, ast.Break, ast.Yield, ast.YieldFrom)
_TRANSPARENT = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "override", "overrides", "abstractmethod", "typechecked", "beartype", "jaxtyped",
     "staticmethod", "classmethod", "autocast", "custom_fwd", "final", "compile", "disable", "record_function", "implements",
     "set_grad_enabled", "typecheck", "wraps", "property", "deprecated"}
)  # fmt: skip


@record
class Condition:
    """Something that can keep a rank from the statement. uniform: it looks the same on every rank."""

    text: str
    line: int
    uniform: bool


@record
class Place:
    """A function of a class, and its parameters that every caller gives a literal."""

    project: Project
    module: SourceModule
    facts: ClassFacts | None
    function: FunctionNode
    literal: frozenset[str] = frozenset()


def conditions(place: Place, node: ast.AST) -> list[Condition]:
    """Every `if`, loop, `try`, early exit, inner function and unknown decorator between the outside of the function and `node`.

    What is certain to look the same on every rank is left out.
    """
    found: list[Condition] = []
    below: ast.AST = node
    for up in place.module.ancestors(node):
        if up is place.function:
            break
        found += _standing_at(place, up, below)
        below = up
    return [*found, *exits_above(place, node), *_round(place)]


def _standing_at(place: Place, up: ast.AST, below: ast.AST) -> Iterator[Condition]:
    line: int = getattr(up, "lineno", 0)
    if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
        yield from _judged(f"`if {shorter(place.module, up.test)}`", line, sameness(place, up.test))
    elif isinstance(up, ast.Match) and below is not up.subject and not _is_always_taken(up, below):
        yield from _judged(f"`match {shorter(place.module, up.subject)}`", line, sameness(place, up.subject))
    elif isinstance(up, ast.BoolOp) and below is not up.values[0]:
        yield Condition("`and` or `or`", line, False)
    elif isinstance(up, (ast.For, ast.AsyncFor)) and below is not up.iter:
        yield from _judged(f"a loop over {shorter(place.module, up.iter)}", line, _iterated(place, up.iter))
    elif isinstance(up, ast.While):
        yield Condition("a loop", line, False)
    elif isinstance(up, (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
        yield Condition("a comprehension", line, False)
    elif isinstance(up, (ast.Try, ast.TryStar)) and up.handlers and not any(s is below for s in up.finalbody):
        yield Condition("a `try` block", line, False)
    elif isinstance(up, ast.Lambda):
        yield Condition("a lambda", line, False)
    elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield Condition(f"the inner function {up.name}", line, False)
    elif isinstance(up, (ast.With, ast.AsyncWith)):
        for item in up.items:
            entered = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            if last(dotted(entered)) in ORDERED_CONTEXTS | {"suppress"}:
                yield Condition(f"`with {shorter(place.module, item.context_expr)}`", line, False)


def _is_always_taken(match: ast.Match, case: ast.AST) -> bool:
    first = match.cases[0]
    return case is first and first.guard is None and takes_all(first.pattern)


def _judged(text: str, line: int, same: Sameness) -> Iterator[Condition]:
    if same is not Sameness.CERTAIN:
        yield Condition(text, line, same is Sameness.ASSUMED)


def _round(place: Place) -> Iterator[Condition]:
    """What stands round the function itself."""
    function = place.function
    if isinstance(function, ast.AsyncFunctionDef):
        yield Condition(f"the coroutine {function.name}", function.lineno, False)
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _turns(place)):
        yield Condition(f"the generator {function.name}", function.lineno, False)
    for decorator in function.decorator_list:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        if last(qualified(place.module, node)) not in _TRANSPARENT:
            yield Condition(f"the decorator @{shorter(place.module, decorator)}", decorator.lineno, True)


def _turns(place: Place) -> tuple[ast.AST, ...]:
    """Where the function leaves or yields; read once, not for each of the thousand places that it may have."""
    function = place.function
    key = ("turns", place.module.path, function.lineno, function.col_offset, function.name)
    return place.project.memo(key, lambda: tuple(n for n in walk_scope(function) if isinstance(n, _TURNS)))


def exits_above(place: Place, node: ast.AST) -> list[Condition]:
    """Early returns above `node`. Those in another branch of an `if` that `node` stands in cannot keep a rank from it."""
    found: list[Condition] = []
    module, line = place.module, line_of(node)
    for leaving in _turns(place):
        if not isinstance(leaving, (ast.Return, ast.Continue, ast.Break)) or leaving.lineno >= line:
            continue
        if isinstance(leaving, (ast.Continue, ast.Break)) and not same_loop(module, leaving, node):
            continue
        if other_branch(module, leaving, node):
            continue
        tests, sure = _tests_over(place, leaving)
        same = min((sameness(place, t.test) for t in tests), default=Sameness.NO) if sure else Sameness.NO
        word = type(leaving).__name__.lower()
        text = f"the `{word}` under `if {shorter(module, tests[0].test)}`" if tests else f"the `{word}` above it"
        found += _judged(text, leaving.lineno, same)
    return found


def _tests_over(place: Place, leaving: ast.AST) -> tuple[list[ast.If], bool]:
    """The `if`s round an exit; False where something else (a loop, a `try`) decides too."""
    tests: list[ast.If] = []
    sure = True
    for up in place.module.ancestors(leaving):
        if up is place.function:
            break
        if isinstance(up, ast.If):
            tests.append(up)
        loop = isinstance(up, (ast.For, ast.AsyncFor)) and isinstance(leaving, ast.Return)
        if loop or isinstance(up, (ast.Try, ast.ExceptHandler, ast.Match, ast.While)):
            sure = False
    return tests, sure


# Sameness of expressions


def sameness(place: Place, test: ast.AST) -> Sameness:
    """The weakest part decides. What comes from the batch, and any call that is not known, may differ."""
    worst = Sameness.CERTAIN
    inner: set[int] = set()
    for node in walk(test):
        if id(node) in inner:
            if isinstance(node, ast.Attribute):
                inner.add(id(node.value))
            continue
        if isinstance(node, ast.Call):
            inner.add(id(node.func))
            if isinstance(node.func, ast.Attribute):
                inner.add(id(node.func.value))
            same = _call(place, node)
        elif isinstance(node, ast.Attribute):
            inner.add(id(node.value))
            same = _chain(place, dotted(node))
        elif isinstance(node, ast.Name):
            same = _named(place, node.id)
        elif isinstance(node, (ast.Await, ast.Lambda, ast.Yield)):
            same = Sameness.NO
        else:
            continue
        if same < worst:
            worst = same
    return worst


def _call(place: Place, node: ast.Call) -> Sameness:
    name = dotted(node.func)
    if last(name) in _PLAIN_CALLS:
        return Sameness.ASSUMED
    if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
        return min(Sameness.ASSUMED, sameness(place, node.func.value))
    configured = name.startswith(("self.hparams", "trainer.")) and _chain(place, name) >= Sameness.ASSUMED
    return Sameness.ASSUMED if configured else Sameness.NO


def _named(place: Place, name: str) -> Sameness:
    if name in place.literal or name in _CERTAIN_NAMES or name in ("self", "trainer"):
        return Sameness.CERTAIN
    if name in _STAGE_NAMES or name in _PLAIN_CALLS or name.isupper() or name in ("str", "int", "float", "dict", "list", "torch"):
        return Sameness.ASSUMED
    return Sameness.NO


def kept_equal(name: str) -> bool:
    """True for `self.trainer.state.stage`, `self.current_epoch` and the like, which Lightning keeps equal on all ranks."""
    parts = name.split(".")[1:]
    return bool(parts) and parts[1 if parts[0] == "trainer" and len(parts) > 1 else 0] in _KEPT_EQUAL


def _chain(place: Place, name: str) -> Sameness:
    """`self.trainer.sanity_checking`, `self.hparams.x`, `self.flag` that only the constructor sets."""
    root, *parts = name.split(".")
    if root in ("self", "trainer", "pl_module") and parts:
        if parts[0] in ("trainer", "fit_loop") and len(parts) > 1:
            parts = parts[1:]
        if parts[0] in _KEPT_EQUAL:
            return Sameness.CERTAIN
        if parts[0] in _CONFIGURATION:
            return Sameness.ASSUMED
        configured = root == "self" and place.facts is not None and class_values(place.project, place.facts).set_once(parts[0])
        return Sameness.ASSUMED if configured else Sameness.NO
    if root in ("torch", "dist"):
        return Sameness.ASSUMED if parts and parts[-1] in _PLAIN_CALLS else Sameness.NO
    return Sameness.ASSUMED if root in _CONFIGURATION or (root in _STAGE_NAMES and not parts) else Sameness.NO


def _iterated(place: Place, node: ast.expr) -> Sameness:
    """A loop over literals runs alike everywhere; one over configuration does if the configuration is the same."""
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(e, ast.Constant) for e in node.elts):
        return Sameness.CERTAIN
    if isinstance(node, ast.Call) and last(dotted(node.func)) in ("enumerate", "zip", "range", "len"):
        return min((_iterated(place, a) for a in node.args), default=Sameness.NO)
    if isinstance(node, ast.Constant):
        return Sameness.CERTAIN
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items", "values"):
        return min(Sameness.ASSUMED, _iterated(place, node.func.value))
    return min(Sameness.ASSUMED, sameness(place, node))
