"""Files that are only made where they are missing, and that a rank which comes later finds.

Rank 0 is through with what stands above `fit` before its Trainer starts the others, and with `prepare_data` before any rank
comes to `setup`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassFacts, Role, class_facts, find_class
from codemods.analysis.files.before_fit import comes_first, is_above_fit
from codemods.analysis.files.every_rank import Way
from codemods.analysis.files.file_calls import CHANGES, Act, FileCall, file_call
from codemods.analysis.files.filled_on_demand import is_asked_for
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DOES_MORE = lazy(r"download|fetch|create|prepare|build|process|force")  # what `prepare_data` alone is told to do


def is_found_by_those_of_fit(project: Project, module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True for statements of a script above `fit` that only write files which a test over them asks for."""
    if not statements or not module.holds(b"Trainer"):
        return False
    calls = (n for s in statements for n in walk(s) if isinstance(n, ast.Call))
    changes = [f for c in calls if (f := file_call(module, c)) is not None and f.act in CHANGES]
    if not changes or any(f.act is Act.REMOVES or not is_asked_for(module, f.call, f.path) for f in changes):
        return False
    return is_above_fit(project, module, statements[0])


def is_found_by_later_ranks(project: Project, module: SourceModule, found: FileCall, way: Way) -> bool:
    """True where rank 0 has made the file before the other ranks come this way, for all of them ask first."""
    if comes_first(project, way):
        return is_asked_for(module, found.call, found.path) or _is_asked_for_by_its_object(module, found, way)
    return _is_made_by_prepare_data(project, way) and any(_asks_for_a_file(project, home, node) for home, node in way.frames)


def _is_asked_for_by_its_object(module: SourceModule, found: FileCall, way: Way) -> bool:
    """True where a method on the way asks for the same file of its object: `if self.path.exists(): load() else: make()`."""
    owner = module.class_of(found.call)
    if owner is None or not module.text_of(found.path).startswith("self."):
        return False
    sites = (node for home, node in way.frames[1:] if home is module and home.class_of(node) is owner)
    return any(is_asked_for(module, node, found.path) for node in sites)


def _is_made_by_prepare_data(project: Project, way: Way) -> bool:
    """True where `prepare_data` of the data module has made the call by which `setup` comes there."""
    home, site = way.frames[-1]
    function = home.function_of(site)
    owner = home.class_of(site)
    if len(way.frames) < 2 or function is None or function.name != "setup" or owner is None or not isinstance(site, ast.Call):
        return False
    facts = class_facts(project, home, owner)
    prepared = facts.method("prepare_data") if facts.is_a(Role.LIGHTNING_DATA_MODULE) else None
    below, node = way.frames[-2]
    entered = below.function_of(node)
    if prepared is None or entered is None:
        return False
    calls = _calls_of(project, facts, prepared[0].module, prepared[1], entered)
    return any(_does_as_much(entered, call, site) for call in calls)


def _calls_of(
    project: Project, facts: ClassFacts, module: SourceModule, function: FunctionNode, entered: FunctionNode
) -> Iterator[ast.Call]:
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        site = called_function(project, module, call)
        if site is not None and site.node is entered:
            yield call
        made = find_class(project, module, dotted(call.func)) if site is None and entered.name == "__init__" else None
        method = class_facts(project, made.module, made.node).method("__init__") if made is not None else None
        if method is not None and method[1] is entered:
            yield call


def _does_as_much(entered: FunctionNode, call: ast.Call, site: ast.Call) -> bool:
    """True where the call of `prepare_data` is handed the same as that of `setup`, but for what it is told to do more."""
    in_method = "self" in {a.arg for a in entered.args.args[:1]}
    first, later = bind(entered, call, bound=in_method), bind(entered, site, bound=in_method)
    return first is not None and later is not None and _differing(first, later) <= {n for n in first if _DOES_MORE.search(n)}


def _differing(first: Mapping[str, ast.expr], later: Mapping[str, ast.expr]) -> set[str]:
    both = first.keys() & later.keys()
    return {n for n in first.keys() | later.keys() if n not in both or ast.dump(first[n]) != ast.dump(later[n])}


def _asks_for_a_file(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in the arm of a test that asks for a file."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and below is not up.test and _is_for_a_file(project, module, up.test):
            return True
        below = up
    return False


def _is_for_a_file(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for `os.path.exists(path)`, and for a function of the project that asks for a file and no more."""
    for call in (n for n in walk(test) if isinstance(n, ast.Call)):
        if (found := file_call(module, call)) is not None:
            return found.act is Act.ASKS
        site = called_function(project, module, call)
        inside = [n for n in walk_scope(site.node) if isinstance(n, ast.Call)] if site is not None else []
        acts = {f.act for c in inside if site is not None and (f := file_call(site.module, c)) is not None}
        if acts == {Act.ASKS}:
            return True
    return False
