"""The forward of a DDP wrapper that rank 0 alone comes to: from each rank test down through calls, methods and heirs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_at_top, bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, Role, class_facts, overriding
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import bind, parameters
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_guards import guards_over, speaks_of_ranks
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.variance.heirs import is_left_open
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.may_hold import Handed, may_hold
from codemods.analysis.wrapped.wrap_files import wrapping
from codemods.api.findings import Evidence, Span
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_GUARDS
from codemods.files.source import SourceModule, line_of, walk, walk_scope
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import record, replace
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_DEPTH = 6  # calls between the test and the forward
_ASKING = ("hasattr", "isinstance", "getattr", "type(")
_MOST_HEIRS = 4


@record
class AloneForward:
    """path, span: where it is told. text: the forward. home, line: the test. way: what leads from it to the wrapper.

    calls: the lines of `home` behind the test from which it is come to. also: further lines of the function that run the same.
    """

    path: str
    span: Span
    text: str
    home: str
    line: int
    calls: tuple[int, ...]
    way: tuple[Evidence, ...]
    also: tuple[int, ...] = ()


def forwards_behind_guards(project: Project, module: SourceModule) -> list[AloneForward]:
    """Those that are told in this file, one for each function and test."""
    return [one for one in _known(project) if one.path == module.path]


def calls_told_behind(project: Project, module: SourceModule) -> set[int]:
    """The lines of this file from which such a forward is come to, wherever it is told."""
    return {line for one in _known(project) if one.home == module.path for line in one.calls}


def _known(project: Project) -> list[AloneForward]:
    def build() -> list[AloneForward]:
        found: dict[tuple[str, Span], AloneForward] = {}
        for one in _all(project):
            before = found.get((one.path, one.span))
            found[one.path, one.span] = one if before is None or before.home != one.home else (
                replace(before, calls=(*before.calls, *one.calls))
            )  # fmt: skip
        return list(found.values())

    return project.keep("forwards behind guards", build)


def _all(project: Project) -> Iterator[AloneForward]:
    if not any(True for _ in wrapping(project)):
        return
    words = sorted({word for site in RANK_GUARDS for word in site.words})
    paths = {p for word in words for p in project.files_containing(word) if p.endswith(PYTHON_KINDS) and not is_test_file(p)}
    for path in sorted(paths):
        if project.fact(_guards, path) and (home := project.module(path)) is not None:
            yield from _of_file(project, home)


@file_fact
def _guards(path: str, data: bytes) -> bool:
    del path
    return any(site.search(data) for site in RANK_GUARDS)


def _of_file(project: Project, home: SourceModule) -> Iterator[AloneForward]:
    """Those behind the tests of one file; those of one function that the same test leads to are one."""
    places: dict[tuple[int, str, int], list[_Alone]] = {}
    for one in _from_guards(project, home):
        places.setdefault((id(one.module.function_of(one.node)), one.text, id(one.guard)), []).append(one)
    for same in places.values():
        lines = sorted({one.node.lineno for one in same})
        first = min(same, key=lambda one: one.node.lineno)
        wrap = Evidence("static", "the model is wrapped here", first.wrapped.module.path, first.wrapped.wrap.lineno)
        yield AloneForward(
            first.module.path, first.module.span(first.node), first.text, home.path, line_of(first.guard),
            tuple(one.call.lineno for one in same), (*first.way, wrap), tuple(lines[1:4]),
        )  # fmt: skip


@record
class _Alone:
    module: SourceModule
    node: ast.expr
    text: str
    guard: ast.AST
    call: ast.Call
    wrapped: Wrapped
    way: tuple[Evidence, ...]


def _from_guards(project: Project, home: SourceModule) -> Iterator[_Alone]:
    scopes: dict[int, bool] = {}
    for call in home.nodes(ast.Call):
        function = home.function_of(call)
        if not scopes.setdefault(id(function), speaks_of_ranks(home, function, project)):
            continue
        guard = _guard(project, home, call)
        if guard is None or _has_partner(home, guard, call):
            continue
        for module, node, text, wrapped, way in _Walk(project).call(home, call, {}, 0):
            if module is home or _speaks_of_ranks(module):
                yield _Alone(module, node, text, guard, call, wrapped, way)
            else:  # what speaks of no rank is the same for all: who calls it there has to decide
                text = f"{home.text_of(call.func)}(...), and there {text}"
                place = Evidence("static", "the forward of the wrapper", module.path, node.lineno)
                yield _Alone(home, call.func, text, guard, call, wrapped, (*way, place))


def _speaks_of_ranks(module: SourceModule) -> bool:
    data = module.data
    return all(any(word in data for word in words) for words in (GUARDS, PROCESSES)) and any(s.search(data) for s in RANK_GUARDS)


def _guard(project: Project, module: SourceModule, call: ast.Call) -> ast.AST | None:
    """The test that lets rank 0 alone come to the call; an exit under a further test counts for the runs that take it."""
    for guard in guards_over(module, call, project=project):
        if guard.ranks in _ZERO:
            return guard.node
        if guard.kind == "exit" and isinstance(guard.node, ast.If) and _leaves_zero(project, module, guard.node, call):
            return guard.node
    return None


def _leaves_zero(project: Project, module: SourceModule, exit_: ast.If, call: ast.Call) -> bool:
    split = known_split(module, exit_.test, project)
    over = module.parent(exit_)
    if split is None or split.false not in _ZERO or not split.alone or exit_.orelse or not isinstance(over, ast.If):
        return False
    if not isinstance(exit_.body[-1], ast.Return) or not any(s is exit_ for s in over.body):
        return False
    names = {dotted(n) for n in walk(over.test) if isinstance(n, (ast.Name, ast.Attribute))}
    tests = (up.test for up in module.ancestors(call) if isinstance(up, (ast.If, ast.IfExp)))
    return not any(dotted(n) in names for t in tests for n in walk(t) if isinstance(n, ast.Attribute))


def _has_partner(module: SourceModule, guard: ast.AST, call: ast.Call) -> bool:
    """True where the other ranks make a call of that name on their own way: the two halves of one step."""
    others: list[ast.stmt] = []
    if isinstance(guard, ast.If):
        inside = any(up is guard for up in module.ancestors(call))
        below = any(s is up for up in (call, *module.ancestors(call)) for s in guard.body)
        others = guard.orelse if below else guard.body if inside or not guard.orelse else []
    name = last(dotted(call.func))
    return any(isinstance(n, ast.Call) and last(dotted(n.func)) == name for s in others for n in walk(s))


_Found = tuple[SourceModule, ast.expr, str, Wrapped, tuple[Evidence, ...]]


class _Walk:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[tuple[int, tuple[str, ...]]] = set()

    def call(self, module: SourceModule, call: ast.Call, handed: Handed, depth: int) -> Iterator[_Found]:
        """The forwards that a call comes to: its own, and those of the functions that it runs."""
        own = isinstance(call.func, ast.Name) or (isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self")
        if not own and not isinstance(call.func, ast.Attribute):
            return
        sites = self._sites(module, call)
        if own and not sites and not self._asks(module, call):
            if (found := may_hold(self.project, module, call.func, handed)) is not None:
                yield module, call.func, module.text_of(call.func), found, ()
            return
        if depth >= _DEPTH:
            return
        for site in sites:
            yield from self._into(module, call, site, handed, depth)

    def _into(
        self, module: SourceModule, call: ast.Call, site: FunctionSite, handed: Handed, depth: int
    ) -> Iterator[_Found]:
        method = isinstance(site.module.parent(site.node), ast.ClassDef) and isinstance(call.func, ast.Attribute)
        given = bind(site.node, call, bound=method)
        models = {
            (id(site.node), name): wrapped for name, value in (given or {}).items()
            if isinstance(value, (ast.Name, ast.Attribute)) and (wrapped := may_hold(self.project, module, value, handed))
        }  # fmt: skip
        on_self = dotted(call.func).startswith("self.") and method
        if not (models or on_self):
            yield from self._of_the_file(module, call, site)
        if not (models or on_self) or (key := (id(site.node), tuple(sorted(n for _, n in models)))) in self.seen:
            return
        self.seen.add(key)
        known = models or {(id(site.node), ""): next(iter(handed.values()))} if handed else models
        names = {a.arg for a in parameters(site.node, bound=method)}
        step = Evidence("static", f"`{module.text_of(call.func)}(...)` is called there by rank 0 alone", module.path, call.lineno)
        for inner in (n for n in walk_scope(site.node) if isinstance(n, ast.Call)):
            if any(g.ranks in (Ranks.OTHERS, Ranks.LOCAL_OTHERS) for g in guards_over(site.module, inner, project=self.project)):
                continue
            for where, node, text, wrapped, way in self.call(site.module, inner, known, depth + 1):
                if node is inner.func and isinstance(node, ast.Name) and node.id in names:  # who hands it over has to decide
                    yield module, call.func, f"{module.text_of(call.func)}(...), and there {text}", wrapped, way
                    return
                else:
                    yield where, node, text, wrapped, (step, *way)

    def _of_the_file(self, module: SourceModule, call: ast.Call, site: FunctionSite) -> Iterator[_Found]:
        """The forwards in a function that is handed no model: those of one that the file holds under a name of its own."""
        key = (id(site.node), ("of the file",))
        if key in self.seen:
            return
        self.seen.add(key)
        step = Evidence("static", f"`{module.text_of(call.func)}(...)` is called there by rank 0 alone", module.path, call.lineno)
        for inner in (n for n in walk_scope(site.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
            name = inner.func.id if isinstance(inner.func, ast.Name) else ""
            if bindings_in(site.module, site.node, name) or not bindings_at_top(site.module, name):
                continue
            if any(g.ranks in (Ranks.OTHERS, Ranks.LOCAL_OTHERS) for g in guards_over(site.module, inner, project=self.project)):
                continue
            found = None if self._asks(site.module, inner) else may_hold(self.project, site.module, inner.func, {})
            if found is not None:
                yield site.module, inner.func, name, found, (step,)

    def _sites(self, module: SourceModule, call: ast.Call) -> list[FunctionSite]:
        """The functions that the call may run: of a method that a base class leaves open those of its heirs."""
        site = called_function(self.project, module, call)
        owner = module.class_of(call) if dotted(call.func).startswith("self.") else None
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if owner is not None and dotted(call.func) == f"self.{name}":
            facts = class_facts(self.project, module, owner)
            if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE):
                return []
            if site is None or is_left_open(site.node):
                heirs = overriding(self.project, ClassSite(module, owner), name) or ()
                written = [FunctionSite(h.module, h.methods()[name]) for h in heirs[:_MOST_HEIRS]]
                return written or ([site] if site is not None else [])
        return [site] if site is not None and site.node.name != "__init__" else []

    def _asks(self, module: SourceModule, call: ast.Call) -> bool:
        """True under a test that tells the wrapper from the model."""
        for up in module.ancestors(call):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            if isinstance(up, (ast.If, ast.IfExp)) and any(word in module.text_of(up.test) for word in _ASKING):
                return True
        return False


