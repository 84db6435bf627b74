"""May a file fetch a method by a text that is put together: `getattr(self, "embed_" + kind)` for `embed_text`?"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.files.source import SourceModule

_ANY = ".*"


def may_be_fetched(module: SourceModule, name: str) -> bool:
    """True where a `getattr` of the file may be given the name, by the parts of its text that are written out."""
    if not module.holds(b"getattr("):
        return False
    asked = (call.args[1] for call in module.calls_named("getattr") if len(call.args) > 1)
    texts = (text for text in asked if not isinstance(text, ast.Constant))
    return any(re.fullmatch(_pattern(module, text), name) is not None for text in texts)


def _pattern(module: SourceModule, text: ast.expr, *, follow: bool = True) -> str:
    """What the text may be, as a pattern; a name is followed to the one value that it is given."""
    if isinstance(text, ast.Constant):
        return re.escape(text.value) if isinstance(text.value, str) else _ANY
    if isinstance(text, ast.JoinedStr):
        return "".join(_pattern(module, part, follow=False) for part in text.values)
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        return _pattern(module, text.left, follow=follow) + _pattern(module, text.right, follow=follow)
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Mod) and isinstance(text.left, ast.Constant):
        return _with_gaps(text.left.value, r"%[\w.]*[a-z]")
    if isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute) and text.func.attr == "format":
        return _with_gaps(text.func.value.value, r"\{[^{}]*\}") if isinstance(text.func.value, ast.Constant) else _ANY
    bound = bindings_of(module, text) if follow and isinstance(text, ast.Name) else []
    if len(bound) != 1 or bound[0].part or bound[0].parameter or bound[0].value is None:
        return _ANY
    return _pattern(module, bound[0].value, follow=False)


def _with_gaps(text: object, gap: str) -> str:
    """A text with places to be filled in, as a pattern."""
    return _ANY.join(map(re.escape, re.split(gap, text))) if isinstance(text, str) else _ANY
