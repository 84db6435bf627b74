"""Ways that no program of the project takes: a function that nobody calls, a test of a parameter that no caller makes true.

`if mode == "replace":` where all calls leave `mode="add"`.
"""

from __future__ import annotations

from codemods.analysis.files.every_rank import Way
from codemods.analysis.files.never_true import is_never_asked_for
from codemods.analysis.files.prepared_only import is_only_where_prepared
from codemods.analysis.guards.before_group import ends_before_group
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.store.project import Project


def is_dead(project: Project, way: Way) -> bool:
    """True for a way over a test that is never true, or that begins in a function or method that no program comes to.

    And for a way through a task of a program that ends before there is a group: one process does that; so for what only the
    process comes to that has prepared the data.
    """
    if any(is_never_asked_for(project, home, node) or ends_before_group(project, home, node) for home, node in way.frames):
        return True
    if any(is_only_where_prepared(project, home, node) for home, node in way.frames):
        return True
    home, node = way.frames[-1]
    return home.function_of(node) is not None and is_run_by_nobody(project, home, node)
