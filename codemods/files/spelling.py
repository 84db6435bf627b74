"""One spelling for what Python lets people write in several ways, given to the tree before anybody reads it.

A method's own object is `self`, whatever its first parameter is called; a call through a local name for a method
(`log = self.log`) is a call of that method; `f(*(a, b))` has two arguments. Every node keeps the place of what was written, so
an edit finds it there.
"""

from __future__ import annotations

import ast
import re
from bisect import insort
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codemods.files.source import FunctionNode, SourceModule

_NOT_THE_OBJECT = frozenset({"self", "cls", "mcs", "mcls", "metacls", "klass"})
_FROM_TORCH = b"from torch import distributed"
_RENAMED = re.compile(rb"\b(\w+) as (\w+)")
_LISTED = re.compile(rb"[ \t]+(?:\w+(?: as \w+)?, *)*\w+ as \w+[,)]?[ \t\r]*(?:#|$)")  # a line of names in parentheses
_SELF = re.compile(r"\bself\b(?=\.)")


def unify(module: SourceModule) -> dict[FunctionNode, str]:
    """Change the tree of a module; what each method that does not say `self` calls its object."""
    own = _own_objects(module)
    _starred_arguments(module)
    _local_methods(module)
    return own


def as_written(text: str, own: str) -> str:
    """Code that speaks of `self`, in the words of a method that calls its object `own`."""
    return _SELF.sub(own, text)


# Bytes


def own_names(data: bytes, ranks: Collection[bytes] = ()) -> bytes:
    """The bytes with each name that a `from` import gives away put back: `f(` for `g(` of `from m import f as g`.

    ranks: names that stand for the rank; each is read as `local_rank`.
    """
    data = _put_back(data)
    if not any(name in data for name in ranks):
        return data
    return re.sub(rb"\b(?:" + b"|".join(map(re.escape, ranks)) + rb")\b", b"local_rank", data)


def _put_back(data: bytes) -> bytes:
    if _FROM_TORCH in data:
        data = data.replace(_FROM_TORCH, b"import torch.distributed")
    at = data.find(b" as ")
    renamed: dict[bytes, bytes] = {}
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        line = data[start : end if end >= 0 else len(data)]
        if line.lstrip().startswith(b"from ") or _LISTED.match(line):
            renamed |= {new: old for old, new in _RENAMED.findall(line.rpartition(b"import ")[2]) if old != new}
        at = data.find(b" as ", end) if end >= 0 else -1
    if not renamed:
        return data
    return re.sub(rb"\b(?:" + b"|".join(map(re.escape, renamed)) + rb")\b", lambda m: renamed[m[0]], data)


# The object of a method


def _own_objects(module: SourceModule) -> dict[FunctionNode, str]:
    found: dict[FunctionNode, str] = {}
    for owner in module.nodes(ast.ClassDef):
        for method in owner.body:
            if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            first = _first(method)
            if first is None or first.arg in _NOT_THE_OBJECT or (method.decorator_list and _is_static(method)):
                continue
            if (names := _uses(method, first.arg)) is not None:
                found[method] = first.arg
                first.arg = "self"
                for name in names:
                    name.id = "self"
    return found


def _first(method: FunctionNode) -> ast.arg | None:
    places = [*method.args.posonlyargs, *method.args.args]
    return places[0] if places and method.name not in ("__new__", "__init_subclass__", "__class_getitem__") else None


def _is_static(method: FunctionNode) -> bool:
    """True where a decorator may hand the method something else than its object; those of properties and rank guards do not."""
    ends = [d.attr if isinstance(d, ast.Attribute) else d.id if isinstance(d, ast.Name) else "?" for d in method.decorator_list]
    return any(end in ("staticmethod", "classmethod", "validator", "root_validator", "?") for end in ends)


def _uses(method: FunctionNode, own: str) -> list[ast.Name] | None:
    """The names that mean the object; None where one of them may mean something else, or where `self` is taken."""
    found: list[ast.Name] = []
    for node in ast.walk(method):
        if isinstance(node, ast.Name):
            if node.id == "self":
                return None
            if node.id == own:
                if not isinstance(node.ctx, ast.Load):
                    return None
                found.append(node)
        elif isinstance(node, ast.arg):
            if node.arg in (own, "self") and node is not _first(method):
                return None
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and own in node.names:
            return None
    return found


# The arguments of a call


def _starred_arguments(module: SourceModule) -> None:
    parents = module._parents
    for starred in module.nodes(ast.Starred):
        call, held = parents[starred], starred.value
        if not isinstance(call, ast.Call) or not isinstance(held, (ast.Tuple, ast.List)):
            continue
        at = call.args.index(starred)
        call.args[at : at + 1] = held.elts
        for one in held.elts:
            parents[one] = call


# Methods under a local name


def _local_methods(module: SourceModule) -> None:
    named: dict[str, list[ast.Assign]] = {}
    for assign in module.nodes(ast.Assign):
        value, target = assign.value, assign.targets[0]
        if isinstance(value, ast.Attribute) and isinstance(target, ast.Name) and len(assign.targets) == 1:
            if isinstance(value.value, ast.Name) and value.value.id == "self":
                named.setdefault(target.id, []).append(assign)
    if not named:
        return
    for call in module.nodes(ast.Call):
        func = call.func
        if not isinstance(func, ast.Name) or func.id not in named:
            continue
        if (meant := _method(module, func, named[func.id])) is not None:
            _put(module, call, func, meant)


def _method(module: SourceModule, func: ast.Name, assigned: list[ast.Assign]) -> ast.Attribute | None:
    """`self.log`, where that is all the name can mean: bound once, at the head of the same function."""
    function = module.function_of(func)
    here = [a for a in assigned if module._parents.get(a) is function and a.lineno < func.lineno]
    if function is None or len(here) != 1 or any(a.arg == func.id for a in ast.walk(function) if isinstance(a, ast.arg)):
        return None
    others = (n for n in _bindings(function, func.id) if n is not here[0].targets[0])
    meant = here[0].value
    return meant if isinstance(meant, ast.Attribute) and next(others, None) is None else None


def _bindings(function: FunctionNode, name: str) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if name in _bound_by(node):
            yield node


def _bound_by(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return tuple(node.names)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (node.name,)
    if isinstance(node, ast.ExceptHandler):
        return (node.name or "",)
    return ((node.asname or node.name).partition(".")[0],) if isinstance(node, ast.alias) else ()


def _put(module: SourceModule, call: ast.Call, func: ast.Name, meant: ast.Attribute) -> None:
    """`self.log` in the place of the name, in the tree and in what the module has noted of it."""
    whole = ast.copy_location(ast.Attribute(ast.copy_location(ast.Name("self", ast.Load()), func), meant.attr, ast.Load()), func)
    call.func = whole
    module._parents[whole], module._parents[whole.value] = call, whole
    names = module._buckets[ast.Name]
    names[names.index(func)] = whole.value
    insort(module._buckets[ast.Attribute], whole, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
