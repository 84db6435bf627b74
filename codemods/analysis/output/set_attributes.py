"""Is `self.accelerator` sure to have a value at a place? A bare annotation gives none, and another method may never have run.

Set by the class itself, by `__init__` on every way, above the place in the same method, or above each call of the method. What
the method reads on its way in any case is there as well: without it the program would not come past.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted
from codemods.analysis.output.run_before import run_before
from codemods.analysis.positions import behind
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_UP = 4
_Lineage = tuple[ClassSite, ...]


def is_sure_to_be_set(project: Project, module: SourceModule, statement: ast.stmt, name: str) -> bool:
    """True where `self.<name>` has a value whenever `statement` of a method begins, or its absence would end the run anyway."""
    owner, function = module.class_of(statement), module.function_of(statement)
    if owner is None or function is None:
        return False
    key = ("sure to be set", module.path, statement, name)
    return project.memo(key, lambda: _Question(project, name).is_set(module, statement, _UP))


def is_set_by_methods(project: Project, module: SourceModule, owner: ast.ClassDef, name: str) -> bool:
    """True for a field that the class or an ancestor in the project sets or annotates: no framework's base brings it."""
    if not module.holds(name.encode()):
        return False
    lineage = class_facts(project, module, owner).lineage
    return any(_is_stored(site, name) for site in lineage)


def _is_stored(site: ClassSite, name: str) -> bool:
    if not site.module.holds(name.encode()):
        return False
    return any(
        (isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Store) and dotted(n.value) == "self")
        or (isinstance(n, ast.AnnAssign) and dotted(n.target) == name)
        for n in walk(site.node)
    )  # fmt: skip


@record
class _Question:
    project: Project
    name: str

    def is_set(self, module: SourceModule, place: ast.stmt, up: int) -> bool:
        owner, function = module.class_of(place), module.function_of(place)
        if owner is None or function is None or module.parent(function) is not owner:
            return False
        lineage = class_facts(self.project, module, owner).lineage
        if any(
            self._gives(s, module, lineage, above=lineage[1:]) or self._reads(s) for s in run_before(module, place)
        ) or self._reads(place):
            return True
        if any(self._reads_at_its_head(up_) for up_ in module.ancestors(place)):
            return True
        if function.name != "__init__" and (self._is_in_class(lineage) or self._always_given(lineage, "__init__")):
            return True
        return self._is_read_below(module, place, lineage) or (up > 0 and self._before_each_call(module, function, up))

    def _before_each_call(self, module: SourceModule, function: FunctionNode, up: int) -> bool:
        used = uses_of(self.project, module, function).outside_tests()
        if function.name == "__init__" or used.more or used.handed_on or not used.calls:
            return False
        for site in used.calls:
            if dotted(site.call.func) != f"self.{function.name}" or site.module.function_of(site.call) is function:
                return False
            if not self.is_set(site.module, site.module.statement_of(site.call), up - 1):
                return False
        return True

    def _is_in_class(self, lineage: _Lineage) -> bool:
        """True for a value in the class body, and for a property."""
        for site in lineage:
            for statement in site.node.body:
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == self.name:
                    return True
                if any(dotted(t) == self.name and not is_none(v) for t, v in _stored(statement)):
                    return True
        return False

    def _always_given(self, lineage: _Lineage, method: str, seen: tuple[str, ...] = ()) -> bool:
        """True for a method that sets the field on every way."""
        for i, site in enumerate(lineage):
            if (function := site.methods().get(method)) is not None:
                rest = lineage[i + 1 :]
                return any(self._gives(s, site.module, lineage, above=rest, seen=(*seen, method)) for s in function.body)
        return False

    def _gives(
        self, statement: ast.stmt, module: SourceModule, lineage: _Lineage, *, above: _Lineage = (),
        seen: tuple[str, ...] = (),
    ) -> bool:  # fmt: skip
        if isinstance(statement, ast.If):
            return all(any(self._gives(s, module, lineage, above=above, seen=seen) for s in block)
                       for block in (statement.body, statement.orelse))  # fmt: skip
        if isinstance(statement, (ast.With, ast.Try)):
            return any(self._gives(s, module, lineage, above=above, seen=seen) for s in statement.body)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            stored = [v for t, v in _stored(statement) if dotted(t) == f"self.{self.name}"]
            if stored:
                return not any(_may_be_none(module, v) for v in stored)
        if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(statement.value, ast.Call):
            return False
        called = statement.value.func
        if not isinstance(called, ast.Attribute):
            return False
        if isinstance(called.value, ast.Call) and dotted(called.value.func) == "super":
            return self._always_given(above, called.attr)
        return dotted(called.value) == "self" and called.attr not in seen and self._always_given(lineage, called.attr, seen)

    def _reads(self, statement: ast.stmt) -> bool:
        """True where the statement asks a member of the field on every way through it."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        if self._reads_at_its_head(statement):
            return True
        inner = statement.body if isinstance(statement, (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.Try)) else ()
        return any(self._reads(s) for s in inner)

    def _reads_at_its_head(self, statement: ast.AST) -> bool:
        return any(self._asks(part) for part in _heads(statement))

    def _asks(self, node: ast.expr) -> bool:
        """True for `self.accelerator.device` outside of what may be skipped."""
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return False
        if isinstance(node, ast.Attribute) and dotted(node.value) == f"self.{self.name}":
            return True
        parts: Iterator[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.BoolOp):
            parts = iter(node.values[:1])
        elif isinstance(node, ast.IfExp):
            parts = iter((node.test,))
        return any(self._asks(p.value if isinstance(p, ast.keyword) else p) for p in parts
                   if isinstance(p, (ast.expr, ast.keyword)))  # fmt: skip

    def _is_read_below(self, module: SourceModule, place: ast.stmt, lineage: _Lineage) -> bool:
        """True where the method goes on to ask the field, and nothing in between may leave it or set the field."""
        for following in _run_after(module, place):
            if self._reads(following):
                return True
            if any(isinstance(n, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for n in walk_scope(following)):
                return False
            if self._may_set(following, lineage):
                return False
        return False

    def _may_set(self, statement: ast.stmt, lineage: _Lineage) -> bool:
        for node in walk_scope(statement):
            if isinstance(node, ast.Attribute) and node.attr == self.name and isinstance(node.ctx, ast.Store):
                return True
            if isinstance(node, ast.Call) and dotted(node.func).startswith(("self.", "super")):
                return True
        return False


def _heads(statement: ast.AST) -> list[ast.expr]:
    """What a statement works out in any case when it begins."""
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.test]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [i.context_expr for i in statement.items]
    if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
        return [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.expr)]
    return [statement.test] if isinstance(statement, ast.Assert) else []


def _run_after(module: SourceModule, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements behind one, in its block and in the blocks round it, up to the loop or the function that it stands in."""
    below: ast.AST = statement
    for up in module.ancestors(statement):
        yield from behind(module, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _stored(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with the value that it gets, or the one that it is a part of."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    if value is None:
        return
    for target in statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", value)]:
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, value
            continue
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if same and isinstance(value, (ast.Tuple, ast.List)) else [value] * len(target.elts)
        yield from zip(target.elts, values, strict=True)


def _may_be_none(module: SourceModule, value: ast.expr) -> bool:
    """True for None, and for an argument that is None where nobody gives it."""
    if not isinstance(value, ast.Name):
        return is_none(value)
    function = module.function_of(value)
    return function is not None and is_none(defaults(function).get(value.id))
