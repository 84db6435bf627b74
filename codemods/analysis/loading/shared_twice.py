"""Data that are shared out over the ranks already, and are shared out once more by a sampler or a framework."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator, is_one
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.loading.handed_loaders import handed_loaders
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.samplers import (
    Loader,
    is_distributed_sampler,
    is_map_style,
    is_none,
    loader_of,
    samplers_of,
    short,
)
from codemods.analysis.loading.shares import speaks_of_ranks
from codemods.analysis.names import dotted, qualified
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause, How, Link, Proof, Value
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_OF_A_NODE = lazy(r"(?i)local|node|gpu|host|device|group|shard|tp_|dp_|data_parallel")
_STEPS = 2
_KEPT_OFF = (b"use_distributed_sampler", b"replace_sampler_ddp")


@record
class Twice:
    """node: what shares the data out again. how: that in words. first: where they are shared out for the first time."""

    node: ast.Call
    how: str
    first: Link


def shared_twice(project: Project, module: SourceModule) -> Iterator[Twice]:
    seen: set[int] = set()
    for found in (*_sampled(project, module), *_prepared(project, module), *_handed(project, module)):
        if id(found.node) not in seen:
            seen.add(id(found.node))
            yield found


# A sampler over a share


def _sampled(project: Project, module: SourceModule) -> Iterator[Twice]:
    for call in module.calls_named("DistributedSampler"):
        if not qualified(module, call.func).startswith("torch.utils.data") or not call.args:
            continue
        if any(_OF_A_NODE.search(module.text_of(a)) for a in (*call.args[1:], *(k.value for k in call.keywords))):
            continue  # shared out over the nodes first, and then over the processes of one
        first = _share(project, variance(project).argument(module, call, 0))
        if first is not None:
            yield Twice(call, "this sampler deals it out over the ranks again", first)


def _share(project: Project, value: Value, steps: int = 0) -> Link | None:
    """Where each rank took its own part of what a value holds; the way is taken up again where it was cut short."""
    if not value.differs or value.cause is not Cause.DATA or value.proof is Proof.UNKNOWN:
        return None
    links = value.chain
    if any(_is_one_of_two(project, link) for link in links):
        return None  # `if mode == "train": names = own_part(names)`, and all of them in the other arm
    found = next((x for x in reversed(links) if x.how is How.SHARE and not x.by_name), None)
    if found is None and links and steps < _STEPS:
        last_link = value.chain[-1]
        module = project.module(last_link.path)
        for assign in module.nodes(ast.Assign) if module is not None else ():
            if module is not None and assign.lineno == last_link.line:
                return _share(project, variance(project).value(module, assign.value), steps + 1)
    return found if found is not None and not _OF_A_NODE.search(found.text) else None


def _is_one_of_two(project: Project, link: Link) -> bool:
    """True where the other arm of a test binds the same name."""
    module = project.module(link.path)
    for assign in module.nodes(ast.Assign) if module is not None else ():
        if module is None or assign.lineno != link.line:
            continue
        names = {dotted(t) for t in assign.targets}
        below: ast.AST = assign
        for up in module.ancestors(assign):
            if isinstance(up, ast.If):
                other = up.orelse if below in up.body else up.body
                if any(isinstance(n, ast.Assign) and names & {dotted(t) for t in n.targets} for s in other for n in walk(s)):
                    return True
            below = up
    return False


# Accelerate


def _prepared(project: Project, module: SourceModule) -> Iterator[Twice]:
    if not module.holds(b"DataLoader") and not project.files_containing(b"DistributedSampler"):
        return
    for call in module.calls_named("prepare", "prepare_data_loader"):
        if not isinstance(call.func, ast.Attribute) or not is_accelerator(project, module, call.func.value):
            continue
        for given in call.args:
            made = origins(project, module, given) if not isinstance(given, ast.Starred) else ()
            for loader in filter(None, map(loader_of, made)):
                again = f"`{dotted(call.func)}`"
                if loader.module is module:
                    if (first := _shared_before(project, loader)) is not None:
                        yield Twice(loader.call, f"{again} in line {call.lineno} deals its batches out again", first)
                elif len(made) == 1 and (first := _surely_shared(project, loader)) is not None:
                    yield Twice(call, f"{again} deals the batches of `{short(module, given)}` out again", first)
                else:
                    left(module, call, "a loader of another file has a sampler that shares out on some ways only, or none")


def _surely_shared(project: Project, loader: Loader) -> Link | None:
    """As `_shared_before`, by a sampler on every way: a helper of other programs, too, asks what they want."""
    samplers = samplers_of(project, loader)
    if samplers and all(_shares_out(project, o) for o in samplers):
        return Link(samplers[0].module.path, samplers[0].line, "a DistributedSampler gives each rank its part")
    return None


def _shared_before(project: Project, loader: Loader) -> Link | None:
    for origin in samplers_of(project, loader):
        if _shares_out(project, origin):
            return Link(origin.module.path, origin.line, "a DistributedSampler gives each rank its part")
    return _own_part(project, loader)


def _shares_out(project: Project, origin: Origin) -> bool:
    """True for a DistributedSampler that is not told to deal the data out to one process."""
    if not is_distributed_sampler(project, origin) or not isinstance(origin.node, ast.Call):
        return False
    return not any(k.arg == "num_replicas" and is_one(k.value) for k in origin.node.keywords)


def _own_part(project: Project, loader: Loader) -> Link | None:
    """Where the data set of a loader takes a rank's part: in what it is made of, or in its own class."""
    if loader.dataset is None:
        return None
    place = 0 if loader.call.args else "dataset"
    if (first := _share(project, variance(project).argument(loader.module, loader.call, place))) is not None:
        return first
    made = [o for o in origins(project, loader.module, loader.dataset) if not is_none(o)]
    sites = [made_class(project, o) for o in made]
    if len(made) != 1 or sites[0] is None:
        return None
    return part_of_class(project, sites[0])


def part_of_class(project: Project, site: ClassSite) -> Link | None:
    """`items[rank::world]` and `i % world == rank` in the methods of a data set."""
    for owner in class_facts(project, site.module, site.node).lineage:
        module = owner.module
        for node in walk(owner.node):
            parts: list[ast.expr] = []
            if isinstance(node, ast.Slice) and node.lower is not None and node.step is not None:
                parts = [node.lower, node.step]
            elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
                left = node.left
                if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
                    parts = [left.right, node.comparators[0]]
            if len(parts) == 2 and all(is_of_ranks(project, module, p) for p in parts):
                return Link(module.path, parts[0].lineno, "the data set takes the part of its rank")
    return None


def is_of_ranks(project: Project, module: SourceModule, node: ast.expr) -> bool:
    named = isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and not isinstance(node, ast.Constant)
    return named and speaks_of_ranks(project, module, node, fields=True)


# Lightning and Fabric


def _handed(project: Project, module: SourceModule) -> Iterator[Twice]:
    if any(project.files_containing(word) for word in _KEPT_OFF):
        return
    for handed in handed_loaders(project):
        loader = handed.loader
        if loader.module is not module or loader.sampler is not None or loader.batch_sampler is not None or loader.hides:
            continue
        made = origins(project, module, loader.dataset) if loader.dataset is not None else ()
        if any(is_map_style(project, o) is False for o in made):
            continue
        if (first := _own_part(project, loader)) is not None:
            yield Twice(loader.call, f"{handed.framework} puts a sampler in that deals the samples out again", first)
