"""Samples that an evaluation looks up by the number of its batch, where Lightning deals the samples out to the ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.epoch_numbers import is_kept_to_one_device
from codemods.analysis.logged.own_programs import evaluates_on_the_whole_set, nobody_fits
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_STEPS = frozenset({"validation_step", "test_step", "predict_step"})
_SAMPLES = lazy(
    r"(^|_)(ids?|names?|files?|filenames?|filepaths?|paths?|keys|datasets?|samples|images|imgs|records|rows|items|queries|docs"
    r"|annotations|videos|patients|stems|indices|examples|sentences)$"
)
_MADE = lazy(r"pred|out|result|loss|metric|weight|cache|history|collected|buffer|logged")
_OWN_ORDER = (b"sampler=", b"use_distributed_sampler", b"replace_sampler_ddp", b"IterableDataset")
_GROWS = frozenset({"append", "extend", "insert", "add", "clear"})


@record
class Lookup:
    """node: `self.ids[batch_idx]`. step: the method; number: its parameter."""

    node: ast.Subscript
    step: FunctionNode
    number: str


def lookups(project: Project, module: SourceModule) -> Iterator[Lookup]:
    steps = [f for f in module.functions if f.name in _STEPS and isinstance(module.parent(f), ast.ClassDef)]
    if not steps or not _deals_out(project):
        return
    for step in steps:
        owner = module.parent(step)
        given = [a.arg for a in step.args.args]
        if not isinstance(owner, ast.ClassDef) or len(given) != 3:
            continue
        if not class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE):
            continue
        for node in walk_scope(step):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and dotted(node.slice) == given[2]:
                held = dotted(node.value)
                if held.startswith(f"{given[0]}.") and _is_list_of_samples(module, owner, held):
                    yield Lookup(node, step, given[2])


def _is_list_of_samples(module: SourceModule, owner: ast.ClassDef, held: str) -> bool:
    end = last(held)
    if _SAMPLES.search(end) is None or _MADE.search(held):
        return False
    grows = (c for c in module.calls_named(*_GROWS) if isinstance(c.func, ast.Attribute))
    return not any(isinstance(c.func, ast.Attribute) and dotted(c.func.value) == held for c in grows)


def _deals_out(project: Project) -> bool:
    """True where Lightning gives the loaders its sampler, and may have several processes."""

    def build() -> bool:
        if is_kept_to_one_device(project) or nobody_fits(project) or evaluates_on_the_whole_set(project):
            return False
        return not any(not is_test_file(p) for word in _OWN_ORDER for p in project.files_containing(word))

    return project.keep("lightning deals out", build)
