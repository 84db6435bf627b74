"""Methods that were hooks of Lightning 1 and are called by no Trainer of later versions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.trainer.lightning_upgrade import Standing, is_tried, standing
from codemods.data.lightning_names import ALWAYS, GONE_CALLBACK_HOOKS, GONE_HOOKS, HOOKS_GONE
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class GoneHook:
    """instead: the hooks that are called; known: what is known of the version."""

    owner: ast.ClassDef
    hook: FunctionNode
    instead: str
    known: Standing


def gone_hooks(project: Project, module: SourceModule) -> Iterator[GoneHook]:
    """Those of a file."""
    for owner in module.nodes(ast.ClassDef):
        for hook in module.methods_of(owner).values():
            if (found := gone_hook(project, module, owner, hook)) is not None:
                yield found


def gone_hook(project: Project, module: SourceModule, owner: ast.ClassDef, hook: FunctionNode) -> GoneHook | None:
    """What takes the place of a method that a Trainer called once; None for others, and where the project calls it itself."""
    name = hook.name
    if name not in GONE_HOOKS and name not in GONE_CALLBACK_HOOKS:
        return None
    instead = _instead(class_facts(project, module, owner), name)
    if not instead or _is_named(project, name) or is_tried(module, owner, "ImportError"):
        return None
    known = standing(project, module.path, hook, since=ALWAYS, gone=HOOKS_GONE)
    return GoneHook(owner, hook, instead, known) if known is not None else None


def _instead(facts: ClassFacts, name: str) -> str:
    if facts.unresolved:
        return ""  # a base class may hand one hook on to another
    if facts.is_a(Role.LIGHTNING_CALLBACK):
        return GONE_HOOKS.get(name) or GONE_CALLBACK_HOOKS[name]
    return GONE_HOOKS.get(name, "") if facts.is_a(Role.LIGHTNING_MODULE) else ""


def _is_named(project: Project, name: str) -> bool:
    """True where a file reads the method of some object: it may be the one that calls it."""
    return any(project.files_containing(f"{mark}{name}{end}".encode()) for mark, end in ((".", ""), ('"', '"'), ("'", "'")))
