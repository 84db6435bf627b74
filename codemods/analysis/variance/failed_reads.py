"""What a rank goes on with that could not read a file: a `try` that reads, and a handler that gives the same names values."""

from __future__ import annotations

import ast

from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause, Proof, differing
from codemods.data.rank_variance import LOADS
from codemods.files.source import walk
from codemods.runtime.record import replace

_UNREADABLE = frozenset({"Exception", "BaseException", "OSError", "IOError", "RuntimeError", "OutOfMemoryError"})
_RESTORES = frozenset({"load_state_dict", "load_checkpoint"})


def decided_by_error(state: State, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> None:
    """`try: rows = load(path)… except: rows = 0`: a rank that cannot read goes on with other values than the rest."""
    if handler.type is not None and last(dotted(handler.type)) not in _UNREADABLE:
        return
    if all(_imports(s) for s in node.body):
        return  # all ranks have the same packages
    if _goes_on_from_a_checkpoint(state, node):
        return
    reads = any(isinstance(n, ast.Call) and last(dotted(n.func)) in LOADS for s in node.body for n in walk(s))
    what = "that cannot read the file" if reads else "on which this fails"
    link = state.link(handler, f"a rank {what} comes here, and goes on with other values")
    tried = {path for s in node.body for n in walk(s) for path in _targets(n)}
    for given in (s for s in handler.body if isinstance(s, ast.Assign)):
        missing = is_none(given.value)
        for name in {*_targets(given)} & tried - {""} if reads or missing else ():
            state.env[name] = replace(differing(Cause.PLACE, Proof.LIKELY, link), optional=missing)


def _goes_on_from_a_checkpoint(state: State, node: ast.Try | ast.TryStar) -> bool:
    """True for a model's state that is read once: all ranks read the one file, or none does since no run has left one."""
    if not any(isinstance(n, ast.Call) and last(dotted(n.func)) in _RESTORES for s in node.body for n in walk(s)):
        return False
    for up in state.module.ancestors(node):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return True


def _imports(node: ast.stmt) -> bool:
    """True for a statement that does nothing but import."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    call = node.value if isinstance(node, ast.Assign) else None
    return isinstance(call, ast.Call) and last(dotted(call.func)) in ("import_module", "__import__")


def _targets(node: ast.AST) -> list[str]:
    """The paths that an assignment gives values."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [path_of(e) for t in targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
