"""Which project function a call leads to: names, imports, methods of self or a class, modules imported whole, constructors."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.functions import functions_by_name, gives_function
from codemods.analysis.names import dotted
from codemods.analysis.package_names import given_by_package
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_RANK_WORDS = lazy(rb"rank|RANK|master|main|primary|root|chief|_zero|process_index|PROCID|LOCALID")
_OF_THE_CLASS = frozenset({"staticmethod", "classmethod"})
_AUTOGRAD = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


@record
class FunctionSite:
    """A function definition and the file it stands in."""

    module: SourceModule
    node: FunctionNode

    @property
    def key(self) -> tuple[str, int, int]:
        return self.module.path, self.node.lineno, self.node.col_offset


def called_function(project: Project | None, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    """The project function that `call` runs, None where it leads out of the project or the source does not show it."""
    name = dotted(call.func)
    if not name:
        return None
    root, _, rest = name.partition(".")
    if root in ("self", "cls"):
        return _method(project, module, call, rest)
    if not rest and (near := _nested(module, call, root)):
        return near
    return find_function(project, module, name) or _of_class(project, module, name)


def _of_class(project: Project | None, module: SourceModule, name: str) -> FunctionSite | None:
    """`Log.open(path)` for a class of the project: a method that is asked of the class, and so is no heir's."""
    owner, _, end = name.partition(".")
    if project is None or not owner[:1].isupper() or not end or "." in end:
        return None
    made = find_class(project, module, owner)
    method = class_facts(project, made.module, made.node).method(end) if made is not None else None
    if method is None or _OF_THE_CLASS.isdisjoint(map(dotted, method[1].decorator_list)):
        return None
    return FunctionSite(method[0].module, method[1])


def run_function(project: Project, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    """As `called_function`; of `Gather.apply(x)`, where it is a `torch.autograd.Function` of the project, its `forward`."""
    return called_function(project, module, call) or _applied(project, module, call)


def _applied(project: Project, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    owner, _, end = dotted(call.func).rpartition(".")
    made = find_class(project, module, owner) if end == "apply" and owner else None
    if made is None:
        return None
    facts = class_facts(project, made.module, made.node)
    method = facts.method("forward") if not _AUTOGRAD.isdisjoint(facts.external) else None
    return FunctionSite(method[0].module, method[1]) if method else None


def may_speak_of_ranks(project: Project | None, module: SourceModule, call: ast.Call) -> bool:
    """False where a function from another file is called that defines it without a word of ranks: it is not parsed then."""
    name = dotted(call.func)
    root, _, rest = name.partition(".")
    if project is None or not name or root in ("self", "cls"):
        return True
    return project.keep(("speaks of ranks", module.path, name), lambda: _may_speak(project, module, root, rest))


def _may_speak(project: Project, module: SourceModule, root: str, rest: str) -> bool:
    imports = module.imports.get(root, ())
    for found in imports:
        resolved = project.resolve(f"{found.dotted}.{rest}" if rest else found.dotted, module.path)
        if resolved is None or len(resolved.rest) != 1:
            continue
        data = project.read(resolved.path) or b""
        if _RANK_WORDS.search(data) or b"def " + resolved.rest[0].encode() not in data:
            return True
    return not imports


def find_function(project: Project | None, module: SourceModule, name: str) -> FunctionSite | None:
    """The function that the dotted `name` means at the module's top level: local, imported, re-exported, a constructor."""
    if project is None:
        return _find(None, module, name, set())
    return project.memo(("function named", module.path, name), lambda: _find(project, module, name, set()))


def _find(project: Project | None, module: SourceModule, name: str, seen: set[tuple[str, str]]) -> FunctionSite | None:
    """No name is looked up in a file twice: one that is imported in ten places would be followed ten ways at each step."""
    if (module.path, name) in seen:
        return None
    first = not seen
    seen.add((module.path, name))
    root, _, rest = name.partition(".")
    if not rest and (local := top_function(module, root)):
        return FunctionSite(module, local)
    if project is None:
        return None
    imported = module.imports.get(root, ())
    targets = [found.dotted for found in imported] or [replace(star, name=root).dotted for star in module.imports.get("*", ())]
    for named in targets:
        target = named if not rest else f"{named}.{rest}"
        resolved = project.resolve(target, module.path)
        if resolved is not None and not resolved.rest:
            resolved = given_by_package(project, resolved)
        if resolved is None:
            continue
        if len(resolved.rest) > name.count(".") + 1:  # of a module that is not there (`from .mine import *` in a `try`)
            continue
        if not gives_function(project.read(resolved.path) or b"", resolved.rest[0].encode()):
            continue
        inner = project.module(resolved.path)
        if inner is not None and (site := _find(project, inner, ".".join(resolved.rest), seen)):
            return site
    if first and not rest and root[:1].isupper() and (made := find_class(project, module, root)):
        method = class_facts(project, made.module, made.node).method("__init__")
        return FunctionSite(method[0].module, method[1]) if method else None
    return None


def top_function(module: SourceModule, name: str) -> FunctionNode | None:
    """The function of that name at module level (also under an `if` or `try`), the last one winning."""
    found = functions_by_name(module).get(name, ())
    top = [f for f in found if module.function_of(f) is None and module.class_of(f) is None]
    return top[-1] if top else None


def _nested(module: SourceModule, call: ast.Call, name: str) -> FunctionSite | None:
    """A function defined inside one of the functions round the call."""
    homes = _inner_functions(module).get(name)
    scope = module.function_of(call) if homes else None
    while homes and scope is not None:
        if (function := homes.get(scope)) is not None:
            return FunctionSite(module, function)
        scope = module.function_of(scope)
    return None


@once_a_module
def _inner_functions(module: SourceModule) -> dict[str, dict[FunctionNode, FunctionNode]]:
    """The functions defined inside others by their name, each under the function whose body they stand in."""
    out: dict[str, dict[FunctionNode, FunctionNode]] = {}
    for function in module.functions:
        scope = module.function_of(function)
        if scope is not None and module.class_of(function) is module.class_of(scope):
            out.setdefault(function.name, {}).setdefault(scope, function)
    return out


def _method(project: Project | None, module: SourceModule, call: ast.Call, name: str) -> FunctionSite | None:
    owner = module.class_of(call)
    if owner is None or not name or "." in name:
        return None
    if project is not None:
        method = class_facts(project, module, owner).method(name)
        return FunctionSite(method[0].module, method[1]) if method else None
    own = [f for f in owner.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and f.name == name]
    return FunctionSite(module, own[-1]) if own else None
