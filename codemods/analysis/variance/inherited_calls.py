"""What a method of a base class hands to a method that its heir has written anew."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import parameters
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Value
from codemods.store.project import Project


def handed_to_the_heir(project: Project, caller: State, call: ast.Call, site: FunctionSite, name: str) -> Value | None:
    """What `self.evaluate(loader)` of an inherited method hands to the `evaluate` of the heir; None where it does not call that.

    The call was read as one of the base's own method. An object of the heir runs it, too, and comes to the heir's method, unless
    the heir has the calling method anew as well.
    """
    owner, base = site.module.parent(site.node), caller.targets.get(id(call))
    if base is None or caller.function is None or not isinstance(owner, ast.ClassDef) or base.node.name != site.node.name:
        return None
    if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != "self":
        return None
    facts = class_facts(project, site.module, owner)
    inherited = facts.method(caller.function.name)
    above = {id(above.node) for above in facts.lineage[1:]}
    if inherited is None or inherited[1] is not caller.function or id(base.module.parent(base.node)) not in above:
        return None
    given = caller.given.get(id(call), {})
    return given.get(name, given.get(_at_its_place(base, site, name)))


def _at_its_place(base: FunctionSite, site: FunctionSite, name: str) -> str:
    """The parameter that stands in the base's method where the heir's has `name`; "" where there is none."""
    own, above = parameters(site.node), parameters(base.node)
    index = own.index(name) if name in own else len(above)
    return above[index] if index < len(above) else ""
