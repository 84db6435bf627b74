"""May the ranks meet in a call that nobody sees into?"""

from __future__ import annotations

from codemods.analysis.names import family
from codemods.analysis.output.effect_kinds import Effect
from codemods.store.project import Project

_HOLDERS = frozenset({"self", "cls", "trainer", "pl_module", "model", "module", "net", "accelerator", "fabric", "super()"})
_MEETING = frozenset({"lightning", "torch", "accelerate", "transformers", "torchmetrics", "deepspeed"})


def may_wait(project: Project, effect: Effect) -> bool:
    """True for an unknown call in which the ranks may meet: of a function, a model or a trainer that nobody sees into.

    A method of some value, and what another package computes, is left to the assumption.
    """
    root, _, rest = effect.name.partition(".")
    home = project.module(effect.path)
    imported = home.imports.get(root, ()) if home is not None else ()
    if imported and home is not None:
        own = any(project.resolve(i.dotted, home.path) is not None for i in imported)
        return own or any(family(i.dotted) in _MEETING for i in imported)
    return not rest or root in _HOLDERS
