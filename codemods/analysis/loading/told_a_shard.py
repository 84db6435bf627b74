"""Batch samplers that are told the epoch through a loader which Accelerate prepared: with several processes another stands there.

`prepare` puts a `BatchSamplerShard` round the loader's batch sampler, unless there is one process. It has no `set_epoch`, and
`set_epoch` of the loader itself only comes to samplers that stand in the batch sampler's `sampler`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.loading.origins import made_facts, origins
from codemods.analysis.loading.samplers import Loader, loader_of
from codemods.analysis.names import dotted
from codemods.analysis.wrapped.wrapper_tests import conditions_of, is_caught
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_OTHERWISE_DEALT = (b"dispatch_batches", b"DataLoaderConfiguration")


@record
class ToldAShard:
    """call: the `set_epoch`, which no process of several makes. tested: it stands under a `hasattr`; else it raises there.

    prepared: the call of `prepare`. loader: whose batch sampler takes its order from the epoch.
    """

    call: ast.Call
    receiver: str
    tested: bool
    prepared: ast.Call
    loader: Loader


def told_a_shard(project: Project, module: SourceModule) -> Iterator[ToldAShard]:
    """`prepared.batch_sampler.set_epoch(epoch)`, in the order of the file."""
    if any(project.files_containing(word) for word in _OTHERWISE_DEALT):
        return  # a loader that deals out from the first process keeps the batch sampler
    for call in module.calls_named("set_epoch") if module.holds(b"prepare(") else ():
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(receiver, ast.Attribute) or receiver.attr != "batch_sampler" or not dotted(receiver.value):
            continue
        tests = [module.text_of(c.test) for c in conditions_of(module, call, None) if isinstance(c, ast.If)]
        tested = any("hasattr" in t and "set_epoch" in t for t in tests)
        function = module.function_of(call)
        others = [c for c in module.calls_named("set_epoch") if c is not call and module.function_of(c) is function]
        if others and left(module, call, "another call of the function may come to the sampler inside"):
            continue
        if is_caught(module, call) or (tests and not tested):
            continue
        if (found := _prepared(project, module, receiver.value, call)) is not None:
            yield ToldAShard(call, dotted(receiver), tested, *found)


def _prepared(project: Project, module: SourceModule, name: ast.expr, at: ast.Call) -> tuple[ast.Call, Loader] | None:
    """The `prepare` that gave the name above a place, and the loader with a batch sampler by the epoch that it was handed."""
    above = [a for a in module.nodes(ast.Assign) if a.lineno < at.lineno and module.function_of(a) is module.function_of(at)]
    given = [a for a in above if any(dotted(t) == dotted(name) for whole in a.targets for t in _targets(whole))]
    call = max(given, key=lambda a: a.lineno).value if given else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "prepare":
        return None
    if not is_accelerator(project, module, call.func.value):
        return None
    for argument in (a for a in call.args if dotted(a) == dotted(name)):
        for loader in filter(None, map(loader_of, origins(project, module, argument))):
            if loader.batch_sampler is not None and _is_by_the_epoch(project, loader.module, loader.batch_sampler):
                return call, loader
    return None


def _targets(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _is_by_the_epoch(project: Project, module: SourceModule, batches: ast.expr) -> bool:
    """True for a class of the project whose `set_epoch` keeps a number that its `__iter__` reads."""
    for origin in origins(project, module, batches):
        facts = made_facts(project, origin)
        told = facts.method("set_epoch") if facts is not None else None
        drawn = facts.method("__iter__") if facts is not None else None
        if told is not None and drawn is not None and _fields(told[1], ast.Store) & _fields(drawn[1], ast.Load):
            return True
    return False


def _fields(method: FunctionNode, context: type[ast.expr_context]) -> set[str]:
    found = (n for n in walk(method) if isinstance(n, ast.Attribute) and isinstance(n.ctx, context))
    return {n.attr for n in found if dotted(n.value) == "self"}
