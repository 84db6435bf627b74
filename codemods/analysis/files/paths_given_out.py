"""Paths that a function leaves with what it was handed: `args.config_file = ...`, for others to read the file by."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.names import dotted
from codemods.source import FunctionNode, walk


def given_out(function: FunctionNode, paths: Iterable[ast.expr]) -> str:
    """The attribute of a parameter that the function sets to one of the paths, as it is written; "" for none.

    `deepspeed.initialize(args=args)` reads `args.deepspeed_config` so, on every rank (DeepSpeed 0.16): no call names the path.
    """
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    handed = {n for n in names if n not in ("self", "cls")}
    attributes = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    stored = {dotted(n) for n in attributes if dotted(n).partition(".")[0] in handed}
    assigned = [s for s in walk(function) if isinstance(s, ast.Assign)]
    values = {ast.dump(s.value): dotted(t) for s in assigned for t in s.targets if dotted(t) in stored}
    for path in paths:
        if dotted(path) in stored:
            return dotted(path)
        if ast.dump(path) in values:
            return values[ast.dump(path)]
    return ""
