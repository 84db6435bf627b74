"""What may hold a DDP wrapper on some way through the program: one caller that hands it over is enough, one branch, one heir.

`holders` asks for every way, because it repairs; a forward that one rank alone makes is wrong on the one way that leads to it.
What takes the model out of the wrapper on the way ends the search.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from codemods.analysis.bindings import Binding, bindings_at_top, bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, class_facts, find_class, first_subclasses
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.distribution import is_test_file
from codemods.analysis.functions import functions_by_name
from codemods.analysis.loading.origins import origins
from codemods.analysis.model.signatures import bind, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.analysis.variance.buffers import has_buffers, speaks_of_buffers
from codemods.analysis.variance.plain_layers import is_without_buffers
from codemods.analysis.wrapped.bound_places import bound_by, leaves, place_in, reaches
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.analysis.wrapped.made_models import classes_of, is_wrapped_by_prepare
from codemods.analysis.wrapped.wrap_files import wrapping
from codemods.analysis.wrapped.wraps import is_prepare, is_wrap, without_moves, wraps_by_apex
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

Handed = Mapping[tuple[int, str], Wrapped]  # by the id of a function and the name of a parameter
_DEPTH = 7
_MOST = 6  # callers, heirs
_MOST_FILES = 12
_GIVE_IT_BACK = frozenset({"compile"})


def may_hold(project: Project, module: SourceModule, node: ast.expr, handed: Handed) -> Wrapped | None:
    """The wrapper that `node` may hold, and whose forward waits for all ranks."""
    found = wrapper_in(project, module, node) or _Search(project, handed).of(module, node, 0)
    return found if found is not None and not found.whole and sends_buffers(project, found) else None


def sends_buffers(project: Project, found: Wrapped) -> bool:
    """False where the wrapper sends no buffers, as apex's, and where the classes of the model are seen to have none."""
    if wraps_by_apex(found.module):
        return False
    for keyword in found.wrap.keywords:
        if keyword.arg == "broadcast_buffers" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True):
            return False
    classes = classes_of(project, found.module, found.model) if found.model is not None else ()
    known = [has_buffers(project, f.lineage[0]) for f in classes]
    if not known and _is_of_plain_layers(project, found):
        return False
    return True in known or ((not known or None in known) and speaks_of_buffers(project))


def _is_of_plain_layers(project: Project, found: Wrapped) -> bool:
    made = list(origins(project, found.module, found.model)) if found.model is not None else []
    return bool(made) and all(o.known and not o.path and is_without_buffers(o.module, o.node) for o in made)


