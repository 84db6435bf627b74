"""Which attributes of a class are torchmetrics objects, by the assignment that makes them."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

DEPTH = 6
_CONTAINERS = frozenset({"ModuleList", "ModuleDict", "list", "dict", "tuple", "OrderedDict"})
_SAME_OBJECT = frozenset({"clone", "to", "cuda", "cpu", "deepcopy", "copy"})


@record
class Made:
    """The assignment that shows what an attribute is: the class's written name, and where.

    each_step: it reduces over the ranks whenever it is called (`dist_sync_on_step`), so what it returns is global.
    """

    text: str
    path: str
    line: int
    each_step: bool = False


def self_attribute(node: ast.AST) -> str:
    """`x` for `self.x` (also for `self.x[...]` and `self.x.y`, whose first attribute counts), "" otherwise."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr if node.value.id == "self" else ""
        node = node.value
    return ""


def metric_attribute(project: Project, facts: ClassFacts, value: ast.expr) -> Made | None:
    """What makes `self.x` a torchmetrics object, or None where that is not shown.

    Looks through ModuleDict and ModuleList: `self.metrics["acc"]` is one if all that is put in are.
    """
    if isinstance(value, ast.Call):
        return None
    name = self_attribute(value)
    chain = value.value if isinstance(value, ast.Subscript) else value
    if not name or (isinstance(chain, ast.Attribute) and dotted(chain) != f"self.{name}"):
        entry = chain.attr if isinstance(chain, ast.Attribute) and dotted(chain) == f"self.{name}.{chain.attr}" else ""
        return metric_named(project, facts, name) if entry in _entries(project, facts, name) else None
    return metric_named(project, facts, name)


def _entries(project: Project, facts: ClassFacts, name: str) -> set[str]:
    """The names of what `self.name` holds, where that is a MetricCollection or a ModuleDict made of a literal dictionary."""
    found: set[str] = set()
    for given in class_values(project, facts).given.get(name, []):
        made = given.value
        if isinstance(made, ast.Call) and last(dotted(made.func)) in ("MetricCollection", "ModuleDict"):
            dicts = [a for a in made.args if isinstance(a, ast.Dict)]
            found |= {str(k.value) for d in dicts for k in d.keys if isinstance(k, ast.Constant)}
    return found


def metric_named(project: Project, facts: ClassFacts, name: str) -> Made | None:
    """What makes `self.name` a torchmetrics object: every value that the class gives it is one (None apart)."""
    start = facts.lineage[0]
    key = ("metric attribute", start.module.path, start.node.lineno, name)

    def build() -> Made | None:
        known = class_values(project, facts)
        values = [g for g in [*known.given.get(name, []), *known.items.get(name, [])] if not _is_empty(g.value)]
        found = [None if g.part is not None else metric_expression(project, g.site, g.value, g.function) for g in values]
        return found[0] if found and all(found) else None

    return project.memo(key, build)


def _is_empty(value: ast.expr) -> bool:
    """None, and a collection that is filled later."""
    if isinstance(value, ast.Call):
        return last(dotted(value.func)) in _CONTAINERS and not value.args and not value.keywords
    if isinstance(value, (ast.Dict, ast.List)):
        return not _parts(value)
    return isinstance(value, ast.Constant) and value.value is None


def loose_metric(project: Project, facts: ClassFacts) -> Made | None:
    """A torchmetrics object that `setattr` gives to attributes whose names are worked out."""
    for given in class_values(project, facts).loose:
        if found := metric_expression(project, given.site, given.value, given.function):
            return found
    return None


def metric_expression(
    project: Project, site: ClassSite, value: ast.expr, function: FunctionNode | None = None, depth: int = 0
) -> Made | None:
    """What in `value` is a torchmetrics object: a constructor, `.clone()` of one, a container of them, a local name."""
    if depth > DEPTH:
        return None
    if isinstance(value, ast.Call):
        return _call(project, site, value, function, depth)
    local = isinstance(value, ast.Name) and function is not None
    inner = _bound(value.id, function) if local else _parts(value)  # type: ignore[attr-defined, arg-type]
    parts = [metric_expression(project, site, i, function, depth + 1) for i in inner]
    return parts[0] if parts and all(parts) else None


def _bound(name: str, function: FunctionNode) -> list[ast.expr]:
    found = []
    for node in walk_scope(function):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr) and any(isinstance(t, ast.Name) and t.id == name for t in targets):
            found.append(value)
    return found


def _parts(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.Dict):
        return list(value.values)
    if isinstance(value, (ast.List, ast.Tuple)):
        return list(value.elts)
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return [value.elt]
    if isinstance(value, ast.DictComp):
        return [value.value]
    if isinstance(value, ast.IfExp):
        return [side for side in (value.body, value.orelse) if not _is_empty(side)]
    return []


def _call(project: Project, site: ClassSite, value: ast.Call, function: FunctionNode | None, depth: int) -> Made | None:
    if isinstance(value.func, ast.Attribute) and value.func.attr in _SAME_OBJECT:
        receiver = value.args[0] if dotted(value.func).startswith("copy.") and value.args else value.func.value
        if found := metric_expression(project, site, receiver, function, depth + 1):
            return found
        name = self_attribute(receiver)
        facts = class_facts(project, site.module, site.node)
        return _attribute_now(project, facts, name, depth) if name else None
    name = qualified(site.module, value.func)
    if is_metric_class(project, site, name, value.func):
        text = f"{site.module.text_of(value.func)}(…)"
        return Made(text, site.module.path, value.lineno, _syncs_each_step(project, site, value))
    if last(name) in _CONTAINERS and value.args:
        return metric_expression(project, site, value.args[0], function, depth + 1)
    return None


def _attribute_now(project: Project, facts: ClassFacts, name: str, depth: int) -> Made | None:
    """As `metric_named`, but not remembered: it may be asked for while the attribute itself is looked into."""
    for given in class_values(project, facts).given.get(name, []):
        if found := metric_expression(project, given.site, given.value, given.function, depth + 1):
            return found
    return None


def is_metric_class(project: Project, site: ClassSite, name: str, func: ast.expr) -> bool:
    if external_role(name) is Role.METRIC:
        return True
    written = dotted(func)
    found = find_class(project, site.module, written) if written else None
    return found is not None and class_facts(project, found.module, found.node).is_a(Role.METRIC)


def _syncs_each_step(project: Project, site: ClassSite, call: ast.Call) -> bool:
    """By the keyword, or by the default of a project class's own constructor."""
    given = next((k.value for k in call.keywords if k.arg == "dist_sync_on_step"), None)
    if given is not None:
        return not (isinstance(given, ast.Constant) and given.value is False)
    written = dotted(call.func)
    found = find_class(project, site.module, written) if written else None
    init = class_facts(project, found.module, found.node).method("__init__") if found else None
    if init is None:
        return False
    a = init[1].args
    defaults = dict(zip(reversed([arg.arg for arg in a.args]), reversed(a.defaults), strict=False))
    default = defaults.get("dist_sync_on_step")
    return isinstance(default, ast.Constant) and default.value is True
