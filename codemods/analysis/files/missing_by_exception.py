"""Caches that are loaded first and made where the file is missing: `try: load(path)`, `except FileNotFoundError: save(path)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.before_fit import is_made_above_fit
from codemods.analysis.files.dead_ways import is_dead
from codemods.analysis.files.every_rank import Way, way_of_every_rank
from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.analysis.files.file_flow import Step, steps_in
from codemods.analysis.files.file_locks import is_under_lock
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.files_of_samples import called_by, is_dealt_out
from codemods.analysis.files.filled_on_demand import OnDemand, is_thought_of, moves
from codemods.analysis.files.in_repository import lies_in_repository
from codemods.analysis.files.let_in_first import may_be_let_in_first
from codemods.analysis.files.own_paths import is_own_path
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import behind
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.uses import constructions
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_MISSING = frozenset({"FileNotFoundError", "OSError", "IOError", "EnvironmentError"})
# What a load of a file raises that another process has only begun to write: whoever catches it makes the file anew.
_TORN = frozenset({
    "EOFError", "UnpicklingError", "PickleError", "JSONDecodeError", "ValueError", "BadZipFile", "EmptyDataError", "ParserError",
    "UnicodeDecodeError", "StopIteration", "LibsndfileError", "Exception", "BaseException", "",
})  # fmt: skip


def made_by_a_handler(project: Project, module: SourceModule) -> Iterator[OnDemand]:
    """One for each such `try` where every rank comes."""
    for node in module.nodes(ast.Try):
        function = module.function_of(node)
        if function is None or (found := _loads_or_makes(module, node)) is None or is_under_lock(module, node):
            continue
        load, missing = found
        if (write := _write(project, module, function, load, missing)) is None or _is_forbidden(node):
            continue
        way = way_of_every_rank(project, module, node, loose=True) or _way_of_samples(project, module, function, node)
        if way is None or is_made_above_fit(project, way, load.path):
            continue
        if is_dead(project, way) or may_be_let_in_first(project, way):
            continue
        read = Step(Act.READS, forms(module, load.path), module, load.call)
        yield OnDemand(function, load, write, read, way, loaded=True)


def _write(
    project: Project, module: SourceModule, function: FunctionNode, load: FileCall, missing: list[ast.stmt]
) -> Step | None:
    """What writes the file in place where it is missing, on every rank, with nobody that waits in the function."""
    wanted = forms(module, load.path)
    made = [s for s in steps_in(project, module, missing) if s.act is Act.WRITES and s.forms & wanted]
    if not made or any(s.ranks is not Ranks.ALL or moves(s) for s in made):
        return None
    if any(s.act is None for s in steps_in(project, module, list(function.body))):
        return None
    if is_own_path(project, module, load.path, whole=False) or is_thought_of(project, module, function):
        return None
    if lies_in_repository(project, module, load.path) or is_dealt_out(project, module, function, load.path):
        return None
    return made[0]


def _loads_or_makes(module: SourceModule, node: ast.Try) -> tuple[FileCall, list[ast.stmt]] | None:
    """(the load, what runs where the file is missing); None where a file that is half written is made anew as well."""
    caught = [(handler, set(_caught(handler))) for handler in node.handlers]
    if any(names & _TORN for _, names in caught):
        return None
    handler = next((h for h, names in caught if names & _MISSING), None)
    load = next(_loads(module, node), None)
    if handler is None or load is None:
        return None
    leaves = isinstance(node.body[-1], ast.Return) or any(isinstance(s, ast.Return) for s in node.orelse[-1:])
    return load, [*handler.body, *(behind(module, node) if leaves else ())]


def _way_of_samples(project: Project, module: SourceModule, function: FunctionNode, node: ast.AST) -> Way | None:
    """The way to a sample of a data set that every rank makes to train on it."""
    owner = module.class_of(function)
    if owner is None or function not in called_by(module.methods_of(owner), "__getitem__"):
        return None
    made = constructions(project, module, owner)
    for site in made.outside_tests().calls if made is not None else ():
        if _is_trained_on(site.module, site.module.function_of(site.call)):
            way = way_of_every_rank(project, site.module, site.call, loose=True)
            if way is not None:
                return Way(((module, node), *way.frames), way.shown)
    return None


def _is_trained_on(module: SourceModule, function: FunctionNode | None) -> bool:
    """True beside a loader that shuffles, or leaves out the last batch: what is only evaluated, one rank may read alone."""
    for loader in module.calls_named("DataLoader"):
        if module.function_of(loader) is function:
            said = (k.value for k in loader.keywords if k.arg in ("shuffle", "drop_last"))
            if any(not isinstance(value, ast.Constant) or value.value for value in said):
                return True
    return False


def _is_forbidden(node: ast.Try) -> bool:
    """True where some callers may not make it: `if read_only: raise`."""
    return any(isinstance(n, ast.Raise) for handler in node.handlers for s in handler.body for n in walk(s))


def _loads(module: SourceModule, node: ast.Try) -> Iterator[FileCall]:
    for call in (n for s in node.body for n in walk(s) if isinstance(n, ast.Call)):
        if (found := file_call(module, call)) is not None and found.act is Act.READS:
            yield found


def _caught(handler: ast.ExceptHandler) -> Iterator[str]:
    """The last names of the exceptions; "" for a bare `except`, and for what is no name."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    for kind in kinds:
        yield last(dotted(kind)) if kind is not None else ""
