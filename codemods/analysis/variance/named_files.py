"""Numbers that rank 0 puts into the name of what it saves: `torch.save(state, f"{epoch}_{val_loss:.3f}.pth")`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.number_words import is_number
from codemods.analysis.variance.outlets import is_on_zero
from codemods.files.source import SourceModule, called_name
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SAVES = lazy(r"^(save|save_(file|pretrained|checkpoint|ckpt|model|state|weights)\w*|copyfile)$")
_JOINS = frozenset({"join", "joinpath", "Path"})
_CONVERTS = frozenset({"str", "float", "round", "format"})
_DEPTH = 4


def names_a_file(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call by which rank 0 alone saves something under a name that holds what reads like a loss or a metric."""
    return bool(numbers_in_names(module, call)) and is_on_zero(project, module, call)


def numbers_in_names(module: SourceModule, call: ast.Call) -> list[ast.expr]:
    """What reads like a loss or a metric in the texts that a saving call is given."""
    if not _SAVES.search(called_name(call)):
        return []
    given = (*call.args, *(k.value for k in call.keywords))
    return [part for node in given for part in _put_into(module, node, _DEPTH) if is_number(part)]


def _put_into(module: SourceModule, node: ast.expr, depth: int) -> Iterator[ast.expr]:
    """What a text, or a path that is joined of texts, is made of."""
    if depth < 0:
        return
    if isinstance(node, ast.JoinedStr):
        yield from (v.value for v in node.values if isinstance(v, ast.FormattedValue))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        if isinstance(node.left, (ast.Constant, ast.JoinedStr)):
            yield from node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        yield from _put_into(module, node.left, depth)
        yield from _put_into(module, node.right, depth)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):  # `str(loss)[:5]`
        yield from _put_into(module, node.value, depth)
    elif isinstance(node, ast.Call):
        yield from _of_call(module, node, depth)
    elif isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        if len(bound) == 1 and bound[0].value is not None and not bound[0].part:
            yield from _put_into(module, bound[0].value, depth - 1)


def _of_call(module: SourceModule, call: ast.Call, depth: int) -> Iterator[ast.expr]:
    name = last(dotted(call.func)) or called_name(call)
    if isinstance(call.func, ast.Attribute) and name == "format":
        yield from (*call.args, *(k.value for k in call.keywords))
    elif name in _CONVERTS:
        yield from call.args[:1]
    elif name in _JOINS:
        for part in call.args:
            yield from _put_into(module, part, depth)
