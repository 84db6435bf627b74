"""Can these statements come to a collective at all? Told by names over the calls, before anything is interpreted.

Most functions of a file that several processes run read a file, change a picture or build a layer. Interpreting one takes
milliseconds, and says nothing of where ranks wait for each other. What cannot be told here is for the interpretation to say.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function, run_function
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.functions import functions_by_name
from codemods.analysis.importing import imports_of
from codemods.analysis.names import dotted, is_parameter, qualified
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.variance.heirs import is_left_open
from codemods.analysis.variance.paths import is_super
from codemods.data.rank_variance import BACKWARDS, COLLECTIVE_WORDS, SHOWS, WRAPPERS
from codemods.files.source import SourceModule, called_name, once_a_module, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.file_facts import file_fact
from codemods.store.project import Project
from codemods.store.tables import Table

_WAITS = BACKWARDS | {"compute", "step"}  # of objects that nothing shows the kind of
_AS_TEXT = (b"def __format__", b"def __str__", b"def __repr__")
_PROPERTY = lazy(rb"property[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)")
_WORDS = (*COLLECTIVE_WORDS, *(w.encode() for w in WRAPPERS), b"prepare(", b"step(")
_DEPTH = 3  # names behind names
_TAKING = frozenset({"getattr", "super", "next", "iter", "map", "filter", "max", "min", "sorted", "zip", "type", "vars"})
_TEXT = lazy(rb"def (__format__|__str__|__repr__)\b")
_OWN = frozenset({"self", "cls"})


@record
class _Calls:
    """What the calls of some statements lead to. open: one of them may wait, or is not followed from here."""

    open: bool
    functions: tuple[FunctionSite, ...] = ()


def may_meet(project: Project, module: SourceModule, nodes: Iterable[ast.AST]) -> bool:
    """False where no call below the nodes can lead to a collective, however far it is followed."""
    first = _calls(project, module, nodes)
    if first.open:
        return True
    clear: Table[tuple[str, int, int], bool] = project.memo("never meet", lambda: Table(project))
    seen: set[tuple[str, int, int]] = set()
    left = list(first.functions)
    with project.apart() as rest:
        while left:
            site = left.pop()
            if site.key in seen or (clear.get(site.key)):
                continue
            seen.add(site.key)
            found = _of_function(project, site)
            if found.open:
                return True
            left += found.functions
    for key in seen:
        clear.put(key, True, rest)
    return False


def _of_function(project: Project, site: FunctionSite) -> _Calls:
    def build() -> _Calls:
        owner = site.module.parent(site.node)
        if isinstance(owner, ast.ClassDef) and is_left_open(site.node):
            return _Calls(open=True)  # its heirs write it
        return _calls(project, site.module, site.node.body)

    return project.memo(("calls that may meet", *site.key), build)


def _calls(project: Project, module: SourceModule, nodes: Iterable[ast.AST]) -> _Calls:
    functions: list[FunctionSite] = []
    for node in (n for top in nodes for n in walk(top)):
        if isinstance(node, ast.Call):
            found = _of_call(project, module, node)
        elif isinstance(node, ast.Attribute):
            found = () if node.attr not in _reading(project) else None
        else:
            found = () if not isinstance(node, ast.FormattedValue) or not _shows_by_meeting(project) else None
        if found is None:
            return _Calls(open=True)
        functions += found
    return _Calls(False, tuple(functions))


def _of_call(project: Project, module: SourceModule, call: ast.Call) -> tuple[FunctionSite, ...] | None:
    """The functions of the project that a call runs; None where it may wait, or may run what is not seen from here."""
    func, end = call.func, called_name(call)
    if not end or end in _WAITS or collective_at(module, call, project) is not None:
        return None
    if end in SHOWS and _shows_by_meeting(project):
        return None
    if isinstance(func, ast.Name):
        return _of_name(project, module, call, func.id)
    name = dotted(func)
    root = name.partition(".")[0]
    if root in module.imports and not is_parameter(module, root, call):
        return _imported(project, module, call)
    if root in _OWN and name.count(".") == 1:
        site = called_function(project, module, call)
        return (site,) if site is not None else None
    if end == "apply" and (site := run_function(project, module, call)) is not None:
        return (site,)
    if not _is_method_that_waits(project, end) and end not in _given_fields(module):
        return ()
    if is_super(func):
        return _of_base(project, module, call, end)
    return () if isinstance(func, ast.Attribute) and _is_foreign(project, module, func.value, 0) else None


def _of_name(project: Project, module: SourceModule, call: ast.Call, name: str) -> tuple[FunctionSite, ...] | None:
    if is_parameter(module, name, call):
        return None
    if name in module.imports:
        return _imported(project, module, call)
    if named := functions_by_name(module).get(name):
        return tuple(FunctionSite(module, f) for f in named)
    if any(owner.name == name for owner in module.nodes(ast.ClassDef)):
        return _constructor(project, module, name)
    return () if hasattr(builtins, name) and not _is_bound(module, name) else None


def _imported(project: Project, module: SourceModule, call: ast.Call) -> tuple[FunctionSite, ...] | None:
    """What a call through an import runs: a function or a class of the project, or nothing of it."""
    site = run_function(project, module, call)
    if site is not None:
        return (site,)
    if project.resolve(qualified(module, call.func), module.path) is None:
        return ()
    return _constructor(project, module, dotted(call.func))


def _constructor(project: Project, module: SourceModule, name: str) -> tuple[FunctionSite, ...] | None:
    made = find_class(project, module, name)
    if made is None:
        return None
    method = class_facts(project, made.module, made.node).method("__init__")
    return (FunctionSite(method[0].module, method[1]),) if method is not None else ()


def _is_bound(module: SourceModule, name: str) -> bool:
    return name in _stored(module)


@once_a_module
def _stored(module: SourceModule) -> frozenset[str]:
    return frozenset(n.id for n in module.nodes(ast.Name) if isinstance(n.ctx, ast.Store))


@once_a_module
def _given_fields(module: SourceModule) -> frozenset[str]:
    """The attributes that the file gives values: what it puts there may be a model."""
    return frozenset(n.attr for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store))


def _of_base(project: Project, module: SourceModule, call: ast.Call, name: str) -> tuple[FunctionSite, ...] | None:
    owner = module.class_of(call)
    if owner is None:
        return None
    lineage = class_facts(project, module, owner).lineage[1:]
    return tuple(FunctionSite(site.module, site.methods()[name]) for site in lineage if name in site.methods())


# Objects that are not seen


def _is_foreign(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True for what no code of the project made: `np.abs(x)`, a text, a name that holds nothing else."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return isinstance(node, (ast.Constant, ast.JoinedStr, ast.List, ast.Dict))
    if is_parameter(module, node.id, node) or depth > _DEPTH:
        return False
    bound, imports = bindings_of(module, node), module.imports.get(node.id, ())
    if bound or imports:
        packages = all(project.resolve(i.dotted, module.path) is None for i in imports)
        return packages and all(b.value is not None and _is_foreign(project, module, b.value, depth + 1) for b in bound)
    return hasattr(builtins, node.id) and node.id not in _TAKING and not functions_by_name(module).get(node.id)


def _is_method_that_waits(project: Project, name: str) -> bool:
    """True where a method of that name stands in a file that may wait, or that imports one."""
    return project.keep(("method that waits", name), lambda: any(_reaches(project, p) for p in project.files_defining(name)))


def _reaches(project: Project, path: str) -> bool:
    """True where the file, or one of the project that it imports, however far, holds a word of a collective or a wrapper."""
    known: Table[str, bool] = project.keep("files that may wait", lambda: Table(project))
    if path in known:
        return known[path]
    seen, left = {path}, [path]
    with project.apart() as rest:
        while left and not _may_wait(project, left[-1], known):
            last = left.pop()
            found = (project.resolve(name, last) for name in imports_of(project, last))
            left += (fresh := {f.path for f in found if f is not None and known.get(f.path) is not False} - seen)
            seen |= fresh
    for each in [path] if left else seen:
        known.put(each, bool(left), rest)
    return bool(left)


def _may_wait(project: Project, path: str, known: Table[str, bool]) -> bool:
    return bool(known.get(path)) or project.fact(_holds_words, path)


@file_fact
def _holds_words(path: str, data: bytes) -> bool:
    del path
    return any(word in data for word in _WORDS)


# What is run without a call


def _reading(project: Project) -> frozenset[str]:
    """The names of properties whose own words say that they may wait."""
    return project.keep("properties that may wait", lambda: _all_waiting(project, (b"property",), _waiting_properties))


def _shows_by_meeting(project: Project) -> bool:
    """True where putting some object of the project into a text may wait."""
    return project.keep("texts that may wait", lambda: bool(_all_waiting(project, _AS_TEXT, _waiting_texts)))


def _all_waiting(
    project: Project, words: tuple[bytes, ...], waiting: Callable[[str, bytes], frozenset[str]]
) -> frozenset[str]:
    paths = dict.fromkeys(path for word in words for path in project.files_containing(word))
    return frozenset(name for path in paths for name in project.fact(waiting, path))


@file_fact
def _waiting_properties(path: str, data: bytes) -> frozenset[str]:
    del path
    return frozenset(_waiting(data, _PROPERTY))


@file_fact
def _waiting_texts(path: str, data: bytes) -> frozenset[str]:
    del path
    return frozenset(_waiting(data, _TEXT))


def _waiting(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[str]:
    """The names of the methods that the pattern finds, if a word of a collective stands in them. Nothing is parsed for it."""
    for found in pattern.finditer(data) if any(w in data for w in COLLECTIVE_WORDS) else ():
        body = data[found.end() : (data.find(b"def ", found.end()) + 1 or len(data) + 1) - 1]
        if any(w in body for w in COLLECTIVE_WORDS):
            yield found.group(1).decode("ascii", "replace")
