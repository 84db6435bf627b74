"""Samplers with a rank's own part that a Trainer of transformers is given, whose loaders Accelerate shares out over the ranks.

`get_train_dataloader` and `get_eval_dataloader` give `accelerator.prepare(DataLoader(..., sampler=self._get_train_sampler()))`
since transformers 4.31; until then the Trainer's own sampler was the one that shared out. `BatchSamplerShard` asks no sampler
whether it keeps a part; transformers 5.23 takes its own `BatchRebalanceSampler` out of it for that reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.literals import is_none
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.samplers import is_distributed_sampler
from codemods.analysis.loading.shared_twice import Twice, is_of_ranks, part_of_class
from codemods.analysis.model.signatures import bind, defaults, returned
from codemods.analysis.names import family, last
from codemods.analysis.variance.values import Link
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LOADERS = {"_get_train_sampler": "get_train_dataloader", "_get_eval_sampler": "get_eval_dataloader"}
_PREPARES = (4, 31)
# Those of trl that leave the loader to transformers, or make it in the same way.
_OF_TRL = frozenset({"SFTTrainer", "DPOTrainer", "GRPOTrainer", "RewardTrainer", "ORPOTrainer", "KTOTrainer", "CPOTrainer"})
_NUMBERS = ("num_replicas", "rank")
_NUMBER = lazy(r"(?i)rank|replicas|world_?size|process")
_HOW = "the Trainer gives the loader to `accelerator.prepare`, which deals its batches out again"


def trainer_samplers(project: Project, module: SourceModule) -> Iterator[Twice]:
    """What the own `_get_train_sampler` of a Trainer gives, where it keeps each rank's part already."""
    for owner in module.nodes(ast.ClassDef):
        named = [f for f in owner.body if isinstance(f, ast.FunctionDef) and f.name in _LOADERS]
        if not named:
            continue
        facts = class_facts(project, module, owner)
        for method in named:
            if not _prepares(project, module, facts, method):
                continue
            for value in returned(method, module):
                for origin in origins(project, module, value):
                    first = _part(project, origin)
                    if first is not None and origin.module is module and isinstance(origin.node, ast.Call):
                        yield Twice(origin.node, _HOW, first)


def _prepares(project: Project, module: SourceModule, facts: ClassFacts, method: ast.FunctionDef) -> bool:
    """True where transformers makes the loader of this sampler, in a version that gives it to Accelerate."""
    if facts.unresolved or not any(_takes_samplers(name) for name in facts.external):
        return False
    if facts.method(_LOADERS[method.name]) is not None:
        return False
    pin = transformers_pin(project, near=module.path)
    return pin is not None and pin.surely_at_least(_PREPARES)


def _takes_samplers(base: str) -> bool:
    root = family(base)
    return external_role(base) is Role.HF_TRAINER and (root == "transformers" or (root == "trl" and last(base) in _OF_TRL))


def _part(project: Project, origin: Origin) -> Link | None:
    call = origin.node
    if not isinstance(call, ast.Call) or origin.path or not origin.known:
        return None
    if is_distributed_sampler(project, origin):
        given = dict(zip(_NUMBERS, call.args[1:], strict=False)) | {k.arg: k.value for k in call.keywords if k.arg in _NUMBERS}
        hides = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        if hides or not all(is_none(v) or is_of_ranks(project, origin.module, v) for v in given.values()):
            return None
        return Link(origin.module.path, origin.line, "a DistributedSampler gives each rank its part")
    site = made_class(project, origin)
    return _own_part(project, origin.module, call, site) if site is not None else None


def _own_part(project: Project, module: SourceModule, call: ast.Call, site: ClassSite) -> Link | None:
    """Where a sampler of the project takes its rank's part, if the numbers that it is given are those of the processes."""
    facts = class_facts(project, site.module, site.node)
    if facts.unresolved or facts.method("__iter__") is None:
        return None
    init = facts.method("__init__")
    if init is not None:
        given = bind(init[1], call, bound=True)
        if given is None:
            return None
        names = [a.arg for a in (*init[1].args.args[1:], *init[1].args.kwonlyargs) if _NUMBER.search(a.arg)]
        values = [given.get(name, defaults(init[1]).get(name)) for name in names]
        if not all(v is not None and (is_none(v) or is_of_ranks(project, module, v)) for v in values):
            return None
    found = part_of_class(project, site)
    return Link(found.path, found.line, "the sampler takes the part of its rank") if found is not None else None
