"""Gradients that a project averages itself: then a wrapper is left out on purpose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# A norm of the gradients that is reduced for the log leaves the gradients as they are.
_GRADIENTS = rb"(?<!de)(?<!up)(?<!retro)grad(?!(?:ient)?s?[ _.]?norm)"
_BY_HAND = lazy(
    rb"(?:all_?reduce|average|sync)\w*[^\n]{0,60}" + _GRADIENTS
    + rb"|" + _GRADIENTS + rb"\w*[^\n]{0,40}(?:all_?reduce|average_|sync)\w*\(",
    re.I,
)  # fmt: skip
_CODE_LEFT_OUT = lazy(rb"\s*#\s*[\w.]+\(.*\)\s*$")


def averages_by_hand(project: Project) -> bool:
    """True where a line that a program may run, outside of tests, speaks of reducing gradients, or a comment does."""

    def build() -> bool:
        paths = {p for word in (b"reduce", b"average", b"sync") for p in project.files_containing(word)}
        paths = {p for p in paths if p.endswith(PYTHON_KINDS) and not is_test_file(p)}
        return any(_averages(project, path) for path in sorted(paths))

    return project.keep("gradients averaged by hand", build)


def _averages(project: Project, path: str) -> bool:
    lines = list(_lines(project.read(path) or b""))
    module = project.module(path) if lines else None
    return bool(lines) and (module is None or any(not _is_idle(project, module, line) for line in lines))


def _lines(text: bytes) -> Iterator[int]:
    """The numbers of the lines that speak of it, without calls that are commented out."""
    # `accelerator.sync_gradients` and `no_sync` say when the wrapper averages: they average nothing themselves
    text = text.replace(b".sync_gradients", b"").replace(b"no_sync", b"")
    for found in _BY_HAND.finditer(text):
        start = text.rfind(b"\n", 0, found.start()) + 1
        end = text.find(b"\n", found.start())
        if not _CODE_LEFT_OUT.match(text[start : end if end >= 0 else len(text)]):
            yield text.count(b"\n", 0, found.start()) + 1


def _is_idle(project: Project, module: SourceModule, line: int) -> bool:
    """True in the backward of an autograd function, whose gradients are those of values, and in a function that nobody runs."""
    function = _function_at(module, line)
    if function is None:
        return False
    first = function.args.args[0].arg if function.args.args else ""
    if function.name == "backward" and first == "ctx" and isinstance(module.parent(function), ast.ClassDef):
        return True
    return is_run_by_nobody(project, module, function.body[0])


def _function_at(module: SourceModule, line: int) -> FunctionNode | None:
    """The innermost function that the line stands in."""
    kinds: list[FunctionNode] = [*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef)]
    holding = [f for f in kinds if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return max(holding, key=lambda f: f.lineno, default=None)
