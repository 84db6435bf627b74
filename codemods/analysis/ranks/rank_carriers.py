"""The names of a file that may stand for a rank or for a test of one: a test of other names is not looked into.

A rank shows by a word of it in a name (`rank`, `is_main_process`), or by a name that something of that kind was bound to: a
variable, an attribute, a function that returns it, here, in the project file that it is imported from, or in a base class.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from codemods.analysis.branches import ifs_round
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, end_of
from codemods.analysis.ranks.bound_to_rank import bound_to_rank
from codemods.analysis.ranks.rank_attributes import rank_attributes
from codemods.analysis.ranks.rank_keys import rank_keys
from codemods.analysis.ranks.spawned import is_spawned
from codemods.files.source import SourceModule, once_a_module
from codemods.store.corpus import WORD
from codemods.store.file_facts import file_fact
from codemods.store.project import Project
from codemods.store.tables import Table

# Every name of data/rank_names.py holds one of these.
_WORDS = (
    "rank", "master", "main", "primary", "root", "chief", "lead", "first", "zero", "ordinal", "process_index", "logging_process",
    "last_process", "procid", "localid", "nodeid", "should_", "gpu", "logger.experiment",
)  # fmt: skip
_HEADS = frozenset({b"", b"def ", b"async def "})
_END = re.compile(rb"\n(?=[^\s)\]}#])")  # where the next thing at the top of a file begins
_READS = frozenset({"int", "str", "bool", "getattr", "get", "getenv"})  # calls that give what they are given
_Known = Table[tuple[str, str], bool]  # by file and name
_SHORT = 8  # statements of a function that answers by `if rank == 0: return True`


def may_speak_of_ranks(module: SourceModule, test: ast.AST, project: Project | None) -> bool:
    """False for an expression of which no name can stand for a rank."""
    return any(shows_rank(name) or _carries(module, name, project) for name in _names(test))


def _carries(module: SourceModule, name: str, project: Project | None) -> bool:
    """True for a name of the file that is bound, in one step or several, to what shows a rank."""
    if project is None:
        alone = _alone(module)
        if name not in alone:
            alone[name] = _lead_to_rank(module, name, None, {})[0]
        return alone[name]
    known: _Known = project.keep("rank carriers", lambda: Table(project))
    if (module.path, name) not in known:
        with project.apart() as rest:
            found, seen = _lead_to_rank(module, name, project, known)
        for key in [(module.path, name)] if found else seen:
            known.put(key, found, rest)
    return known[module.path, name]


def _lead_to_rank(
    module: SourceModule, name: str, project: Project | None, known: _Known | dict[tuple[str, str], bool]
) -> tuple[bool, set[tuple[str, str]]]:
    """(whether a name leads to what shows a rank, all names that it leads to if it does not)."""
    seen, queue = {(module.path, name)}, [(module, name)]
    while queue:
        for place, part in _behind(*queue.pop(), project):
            if (key := (place.path, part)) not in seen and known.get(key) is not False:
                seen.add(key)
                queue.append((place, part))
                if shows_rank(part) or known.get(key):
                    return True, seen
    return False, seen


def _behind(module: SourceModule, name: str, project: Project | None) -> Iterator[tuple[SourceModule, str]]:
    """The names in what a name of the file is bound to, each with its file."""
    if name in _spawned_parameters(module, project):
        yield module, "rank"
    yield from ((module, part) for part in _made_of(module).get(name, ()))
    yield from ((module, found.name) for found in module.imports.get(name, ()) if found.name and found.name != name)
    if project is None:
        return
    if name in rank_keys(project) or name in bound_to_rank(project) or name in rank_attributes(project):
        yield module, "rank"
    root, _, rest = name.partition(".")
    if root in ("self", "cls"):
        yield from _inherited(module, rest, project)
        return
    for found in module.imports.get(root, ()):
        if found.dotted == "wandb" and rest == "run":
            yield module, "rank"  # rank 0 alone may have one
        yield from _imported(f"{found.dotted}.{rest}" if rest else found.dotted, module, project)


@once_a_module
def _alone(module: SourceModule) -> dict[str, bool]:
    del module
    return {}


@cache
def shows_rank(text: str) -> bool:
    """True for a name, or a longer text, with a word of ranks in it."""
    lower = text.lower()
    return any(word in lower for word in _WORDS)


def _names(node: ast.AST) -> list[str]:
    """The names that decide what an expression is, as far as it may be a rank or a test of one."""
    found: list[str] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.Name):
            found.append(top.id)
        elif isinstance(top, ast.Attribute):
            found += (top.attr, dotted(top))
        elif isinstance(top, ast.Call):
            found += (called := end_of(top.func), dotted(top.func))
            stack += top.args if called in _READS or "env" in called.lower() else ()
            stack += top.args[:1] if called == "isinstance" else ()
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


# What is bound in the file


@once_a_module
def _made_of(module: SourceModule) -> dict[str, set[str]]:
    """Name -> the names in what it is bound to."""
    found: dict[str, set[str]] = {}
    for name, value in _bindings(module):
        found.setdefault(name, set()).update(_names(value))
    return found


def _bindings(module: SourceModule) -> Iterator[tuple[str, ast.expr]]:
    """(name, what it is bound to): variables, attributes, parameters by their defaults, functions by what they return
    and are decorated with."""
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
        yield from defaults(function).items()
        yield from ((function.name, d) for d in function.decorator_list)
        if len(function.body) <= _SHORT:
            yield from ((function.name, s.test) for s in function.body if isinstance(s, ast.If))
    for leaving in module.nodes(ast.Return):
        if (home := module.function_of(leaving)) is not None:
            if leaving.value is not None:
                yield home.name, leaving.value
            yield from ((home.name, up.test) for up in ifs_round(module, leaving))
    yield from _given_under_tests(module)
    for start in module.calls_named("init") if module.holds(b"wandb.run") else ():
        yield from (("run", up.test) for up in ifs_round(module, start))  # it is None where no run is started


def _given_under_tests(module: SourceModule) -> Iterator[tuple[str, ast.expr]]:
    """(name, test) for what is None or a flag, and is given a value under a test: that is there where the test holds."""
    empty = {name for a in module.nodes(ast.Assign) if _holds_none(a.value) for t in a.targets for name in _targets(t)}
    empty |= {name for a in module.nodes(ast.Assign) if _is_flag(a.value) for t in a.targets for name in _targets(t)}
    empty |= {name for a in module.nodes(ast.AnnAssign) if a.value and _holds_none(a.value) for name in _targets(a.target)}
    for assign in module.nodes(ast.Assign) if empty else ():
        names = [name for target in assign.targets for name in _targets(target) if name in empty]
        yield from ((name, up.test) for up in (ifs_round(module, assign) if names else ()) for name in names)


def _holds_none(value: ast.expr) -> bool:
    return is_none(value) or (isinstance(value, ast.Tuple) and any(is_none(e) for e in value.elts))


def _is_flag(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and (isinstance(value.value, bool) or value.value == "")


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


def _spawned_parameters(module: SourceModule, project: Project | None) -> frozenset[str]:
    """The first parameter of what `mp.spawn` starts is the process's number, whatever it is called."""

    def build() -> frozenset[str]:
        return frozenset(f.args.args[0].arg for f in module.functions if f.args.args and is_spawned(project, module, f))

    return build() if project is None else project.memo(("spawned parameters", module.path), build)


