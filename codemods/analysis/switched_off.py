"""Programs that turn their own switch for several processes off: `args.distributed = False`, whatever the command line says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.literals import is_false
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SWITCH = lazy(r"(?:^|_)(?:distributed|distribution|ddp|multi_gpu|use_dist|is_dist)(?:_|$)", 2)
_OFF = (b"= False", b"=False")


def is_switched_off(project: Project, module: SourceModule) -> bool:
    """True where a script sets the switch to False for good, tests it, and nothing of the project sets it to anything else."""
    if not any(module.holds(word) for word in _OFF):
        return False
    for statement in module.nodes(ast.Assign):
        target = statement.targets[0]
        name = dotted(target)
        if not isinstance(target, ast.Attribute) or not _SWITCH.search(last(name)) or not is_false(statement.value):
            continue
        if _is_of_the_script(module, statement) and _is_tested(module, name) and not _is_set_elsewhere(project, target.attr):
            return True
    return False


def _is_of_the_script(module: SourceModule, statement: ast.stmt) -> bool:
    """True at the top of the file, and in what it runs as a program."""
    ups = [up for up in module.ancestors(statement) if not isinstance(up, ast.Module)]
    return all(is_main_block(up) for up in ups)


def _is_tested(module: SourceModule, name: str) -> bool:
    tests = [n.test for n in module.nodes(ast.If)] + [n.test for n in module.nodes(ast.IfExp)]
    return any(dotted(part) == name for test in tests for part in ast.walk(test) if isinstance(part, ast.Attribute))


def _is_set_elsewhere(project: Project, attribute: str) -> bool:
    """True where any file gives the attribute another value, by an assignment or by its name in a text."""
    return any(_sets(m, attribute) for p in project.files_containing(attribute.encode()) if (m := project.module(p)) is not None)


def _sets(module: SourceModule, attribute: str) -> bool:
    for statement in module.nodes(ast.Assign):
        named = any(isinstance(t, ast.Attribute) and t.attr == attribute for t in _targets(statement))
        if named and not is_false(statement.value):
            return True
    given = (a for call in module.calls_named("setattr") for a in call.args)
    return any(isinstance(a, ast.Constant) and a.value == attribute for a in given)


def _targets(statement: ast.Assign) -> Iterator[ast.expr]:
    for target in statement.targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)
