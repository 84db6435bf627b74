"""What holds a DDP wrapper as soon as several processes run: stricter than `wraps.held`, which asks what may hold one.

A name counts from the wrap on, until anything else is bound to it; a field of an object in the methods that run behind the wrap; a
parameter where every caller hands a wrapper over. Lists of wrapped models are followed through loops.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassFacts, class_facts, find_class
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import bind, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.analysis.wrapped.made_models import is_wrapped_by_prepare
from codemods.analysis.wrapped.method_order import runs_behind
from codemods.analysis.wrapped.wrapper_tests import arms_exclude, conditions_of, is_tested
from codemods.analysis.wrapped.wraps import is_prepare, is_wrap, without_moves
from codemods.project import Project
from codemods.record import record, replace
from codemods.source import FunctionNode, SourceModule, walk

DEPTH = 6
MOST_CALLERS = 8
WORDS = (b"DistributedDataParallel", b".prepare(", b".prepare_model(")


@record
class Wrapped:
    """A wrapper: the call that makes it, and the expression of the model that goes in.

    prepared: Accelerate makes it, for several processes only. always: no test stands between the wrap and the place. many: it is
    one of several in a list; the place may hold any of them. whole: the list itself.
    """

    module: SourceModule
    wrap: ast.Call
    model: ast.expr | None
    prepared: bool = False
    always: bool = True
    many: bool = False
    whole: bool = False


def wrapper_in(project: Project, module: SourceModule, node: ast.expr) -> Wrapped | None:
    """The wrapper that `node` holds at its place; None where the source does not show one."""
    found = _Search(project).of(module, node, 0)
    return found if found is not None and not found.whole else None


def near_wraps(project: Project) -> frozenset[str]:
    """The files that wrap, those that they import from, and those that get a wrapper from them: no other can hold one."""
    return project.keep("near wraps", lambda: frozenset(_near(project)))


def _near(project: Project) -> Iterator[str]:
    for module in _wrapping(project):
        yield module.path
        for item in (i for found in module.imports.values() for i in found):
            resolved = project.resolve(item.dotted.removesuffix(".*"), module.path)
            if resolved is not None:
                yield resolved.path
    for word in sorted(_getters(project)):
        yield from project.files_calling(word)


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[int] = set()

    def of(self, module: SourceModule, node: ast.expr | None, depth: int) -> Wrapped | None:
        if node is None:
            return None
        node = without_moves(node)
        if depth > DEPTH or id(node) in self.seen:
            return None
        self.seen.add(id(node))
        try:
            return self._of(module, node, depth)
        finally:
            self.seen.discard(id(node))

    def _of(self, module: SourceModule, node: ast.expr, depth: int) -> Wrapped | None:
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.Name):
            return self._name(module, node, depth) if node.id not in ("self", "cls") else None
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node, depth)
        if isinstance(node, ast.Subscript):
            return _element(self.of(module, node.value, depth + 1))
        if isinstance(node, ast.IfExp):  # `model.module if many else model` takes it out: only the wrap itself counts
            arms = [a for a in (node.body, node.orelse) if is_wrap(module, a) or is_prepare(module, a)]
            found = self.of(module, arms[0], depth) if arms else None
            return replace(found, always=False) if found is not None else None
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            parts = [self.of(module, e, depth + 1) for e in node.elts]
            first = parts[0]
            return replace(first, many=True, whole=True) if first is not None and None not in parts else None
        if isinstance(node, ast.ListComp):
            made = self.of(module, node.elt, depth + 1)
            return replace(made, many=True, whole=True) if made is not None else None
        return None

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> Wrapped | None:
        if is_wrap(module, call):
            if not qualified(module, call.func).startswith(("torch.", "apex.")):
                return None
            given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
            return Wrapped(module, call, given)
        if is_prepare(module, call):
            return self._prepared(module, call, 0) if len(call.args) == 1 else None
        name = last(dotted(call.func))
        if name == "deepcopy" and call.args:
            return self.of(module, call.args[0], depth + 1)
        if name not in _giving(self.project):
            return None
        site = called_function(self.project, module, call) or self._method_of(module, call)
        if site is None or site.node.name == "__init__":
            return None
        values = [v for v in returned(site.node, site.module) if not (isinstance(v, ast.Constant) and v.value is None)]
        made = [self.of(site.module, v, depth + 1) for v in values]
        sure = [m for m in made if m is not None]
        if not sure or (len(sure) < len(made) and not self._only_wraps(site)):
            return None
        return replace(sure[0], always=sure[0].always and len(sure) == len(made))

    def _only_wraps(self, site: FunctionSite) -> bool:
        """True for a function that hands on its argument bare where it does not wrap it: `if n == 1: return model`."""
        own = {a.arg for a in (*site.node.args.posonlyargs, *site.node.args.args)}
        return all(self.of(site.module, v, 0) is not None or dotted(v) in own for v in returned(site.node, site.module))

    def _prepared(self, module: SourceModule, call: ast.Call, index: int) -> Wrapped | None:
        """The element of what `accelerator.prepare(...)` gives, where that is a model with something to train."""
        if len(call.args) == 1 and isinstance(call.args[0], ast.Starred):
            given: ast.expr = call.args[0].value
            many = is_wrapped_by_prepare(self.project, module, call, given, many=True)
            return Wrapped(module, call, None, prepared=True, many=True, whole=True) if many else None
        if index >= len(call.args) or any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
            return None
        given = call.args[index]
        if not is_wrapped_by_prepare(self.project, module, call, given):
            return None
        return Wrapped(module, call, given, prepared=True)

    def _method_of(self, module: SourceModule, call: ast.Call) -> FunctionSite | None:
        """`trainer.model_of(name)`: the method of the class that the receiver is annotated with."""
        facts = self._class_of(module, call.func.value) if isinstance(call.func, ast.Attribute) else None
        method = facts.method(call.func.attr) if facts is not None and isinstance(call.func, ast.Attribute) else None
        return FunctionSite(method[0].module, method[1]) if method is not None else None

    def _class_of(self, module: SourceModule, node: ast.expr) -> ClassFacts | None:
        """The project class of a parameter with an annotation, or of a field that such a parameter is put into."""
        if isinstance(node, ast.Attribute) and dotted(node.value) == "self" and (owner := module.class_of(node)):
            for one in class_values(self.project, class_facts(self.project, module, owner)).given.get(node.attr, ()):
                if isinstance(one.value, ast.Name) and (found := self._class_of(one.site.module, one.value)):
                    return found
            return None
        function = module.function_of(node) if isinstance(node, ast.Name) else None
        if function is None or not isinstance(node, ast.Name):
            return None
        spec = function.args
        noted = next((a.annotation for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == node.id), None)
        written = noted.value if isinstance(noted, ast.Constant) and isinstance(noted.value, str) else dotted(noted)
        site = find_class(self.project, module, written) if written else None
        return class_facts(self.project, site.module, site.node) if site is not None else None

    # Names

    def _name(self, module: SourceModule, name: ast.Name, depth: int) -> Wrapped | None:
        if (loop := _comprehension(module, name)) is not None:
            return self._loop_element(module, loop.target, loop.iter, name.id, depth)
        own = module.function_of(name)
        scope, inner = own, own
        while not (bound := bindings_in(module, scope, name.id)):
            if scope is None:
                return None
            inner, scope = scope, module.function_of(scope)
        limit = name.lineno if scope is own else _first_use(module, inner, scope)
        above = [b for b in bound if b.parameter or _end(b.node) < limit or isinstance(b.node, ast.For) and _line(b.node) < limit]
        for one in sorted(above, key=lambda b: _line(b.node) if not b.parameter else 0, reverse=True):
            if scope is own and arms_exclude(module, one.node, name):
                continue
            if _leaves(module, one.node, name):
                continue
            if not self._is_clear(module, name.id, one, above):
                return None
            found = self._bound(module, scope, name, one, depth)
            if found is not None and scope is own and not _reaches(module, one.node, name):
                found = replace(found, always=False)
            return found
        return None

    def _is_clear(self, module: SourceModule, name: str, one: Binding, above: list[Binding]) -> bool:
        """False where a test asks for the wrapper before the name is bound, and where its other arm binds something not known."""
        if one.parameter or one.value is None:
            return True
        if not is_wrap(module, without_moves(one.value)) and not is_prepare(module, one.value) and is_tested(module, one.node):
            return False
        others = (b for b in above if b is not one and not b.parameter and arms_exclude(module, b.node, one.node))
        return all(_is_alike(module, b.value, name) for b in others)

    def _bound(
        self, module: SourceModule, scope: FunctionNode | None, name: ast.Name, one: Binding, depth: int
    ) -> Wrapped | None:
        if one.parameter:
            return self._parameter(module, scope, name.id, depth) if scope is not None else None
        if isinstance(one.node, (ast.For, ast.AsyncFor)):
            return self._loop_element(module, one.node.target, one.node.iter, name.id, depth)
        if not one.part:
            return self.of(module, one.value, depth + 1)
        if is_prepare(module, one.value) and isinstance(one.value, ast.Call):
            index = _place(one.node, name.id)
            return self._prepared(module, one.value, index) if index is not None else None
        return None

    def _loop_element(
        self, module: SourceModule, target: ast.expr, source: ast.expr, name: str, depth: int
    ) -> Wrapped | None:
        """What the name of a loop holds: `for m in models`, `for i, m in enumerate(models)`, `for a, m in zip(names, models)`."""
        called = dotted(source.func) if isinstance(source, ast.Call) else ""
        index = next((i for i, e in enumerate(getattr(target, "elts", ())) if dotted(e) == name), None)
        if isinstance(source, ast.Call) and called == "enumerate" and index == 1 and source.args:
            assert isinstance(target, (ast.Tuple, ast.List))
            return self._loop_element(module, target.elts[1], source.args[0], name, depth)
        if isinstance(source, ast.Call) and called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            return self._loop_element(module, target.elts[1], source.args[0], name, depth) if source.args else None
        if isinstance(source, ast.Call) and called == "zip" and index is not None and index < len(source.args):
            return _element(self.of(module, source.args[index], depth + 1))
        if isinstance(target, ast.Name) and target.id == name:
            return _element(self.of(module, source, depth + 1))
        return None

    def _parameter(self, module: SourceModule, function: FunctionNode, name: str, depth: int) -> Wrapped | None:
        """A parameter, where each caller outside the tests hands over a wrapper."""
        owner = module.parent(function)
        built = isinstance(owner, ast.ClassDef) and function.name == "__init__"
        word = owner.name if built and isinstance(owner, ast.ClassDef) else function.name
        if depth > 2 or word not in _handed(self.project):
            return None
        calls = _callers(self.project, module, function)
        made: list[Wrapped | None] = []
        for site in calls[:MOST_CALLERS]:
            given = bind(function, site.call, bound=isinstance(owner, ast.ClassDef))
            made.append(self.of(site.module, given[name], depth + 1) if given is not None and name in given else None)
        sure = [m for m in made if m is not None]
        return replace(sure[0], always=all(m.always for m in sure)) if sure and len(sure) == len(calls) else None

    # Fields

    def _attribute(self, module: SourceModule, node: ast.Attribute, depth: int) -> Wrapped | None:
        if dotted(node.value) != "self":
            return None
        place = module.method_of(node)
        if place is None:
            return None
        facts = class_facts(self.project, module, place[0])
        given = class_values(self.project, facts).given.get(node.attr, ())
        for one in given:
            found = self._given(one, node.attr, depth) if one.function is not None else None
            if found is None or one.function is None:
                continue
            statement = one.site.module.statement_of(one.value)
            others = [g for g in given if g is not one and (place[1] is not one.function or g.function is one.function)]
            if any(self._undone(other, one, node.attr, depth) for other in others):
                return None
            if not runs_behind(facts, (place[1], node), (one.function, statement)):
                return None
            round_it = {id(up) for up in module.ancestors(node)}
            sure = all(id(c) in round_it for c in conditions_of(one.site.module, statement, one.function))
            return found if sure else replace(found, always=False)
        return None

    def _given(self, one: Given, name: str, depth: int) -> Wrapped | None:
        module = one.site.module
        if one.part is not None:
            call = one.value
            return self._prepared(module, call, one.part) if is_prepare(module, call) and isinstance(call, ast.Call) else None
        if is_prepare(module, one.value) and isinstance(one.value, ast.Call) and isinstance(one.value.args[:1], list):
            return self.of(module, one.value, depth + 1)
        return self.of(module, one.value, depth + 1) if isinstance(one.value, (ast.Call, ast.Name, ast.IfExp, ast.ListComp)) else None

    def _undone(self, other: Given, wrap: Given, name: str, depth: int) -> bool:
        """True where the field is given something else behind the wrap, or in a method of which the order is not seen."""
        if isinstance(other.value, ast.Constant) and other.value.value is None:
            return False
        if other.function is wrap.function and arms_exclude(wrap.site.module, other.value, wrap.value):
            return not _is_alike(wrap.site.module, other.value, f"self.{name}")
        if other.function is wrap.function and _line(other.value) <= _line(wrap.value):
            return False
        if other.function is None or (other.function.name == "__init__" and wrap.function is not other.function):
            return False
        if isinstance(other.value, (ast.List, ast.Tuple)) and [dotted(e) for e in other.value.elts] == [f"self.{name}"]:
            return False
        if any(dotted(n) == f"self.{name}" for n in walk(other.value)) and isinstance(other.value, ast.Call):
            if without_moves(other.value) is not other.value:
                return False
        return self._given(other, name, depth) is None


def _is_alike(module: SourceModule, value: ast.expr | None, name: str) -> bool:
    """True for another wrap of a kind that has no attributes of the model, and for the model itself, moved or not."""
    if value is None:
        return False
    value = without_moves(value)
    return dotted(value) == name or is_wrap(module, value) or is_prepare(module, value) or _is_data_parallel(module, value)


def _is_data_parallel(module: SourceModule, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last(qualified(module, value.func)) == "DataParallel"


def _element(found: Wrapped | None) -> Wrapped | None:
    return replace(found, whole=False) if found is not None and found.whole else None


def _comprehension(module: SourceModule, name: ast.Name) -> ast.comprehension | None:
    for up in module.ancestors(name):
        for part in getattr(up, "generators", ()):
            if any(isinstance(n, ast.Name) and n.id == name.id for n in walk(part.target)):
                return part  # type: ignore[no-any-return]
        if isinstance(up, ast.stmt):
            return None
    return None


def _place(node: ast.AST, name: str) -> int | None:
    """The index of a name in `a, b, c = value`, where nothing starred stands in front."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        for i, element in enumerate(getattr(target, "elts", ())):
            if isinstance(element, ast.Starred):
                break
            if dotted(element) == name:
                return i
    return None


