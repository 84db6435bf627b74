"""Where a value is made: a name, attribute or call -> the expressions that make it, through functions, classes and callers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_at_top, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.literals import is_none
from codemods.analysis.loading.item_keys import Key, keys_of, part_of
from codemods.analysis.model.literal_arguments import is_ruled_out, told
from codemods.analysis.model.signatures import bind, defaults, is_bound, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import constructions, uses_of
from codemods.analysis.reaching import reaching
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

DEPTH = 10
MOST = 24
_SPAWNS = frozenset({"spawn", "start_processes"})
_SAME_THING = frozenset({"to", "cuda", "cpu"})
BARS = frozenset({"tqdm", "auto_tqdm"})  # what is gone through behind a bar is what it was given


@record
class Origin:
    """An expression that makes a value. path: which part of it, where it is one. known: False where the way to it is lost."""

    module: SourceModule
    node: ast.expr
    path: tuple[Key, ...] = ()
    known: bool = True

    @property
    def line(self) -> int:
        return self.node.lineno


def origins(project: Project, module: SourceModule, node: ast.expr) -> tuple[Origin, ...]:
    """Every expression that may make the value of `node`; what is not known stands among them."""
    return project.memo(("origins", module.path, id(node)), lambda: _all(project, module, node, ()))


def origins_of_part(project: Project, module: SourceModule, node: ast.expr, key: Key) -> tuple[Origin, ...]:
    """As `origins`, of the element of a tuple, list or dictionary that stands under a key."""
    return project.memo(("origins of a part", module.path, id(node), key), lambda: _all(project, module, node, (key,)))


def _all(project: Project, module: SourceModule, node: ast.expr, path: tuple[Key, ...]) -> tuple[Origin, ...]:
    search = _Search(project)
    found: dict[tuple[int, tuple[Key, ...]], Origin] = {}
    for origin in search.of(module, node, path, 0):
        found.setdefault((id(origin.node), origin.path), origin)
        if len(found) > MOST:
            return (Origin(module, node, (), known=False),)
    return tuple(found.values())


Passed = frozenset[tuple[int, tuple[Key, ...]]]  # expressions by their ids, each with the part of it that was asked for


def passed_by(project: Project, module: SourceModule, node: ast.expr) -> Passed:
    """All expressions on the ways from `node` to what makes its value: which calls of a function lead there?"""

    def build() -> Passed:
        search = _Search(project)
        for count, _ in enumerate(search.of(module, node, (), 0)):
            if count > MOST:
                return frozenset()
        return frozenset(search.seen)

    return project.memo(("passed by", module.path, id(node)), build)


def all_known(found: tuple[Origin, ...]) -> bool:
    return bool(found) and all(o.known for o in found)


def made_class(project: Project, origin: Origin) -> ClassSite | None:
    """The project class of which the origin makes an object."""
    if not isinstance(origin.node, ast.Call) or origin.path or not origin.known:
        return None
    name = dotted(origin.node.func)
    return find_class(project, origin.module, name) if name else None


def made_facts(project: Project, origin: Origin) -> ClassFacts | None:
    """As `made_class`, with what is known of the class."""
    site = made_class(project, origin)
    return class_facts(project, site.module, site.node) if site is not None else None


def given_to_field(project: Project, module: SourceModule, node: ast.Attribute) -> list[tuple[SourceModule, ast.expr]]:
    """What the classes that the object may be of put into the field, one step; what is taken apart there is left out."""
    found: list[tuple[SourceModule, ast.expr]] = []
    for site, call in _Search(project).objects(module, node.value, 0):
        facts = class_facts(project, site.module, site.node)
        init = facts.method("__init__") if call is not None else None
        literals = told(init[1], call, {}, bound=True) if init is not None and call is not None else {}
        for given in class_values(project, facts).given.get(node.attr, ()):
            there = given.site.module
            inside = init is not None and there.function_of(given.value) is init[1]
            if given.part is None and not (inside and literals and is_ruled_out(there, given.value, literals)):
                found.append((there, given.value))
    return found


def handed_over(
    project: Project, module: SourceModule, function: FunctionNode, name: str
) -> Iterator[tuple[SourceModule, ast.expr | None]]:
    """What each caller hands to a parameter, the default included; None stands for what is not seen."""
    owner, default = module.parent(function), defaults(function).get(name)
    if isinstance(owner, ast.ClassDef) and function.name == "__init__":
        uses = constructions(project, module, owner)
    else:
        uses = uses_of(project, module, function)
    if uses is None or uses.more:
        yield module, None
        return
    uses, found = uses.outside_tests(), False
    for site in uses.calls:
        given = bind(function, site.call, bound=is_bound(module, function))
        value = given.get(name, default) if given is not None else None
        found = True
        yield (module if value is default else site.module), value
    for handed in uses.handed_on:
        value = _spawned(handed.module, handed.node, function, name)
        found = found or value is not None
        if value is not None:
            yield handed.module, value
    if not found:
        yield module, default


class _Search:
    """One question; a place that is being asked about already adds nothing."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[tuple[int, tuple[Key, ...]]] = set()

    def of(self, module: SourceModule, node: ast.expr, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        if (id(node), path) in self.seen:
            return
        self.seen.add((id(node), path))
        if depth > DEPTH:
            yield Origin(module, node, path, known=False)
        elif isinstance(node, ast.Name):
            yield from self._name(module, node, path, depth + 1)
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(module, node, path, depth + 1)
        elif isinstance(node, ast.Call):
            yield from self._call(module, node, path, depth + 1)
        elif isinstance(node, ast.Subscript):
            yield from self._item(module, node, path, depth + 1)
        else:
            yield from self._parts(module, node, path, depth + 1)

    def _parts(self, module: SourceModule, node: ast.expr, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        inner: list[ast.expr] | None = None
        if isinstance(node, ast.IfExp):
            inner = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            inner = node.values
        elif isinstance(node, (ast.NamedExpr, ast.Await)):
            inner = [node.value]
        if inner is not None:
            for value in inner:
                yield from self.of(module, value, path, depth)
        elif path and (part := part_of(node, path[0])) is not None:
            yield from self.of(module, part, path[1:], depth)
        else:
            yield Origin(module, node, path)

    # Names

    def _name(self, module: SourceModule, node: ast.Name, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        bound = bindings_of(module, node)
        if not bound:
            yield from self._imported(module, node, path, depth)
            return
        for binding in reaching(module, node, bound):
            if binding.parameter:
                function = module.parent(binding.node)
                function = module.parent(function) if function is not None else None
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield from self._given(module, function, node, path, depth)
                continue
            if binding.value is None:
                yield Origin(module, node, path, known=False)
            else:
                index = place_of(binding, node.id)
                if binding.part and index is None:
                    yield Origin(module, node, path, known=False)
                    continue
                yield from self.of(module, binding.value, (*(() if index is None else (index,)), *path), depth)

    def _imported(self, module: SourceModule, node: ast.Name, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        for found in module.imports.get(node.id, ()):
            resolved = self.project.resolve(found.dotted, module.path)
            other = self.project.module(resolved.path) if resolved is not None and len(resolved.rest) == 1 else None
            for binding in bindings_at_top(other, resolved.rest[0]) if other is not None and resolved is not None else ():
                if binding.value is not None and not binding.part and other is not None:
                    yield from self.of(other, binding.value, path, depth)
                    return
        yield Origin(module, node, path, known=False)

    def _given(
        self, module: SourceModule, function: FunctionNode, node: ast.Name, path: tuple[Key, ...], depth: int
    ) -> Iterator[Origin]:
        """What the callers hand to a parameter."""
        for there, value in handed_over(self.project, module, function, node.id):
            if value is None:
                yield Origin(module, node, path, known=False)
            else:
                yield from self.of(there, value, path, depth)

    # Attributes and items

    def _attribute(self, module: SourceModule, node: ast.Attribute, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        found = False
        for site, call in self.objects(module, node.value, depth):
            for there, value, part in self._field(site, node.attr, call):
                found = True  # also where another way has come to this value already, and nothing is added
                yield from self.of(there, value, (*part, *path), depth)
            if (method := class_facts(self.project, site.module, site.node).method(node.attr)) is not None:
                found = True
                yield from self._returned(method[0].module, method[1], path, depth)
        if not found:
            yield Origin(module, node, path, known=False)

    def _classes(self, module: SourceModule, holder: ast.expr, depth: int) -> list[ClassSite]:
        return [site for site, _ in self.objects(module, holder, depth)]

    def objects(self, module: SourceModule, holder: ast.expr, depth: int) -> list[tuple[ClassSite, ast.Call | None]]:
        """The project classes that an object may be of, with the calls that make it; none where one of them is not known."""
        if isinstance(holder, ast.Name) and holder.id == "self":
            owner = module.class_of(holder)
            return [(ClassSite(module, owner), None)] if owner is not None else []
        made = [(made_class(self.project, o), o.node) for o in self.of(module, holder, (), depth)]
        known: list[tuple[ClassSite, ast.Call | None]] = []
        for site, node in made:
            if site is None or not isinstance(node, ast.Call):
                return []
            known.append((site, node))
        return known

    def _field(
        self, site: ClassSite, name: str, call: ast.Call | None
    ) -> Iterator[tuple[SourceModule, ast.expr, tuple[Key, ...]]]:
        """call: what makes the object; what its literals rule out (`Loaders("train")`) is in none of its fields."""
        facts = class_facts(self.project, site.module, site.node)
        if facts.method(name) is not None:
            return
        init = facts.method("__init__") if call is not None else None
        literals = told(init[1], call, {}, bound=True) if init is not None and call is not None else {}
        for given in class_values(self.project, facts).given.get(name, ()):
            there = given.site.module
            if literals and init is not None and there.function_of(given.value) is init[1]:
                if is_ruled_out(there, given.value, literals):
                    continue
            yield there, given.value, () if given.part is None else (given.part,)

    def _item(self, module: SourceModule, node: ast.Subscript, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        keys = keys_of(module, node.slice)
        for key in keys:
            yield from self.of(module, node.value, (key, *path), depth)
        if not keys:
            yield Origin(module, node, path, known=False)

    # Calls

    def _call(self, module: SourceModule, node: ast.Call, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        name = dotted(node.func)
        if name and find_class(self.project, module, name) is not None:
            yield Origin(module, node, path)
            return
        if name == "dict" and path and (part := next((k.value for k in node.keywords if k.arg == path[0]), None)) is not None:
            yield from self.of(module, part, path[1:], depth)
            return
        if last(name) in _SAME_THING and isinstance(node.func, ast.Attribute):
            yield from self.of(module, node.func.value, path, depth)
            return
        if node.args and last(qualified(module, node.func)) in BARS:
            yield from self.of(module, node.args[0], path, depth)
            return
        called = called_function(self.project, module, node)
        if called is not None:
            yield from self._returned(called.module, called.node, path, depth)
            return
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, (ast.Name, ast.Attribute)):
            classes = (
                self._classes(module, node.func.value, depth)
                if dotted(node.func.value).partition(".")[0] not in module.imports
                else []
            )
            methods = [class_facts(self.project, s.module, s.node).method(node.func.attr) for s in classes]
            if methods and None not in methods:
                for method in methods:
                    if method is not None:
                        yield from self._returned(method[0].module, method[1], path, depth)
                return
        yield Origin(module, node, path)

    def _returned(self, module: SourceModule, function: FunctionNode, path: tuple[Key, ...], depth: int) -> Iterator[Origin]:
        values = returned(function, module)
        if not values or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(function)):
            yield Origin(module, ast.Name(function.name, ast.Load(), lineno=function.lineno), path, known=False)
        for value in _taken_apart(module, values, path):
            yield from self.of(module, value, path, depth)


def _taken_apart(module: SourceModule, values: list[ast.expr], path: tuple[Key, ...]) -> list[ast.expr]:
    """The values of a function whose result is taken apart: beside tuples, no single object that another way gives."""
    if not path or not isinstance(path[0], int) or not any(isinstance(v, ast.Tuple) for v in values):
        return values
    return [v for v in values if isinstance(v, ast.Tuple) or not _is_one_object(module, v)]


def _is_one_object(module: SourceModule, node: ast.expr | None) -> bool:
    """True for an object that a class makes, by its name too, and for None."""
    if isinstance(node, ast.Name):
        bound = [b for b in bindings_of(module, node) if not is_none(b.value)]
        values = [None if b.part or isinstance(b.value, ast.Name) else b.value for b in bound]
        return bool(values) and all(_is_one_object(module, v) for v in values)
    if isinstance(node, ast.IfExp):
        return _is_one_object(module, node.body) and _is_one_object(module, node.orelse)
    return is_none(node) or (isinstance(node, ast.Call) and last(dotted(node.func))[:1].isupper())


def place_of(binding: Binding, name: str) -> int | None:
    """The index of a name among the targets that a value is taken apart into."""
    if not binding.part or not isinstance(binding.node, ast.Assign):
        return None
    value = binding.node.value
    for target in (t for whole in binding.node.targets for t in _targets_of(whole, value, binding.value)):
        if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in target.elts):
            for i, element in enumerate(target.elts):
                if isinstance(element, ast.Name) and element.id == name:
                    return i
    return None


def _targets_of(target: ast.expr, value: ast.expr, wanted: ast.expr | None) -> Iterator[ast.expr]:
    """What a part of the value is given to: of `(a, b), (c, d) = first(), second()` it is `(c, d)` for `second()`."""
    if value is wanted:
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for inner, given in zip(target.elts, value.elts, strict=False):
            yield from _targets_of(inner, given, wanted)


def _spawned(module: SourceModule, node: ast.expr, function: FunctionNode, name: str) -> ast.expr | None:
    """The argument that `spawn(function, args=(...))` hands to a parameter; the first one is the process's number."""
    call = module.parent(node)
    if not isinstance(call, ast.Call) or last(dotted(call.func)) not in _SPAWNS:
        return None
    given = next((k.value for k in call.keywords if k.arg == "args"), call.args[1] if len(call.args) > 1 else None)
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if not isinstance(given, ast.Tuple) or name not in names:
        return None
    index = names.index(name) - 1
    return given.elts[index] if 0 <= index < len(given.elts) else None
