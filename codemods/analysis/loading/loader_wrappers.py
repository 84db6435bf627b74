"""Objects of the project's own that go through a loader they were handed: prefetchers, and iterators without end."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.class_values import class_values
from codemods.analysis.loading.origins import Origin, made_facts, origins
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_DEPTH = 3  # wrappers round wrappers


def gone_through(project: Project, made: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """The origins, with the loader in the place of an object of the project that goes through it."""
    return tuple(_inner(project, made, _DEPTH))


def _inner(project: Project, made: tuple[Origin, ...], depth: int) -> list[Origin]:
    out: list[Origin] = []
    for origin in made:
        handed = handed_in(project, origin) if depth else None
        out += [origin] if handed is None else _inner(project, origins(project, *handed), depth - 1)
    return out


def handed_in(project: Project, origin: Origin) -> tuple[SourceModule, ast.expr] | None:
    """What the call that makes such an object hands it to go through; None for any other object."""
    facts = made_facts(project, origin)
    if facts is None or facts.unresolved or facts.external or not isinstance(origin.node, ast.Call):
        return None
    name = kept_iterable(project, facts)
    made = facts.method("__init__")
    given = (bind(made[1], origin.node, bound=True) or {}).get(name) if made is not None else None
    return (origin.module, given) if given is not None else None


def kept_iterable(project: Project, facts: ClassFacts) -> str:
    """The parameter of the constructor that its objects go through from one end to the other; "" where there is none.

    `__iter__` goes through one attribute, not in an endless loop, and the constructor alone gives it a value: what it was handed.
    """
    through, made = facts.method("__iter__"), facts.method("__init__")
    if through is None or made is None:
        return ""
    fields = {dotted(n) for n in _sources(through[1])}
    if len(fields) != 1 or not (field := fields.pop()).startswith("self.") or field.count(".") != 1:
        return ""
    given = class_values(project, facts).given.get(field.removeprefix("self."), [])
    if len(given) != 1 or given[0].function is not made[1]:
        return ""
    value, part = given[0].value, given[0].part
    if part is not None:  # `self.loader, self.device = loader, device`
        elements = value.elts if isinstance(value, ast.Tuple) else []
        if part >= len(elements) or any(isinstance(e, ast.Starred) for e in elements):
            return ""
        value = elements[part]
    return value.id if isinstance(value, ast.Name) else ""


def _sources(function: FunctionNode) -> list[ast.expr]:
    """What a method goes through once: with `for` and `yield from`, or by an iterator that it makes."""
    out: list[ast.expr] = []
    for node in walk(function):
        if isinstance(node, ast.For):
            out.append(unpacked(node.iter))
        elif isinstance(node, ast.YieldFrom):
            out.append(unpacked(node.value))
        elif isinstance(node, ast.Call) and dotted(node.func) == "iter" and len(node.args) == 1:
            out.append(unpacked(node.args[0]))
    again = {id(n) for loop in walk(function) if isinstance(loop, ast.While) for n in walk(loop)}
    return [] if any(id(source) in again for source in out) else out
