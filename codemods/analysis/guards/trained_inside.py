"""Does a call come to a backward pass, whatever any test says? The backward of a wrapped model waits for all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import class_facts, overriding
from codemods.analysis.names import end_of
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.ranks.trained_by_ranks import is_of_training_ranks
from codemods.analysis.variance.heirs import is_left_open
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_DEPTH = 4  # calls between a loop over the epochs and the backward of one batch
_BACKWARD = b"backward("


def trains_inside(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the function of the project that is called always comes to the backward pass of a program for several ranks."""
    if not project.files_containing(_BACKWARD):
        return False
    return _trains(project, module, call, _DEPTH) and is_of_training_ranks(project, module, call)


def _trains(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    if end_of(call.func) == "backward":
        return not is_of_one_process(module, call) and ranks_at(module, call, project=project) is Ranks.ALL
    site = called_function(project, module, call) if depth else None
    if site is None:
        return False
    sites = _written(project, site)
    return bool(sites) and all(_comes(project, s.module, s.node.body, depth - 1) for s in sites)


def _written(project: Project, site: FunctionSite) -> list[FunctionSite]:
    """The function itself, or what all heirs of its class put in its place where it is left open."""
    owner = site.module.parent(site.node)
    if not isinstance(owner, ast.ClassDef) or not is_left_open(site.node):
        return [site]
    base = class_facts(project, site.module, owner).lineage[0]
    heirs = overriding(project, base, site.node.name) or ()
    return [FunctionSite(heir.module, heir.methods()[site.node.name]) for heir in heirs]


def _comes(project: Project, module: SourceModule, body: Iterable[ast.stmt], depth: int) -> bool:
    """True where a run of the statements comes to a backward pass: a test has it in both arms, a loop has rounds."""
    return any(_comes_in(project, module, statement, depth) for statement in body)


def _comes_in(project: Project, module: SourceModule, statement: ast.stmt, depth: int) -> bool:
    if isinstance(statement, ast.If):
        return _comes(project, module, statement.body, depth) and _comes(project, module, statement.orelse, depth)
    if isinstance(statement, (ast.For, ast.While, ast.With, ast.Try)):
        return _comes(project, module, statement.body, depth)
    if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
        return any(_trains(project, module, c, depth) for c in walk_scope(statement) if isinstance(c, ast.Call))
    return False
