"""Programs that turn their own switch for several processes off: `args.distributed = False`, whatever the command line says,
and `ddp = False` at the top of a script.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.bindings import bindings_at_top
from codemods.analysis.conditions import conjuncts, is_main_block
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
    return project.keep(("switched off", module.path), lambda: _is_off(project, module))


def _is_off(project: Project, module: SourceModule) -> bool:
    for statement in module.nodes(ast.Assign):
        target = statement.targets[0]
        name = dotted(target)
        if not isinstance(target, ast.Attribute) or not _SWITCH.search(last(name)) or not is_false(statement.value):
            continue
        if _is_of_the_script(module, statement) and _is_tested(module, name) and not _is_set_elsewhere(project, target.attr):
            return True
    return any(_is_constant_off(project, module, s) for s in module.tree.body if isinstance(s, ast.Assign))


def _is_constant_off(project: Project, module: SourceModule, statement: ast.Assign) -> bool:
    """True for a name of the file that nothing gives another value, and over which all that several processes share stands."""
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not _SWITCH.search(target.id) or not is_false(statement.value):
        return False
    if len(bindings_at_top(module, target.id)) != 1 or any(target.id in g.names for g in module.nodes(ast.Global)):
        return False
    if module.calls_named("exec", "globals", "vars") or not all(_is_under(module, c, target.id) for c in _joining(module)):
        return False
    stem = basename(module.path).removesuffix(".py")
    return bool(_joining(module)) and not project.files_containing(f"{stem}.{target.id}".encode())


def _joining(module: SourceModule) -> list[ast.Call]:
    """What makes a process one of several, and what they need."""
    words = ("init_process_group", "DistributedDataParallel", "DDP", "DistributedSampler", "spawn", "Accelerator", "Trainer")
    return module.calls_named(*words)


def _is_under(module: SourceModule, node: ast.AST, name: str, depth: int = 2) -> bool:
    """True in the arm of a test of the name that is taken where it is true, and in a function that is called nowhere else."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            plain = depth > 0 and isinstance(module.parent(up), ast.Module) and len(module.reads_of(up.name)) == len(
                calls := module.calls_named(up.name)
            )
            return plain and all(_is_under(module, c, name, depth - 1) for c in calls)
        if isinstance(up, ast.If) and any(below is s for s in up.body):
            if any(isinstance(part, ast.Name) and part.id == name for part in conjuncts(up.test)):
                return True
        below = up
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
