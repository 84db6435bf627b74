"""Calls that hand a DDP wrapper to a function which asks it for something of the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in, bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.handed import held_as
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.wrapped.asked_of_wrapper import Asked, counts_for_it, has_an_arm_for_it, is_own, may_be_wrapper
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.analysis.wrapped.made_models import classes_of
from codemods.analysis.wrapped.second_tries import is_second_try
from codemods.analysis.wrapped.wrapper_tests import is_tested
from codemods.api.findings import Evidence
from codemods.data.wrapper_attributes import WRAPPER
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_WRAPPERS = ("Parallel", "DDP", "FSDP", "Module", "Engine", "Tensor", "dict", "list", "tuple", "str", "Path", "Callable")
_DEPTH = 2  # functions that hand a parameter on


def asked_in_callee(project: Project, module: SourceModule) -> Iterator[Asked]:
    """Calls that hand a wrapper to a function which asks it for something of the model."""
    for call in module.nodes(ast.Call):
        given = [*call.args, *(k.value for k in call.keywords)]
        for holder in given:
            if not isinstance(holder, (ast.Name, ast.Attribute)) or not may_be_wrapper(module, holder):
                continue
            if (found := wrapper_in(project, module, holder)) is None or not counts_for_it(project, module, call, found):
                continue
            site = called_function(project, module, call)
            if site is None or site.node.name == "__init__" or site.module.path.startswith("tests"):
                continue
            asked = _first_in(project, site, call, holder, found, 0)
            if asked is not None:
                where, line, what = asked
                receiver = module.text_of(holder)
                then = "that is False, whatever the model has" if "hasattr(" in what else "this call raises an error"
                text = (
                    f"`{dotted(call.func)}` is handed the DDP wrapper and {what} ({where}:{line}): with several processes "
                    f"{then}"
                )
                proof = Evidence("static", what, where, line)
                yield Asked(
                    call, holder, found, receiver, "", text, f"({dotted(call.func)}", handed=True,
                    asks_by_name="hasattr(" in what, evidence=(proof,),
                )  # fmt: skip


def _first_in(
    project: Project, site: FunctionSite, call: ast.Call, holder: ast.expr, found: Wrapped, depth: int
) -> tuple[str, int, str] | None:
    """(file, line, what is asked) of the first question in a function to the parameter that the wrapper goes to."""
    module, function = site.module, site.node
    name = held_as(site, call, holder)
    if not name:
        return None
    for node in module.nodes(ast.Attribute):
        if node.attr in WRAPPER or node.attr.startswith("_") or not isinstance(node.ctx, ast.Load):
            continue
        if not isinstance(node.value, ast.Name) or node.value.id != name or module.function_of(node) is not function:
            continue
        if is_tested(module, node) or is_second_try(module, node) or wrapper_in(project, module, node.value) is not None:
            continue
        if is_own(project, found, node.attr) is not None:
            return module.path, node.lineno, f"reads `{name}.{node.attr}`"
    if (by_name := _asked_by_name_below(project, site, call, holder, name, found, depth)) is not None:
        return by_name
    if (raised := _raises_for_wrapper(module, function, name)) is not None:
        return module.path, raised, f"asks `isinstance({name}, ...)` for the bare classes alone"
    return None


def _asked_by_name_below(
    project: Project, site: FunctionSite, call: ast.Call, holder: ast.expr, name: str, found: Wrapped, depth: int
) -> tuple[str, int, str] | None:
    """`hasattr(model, "x")` in the function, or in one that it hands the parameter on to as it is."""
    module, function = site.module, site.node
    if (line := _asked_by_name(project, site, call, holder, name, found)) is not None:
        return module.path, line[0], f"asks `hasattr({name}, {line[1]!r})`"
    if depth >= _DEPTH or len(bindings_in(module, function, name)) != 1:
        return None
    for inner in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        given = [*inner.args, *(k.value for k in inner.keywords)]
        on = next((a for a in given if isinstance(a, ast.Name) and a.id == name), None)
        target = called_function(project, module, inner) if on is not None and not is_tested(module, inner) else None
        if on is None or target is None or target.node is function or target.node.name == "__init__":
            continue
        if wrapper_in(project, module, on) is not None:  # it is told there
            continue
        if (handed := held_as(target, inner, on)) and (
            asked := _asked_by_name_below(project, target, call, holder, handed, found, depth + 1)
        ) is not None:
            return asked
    return None


def _asked_by_name(
    project: Project, site: FunctionSite, call: ast.Call, holder: ast.expr, name: str, found: Wrapped
) -> tuple[int, str] | None:
    """The line of `hasattr(model, "x")` in the function, and the name, where the model has it."""
    module, function = site.module, site.node
    if len(bindings_in(module, function, name)) != 1:
        return None  # `model = unwrap(model)`
    for asked in module.calls_named("hasattr"):
        if module.function_of(asked) is not function or len(asked.args) != 2 or dotted(asked.args[0]) != name:
            continue
        attribute = asked.args[1].value if isinstance(asked.args[1], ast.Constant) else None
        if not isinstance(attribute, str) or attribute in WRAPPER or has_an_arm_for_it(module, asked, asked.args[0]):
            continue
        own = None if is_tested(module, asked) else is_own(project, found, attribute)
        if own or (own is False and _is_handed_inside(project, site, name, dotted(holder))):
            return asked.lineno, attribute
        if own is False and _is_of_its_models(project, found, attribute):
            return asked.lineno, attribute
    return None


def _is_of_its_models(project: Project, found: Wrapped, attribute: str) -> bool:
    """True where the class is not seen, from a registry say, and a network of the program has a method of that name."""
    if classes_of(project, found.module, found.model) or not _is_made_by_project(project, found):
        return False
    for path in sorted(whole_program(project, found.module.path) & set(project.files_containing(f"def {attribute}(".encode()))):
        home = project.module(path)
        for node in home.nodes(ast.ClassDef) if home is not None else ():
            facts = class_facts(project, home, node) if home is not None and attribute in _methods(node) else None
            if facts is not None and facts.is_a(Role.NN_MODULE):
                return True
    return False


def _is_made_by_project(project: Project, found: Wrapped) -> bool:
    """True for `build(args)` of the project, and for what such a function gives back to be called: `maker_of(name)(args)`."""
    module, made = found.module, found.model
    if isinstance(made, ast.Name):
        values = [b.value for b in bindings_of(module, made)]
    else:
        values = [made] if isinstance(made, ast.expr) else []
    for call in (v for v in values if isinstance(v, ast.Call)):
        if called_function(project, module, call) is not None:
            return True
        maker = [b.value for b in bindings_of(module, call.func)] if isinstance(call.func, ast.Name) else [call.func]
        if any(isinstance(m, ast.Call) and called_function(project, module, m) is not None for m in maker):
            return True
    return False


def _methods(node: ast.ClassDef) -> set[str]:
    return {s.name for s in node.body if isinstance(s, ast.FunctionDef)}


def _is_handed_inside(project: Project, site: FunctionSite, name: str, wrapper: str) -> bool:
    """True where another call hands over `model.module` for the same parameter: its author knows what the function asks."""
    for use in uses_of(project, site.module, site.node).calls:
        given = (a for a in [*use.call.args, *(k.value for k in use.call.keywords)] if dotted(a) == f"{wrapper}.module")
        if any(held_as(site, use.call, a) == name for a in given):
            return True
    return False


def _raises_for_wrapper(module: SourceModule, function: ast.AST, name: str) -> int | None:
    """The line of `if isinstance(model, A): … elif isinstance(model, B): … else: raise`."""
    for test in module.nodes(ast.If):
        if module.function_of(test) is not function or not _asks_class(test.test, name):
            continue
        rest: list[ast.stmt] = test.orelse
        while len(rest) == 1 and isinstance(rest[0], ast.If) and _asks_class(rest[0].test, name):
            rest = rest[0].orelse
        if rest and isinstance(rest[-1], ast.Raise):
            return test.lineno
    return None


def _asks_class(test: ast.expr, name: str) -> bool:
    if not isinstance(test, ast.Call) or dotted(test.func) != "isinstance" or len(test.args) != 2 or dotted(test.args[0]) != name:
        return False
    classes = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    return all(dotted(c) and not last(dotted(c)).endswith(_WRAPPERS) for c in classes)
