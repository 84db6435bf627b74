"""Is a file the rank's own: by its path, by what its callers give for it, or by what goes into it?"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.files.dealt_samples import are_of_dealt_samples
from codemods.analysis.files.file_calls import CHANGES, file_call
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.filled_on_demand import filled_on_demand, is_left_to_the_first
from codemods.analysis.files.open_files import goes_into_open_files
from codemods.analysis.files.own_draws import is_named_by_draw, is_saved_by_draw
from codemods.analysis.files.own_paths import given_to, is_named_by_rank, is_own_path
from codemods.analysis.files.paths_in_statements import handles_in
from codemods.analysis.names import dotted, is_parameter, last
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.own_batches import is_of_own_batch
from codemods.analysis.output.receivers import mode_of
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_NUMBER = lazy(r"(?:^|_)(?:idx|index|nb|num|step|iter|iteration|epoch|count|batch|i|j|k|n)$")
_OF_ONE = lazy(r"accelerator\.device|current_device\(|rank")


def are_of_each_rank(project: Project, module: SourceModule, run: Run, paths: list[ast.expr]) -> bool:
    """True for files that are the rank's own, by their names or by what goes into them, and those that are made on demand."""
    handles = [h for s in run.statements for h in handles_in(s)]
    if any(names_rank(origin_text(module, p)) for p in (*paths, *handles)):
        return True
    if any(is_named_by_draw(project, module, p) for p in paths) or is_saved_by_draw(project, module, run.statements):
        return left(module, run.first, "each process draws the names of its files for itself")
    if are_of_dealt_samples(project, module, run.statements):
        return left(module, run.first, "the files are named by samples of a batch, which no other rank has")
    if _are_own_lines(module, run) or goes_into_open_files(module, run.statements):
        return True
    return any(is_own_path(project, module, p) or _is_once_own(project, module, p) for p in (*paths, *handles)) or (
        _is_on_demand(project, module, run) or _is_left_to_the_first(module, run)
    )


def _is_once_own(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where one of many calls gives a file that bears the rank: under a test in the helper it would not be written."""
    function = module.function_of(path)
    if function is None or isinstance(module.parent(function), ast.ClassDef):
        return False
    names = {n.id for n in (path, *walk(path)) if isinstance(n, ast.Name) and is_parameter(module, n.id, n)}
    for site in uses_of(project, module, function).outside_tests().calls if names else ():
        given = arguments_of(function, site.call)
        if any(name in given and names_rank(origin_text(site.module, given[name])) for name in names):
            return True
    return False


def is_of_a_rank(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where the path names the rank, or all that callers and constructors give for it does."""
    if is_named_by_rank(project, module, path):
        return True
    given = list(given_to(project, module, path))
    return bool(given) and all(is_own_path(project, home, value) for home, value in given)


def is_given_own(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where a caller names the file after what its rank alone has: the sample of a batch."""
    analysis = variance(project)
    given = given_to(project, module, path)
    names = ((home, n) for home, value in given for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute)))
    return any((is_of_own_batch(project, home, n) or analysis.value(home, n).cause is Cause.DATA) and not _counts(home, n)
               for home, n in names)  # fmt: skip


def _counts(module: SourceModule, name: ast.expr) -> bool:
    """True for the number of a batch, or of an item in it: every rank has a first one."""
    if not isinstance(name, ast.Name) or isinstance(module.parent(name), (ast.Subscript, ast.Attribute)):
        return False
    if _NUMBER.search(name.id):
        return True
    bound = [b.node for b in bindings_of(module, name)]
    loops = [n for n in bound if isinstance(n, (ast.For, ast.AsyncFor)) and isinstance(n.iter, ast.Call)]
    return any(last(dotted(n.iter.func)) == "range" or _is_first_of(n, name) for n in loops if isinstance(n.iter, ast.Call))


def _is_first_of(loop: ast.For | ast.AsyncFor, name: ast.Name) -> bool:
    """`i` of `for i, x in enumerate(batch)`."""
    counted = isinstance(loop.iter, ast.Call) and last(dotted(loop.iter.func)) == "enumerate"
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else None
    return counted and isinstance(first, ast.Name) and first.id == name.id


def _are_own_lines(module: SourceModule, run: Run) -> bool:
    """True for lines that each rank adds to one file, of the device that it has for itself."""
    calls = [n for s in run.statements for n in walk(s) if isinstance(n, ast.Call) and last(dotted(n.func)) == "open"]
    if not calls or not all("a" in mode_of(c, 1) for c in calls):
        return False
    names = (n for s in run.statements for n in walk(s) if isinstance(n, (ast.Name, ast.Attribute)) and "device" in dotted(n))
    return any(_OF_ONE.search(origin_text(module, n)) for n in names)


def _is_on_demand(project: Project, module: SourceModule, run: Run) -> bool:
    """True for a cache that whoever does not find it writes: it is told with who reads it (DDP307)."""
    inside = {id(n) for s in run.statements for n in walk(s)}
    return any(id(found.write.call) in inside for found in filled_on_demand(project, module))


def _is_left_to_the_first(module: SourceModule, run: Run) -> bool:
    """True for files of items that the ranks share out by what is there already: rank 0 would have to do all of them."""
    calls = (n for s in run.statements for n in walk(s) if isinstance(n, ast.Call))
    changes = [f for c in calls if (f := file_call(module, c)) is not None and f.act in CHANGES]
    return bool(changes) and all(is_left_to_the_first(module, f.call, f.path) for f in changes)