def _first_use(module: SourceModule, inner: FunctionNode | None, scope: FunctionNode | None) -> int:
    """The line of the scope in which a function defined there is first called; 0 where it is not called there by its name."""
    if inner is None:
        return 0
    lines = [c.lineno for c in module.calls_named(inner.name) if isinstance(c.func, ast.Name) and module.function_of(c) is scope]
    return min(lines, default=0)


def _leaves(module: SourceModule, node: ast.AST, name: ast.Name) -> bool:
    """True for a binding in a block that ends with an exit, and that the name does not stand in."""
    statement = module.statement_of(node) if not isinstance(node, ast.arg) else None
    if statement is None or isinstance(module.parent(statement), ast.Module):
        return False
    block = module.block_of(statement)
    owner = module.parent(statement)
    if not isinstance(owner, (ast.If, ast.For, ast.While, ast.Try)):
        return False
    return isinstance(block[-1], (ast.Return, ast.Raise)) and not any(up is owner for up in module.ancestors(name))


def _reaches(module: SourceModule, node: ast.AST, name: ast.Name) -> bool:
    """True where every way to the name goes past the binding: it stands in a block round the name, or is the loop of it."""
    if isinstance(node, ast.arg):
        return True
    statement = module.statement_of(node)
    owner = module.parent(statement)
    return isinstance(owner, (ast.Module, ast.With)) or any(up is owner for up in module.ancestors(name))


