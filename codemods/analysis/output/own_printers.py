"""The project's own function that prints on rank 0 alone, where the file has it at hand: `log0("start")` for `print("start")`.

It is a method of the class, defined above the place, or imported at the top of the file, and works with one process as well as
with many.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import find_function, top_function
from codemods.analysis.class_index import class_facts, overriding
from codemods.analysis.functions import functions_by_name
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.loading.programs import starts_group_before
from codemods.analysis.loading.spawned import in_file_of_workers
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.early_ranks import has_no_group_yet
from codemods.analysis.output.minus_one import writes_minus_one
from codemods.analysis.output.printer_bodies import Printer, printer_of
from codemods.analysis.output.run_before import binds, run_before
from codemods.analysis.output.set_attributes import is_sure_to_be_set
from codemods.analysis.ranks.rank_tests import asks_for_group, means_process_group
from codemods.api.findings import Edit
from codemods.files.source import FunctionNode, Import, SourceModule, walk
from codemods.rewriting.imports import plan_statement, runs_at_import
from codemods.runtime.record import record
from codemods.store.project import Project

_DEEP = 3  # functions that a test asks one after the other
_GROUP = ("is_initialized", "is_available")
_SILENT = ("False", "None", "-1")  # what says nothing to a process alone


@record
class OwnPrinter:
    """name: as it is called at the place. edits: the import that brings it in. by_node: one process of each node prints."""

    name: str
    edits: tuple[Edit, ...] = ()
    by_node: bool = False


def own_printer(
    project: Project, module: SourceModule, statement: ast.stmt, calls: Sequence[ast.Call], *, may_import: bool = False
) -> OwnPrinter | None:
    """What can make these prints on rank 0 alone: a method of the class, or the function that the file calls most.

    may_import: also a function of a file of which this one imports something else.
    """
    if (own := _of_the_class(project, module, statement, calls)) is not None:
        return own
    found = [(n, p) for n in _names(project, module) if (p := _can(project, module, statement, n, calls)) is not None]
    if found:
        name, printer = max(found, key=lambda one: (len(module.calls_named(last(one[0]))), one[0]))
        return OwnPrinter(name, by_node=printer.by_node)
    return _from_a_file_it_imports(project, module, statement, calls) if may_import else None


def _can(
    project: Project, module: SourceModule, statement: ast.stmt, name: str, calls: Sequence[ast.Call]
) -> Printer | None:
    printer = _known_at(project, module, statement, name)
    return printer if printer is not None and _prints(project, module, statement, name, printer, calls) else None


def _prints(
    project: Project, module: SourceModule, statement: ast.stmt, name: str, printer: Printer, calls: Sequence[ast.Call]
) -> bool:
    return all(map(printer.takes, calls)) and _knows_the_rank(project, module, statement, name, printer)


def _of_the_class(
    project: Project, module: SourceModule, statement: ast.stmt, calls: Sequence[ast.Call]
) -> OwnPrinter | None:
    """`self.print`, a method that another method of the class calls already and that no heir defines anew."""
    place = module.method_of(statement)
    if place is None or place[1].name == "__init__" or [a.arg for a in place[1].args.args[:1]] != ["self"]:
        return None
    owner, method = place
    if module.function_of(statement) is not method:
        return None
    facts = class_facts(project, module, owner)
    called = (dotted(c.func) for c in module.nodes(ast.Call) if module.class_of(c) is owner)
    for name in sorted({last(c) for c in called if c.startswith("self.") and c.count(".") == 1}):
        found = facts.method(name)
        if found is None or found[1] is method or overriding(project, facts.lineage[0], name) != ():
            continue
        printer = printer_of(project, found[0].module, found[1])
        if printer is None or not _prints(project, module, statement, f"self.{name}", printer, calls):
            continue
        if all(is_sure_to_be_set(project, module, statement, field) for field in _fields(printer)):
            return OwnPrinter(f"self.{name}", by_node=printer.by_node)
    return None


def _fields(printer: Printer) -> set[str]:
    """The fields of the object that a method asks."""
    nodes = (n for a in printer.asked for n in walk(a) if isinstance(n, ast.Attribute))
    return {n.attr for n in nodes if dotted(n.value) == "self" and not isinstance(printer.home.parent(n), ast.Call)}


def _from_a_file_it_imports(
    project: Project, module: SourceModule, statement: ast.stmt, calls: Sequence[ast.Call]
) -> OwnPrinter | None:
    """A function beside what the file imports at its top, which another file prints by already."""
    for item in _imported_from(module):
        resolved = project.resolve(item.module, module.path)
        home = project.module(resolved.path) if resolved is not None and not resolved.rest else None
        if home is None or home is module:
            continue
        for name in sorted(functions_by_name(home)):
            if not _is_free(module, name) or not set(project.files_calling(name)) - {home.path}:
                continue
            (function, *more) = functions_by_name(home)[name]
            printer = printer_of(project, home, function) if not more and home.parent(function) is home.tree else None
            if printer is None or not _prints(project, module, statement, name, printer, calls):
                continue
            if edits := plan_statement(module, f"from {item.module} import {name}", item.module):
                return OwnPrinter(name, edits, printer.by_node)
    return None


def _imported_from(module: SourceModule) -> list[Import]:
    """An import for each file of which something is brought in by name at the top of this one."""
    at_top = (i for found in module.imports.values() for i in found if module.parent(i.node) is module.tree)
    found = {i.module: i for i in at_top if isinstance(i.node, ast.ImportFrom) and i.name not in ("", "*")}
    return [found[name] for name in sorted(found)]


def _is_free(module: SourceModule, name: str) -> bool:
    return name not in module.imports and re.search(rf"\b{re.escape(name)}\b", module.text) is None


def _names(project: Project, module: SourceModule) -> tuple[str, ...]:
    """The names by which the file has functions that print on rank 0 alone."""
    return project.memo(("own printers", module.path), lambda: tuple(sorted(_find_names(project, module))))


def _find_names(project: Project, module: SourceModule) -> Iterator[str]:
    bound = {n.id for n in module.nodes(ast.Name) if not isinstance(n.ctx, ast.Load)} | {a.arg for a in module.nodes(ast.arg)}
    for name, functions in functions_by_name(module).items():
        in_class = isinstance(module.parent(functions[0]), ast.ClassDef)
        if len(functions) == 1 and name not in bound and name not in module.imports and not in_class:
            if printer_of(project, module, functions[0]) is not None:
                yield name
    for name in sorted({*module.imports, *_called_in_modules(module)}):
        if name.partition(".")[0] in bound or not _is_imported_at_top(module, name):
            continue
        site = find_function(project, module, name)
        if site is not None and site.module is not module and _is_plain(site.module, site.node):
            if printer_of(project, site.module, site.node) is not None:
                yield name


def _called_in_modules(module: SourceModule) -> Iterator[str]:
    """What is called in another module by the name of that: `out.log0`."""
    for call in module.nodes(ast.Call):
        root, dot, _ = dotted(call.func).partition(".")
        if dot and root in module.imports:
            yield dotted(call.func)


def _is_imported_at_top(module: SourceModule, name: str) -> bool:
    root = name.partition(".")[0]
    imported = module.imports[root]
    if len(imported) > 1 or root in functions_by_name(module):
        return False
    return module.parent(imported[0].node) is module.tree and runs_at_import(module, imported[0].node)


def _is_plain(module: SourceModule, function: FunctionNode) -> bool:
    return module.parent(function) is module.tree and len(functions_by_name(module)[function.name]) == 1


def _known_at(project: Project, module: SourceModule, statement: ast.stmt, name: str) -> Printer | None:
    """The function that the name means at a place, where it is sure to be there."""
    if (imported := module.imports.get(name.partition(".")[0])) is not None:
        site = find_function(project, module, name)
        early = imported[0].node.lineno < statement.lineno
        return printer_of(project, site.module, site.node) if site is not None and early else None
    (function,) = functions_by_name(module)[name]
    if (function.end_lineno or 0) >= statement.lineno:
        return None
    nested = module.function_of(function) is not None
    known = any(s is function for s in run_before(module, statement)) if nested else top_function(module, name) is function
    if not known or (not nested and module.parent(function) is not module.tree):
        return None
    made = printer_of(project, module, function)
    return made if made is not None and all(_is_bound(module, made, n, statement) for n in _names_in(made.asked)) else None


def _names_in(asked: Sequence[ast.expr]) -> list[ast.Name]:
    return [n for a in asked for n in walk(a) if isinstance(n, ast.Name)]


def _is_bound(module: SourceModule, printer: Printer, name: ast.Name, statement: ast.stmt) -> bool:
    """True for a name that the function finds when it is called from the place."""
    if top_function(module, name.id) is not None or name.id in module.imports:
        return True
    bound = bindings_of(module, name)
    if not bound:
        return qualified(module, name) in ("int", "bool", "str")
    if all(module.function_of(b.node) is printer.function or b.parameter for b in bound):
        return True
    before = [*run_before(module, statement), *_run_at_import(module, statement)]
    return any(binds(s, name.id) for s in before)


def _run_at_import(module: SourceModule, statement: ast.stmt) -> list[ast.stmt]:
    return [s for s in module.tree.body if (s.end_lineno or s.lineno) < statement.lineno]


def _knows_the_rank(project: Project, module: SourceModule, statement: ast.stmt, name: str, printer: Printer) -> bool:
    """True where the function tells rank 0 from the others at the place, and a process alone takes itself for rank 0."""
    asked = _all_asked(project, printer)
    inside = [(home, n) for home, node in asked for n in walk(node)]
    if writes_minus_one(printer.home) or any(_silences_one(home, n) or _starts_without(home, n) for home, n in inside):
        return False
    calls = [qualified(home, n.func) for home, n in inside if isinstance(n, ast.Call)]
    if any("environ" in c or c.endswith("getenv") for c in calls) or any(last(dotted(n)) == "environ" for _, n in inside):
        if in_file_of_workers(project, module):
            return False  # nothing sets RANK there
    if "torch.distributed.get_rank" not in calls:
        return True
    if group_comes_later(project, module, statement) or has_no_group_yet(project, module, statement, f"{name}()"):
        return False
    if printer.group_first or any(last(c) in _GROUP for c in calls):
        return True
    values = (s.value for s in run_before(module, statement) if isinstance(s, ast.Expr))
    called = any(isinstance(v, ast.Call) and dotted(v.func) == name for v in values)  # without a group it would have failed
    return called or starts_group_before(project, module, statement)


def _all_asked(project: Project, printer: Printer) -> list[tuple[SourceModule, ast.AST]]:
    """What a printer asks for the rank, with the functions of the project that it calls for it."""
    found: list[tuple[SourceModule, ast.AST]] = [(printer.home, a) for a in printer.asked]
    seen: set[int] = set()
    layer = list(found)
    for _ in range(_DEEP):
        called = [(home, dotted(n.func)) for home, node in layer for n in walk(node) if isinstance(n, ast.Call)]
        sites = [s for home, text in called if text and (s := find_function(project, home, text)) is not None]
        layer = [(s.module, s.node) for s in sites if id(s.node) not in seen]
        seen |= {id(node) for _, node in layer}
        found += layer
    return found


def _silences_one(module: SourceModule, node: ast.AST) -> bool:
    """True for `is_initialized() and rank == 0`, and for an answer that is no rank 0: a process alone would say nothing."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        groups = [asks_for_group(v) for v in node.values]
        return any(groups) and not all(means_process_group(module, v) for v in node.values)
    if isinstance(node, ast.Return):
        return node.value is not None and ast.unparse(node.value) in _SILENT
    return isinstance(node, ast.IfExp) and any(ast.unparse(arm) in _SILENT for arm in (node.body, node.orelse))


def _starts_without(module: SourceModule, node: ast.AST) -> bool:
    """True for a name that has no rank until the program gives it one."""
    given = (b.value for b in bindings_of(module, node)) if isinstance(node, ast.Name) else ()
    return any(v is not None and ast.unparse(v) in _SILENT for v in given)
