"""Orders of the parts of each sample that a model draws to hide some of them: `torch.rand(rows, patches).argsort(dim=1)`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, qualified
from codemods.files.source import SourceModule, walk_scope

_UNIFORM = frozenset({"torch.rand", "torch.rand_like"})


def orders_parts(module: SourceModule, call: ast.Call) -> bool:
    """True for numbers by which the parts of each sample are put in order, and that are used for nothing else of the kind."""
    if qualified(module, call.func) not in _UNIFORM:
        return False
    function, up = module.function_of(call), module.parent(call)
    if function is None or _is_ordered(module, call):
        return function is not None
    names = {dotted(t) for t in up.targets} - {""} if isinstance(up, ast.Assign) else set()
    reads = (n for n in walk_scope(function) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load))
    return any(dotted(n) in names and n.lineno > call.lineno and _is_ordered(module, n) for n in reads)


def _is_ordered(module: SourceModule, value: ast.expr) -> bool:
    """True in `torch.argsort(value, dim=1)` and `value.argsort(dim=1)`."""
    up = module.parent(value)
    if isinstance(up, ast.Attribute) and up.attr == "argsort":
        return isinstance(module.parent(up), ast.Call)
    if not isinstance(up, ast.Call):
        return False
    return any(a is value for a in up.args[:1]) and qualified(module, up.func) == "torch.argsort"
