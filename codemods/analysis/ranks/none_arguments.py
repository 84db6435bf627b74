"""Is a parameter None at a place, and what do the calls of its function give for it?

`if loader is None:` is come to by calls that leave it at None, and not by those that give a loader.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.bindings import Binding, bindings_in, bindings_of
from codemods.analysis.branches import branches_round
from codemods.analysis.class_index import find_class
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import parameters
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_THERE = (
    ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Lambda
)  # fmt: skip
# Packages whose names in capitals are classes: a call of one gives an object.
_CLASSES_OF = frozenset({"torch", "torchvision", "transformers", "datasets", "collections", "pathlib", "logging", "threading"})


def asked_for_none(module: SourceModule, function: FunctionNode, node: ast.AST) -> dict[str, bool]:
    """Parameter -> whether it has to be None for the node to be reached."""
    given = {p.arg for p in parameters(function, bound=False)}
    out: dict[str, bool] = {}
    for branch in branches_round(module, node):
        test, wanted = branch.test, branch.holds
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, wanted = test.operand, not wanted
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not is_none(test.comparators[0]):
            continue
        if isinstance(test.left, ast.Name) and test.left.id in given and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            out[test.left.id] = wanted is isinstance(test.ops[0], ast.Is)
    return {name: wanted for name, wanted in out.items() if _is_kept(module, function, name)}


def leads_past_none(project: Project, module: SourceModule, values: Mapping[str, ast.expr], asked: Mapping[str, bool]) -> bool:
    """True where a call in `module` gives one of the parameters the opposite of what has to be there."""
    shown = ((is_given_none(project, module, values[name]), wanted) for name, wanted in asked.items() if name in values)
    return any(known is not None and known is not wanted for known, wanted in shown)


def is_given_none(project: Project, module: SourceModule, value: ast.expr, *, follow: bool = True) -> bool | None:
    """Whether the expression is None, as far as is seen: written out, a new object, or a name that is given one in one place."""
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, _THERE) or (isinstance(value, ast.Call) and _makes_an_object(project, module, value)):
        return False
    if not follow or not isinstance(value, ast.Name) or isinstance(value.ctx, ast.Store):
        return None
    bound = bindings_of(module, value)
    if len(bound) != 1 or bound[0].value is None or bound[0].part or bound[0].parameter:
        return None
    known = is_given_none(project, module, bound[0].value, follow=False)
    return known if known is False else None  # where None is all that it gets, more may be to come


def _makes_an_object(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if find_class(project, module, dotted(call.func)) is not None if dotted(call.func) else False:
        return True
    name = qualified(module, call.func)
    return name.partition(".")[0] in _CLASSES_OF and last(name)[:1].isupper() and not last(name).isupper()


def _is_kept(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True for a parameter that the function gives no other value, but for what `prepare` makes of it."""
    return all(b.parameter or _is_prepared(b, name) for b in bindings_in(module, function, name))


def _is_prepared(binding: Binding, name: str) -> bool:
    """True for `net, loader = accelerator.prepare(net, loader)`, which hands back at its place what is no part of a training."""
    statement = binding.node
    call = binding.value
    if not isinstance(call, ast.Call) or last(dotted(call.func)) != "prepare" or not isinstance(statement, ast.Assign):
        return False
    target = statement.targets[0]
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if len(names) != len(call.args) or len(statement.targets) != 1:
        return False
    pairs = zip(names, call.args, strict=True)
    return any(isinstance(n, ast.Name) and isinstance(a, ast.Name) and n.id == a.id == name for n, a in pairs)
