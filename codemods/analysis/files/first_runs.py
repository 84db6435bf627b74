"""What stands under the question for a missing file, where a script of Lightning reaches it above `fit`.

`data.setup("fit")` in the script, and the Trainer's own call of `setup` behind it: the first process is through with the former,
and has made the file, before Lightning starts the others.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.asked_paths import asked
from codemods.analysis.files.before_fit import is_above_fit
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_CLIMBS = 4
_ROLES = (Role.LIGHTNING_DATA_MODULE, Role.LIGHTNING_MODULE)


def is_of_a_first_run(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where each way to `node` asks for a file that is missing, and the first process comes that way before the others.

    A switch beside the question (`or self.force`) is the user's, for once.
    """
    if not project.files_containing(b".fit(") or not project.files_containing(b"ightning"):
        return False
    return _is_first(project, module, node, False, frozenset())


def _is_first(project: Project, module: SourceModule, node: ast.AST, asks: bool, seen: frozenset[int]) -> bool:
    asks = asks or _is_under_the_question(project, module, node)
    function = module.function_of(node)
    if asks and is_above_fit(project, module, node):
        return True
    if function is None or id(function) in seen or len(seen) >= _CLIMBS:
        return False
    if _is_setup(project, module, function):
        return asks and any(is_above_fit(project, s.module, s.call) for s in callers_of(project, module, function))
    used = uses_of(project, module, function).outside_tests()
    if used.handed_on or used.more:
        return False
    sites = [s for s in callers_of(project, module, function) if not is_test_file(s.module.path)]
    return bool(sites) and all(_is_first(project, s.module, s.call, asks, seen | {id(function)}) for s in sites)


def _is_setup(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    owner = module.parent(function)
    if function.name != "setup" or not isinstance(owner, ast.ClassDef):
        return False
    facts = class_facts(project, module, owner)
    return any(facts.is_a(role) for role in _ROLES)


def _is_under_the_question(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under `if not os.path.exists(path)`, and behind `if os.path.exists(path): return …`."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below is not up.test:
            if _says_missing(project, module, up.test, holds=any(s is below for s in up.body)):
                return True
        for statement in above(module, below):
            if isinstance(statement, ast.If) and leaves(statement.body):
                if _says_missing(project, module, statement.test, holds=False):
                    return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def _says_missing(project: Project, module: SourceModule, test: ast.expr, *, holds: bool) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _says_missing(project, module, test.operand, holds=not holds)
    if isinstance(test, ast.BoolOp):
        return any(_says_missing(project, module, part, holds=holds) for part in test.values)
    calls = [n for n in walk(test) if isinstance(n, ast.Call)]
    return not holds and len(calls) == 1 and test is calls[0] and any(True for _ in asked(project, module, test))
