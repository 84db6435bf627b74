"""Which files may be run by several processes at all: from the bytes of theirs and of those that import them.

A codemod asks before a file is parsed for it.
"""

from __future__ import annotations

from itertools import islice

from codemods.analysis.distribution import is_own_test, ranks_above, ranks_at, speaks
from codemods.analysis.importing import users_by_step, users_of
from codemods.store.file_facts import file_fact
from codemods.store.project import Project


def may_show_ranks(project: Project, path: str) -> bool:
    """False where neither the file nor one that imports it holds a word of several processes, or a step, by the bytes."""
    return project.keep(("may show ranks", path), lambda: _may_show(project, path))


def _may_show(project: Project, path: str) -> bool:
    if is_own_test(project, path):
        return False
    if project.fact(speaks, path) or project.fact(is_stepped_by_lightning, path):
        return True
    users = [p for p in users_of(project, path) if not is_own_test(project, p)]
    handed_on = (u for p in users if p.endswith("/__init__.py") for u in users_of(project, p))
    return any(project.fact(speaks, p) for p in (*users, *handed_on))


@file_fact
def is_stepped_by_lightning(path: str, data: bytes) -> bool:
    """True for a file with a `training_step`: a Trainer calls it, and maybe only a registry names its class."""
    del path
    return b"def training_step(" in data


def may_be_run_by_ranks(project: Project, path: str, hops: int = 3) -> bool:
    """False where no file that imports this one, over a few others, holds a word of several processes: from the bytes alone."""
    steps = islice(users_by_step(project, path, lambda p: is_own_test(project, p)), hops + 1)
    return any(may_show_ranks(project, p) for found in steps for p in found)


def shows_ranks(project: Project, path: str) -> bool:
    """True where the file, or one that imports from it, shows that several processes run it; few are parsed."""
    return ranks_at(project, path) is not None or ranks_above(project, path) is not None
