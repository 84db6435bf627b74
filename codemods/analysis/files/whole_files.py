"""The edits by which a file appears whole under its name: it is written beside it, and renamed at the end."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.filled_on_demand import OnDemand
from codemods.analysis.names import dotted, qualified
from codemods.api.findings import Edit, InsertAfter, ReplaceExpression
from codemods.files.source import SourceModule, walk
from codemods.rewriting.imports import plan_plain
from codemods.store.project import Project

# They write to the very name that they are given, whatever it ends with.
_AS_NAMED = frozenset({"torch.save", "open", "joblib.dump"})


def whole_file(project: Project, module: SourceModule, found: OnDemand) -> list[Edit]:
    """The edits; none where the path is no plain name, the call makes a name of its own from it, or a handler clears it away."""
    del project
    call = found.write.call
    touched = file_call(module, call) if isinstance(call, ast.Call) else None
    if touched is None or qualified(module, touched.call.func) not in _AS_NAMED or not dotted(touched.path):
        return []
    if module.function_of(touched.call) is not found.function:
        return []
    statement = _writing(module, touched.call)
    system = plan_plain(module, "os")
    if statement is None or system is None or not module.is_whole(statement):
        return []
    path = module.text_of(touched.path)
    if is_cleared_away(module, statement, touched.path):
        return []
    if any(isinstance(k.value, ast.Constant) and "a" in str(k.value.value) for k in touched.call.keywords if k.arg == "mode"):
        return []
    mode = touched.call.args[1] if qualified(module, touched.call.func) == "open" and len(touched.call.args) > 1 else None
    if mode is not None and not (isinstance(mode, ast.Constant) and str(mode.value).startswith(("w", "x"))):
        return []
    beside = f'f"{{{path}}}.{{{system.name}.getpid()}}"'
    return [
        ReplaceExpression(module.path, module.span(touched.path), beside),
        InsertAfter(module.path, module.span(statement), f"{system.name}.replace({beside}, {path})"),
        *system.edits,
    ]


def is_cleared_away(module: SourceModule, statement: ast.stmt, path: ast.expr) -> bool:
    """True below a `try` whose handlers, or `finally`, take the file away: they would leave the part that lies beside it."""
    wanted = forms(module, path)
    for up in module.ancestors(statement):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        ends = [*up.handlers, *up.finalbody] if isinstance(up, ast.Try) else []
        calls = (n for end in ends for n in walk(end) if isinstance(n, ast.Call))
        touched = (t for c in calls if (t := file_call(module, c)) is not None and t.act is Act.REMOVES)
        if any(forms(module, t.path) & wanted for t in touched):
            return True
    return False


def _writing(module: SourceModule, call: ast.Call) -> ast.stmt | None:
    """The statement behind which the file is whole: the `with` that opens it, or the call alone."""
    statement = module.statement_of(call)
    if isinstance(statement, ast.With):
        return statement if any(i.context_expr is call for i in statement.items) else None
    return statement if isinstance(statement, ast.Expr) and statement.value is call else None