# What comes from other files


def _inherited(module: SourceModule, name: str, project: Project) -> Iterator[tuple[SourceModule, str]]:
    """The methods, properties and fields of that name that classes of the file have from other files."""
    if not name or "." in name:
        return
    for node in module.nodes(ast.ClassDef):
        facts = class_facts(project, module, node) if node.bases else None
        if facts is None:
            continue
        found = facts.method(name)
        if found and found[0].module is not module:
            yield found[0].module, name
        homes = {g.site.module.path: g.site.module for g in class_values(project, facts).given.get(name, ())}
        yield from ((home, name) for path, home in homes.items() if path != module.path)


def _imported(target: str, importer: SourceModule, project: Project) -> Iterator[tuple[SourceModule, str]]:
    """What `target` leads to in a file of the project; one that shows a rank where it is defined is not parsed for it."""
    resolved = project.resolve(target, importer.path)
    if resolved is None or len(resolved.rest) != 1:
        return
    name = resolved.rest[0]
    shown = project.fact(_shows_where_defined, resolved.path, name)
    if shown == "yes":
        yield importer, "rank"
    elif shown and (inner := project.module(resolved.path)) is not None:
        yield inner, name


@file_fact
def _shows_where_defined(path: str, data: bytes, name: str) -> str:
    """Whether a definition of the name at the top of a file shows a rank; "" where the name is not in it."""
    del path
    if name.encode() not in data:
        return ""
    return "yes" if any(shows_rank(b.decode("utf-8", "replace")) for b in _definitions(data, name.encode())) else "no"


def _definitions(data: bytes, name: bytes) -> Iterator[bytes]:
    """The source of each definition of a name at the top of a file: `def name`, `name = `."""
    at = data.find(name)
    while at >= 0:
        end = at + len(name)
        if not (end < len(data) and data[end] in WORD) and data[data.rfind(b"\n", 0, at) + 1 : at] in _HEADS:
            ended = _END.search(data, end)
            yield data[at : ended.start() if ended else len(data)]
        at = data.find(name, end)
