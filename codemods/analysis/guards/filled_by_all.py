"""Folders that every rank fills with its own share of the files, and that each rank lists without waiting for the others.

Each rank goes through its part of a loader and writes a file for each item; behind the loop the data set is the list of the
folder. A rank that is done first finds fewer files than the others: another data set, with another length.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.file_calls import Act, file_call, names_the_rank
from codemods.analysis.files.file_paths import forms
from codemods.analysis.guards.file_handover import Handover, first_use
from codemods.analysis.guards.guarded_changes import Write
from codemods.analysis.guards.meeting_place import parted_before
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.values import Cause, Proof
from codemods.files.source import SourceModule, walk_block
from codemods.runtime.record import replace
from codemods.store.project import Project


def filled_by_all(project: Project, module: SourceModule) -> Iterator[Handover]:
    """One for each loop over a rank's own share that writes files into a folder which is listed behind it."""
    told: set[int] = set()
    for loop in module.nodes(ast.For):  # the outer ones first
        writes = list(_writes(module, loop))
        if not writes or not _is_a_share(project, module, loop) or ranks_at(module, loop, project=project).some:
            continue
        anchor = _meeting(project, module, loop)
        found = first_use(project, module, anchor, writes)
        if found is not None and found.use.act in (Act.LISTS, Act.LOADS, Act.READS) and id(found.write.call) not in told:
            told.add(id(found.write.call))
            yield replace(found, module=module, anchor=anchor, ranks=Ranks.ALL)


def _writes(module: SourceModule, loop: ast.For) -> Iterator[Write]:
    """The folders of what is written in each round, under a name that does not hold the rank."""
    for call in walk_block(loop.body):
        path = _written(module, call) if isinstance(call, ast.Call) else None
        if path is None or names_the_rank(path):
            continue
        folders = {head for form in forms(module, path) if (head := form.rpartition("/")[0])}
        if folders:
            yield Write(Act.FILLS, frozenset(folders), module, call, "")


def _written(module: SourceModule, call: ast.Call) -> ast.expr | None:
    """The path that a call writes; `picture.save(folder / name)` is one, whatever the picture is."""
    if found := file_call(module, call):
        return found.path if found.act is Act.WRITES else None
    saved = isinstance(call.func, ast.Attribute) and call.func.attr == "save" and len(call.args) == 1
    return call.args[0] if saved else None


def _is_a_share(project: Project, module: SourceModule, loop: ast.For) -> bool:
    value = variance(project).value(module, unpacked(loop.iter))
    return value.cause is Cause.DATA and value.proof is Proof.PROVEN


def _meeting(project: Project, module: SourceModule, loop: ast.For) -> ast.stmt:
    """The statement round the loop behind which every rank comes: whether files are missing is each rank's own finding."""
    anchor: ast.stmt = loop
    function = module.function_of(loop)
    while parted_before(project, module, anchor, function):
        up = module.parent(anchor)
        if not isinstance(up, ast.stmt) or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return anchor
        anchor = up
    return anchor
