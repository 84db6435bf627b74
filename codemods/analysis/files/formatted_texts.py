"""The parts of a text that is put together by `"{}/{}".format(a, b)` or `"%s/%s" % (a, b)`, in their order."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator

from codemods.runtime.lazy_pattern import lazy

_PERCENT = lazy(r"%(?:[sdi]|%)")
_ANY_PERCENT = lazy(r"%(?!%)")


def formatted(node: ast.expr) -> list[str | ast.expr] | None:
    """Texts and the values between them; None where it is no such text, or one that is not seen through."""
    try:
        if isinstance(node, ast.Call):
            return list(_of_format(node))
        return list(_of_percent(node)) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) else None
    except (ValueError, LookupError):
        return None


def _of_format(call: ast.Call) -> Iterator[str | ast.expr]:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "format" or not isinstance(func.value, ast.Constant):
        raise LookupError
    if not isinstance(func.value.value, str) or any(isinstance(a, ast.Starred) for a in call.args):
        raise LookupError
    named = {k.arg: k.value for k in call.keywords if k.arg}
    count = 0
    for text, field, spec, _ in string.Formatter().parse(func.value.value):
        if text:
            yield text
        if field is None:
            continue
        if spec and "{" in spec:
            raise LookupError
        if not field:
            field, count = str(count), count + 1
        yield call.args[int(field)] if field.isdigit() else named[field]


def _of_percent(node: ast.BinOp) -> Iterator[str | ast.expr]:
    text = node.left.value if isinstance(node.left, ast.Constant) else None
    if not isinstance(text, str):
        raise LookupError
    if isinstance(node.right, ast.Dict):
        raise LookupError
    values = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    at = 0
    for match in _PERCENT.finditer(text):
        between = text[at : match.start()]
        if _ANY_PERCENT.search(between):
            raise LookupError  # a width, or a form that is not read here
        yield between
        at = match.end()
        yield "%" if match.group() == "%%" else values.pop(0)
    if values or _ANY_PERCENT.search(text[at:]):
        raise LookupError
    yield text[at:]