class _Search:
    def __init__(self, project: Project, handed: Handed) -> None:
        self.project, self.handed = project, handed
        self.seen: set[int] = set()

    def of(self, module: SourceModule, node: ast.expr | None, depth: int) -> Wrapped | None:
        if node is None or depth > _DEPTH:
            return None
        node = without_moves(node)
        if id(node) in self.seen:
            return None
        self.seen.add(id(node))
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.Name):
            return self._name(module, node, depth) if node.id not in ("self", "cls") else None
        if isinstance(node, ast.Attribute):
            return self._field(module, node, depth) if dotted(node.value) == "self" else None
        if isinstance(node, ast.IfExp):
            return self.of(module, node.body, depth + 1) or self.of(module, node.orelse, depth + 1)
        return None

    def _first(self, places: Iterable[tuple[SourceModule, ast.expr | None]], depth: int) -> Wrapped | None:
        return next((f for module, value in places if (f := self.of(module, value, depth + 1)) is not None), None)

    # Calls

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> Wrapped | None:
        if is_wrap(module, call):
            given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
            return Wrapped(module, call, given) if qualified(module, call.func).startswith(("torch.", "apex.")) else None
        if is_prepare(module, call):
            return self._prepared(module, call, 0) if len(call.args) == 1 else None
        end = last(dotted(call.func)) or getattr(call.func, "attr", "")
        if "unwrap" in end.lower() or not call.args:
            return None
        if end in _GIVE_IT_BACK and qualified(module, call.func).startswith("torch."):
            return self.of(module, call.args[0], depth + 1)
        sites = self._runs(module, call, end)
        return self._first(((s.module, v) for s in sites for v in returned(s.node, s.module)), depth)

    def _runs(self, module: SourceModule, call: ast.Call, end: str) -> list[FunctionSite]:
        """The function of a file that wraps; of an object that is not known the methods of that name."""
        site = called_function(self.project, module, call)
        if site is not None:
            return [site] if site.node.name != "__init__" and site.module.holds(b"DistributedDataParallel") else []
        if not isinstance(call.func, ast.Attribute) or dotted(call.func.value).partition(".")[0] in module.imports:
            return []
        wraps = [m for m in wrapping(self.project) if m.holds(b"DistributedDataParallel")]
        return [FunctionSite(m, f) for m in wraps for f in functions_by_name(m).get(end, ()) if m.class_of(f) is not None]

    def _prepared(self, module: SourceModule, call: ast.Call, index: int) -> Wrapped | None:
        if index >= len(call.args) or any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
            return None
        given = call.args[index]
        wraps = is_wrapped_by_prepare(self.project, module, call, given)
        return Wrapped(module, call, given, prepared=True) if wraps else None

    # Names

    def _name(self, module: SourceModule, name: ast.Name, depth: int) -> Wrapped | None:
        function = module.function_of(name)
        known = bindings_in(module, function, name.id)
        if not known and function is not None:
            return self._global(module, name, depth)
        bound = [b for b in known if b.parameter or bound_by(b.node) < name.lineno]
        out = [b for b in bound if b.value is not None and takes_out(b.value)]
        if any(not _never_runs(module, b.node) for b in out):
            return None
        for one in sorted((b for b in bound if b not in out), key=lambda b: 0 if b.parameter else bound_by(b.node), reverse=True):
            if not one.parameter and leaves(module, one.node, name):
                continue
            found = self._bound(module, function, name, one, depth)
            if found is not None or one.parameter or reaches(module, one.node, name):
                return found
        return None

    def _global(self, module: SourceModule, name: ast.Name, depth: int) -> Wrapped | None:
        """A name of the file, also one that a function binds by `global`: what it holds when all is made."""
        bound = bindings_at_top(module, name.id)
        if any(b.value is not None and takes_out(b.value) for b in bound):
            return None
        for one in sorted(bound, key=lambda b: bound_by(b.node), reverse=True):
            if (found := self._bound(module, module.function_of(one.node), name, one, depth)) is not None:
                return found
        return None

    def _bound(
        self, module: SourceModule, function: FunctionNode | None, name: ast.Name, one: Binding, depth: int
    ) -> Wrapped | None:
        if one.parameter:
            return self._parameter(module, function, name.id, depth) if function is not None else None
        if isinstance(one.node, ast.For):
            return self._element(module, one.node, name.id, depth)
        if one.part and is_prepare(module, one.value) and isinstance(one.value, ast.Call):
            index = place_in(one.node, name.id)
            return self._prepared(module, one.value, index) if index is not None else None
        return self.of(module, one.value, depth + 1) if not one.part else None

    def _element(self, module: SourceModule, loop: ast.For, name: str, depth: int) -> Wrapped | None:
        """`for model, text in ((self.model, "a"), (ema, "b")):`, also of a name that holds them."""
        source: ast.expr | None = loop.iter
        if isinstance(source, ast.Name):
            values = [b.value for b in bindings_in(module, module.function_of(loop), source.id) if b.node is not loop]
            source = next((v for v in values if isinstance(v, (ast.Tuple, ast.List))), None)
        if not isinstance(source, (ast.Tuple, ast.List)):
            return None
        if isinstance(loop.target, ast.Name):
            return self._first(((module, e) for e in source.elts), depth)
        place = next((i for i, e in enumerate(getattr(loop.target, "elts", ())) if dotted(e) == name), None)
        rows = [e for e in source.elts if isinstance(e, (ast.Tuple, ast.List)) and place is not None and place < len(e.elts)]
        return self._first(((module, row.elts[place]) for row in rows), depth) if place is not None else None

    def _parameter(self, module: SourceModule, function: FunctionNode, name: str, depth: int) -> Wrapped | None:
        """What a caller hands over: of the way that is looked at, else of any caller."""
        if any(key[0] == id(function) for key in self.handed):
            return self.handed.get((id(function), name))
        owner = module.parent(function)
        method = isinstance(owner, ast.ClassDef)
        if isinstance(owner, ast.ClassDef) and function.name == "__init__":
            sites = list(_constructions(self.project, ClassSite(module, owner)))
        else:
            sites = list(uses_of(self.project, module, function).outside_tests().calls)
        given = ((s.module, (bind(function, s.call, bound=method) or {}).get(name)) for s in sites[:_MOST])
        return self._first(given, depth)

    # Fields

    def _field(self, module: SourceModule, node: ast.Attribute, depth: int) -> Wrapped | None:
        """What the class, its ancestors or its heirs put into the field."""
        owner = module.class_of(node)
        if owner is None:
            return None
        given: list[Given] = []
        for site in (ClassSite(module, owner), *first_subclasses(self.project, ClassSite(module, owner), _MOST)):
            values = class_values(self.project, class_facts(self.project, site.module, site.node)).given.get(node.attr, ())
            given += [g for g in values if all(g.value is not k.value for k in given)]
        if any(takes_out(g.value) for g in given):
            return None
        for one in given:
            if one.part is not None:
                made = one.value if isinstance(one.value, ast.Call) and is_prepare(one.site.module, one.value) else None
                found = self._prepared(one.site.module, made, one.part) if made is not None else None
            else:
                found = self.of(one.site.module, one.value, depth + 1)
            if found is not None:
                return found
        return None


