"""Is a call of a method's name surely one of another method: by its arguments, or by the class of the object it is called on?"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, name_or_field_bindings
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.model.signatures import takes
from codemods.analysis.names import dotted, family, last
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What leaves a method's arguments as they are.
_KEEPS = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "rank_zero_only", "staticmethod", "classmethod", "abstractmethod"}
)

# What every nn.Module has, and what people call one.
_OF_MODULES = frozenset(
    {"train", "eval", "forward", "to", "cuda", "cpu", "half", "float", "double", "apply", "parameters", "named_parameters",
     "modules", "children", "state_dict", "load_state_dict", "zero_grad", "requires_grad_", "compile", "buffers"}
)  # fmt: skip
_PLAIN = frozenset({"object", "abc", "typing"})
_MODELS = lazy(
    r"model|net(?:work)?$|net_?[a-z0-9]$|module$|backbone|encoder|decoder|generator|discriminator|unet|vae|critic|policy|student|"
    r"teacher|former$|bert|classifier"
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


def is_of_a_module(project: Project, home: SourceModule, owner: ast.ClassDef, module: SourceModule, call: ast.Call) -> bool:
    """True for `self.model.train()` and a loop's own `train`: that is nn.Module's, unless a value is seen to be of the class."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _OF_MODULES or _MODELS.search(owner.name.lower()):
        return False
    if func.attr == "train" and not _says_a_mode(call):
        return False
    facts = class_facts(project, home, owner)
    if not _MODELS.search(last(dotted(func.value)).lower()) or facts.unresolved:
        return False
    if {family(base) for base in facts.external} - _PLAIN:
        return False
    near = {id(site.node) for site in facts.lineage}
    for value in (b.value for b in name_or_field_bindings(module, func.value)):
        made = find_class(project, module, dotted(value.func)) if isinstance(value, ast.Call) and dotted(value.func) else None
        if made is not None and any(id(s.node) in near for s in class_facts(project, made.module, made.node).lineage):
            return False
    return True


def _says_a_mode(call: ast.Call) -> bool:
    """True for what nn.Module's `train` is given: nothing, or a truth value."""
    given = [*call.args, *(k.value for k in call.keywords)]
    named = all(k.arg == "mode" for k in call.keywords)
    return len(given) < 2 and named and all(isinstance(g, (ast.Constant, ast.Attribute)) for g in given)


def of_another_class(
    project: Project, home: SourceModule, module: SourceModule, call: ast.Call, owner: ast.ClassDef
) -> bool:
    """True for `self.name(...)` in a class that has nothing to do with `owner`."""
    if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != "self":
        return False
    place = module.method_of(call)
    if place is None or place[0] is owner:
        return False
    derives = any(site.node is owner for site in class_facts(project, module, place[0]).lineage)
    return not derives and not _is_above(project, home, owner, place[0])


def _is_above(project: Project, home: SourceModule, owner: ast.ClassDef, other: ast.ClassDef) -> bool:
    """True for an ancestor of the class: what it calls on `self` may be the method of its heir."""
    if any(last(dotted(b)) == other.name for b in owner.bases):
        return True
    return any(site.node is other for site in class_facts(project, home, owner).lineage)


def has_its_own(project: Project, home: SourceModule, other: SourceModule, owner: ast.ClassDef, name: str) -> bool:
    """True for a file that has a class with such a method, and brings in nothing of the class's file: a copy of a script."""
    if other.path == home.path:
        return False
    own = [c for c in other.nodes(ast.ClassDef) if name in other.methods_of(c)]
    if not any(owner.name not in {last(dotted(b)) for b in c.bases} for c in own):
        return False
    if any(_is_above(project, home, owner, c) for c in own):
        return False
    stem = stem_of(home.path)
    return other.path not in project.files_importing(stem)
