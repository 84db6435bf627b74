"""Files that a hook of Lightning or transformers writes, or a method that it calls: the class is judged as a whole."""

from __future__ import annotations

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.files.file_runs import HOOKS
from codemods.analysis.files.files_of_all import FileOfAll
from codemods.analysis.output.observers import is_taken_as_a_whole
from codemods.store.project import Project

CLASSES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.HF_CALLBACK)


def comes_by_a_hook(project: Project, found: FileOfAll) -> bool:
    """True where a method on the way, which calls what writes, is judged as a whole."""
    owners = ((home, home.method_of(node)) for home, node in found.way.frames)
    return any(owner is not None and is_taken_as_a_whole(project, home, owner[1]) for home, owner in owners)


def is_of_a_hook(project: Project, found: FileOfAll) -> bool:
    """True where the writing itself stands in a method that is judged as a whole."""
    place = found.home.method_of(found.file.call)
    if place is None:
        return False
    if place[1].name not in HOOKS:
        return is_taken_as_a_whole(project, found.home, place[1])
    facts = class_facts(project, found.home, place[0])
    return any(facts.is_a(r) for r in CLASSES)
