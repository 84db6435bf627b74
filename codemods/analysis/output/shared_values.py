"""Which values of a script are the same on every rank: arguments, configuration, results of a Trainer, what is made of them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.parameter_sizes import is_told_of_sizes
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.data import host_only
from codemods.files.source import SourceModule, once_a_module, walk
from codemods.store.project import Project

SETTINGS = frozenset(
    {"args", "cfg", "config", "conf", "opt", "opts", "options", "hparams", "params", "hyp", "hydra_cfg", "training_args",
     "model_args", "data_args", "script_args"}
)  # fmt: skip
_SETTINGS = SETTINGS | {"trainer", "checkpoint_callback", "epoch"}
_RESULTS = frozenset({"test", "validate", "fit", "evaluate", "train"})
# Accelerate hands these back whole on every rank, 1.15 `utils/operations.py`: an all-gather, an all-reduce.
_GATHERED = frozenset({"gather", "gather_for_metrics", "reduce"})
_DEPTH = 5


def same_everywhere(module: SourceModule, statements: Iterable[ast.stmt]) -> list[str]:
    """The names in these statements that are not shown to have the same value on every rank."""
    inside = list(statements)
    bound = {n.id for s in inside for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    unknown: list[str] = []
    for statement in inside:
        for node in walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
                asked = _own_attribute(module, node) or node
                name = dotted(asked)
                if name not in unknown and not _is_same(module, asked, _DEPTH):
                    unknown.append(name)
    return unknown


def not_shown_same(project: Project, module: SourceModule, statements: Iterable[ast.stmt]) -> list[str]:
    """The same, without the names of what functions of the project tell of the sizes of a model's parameters."""
    inside = list(statements)
    unknown = same_everywhere(module, inside)
    named = [n for s in inside for n in walk(s) if isinstance(n, ast.Name) and n.id in unknown] if unknown else []
    sizes = {n.id for n in named if is_told_of_sizes(project, module, n)}
    return [name for name in unknown if name not in sizes]


def is_shown_same(project: Project, module: SourceModule, statements: Iterable[ast.stmt]) -> bool:
    """True where all that the calls in these statements are given is the same on every rank: reduced, counted, configured."""
    analysis = variance(project)
    calls = [n for s in statements for n in walk(s) if isinstance(n, ast.Call)]
    given = [analysis.argument(module, c, i) for c in calls for i in (*range(len(c.args)), *(k.arg for k in c.keywords if k.arg))]
    return bool(given) and all(v.cause is Cause.SAME for v in given)


def _is_filled(module: SourceModule, node: ast.Name | ast.Attribute) -> bool:
    """True for a container that is filled somewhere, and for a number that is counted up: with what, nobody has looked."""
    name = dotted(node)
    home = module.class_of(node) if name.startswith("self.") else module.function_of(node)
    return (id(home), name) in _fillings(module)


@once_a_module
def _fillings(module: SourceModule) -> frozenset[tuple[int, str]]:
    """What a file fills, counts up or sets items of: (id of the function, or of the class for attributes; name)."""
    changed: list[ast.expr] = [c.func.value for c in module.calls_named(*host_only.MUTATORS) if isinstance(c.func, ast.Attribute)]
    changed += [node.value for node in module.nodes(ast.Subscript) if isinstance(node.ctx, ast.Store)]
    changed += [node.target for node in module.nodes(ast.AugAssign)]
    found: set[tuple[int, str]] = set()
    for receiver in changed:
        while isinstance(receiver, ast.Subscript):
            receiver = receiver.value
        name = dotted(receiver)
        found.add((id(module.class_of(receiver) if name.startswith("self.") else module.function_of(receiver)), name))
    return frozenset(found)


def _own_attribute(module: SourceModule, node: ast.Name) -> ast.Attribute | None:
    """`self.x` for the `self` in it."""
    up = module.parent(node)
    return up if node.id == "self" and isinstance(up, ast.Attribute) and not _is_method(module, up) else None


def _is_method(module: SourceModule, node: ast.Attribute) -> bool:
    up = module.parent(node)
    return isinstance(up, ast.Call) and up.func is node


def _is_same(module: SourceModule, node: ast.AST, depth: int) -> bool:
    if depth < 0:
        return False
    if isinstance(node, ast.Attribute) and dotted(node).startswith("self.") and dotted(node).count(".") == 1:
        if node.attr in _SETTINGS:
            return True
        values = values_of(module, node)
        return bool(values) and not _is_filled(module, node) and all(_is_same(module, v, depth - 1) for v in values)
    if isinstance(node, ast.Name):
        if node.id in _SETTINGS or node.id in module.imports or hasattr(builtins, node.id):
            return True
        if any(f.name == node.id for f in module.functions) or any(c.name == node.id for c in module.nodes(ast.ClassDef)):
            return True
        values = values_of(module, node)
        return bool(values) and not _is_filled(module, node) and all(_is_same(module, v, depth - 1) for v in values)
    if isinstance(node, ast.Call):
        if _is_result(node) or _is_gathered(node):
            return True
        if not _is_same_call(module, node, depth):
            return False
    if names_rank(ast.unparse(node)):
        return False
    parts = list(_names_and_calls(node))
    bound = {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return all(
        _is_same_call(module, n, depth) if isinstance(n, ast.Call)
        else _is_same(module, _own_attribute(module, n) or n, depth - 1)
        for n in parts if not (isinstance(n, ast.Name) and (n.id in bound or isinstance(n.ctx, ast.Store)))
    )  # fmt: skip


def _names_and_calls(node: ast.AST) -> Iterator[ast.Name | ast.Call]:
    """Those below `node`; not what goes into a gather, each rank's own, for what comes out is everybody's."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _is_gathered(child):
            continue
        if isinstance(child, (ast.Name, ast.Call)):
            yield child
        yield from _names_and_calls(child)


def _is_gathered(call: ast.Call) -> bool:
    """True for what an accelerator has collected from all ranks."""
    owner, _, end = dotted(call.func).rpartition(".")
    return end in _GATHERED and last(owner) == "accelerator"


def _is_result(call: ast.Call) -> bool:
    """True for the parsed arguments, and for what a Trainer hands back on every rank."""
    name = dotted(call.func)
    root, end = name.partition(".")[0], last(name)
    return end.startswith("parse_args") or (root == "trainer" and end in _RESULTS)


def _is_same_call(module: SourceModule, call: ast.Call, depth: int) -> bool:
    """True for a call that gives every rank the same if its arguments are the same."""
    name = qualified(module, call.func)
    end = last(dotted(call.func)) or getattr(call.func, "attr", "")
    if family(name) in host_only.PACKAGES - {"tempfile", "uuid"} or name.startswith("os.path.") or name in host_only.BUILTINS:
        return True
    return isinstance(call.func, ast.Attribute) and end in host_only.PURE_METHODS and depth > 0
