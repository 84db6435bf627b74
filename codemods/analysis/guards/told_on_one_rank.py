"""Calls of an object that goes on with what it is told on rank 0 alone: its method begins with `if self.rank != 0: return`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted
from codemods.analysis.ranks.handed_arguments import argument
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.paths import own_field, parameters
from codemods.analysis.variance.values import Cause, Value
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def told_on_one_rank(project: Project, module: SourceModule, call: ast.Call, asked: frozenset[str]) -> bool:
    """True for `stopper(loss)` of a `Stopper(rank=rank)` that returns on the other ranks before it sets what is asked for.

    asked: the fields of the object that a test reads.
    """
    made = _made(module, call)
    owner = find_class(project, module, dotted(made.func)) if made is not None else None
    if made is None or owner is None:
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else "__call__"
    methods = owner.methods()
    method, start = methods.get(name), methods.get("__init__")
    if method is None or start is None or not asked & _set_in(method):
        return False
    field = _field_of_the_exit(method)
    parameter = _parameter_of(owner, start, field) if field else ""
    given = argument(made, [*parameters(start)[1:]], parameter) if parameter else None
    return given is not None and _value(variance(project), module, given).cause is Cause.RANK


def _made(module: SourceModule, call: ast.Call) -> ast.Call | None:
    """The call that made the object: the only thing that its name is bound to in the function."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    function = module.function_of(call)
    bound = bindings_in(module, function, holder.id) if isinstance(holder, ast.Name) and function is not None else []
    value = bound[0].value if len(bound) == 1 and not bound[0].part else None
    return value if isinstance(value, ast.Call) else None


def _set_in(method: FunctionNode) -> set[str]:
    targets = (t for n in walk(method) if isinstance(n, ast.Assign) for t in n.targets)
    return {t.attr for t in targets if isinstance(t, ast.Attribute) and dotted(t.value) == "self"}


def _field_of_the_exit(method: FunctionNode) -> str:
    """`rank` for a method that begins with `if self.rank != 0: return`, also with `self.rank is not None and …`."""
    body = method.body[1:] if ast.get_docstring(method) is not None else method.body
    first = body[0] if body else None
    if not isinstance(first, ast.If) or first.orelse or len(first.body) != 1 or not isinstance(first.body[0], ast.Return):
        return ""
    fields = {f for part in conjuncts(first.test) if (f := _compared(part))}
    others = [p for p in conjuncts(first.test) if not _compared(p) and not _is_there(p)]
    return fields.pop() if len(fields) == 1 and not others else ""


def _compared(test: ast.expr) -> str:
    """The field in `self.rank != 0` and `self.rank > 0`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.NotEq, ast.Gt)):
        return ""
    end = test.comparators[0]
    return own_field(dotted(test.left)) if isinstance(end, ast.Constant) and end.value == 0 and end.value is not False else ""


def _is_there(test: ast.expr) -> bool:
    """True for `self.rank is not None`, and for `self.rank` alone."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot) and bool(own_field(dotted(test.left)))
    return bool(own_field(dotted(test)))


def _parameter_of(owner: ClassSite, start: FunctionNode, field: str) -> str:
    """The parameter of the constructor that the field holds, where nothing else of the class gives it a value."""
    assigns = (n for m in owner.methods().values() for n in walk(m) if isinstance(n, ast.Assign))
    given = [n.value for n in assigns for t in n.targets if own_field(dotted(t)) == field]
    if len(given) != 1 or not isinstance(given[0], ast.Name):
        return ""
    name = given[0].id
    changed = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(start))
    return name if name in parameters(start) and not changed else ""


def _value(analysis: Analysis, module: SourceModule, given: ast.expr) -> Value:
    """What is handed over; of a field what it was given, for a name such as `device` says otherwise of the number in it."""
    owner = module.class_of(given)
    field = own_field(dotted(given))
    if field and owner is not None:
        return analysis.field(class_facts(analysis.project, module, owner).lineage[0], field)
    return analysis.value(module, given)
