"""Who else reads a state that is saved of a wrapper, and would no longer find the keys that it expects."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.holders import wrapper_in
from codemods.analysis.wrapped.saved_states import Saved, is_in_parallel, key_of
from codemods.files.source import SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# What cuts the first letters off each key, whatever they are.
_CUTS = lazy(rb"\bk(?:ey)?\w*\[(?:7|len\([^)]*\))\s*:\s*\]")
# A reader that takes `module.` off where it is there, and is content with bare keys.
_STRIPS_EITHER = lazy(rb"""startswith\(["']module|replace\(["']module\.|consume_prefix|removeprefix|strip_prefix|remove_prefix""")


_WORDS = ("module", "module.")


@record
class OtherReader:
    """A place that reads the same part of the file."""

    module: SourceModule
    line: int
    text: str


def other_readers(project: Project, saved: Saved) -> tuple[OtherReader, ...]:
    """Every place that expects the keys of the wrapper: a load into one, code that cuts `module.` off each of them, or that keeps
    those alone which have it.
    """
    expecting = ((module, node) for module in _loading(project) for _, node in _expecting(project, module, saved.key))
    return tuple(
        OtherReader(module, line_of(node), " ".join(module.text_of(module.statement_of(node)).splitlines()[0].split())[:60])
        for module, node in (*expecting, *_keeping(project, saved.key))
    )


def _keeping(project: Project, key: str) -> Iterator[tuple[SourceModule, ast.AST]]:
    """`if "module." in k: state[k.replace("module.", "")] = v`, with nothing for the other keys."""
    for path in project.files_containing(b"load_state_dict("):
        data = project.read(path) or b""
        module = project.module(path) if b"module." in data and not is_test_file(path) else None
        if module is None or (key and not _names(module, key)):
            continue
        for loop in module.nodes(ast.For):
            test = loop.body[0] if len(loop.body) == 1 else None
            if isinstance(test, ast.If) and not test.orelse and _asks_for_prefix(test.test):
                if any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in walk(test)):
                    yield module, test


def _asks_for_prefix(test: ast.expr) -> bool:
    """True for `"module." in k` and `k.startswith("module.")`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.In):
        return isinstance(test.left, ast.Constant) and test.left.value in _WORDS
    if not isinstance(test, ast.Call) or last(dotted(test.func)) != "startswith" or len(test.args) != 1:
        return False
    return isinstance(test.args[0], ast.Constant) and test.args[0].value in _WORDS


def _names(module: SourceModule, key: str) -> bool:
    return module.holds(f'"{key}"'.encode()) or module.holds(f"'{key}'".encode())


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
    if key and not _names(module, key):
        return
    for node in module.nodes(ast.Subscript) if _CUTS.search(module.data) else ():
        if _CUTS.search(module.text_of(node).encode()):
            yield node.lineno, node
