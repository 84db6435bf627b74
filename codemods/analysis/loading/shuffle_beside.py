"""Loaders that are told to shuffle beside a DistributedSampler, which torch refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.branches import leading_tests
from codemods.analysis.literals import is_true
from codemods.analysis.loading.asked_to_shuffle import is_asked_to_shuffle
from codemods.analysis.loading.origins import Origin, all_known
from codemods.analysis.loading.samplers import (
    Loader,
    heir_shuffles,
    is_distributed_sampler,
    is_epoch_heir,
    is_loader,
    is_none,
    samplers_of,
    shuffles,
)
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SHUFFLE = 2  # its place among the arguments of a loader


@record
class Beside:
    """loader, shuffle: the call, and its `True`, or the parameter that a caller makes True. sampler: one that it may be given.
    always: it has one on every way.

    instead: what says that no sampler is there, "" where nothing does. drawn: the sampler shuffles by itself, None where that
    is a matter of settings.
    """

    loader: Loader
    shuffle: ast.expr
    sampler: Origin
    always: bool
    instead: str
    drawn: bool | None


def shuffled_beside(project: Project, module: SourceModule) -> Iterator[Beside]:
    for call in module.calls_named("DataLoader"):
        loader = Loader(module, call)
        shuffle = loader.argument("shuffle", _SHUFFLE)
        given = loader.sampler
        if shuffle is None or given is None or not (is_true(shuffle) or isinstance(shuffle, ast.Name)):
            continue
        if not is_loader(module, call):
            continue
        made = samplers_of(project, loader)
        shared = [o for o in made if is_distributed_sampler(project, o) or is_epoch_heir(project, o)]
        if not shared or not all(may_meet(loader, given, o) for o in shared):
            continue
        if isinstance(shuffle, ast.Name) and not all(_is_asked(project, loader, shuffle, o) for o in shared):
            continue
        always = all_known(made) and not any(is_none(o) for o in made)
        drawn = {_draws(project, o, shuffle) for o in shared}
        yield Beside(loader, shuffle, shared[0], always, _none_is_given(module, given), drawn.pop() if len(drawn) == 1 else None)


def _is_asked(project: Project, loader: Loader, shuffle: ast.Name, sampler: Origin) -> bool:
    """True where a caller asks the function to shuffle that makes both, and no test of the sampler asks about that wish."""
    if loader.module.function_of(loader.call) is not sampler.module.function_of(sampler.node):
        return False
    asked: set[str] = set().union(*(_names(test) for test, _ in leading_tests(loader.module, sampler.node)))
    return shuffle.id not in asked and is_asked_to_shuffle(project, loader.module, loader.call, shuffle, asked)


def _draws(project: Project, sampler: Origin, shuffle: ast.expr) -> bool | None:
    """Whether the sampler shuffles: one that is handed the same wish does so where the loader would."""
    keywords = sampler.node.keywords if isinstance(sampler.node, ast.Call) else []
    if dotted(shuffle) and any(k.arg == "shuffle" and dotted(k.value) == dotted(shuffle) for k in keywords):
        return True
    return shuffles(sampler) if is_distributed_sampler(project, sampler) else heir_shuffles(project, sampler)


def _none_is_given(module: SourceModule, given: ast.expr) -> str:
    """The test for the ways on which the loader has no sampler."""
    if dotted(given):
        return f"{module.text_of(given)} is None"
    if not isinstance(given, ast.IfExp) or not dotted(given.test):
        return ""
    empty = [isinstance(arm, ast.Constant) and arm.value is None for arm in (given.body, given.orelse)]
    test = module.text_of(given.test)
    return {(False, True): f"not {test}", (True, False): test}.get((empty[0], empty[1]), "")


def may_meet(loader: Loader, given: ast.expr, sampler: Origin) -> bool:
    """False where a test may keep the loader and the sampler apart: nothing is known of how two tests hang together."""
    module = loader.module
    over = [(test, arm) for test, arm in leading_tests(module, loader.call) if _names(test)]
    if sampler.module is not module or module.function_of(sampler.node) is not module.function_of(loader.call):
        return not over
    shared = {(id(test), arm) for test, arm in leading_tests(module, sampler.node)}
    asked = set().union(*(_names(test) for test, _ in leading_tests(module, sampler.node)), {dotted(given)})
    return all((id(test), arm) in shared or not _names(test) & asked for test, arm in over)


def _names(node: ast.expr) -> set[str]:
    return {dotted(n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute))} - {""}
