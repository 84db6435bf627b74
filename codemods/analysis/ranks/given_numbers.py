"""Is what is called `rank` a number that the program writes down, such as the rank of an adapter's matrices?

A process rank is different in each process: nobody hands the same 4 to all of them. Numbers that are handed over one by one
(`Process(target=run, args=(0,))`, then 1) begin at 0, and so does the default of a run with one process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.model.signatures import defaults, has_parameter
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_DEPTH = 3
_SMALLEST = 2  # a default of 1 may still be a count of processes or of nodes
_OPTIONS = frozenset({"--rank", "-rank"})


def is_given_a_number(project: Project | None, module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True for a parameter that has a number for a default, or is handed one by every caller, through parameters too."""
    default = _number(defaults(function).get(name))
    if default is not None and default >= _SMALLEST:
        return True
    if project is None:
        return False
    key = ("given a number", module.path, function.lineno, name)
    return project.keep(key, lambda: _all_numbers(project, module, function, name))


def is_left_at_its_default(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True for a parameter with a number for a default that nobody hands anything: by a test of it every rank is rank 0."""
    if _number(defaults(function).get(name)) is None:
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or not (used.calls or used.handed_on) or any(_may_hand_more(site.call) for site in used.calls):
        return False
    if not all(_hands_nothing(handed.module, handed.node) for handed in used.handed_on):
        return False
    return next(arguments(project, module, function, name), None) is None


def _may_hand_more(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def _hands_nothing(module: SourceModule, node: ast.expr) -> bool:
    """True for `notebook_launcher(train, num_processes=2)`: it hands over what stands in `args`, and no rank."""
    call = module.parent(node)
    if not isinstance(call, ast.Call) or last(dotted(call.func)) not in ("notebook_launcher", "debug_launcher"):
        return False
    return call.args[:1] == [node] and len(call.args) == 1 and all(k.arg not in ("args", None) for k in call.keywords)


def _all_numbers(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    given = list(_handed_over(project, module, function, name, 0))
    return bool(given) and all(n is not None and n > 0 for n in given)


def _handed_over(
    project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int
) -> Iterator[int | None]:
    """The numbers that callers hand over; None for anything else."""
    for home, value in arguments(project, module, function, name):
        outer = home.function_of(value)
        if isinstance(value, ast.Name) and outer is not None and has_parameter(outer, value.id) and depth < _DEPTH:
            default = _number(defaults(outer).get(value.id))
            if default is not None:
                yield default
            inner = list(_handed_over(project, home, outer, value.id, depth + 1))
            yield from inner or ([None] if default is None else [])
        else:
            yield _number(value)


def _number(value: ast.expr | None) -> int | None:
    known = value.value if isinstance(value, ast.Constant) else None
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def is_an_option_with_a_number(project: Project | None) -> bool:
    """True where every `--rank` of the project's command lines has a number for a default: `args.rank` is a size there."""
    return project is not None and project.keep("rank is a size", lambda: _options_are_sizes(project))


def _options_are_sizes(project: Project) -> bool:
    defaults: list[int | None] = []
    for path in (*project.files_containing(b'--rank"'), *project.files_containing(b"--rank'")):
        module = project.module(path)
        for call in module.calls_named("add_argument") if module else ():
            if any(isinstance(a, ast.Constant) and a.value in _OPTIONS for a in call.args):
                defaults.append(_number(next((k.value for k in call.keywords if k.arg == "default"), None)))
    return bool(defaults) and all(d is not None and d >= _SMALLEST for d in defaults)
