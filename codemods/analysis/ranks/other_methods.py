"""Is a call of a method's name surely one of another method: by its arguments, or by the class of the object it is called on?"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.model.signatures import takes
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

# What leaves a method's arguments as they are.
_KEEPS = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "rank_zero_only", "staticmethod", "classmethod", "abstractmethod"}
)


def cannot_take(function: FunctionNode, call: ast.Call) -> bool:
    """True where Python would refuse the call: `self.net.train()` is no call of `def train(self, loader, epochs)`."""
    decorators = {last(dotted(d.func if isinstance(d, ast.Call) else d)) for d in function.decorator_list}
    if decorators - _KEEPS:
        return False
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value)[:1].isupper():
        return False  # `Base.train(self, loader)` hands the object over, too
    return not takes(function, call, bound="staticmethod" not in decorators)


def is_of_another_object(project: Project, home: SourceModule, owner: ast.ClassDef, module: SourceModule, call: ast.Call) -> bool:
    """True for `trainer.run()` where all that is given to `trainer` makes objects of classes without `owner` among their bases.

    Nor may one of them be a base of `owner`: what makes it may hand back an heir.
    """
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    bound = bindings_of(module, holder) if isinstance(holder, ast.Name) else []
    if not bound or any(b.part or b.parameter or not isinstance(b.node, (ast.Assign, ast.AnnAssign)) for b in bound):
        return False
    above = {id(site.node) for site in class_facts(project, home, owner).lineage}
    for value in (b.value for b in bound):
        made = find_class(project, module, dotted(value.func)) if isinstance(value, ast.Call) and dotted(value.func) else None
        if made is None or id(made.node) in above:
            return False
        if any(site.node is owner for site in class_facts(project, made.module, made.node).lineage):
            return False
    return True
