"""From the place where a model is wrapped or fitted to the class it is made of: through names, helpers and their callers."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.class_index import ClassSite, Role, class_facts, find_class
from codemods.analysis.functions import find_function
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import bind, has_parameter, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.registries import built_by
from codemods.api.findings import Evidence
from codemods.data import torch_modules as table
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project

DEPTH = 10


@record
class Model:
    """The classes that an expression may be an instance of.

    unknown: why there may be others, "" where there are none. assumed: what has to hold for these to be all.
    """

    classes: tuple[ClassSite, ...] = ()
    unknown: str = ""
    evidence: tuple[Evidence, ...] = ()
    assumed: str = ""


def joined(found: Iterable[Model]) -> Model:
    classes: dict[tuple[str, int], ClassSite] = {}
    evidence: dict[Evidence, None] = {}
    unknown, assumed = "", ""
    for model in found:
        classes |= {(s.module.path, s.node.lineno): s for s in model.classes}
        evidence |= dict.fromkeys(model.evidence)
        unknown, assumed = unknown or model.unknown, assumed or model.assumed
    return Model(tuple(classes.values()), unknown, tuple(evidence), assumed)


def model_of(project: Project, module: SourceModule, node: ast.expr) -> Model:
    """The class of the model that `node` evaluates to."""
    return _Search(project).of(module, node, 0)


def wrapped_in(module: SourceModule, call: ast.Call) -> bool:
    """True for DDP(…) and its kin: what goes in is what comes out."""
    return last(qualified(module, call.func)) in ("DistributedDataParallel", "DataParallel", "DDP")


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[int] = set()

    def of(self, module: SourceModule, node: ast.expr, depth: int) -> Model:
        if depth > DEPTH:
            return Model(unknown="the model is handed on too often to follow")
        if isinstance(node, ast.Call):
            return self._call(module, node, depth + 1)
        if isinstance(node, ast.Name):
            return self._name(module, node, depth + 1)
        if isinstance(node, ast.IfExp):
            return joined(self.of(module, v, depth + 1) for v in (node.body, node.orelse))
        if isinstance(node, ast.NamedExpr):
            return self.of(module, node.value, depth + 1)
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node, depth + 1)
        return Model(unknown=f"`{_short(module, node)}` is not followed to a class")

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> Model:
        func = call.func
        name = qualified(module, func)
        if isinstance(func, ast.Attribute) and func.attr in table.RETURNS_SELF and not name.startswith("torch."):
            return self.of(module, func.value, depth)
        if wrapped_in(module, call) or last(name) == "convert_sync_batchnorm":
            inner = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
            return self.of(module, inner, depth) if inner is not None else Model(unknown="nothing is wrapped")
        if name == "torch.compile":
            return Model(unknown="the model is compiled")
        if written := dotted(func):
            if site := find_class(self.project, module, written):
                return self._instance(module, call, site)
            head, _, method = written.rpartition(".")
            if head and (site := find_class(self.project, module, head)):
                made = "load" in method or "from_" in method
                return self._instance(module, call, site) if made else self._method(site, method, depth)
        if found := find_function(self.project, module, func, call):
            return self._function(module, call, found, depth)
        if choices := built_by(self.project, module, call):
            model = joined(self._instance(module, call, site) for site in choices.sites)
            open_end = f"no other package registers a class in {choices.table}" if choices.open else ""
            return replace(model, assumed=choices.assumed or open_end)
        return Model(unknown=f"`{_short(module, call)}` makes the model, and is not part of the project")

    def _instance(self, module: SourceModule, call: ast.Call, site: ClassSite) -> Model:
        facts = class_facts(self.project, site.module, site.node)
        if not (facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE)):
            return Model(unknown=f"{site.name} is not known to be an nn.Module")
        text = f"the model is {site.name}: {_short(module, call)}"
        return Model((site,), "", (Evidence("static", text, module.path, call.lineno),))

    def _method(self, site: ClassSite, name: str, depth: int) -> Model:
        found = class_facts(self.project, site.module, site.node).method(name)
        if found is None:
            return Model(unknown=f"{site.name}.{name} is not part of the project")
        return self._returns(found[0].module, found[1], depth)

    def _function(
        self, module: SourceModule, call: ast.Call, found: tuple[SourceModule, FunctionNode], depth: int
    ) -> Model:
        """What a project function returns; where it returns its own argument, what this call hands it."""
        inner, function = found
        values = returned(function, inner)
        if not values:
            return Model(unknown=f"{function.name} returns nothing")
        bound = bind(function, call, bound=False)
        out = []
        for value in values:
            root = value
            while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute) and root.func.attr in table.RETURNS_SELF:
                root = root.func.value
            if isinstance(root, ast.Call) and wrapped_in(inner, root) and root.args:
                root = root.args[0]
            if isinstance(root, ast.Name) and bound is not None and root.id in bound and not _assigned(inner, root, function):
                out.append(self.of(module, bound[root.id], depth))
            elif isinstance(value, ast.Tuple):
                out.append(Model(unknown=f"{function.name} returns several values"))
            else:
                out.append(self.of(inner, value, depth))
        return joined(out)

    def _returns(self, module: SourceModule, function: FunctionNode, depth: int) -> Model:
        values = returned(function, module)
        return joined(self.of(module, v, depth) for v in values) if values else Model(unknown=f"{function.name} returns nothing")

    def _name(self, module: SourceModule, name: ast.Name, depth: int) -> Model:
        key = id(name)
        if key in self.seen:
            return Model()
        self.seen.add(key)
        function = module.function_of(name)
        for home in (function, None):
            values = _assigned(module, name, home)
            if values:
                return self._values(module, name, values, depth)
            if home is not None and has_parameter(home, name.id):
                return self._parameter(module, home, name.id, depth)
        return Model(unknown=f"where {name.id} comes from is not followed")

    def _values(
        self, module: SourceModule, name: ast.Name, values: list[tuple[ast.expr, int | None]], depth: int
    ) -> Model:
        """The values a name is given; one that only passes the name on (`model = model.to(device)`) says nothing new."""
        fresh = []
        for value, index in values:
            if is_none(value):
                continue  # `model = None` above the tests that make it
            if any(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(value)):
                if self._wraps(module, value):
                    return self.of(module, value, depth)
                if not _passes_on(module, value, name.id):
                    return Model(unknown=f"`{_short(module, value)}` changes the model")
                continue
            fresh.append((value, index))
        if change := _attribute_change(module, name):
            return Model(unknown=f"`{change}` changes the model")
        if not fresh:
            function = module.function_of(name)
            if function is not None and has_parameter(function, name.id):
                return self._parameter(module, function, name.id, depth)
            return Model(unknown=f"where {name.id} comes from is not followed")
        return joined(self._element(module, value, index, depth) for value, index in fresh)

    def _wraps(self, module: SourceModule, value: ast.expr) -> bool:
        """`model = Task(model)`: the model is a Task from here on."""
        written = dotted(value.func) if isinstance(value, ast.Call) else ""
        return bool(written) and find_class(self.project, module, written) is not None

    def _element(self, module: SourceModule, value: ast.expr, index: int | None, depth: int) -> Model:
        if index is None:
            return self.of(module, value, depth)
        if isinstance(value, (ast.Tuple, ast.List)) and index < len(value.elts):
            return self.of(module, value.elts[index], depth)
        if isinstance(value, ast.Call) and (found := find_function(self.project, module, value.func, value)):
            tuples = returned(found[1], found[0])
            if tuples and all(isinstance(t, ast.Tuple) and index < len(t.elts) for t in tuples):
                return joined(self.of(found[0], t.elts[index], depth) for t in tuples if isinstance(t, ast.Tuple))
        return Model(unknown=f"`{_short(module, value)}` is not followed to a class")

    def _parameter(self, module: SourceModule, function: FunctionNode, name: str, depth: int) -> Model:
        """A parameter: what the callers hand in."""
        if (key := id(function) ^ hash(name)) in self.seen:
            return Model()
        self.seen.add(key)
        calls = callers(self.project, module, function)
        if not calls:
            return Model(unknown=f"nobody in the project calls {function.name}")
        out = []
        for caller, call in calls:
            bound = bind(function, call, bound=module.method_of(function) is not None or module.class_of(function) is not None)
            given = bound.get(name) if bound is not None else None
            out.append(
                self.of(caller, given, depth)
                if given is not None
                else Model(unknown=f"what {caller.path}:{call.lineno} hands to {function.name} is not written out")
            )
        return joined(out)

    def _attribute(self, module: SourceModule, node: ast.Attribute, depth: int) -> Model:
        """`self.model`: what the class's methods assign to it."""
        owner = module.class_of(node)
        if owner is None or dotted(node.value) != "self" or (key := hash(("attribute", node.attr, owner.lineno))) in self.seen:
            return Model(unknown=f"`{_short(module, node)}` is not followed to a class")
        self.seen.add(key)
        values: list[tuple[SourceModule, ast.expr]] = []
        for site in class_facts(self.project, module, owner).lineage:
            for assign in ast.walk(site.node):
                if isinstance(assign, ast.Assign) and any(dotted(t) == f"self.{node.attr}" for t in assign.targets):
                    values.append((site.module, assign.value))
        values = [(m, v) for m, v in values if not is_none(v)]
        name = f"self.{node.attr}"
        fresh = [(m, v) for m, v in values if not _mentions(v, name)]
        odd = [v for m, v in values if _mentions(v, name) and not _passes_on(m, v, name)]
        if odd or not fresh:
            return Model(unknown=f"`self.{node.attr}` is not followed to a class")
        return joined(self.of(m, v, depth) for m, v in fresh)


