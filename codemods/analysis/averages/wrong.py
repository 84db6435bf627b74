"""Numbers that are shown, and are put together from all ranks in a way that makes them wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.averages.calls import is_process_count_in
from codemods.analysis.averages.frame import Reading, Shown
from codemods.analysis.averages.reading import read
from codemods.analysis.averages.scale import At, Scale
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.distribution import is_test_file
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_words import is_key, is_number
from codemods.analysis.variance.outlets import says_shown
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_JOINS = ("reduce", "gather")
# Words of files that reduce over ranks: `x.gather(` of torch and `reduce(` of functools stand in too many to be read.
_WORDS = ("all_reduce", "all_gather", "gather_object", "gather_for_metrics", "accelerator.gather(", "accelerator.reduce(",
          "dist.reduce(", "distributed.reduce(")  # fmt: skip
_MOST_FILES = 12  # that call a function of one name
_HOPS = 2  # functions that call functions that join
_MOST_NAMES = 60
_COMMON = frozenset({"__init__", "main", "forward", "__call__", "run", "train", "update", "step"})


class Fault(Enum):
    """What is wrong with it."""

    TOO_LARGE = "a sum over the ranks is divided by a count of one of them, or means are summed"
    TOO_SMALL = "it is divided by the number of processes, and is a mean already"
    UNEVEN = "quotients of the ranks are averaged, whose divisors differ"


@record
class Wrong:
    """at: the division, or the reduction, that makes it so. joined: the reduction over the ranks."""

    fault: Fault
    at: At
    joined: At
    shown: Shown


def wrong_numbers(project: Project, module: SourceModule) -> list[Wrong]:
    """Those that a file shows, by the reduction: of several numbers of one the first."""
    analysis = variance(project)
    if not analysis.is_parallel(module):
        return []
    joining = _joining(project)
    found: dict[tuple[str, int, Fault], Wrong] = {}
    for site in _sites(module):
        body = walk_scope(site.node) if site is not None else (n for s in module.tree.body for n in (s, *walk_scope(s)))
        calls = [n for n in body if isinstance(n, ast.Call)]
        if not any(map(says_shown, calls)) or not any(called_name(c) in joining or _joins(called_name(c)) for c in calls):
            continue
        reading = Reading(project, analysis)
        read(reading, module, site)
        for wrong in filter(None, map(_judged, reading.shown)):
            found.setdefault((wrong.joined.module.path, wrong.joined.line, wrong.fault), wrong)
    return sorted(found.values(), key=lambda w: w.shown.call.line)


def _sites(module: SourceModule) -> Iterator[FunctionSite | None]:
    yield None
    yield from (FunctionSite(module, f) for f in module.functions)


def joins_ranks(project: Project, call: ast.Call) -> bool:
    """True for a call that reduces or gathers by its name, or comes to one that does."""
    return _joins(called_name(call)) or called_name(call) in _joining(project)


def _joins(name: str) -> bool:
    return any(word in name for word in _JOINS)


def _joining(project: Project) -> frozenset[str]:
    """The names of functions that come to a reduction, or call one that does."""

    def build() -> frozenset[str]:
        paths = {p for word in _WORDS for p in _files(project, word)}
        names = {name for path in paths for name, ends in _called(project, path) if any(map(_joins, ends))} - _COMMON
        fresh = set(names)
        for _ in range(_HOPS):
            calling = [_files(project, f"{name}(") for name in sorted(fresh)[:_MOST_NAMES]]
            paths = {p for found in calling if len(found) <= _MOST_FILES for p in found}
            more = {name for path in paths for name, ends in _called(project, path) if ends & fresh} - _COMMON
            names, fresh = names | more, more - names
        return frozenset(names)

    return project.keep(("functions that join",), build)


def _files(project: Project, word: str) -> list[str]:
    return [p for p in project.files_containing(word.encode()) if p.endswith(".py") and not is_test_file(p)]


def _called(project: Project, path: str) -> list[tuple[str, frozenset[str]]]:
    """The functions of a file, each by the name that calls it, with the last names of what it calls."""

    def build() -> list[tuple[str, frozenset[str]]]:
        module = project.module(path)
        if module is None:
            return []
        ends = [frozenset(called_name(n) for n in walk(f) if isinstance(n, ast.Call)) for f in module.functions]
        return [(_name(module, f), e) for f, e in zip(module.functions, ends, strict=True)]

    return project.keep(("called in functions", path), build)


def _name(module: SourceModule, function: FunctionNode) -> str:
    """By which a function is called; of `__call__` that of its class, by which the object is made."""
    owner = module.class_of(function)
    return owner.name if function.name == "__call__" and owner is not None else function.name


def _judged(shown: Shown) -> Wrong | None:
    scale = shown.scale
    if scale.joined is None:
        return None
    if not _is_divided_twice(scale) and not (scale.average and _is_named(shown)):
        return None
    if not scale.open and scale.power >= 1:
        return Wrong(Fault.TOO_LARGE, scale.counted or scale.joined, scale.joined, shown)
    if not scale.open and scale.power <= -1 and scale.shared is not None:
        return Wrong(Fault.TOO_SMALL, scale.shared, scale.joined, shown)
    if scale.uneven is not None and not _trains(scale):
        near = scale.uneven if scale.uneven.module is shown.call.module else scale.divided or scale.uneven
        return Wrong(Fault.UNEVEN, near, scale.uneven, shown)
    return None


def _is_divided_twice(scale: Scale) -> bool:
    """True for a mean over the ranks by `ReduceOp.AVG` that is divided by them again: of no number is that meant."""
    call = scale.joined.node if scale.joined is not None and scale.averaged and scale.shared is not None else None
    if not isinstance(call, ast.Call) or "reduce" not in called_name(call) or scale.open or scale.power > -1:
        return False
    assert scale.joined is not None
    return not _is_multiplied(scale.joined.module, call)


def _is_multiplied(module: SourceModule, call: ast.Call) -> bool:
    """True where the function multiplies by the processes, too: a sum of the own share is a W-th of the whole as it is."""
    for node in walk(module.function_of(call) or module.tree):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Mult):
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
            if any(is_process_count_in(module, side) for side in sides):
                return True
    return False


def _is_named(shown: Shown) -> bool:
    """True for what reads like a loss or a metric, by its own words or those round it: how many tokens a step has is none."""
    call = shown.call.node
    words = [n.value for n in walk(call) if isinstance(n, ast.Constant)]
    names = (n for n in walk(call) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)))
    return any(map(is_key, words)) or any(map(is_number, names)) or is_key(shown.text)


def _trains(scale: Scale) -> bool:
    """True for a number of a training loop: that it is rough is known."""
    places = (at for at in (scale.uneven, scale.joined) if at is not None)
    return any(_has_backward(at) for at in places)


def _has_backward(at: At) -> bool:
    function = at.module.function_of(at.node)
    return function is not None and any(isinstance(n, ast.Call) and called_name(n) in BACKWARDS for n in walk(function))