def _callers(project: Project, module: SourceModule, function: FunctionNode) -> list[CallSite]:
    owner = module.parent(function)
    built = isinstance(owner, ast.ClassDef) and function.name == "__init__"
    uses = constructions(project, module, owner) if built and isinstance(owner, ast.ClassDef) else uses_of(project, module, function)
    if uses is None or uses.more or not all(_is_annotation(h.module, h.node) for h in uses.handed_on):
        return []
    return [s for s in uses.calls if not is_test_file(s.module.path)]


def _is_annotation(module: SourceModule, node: ast.expr) -> bool:
    """True for a mention that only says what something is: `managers: list[Manager] = []`, `isinstance(x, Manager)`."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, ast.arg) or (isinstance(up, ast.AnnAssign) and up.annotation is below):
            return True
        if isinstance(up, ast.Call) and dotted(up.func) == "isinstance":
            return True
        if isinstance(up, ast.stmt):
            return isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and up.returns is below
        below = up
    return False


def _giving(project: Project) -> frozenset[str]:
    """The names of the functions of files that wrap: what others may get a wrapper from."""

    def build() -> frozenset[str]:
        return frozenset(f.name for module in _wrapping(project) for f in module.functions)

    return project.keep("functions of files that wrap", build)


def _handed(project: Project) -> frozenset[str]:
    """The names that files which wrap, or get a wrapper from those, call with something."""

    def build() -> frozenset[str]:
        calls = (c for module in _wrapping(project) for c in module.nodes(ast.Call) if c.args or c.keywords)
        near = frozenset(last(dotted(c.func)) for c in calls)
        further = set[str]()
        for path in {p for w in sorted(_getters(project)) for p in project.files_calling(w)}:
            module = None if is_test_file(path) else project.module(path)
            for call in module.nodes(ast.Call) if module is not None else ():
                if call.args and any(dotted(a).startswith("self.") for a in call.args):
                    further.add(last(dotted(call.func)))
        return near | further

    return project.keep("called by files that wrap", build)


def _getters(project: Project) -> frozenset[str]:
    """The functions of files that wrap whose returned values hold a wrapper."""

    def build() -> frozenset[str]:
        found = set[str]()
        for module in _wrapping(project):
            for function in module.functions:
                if function.name in ("main", "__init__"):
                    continue
                if any(_Search(project).of(module, v, DEPTH - 3) for v in returned(function, module)):
                    found.add(function.name)
        return frozenset(found)

    return project.keep("functions that give wrappers", build)


def _wrapping(project: Project) -> Iterator[SourceModule]:
    paths = {p for word in WORDS for p in project.files_containing(word)}
    for path in sorted(paths):
        module = None if is_test_file(path) else project.module(path)
        if module is not None and (module.holds(b"DistributedDataParallel") or module.holds(b"ccelerat")):
            yield module


def _end(node: ast.AST) -> int:
    return getattr(node, "end_lineno", None) or _line(node)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
