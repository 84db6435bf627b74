"""Does a folder that is named after a sample hold files of other samples, too? Of a class, a scene, the folder of its source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.sample_folders import Part, named_in, parts_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_DEPTH = 3
_SEPARATORS = ("'/'", '"/"', "os.sep", "os.path.sep")
_OF_FOLDERS = ("makedirs", "mkdir", "exists", "isdir", "listdir")
_FIELDS = (ast.Name, ast.Attribute, ast.Subscript)


def holds_several(project: Project, module: SourceModule, folder: ast.expr) -> bool:
    """True where a file in the folder has a name that the sample brings along, beside what the folder is named after.

    Or where the folder is the first of the path of a source, and the file bears the name of that source.
    """
    function = module.function_of(folder)
    if function is None:
        return False
    above = dict(_made_of(module, folder, _DEPTH))
    heads = _source_folders(above.values())
    for file in _files_in(module, folder, function):
        name = file[0] if len(file) == 1 and isinstance(file[0], _FIELDS) else None
        if name is not None and not set(_origins(module, name)) & set(above) and _is_own(project, module, name):
            return True
        if heads and any(heads & _source_names(module, part) for part in file if isinstance(part, ast.expr)):
            return True
    return False


def _is_own(project: Project, module: SourceModule, name: ast.expr) -> bool:
    return variance(project).value(module, name).cause is Cause.DATA


def _files_in(module: SourceModule, folder: ast.expr, function: ast.AST) -> Iterator[list[Part]]:
    """The names of files, in parts, of the paths of the function that begin with the folder."""
    spelled = [folder, *(_given(module, folder) if isinstance(folder, ast.Name) else [])]
    for wanted in (_texts(parts_of(one)) for one in spelled):
        yield from _behind(module, wanted, function)


def _behind(module: SourceModule, wanted: list[str], function: ast.AST) -> Iterator[list[Part]]:
    for node in walk(function):
        if not isinstance(node, (ast.Call, ast.JoinedStr, ast.BinOp)) or _is_a_folder(module, node, function):
            continue
        parts = [p for p in parts_of(node) if p != ""]
        if _texts(parts)[: len(wanted)] == wanted and len(parts) > len(wanted) and parts[len(wanted)] == "/":
            end = max(i for i, part in enumerate(parts) if part == "/")
            yield parts[end + 1 :]


def _is_a_folder(module: SourceModule, path: ast.expr, function: ast.AST) -> bool:
    """True for a path that is a folder further down, by what asks for it or makes it."""
    statement = module.statement_of(path)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is path else None
    wanted = ast.unparse(target) if target is not None else ast.unparse(path)
    calls = (n for n in walk(function) if isinstance(n, ast.Call) and last(dotted(n.func)) in _OF_FOLDERS)
    return any(ast.unparse(a) == wanted for c in calls for a in c.args[:1])


def _given(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    """What a name is given; of a loop through `zip(a, b)` the one that is its own."""
    loops = (up for up in module.ancestors(name) if isinstance(up, (ast.For, ast.AsyncFor)))
    own = (found for up in loops if (found := _of_zip(up.target, up.iter, name.id)) is not None)
    found = next(own, None)
    return assigned(module, name, name.id) if found is None else [found]


def _of_zip(target: ast.expr, walked: ast.expr, name: str) -> ast.expr | None:
    call = walked if isinstance(walked, ast.Call) else None
    if call is None or not isinstance(target, ast.Tuple):
        return None
    if dotted(call.func) == "enumerate" and len(target.elts) == 2 and call.args:
        return _of_zip(target.elts[1], call.args[0], name)
    if dotted(call.func) != "zip" or len(call.args) != len(target.elts):
        return None
    return next((a for t, a in zip(target.elts, call.args, strict=True) if _is_name(t, name)), None)


def _texts(parts: list[Part]) -> list[str]:
    return [p if isinstance(p, str) else ast.unparse(p) for p in parts if p != ""]


def _made_of(module: SourceModule, node: ast.expr, depth: int) -> Iterator[tuple[str, ast.expr]]:
    """What names a path, and what its names were given, as (text, expression)."""
    for part in walk(node):
        if isinstance(part, _FIELDS) and isinstance(part.ctx, ast.Load):
            yield ast.unparse(part), part
            if depth and isinstance(part, ast.Name):
                for value in _given(module, part):
                    yield from _made_of(module, value, depth - 1)


def _origins(module: SourceModule, name: ast.expr) -> Iterator[str]:
    """What a name was made of, as the innermost names and fields say; the name itself where nobody gives it a value."""
    given = _given(module, name) if isinstance(name, ast.Name) else []
    values = [v for v in given if not any(isinstance(n, ast.Name) and ast.unparse(n) == ast.unparse(name) for n in walk(v))]
    if not values:
        yield ast.unparse(name)
    for value in values:
        yield from named_in([value])


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _source_folders(values: Iterable[ast.expr]) -> set[str]:
    """The texts of which a folder is the first: `x` of `x.split("/")[0]`."""
    found: set[str] = set()
    for value in values:
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value == 0:
            if (split := _split_path(value.value)) is not None:
                found.add(split)
    return found


def _split_path(node: ast.expr) -> str | None:
    """`x` of `x.split("/")`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "split":
        return None
    by = [ast.unparse(a) for a in node.args[:1]]
    return ast.unparse(node.func.value) if by and by[0] in _SEPARATORS else None


def _source_names(module: SourceModule, part: ast.expr) -> set[str]:
    """The paths after whose last part a file is named: `x` of `basename(x)` and `x.split("/")[-1]`."""
    values = [part, *(_given(module, part) if isinstance(part, ast.Name) else [])]
    found: set[str] = set()
    for node in (n for v in values for n in walk(v)):
        if isinstance(node, ast.Call) and last(dotted(node.func)) == "basename" and len(node.args) == 1:
            found.add(ast.unparse(node.args[0]))
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "-1" and (split := _split_path(node.value)):
            found.add(split)
    return found
