"""What a Namespace holds for a Trainer that is made of it, where the program gives the field: `args.accelerator = "dp"`.

`Trainer.from_argparse_args(args)` reads it there, whatever the command line said. Looked for right above the call, and above the
calls of a function that is handed the Namespace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, end_of
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.set_above import given_above, in_between
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

_DEPTH = 3  # functions that hand the Namespace on
_READS = frozenset({"vars", "print", "str", "repr", "from_argparse_args", "pprint", "info"})


def parsed_field(project: Project, module: SourceModule, call: ast.Call, field: str) -> list[ast.expr]:
    """What the field of the Namespace is on each way to the call; nothing where one of them does not give it."""
    held = call.args[0] if call.args else None
    if not isinstance(held, ast.Name):
        return []
    found = list(_on_each_way(project, module, held, field, _DEPTH))
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def _on_each_way(
    project: Project, module: SourceModule, held: ast.Name, field: str, depth: int
) -> Iterator[ast.expr | None]:
    value = _above(project, module, held, field)
    if value is not None:
        yield value
        return
    function = module.function_of(held)
    if function is None or not depth or not _is_as_handed(project, module, held, field):
        yield None
        return
    sites = calls_of(project, module, function)
    handed = list(arguments(project, module, function, held.id))
    if not sites or not handed or len(handed) < len(sites):
        yield None
    for home, given in handed:
        if isinstance(given, ast.Name):
            yield from _on_each_way(project, home, given, field, depth - 1)
        else:
            yield None


def _above(project: Project, module: SourceModule, held: ast.Name, field: str) -> ast.expr | None:
    """The value that the field was given last, where nothing behind it may have given another."""
    name = f"{held.id}.{field}"
    given = given_above(module, name, held)
    if given is None:
        return None
    between = in_between(module, given[0], module.statement_of(held))
    if between is None or any(_may_change(project, module, s, held.id, field, held) for s in between):
        return None
    return given[1]


def _is_as_handed(project: Project, module: SourceModule, held: ast.Name, field: str) -> bool:
    """True for a parameter whose field nothing in the function may have changed."""
    function = module.function_of(held)
    bound = bindings_of(module, held)
    if function is None or len(bound) != 1 or not bound[0].parameter:
        return False
    return not any(_may_change(project, module, s, held.id, field, held) for s in function.body)


def _may_change(project: Project, module: SourceModule, statement: ast.stmt, root: str, field: str, held: ast.Name) -> bool:
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            if dotted(node) == f"{root}.{field}" or (dotted(node) == root and not _is_given_back(project, module, node, field)):
                return True
        elif isinstance(node, ast.Call):
            given = (*node.args, *(k.value for k in node.keywords))
            hands = any(dotted(g) == root and g is not held for g in given)
            if hands and not _leaves(project, module, node, root, field, _DEPTH):
                return True
    return False


def _is_given_back(project: Project, module: SourceModule, target: ast.AST, field: str) -> bool:
    """True for `args = checked(args)`, where the function gives back what it was handed."""
    assign = module.parent(target)
    call = assign.value if isinstance(assign, ast.Assign) else None
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
        return False
    site = called_function(project, module, call)
    name = _parameter(site, call, target.id) if site is not None else ""
    values = returned(site.node, site.module) if site is not None else []
    stored = site is not None and any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in walk_scope(site.node)
    )
    return bool(name and values) and not stored and all(isinstance(v, ast.Name) and v.id == name for v in values)


def _leaves(project: Project, module: SourceModule, call: ast.Call, root: str, field: str, depth: int) -> bool:
    """True for a call that reads the Namespace it is handed, and gives this field no value."""
    site = called_function(project, module, call)
    if site is None:
        return end_of(call.func) in _READS
    name = _parameter(site, call, root)
    if not name or not depth or site.node.decorator_list:
        return False
    for node in walk(site.node):
        if isinstance(node, ast.Attribute) and node.attr in (field, "__dict__") and dotted(node.value) == name:
            if node.attr == "__dict__" or not isinstance(node.ctx, ast.Load):
                return False
        elif isinstance(node, ast.Call) and name in map(dotted, (*node.args, *(k.value for k in node.keywords))):
            if not _leaves(project, site.module, node, name, field, depth - 1):
                return False
    return True


def _parameter(site: FunctionSite, call: ast.Call, root: str) -> str:
    """The parameter that is handed the object; "" where that is not seen."""
    names = [a.arg for a in (*site.node.args.posonlyargs, *site.node.args.args)]
    if isinstance(site.module.parent(site.node), ast.ClassDef):
        names = names[1:]
    for name, given in zip(names, call.args, strict=False):
        if dotted(given) == root:
            return name
    return next((k.arg or "" for k in call.keywords if dotted(k.value) == root), "")
