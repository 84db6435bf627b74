"""Calls of `set_epoch` on what has none: a sampler of another class, a loader's default sampler, the indices of a sampler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import class_facts
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.passes import uses_framework
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, is_none, loader_of
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.reaching import reaching
from codemods.analysis.wrapped.wrapper_tests import arms_exclude, asks_for_wrapper, conditions_of, is_caught
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SAMPLERS = frozenset(
    {"Sampler", "RandomSampler", "SequentialSampler", "WeightedRandomSampler", "SubsetRandomSampler", "BatchSampler"}
)
_BASES = _SAMPLERS | {"Dataset", "IterableDataset", "object", "Generic", "ABC"}
_DECIDING = ("__getattr__", "__getattribute__", "__new__")  # what may find a method that no class defines
_ASKS = lazy(r"hasattr|isinstance|issubclass|type\(|getattr|__class__|callable\(")
_MACHINE = lazy(r"gpu|cuda|cpu|launch|single|proc|tpu|xla|slurm|mpi|node|debug", 2)
_RANKS = (b"DistributedSampler", b"init_process_group", b"get_rank(", b"world_size")


@record
class WithoutEpoch:
    """call: it raises AttributeError. receiver: as it is written; what: what that is, in words; made: where it is made. over: the
    `for` over the indices of a sampler; alone: the call is all that it does. under: the test over the place where it is made."""

    call: ast.Call
    receiver: str
    what: str
    made: Origin
    over: ast.For | None = None
    alone: bool = False
    under: str = ""


def without_epoch(project: Project, module: SourceModule) -> Iterator[WithoutEpoch]:
    """The calls of a file that end the program, in the order of the file."""
    if uses_framework(module):
        return  # Lightning and Accelerate put samplers of their own into the loaders
    for call in module.calls_named("set_epoch"):
        if not isinstance(call.func, ast.Attribute) or _is_asked_for(module, call):
            continue
        found = _of_indices(project, module, call) or _of_another(project, module, call) or _of_one_arm(project, module, call)
        if found is not None and any(word in m.data for m in (module, found.made.module) for word in _RANKS):
            yield found


def _is_asked_for(module: SourceModule, call: ast.Call) -> bool:
    tests = [t.test if isinstance(t, (ast.If, ast.IfExp)) else t for t in conditions_of(module, call, None)]
    return is_caught(module, call) or any(_ASKS.search(module.text_of(t)) for t in tests)


def _of_indices(project: Project, module: SourceModule, call: ast.Call) -> WithoutEpoch | None:
    """`for s in sampler: s.set_epoch(epoch)`, where `sampler` is one sampler and no list of them."""
    name = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    loops = (up for up in module.ancestors(call) if isinstance(up, ast.For) and dotted(up.target) == name)
    loop = next(loops, None) if name else None
    if loop is None:
        return None
    made = [o for o in origins(project, module, loop.iter) if not is_none(o)]
    if not made or not all(is_distributed_sampler(project, o) for o in made):
        return None
    what = f"an index, a number, as `{module.text_of(loop.iter)}` is one DistributedSampler and no list of them"
    alone = len(loop.body) == 1 and isinstance(loop.body[0], ast.Expr) and loop.body[0].value is call and not loop.orelse
    return WithoutEpoch(call, name, what, made[0], loop, alone)


def _of_another(project: Project, module: SourceModule, call: ast.Call) -> WithoutEpoch | None:
    """A receiver that has no `set_epoch` in whatever way it is made."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(receiver, ast.Attribute) and receiver.attr in ("sampler", "batch_sampler"):
        return _of_loader(project, module, call, receiver)
    if not isinstance(receiver, (ast.Name, ast.Attribute)):
        return None
    made = [o for o in origins(project, module, receiver) if not is_none(o)]
    whats = [_what(project, o) for o in made]
    if not whats or not all(whats):
        return None
    return WithoutEpoch(call, dotted(receiver), whats[0], made[0])


def _of_loader(project: Project, module: SourceModule, call: ast.Call, receiver: ast.Attribute) -> WithoutEpoch | None:
    """`loader.sampler`, where every loader has the sampler that torch makes, or one without `set_epoch`."""
    made = origins(project, module, receiver.value)
    found: list[tuple[str, Origin]] = []
    for origin in made:
        loader = loader_of(origin)
        if loader is None or loader.hides:
            return None
        if not (what := _sampler_of(project, loader, receiver.attr)):
            return None
        found.append((what, origin))
    return WithoutEpoch(call, dotted(receiver), *found[0]) if found else None


def _sampler_of(project: Project, loader: Loader, attribute: str) -> str:
    """What a loader has under the name, in words; "" where that may have a `set_epoch`."""
    given = loader.sampler if attribute == "sampler" else loader.batch_sampler
    if given is None:
        if attribute == "batch_sampler":
            return "the BatchSampler that the loader makes itself"
        if loader.batch_sampler is not None:
            return "the SequentialSampler that a loader with a `batch_sampler` keeps beside it"
        return "the sampler that the loader makes itself"
    whats = [_what(project, o) for o in origins(project, loader.module, given)]
    return whats[0] if whats and all(whats) else ""


def _of_one_arm(project: Project, module: SourceModule, call: ast.Call) -> WithoutEpoch | None:
    """A name that a setting gives another sampler, where the number of processes has no part in it."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(receiver, ast.Name):
        return None
    guards = {n for c in conditions_of(module, call, None) if isinstance(c, ast.If) for n in _names(c.test)}
    for binding in reaching(module, receiver, bindings_of(module, receiver)):
        if binding.parameter or binding.part or not isinstance(binding.value, ast.Call):
            continue
        if module.function_of(binding.node) is not module.function_of(call) or arms_exclude(module, binding.value, call):
            continue
        tests = [c for c in conditions_of(module, binding.value, None) if isinstance(c, ast.If)]
        texts = [module.text_of(t.test) for t in tests]
        if not tests or any(asks_for_wrapper(t) or _MACHINE.search(t) for t in texts):
            continue
        if guards & {n for t in tests for n in _names(t.test)}:
            continue
        origin = Origin(module, binding.value)
        if what := _what(project, origin):
            return WithoutEpoch(call, receiver.id, what, origin, under=texts[0])
    return None


def _names(test: ast.expr) -> set[str]:
    """What a test reads, without the object that all settings are fields of."""
    read = {dotted(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))}
    return read - {"", *(name.rpartition(".")[0] for name in read)}


def _what(project: Project, origin: Origin) -> str:
    """The class of an object that has no `set_epoch`, in words; "" where it may have one."""
    if not origin.known or origin.path or not isinstance(origin.node, ast.Call):
        return ""
    if loader_of(origin) is not None:
        return "a DataLoader of torch"
    name = qualified(origin.module, origin.node.func)
    if family(name) == "torch" and last(name) in _SAMPLERS and name.startswith("torch.utils.data"):
        return f"a {last(name)}"
    site = made_class(project, origin)
    if site is None:
        return ""
    facts = class_facts(project, site.module, site.node)
    if facts.unresolved or any(last(n) not in _BASES for n in facts.external) or site.node.decorator_list:
        return ""
    if facts.method("__iter__") is None or any(facts.method(m) is not None for m in _DECIDING):
        return ""
    if any("set_epoch" in s.module.text_of(s.node) for s in facts.lineage):
        return ""
    return f"a `{site.name}`"
