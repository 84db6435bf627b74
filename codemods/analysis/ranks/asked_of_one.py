"""What Lightning's Trainers of one device alone are asked for: each `trainer.test(…)` of the project is of such a one, or in a
script that its commands leave one.
"""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.documented_starts import is_pinned_to_one
from codemods.analysis.names import dotted, family
from codemods.analysis.ranks.one_device import trains_on_one_device
from codemods.files.source import SourceModule
from codemods.store.project import Project

_OF_FIT = ("training_", "validation_", "on_train_", "on_validation_", "on_fit_")


def asked_on_one_device(project: Project, asked: str) -> bool:
    """True where each `trainer.<asked>(…)` of the project is of a Trainer with one device, made in the same function, or in
    a script that is given one."""

    def ask() -> bool:
        if project.files_containing(b"LightningCLI("):
            return False
        word = f".{asked}(".encode()
        read = (project.module(p) for p in project.files_containing(word) if not is_test_file(p))
        said = [one for module in read if module is not None for one in _asked_on_one(project, module, asked)]
        return bool(said) and all(said)

    return project.keep(("asked on one device", asked), ask)


def _asked_on_one(project: Project, module: SourceModule, asked: str) -> list[bool]:
    calls = [c for c in module.calls_named(asked) if "trainer" in dotted(c.func).lower()]
    one = [trains_on_one_device(project, module, module.function_of(call)) for call in calls]
    return one if all(one) or not is_pinned_to_one(project, module.path) else [True]


def is_fitted_on_one_device(project: Project, hook: str) -> bool:
    """True for a hook of training where all that train have one device, though others test or predict on several."""
    if not hook.startswith(_OF_FIT) or not asked_on_one_device(project, "fit"):
        return False
    if project.files_containing(b".validate(") and not asked_on_one_device(project, "validate"):
        return False
    return project.keep("fits by other names", lambda: not _fits_by_another_name(project))


def _fits_by_another_name(project: Project) -> bool:
    """True where a file of Lightning has a `fit` or `validate` whose Trainer is not to be told, or fetches one by its name."""
    for path in sorted({p for word in (b".fit(", b".validate(", b"getattr(") for p in project.files_containing(word)}):
        module = project.module(path) if not is_test_file(path) else None
        if module is None or not any(family(name) == "lightning" for name in module.imported_modules):
            continue
        if any("trainer" not in dotted(c.func).lower() for c in module.calls_named("fit", "validate")):
            return True
        if any("trainer" in module.text_of(c.args[0]).lower() for c in module.calls_named("getattr") if c.args):
            return True
    return False
