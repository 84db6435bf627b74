"""The project's own question whether there is a process group: a function that answers just that, the test of its start."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import find_function
from codemods.analysis.functions import functions_by_name
from codemods.analysis.names import dotted, qualified
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.rewriting.imports import runs_at_import
from codemods.store.project import Project

_ASKS = ("torch.distributed.is_initialized", "torch.distributed.is_available")
_TELLS = re.compile(r"(?:[\w.]+\.)?(?:print|log|info|debug|warning|warn|error)")


def own_group_question(project: Project, module: SourceModule) -> str:
    """`misc.has_group()`: how the file can ask by a function of the project; "" where it has none at hand."""
    bound = {n.id for n in module.nodes(ast.Name) if not isinstance(n.ctx, ast.Load)} | {a.arg for a in module.nodes(ast.arg)}
    names = (name for name in _names(project, module) if name.partition(".")[0] not in bound)
    return next((f"{name}()" for name in names if _is_question(project, module, name)), "")


def asked_at_start(module: SourceModule, start: ast.Call, end: ast.stmt) -> str:
    """`args.parallel`, where the function of `end` starts the group under that test alone, and asks it elsewhere as well.

    The test must say the same at the end: nothing in the function gives its names another value.
    """
    function = module.function_of(end)
    if function is None or module.function_of(start) is not function or not any(s is end for s in function.body):
        return ""
    holder = module.parent(module.statement_of(start))
    if not isinstance(holder, ast.If) or not any(s is holder for s in function.body):
        return ""
    if not any(s is module.statement_of(start) for s in holder.body) or _starts_one(holder.orelse):
        return ""
    text = module.text_of(holder.test)
    if "\n" in text or any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(holder.test)):
        return ""
    tests = [n.test for n in walk_scope(function) if isinstance(n, (ast.If, ast.IfExp)) and n is not holder]
    if not any(module.text_of(t) == text for t in tests):
        return ""
    return "" if _changes(function, holder) else text


def _starts_one(block: list[ast.stmt]) -> bool:
    """True where the other way may start a group too: it calls what is neither a logger nor `print`."""
    calls = (n for s in block for n in walk(s) if isinstance(n, ast.Call))
    return any(not _TELLS.fullmatch(dotted(c.func)) for c in calls)


def _changes(function: FunctionNode, holder: ast.If) -> bool:
    """True where the function gives a name or a field of the test another value once it has been asked."""
    asked = {dotted(n) for n in walk(holder.test) if isinstance(n, (ast.Name, ast.Attribute))} - {""}
    stored = (n for n in walk(function) if isinstance(n, (ast.Name, ast.Attribute)) and not isinstance(n.ctx, ast.Load))
    return any(dotted(n) in asked and n.lineno >= holder.lineno for n in stored)


def _names(project: Project, module: SourceModule) -> Iterator[str]:
    """What the file can call: its functions, what it imports at its top, and what it calls of modules that it imports."""
    yield from sorted(n for n, f in functions_by_name(module).items() if len(f) == 1 and module.parent(f[0]) is module.tree)
    for name, found in sorted(module.imports.items()):
        if len(found) > 1 or module.parent(found[0].node) is not module.tree or not runs_at_import(module, found[0].node):
            continue
        yield name
        resolved = project.resolve(found[0].dotted, module.path)
        home = project.module(resolved.path) if resolved is not None and not resolved.rest else None
        if home is not None and not home.path.endswith("__init__.py"):  # `import package.part` binds the package's name
            yield from (f"{name}.{f}" for f in sorted(functions_by_name(home)))


def _is_question(project: Project, module: SourceModule, name: str) -> bool:
    site = find_function(project, module, name)
    if site is None or isinstance(site.node, ast.AsyncFunctionDef) or site.node.decorator_list or _takes_any(site.node):
        return False
    body = site.node.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body = body[1:]
    return _asks_initialized(site.module, site.node) and _says_whether(site.module, body)


def _takes_any(function: FunctionNode) -> bool:
    spec = function.args
    return bool(spec.posonlyargs or spec.args or spec.kwonlyargs or spec.vararg or spec.kwarg)


def _asks_initialized(module: SourceModule, function: FunctionNode) -> bool:
    return any(isinstance(n, ast.Call) and qualified(module, n.func) == _ASKS[0] for n in walk(function))


def _says_whether(module: SourceModule, body: list[ast.stmt]) -> bool:
    """True for `return available() and initialized()`, and for a `return False` under the opposite of each, then `True`."""
    if not body or not isinstance(final := body[-1], ast.Return) or final.value is None:
        return False
    for statement in body[:-1]:
        if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
            return False
        denied, given = statement.test, statement.body[0]
        if not isinstance(denied, ast.UnaryOp) or not isinstance(denied.op, ast.Not) or not _is_asked(module, denied.operand):
            return False
        if not isinstance(given, ast.Return) or not _is_word(given.value, word=False):
            return False
    return _is_asked(module, final.value) or (len(body) > 1 and _is_word(final.value, word=True))


def _is_asked(module: SourceModule, test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(_is_asked(module, part) for part in test.values)
    return isinstance(test, ast.Call) and qualified(module, test.func) in _ASKS


def _is_word(value: ast.expr | None, *, word: bool) -> bool:
    return isinstance(value, ast.Constant) and value.value is word
