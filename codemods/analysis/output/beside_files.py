"""Lines that speak of a file which every rank writes beside them: the file is the error, a guard round the line would hide it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.functions import functions_by_name
from codemods.analysis.names import dotted
from codemods.analysis.output.effects import Effect, Kind, effects_of, effects_of_function
from codemods.analysis.output.output_runs import Run, makes_folder
from codemods.analysis.positions import above, behind
from codemods.analysis.ranks.rank_guards import decorated_ranks, ranks_at
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SPOKEN = lazy(
    r"\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing|ten)|wrote|stor(?:e|es|ed|ing)|dump\w*|buil[dt]\w*|export\w*|creat(?:e|ed|ing)|"
    r"generat(?:e|ed|ing)|checkpoints?|files?|keeps?|kept|convert(?:ed|ing)?|"
    r"outputs? (?:is |are )?(?:complete|done|finish)\w*)\b", re.IGNORECASE,
)  # fmt: skip
_SAVES = lazy(r"(?:^|_)(?:save|dump|export|store|write)(?:_|$)")
_MANY = 4  # files that define a method of one name
_LONGEST = 60  # lines of a function that does nothing but write: a whole training writes somewhere, too


def stands_beside_files(project: Project, module: SourceModule, run: Run) -> bool:
    """True where the lines speak of a file, and the statement above or below them writes one on every rank.

    Folders, names and other lines may stand in between.
    """
    if not any(_SPOKEN.search(text) for s in run.statements for text in _texts(s)):
        return False
    before = next((s for s in reversed(above(module, run.first)) if not _is_passed(module, s)), None)
    after = next((s for s in behind(module, run.last) if not _is_passed(module, s)), None)
    return any(s is not None and _writes(project, module, s) for s in (before, after))


def _texts(statement: ast.stmt) -> Iterator[str]:
    return (n.value for n in walk(statement) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _is_passed(module: SourceModule, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return not any(isinstance(n, ast.Call) and dotted(n.func) not in ("hasattr", "getattr") for n in walk(statement.value))
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    said = called is not None and (dotted(called) == "print" or (isinstance(called, ast.Attribute) and called.attr == "close"))
    return said or makes_folder(module, statement)


def _writes(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    if ranks_at(module, statement, project=project).some:
        return False
    if any(_saves_by_name(project, module, n) for n in walk(statement) if isinstance(n, ast.Call)):
        return True
    written = [e for e in effects_of(project, module, [statement]).of(Kind.FILE) if not e.guarded and not e.own]
    if not written:
        return False
    near = list(_near(project, module, statement))
    return any(_is_in(effect, *place) for effect in written for place in near)


def _saves_by_name(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `self.model.save_networks(epoch)` of an object that is not followed: every method of that name writes a file."""
    func = call.func
    if not isinstance(func, ast.Attribute) or not _SAVES.search(func.attr) or called_function(project, module, call) is not None:
        return False
    if ranks_at(module, call, project=project).some:
        return False
    return project.keep(("methods that write", func.attr), lambda: _all_write(project, func.attr))


def _all_write(project: Project, name: str) -> bool:
    files = project.files_containing(f"def {name}(".encode())
    if not 0 < len(files) <= _MANY:
        return False
    homes = [m for p in files if (m := project.module(p)) is not None]
    found = [(m, f) for m in homes for f in functions_by_name(m).get(name, ()) if (f.end_lineno or 0) - f.lineno <= _LONGEST]
    return bool(found) and all(_writes_for_all(project, m, f) for m, f in found)


def _writes_for_all(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    if decorated_ranks(module, function, project=project).some:
        return False
    return any(not e.guarded and not e.own for e in effects_of_function(project, module, function).of(Kind.FILE))


def _near(project: Project, module: SourceModule, statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """The statement itself, and the short functions that it calls."""
    yield module.path, statement
    for call in (n for n in walk(statement) if isinstance(n, ast.Call)):
        site = called_function(project, module, call)
        if site is not None and (site.node.end_lineno or 0) - site.node.lineno <= _LONGEST:
            yield site.module.path, site.node


def _is_in(effect: Effect, path: str, node: ast.stmt) -> bool:
    return effect.path == path and node.lineno <= effect.line <= (node.end_lineno or node.lineno)
