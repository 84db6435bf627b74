"""Modules that change their own parameters or codebooks in `forward`, from the batch of their rank.

DDP sends the parameters once, when it is made, and rank 0's buffers before each forward. What a forward puts into a parameter
stays on its rank; what it puts into a buffer is lost on all ranks but the first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.forward_methods import methods_of_forward, methods_of_holders
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

WORDS = (b"Parameter(", b"register_parameter", b"register_buffer")
_CODES = lazy(r"embed|code|cluster|centroid|prototype|center")  # buffers that are learned, not counters and masks
_TOGETHER = lazy(r"reduce|gather|broadcast|sync|distrib")
_AVERAGES = lazy(r"ema|moving|average")
_FILLS = frozenset({"copy_", "set_"})
_MOVES = frozenset({"add_", "lerp_", "copy_"})
_NO_INPUT = frozenset({"shape", "dtype", "device", "ndim"})
_DEPTH = 4


@record
class OwnState:
    """A class. node: a statement that changes `name`; parameter: it is one, else a buffer. others: further names."""

    owner: ast.ClassDef
    node: ast.stmt
    name: str
    parameter: bool
    others: tuple[str, ...]


def own_states(project: Project, module: SourceModule) -> Iterator[OwnState]:
    """One for each class of the file; those that put the ranks' numbers together left out."""
    if not any(module.holds(word) for word in WORDS):
        return
    for owner in module.nodes(ast.ClassDef):
        kept = _kept(module, owner)
        if not kept or not class_facts(project, module, owner).is_a(Role.NN_MODULE):
            continue
        if any(_TOGETHER.search(_end(n).lower()) for n in walk(owner) if isinstance(n, ast.Call)):
            continue
        reached = (*methods_of_forward(project, module, owner), *methods_of_holders(project, module, owner))
        found = [c for f in reached for c in changes_in(f, kept)]
        for parameter in (True, False):
            mine = sorted((c for c in found if kept[c[1]] is parameter), key=lambda c: c[0].lineno)
            if mine:
                names = tuple(dict.fromkeys(name for _, name in mine))
                last_of = [node for node, name in mine if name == names[0]][-1]  # of two arms the one that moves on
                yield OwnState(owner, last_of, names[0], parameter, names[1:])
                break


def _kept(module: SourceModule, owner: ast.ClassDef) -> dict[str, bool]:
    """Name -> True for a parameter, False for a buffer that is learned."""
    kept: dict[str, bool] = {}
    for node in walk(owner):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _end(node.value) == "Parameter":
            kept |= {last(dotted(t)): True for t in node.targets if dotted(t).startswith("self.") and dotted(t).count(".") == 1}
        elif isinstance(node, ast.Call) and _end(node) in ("register_parameter", "register_buffer") and node.args:
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            empty = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
            if isinstance(name, str) and not empty:
                kept[name] = _end(node) == "register_parameter"
    assigned = ((last(dotted(n.targets[0])), n) for n in walk(owner) if isinstance(n, ast.Assign))
    averaged = {name for name, n in assigned if dotted(n.targets[0]) == f"self.{name}" and _is_average(name, n.value)}
    kept |= dict.fromkeys(averaged - set(kept), False)  # a plain tensor, which nobody sends at all
    return {name: parameter for name, parameter in kept.items() if parameter or _CODES.search(name.lower())}


def parameters_of(owner: ast.ClassDef) -> set[str]:
    """The names of the parameters that a class makes."""
    found: set[str] = set()
    for node in walk(owner):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _end(node.value) == "Parameter":
            found |= {last(dotted(t)) for t in node.targets if dotted(t).startswith("self.") and dotted(t).count(".") == 1}
    return found


def assigned_parameter(target: ast.expr, names: set[str]) -> str:
    """The parameter that `self.codes[i] = x` and `self.codes.data = x` give another content, "" for any other target."""
    return _assigned(target, dict.fromkeys(names, True))


def changes_in(function: FunctionNode, kept: dict[str, bool]) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that put something made of the input into one of the names."""
    given = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    for statement in sorted((n for n in walk_scope(function) if isinstance(n, ast.stmt)), key=lambda n: n.lineno):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = _in_place(statement.value, kept, given)
            if name:
                yield statement, name
        elif isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
            name = _assigned(target, kept)
            if name and _is_of(value, given) and (kept[name] or _is_average(name, value)):
                yield statement, name
            elif _is_of(value, given):
                given |= {n.id for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}


def _assigned(target: ast.expr, kept: dict[str, bool]) -> str:
    """`precision` of `self.precision[...]`, `self.precision.data` and, for a buffer, `self.precision`."""
    plain = True
    while isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr == "data"):
        target, plain = target.value, False
    name = last(dotted(target)) if dotted(target).startswith("self.") and dotted(target).count(".") == 1 else ""
    return name if name in kept and not (plain and kept[name]) else ""


def _in_place(call: ast.Call, kept: dict[str, bool], given: set[str]) -> str:
    """`self.bias.data.copy_(bias)`, `self.embed_avg.mul_(d).add_(new)`, `ema_inplace(self.cluster_size, new, d)`."""
    if not any(_is_of(a, given) for a in call.args):
        return ""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS | _MOVES:
        node: ast.expr = call.func.value
        moved = call.func.attr == "lerp_"
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            moved = moved or node.func.attr == "mul_"
            node = node.func.value
        name = _assigned(ast.Subscript(node, ast.Constant(0), ast.Load()), kept)
        return name if name and (kept[name] or moved) else ""
    if _AVERAGES.search(_end(call).lower()) and call.args:
        return _assigned(ast.Subscript(call.args[0], ast.Constant(0), ast.Load()), kept)
    return ""


def _is_average(name: str, value: ast.expr) -> bool:
    """`m * self.code_sum + (1 - m) * new`."""
    sums = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
    return sums and any(isinstance(n, ast.Attribute) and dotted(n) == f"self.{name}" for n in walk(value))


def _is_of(node: ast.AST, given: set[str]) -> bool:
    """True where the value of an input goes into it, not only its shape."""
    if isinstance(node, ast.Attribute) and node.attr in _NO_INPUT:
        return False
    if isinstance(node, ast.Call) and _end(node) in ("size", "len", "numel", "dim"):
        return False
    if isinstance(node, ast.Name):
        return node.id in given
    return any(_is_of(child, given) for child in ast.iter_child_nodes(node))


def _end(call: ast.Call) -> str:
    return last(dotted(call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
