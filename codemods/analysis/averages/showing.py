"""The numbers that a statement shows: printed, logged or written, in texts, dicts and lists too."""

from __future__ import annotations

import ast

from codemods.analysis.averages.frame import Frame, Shown
from codemods.analysis.averages.scale import Items, Parts, Scale, averaged
from codemods.analysis.bindings import bindings_of
from codemods.analysis.variance.number_words import is_text
from codemods.analysis.variance.outlets import says_shown
from codemods.files.source import child_nodes, walk


def show(frame: Frame, node: ast.stmt) -> None:
    """Note the numbers that a call of the statement shows."""
    for call in (n for n in walk(node) if isinstance(n, ast.Call) and says_shown(n)):
        for given in (*call.args, *(k.value for k in call.keywords)):
            _shown_part(frame, call, given, 0)


def _shown_part(frame: Frame, call: ast.Call, part: ast.expr, depth: int) -> None:
    if isinstance(part, (ast.JoinedStr, ast.FormattedValue)) or _formats(part):
        for child in child_nodes(part):
            if isinstance(child, ast.expr):
                _shown_part(frame, call, child, depth)
        return
    if isinstance(part, (ast.Dict, ast.Tuple, ast.List)):
        for value in part.values if isinstance(part, ast.Dict) else part.elts:
            _shown_part(frame, call, value, depth)
        return
    found = frame.of(part)
    if isinstance(found, Scale):
        frame.reading.shown.append(_noted(frame, call, part, found))
    elif isinstance(found, (Parts, Items)):
        entries = [v for _, v in found.entries] if isinstance(found, Parts) else [averaged(found)]
        frame.reading.shown += [_noted(frame, call, part, v) for v in entries if isinstance(v, Scale)]
    elif isinstance(part, ast.Name) and depth == 0:
        values = [b.value for b in bindings_of(frame.module, part) if b.value is not None]
        for value in values if len(values) == 1 and is_text(values[0]) else ():
            _shown_part(frame, call, value, depth + 1)


def _formats(node: ast.expr) -> bool:
    """True for `"loss {}".format(loss)` and `"loss %.3f" % loss`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "format"
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left)


def _noted(frame: Frame, call: ast.Call, part: ast.expr, scale: Scale) -> Shown:
    text = " ".join(frame.module.text_of(part).split())
    return Shown(frame.at(call), text if len(text) <= 60 else text[:57] + "...", frame.resolved(scale) or scale)
