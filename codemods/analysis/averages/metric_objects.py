"""Calls of torchmetrics objects whose result for one batch, or one share, is not to be averaged."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, Role, external_role
from codemods.analysis.class_values import class_values
from codemods.analysis.metric_attributes import metric_named
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.paths import own_field
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OBJECTS = lazy(r"^(?:Binary|Multiclass|Multilabel)?(?:F1Score|F1|FBetaScore|FBeta|AUROC|AveragePrecision|MatthewsCorrCoef"
                r"|CohenKappa|JaccardIndex|PearsonCorrCoef|SpearmanCorrCoef|R2Score)$")  # fmt: skip
_GONE_THROUGH = ("items", "values")


def metric_object(project: Project, module: SourceModule, facts: ClassFacts | None, call: ast.Call) -> str:
    """What the call of such an object gives, in words; "" for any other call.

    The object is one that an attribute holds, alone or in a collection, or one that the function makes for itself.
    """
    if not call.args:
        return ""
    func = call.func
    if isinstance(func, (ast.Attribute, ast.Subscript)):
        held = func.value if isinstance(func, ast.Subscript) else func
        key = func.slice.value if isinstance(func, ast.Subscript) and isinstance(func.slice, ast.Constant) else None
        return _of_attribute(project, facts, own_field(dotted(held)), key)
    for bound in bindings_of(module, func) if isinstance(func, ast.Name) else ():
        if isinstance(bound.node, ast.For):
            found = _of_attribute(project, facts, _gone_through(bound.node.iter), None)
        else:
            found = _made_in(module, bound.value) if bound.value is not None and not bound.part else ""
        if found:
            return found
    return ""


def _of_attribute(project: Project, facts: ClassFacts | None, name: str, key: object) -> str:
    """key: the entry that is called, None for all of what is held."""
    made = metric_named(project, facts, name) if facts is not None and name else None
    if made is None or made.each_step or facts is None:
        return ""
    for given in class_values(project, facts).given.get(name, []):
        found = _made_in(given.site.module, _entry(given.value, key))
        if found:
            return found
    return ""


def _entry(value: ast.expr, key: object) -> ast.expr:
    """What stands under a key where the keys are written out, else the whole."""
    for node in walk(value) if key is not None else ():
        if isinstance(node, ast.Dict):
            picked = [v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
            return picked[0] if picked else value
    return value


def _gone_through(node: ast.expr) -> str:
    """`metrics` for a loop over `self.metrics`, its items or its values."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GONE_THROUGH:
        node = node.func.value
    return own_field(dotted(node))


def _made_in(module: SourceModule, value: ast.expr) -> str:
    """The first of the metric objects of torchmetrics that an expression makes, in words."""
    for call in (n for n in walk(value) if isinstance(n, ast.Call)):
        name = qualified(module, call.func)
        each_step = any(k.arg == "dist_sync_on_step" for k in call.keywords)
        if external_role(name) is Role.METRIC and _OBJECTS.search(last(name)) and not each_step:
            return f"`{last(name)}`"
    return ""
