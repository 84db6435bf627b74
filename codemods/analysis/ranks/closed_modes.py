"""Places under an option or a setting that has, in all runs which a project shows, a value that leads past them.

`if args.find_lr:`, where the option is off and no command gives it; `if self.validate_every > 0:`, where each file of settings
has -1. Whoever turns it on comes there, so such places are left out and counted, not denied. A default alone says little beside a
few commands, which are examples.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.job_files.documented_starts import Start, script_names, starts
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.shown_values import Known, shown_values
from codemods.analysis.ranks.test_outcomes import BOTH, OPERATORS, Outcomes, compared, outcomes
from codemods.analysis.ranks.values_behind import values_behind
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_HOLDERS = lazy(
    r"(?:^|_)(?:args?|opts?|options?|cfg|conf|configs?|hparams|params|flags|arguments|namespace|settings)$", re.IGNORECASE
)
# Who starts a program gives these when a run broke off, or to see more of it, and writes it down nowhere.
_BY_CHANCE = lazy(r"resum|restor|ckpt|checkpoint|continue|debug|verbos|seed|profil|quiet|dry", re.IGNORECASE)
MANY_COMMANDS = 8  # commands of which none gives an option: fewer are examples
_DEPTH = 3


def is_in_closed_mode(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test of options or settings that comes out the other way in every run which the project shows."""
    if not _commands(project, module):
        return False
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below is not up.test:
            wanted = any(below is s for s in up.body)
            if _outcomes(project, module, up.test) == {not wanted}:
                return True
        if isinstance(below, ast.stmt) and any(_ends(project, module, s) for s in above(module, below) if isinstance(s, ast.If)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        below = up
    return False


def _ends(project: Project, module: SourceModule, statement: ast.If) -> bool:
    """True for `if not args.evaluate: return`, which every run takes."""
    return not statement.orelse and leaves(statement.body) and _outcomes(project, module, statement.test) == {True}


def _commands(project: Project, module: SourceModule) -> int:
    """How many commands start programs that have this file; none where one of them is not written out."""

    def count() -> int:
        found = [s for path, of_it in _started(project) if module.path in whole_program(project, path) for s in of_it]
        return 0 if any(s.more for s in found) else len(found)

    return project.keep(("commands that start", module.path), count)


def _started(project: Project) -> tuple[tuple[str, tuple[Start, ...]], ...]:
    """The programs that commands start, each with its commands; none where the script of a command is not told."""

    def build() -> tuple[tuple[str, tuple[Start, ...]], ...]:
        by_name: dict[str, list[Start]] = {}
        for start in starts(project):
            by_name.setdefault(start.script, []).append(start)
        if not by_name or "" in by_name:
            return ()
        found = (
            (path, tuple(s for name in script_names(path) for s in by_name.get(name, ()) if s.path in ("", path)))
            for path in project.python_files
        )
        return tuple((path, of_it) for path, of_it in found if of_it)

    return project.keep("started by commands", build)


def _outcomes(project: Project, module: SourceModule, test: ast.expr) -> Outcomes:
    """How a test can come out in the runs that the project shows."""
    return outcomes(test, lambda part: _of_part(project, module, part))


def _of_part(project: Project, module: SourceModule, test: ast.expr) -> Outcomes:
    if isinstance(test, ast.Compare):
        return _compared(project, module, test)
    values = _values(project, module, test, _DEPTH)
    return BOTH if not values else frozenset(bool(v) for v in values)


def _compared(project: Project, module: SourceModule, test: ast.Compare) -> Outcomes:
    if len(test.ops) != 1 or (ask := OPERATORS.get(type(test.ops[0]))) is None:
        return BOTH
    left, right = (_values(project, module, side, _DEPTH) for side in (test.left, test.comparators[0]))
    if not left or not right:
        return BOTH
    return compared(ask, left, right)


def _values(project: Project, module: SourceModule, node: ast.expr, depth: int) -> tuple[Known, ...]:
    """The values of an expression of options and settings; none where they cannot be told."""
    if isinstance(node, ast.Constant):
        return (node.value,) if node.value is None or isinstance(node.value, (str, int, float)) else ()
    if (read := _read(node)) is not None:
        name, default = read
        found = shown_values(project, name) if not _BY_CHANCE.search(name) else None
        if found is None or not (found.written or _commands(project, module) >= MANY_COMMANDS):
            return ()
        more = _values(project, module, default, 0) if default is not None else ()
        return () if default is not None and not more else (*found.values, *more)
    if depth <= 0 or not isinstance(node, (ast.Name, ast.Attribute)) or not name_or_field_bindings(module, node):
        return ()
    return _values_behind(project, module, node, depth)


def _values_behind(project: Project, module: SourceModule, node: ast.expr, depth: int) -> tuple[Known, ...]:
    """The values of a name or a field, each of which has to be told."""
    out: list[Known] = []
    behind = values_behind(project, module, node, constants=True)
    if all(isinstance(value.node, ast.Constant) for value in behind):
        return ()  # a constant of the file: whoever runs it changes the line
    for value in behind:
        found = _values(project, value.module, value.node, depth - 1) if value.node is not node else ()
        if not found:
            return ()
        out += found
    return tuple(out)


def _read(node: ast.expr) -> tuple[str, ast.expr | None] | None:
    """The option that is read, and what stands for one that is not there: `args.x`, `cfg["a"]["x"]`, `cfg.get("x", 1)`."""
    if isinstance(node, ast.Attribute):
        return (node.attr, None) if _is_holder(node.value) else None
    if isinstance(node, ast.Subscript):
        name = _key(node.slice)
        return (name, None) if name and _is_holder(node.value) else None
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    given = node.args
    if dotted(node.func) == "getattr" and len(given) == 3:
        holder, given = given[0], given[1:]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        holder = node.func.value
    else:
        return None
    name = _key(given[0]) if given else ""
    return (name, given[1] if len(given) > 1 else ast.Constant(None)) if name and _is_holder(holder) else None


def _key(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_holder(node: ast.expr) -> bool:
    """True for options and settings by their name, and for a part of settings: `cfg.train`, `cfg["train"]`."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute) and _HOLDERS.search(node.attr):
            return True
        node = node.value
    return isinstance(node, ast.Name) and _HOLDERS.search(node.id) is not None
