"""Whether all ranks write the same bytes into a file: nothing is lost there, whichever of them is last."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.files.file_runs import TAKES_AWAY
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.shared_values import is_shown_same, not_shown_same
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_COPIES = frozenset({"shutil.copy", "shutil.copy2", "shutil.copyfile"})
_MODES = frozenset("rwxabt+")


def writes_the_same(project: Project, module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True for a copy of a file, and for what comes from the arguments and the configuration; not for lines that are added."""
    calls = [n for s in statements for n in walk(s) if isinstance(n, ast.Call)]
    if any(_adds(call) or last(dotted(call.func)) in TAKES_AWAY for call in calls):
        return False
    if calls and len(statements) == 1 and _is_copy(module, statements[0]):
        return True
    return not not_shown_same(project, module, statements) or is_shown_same(project, module, statements)


def _is_copy(module: SourceModule, statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and qualified(module, value.func) in _COPIES


def _adds(call: ast.Call) -> bool:
    """True for `open(path, "a")` and `to_csv(path, mode="a")`: each rank adds its own lines."""
    modes = [k.value for k in call.keywords if k.arg == "mode"]
    if last(dotted(call.func)) == "open":
        modes += call.args[:2]
    texts = [m.value for m in modes if isinstance(m, ast.Constant) and isinstance(m.value, str)]
    return any("a" in text and set(text) <= _MODES for text in texts)
