"""A `print` of the program's own on the other ranks that takes no keywords, and a call with keywords that comes behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.files.every_rank import is_for_some
from codemods.analysis.files.file_flow import callee
from codemods.analysis.names import dotted, qualified
from codemods.analysis.positions import behind
from codemods.analysis.ranks.cannot_run import is_behind_an_end
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_BUILTINS = frozenset({"builtins", "__builtin__"})
_OF_PYTHON = frozenset({"sep", "end", "file", "flush"})  # rank 0 keeps Python's own `print`, which takes no others
_UP = 2  # callers of the function that puts it there
_DOWN = 4
_MOST = 80  # functions looked at for one replacement


@record
class NarrowPrint:
    """assign: where `builtins.print` is replaced, by `made`. call: a `print` with keywords that follows, in `home`."""

    assign: ast.Assign
    made: FunctionNode | ast.Lambda
    home: SourceModule
    call: ast.Call


def narrow_prints(project: Project, module: SourceModule) -> Iterator[NarrowPrint]:
    """The replacements of the file that only some ranks make, each with the first such call behind it."""
    for assign in module.nodes(ast.Assign):
        if not any(_is_print_of_python(module, t) for t in assign.targets) or not is_for_some(project, module, assign):
            continue
        made = _made(module, assign.value)
        if made is None or made.args.kwarg is not None:
            continue
        search = _Search(project, frozenset(a.arg for a in (*made.args.args, *made.args.kwonlyargs)))
        found = search.behind(module, assign, _UP)
        if found is not None:
            yield NarrowPrint(assign, made, *found)


def _is_print_of_python(module: SourceModule, target: ast.expr) -> bool:
    if not isinstance(target, ast.Attribute) or target.attr != "print":
        return False
    return dotted(target.value) in _BUILTINS or qualified(module, target.value) in _BUILTINS


def _made(module: SourceModule, value: ast.expr) -> FunctionNode | ast.Lambda | None:
    """The function of this file, or the lambda, that is put in the place of `print`."""
    if isinstance(value, ast.Lambda):
        return value
    if not isinstance(value, ast.Name) or bindings_of(module, value):
        return None
    named = [f for f in module.functions if f.name == value.id and module.class_of(f) is None]
    return named[0] if len(named) == 1 and not named[0].decorator_list else None


class _Search:
    def __init__(self, project: Project, taken: frozenset[str]) -> None:
        self.project, self.taken = project, taken
        self.seen: set[int] = set()

    def behind(self, module: SourceModule, node: ast.AST, up: int) -> tuple[SourceModule, ast.Call] | None:
        """The first such call that every rank comes to behind a place: in its function, in what that calls, in its callers."""
        for statement in _following(module, node):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue  # it is only defined here
            if (found := self._in(module, statement, _DOWN)) is not None:
                return found
        function = module.function_of(node)
        for site in uses_of(self.project, module, function).outside_tests().calls[:4] if function is not None and up > 0 else ():
            if is_for_some(self.project, site.module, site.call):
                continue
            if (found := self.behind(site.module, site.call, up - 1)) is not None:
                return found
        return None

    def _in(self, module: SourceModule, scope: ast.AST, depth: int) -> tuple[SourceModule, ast.Call] | None:
        calls = sorted((n for n in walk_scope(scope) if isinstance(n, ast.Call)), key=lambda c: (c.lineno, c.col_offset))
        for call in calls:
            if self._is_refused(module, call) and not self._is_kept(module, call):
                return module, call
        for call in calls if depth > 0 else ():
            site = callee(self.project, module, call) if len(self.seen) < _MOST else None
            if site is None or id(site.node) in self.seen or self._is_kept(module, call):
                continue
            self.seen.add(id(site.node))
            if (found := self._in(site.module, site.node, depth - 1)) is not None:
                return found
        return None

    def _is_refused(self, module: SourceModule, call: ast.Call) -> bool:
        """True for `print(x, flush=True)` of Python's own name, with a keyword of it that the replacement does not take."""
        if not isinstance(call.func, ast.Name) or call.func.id != "print" or "print" in module.imports:
            return False
        if bindings_of(module, call.func) or any(f.name == "print" for f in module.functions):
            return False
        given = {k.arg for k in call.keywords if k.arg is not None}
        return given <= _OF_PYTHON and not given <= self.taken

    def _is_kept(self, module: SourceModule, call: ast.Call) -> bool:
        """True where the ranks that have the replacement may not come, or where what it raises is caught."""
        if is_for_some(self.project, module, call) or is_behind_an_end(module, call):
            return True
        for up in module.ancestors(call):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            if isinstance(up, ast.ExceptHandler) or (isinstance(up, ast.Try) and up.handlers):
                return True
        return False


def _following(module: SourceModule, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements behind a place in the blocks round it, to the end of its function; those of a loop come round again."""
    below: ast.AST = node if isinstance(node, ast.stmt) else module.statement_of(node)
    for up in module.ancestors(below):
        yield from behind(module, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up
