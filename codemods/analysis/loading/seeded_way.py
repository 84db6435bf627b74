"""Does anything seed the random numbers on the way to a place: in its function, in its callers, in what they import?"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import reached, runs_of, same_program
from codemods.analysis.loading.seeds import SEEDERS, Seed, seed_at, seeds_in, stream_of
from codemods.analysis.names import qualified
from codemods.files.source import FunctionNode, SourceModule, called_name, walk_scope
from codemods.store.project import Project

_UP, _DOWN = 5, 3


def is_seeded_on_the_way(project: Project, module: SourceModule, node: ast.AST, stream: str) -> bool:
    """True where something on the way may seed the numbers of one library ("random", "numpy", "torch"; "" for any of them);
    also where the way is not seen to its end.
    """
    return _climb(project, module, node, stream, 0) or any(_at_import(project, p) for p in reached(project, module.path))


def _climb(project: Project, module: SourceModule, node: ast.AST, stream: str, climbs: int) -> bool:
    function = module.function_of(node)
    line = getattr(node, "lineno", 0)
    above = [n for n in _calls(module, function) if n.lineno <= line and n is not node]
    if any(_seeds(project, module, call, stream, 0, set()) for call in above) or _at_import(project, module.path):
        return True
    if function is None:
        return False
    if climbs > _UP:
        return True
    runs = runs_of(project, module, function)
    if not runs and isinstance(module.parent(function), ast.ClassDef):  # a hook: the framework runs it behind what the scripts do
        return any(_seeds_a_program(project, path, module.path) for path in project.files_containing(b"seed"))
    return any(_climb(project, s.module, s.call, stream, climbs + 1) for s in runs)


def _seeds_a_program(project: Project, path: str, other: str) -> bool:
    """True for a file that seeds by any call outside of a method, in one program with the other file."""
    if is_test_file(path) or not path.endswith((".py", ".ipynb")):
        return False
    module = project.module(path)
    if module is None or all(s.own or module.class_of(s.call) is not None for s in seeds_in(module)):
        return False
    return same_program(project, path, other)


def _calls(module: SourceModule, function: FunctionNode | None) -> list[ast.Call]:
    if function is not None:
        return [n for n in walk_scope(function) if isinstance(n, ast.Call)]
    plain = (s for s in module.tree.body if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)))
    return [n for s in plain for n in walk_scope(s) if isinstance(n, ast.Call)]


def _seeds(
    project: Project, module: SourceModule, call: ast.Call, stream: str, depth: int, seen: set[tuple[str, int, int]]
) -> bool:
    """True for a call by whose name, or by what it calls, something is seeded."""
    end = called_name(call)
    if end in SEEDERS and (seed := seed_at(module, call)) is not None:
        return not seed.own and _is_of(seed, stream)
    site = called_function(project, module, call) if depth < _DOWN else None
    if ("seed" in end.lower() and (site is None or not _holds_seeds(site))) or end == "Trainer":
        return True
    return site is not None and _inside(project, site, stream, depth + 1, seen)


def _is_of(seed: Seed, stream: str) -> bool:
    """True for the numbers of the library itself, and for a helper that seeds those of all."""
    return not stream or stream_of(qualified(seed.module, seed.call.func)) in ("", stream)


def _holds_seeds(site: FunctionSite) -> bool:
    """True for a helper whose own body says what it seeds."""
    found = (s for s in seeds_in(site.module) if not s.own and site.module.function_of(s.call) is site.node)
    return any(stream_of(qualified(s.module, s.call.func)) for s in found)


def _inside(project: Project, site: FunctionSite, stream: str, depth: int, seen: set[tuple[str, int, int]]) -> bool:
    if site.key in seen:
        return False
    seen.add(site.key)
    calls = [n for n in walk_scope(site.node) if isinstance(n, ast.Call)]
    return any(_seeds(project, site.module, call, stream, depth, seen) for call in calls)


def _at_import(project: Project, path: str) -> bool:
    """True for a file that seeds as soon as it is imported."""
    if b"seed" not in (project.read(path) or b""):
        return False
    module = project.module(path)
    return module is not None and any(_is_at_top(module, s.call) for s in seeds_in(module) if not s.own)


def _is_at_top(module: SourceModule, call: ast.Call) -> bool:
    return module.function_of(call) is None and not any(is_main_block(up) for up in module.ancestors(call))


