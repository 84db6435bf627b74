"""Copies of the program's own source beside its results: every process writes the same bytes, and no run reads them."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import qualified
from codemods.files.source import SourceModule, walk

_COPIES = frozenset({"shutil.copy", "shutil.copy2", "shutil.copyfile"})
_SOURCE_OF = frozenset({"inspect.getfile", "inspect.getsourcefile", "os.path.abspath", "os.path.realpath", "os.path.basename"})


def copies_source(module: SourceModule, call: ast.Call) -> bool:
    """True for `shutil.copy(__file__, folder)`, and for what `inspect.getfile` or a literal of a `.py` names."""
    if qualified(module, call.func) not in _COPIES:
        return False
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "src"), None)
    return given is not None and _is_source(module, given, 2)


def _is_source(module: SourceModule, node: ast.expr, depth: int) -> bool:
    if isinstance(node, ast.Name):
        values = assigned(module, node, node.id) if depth and node.id != "__file__" else []
        return node.id == "__file__" or (bool(values) and all(_is_source(module, v, depth - 1) for v in values))
    if isinstance(node, ast.Call):
        name = qualified(module, node.func)
        if name in ("inspect.getfile", "inspect.getsourcefile"):
            return True
        if name in _SOURCE_OF and node.args:
            return _is_source(module, node.args[0], depth)
        ends = node.args[-1:] if name == "os.path.join" else []
        return bool(ends) and _is_source(module, ends[0], depth)
    if isinstance(node, ast.Subscript):
        return qualified(module, node.value) == "sys.argv" and isinstance(node.slice, ast.Constant) and node.slice.value == 0
    texts = [n.value for n in walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return bool(texts) and texts[-1].endswith(".py")
