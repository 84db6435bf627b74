"""A folder round a file that is named after the same sample as the file: `f"{token}/{token}.png"`. No other sample lies in it."""

from __future__ import annotations

import ast
import string
from collections.abc import Sequence

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule

Part = str | ast.expr
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
    parts = list(parts_of(values[0])) if len(values) == 1 else []
    ends = [i for i, part in enumerate(parts) if part == "/"]
    if not ends:
        return False
    above, file = (named_in(half) for half in (parts[: ends[-1]], parts[ends[-1] :]))
    return bool(file) and file <= above


def named_in(parts: Sequence[Part]) -> set[str]:
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


def parts_of(path: ast.expr) -> list[Part]:
    """The texts and values that a path is put together from, with a "/" of its own between folders."""
    if isinstance(path, ast.Call) and dotted(path.func) in _JOINS:
        between: list[Part] = []
        for i, arg in enumerate(path.args):
            between += [*(["/"] if i else []), *parts_of(arg)]
        return between
    if isinstance(path, ast.JoinedStr):
        return [p for v in path.values for p in (parts_of(v) if isinstance(v, ast.Constant) else [getattr(v, "value", v)])]
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        return [p for i, text in enumerate(path.value.split("/")) for p in (["/", text] if i else [text])]
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add):
        return [*parts_of(path.left), *parts_of(path.right)]
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        return [*parts_of(path.left), "/", *parts_of(path.right)]
    called = path.func if isinstance(path, ast.Call) else None
    if isinstance(path, ast.Call) and isinstance(called, ast.Attribute) and called.attr == "format" and not path.keywords:
        return _formatted(called.value, path.args) or [path]
    return [path]


def _formatted(text: ast.expr, given: list[ast.expr]) -> list[Part]:
    """The parts of `"{}/{}.ply".format(a, b)`; none where the places are named or numbered."""
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return []
    out: list[Part] = []
    left = list(given)
    try:
        for literal, field, _, _ in string.Formatter().parse(text.value):
            out += parts_of(ast.Constant(literal))
            if field is not None:
                if field or not left:
                    return []
                out.append(left.pop(0))
    except ValueError:
        return []
    return out
