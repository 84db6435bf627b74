"""Who reads a file that an object makes sure of as it is made: another method of it, or of an heir, that is called next."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassSite, class_facts, first_subclasses
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.file_flow import Step, ranks_in_function, steps_in
from codemods.analysis.files.loose_ends import by_a_setting
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.uses import constructions
from codemods.files.source import FunctionNode, SourceModule, line_of, stands_above, walk_scope
from codemods.store.project import Project

_HEIRS = 12
_FIELD = "<S:"


def of_other_methods(
    project: Project, module: SourceModule, function: FunctionNode, wanted: frozenset[str]
) -> Iterator[Step]:
    """What a method reads by the field that the constructor makes sure of, where nobody waits between the two."""
    owner = module.parent(function)
    fields = frozenset(form for form in wanted if form.startswith(_FIELD))
    if not fields or not isinstance(owner, ast.ClassDef) or not _is_run_by_constructor(project, module, owner, function):
        return
    base = ClassSite(module, owner)
    for site in (base, *first_subclasses(project, base, _HEIRS)):
        if not _is_made(project, site):
            continue
        for name, method in site.methods().items():
            if name.startswith("__") or method is function:
                continue
            read = _first_read(list(steps_in(project, site.module, list(method.body))), fields)
            if read is not None and _is_called_next(project, name):
                yield read


def _is_made(project: Project, site: ClassSite) -> bool:
    """True for a class of which an object is made, in the code or by what a setting names."""
    made = constructions(project, site.module, site.node)
    calls = made.outside_tests().calls if made is not None else ()
    return bool(calls) or by_a_setting(project, site.module, site.node) is not None


def _is_run_by_constructor(project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode) -> bool:
    """True for `__init__`, and for a method that it calls on itself and behind which it waits for nobody."""
    made = class_facts(project, module, owner).method("__init__")
    if made is None or made[0].module is not module:
        return False
    if made[1] is function:
        return not _waits(steps_in(project, module, list(function.body)))
    calls = [n for n in walk_scope(made[1]) if isinstance(n, ast.Call) and dotted(n.func) == f"self.{function.name}"]
    return bool(calls) and not _waits(steps_in(project, module, list(made[1].body)))


def _waits(steps: Iterator[Step]) -> bool:
    return any(step.act is None for step in steps)


def _first_read(steps: Sequence[Step], fields: frozenset[str]) -> Step | None:
    """The read of one of the fields; None where the method waits above it, and where it is not every rank's."""
    for step in steps:
        if step.act is None:
            return None
        if step.act in (Act.READS, Act.LOADS) and step.forms & fields:
            return step if step.ranks is Ranks.ALL else None
    return None


def _is_called_next(project: Project, name: str) -> bool:
    """True where a function calls the method on what it has made itself, and no rank waits for others between the two."""
    for path in project.files_containing(f".{name}(".encode()):
        module = None if is_test_file(path) else project.module(path)
        for call in module.calls_named(name) if module is not None else ():
            if module is not None and _follows_the_making(project, module, call):
                return True
    return False


def _follows_the_making(project: Project, module: SourceModule, call: ast.Call) -> bool:
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    bound = bindings_of(module, held) if isinstance(held, ast.Name) and held.id != "self" else []
    if len(bound) != 1 or bound[0].part or not isinstance(bound[0].value, ast.Call):
        return False
    if ranks_in_function(project, module, call) is not Ranks.ALL:
        return False
    made, function = bound[0].node, module.function_of(call)
    body = function.body if function is not None else module.tree.body
    between = [s for s in body if stands_above(made, s) and line_of(s) <= line_of(call)]
    return module.function_of(made) is function and not _waits(steps_in(project, module, between))