def callers(project: Project, module: SourceModule, function: FunctionNode) -> list[tuple[SourceModule, ast.Call]]:
    """The calls of a function anywhere in the project; of a class for its constructor, of `self.name` for a method."""
    owner = module.class_of(function)
    word = owner.name if owner is not None and function.name == "__init__" else function.name
    out = []
    for path in project.files_calling(word):
        other = project.module(path)
        for call in other.calls_named(word) if other is not None else ():
            assert other is not None
            if owner is None:
                found = find_function(project, other, call.func, call)
                if found is not None and found[1] is function:
                    out.append((other, call))
            elif function.name == "__init__":
                site = find_class(project, other, dotted(call.func)) if dotted(call.func) else None
                if site is not None and site.node is owner:
                    out.append((other, call))
            elif dotted(call.func) == f"self.{word}" and other is module and module.class_of(call) is owner:
                out.append((other, call))
    return out


def _assigned(module: SourceModule, name: ast.Name, home: FunctionNode | None) -> list[tuple[ast.expr, int | None]]:
    """(value, index if unpacked) of the assignments to a name in one scope, those below `name` in the same scope left out."""
    inside = module.function_of(name) is home
    out: list[tuple[ast.expr, int | None]] = []
    assignments: list[ast.Assign | ast.AnnAssign] = [*module.nodes(ast.Assign), *module.nodes(ast.AnnAssign)]
    for node in assignments:
        if module.function_of(node) is not home or node.value is None or (home is None and module.class_of(node)):
            continue
        if inside and node.lineno > name.lineno:
            continue
        if any(n is name for n in ast.walk(node)):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id == name.id:
                out.append((node.value, None))
            elif isinstance(target, (ast.Tuple, ast.List)):
                for i, element in enumerate(target.elts):
                    if isinstance(element, ast.Name) and element.id == name.id:
                        out.append((node.value, i))
    return out