def _never_runs(module: SourceModule, node: ast.AST) -> bool:
    """True under `if "module" in model.__dict__`: torch keeps the modules of a module elsewhere, in `_modules`."""
    up = module.parent(node)
    test = up.test if isinstance(up, ast.If) else None
    asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In) and isinstance(test.left, ast.Constant)
    return asks and isinstance(test, ast.Compare) and last(dotted(test.comparators[0])) == "__dict__"


def takes_out(value: ast.expr) -> bool:
    """True for `model.module`, `unwrap_model(model)`, `getattr(model, "module", model)`, on a test as well."""
    if isinstance(value, ast.IfExp):
        return takes_out(value.body) or takes_out(value.orelse)
    if isinstance(value, ast.Attribute):
        return value.attr == "module"
    if not isinstance(value, ast.Call) or not value.args:
        return False
    end = last(dotted(value.func)).lower()
    if end == "getattr":
        return any(isinstance(a, ast.Constant) and a.value == "module" for a in value.args)
    return any(word in end for word in ("unwrap", "raw_", "bare", "de_parallel", "strip_ddp", "without_ddp", "get_model"))


def _constructions(project: Project, site: ClassSite) -> Iterator[CallSite]:
    """Where objects of the class are made: by its name, by an heir, by `super().__init__`, by what a factory of classes gives."""
    heirs = first_subclasses(project, site, _MOST)
    for one in (site, *(h for h in heirs if "__init__" not in h.methods())):
        uses = constructions(project, one.module, one.node)
        yield from uses.outside_tests().calls if uses is not None else ()
        yield from _by_factory(project, one)
    for heir in heirs:
        init = heir.methods().get("__init__")
        for call in (n for n in walk_scope(init) if isinstance(n, ast.Call)) if init is not None else ():
            if heir.module.text_of(call.func) != "super().__init__":
                continue
            if any(isinstance(a, ast.Starred) for a in call.args):  # `super().__init__(*args, **kwargs)`: what makes the heir
                yield from _constructions(project, heir)
            else:
                yield CallSite(heir.module, call)


def _is_class(project: Project, module: SourceModule, node: ast.expr, site: ClassSite) -> bool:
    if not isinstance(node, ast.Name) or not node.id[:1].isupper():
        return False
    found = find_class(project, module, node.id)
    return found is not None and found.node is site.node


def _by_factory(project: Project, site: ClassSite) -> Iterator[CallSite]:
    """`kind = pick(config)` and `kind(model)`, where `pick` returns the class."""
    naming = (p for p in project.files_containing(site.name.encode()) if b"return " in (project.read(p) or b""))
    for path in list(naming)[:_MOST_FILES]:
        module = None if is_test_file(path) else project.module(path)
        for function in module.functions if module is not None else ():
            assert module is not None
            if any(_is_class(project, module, v, site) for v in returned(function, module)):
                for made in uses_of(project, module, function).outside_tests().calls:
                    up = made.module.parent(made.call)
                    names = {dotted(t) for t in up.targets} if isinstance(up, ast.Assign) else set()
                    home = made.module.function_of(made.call)
                    calls = (c for name in names if name for c in made.module.calls_named(last(name)))
                    yield from (CallSite(made.module, c) for c in calls if made.module.function_of(c) is home)
