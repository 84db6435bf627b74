"""Who runs what no line of the project calls: a framework its hooks, Python its own methods, a base what its heirs hold."""

from __future__ import annotations

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS
from codemods.analysis.logged.own_programs import nobody_fits
from codemods.analysis.ranks.asked_of_one import is_fitted_on_one_device
from codemods.store.project import Project

_NETWORK = frozenset({"forward", "train", "eval", "state_dict", "load_state_dict", "extra_repr", "parameters", "to"})
_BY_NAME = (b"LightningCLI", b"__subclasses__")  # who finds classes that nobody names
_ROLES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.HF_CALLBACK, Role.NN_MODULE,
          Role.DATASET)  # fmt: skip


def is_found_by_its_base(project: Project, site: ClassSite) -> bool:
    """True where the class may be found without its name: by a list of all heirs, by what a base does with each of its own."""
    if any(project.files_containing(word) for word in _BY_NAME):
        return True
    above = class_facts(project, site.module, site.node).lineage[1:]
    return any(s.module.holds(b"__init_subclass__") for s in above)


def is_called_from_outside(project: Project, facts: ClassFacts, name: str) -> bool:
    """True for a method that a framework or Python calls; what is not known of a framework's class may be.

    Lightning calls the hooks of a module that a Trainer gets: a project with a loop of its own runs none.
    """
    if is_hook_of_a_fitted_module(facts, name) and (nobody_fits(project) or is_fitted_on_one_device(project, name)):
        return False
    if name.startswith("__") or not any(facts.is_a(role) for role in _ROLES):
        return name.startswith("__") or bool(facts.external)
    return is_hook(name)


def is_hook_of_a_fitted_module(facts: ClassFacts, name: str) -> bool:
    """True for what Lightning's Trainer calls on the module it is handed, and not on the modules in it."""
    return name in LIGHTNING_HOOKS and name not in _NETWORK and facts.is_a(Role.LIGHTNING_MODULE)


def is_hook(name: str) -> bool:
    known = name in LIGHTNING_HOOKS or name in HF_CALLBACK_HOOKS or name in _NETWORK
    return known or name.startswith(("__", "on_", "configure_"))
