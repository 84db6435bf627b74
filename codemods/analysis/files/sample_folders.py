"""A folder round a file that is named after the same sample as the file: `f"{token}/{token}.png"`. No other sample lies in it."""

from __future__ import annotations

import ast
import string

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule

_Part = str | ast.expr
_JOINS = frozenset({"os.path.join", "osp.join", "path.join", "join"})


def is_folder_of_the_sample(module: SourceModule, folder: ast.expr) -> bool:
    """True for `os.path.dirname(path)` of a path in which all that names the file names a folder above it as well."""
    if isinstance(folder, ast.Name):
        made = assigned(module, folder, folder.id)
        return len(made) == 1 and not isinstance(made[0], ast.Name) and is_folder_of_the_sample(module, made[0])
    if not isinstance(folder, ast.Call) or last(dotted(folder.func)) != "dirname" or len(folder.args) != 1:
        return False
    path = folder.args[0]
    values = assigned(module, path, path.id) if isinstance(path, ast.Name) else [path]
    parts = list(_parts(values[0])) if len(values) == 1 else []
    ends = [i for i, part in enumerate(parts) if part == "/"]
    if not ends:
        return False
    above, file = (_named(half) for half in (parts[: ends[-1]], parts[ends[-1] :]))
    return bool(file) and file <= above


def _named(parts: list[_Part]) -> set[str]:
    """What the values name, as far as a name, a field or an item goes: `names[0]` of `names[0] + ".png"`."""
    found: set[str] = set()
    left: list[ast.AST] = [p for p in parts if isinstance(p, ast.expr)]
    while left:
        node = left.pop()
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            found.add(ast.unparse(node))
        else:
            left += ast.iter_child_nodes(node)
    return found


def _parts(path: ast.expr) -> list[_Part]:
    """The texts and values that a path is put together from, with a "/" of its own between folders."""
    if isinstance(path, ast.Call) and dotted(path.func) in _JOINS:
        between: list[_Part] = []
        for i, arg in enumerate(path.args):
            between += [*(["/"] if i else []), *_parts(arg)]
        return between
    if isinstance(path, ast.JoinedStr):
        return [p for v in path.values for p in (_parts(v) if isinstance(v, ast.Constant) else [getattr(v, "value", v)])]
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        return [p for i, text in enumerate(path.value.split("/")) for p in (["/", text] if i else [text])]
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add):
        return [*_parts(path.left), *_parts(path.right)]
    called = path.func if isinstance(path, ast.Call) else None
    if isinstance(path, ast.Call) and isinstance(called, ast.Attribute) and called.attr == "format" and not path.keywords:
        return _formatted(called.value, path.args) or [path]
    return [path]


def _formatted(text: ast.expr, given: list[ast.expr]) -> list[_Part]:
    """The parts of `"{}/{}.ply".format(a, b)`; none where the places are named or numbered."""
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return []
    out: list[_Part] = []
    left = list(given)
    try:
        for literal, field, _, _ in string.Formatter().parse(text.value):
            out += _parts(ast.Constant(literal))
            if field is not None:
                if field or not left:
                    return []
                out.append(left.pop(0))
    except ValueError:
        return []
    return out
