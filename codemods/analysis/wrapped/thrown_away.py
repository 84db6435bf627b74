"""Wrappers that nobody can call: `DDP(net).module` keeps the module inside, and nothing holds the wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.losses import Backward, backward_passes, is_quiet
from codemods.analysis.wrapped.wraps import inner_of, wraps_in
from codemods.files.source import SourceModule
from codemods.store.project import Project


def thrown_away(project: Project, module: SourceModule) -> Iterator[tuple[ast.Attribute, ast.Call, Backward]]:
    """(`DDP(net).module`, the wrap, a backward pass of the file) where the value is kept and is wrapped nowhere else."""
    taken = [(up, call) for call in wraps_in(module) if isinstance(up := module.parent(call), ast.Attribute)]
    kept = [(up, call) for up, call in taken if up.attr == "module" and _is_kept(module, up)]
    trained = next((one for one in backward_passes(module) if not is_quiet(module, one.call)), None) if kept else None
    if trained is None or not _takes_steps(project):
        return
    for up, call in kept:
        if not is_wrapped_again(project, module, up, call):
            yield up, call, trained


def _is_kept(module: SourceModule, value: ast.Attribute) -> bool:
    """True where a name, a field, a list or the caller gets the value: nothing is asked of it at its place."""
    up = module.parent(value)
    if isinstance(up, (ast.ListComp, ast.GeneratorExp)):
        return up.elt is value
    if isinstance(up, ast.DictComp):
        return up.value is value
    return isinstance(up, (ast.Assign, ast.AnnAssign, ast.Return, ast.List, ast.Tuple, ast.Dict))


def _takes_steps(project: Project) -> bool:
    return any(not is_test_file(p) for p in project.files_containing(b".step("))


def is_wrapped_again(project: Project, module: SourceModule, value: ast.expr, call: ast.Call) -> bool:
    """True where another wrap, in any file, is put round what goes by the same name: that one may be called."""
    inner = inner_of(call)
    names = {last(dotted(inner))} if inner is not None else set()
    statement = module.statement_of(value)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names |= {last(dotted(n)) for t in targets for n in ast.walk(t) if dotted(n)}
    for path in project.files_containing(b"DistributedDataParallel"):
        other = project.module(path)
        for wrap in wraps_in(other) if other is not None and not is_test_file(path) else ():
            again = inner_of(wrap)
            if wrap is not call and again is not None and last(dotted(again)) in names:
                return True
    return False
