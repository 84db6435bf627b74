"""Do several processes run a file, though it does not say so itself? Its importers tell, also those of the package that hands it
on, the files of the classes that its own are derived from, what it calls, and what the functions do that it starts on several
processes.
"""

from __future__ import annotations

import ast
from posixpath import basename, dirname

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_own_test, is_test_module, ranks_at, ranks_in_file, ranks_in_importers
from codemods.analysis.importing import imports_of
from codemods.analysis.names import dotted, end_of, is_parameter, qualified
from codemods.analysis.ranks.alone_by_environment import is_alone_by_environment
from codemods.analysis.ranks.spawned import STARTS
from codemods.analysis.ranks.spawned_groups import spawned_ranks
from codemods.analysis.run_by_ranks import may_show_ranks, shows_ranks
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_PACKAGE = "__init__.py"
_JOIN = "init_process_group"
_HOPS = 2  # calls below a function that is called, down to the one that joins
_PREPARES = "Accelerator"  # it joins the group when it is made
_DERIVED = lazy(rb"\bclass[ \t\\]+\w+[^\n:(]*\(\s*[^)\s]")


def is_parallel(project: Project, module: SourceModule) -> bool:
    """True where several processes are seen to run the file."""

    def ask() -> bool:
        if is_test_module(module) or is_alone_by_environment(module):
            return False
        if ranks_in_file(project, module) or ranks_in_importers(project, module):
            return True
        if _is_of_parallel_bases(project, module) or _is_handed_on(project, module.path):
            return True
        return _joins_by_own_function(project, module) or spawned_ranks(project, module) is not None

    return project.keep(("several processes run", module.path), ask)


def may_be_parallel(project: Project, path: str) -> bool:
    """False where `is_parallel` would say so of the file, told from its bytes and from the files that import it."""
    data = project.read(path) or b""
    if _DERIVED.search(data) or any(f"{name}(".encode() in data for name in STARTS):
        return True
    if shows_ranks(project, path) or _is_handed_on(project, path):
        return True
    starters = _starters(project)
    found = (project.resolve(name, path) for name in (imports_of(project, path) if starters else ()))
    return any(f is not None and f.path in starters for f in found)


def _starters(project: Project) -> set[str]:
    return {p for word in (_JOIN, _PREPARES) for p in project.files_containing(word.encode() + b"(")}


def _joins_by_own_function(project: Project, module: SourceModule) -> bool:
    """True for a program that calls a function of the project which joins the group or makes an Accelerator: `start_ranks()`.

    It may leave that to another function of the project.
    """
    starters = _starters(project)
    if not starters:
        return False
    leading = {
        name for name, found in module.imports.items() for item in found
        if (resolved := project.resolve(item.dotted, module.path)) is not None and resolved.path in starters
    }  # fmt: skip
    for call in module.nodes(ast.Call) if leading else ():
        if dotted(call.func).partition(".")[0] not in leading:
            continue
        site = called_function(project, module, call)
        if site is not None and _joins_at_last(project, site):
            return True
    return False


def _joins_at_last(project: Project, site: FunctionSite) -> bool:
    return project.keep(("joins the group", site.key), lambda: _joins_below(project, site, _HOPS))


def _joins_below(project: Project, site: FunctionSite, hops: int) -> bool:
    """True where the function joins the group, or a function of the project that it calls does."""
    nodes = list(walk(site.node))
    if any(_joins(project, site.module, node) and (hops == _HOPS or not _is_told_its_rank(site.module, node)) for node in nodes):
        return True
    called = (called_function(project, site.module, n) for n in nodes if isinstance(n, ast.Call)) if hops else ()
    starters = _starters(project)
    return any(_joins_below(project, c, hops - 1) for c in called if c is not None and c.module.path in starters)


def _is_told_its_rank(module: SourceModule, node: ast.AST) -> bool:
    """True for `init_process_group(rank=rank, world_size=count)` of two parameters: its starter says how many there are."""
    given = [k.value for k in node.keywords if k.arg in ("rank", "world_size")] if isinstance(node, ast.Call) else []
    return any(isinstance(v, ast.Name) and is_parameter(module, v.id, v) for v in given)


def _joins(project: Project, module: SourceModule, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if end_of(node.func) == _JOIN:
        return True
    made = end_of(node.func) == _PREPARES and qualified(module, node.func).startswith("accelerate.")
    return made and ranks_in_file(project, module) is not None


def _is_of_parallel_bases(project: Project, module: SourceModule) -> bool:
    """True where a class is derived from one of another file that several processes run: they make the objects of both."""
    for node in module.nodes(ast.ClassDef):
        above = class_facts(project, module, node).lineage[1:] if node.bases else ()
        if any(s.module is not module and ranks_in_file(project, s.module) for s in above):
            return True
    return False


def _is_handed_on(project: Project, path: str) -> bool:
    """True for `models/net.py`, whose `Net` a file of several processes has from `models`: the package imports it from there."""
    package = f"{dirname(path)}/{_PACKAGE}" if dirname(path) else _PACKAGE
    if basename(path) == _PACKAGE or package not in project.files:
        return False
    given = project.keep(("handed on by", package), lambda: _given_by(project, package)).get(path)
    return given is not None and _is_taken(project, package, given)


def _given_by(project: Project, package: str) -> dict[str, frozenset[str]]:
    """File -> the names that a package has from it. Each file of the package asks: it is read once, not once for each."""
    handing = project.module(package)
    given: dict[str, set[str]] = {}
    for name, found in handing.imports.items() if handing is not None else ():
        for item in found:
            if (resolved := project.resolve(item.dotted, package)) is not None:
                given.setdefault(resolved.path, set()).add(name)
    return {path: frozenset(names) for path, names in given.items()}


def _is_taken(project: Project, package: str, given: frozenset[str]) -> bool:
    """True where a file that shows ranks has one of these names from the package."""
    folder = basename(dirname(package))  # "" of the checked folder, whose name its files do not say
    for path in project.files_importing(folder) if folder else ():
        if path == package or is_own_test(project, path) or not may_show_ranks(project, path):
            continue
        if taken := _taken_from(project, path, package):
            if "*" in taken or ("*" in given and taken - {""}) or not given.isdisjoint(taken):
                return True
    return False


def _taken_from(project: Project, path: str, package: str) -> frozenset[str]:
    """The names that a file has from a package, "" for the package itself; none where the file shows no ranks.

    Kept by file: all modules of the package ask it of the same importers, whose trees are gone by then.
    """

    def build() -> frozenset[str]:
        module = project.module(path) if ranks_at(project, path) is not None else None
        names: set[str] = set()
        for item in (i for found in module.imports.values() for i in found) if module is not None else ():
            resolved = project.resolve(item.dotted, path)
            if resolved is not None and resolved.path == package:
                names.add("*" if item.name == "*" else resolved.rest[0] if resolved.rest else "")
        return frozenset(names)

    return project.keep(("names from", path, package), build)
