"""Does the program set its loggers up by the rank: a level, or the handlers? Then a plain `logger.info` is seen once already."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.output.effects import names_rank
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import Ranks, decorated_ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SET_UPS = ("basicConfig", "addHandler", "dictConfig", "fileConfig")
_MAIN = lazy(r"main_?proc|is_?(?:main|master|primary)|master|global_zero|process_zero")


def has_levels_by_rank(project: Project) -> bool:
    """True for `basicConfig(level=INFO if rank == 0 else WARNING)`, and for `setLevel` under a test of the rank."""
    return project.keep("levels by rank", lambda: _find(project))


def has_handlers_on_zero_alone(project: Project) -> bool:
    """True where every set-up of `logging` that the project makes is of rank 0: without a handler the others drop what is below
    WARNING (logging.lastResort)."""
    return project.keep("handlers on zero", lambda: _all_on_zero(project))


def _all_on_zero(project: Project) -> bool:
    paths = {p for word in _SET_UPS for p in project.files_containing(f"{word}(".encode()) if not is_test_file(p)}
    modules = [m for p in sorted(paths) if (m := project.module(p)) is not None]
    calls = [(m, call) for m in modules for call in m.calls_named(*_SET_UPS) if not _adds_nothing(call)]
    return bool(calls) and all(ranks_reaching(project, m, call) in (Ranks.ZERO, Ranks.LOCAL_ZERO) for m, call in calls)


def _adds_nothing(call: ast.Call) -> bool:
    """True for `logger.addHandler(logging.NullHandler())`, which the other ranks get."""
    return any(isinstance(a, ast.Call) and last(dotted(a.func)) == "NullHandler" for a in call.args)


def _find(project: Project) -> bool:
    paths = {p for word in (b"basicConfig(", b"setLevel(") for p in project.files_containing(word)}
    for path in sorted(paths):
        if is_test_file(path) or (module := project.module(path)) is None:
            continue
        if any(_is_by_rank(project, module, call) for call in module.calls_named("basicConfig", "setLevel")):
            return True
    return False


def _is_by_rank(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if last(dotted(call.func)) == "setLevel" or getattr(call.func, "attr", "") == "setLevel":
        if ranks_at(module, call, project=project).some or _is_without_a_result(project, module, call):
            return True
        levels = call.args[:1] or [k.value for k in call.keywords]
    else:
        levels = [k.value for k in call.keywords if k.arg == "level"]
    texts = [origin_text(module, level) for level in levels]
    return any(names_rank(t) or _MAIN.search(t) for t in texts)


def _is_without_a_result(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True under `if logger is None:`, where `logger` is what a function gave that rank 0 alone runs: the others have None."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        if isinstance(up, ast.If) and below in up.body and (name := _asked_for_none(up.test)) is not None:
            given = [b.value for b in bindings_of(module, name)]
            if given and all(isinstance(v, ast.Call) and _is_of_rank_zero(project, module, v) for v in given):
                return True
        below = up
    return False


def _asked_for_none(test: ast.expr) -> ast.Name | None:
    """`logger` of `logger is None` and of `not logger`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand if isinstance(test.operand, ast.Name) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Is):
        return None
    right = test.comparators[0]
    is_none = isinstance(right, ast.Constant) and right.value is None
    return test.left if is_none and isinstance(test.left, ast.Name) else None


def _is_of_rank_zero(project: Project, module: SourceModule, call: ast.Call) -> bool:
    site = called_function(project, module, call)
    return site is not None and decorated_ranks(site.module, site.node, project=project) is Ranks.ZERO
