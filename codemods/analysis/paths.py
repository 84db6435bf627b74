"""What a path expression is made of: pathlib or text, and the names and calls it comes from."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, is_parameter, last, qualified
from codemods.files.source import SourceModule, walk

PATH_CLASSES = frozenset({"pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath"})
_PATH_METHODS = frozenset({"resolve", "absolute", "expanduser", "with_suffix", "with_name", "joinpath"})
_BARS = frozenset({"tqdm", "trange", "track"})


def is_path(module: SourceModule, node: ast.expr, *, depth: int = 3) -> bool:
    """True where the expression is shown to be a pathlib path: made by `Path`, by `/` on one, annotated as one."""
    if depth < 0:
        return False
    if isinstance(node, ast.Call):
        name = qualified(module, node.func)
        if name in PATH_CLASSES or name.rpartition(".")[0] in PATH_CLASSES:
            return True
        own = isinstance(node.func, ast.Attribute) and node.func.attr in _PATH_METHODS
        return own and is_path(module, node.func.value, depth=depth - 1)  # type: ignore[attr-defined]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return is_path(module, node.left, depth=depth) or is_path(module, node.right, depth=depth - 1)
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        return is_path(module, node.value, depth=depth - 1)
    name = dotted(node)
    if not name:
        return False
    if "." not in name and (annotation := _annotation(module, node, name)) is not None:
        return annotation
    values = assigned(module, node, name)
    return bool(values) and all(is_path(module, v, depth=depth - 1) for v in values)


def _annotation(module: SourceModule, node: ast.AST, name: str) -> bool | None:
    """What a parameter's annotation says; None for a name that is no annotated parameter."""
    if not is_parameter(module, name, node):
        return None
    function = module.function_of(node)
    if function is None or assigned(module, node, name):
        return None
    a = function.args
    found = next((x for x in [*a.posonlyargs, *a.args, *a.kwonlyargs] if x.arg == name), None)
    return found is not None and found.annotation is not None and qualified(module, found.annotation) in PATH_CLASSES


def origin_text(module: SourceModule, path: ast.expr, *, depth: int = 3) -> str:
    """The text of a path and of what the names in it were made from, with what was put behind them (`name += …`).

    What a broadcast gives is made of what one rank had, whatever it is told of the ranks.
    """
    if is_from_one_rank(path):
        return ""
    parts = [module.text_of(path)]
    if depth > 0:
        for node in walk(path):
            if isinstance(node, (ast.Name, ast.Attribute)) and (name := dotted(node)) and name != "self":
                given = (v for v in assigned(module, node, name)[:4] if not counts(module, v, name))
                given = (v for v in given if may_come_to(module, v, node))
                values = [*(v for g in given for v in without_bar(g)), *_put_behind(module, node, name)]
                parts += [_counted(module, v) if is_range(v) else origin_text(module, v, depth=depth - 1) for v in values]
    return " ".join(parts)


def is_from_one_rank(value: ast.expr) -> bool:
    """True for `broadcast_object(path, rank)`, after which all ranks have the same; numpy's `broadcast_to` is another."""
    name = last(dotted(value.func)) if isinstance(value, ast.Call) else ""
    return "broadcast" in name and not name.startswith(("broadcast_to", "broadcast_arrays", "broadcast_shapes"))


def may_come_to(module: SourceModule, value: ast.expr, node: ast.AST) -> bool:
    """False for a value that a plain name of the same function is given only behind `node`, outside of a loop round both."""
    function, given, used = module.function_of(node), module.statement_of(value), module.statement_of(node)
    if not isinstance(node, ast.Name) or module.function_of(value) is not function or given.lineno < used.lineno:
        return True
    if not isinstance(given, (ast.Assign, ast.AnnAssign)) or (given is not used and given.lineno <= (used.end_lineno or 0)):
        return True
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, (ast.Lambda, ast.ClassDef)) or (
            isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and given.lineno <= (up.end_lineno or 0)
        ):
            return True
    return False


def is_range(items: ast.expr) -> bool:
    return isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.func.id == "range"


def _counted(module: SourceModule, items: ast.expr) -> str:
    """The text of a `range`, and of what its bounds were reckoned from: what a checkpoint gave is a number like any other."""
    names = [n for n in walk(items) if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) not in ("range", "self")]
    values = [v for n in names for v in assigned(module, n, dotted(n))[:4]]
    reckoned = [v for v in values if not any(isinstance(n, ast.Call) and not _is_number(n) for n in walk(v))]
    return " ".join([module.text_of(items), *(module.text_of(v) for v in reckoned)])


def _is_number(call: ast.Call) -> bool:
    return dotted(call.func) in ("int", "len", "min", "max", "round", "math.ceil", "math.floor") or "rank" in dotted(call.func)


def counts(module: SourceModule, items: ast.expr, name: str) -> bool:
    """True where a name only counts what a loop goes through: `step` of `for step, batch in enumerate(loader)`."""
    loop = module.parent(items)
    for inner in without_bar(items)[:1]:
        target = loop.target if isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)) else None
        counter = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
        if isinstance(inner, ast.Call) and last(dotted(inner.func)) == "enumerate" and isinstance(counter, ast.Name):
            return counter.id == name
    return False


def without_bar(items: ast.expr) -> list[ast.expr]:
    """What a progress bar is made of; to whom it is shown (`disable=rank != 0`) makes no part of what it goes through."""
    if isinstance(items, ast.Call) and last(dotted(items.func)) in _BARS and items.args:
        return list(items.args)
    return [items]


def _put_behind(module: SourceModule, node: ast.AST, name: str) -> list[ast.expr]:
    """What `name += …` adds in the function of `node`, or in its class for an attribute."""
    place = module.class_of if name.startswith("self.") else module.function_of
    added = (a for a in module.nodes(ast.AugAssign) if isinstance(a.op, ast.Add) and dotted(a.target) == name)
    return [a.value for a in added if place(a) is place(node)]
