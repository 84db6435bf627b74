"""May a path that a folder is made of be that of a file? The program loads it elsewhere, or asks for its ending.

Where it is there `if not os.path.exists(path)` has left it alone; `makedirs(path, exist_ok=True)` is an error for a file.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule

_OPENS = frozenset({"open", "isfile", "is_file", "splitext", "read_text", "read_bytes", "load", "load_checkpoint", "read_csv"})
_OF_ITS_OWN = frozenset({"endswith", "is_file", "read_text", "read_bytes", "open"})  # methods of the path


def may_be_a_file(module: SourceModule, path: ast.expr) -> bool:
    """True where the file uses the same path, under the same name, as that of a file."""
    text = dotted(path)
    if not text or not any(module.holds(word.encode()) for word in (*_OPENS, *_OF_ITS_OWN)):
        return False
    if isinstance(path, ast.Name) and len(bindings_of(module, path)) > 1:
        return False  # another value may be the file's
    return any(_takes_as_file(module, call, path, text) for call in module.calls_named(*_OPENS, *_OF_ITS_OWN))


def _takes_as_file(module: SourceModule, call: ast.Call, path: ast.expr, text: str) -> bool:
    if isinstance(path, ast.Name) and module.function_of(call) is not module.function_of(path):
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_ITS_OWN and dotted(call.func.value) == text:
        return call.func.attr != "endswith" or _is_extension(call)
    return last(dotted(call.func)) in _OPENS and bool(call.args) and dotted(call.args[0]) == text


def _is_extension(call: ast.Call) -> bool:
    """True for `path.endswith(".pt")`, and not for a slash."""
    asked = call.args[0] if call.args else None
    ends = asked.elts if isinstance(asked, ast.Tuple) else [asked]
    texts = (e.value for e in ends if isinstance(e, ast.Constant) and isinstance(e.value, str))
    return any(text.startswith(".") and len(text) > 1 for text in texts)
