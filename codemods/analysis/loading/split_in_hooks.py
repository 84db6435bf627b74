"""Splits that a hook of Lightning comes to: each process runs it, whoever made the object."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.logged.epoch_numbers import is_kept_to_one_device
from codemods.analysis.logged.own_programs import nobody_fits
from codemods.analysis.ranks.seen_starts import is_of_several
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_ROLES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE)
_HOOKS = frozenset({"setup", "train_dataloader", "val_dataloader"})
_UP = 2  # calls above the split
_TEXTS = (".yaml", ".yml", ".json", ".toml", ".md", ".sh")  # where `class_path` tells LightningCLI of a class


def hook_round(project: Project, module: SourceModule, split: ast.Call) -> tuple[SourceModule, FunctionNode] | None:
    """The hook that comes to the split in a run of several processes; None where LightningCLI, which seeds, may run it."""
    if not any(project.files_containing(b"ightningDataModule")):
        return None
    if is_kept_to_one_device(project) or nobody_fits(project) or not is_of_several(project, module, split):
        return None
    sites = [CallSite(module, split)]
    for _ in range(_UP + 1):
        for site in sites:
            if (hook := _hook(project, site)) is not None:
                return (site.module, hook) if _is_of_no_cli(project, site.module, hook) else None
        functions = [(s.module, f) for s in sites if (f := s.module.function_of(s.call)) is not None]
        sites = [s for home, f in functions for s in uses_of(project, home, f).outside_tests().calls]
    return None


def _hook(project: Project, site: CallSite) -> FunctionNode | None:
    function = site.module.function_of(site.call)
    owner = site.module.parent(function) if function is not None else None
    if function is None or function.name not in _HOOKS or not isinstance(owner, ast.ClassDef):
        return None
    facts = class_facts(project, site.module, owner)
    return function if any(facts.is_a(role) for role in _ROLES) else None


def _is_of_no_cli(project: Project, module: SourceModule, hook: FunctionNode) -> bool:
    """True where programs without LightningCLI make every object of the class, and no text names it to one with it."""
    clis = project.files_containing(b"LightningCLI")
    if not clis:
        return True
    owner = module.parent(hook)
    if not isinstance(owner, ast.ClassDef) or project.files_containing(owner.name.encode(), kinds=_TEXTS):
        return False
    made = constructions(project, module, owner)
    if made is None or made.more or made.handed_on or not made.calls:
        return False
    homes = {module.path, *(s.module.path for s in made.calls)}
    return not any(same_program(project, home, cli) for home in homes for cli in clis)
