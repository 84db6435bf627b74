"""Listings of a folder of which only names with an ending are taken: they find no file of another kind."""

from __future__ import annotations

import ast

from codemods.files.source import SourceModule, walk


def taken_endings(module: SourceModule, call: ast.Call) -> tuple[str, ...]:
    """`.pth` of `[f for f in sorted(os.listdir(folder)) if f.endswith(".pth")]`, also in a loop; () where all names are taken."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.comprehension) and below is up.iter:
            return next((e for test in up.ifs if (e := _endings(test, up.target))), ())
        if isinstance(up, ast.For) and below is up.iter:
            only = up.body[0] if len(up.body) == 1 else None
            return _endings(only.test, up.target) if isinstance(only, ast.If) and not only.orelse else ()
        if not isinstance(up, ast.Call):
            return ()
        below = up
    return ()


def _endings(test: ast.expr, target: ast.expr) -> tuple[str, ...]:
    """The endings that a test lets pass, where it asks the name itself for one of them."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute) or not part.args:
            continue
        if part.func.attr != "endswith":
            continue
        names = {n.id for n in (part.func.value, *walk(part.func.value)) if isinstance(n, ast.Name)}
        asked = part.args[0].elts if isinstance(part.args[0], ast.Tuple) else [part.args[0]]
        ends = tuple(e.value for e in asked if isinstance(e, ast.Constant) and isinstance(e.value, str))
        if isinstance(target, ast.Name) and names == {target.id} and len(ends) == len(asked):
            return ends
    return ()
