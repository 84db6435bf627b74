"""Generators that an object has for itself, with the same seed on every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.seeds import depends_on_rank
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import line_of, walk
from codemods.store.project import Project

_GENERATORS = frozenset({"Random", "default_rng", "RandomState"})


def equal_generator(project: Project, origin: Origin) -> bool:
    """True for `torch.Generator(...).manual_seed(seed)` with a seed that is the same on every rank."""
    call = origin.node
    if origin.path or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    if call.func.attr != "manual_seed" or not isinstance(call.func.value, ast.Call):
        return False
    return last(dotted(call.func.value.func)) == "Generator" and not depends_on_rank(project, origin.module, call.args[0])


def parts_of(project: Project, origin: Origin) -> Iterator[Origin]:
    """The objects that a data set is made with."""
    if isinstance(origin.node, ast.Call) and made_class(project, origin) is not None:
        for given in (*origin.node.args, *(k.value for k in origin.node.keywords)):
            for part in origins(project, origin.module, given) if isinstance(given, (ast.Name, ast.Call, ast.Attribute)) else ():
                if made_class(project, part) is not None:
                    yield part


def draws_from_own(project: Project, site: ClassSite, made: Origin) -> int | None:
    """The line where `__call__` of a class draws from a generator that its constructor seeds with an argument; None elsewhere."""
    facts = class_facts(project, site.module, site.node)
    method = facts.method("__call__")
    if method is None or facts.is_a(Role.NN_MODULE):
        return None
    for node in walk(method[1]):
        holder = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if not isinstance(holder, ast.Attribute) or dotted(holder.value) != "self":
            continue
        generators = origins(project, method[0].module, holder)
        if generators and all(_seeded_alike(project, o) for o in generators):
            return line_of(node)
    return None


def _seeded_alike(project: Project, origin: Origin) -> bool:
    call = origin.node
    if not origin.known or origin.path or not isinstance(call, ast.Call) or not call.args:
        return False
    name = qualified(origin.module, call.func)
    known = name.startswith(("random.", "numpy.random.")) and last(name) in _GENERATORS
    return known and not depends_on_rank(project, origin.module, call.args[0])
