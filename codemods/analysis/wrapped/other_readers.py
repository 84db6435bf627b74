"""Who else reads a state that is saved of a wrapper, and would no longer find the keys that it expects."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.wrapped.holders import wrapper_in
from codemods.analysis.wrapped.saved_states import Saved, is_in_parallel, key_of
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# What cuts the first letters off each key, whatever they are.
_CUTS = lazy(rb"\bk(?:ey)?\w*\[(?:7|len\([^)]*\))\s*:\s*\]")
# A reader that takes `module.` off where it is there, and is content with bare keys.
_STRIPS_EITHER = lazy(rb"""startswith\(["']module|replace\(["']module\.|consume_prefix|removeprefix|strip_prefix|remove_prefix""")


@record
class OtherReader:
    """A place that reads the same part of the file."""

    module: SourceModule
    line: int
    text: str


def other_readers(project: Project, saved: Saved) -> tuple[OtherReader, ...]:
    """Every place that expects the keys of the wrapper: a load into one, or code that cuts `module.` off each of them."""
    return tuple(
        OtherReader(module, line, " ".join(module.text_of(module.statement_of(node)).split())[:60])
        for module in _loading(project)
        for line, node in _expecting(project, module, saved.key)
    )


def _loading(project: Project) -> Iterator[SourceModule]:
    for path in project.files_containing(b"load_state_dict("):
        data = project.read(path) or b""
        if not is_test_file(path) and not _STRIPS_EITHER.search(data) and (module := project.module(path)) is not None:
            yield module


def _expecting(project: Project, module: SourceModule, key: str) -> Iterator[tuple[int, ast.AST]]:
    for call in module.calls_named("load_state_dict"):
        if not call.args or not isinstance(call.func, ast.Attribute) or key_of(module, call.args[0]) != key:
            continue
        holder = call.func.value
        if is_in_parallel(module, holder) or wrapper_in(project, module, holder) is not None:
            yield call.lineno, call
    if key and not (module.holds(f'"{key}"'.encode()) or module.holds(f"'{key}'".encode())):
        return
    for node in module.nodes(ast.Subscript) if _CUTS.search(module.data) else ():
        if _CUTS.search(module.text_of(node).encode()):
            yield node.lineno, node