def _attribute_change(module: SourceModule, name: ast.Name) -> str:
    """`model.fc = nn.Linear(…)` in the same scope: the class alone does not say what the model holds."""
    home = module.function_of(name)
    for assign in module.nodes(ast.Assign):
        if module.function_of(assign) is home and isinstance(assign.value, ast.Call):
            for target in assign.targets:
                if isinstance(target, ast.Attribute) and dotted(target).startswith(f"{name.id}."):
                    return _short(module, assign)
    return ""


def _passes_on(module: SourceModule, value: ast.expr, name: str) -> bool:
    """True where the value is the named object itself: moved, wrapped, its batch norms converted."""
    while True:
        if dotted(value) == name:
            return True
        if isinstance(value, ast.Attribute) and value.attr == "module":
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in table.RETURNS_SELF:
            value = value.func.value
        elif isinstance(value, ast.Call) and value.args and (
            wrapped_in(module, value) or last(qualified(module, value.func)) == "convert_sync_batchnorm"
        ):
            value = value.args[0]
        elif isinstance(value, ast.IfExp):
            return all(_passes_on(module, v, name) for v in (value.body, value.orelse))
        else:
            return False


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Attribute) and dotted(n) == name for n in ast.walk(value))


def _short(module: SourceModule, node: ast.AST) -> str:
    text = " ".join(module.text_of(node).split())
    return text if len(text) <= 60 else text[:57] + "…"
