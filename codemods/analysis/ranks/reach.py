"""Which ranks reach a statement, callers included: a helper that is only called under a guard is under that guard."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import ORDERED_CONTEXTS, Ranks, ranks_at
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule

MANY = 60  # a name that is called in more places than this belongs to more than one function
MANY_FILES = 25  # and so does one that stands in more files than this


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call, and the file it stands in."""

    module: SourceModule
    call: ast.Call


def ranks_reaching(project: Project, module: SourceModule, node: ast.AST) -> Ranks:
    """The ranks that come to `node`, by the tests round it and by those round every call of its function."""
    here = ranks_at(module, node)
    if here.some:
        return here
    if in_turn(module, node):
        return Ranks.UNKNOWN
    function = module.function_of(node)
    return ranks_entering(project, module, function) if function else Ranks.ALL


def in_turn(module: SourceModule, node: ast.AST) -> bool:
    """True in a `with main_process_first():` block, which the ranks enter one after the other."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.With, ast.AsyncWith)):
            for item in up.items:
                entered = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
                if last(dotted(entered)) in ORDERED_CONTEXTS:
                    return True
    return False


def ranks_entering(project: Project, module: SourceModule, function: FunctionNode) -> Ranks:
    """The ranks that call `function`, as far as its callers in the project show it; ALL where none is seen."""
    found = _entering(project, module, function, frozenset())
    return found or Ranks.ALL


def _entering(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> Ranks | None:
    """As `ranks_entering`; None where the answer hangs on a function that is being asked about already."""
    if id(function) in seen:
        return None
    key = ("ranks entering", module.path, function.lineno, function.name)
    return project.memo(key, lambda: _from_callers(project, module, function, seen | {id(function)}))


def _from_callers(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> Ranks | None:
    if (called := called_by_framework(project, module, function)) is not None:
        return called
    sites = calls_of(project, module, function)
    sites = tuple(s for s in sites if not is_test_file(s.module.path)) or sites  # a test of it runs on one process
    if not sites:
        return Ranks.ALL
    answers: set[Ranks] = set()
    for site in sites:
        ranks: Ranks | None = ranks_at(site.module, site.call)
        if in_turn(site.module, site.call):
            ranks = Ranks.UNKNOWN
        outer = site.module.function_of(site.call)
        if ranks is Ranks.ALL and outer is not None:
            ranks = _entering(project, site.module, outer, seen)
        if ranks is not None:
            answers.add(ranks)
    if Ranks.ALL in answers or not answers:
        return Ranks.ALL
    return answers.pop() if len(answers) == 1 else Ranks.UNKNOWN


def called_by_framework(project: Project, module: SourceModule, function: FunctionNode) -> Ranks | None:
    """The ranks on which a framework or Python itself calls the function; None where only the project does."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return None
    if function.name == "prepare_data":
        return Ranks.LOCAL_ZERO  # Lightning calls it on one process of each node
    if function.name in LIGHTNING_HOOKS or function.name in HF_CALLBACK_HOOKS:
        return Ranks.ALL if class_facts(project, module, owner).external else None
    return Ranks.ALL if function.name.startswith("__") else None


def calls_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    """Every call in the project that may be one of `function`: by its name, on `self` of its class or on any object.

    Empty where nobody calls it, where it is handed on as a value, and where the name says too little.
    """
    key = ("calls of", module.path, function.lineno, function.name)
    return project.memo(key, lambda: _calls_of(project, module, function))


def _calls_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    owner = module.parent(function)
    found: list[CallSite] = []
    if len(module.reads_of(function.name)) > len(module.calls_named(function.name)):
        return ()  # it is handed on
    among: set[str] | None = None
    if not isinstance(owner, ast.ClassDef):  # whoever calls a function of another file names that file, or takes all of a package
        stem = module.path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
        among = {*project.files_containing(stem.encode()), *project.files_containing(b"import *")}
    users = project.files_using(function.name, most=MANY_FILES, among=among)
    if users is None:
        return ()
    users = (*users, module.path) if module.path not in users else users
    for path in sorted(users):
        other = module if path == module.path else project.module(path)
        if other is None:
            continue
        calls = other.calls_named(function.name)
        if len(other.reads_of(function.name)) > len(calls):
            return ()
        for call in calls:
            if isinstance(owner, ast.ClassDef) and (_is_bare(call) or _of_another_class(project, other, call, owner)):
                continue
            found.append(CallSite(other, call))
        if len(found) > MANY:
            return ()
    return tuple(found)


def _is_bare(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name)


def _of_another_class(project: Project, module: SourceModule, call: ast.Call, owner: ast.ClassDef) -> bool:
    """True for `self.name(...)` in a class that has nothing to do with `owner`."""
    if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != "self":
        return False
    place = module.method_of(call)
    if place is None or place[0] is owner:
        return False
    derives = any(site.node is owner for site in class_facts(project, module, place[0]).lineage)
    return not derives and not any(last(dotted(b)) == place[0].name for b in owner.bases)
