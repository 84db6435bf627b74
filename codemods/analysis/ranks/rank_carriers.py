"""The names of a file that may stand for a rank or for a test of one: a test of other names is not looked into.

A rank shows by a word of it in a name (`rank`, `is_main_process`), or by a name that something of that kind was bound to: a
variable, an attribute, a function that returns it, here or in the project file that it is imported from. What a base class in
another file calls by a name without such a word is not known here.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from codemods.analysis.ranks.rank_members import end_of, is_spawned
from codemods.corpus import WORD
from codemods.project import Project
from codemods.source import SourceModule, once_a_module

# Every name of data/rank_names.py holds one of these.
_WORDS = (
    "rank", "master", "main", "primary", "root", "chief", "lead", "first", "zero", "ordinal", "process_index", "logging_process",
    "procid", "localid", "nodeid", "should_", "gpu",
)  # fmt: skip
_HEADS = frozenset({b"", b"def ", b"async def "})
_END = re.compile(rb"\n(?=[^\s)\]}#])")  # where the next thing at the top of a file begins
_READS = frozenset({"int", "str", "bool", "getattr", "get", "getenv"})  # calls that give what they are given
_DEPTH = 4  # re-exports that are followed
_SHORT = 8  # statements of a function that answers by `if rank == 0: return True`


def may_speak_of_ranks(module: SourceModule, test: ast.AST, project: Project | None) -> bool:
    """False for an expression of which no name can stand for a rank."""
    carriers = _alone(module) if project is None else project.memo(
        ("rank carriers", module.path), lambda: _carriers(module, project)
    )  # fmt: skip
    return any(name in carriers or shows_rank(name) for name in _names(test))


@cache
def shows_rank(text: str) -> bool:
    """True for a name, or a longer text, with a word of ranks in it."""
    lower = text.lower()
    return any(word in lower for word in _WORDS)


@once_a_module
def _alone(module: SourceModule) -> frozenset[str]:
    return _carriers(module, None)


def _names(node: ast.AST) -> list[str]:
    """The names that decide what an expression is, as far as it may be a rank or a test of one."""
    found: list[str] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.Name):
            found.append(top.id)
        elif isinstance(top, ast.Attribute):
            found.append(top.attr)
        elif isinstance(top, ast.Call):
            found.append(called := end_of(top.func))
            stack += top.args if called in _READS or "env" in called.lower() else ()
        elif isinstance(top, ast.Constant):
            if isinstance(top.value, str):
                found.append(top.value)
        elif isinstance(top, ast.Compare):
            stack += (top.left, *top.comparators)
        elif isinstance(top, ast.BoolOp):
            stack += top.values
        elif isinstance(top, ast.UnaryOp):
            stack.append(top.operand)
        elif isinstance(top, ast.IfExp):
            stack += (top.test, top.body, top.orelse)
        elif isinstance(top, ast.BinOp):
            stack += (top.left, top.right)
        elif isinstance(top, ast.Subscript):
            stack += (top.value, top.slice)
        elif isinstance(top, (ast.NamedExpr, ast.Await, ast.Starred)):
            stack.append(top.value)
        elif isinstance(top, (ast.Tuple, ast.List, ast.Set)):
            stack += top.elts
    return found


def _carriers(module: SourceModule, project: Project | None) -> frozenset[str]:
    """The names that are bound, in one step or several, to what shows a rank."""
    made_of: defaultdict[str, list[str]] = defaultdict(list)
    found = {*_spawned_parameters(module, project), *_imported(module, project)}
    for name, value in _bindings(module):
        for part in _names(value):
            if shows_rank(part):
                found.add(name)
            else:
                made_of[part].append(name)
    queue = list(found)
    while queue:
        for name in made_of.get(queue.pop(), ()):
            if name not in found:
                found.add(name)
                queue.append(name)
    return frozenset(found)


# What is bound in the file


def _bindings(module: SourceModule) -> Iterator[tuple[str, ast.expr]]:
    """(name, what it is bound to): variables, attributes, parameters by their defaults, functions by what they return."""
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            yield from ((name, assign.value) for name in _targets(target))
    for typed in module.nodes(ast.AnnAssign):
        if typed.value is not None:
            yield from ((name, typed.value) for name in _targets(typed.target))
    for changed in module.nodes(ast.AugAssign):
        yield from ((name, changed.value) for name in _targets(changed.target))
    for named in module.nodes(ast.NamedExpr):
        yield named.target.id, named.value
    for loop in module.nodes(ast.For):
        yield from ((name, loop.iter) for name in _targets(loop.target))
    for function in module.functions:
        spec = function.args
        places = [*spec.posonlyargs, *spec.args]
        yield from zip((a.arg for a in places[len(places) - len(spec.defaults) :]), spec.defaults, strict=True)
        yield from ((a.arg, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None)
        if len(function.body) <= _SHORT:
            yield from ((function.name, s.test) for s in function.body if isinstance(s, ast.If))
    for leaving in module.nodes(ast.Return):
        if leaving.value is not None and (home := module.function_of(leaving)) is not None:
            yield home.name, leaving.value


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _targets(element)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value)


def _spawned_parameters(module: SourceModule, project: Project | None) -> Iterator[str]:
    """The first parameter of what `mp.spawn` starts is the process's number, whatever it is called."""
    for function in module.functions:
        if function.args.args and is_spawned(project, module, function):
            yield function.args.args[0].arg


# What comes from other files


def _imported(module: SourceModule, project: Project | None) -> Iterator[str]:
    """The imported names, other than classes, that may stand for a rank where they are defined."""
    for name, found in module.imports.items() if project is not None else ():
        if name[:1].islower() or name.startswith("_") or name.isupper():
            if project is not None and any(_gives_rank(project, i.dotted, module.path, 0) for i in found if i.name):
                yield name


def _gives_rank(project: Project, target: str, importer: str, depth: int) -> bool:
    key = ("gives a rank", target, importer.rpartition("/")[0])
    return project.keep(key, lambda: _find_rank(project, target, importer, depth))


def _find_rank(project: Project, target: str, importer: str, depth: int) -> bool:
    resolved = project.resolve(target, importer)
    if resolved is None or len(resolved.rest) != 1 or depth > _DEPTH:
        return False
    name, data = resolved.rest[0], project.read(resolved.path) or b""
    blocks = list(_definitions(data, name.encode()))
    if blocks:
        return any(shows_rank(block.decode("utf-8", "replace")) for block in blocks)
    inner = project.module(resolved.path) if name.encode() in data else None
    found = inner.imports.get(name, ()) if inner is not None else ()
    return any(_gives_rank(project, i.dotted, resolved.path, depth + 1) for i in found if i.name)


def _definitions(data: bytes, name: bytes) -> Iterator[bytes]:
    """The source of each definition of a name at the top of a file: `def name`, `name = `."""
    at = data.find(name)
    while at >= 0:
        end = at + len(name)
        if not (end < len(data) and data[end] in WORD) and data[data.rfind(b"\n", 0, at) + 1 : at] in _HEADS:
            ended = _END.search(data, end)
            yield data[at : ended.start() if ended else len(data)]
        at = data.find(name, end)
