"""Objects that hold a LightningModule and log through it: `self.model.log(...)` of a task that the module made with `self`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.logged.kept_objects import handed_to_init, keepings, makings
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Held:
    """A LightningModule behind `receiver`. facts: its class, None for whichever module a callback is given. bound: it is the
    module's own `log` that was handed on. path and line: where that is seen, in the class `owner`."""

    receiver: str
    facts: ClassFacts | None
    path: str
    line: int
    bound: bool = False
    owner: ClassFacts | None = None

    @property
    def text(self) -> str:
        name = self.facts.lineage[0].name if self.facts is not None else "the module of a callback"
        return f"{self.receiver} is {name} ({self.path}:{self.line})"


@record
class _Given:
    """An expression that is a LightningModule, or the `log` of one."""

    module: SourceModule
    node: ast.expr
    facts: ClassFacts | None
    bound: bool = False


def held_by(
    project: Project, module: SourceModule, call: ast.Call, role: Role = Role.LIGHTNING_MODULE
) -> Held | None:
    """The LightningModule (or other object of that role) that a `X.log(...)` call speaks to, where X is no `self` of one."""
    if not isinstance(call.func, ast.Attribute) or is_test_file(module.path):
        return None
    receiver = dotted(call.func.value)
    owner = module.class_of(call)
    found: _Given | None = None
    if receiver.startswith("self.") and receiver.count(".") == 1 and owner is not None:
        found = _attribute(project, role, class_facts(project, module, owner), receiver[5:])
        found = found if found is not None and not found.bound else None
    elif receiver == "self" and owner is not None:
        facts = class_facts(project, module, owner)
        if not facts.is_a(role) and facts.method(call.func.attr) is None:
            found = _attribute(project, role, facts, call.func.attr)
            found = found if found is not None and found.bound else None
    elif receiver and "." not in receiver and (function := module.function_of(call)) is not None:
        found = _parameter(project, role, module, function, receiver)
    if found is None:
        return None
    around = found.module.class_of(found.node)
    keeper = class_facts(project, found.module, around) if around is not None else found.facts
    return Held(receiver, found.facts, found.module.path, found.node.lineno, found.bound, keeper)


def _attribute(project: Project, role: Role, facts: ClassFacts, name: str) -> _Given | None:
    """What shows that `self.name` is a LightningModule, or the log of one."""
    start = facts.lineage[0]
    key = ("held module", role, start.module.path, start.node.lineno, name)

    def build() -> _Given | None:
        for given in class_values(project, facts).given.get(name, ()):
            if (found := _given(project, role, given)) is not None:
                return found
        return next(_set_from_outside(project, role, start, name), None)

    return project.memo(key, build)


def _given(project: Project, role: Role, given: Given) -> _Given | None:
    if given.part is not None or given.function is None:
        return None
    direct = _module_at(project, role, given.site.module, given.value)
    if direct is not None or not isinstance(given.value, ast.Name):
        return direct
    return _parameter(project, role, given.site.module, given.function, given.value.id)


def _parameter(
    project: Project, role: Role, module: SourceModule, function: FunctionNode, name: str
) -> _Given | None:
    """What the callers of a function hand in for a parameter, or what its annotation says."""
    spec = function.args
    parameter = next((a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == name), None)
    if parameter is None or parameter.arg in ("self", "cls"):
        return None
    if parameter.annotation is not None and _names_a_module(project, role, module, parameter.annotation):
        return _Given(module, parameter.annotation, _annotated(project, role, module, parameter.annotation))
    if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(function)):
        return None
    key = ("module handed in", role, module.path, function.lineno, name)
    return project.memo(key, lambda: next(_from_callers(project, role, module, function, name), None))


def _from_callers(
    project: Project, role: Role, module: SourceModule, function: FunctionNode, name: str
) -> Iterator[_Given]:
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef) and function.name == "__init__":
        for making in makings(project, ClassSite(module, owner)):
            node = handed_to_init(project, making, function, name)
            found = _module_at(project, role, making.module, node) if node is not None else None
            if found is not None:
                yield found
        return
    for use in uses_of(project, module, function).calls:
        node = arguments_of(use.call, function, skip_self=isinstance(owner, ast.ClassDef)).get(name)
        found = _module_at(project, role, use.module, node) if node is not None and not is_test_file(use.module.path) else None
        if found is not None:
            yield found


def _set_from_outside(project: Project, role: Role, site: ClassSite, name: str) -> Iterator[_Given]:
    """`self.head.host = self`, `self.head.__dict__["host"] = self` in the class that keeps the object."""
    for keeping in keepings(project, site):
        wanted = (f"self.{keeping.field}.{name}", f"self.{keeping.field}.__dict__")
        for place in keeping.owner.lineage:
            for assign in place.module.nodes(ast.Assign):
                for target in assign.targets:
                    plain = dotted(target) == wanted[0]
                    if not plain and isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                        plain = dotted(target.value) == wanted[1] and target.slice.value == name
                    if plain and place.module.class_of(assign) is place.node:
                        found = _module_at(project, role, place.module, assign.value)
                        yield from [found] if found is not None else []


def _module_at(project: Project, role: Role, module: SourceModule, node: ast.expr) -> _Given | None:
    """`self` of a LightningModule, `self.log` of one, the `pl_module` of a callback's hook."""
    bound = isinstance(node, ast.Attribute) and node.attr in ("log", "log_dict") and dotted(node.value) == "self"
    name = "self" if bound else node.id if isinstance(node, ast.Name) else ""
    owner = module.class_of(node) if name in ("self", "pl_module") else None
    if owner is None:
        return None
    facts = class_facts(project, module, owner)
    if name == "self" and facts.is_a(role):
        return _Given(module, node, facts, bound)
    if role is Role.LIGHTNING_MODULE and name == "pl_module" and facts.is_a(Role.LIGHTNING_CALLBACK):
        return _Given(module, node, None)
    return None


def _names_a_module(project: Project, role: Role, module: SourceModule, annotation: ast.expr) -> bool:
    if external_role(qualified(module, annotation)) is role:
        return True
    return _annotated(project, role, module, annotation) is not None


def _annotated(project: Project, role: Role, module: SourceModule, annotation: ast.expr) -> ClassFacts | None:
    quoted = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
    written = str(annotation.value) if quoted else dotted(annotation)  # type: ignore[attr-defined]
    site = find_class(project, module, written) if written else None
    facts = class_facts(project, site.module, site.node) if site is not None else None
    return facts if facts is not None and facts.is_a(role) else None
