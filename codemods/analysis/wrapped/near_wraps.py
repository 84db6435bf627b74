"""The files that may hold a DDP wrapper: those that wrap, those that they hand it to, and those that get it from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.holders import gives_wrapper
from codemods.analysis.wrapped.wrap_files import wrapping
from codemods.store.project import Project


def near_wraps(project: Project) -> frozenset[str]:
    """The files that wrap, those that they import from, and those that get a wrapper from them: no other can hold one."""
    return project.keep("near wraps", lambda: frozenset(_near(project)))


def _near(project: Project) -> Iterator[str]:
    for module in wrapping(project):
        yield module.path
        for item in (i for found in module.imports.values() for i in found):
            resolved = project.resolve(item.dotted.removesuffix(".*"), module.path)
            if resolved is not None:
                yield resolved.path
    known = handed(project)
    for path in sorted({p for word in getters(project) for p in project.files_calling(word)}):
        yield path
        caller = None if is_test_file(path) else project.module(path)
        for name, found in caller.imports.items() if caller is not None else ():
            resolved = project.resolve(found[0].dotted, path) if name in known else None
            if resolved is not None:
                yield resolved.path


def handed(project: Project) -> frozenset[str]:
    """The names that files which wrap, or get a wrapper from those, call with something."""

    def build() -> frozenset[str]:
        calls = (c for module in wrapping(project) for c in module.nodes(ast.Call) if c.args or c.keywords)
        near = frozenset(last(dotted(c.func)) for c in calls)
        further = set[str]()
        for path in {p for w in sorted(getters(project)) for p in project.files_calling(w)}:
            module = None if is_test_file(path) else project.module(path)
            for call in module.nodes(ast.Call) if module is not None else ():
                if call.args and any(dotted(a).startswith("self.") for a in call.args):
                    further.add(last(dotted(call.func)))
        return near | further

    return project.keep("called by files that wrap", build)


def getters(project: Project) -> frozenset[str]:
    """The functions of files that wrap whose returned values hold a wrapper."""

    def build() -> frozenset[str]:
        found = set[str]()
        for module in wrapping(project):
            for function in module.functions:
                if function.name in ("main", "__init__"):
                    continue
                if any(gives_wrapper(project, module, v) for v in returned(function, module)):
                    found.add(function.name)
        return frozenset(found)

    return project.keep("functions that give wrappers", build)
