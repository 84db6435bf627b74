"""Runs of Weights & Biases that only the process has which spawns the ranks, and what the ranks report without one.

A spawned process has no run of its parent's: `wandb.log` raises there, on every rank. A forked one has. Run with wandb 0.31.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.guards.entry_points import main_block
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.loading.spawned import Spawn, spawns_in
from codemods.analysis.names import qualified
from codemods.analysis.output.tracker_starts import asks_for_run, runs_of
from codemods.analysis.ranks.uses import calls_of
from codemods.data.host_only import TRACKER_FUNCTIONS
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 4  # functions between the one that is spawned and the report
_RAISES = frozenset(name for name in TRACKER_FUNCTIONS if name.startswith("wandb.") and name != "wandb.finish")
# What else may start a run in a process, or hand it one.
_OTHER_STARTS = (b"WandbLogger", b"WandbCallback", b"TrainingArguments", b"report_to", b"attach", b"wandb.setup")


@record
class ReportWithoutRun:
    """call: the first report that the spawned function comes to. init: the parent's run."""

    module: SourceModule
    call: ast.Call
    worker: str
    spawn: tuple[SourceModule, ast.Call]
    init: tuple[SourceModule, ast.Call]


def reports_without_run(project: Project, module: SourceModule) -> list[ReportWithoutRun]:
    """Those of a file."""
    if not project.files_containing(b"spawn("):
        return []
    return [found for found in _all(project) if found.module is module]


def _all(project: Project) -> list[ReportWithoutRun]:
    return project.memo("reports without a run", lambda: list(_find(project)))


def _find(project: Project) -> Iterator[ReportWithoutRun]:
    found: dict[int, ReportWithoutRun] = {}
    for start in runs_of(project):
        for module, spawn in _spawned_behind(project, start.module, start.call):
            if not _has_other_starts(project, module, spawn):
                report = _first_report(project, spawn.worker, _DEPTH)
                if report is not None:
                    other, call = report
                    name = spawn.worker.node.name
                    made = ReportWithoutRun(other, call, name, (module, spawn.call), (start.module, start.call))
                    found.setdefault(id(call), made)
    yield from found.values()


# The process that starts the others


def _spawned_behind(project: Project, module: SourceModule, node: ast.Call) -> Iterator[tuple[SourceModule, Spawn]]:
    """What the process of the run spawns later on: in the same function, in one that it calls, or where this one was called."""
    home = module.function_of(node)
    if home is None and main_block(module, node) is None:
        return  # each spawned process imports the file, and has a run of its own
    yield from _behind(project, module, node)
    for site in (calls_of(project, module, home) or ()) if home is not None else ():
        if site.module.function_of(site.call) is not None or main_block(site.module, site.call) is not None:
            yield from _behind(project, site.module, site.call)


def _behind(project: Project, module: SourceModule, node: ast.Call) -> Iterator[tuple[SourceModule, Spawn]]:
    home = module.function_of(node)
    for spawn in spawns_in(project, module, home):
        if _follows(module, node, spawn.call):
            yield module, spawn
    for call in module.nodes(ast.Call):
        if module.function_of(call) is home and _follows(module, node, call):
            site = called_function(project, module, call)
            if site is not None and site.node is not home:
                yield from ((site.module, spawn) for spawn in spawns_in(project, site.module, site.node))


def _follows(module: SourceModule, first: ast.Call, then: ast.Call) -> bool:
    """True where one call comes behind the other, and no test has them in different arms."""
    if then.lineno <= (first.end_lineno or first.lineno):
        return False
    below: ast.AST = first
    above = set(map(id, module.ancestors(then)))
    for up in module.ancestors(first):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.If, ast.Try, ast.For, ast.While, ast.Match)):
            block = next((b for b in _blocks(up) if any(s is below for s in b)), [])
            if id(up) in above and not any(id(s) in above for s in block):
                return False
            if id(up) not in above and any(isinstance(n, ast.Return) for s in block for n in (s, *walk_scope(s))):
                return False
        below = up
    return True


def _blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    return (getattr(statement, name) for name in ("body", "orelse", "finalbody") if getattr(statement, name, None))


def _has_other_starts(project: Project, module: SourceModule, spawn: Spawn) -> bool:
    """True where the spawned processes may have a run: the program starts one in another place, or by other means."""
    program = whole_program(project, module.path) | whole_program(project, spawn.worker.module.path)
    if any(word in (project.read(p) or b"") for p in program for word in _OTHER_STARTS):
        return True
    inside = (s for s in runs_of(project) if s.module.path in program)
    return any(not any(True for _ in _spawned_behind(project, s.module, s.call)) for s in inside)


# The processes that are started


def _first_report(project: Project, site: FunctionSite, depth: int) -> tuple[SourceModule, ast.Call] | None:
    """The first report in the order of the text, over the functions that are called by their name."""
    module = site.module
    calls = sorted((n for n in walk_scope(site.node) if isinstance(n, ast.Call)), key=lambda c: (c.lineno, c.col_offset))
    for call in calls:
        if _is_caught(module, call) or asks_for_run(module, module.statement_of(call)):
            continue
        if qualified(module, call.func) in _RAISES:
            return module, call
        called = called_function(project, module, call) if depth else None
        if called is not None and called.node is not site.node:
            found = _first_report(project, called, depth - 1)
            if found is not None:
                return found
    return None


def _is_caught(module: SourceModule, call: ast.Call) -> bool:
    """True in the body of a `try`, whose error somebody handles."""
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.Try) and up.handlers:
            return True
    return False
