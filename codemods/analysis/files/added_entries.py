"""Is a file read so that more can be put into it? A log of results, which every run adds to, is no cache."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.file_flow import steps_in
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_against_false(node: ast.AST) -> bool:
    """True for `exists(path) is False` and `exists(path) == False`: it asks for the opposite."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return False
    same = isinstance(node.ops[0], (ast.Is, ast.Eq))
    return node.comparators[0].value is (not same) if isinstance(node.comparators[0].value, bool) else False


def is_log(project: Project, module: SourceModule, node: ast.If, wanted: frozenset[str]) -> bool:
    """True where one arm of the test for a file writes it, and the other reads it and writes it anew."""
    acts = [{s.act for s in steps_in(project, module, arm) if s.forms & wanted} for arm in (node.body, node.orelse)]
    return all(Act.WRITES in one for one in acts) and any(Act.READS in one for one in acts)
