"""The files that wrap a model, and who calls a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

WORDS = (b"DistributedDataParallel", b".prepare(", b".prepare_model(")


def wrapping(project: Project) -> Iterator[SourceModule]:
    paths = {p for word in WORDS for p in project.files_containing(word)}
    for path in sorted(paths):
        module = None if is_test_file(path) else project.module(path)
        if module is not None and (module.holds(b"DistributedDataParallel") or module.holds(b"ccelerat")):
            yield module


def giving(project: Project) -> frozenset[str]:
    """The names of the functions of files that wrap: what others may get a wrapper from."""

    def build() -> frozenset[str]:
        return frozenset(f.name for module in wrapping(project) for f in module.functions)

    return project.keep("functions of files that wrap", build)


def callers(project: Project, module: SourceModule, function: FunctionNode) -> list[CallSite]:
    """Every call of a function outside the tests, or of the class of a constructor; none where there may be others."""
    owner = module.parent(function)
    built = owner if isinstance(owner, ast.ClassDef) and function.name == "__init__" else None
    uses = constructions(project, module, built) if built is not None else uses_of(project, module, function)
    if uses is None or uses.more or not all(_is_annotation(h.module, h.node) for h in uses.handed_on):
        return []
    return [s for s in uses.calls if not is_test_module(s.module)]


def _is_annotation(module: SourceModule, node: ast.expr) -> bool:
    """True for a mention that only says what something is: `managers: list[Manager] = []`, `isinstance(x, Manager)`."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, ast.arg) or (isinstance(up, ast.AnnAssign) and up.annotation is below):
            return True
        if isinstance(up, ast.Call) and dotted(up.func) == "isinstance":
            return True
        if isinstance(up, ast.stmt):
            return isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and up.returns is below
        below = up
    return False
