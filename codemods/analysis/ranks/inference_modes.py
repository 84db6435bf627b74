"""Modes of a program that train nothing and share nothing out: `if mode == "train": … else:`, and what the other branch does.

Each of several processes would do all of it, so that nobody starts several for it: its lines are seen once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.job_files.script_texts import script_text
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MODES = frozenset({"mode", "phase", "stage", "run_mode", "task_mode", "run_type", "action", "job_type"})
_TRAIN = lazy(r"(?:pre|re|fine_?)?(?:train(?:ing)?|tune|tuning)|fit")
_OTHER = lazy(
    r"(?:do_|is_|only_|run_)?(?:test|eval|evaluate|evaluation|infer|inference|predict|prediction|sample|demo|visuali[sz]e)(?:_only)?"
)
_ASKS_TO_TRAIN = lazy(r"(?:do_|is_|run_)?train(?:ing)?")
_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt")
# What shares the work out, brings it together, or thinks of ranks: such a mode is made for several processes.
_SHARED = lazy(
    r"(?i)sampler|^dist$|ddp|distributed|^module$|accelerat|gather|reduce|barrier|rank(?:$|_)|world_size|trainer|^prepare$|deepspeed|"
    r"engine|split_between|is_main|is_master|shard|fabric|num_process|broadcast|^hvd$|spawn"
)
_LAUNCHES = lazy(r"torchrun|torch\.distributed|accelerate\s+launch|deepspeed|\bsrun\b|mpirun|horovodrun|nproc")
_DEPTH, _MOST_CALLS = 3, 200


def is_in_unshared_mode(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in the branch of a mode that does not train, where nothing that it calls shares anything out among processes."""
    for block, option in _branches_round(module, node):
        if not _is_launched(project, option):
            return not any(_shares(project, module, s, option, _DEPTH) for s in block)
    return False


def _branches_round(module: SourceModule, node: ast.AST) -> Iterator[tuple[list[ast.stmt], str]]:
    """(the statements, the option) of each branch round a place that a program which trains does not take."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(up, ast.If) and below is not up.test and (said := _trains(up.test)) is not None:
            option, trains = said
            block = up.body if any(s is below for s in up.body) else up.orelse
            if trains is (block is up.orelse):
                yield block, option
        below = up


def _trains(test: ast.expr) -> tuple[str, bool] | None:
    """(the option, whether the program trains where the test holds); None where the test asks something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _trains(test.operand)
        return None if inner is None else (inner[0], not inner[1])
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(value := test.comparators[0], ast.Constant):
        name, word = last(dotted(test.left)), value.value
        if name not in _MODES or not isinstance(word, str) or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            return None
        equal = isinstance(test.ops[0], ast.Eq)
        if _TRAIN.fullmatch(word.lower()):
            return name, equal
        return (name, False) if equal and _OTHER.fullmatch(word.lower()) else None
    if isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name):  # `args.test`
        if test.value.id in ("self", "model", "net", "cls"):
            return None  # `self.training` is no option
        if _ASKS_TO_TRAIN.fullmatch(test.attr):
            return test.attr, True
        return (test.attr, False) if _OTHER.fullmatch(test.attr) else None
    return None


def _is_launched(project: Project, option: str) -> bool:
    """True where a command for several processes gives the option: as this mode, for all that is seen."""
    if option not in _MODES:
        return any(option in s.flags for s in starts(project) if s.several)
    paths = project.files_containing(option.encode(), kinds=_TEXTS)
    return project.keep(("launched mode", option), lambda: any(_launches_mode(project, p, option) for p in paths))


def _launches_mode(project: Project, path: str, option: str) -> bool:
    text = re.sub(r"\\[ \t]*\n", " ", script_text(project, path))
    given = re.compile(rf"\b{option}[ =]+[\"']?([\w$]+)")
    lines = (line for line in text.split("\n") if _LAUNCHES.search(line))
    return any(not _TRAIN.fullmatch(m[1].lower()) for line in lines for m in given.finditer(line))


def _shares(project: Project, module: SourceModule, scope: ast.AST, option: str, depth: int) -> bool:
    """True where the code, or the project's functions that it calls, speak of sharing, or are too many to be looked at."""
    nodes = list(_run_in_mode(scope, option))
    if any(_SHARED.search(name) for name in _names(nodes)):
        return True
    calls = [n for n in nodes if isinstance(n, ast.Call)] if depth > 0 else []
    if len(calls) > _MOST_CALLS:
        return True
    sites = {(s.module.path, s.node.lineno): s for c in calls if (s := called_function(project, module, c)) is not None}
    return any(_function_shares(project, site, option, depth - 1) for site in sites.values())


def _function_shares(project: Project, site: FunctionSite, option: str, depth: int) -> bool:
    key = ("shares out", site.module.path, site.node.lineno, option, depth)
    return project.keep(key, lambda: _shares(project, site.module, site.node, option, depth))


def _run_in_mode(scope: ast.AST, option: str) -> Iterator[ast.AST]:
    """The nodes of some code, without the branches that the same option closes to this mode."""
    yield scope
    for inner in ast.iter_child_nodes(scope):
        if isinstance(scope, ast.If) and (said := _trains(scope.test)) is not None and said[0] == option:
            if any(inner is s for s in (scope.body if said[1] else scope.orelse)):
                continue
        yield from _run_in_mode(inner, option)


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
