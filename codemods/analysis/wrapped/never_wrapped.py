"""Wraps that no run comes to: the name that is asked above is False in each arm of the test that was to tell the runs apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.torch_commands import TorchCommand, torch_commands
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import qualified
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.analysis.wrapped.wraps import wraps_in
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_WRAPS_OTHERWISE = lazy(rb"\.prepare\(|FullyShardedDataParallel|fully_shard|deepspeed|hvd\.|all_reduce\(|\bspawn\(")


@record
class NeverWrapped:
    """given: where the last arm makes the name False. command: what starts the program as several processes."""

    given: ast.stmt
    name: str
    test: ast.If
    wrap: ast.Call
    command: TorchCommand


def never_wrapped(project: Project, module: SourceModule) -> Iterator[NeverWrapped]:
    """The only wrap of a program that a command starts on several processes, under a name that is never true."""
    wraps = [c for c in wraps_in(module) if qualified(module, c.func).startswith(("torch.", "apex."))]
    if len(wraps) != 1 or len(wraps_in(module)) != 1:
        return
    found = _never_true(module, wraps[0])
    command = _started(project, module) if found is not None else None
    if found is not None and command is not None:
        test, bound = found
        last_one = max(bound, key=lambda b: getattr(b.node, "lineno", 0)).node
        assert isinstance(last_one, ast.stmt)
        assert isinstance(test.test, ast.Name)
        yield NeverWrapped(last_one, test.test.id, test, wraps[0], command)


def _never_true(module: SourceModule, wrap: ast.Call) -> tuple[ast.If, list[Binding]] | None:
    """The test over a wrap whose name is False in both arms of another test above, and is given nothing else."""
    below: ast.AST = wrap
    for up in module.ancestors(wrap):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if isinstance(up, ast.If) and isinstance(up.test, ast.Name) and any(s is below for s in up.body):
            bound = bindings_of(module, up.test)
            if _all_false(bound) and any(are_other_arms(module, a.node, b.node) for a, b in combinations(bound, 2)):
                return up, bound
        below = up
    return None


def _all_false(bound: list[Binding]) -> bool:
    return len(bound) > 1 and all(isinstance(b.node, ast.stmt) and not b.part and _is_false(b.value) for b in bound)


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _started(project: Project, module: SourceModule) -> TorchCommand | None:
    """The command that starts a program of this file on several processes, which trains and wraps nothing else."""
    for command in torch_commands(project):
        program = whole_program(project, command.script) if command.several else frozenset()
        texts = {p: project.read(p) or b"" for p in program if not is_test_file(p)}
        if module.path not in texts or not any(b".backward(" in text for text in texts.values()):
            continue
        others = any(b"DistributedDataParallel(" in text for path, text in texts.items() if path != module.path)
        if not others and not any(_WRAPS_OTHERWISE.search(text) for text in texts.values()):
            return command
    return None
