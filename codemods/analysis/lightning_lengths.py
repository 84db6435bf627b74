"""Lengths of loaders that Lightning shares out later: what is worked out of them before counts the batches of all ranks.

Lightning gives a loader its DistributedSampler inside `fit`. Before that, and in what `train_dataloader()` gives, it is whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.loading.origins import origins
from codemods.analysis.loading.samplers import loader_of
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.uses import constructions
from codemods.analysis.schedules import Reading
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SCHEDULES = lazy(r"LR$|schedule", )
_OWN_SAMPLER = (b"use_distributed_sampler=False", b"replace_sampler_ddp=False")
_DEVICES = lazy(r"world_size|num_processes|devices|num_nodes|gpus|estimated_stepping_batches|n_gpu")


@record
class Whole:
    """An expression that rests on the length of the whole loader. epochs: the Trainer's epochs are worked out of it."""

    module: SourceModule
    node: ast.expr
    epochs: bool
    use: ast.AST
    used_in: SourceModule


def whole_lengths(project: Project) -> tuple[Whole, ...]:
    """Every such expression of the project; none where it gives loaders samplers of its own."""

    def build() -> tuple[Whole, ...]:
        if any(project.files_containing(word) for word in _OWN_SAMPLER):
            return ()
        found: dict[int, Whole] = {}
        for path in project.files_containing(b"ightning"):
            module = project.module(path)
            for one in (*_epochs(project, module), *_schedules(project, module)) if module is not None else ():
                found.setdefault(id(one.node), one)
        return tuple(found.values())

    return project.memo("whole lengths", build)


def _epochs(project: Project, module: SourceModule) -> Iterator[Whole]:
    """`Trainer(max_epochs=steps / len(loader))`."""
    for call in module.calls_named("Trainer"):
        name = qualified(module, call.func)
        given = next((k.value for k in call.keywords if k.arg == "max_epochs"), None)
        if family(name) != "lightning" or given is None:
            continue
        for origin in origins(project, module, given):
            if origin.known and not origin.path and _divides_by_whole(project, origin.module, origin.node):
                yield Whole(origin.module, origin.node, True, call, module)


def _divides_by_whole(project: Project, module: SourceModule, node: ast.expr) -> bool:
    parts = [n for n in walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.FloorDiv))]
    return any(_is_whole(project, module, n.right) for n in parts) and not _DEVICES.search(module.text_of(node))


def _schedules(project: Project, module: SourceModule) -> Iterator[Whole]:
    """Lengths of schedules that `configure_optimizers` makes to be stepped with each batch."""
    for function in module.functions:
        owner = module.parent(function)
        if function.name != "configure_optimizers" or not isinstance(owner, ast.ClassDef):
            continue
        text = module.text_of(function)
        if "interval" not in text or "step" not in text or _DEVICES.search(text):
            continue
        if class_facts(project, module, owner).external:
            yield from _in_configuration(project, module, owner, function)


def _in_configuration(project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode) -> Iterator[Whole]:
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        if not _SCHEDULES.search(last(dotted(call.func))):
            continue
        for given in (*call.args, *(k.value for k in call.keywords)):
            for node in walk(given):
                if isinstance(node, ast.Call) and dotted(node.func) == "len" and node.args:
                    if "train_dataloader()" in module.text_of(node.args[0]):
                        yield Whole(module, node, False, call, module)
                elif isinstance(node, ast.Attribute) and dotted(node) == f"self.{node.attr}":
                    yield from _handed_in(project, module, owner, node.attr, call)


def _handed_in(project: Project, module: SourceModule, owner: ast.ClassDef, name: str, call: ast.Call) -> Iterator[Whole]:
    """What the makers of the module hand to the argument that `self.name` keeps."""
    maker = module.methods_of(owner).get("__init__")
    made = constructions(project, module, owner) if maker is not None else None
    if maker is None or made is None or name not in {a.arg for a in (*maker.args.args, *maker.args.kwonlyargs)}:
        return
    for site in made.outside_tests().calls:
        given = (bind(maker, site.call, bound=True) or {}).get(name)
        if given is not None and _is_whole(project, site.module, given):
            yield Whole(site.module, given, False, call, module)


def _is_whole(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where the number comes from `len` of a plain loader, and the processes are no factor of it."""
    read = Reading(project)
    read.follow(module, node, 0)
    if read.scaled or read.divided or read.lost or not read.measured or _DEVICES.search(module.text_of(node)):
        return False
    return all(_is_plain_loader(project, there, call) for there, call in read.measured)


def _is_plain_loader(project: Project, module: SourceModule, call: ast.Call) -> bool:
    found = [loader_of(o) for o in origins(project, module, call.args[0])]
    plain = [x for x in found if x is not None]
    return bool(plain) and all(x.sampler is None and x.batch_sampler is None for x in plain)
