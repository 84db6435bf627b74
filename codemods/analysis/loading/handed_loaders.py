"""Training loaders that Lightning or Fabric is handed: it gives them a DistributedSampler, but leaves a stream as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_fabric
from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.loading.origins import origins
from codemods.analysis.loading.samplers import Loader, loader_of
from codemods.analysis.logged.epoch_numbers import is_kept_to_one_device
from codemods.analysis.logged.own_programs import nobody_fits
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_EVALUATES = lazy(r"(?i)(^|_)(val|valid|validation|eval|evaluation|test|dev|pred|predict)(_|$|s$)")
_WITHOUT_SHARES = (4, 31)  # of transformers: the Trainer draws at random, and Accelerate shares out what is prepared
_LIGHTNING = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE)


@record
class Handed:
    """loader: the DataLoader. module, node: where the framework gets it. framework: its name."""

    loader: Loader
    module: SourceModule
    node: ast.AST
    framework: str


def handed_loaders(project: Project) -> tuple[Handed, ...]:
    """Every DataLoader that Lightning or Fabric trains on, of runs that may have several processes."""

    def build() -> tuple[Handed, ...]:
        found: dict[int, Handed] = {}
        for one in (*_of_fabric(project), *_of_lightning(project)):
            found.setdefault(id(one.loader.call), one)
        return tuple(found.values())

    return project.memo("handed loaders", build)


def _of_fabric(project: Project) -> Iterator[Handed]:
    for module in _files(project, b"setup_dataloaders("):
        for call in module.calls_named("setup_dataloaders"):
            if not isinstance(call.func, ast.Attribute) or not is_fabric(project, module, call.func.value):
                continue
            if _has_one_device(project, module, call.func.value):
                continue
            for given in call.args:
                if not _EVALUATES.search(last(dotted(given))):
                    yield from _loaders(project, module, given, call, "Fabric")


def _has_one_device(project: Project, module: SourceModule, holder: ast.expr) -> bool:
    made = [o.node for o in origins(project, module, holder) if isinstance(o.node, ast.Call)]
    told = [next((k.value for k in c.keywords if k.arg == "devices"), None) for c in made]
    return bool(told) and all(isinstance(t, ast.Constant) and t.value in (1, "1") for t in told)


def _of_lightning(project: Project) -> Iterator[Handed]:
    if is_kept_to_one_device(project) or nobody_fits(project):
        return
    for module in _files(project, b"train_dataloader"):
        for function in module.functions:
            owner = module.parent(function)
            if function.name != "train_dataloader" or not isinstance(owner, ast.ClassDef):
                continue
            facts = class_facts(project, module, owner)
            if any(facts.is_a(role) for role in _LIGHTNING):
                for value in returned(function, module):
                    yield from _loaders(project, module, value, function, "Lightning")
    for module in _files(project, b".fit("):
        if not any(family(m) == "lightning" for m in module.imported_modules):
            continue
        for call in module.calls_named("fit"):
            if isinstance(call.func, ast.Attribute) and _is_trainer(project, module, call.func.value):
                for given in (*call.args[1:2], *(k.value for k in call.keywords if k.arg in _TAKEN)):
                    yield from _loaders(project, module, given, call, "Lightning")


def trainer_loaders(project: Project) -> tuple[Handed, ...]:
    """Loaders that `get_train_dataloader` of a Hugging Face Trainer gives back, and nobody prepares: without a sampler, or with
    the Trainer's own, which shares nothing out from transformers 4.31 on."""
    return project.memo("loaders of trainers", lambda: tuple(_of_trainers(project)))


def _of_trainers(project: Project) -> Iterator[Handed]:
    for module in _files(project, b"def get_train_dataloader"):
        for function in module.functions:
            owner = module.parent(function)
            if function.name != "get_train_dataloader" or not isinstance(owner, ast.ClassDef):
                continue
            facts = class_facts(project, module, owner)
            if not facts.is_a(Role.HF_TRAINER) or ".prepare" in module.text_of(owner):
                continue
            for value in returned(function, module):
                for one in _loaders(project, module, value, function, "the Trainer"):
                    loader = one.loader
                    if loader.hides or loader.batch_sampler is not None:
                        continue
                    if loader.sampler is None or _is_own_sampler(project, loader, facts):
                        yield one


def _is_own_sampler(project: Project, loader: Loader, facts: ClassFacts) -> bool:
    """True for `sampler=self._get_train_sampler()`, which the class leaves as it is in transformers."""
    pin = transformers_pin(project, near=loader.module.path)
    if (pin is not None and pin.surely_below(_WITHOUT_SHARES)) or facts.method("_get_train_sampler") is not None:
        return False
    found = origins(project, loader.module, loader.sampler) if loader.sampler is not None else ()
    calls = [o.node.func for o in found if o.known and not o.path and isinstance(o.node, ast.Call)]
    return bool(calls) and len(calls) == len(found) and all(dotted(f) == "self._get_train_sampler" for f in calls)


_TAKEN = ("train_dataloaders", "train_dataloader")


def _is_trainer(project: Project, module: SourceModule, node: ast.expr) -> bool:
    made = [o for o in origins(project, module, node) if isinstance(o.node, ast.Call)]
    names = [qualified(o.module, o.node.func) for o in made if isinstance(o.node, ast.Call)]
    return any(last(n) == "Trainer" and family(n) == "lightning" for n in names)


def _loaders(project: Project, module: SourceModule, given: ast.expr, at: ast.AST, framework: str) -> Iterator[Handed]:
    for part in _parts(module, given):
        for origin in origins(project, module, part):
            loader = loader_of(origin)
            if loader is not None and not _EVALUATES.search(last(dotted(loader.dataset))):
                yield Handed(loader, module, at, framework)


def _parts(module: SourceModule, given: ast.expr) -> list[ast.expr]:
    """The single loaders of a list, or of a dict that is handed over by its name as well."""
    held = given
    if isinstance(given, ast.Name) and len(values := assigned(module, given, given.id)) == 1 and isinstance(values[0], ast.Dict):
        held = values[0]
    if isinstance(held, ast.Dict):
        return list(held.values)
    return held.elts if isinstance(held, (ast.List, ast.Tuple)) else [given]


def _files(project: Project, word: bytes) -> Iterator[SourceModule]:
    for path in project.files_containing(word):
        module = None if is_test_file(path) else project.module(path)
        if module is not None:
            yield module
