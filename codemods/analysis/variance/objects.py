"""Objects that the analysis treats in a way of their own: loaders, samplers, wrapped models, schedulers; how each is made."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.literals import is_none
from codemods.analysis.loading.loader_wrappers import kept_iterable
from codemods.analysis.model.signatures import bind as signature_of
from codemods.analysis.names import dotted
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.plain_layers import is_without_buffers
from codemods.analysis.variance.rows_handed import rows_handed
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, How, Kind, Link, Proof, Thing, Value, differing, plain
from codemods.analysis.wrapped.frozen_models import stays_bare
from codemods.analysis.wrapped.wraps import wraps_by_apex
from codemods.data.rank_names import speaks_of_rank
from codemods.data.rank_variance import (
    LOADER_NAMES,
    PREPARES,
    RANDOM_SAMPLERS,
    SCHEDULER_BY_NUMBER,
    SHARDED_WRAPPERS,
    SHARING_SAMPLERS,
    WRAPPERS,
)  # fmt: skip
from codemods.files.source import walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace

_OTHERS = lazy(r"optim|sched|lr|loader|data|dl$|train|valid|test|tracker|ema|sampler|args|state", re.I)
_CHAINED = frozenset({"ChainDataset", "ConcatDataset"})
_KEPT_LINKS = 6  # of the way to a loader, its own among them
_GIVE_THE_MODEL = frozenset({"eval", "train", "float", "requires_grad_", "compile"})
_OPTIMIZERS = frozenset({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD"})


def made(state: State, call: CallParts) -> Value | None:
    """The object that a call makes or prepares, None for any other call."""
    node, name, end, args = call.node, call.name, call.end, call.args
    if end.endswith("DataLoader") and not _is_project_class(state, node):
        return _loader(state, call)
    if (chained := _of_chained(state, call)) is not None:
        return chained
    if SHARING_SAMPLERS.fullmatch(end):
        return Value(thing=Thing(Kind.SAMPLER))
    if end.endswith("BatchSampler") and args:
        return args[0]  # it puts the indices of a sampler, or those of another one, into batches
    if end in SCHEDULER_BY_NUMBER:
        return Value(thing=Thing(Kind.PLATEAU))
    if end in _OPTIMIZERS:
        return Value(thing=Thing(Kind.OPTIMIZER))
    if end in WRAPPERS and not _is_project_class(state, node):
        return wrapped(state, node, end, args)
    if end == "unwrap_model":
        return Value(thing=Thing(Kind.MODULE, args[0].thing.site if args and args[0].thing else None))
    if end in PREPARES and _prepares(node):
        return _prepared(state, node, args)
    if (name.startswith("torch.nn.") and end[:1].isupper()) or name.startswith(("torchvision.models.", "timm.")):
        waits = "BatchNorm" in end or name.startswith(("torchvision.", "timm.")) or any(v.thing and v.thing.waits for v in args)
        return Value(thing=Thing(Kind.MODULE, None, waits, layers=is_without_buffers(state.module, node)))
    if external_role(name) is Role.METRIC:
        return Value(thing=Thing(Kind.METRIC))
    if call.kind in (Kind.MODULE, Kind.WRAPPED) and end in _GIVE_THE_MODEL:
        return call.holder
    if (name == "torch.compile" or end == "convert_sync_batchnorm") and args:
        return args[0]
    return _without_constructor(state, node)


def _is_project_class(state: State, node: ast.Call) -> bool:
    return bool(dotted(node.func)) and find_class(state.project, state.module, dotted(node.func)) is not None


def _without_constructor(state: State, node: ast.Call) -> Value | None:
    """An object of a project class that has no `__init__` of its own in the project."""
    name = dotted(node.func)
    if not name or not name.rpartition(".")[2][:1].isupper():
        return None
    site = find_class(state.project, state.module, name)
    if site is None:
        return None
    if class_facts(state.project, site.module, site.node).method("__init__") is not None:
        return None
    return Value(thing=thing_of_class(state, site))


def thing_of_class(state: State, site: ClassSite) -> Thing:
    """What an object of a class of the project is."""
    facts = class_facts(state.project, site.module, site.node)
    if facts.is_a(Role.METRIC):
        return Thing(Kind.METRIC, site)
    if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE):
        return Thing(Kind.MODULE, site, state.summaries.waits(site))
    return Thing(Kind.INSTANCE, site)


def wrapped(state: State, node: ast.Call, end: str, args: list[Value]) -> Value:
    """A model behind a wrapper: each forward waits where it is sharded, or has buffers that are broadcast."""
    model = args[0].thing if args and args[0].thing else None
    quiet = any(k.arg == "broadcast_buffers" and isinstance(k.value, ast.Constant) and not k.value.value for k in node.keywords)
    if end == "fully_shard" and node.args and (path := path_of(node.args[0])):  # it changes the model that it is given
        state.env[path] = Value(thing=Thing(Kind.WRAPPED, model.site if model else None, waits=True))
    quiet = quiet or wraps_by_apex(state.module)
    waits = True if end in SHARDED_WRAPPERS else False if quiet else _buffers_of(model)
    layers = model is not None and model.layers and waits is False
    return Value(thing=Thing(Kind.WRAPPED, model.site if model else None, waits, layers=layers))


def _buffers_of(model: Thing | None) -> bool | None:
    """Does the model have buffers? None where it is not seen."""
    seen = model is not None and (model.site is not None or model.waits or model.layers)
    return model.waits if model is not None and seen else None


# Loaders


def _loader(state: State, call: CallParts) -> Value:
    """A DataLoader: does it hand out the same batches on every rank, and as many?"""
    node, args, keywords = call.node, call.args, call.keywords
    written = {k.arg: k.value for k in node.keywords}
    thing = Thing(Kind.LOADER)
    dataset = args[0] if args else keywords.get("dataset", SAME)
    link = state.link(node, f"`{state.short(node)}`")
    share = SAME if _is_told_a_rank(state, node) else _dataset_share(state, dataset)
    if share.cause.differs and share.sized:
        return replace(share, thing=thing, chain=(link, *share.chain)[:_KEPT_LINKS], sized=True)
    if share is SAME and not _is_told_a_rank(state, node) and (own := _even_share(state, dataset)) is not None:
        share = own
    if share is SAME and not _is_told_a_rank(state, node) and (handed := rows_handed(state, node, dataset)) is not None:
        share = handed
    sampler = keywords.get("sampler", SAME)
    batches = keywords.get("batch_sampler", SAME)
    for found in (sampler, batches):
        if found.kind is Kind.SAMPLER:
            how = state.link(node, "its sampler gives each rank its own share of the data", how=How.SAMPLED)
            return differing(Cause.DATA, Proof.PROVEN, how, thing=thing)
        of_class = _dataset_share(state, found)
        if of_class.cause.differs or of_class.params:
            return replace(plain(of_class), thing=thing, chain=(link, *of_class.chain)[:_KEPT_LINKS])
    if "sampler" in written and _is_random(written["sampler"]):
        link = state.link(node, "its sampler draws at random in each process", how=How.WHOLE)
        return differing(Cause.DATA, Proof.LIKELY, link, thing=thing)
    shuffled = written.get("shuffle")
    if isinstance(shuffled, ast.Constant) and shuffled.value is True:
        link = state.link(node, "each process shuffles on its own", how=How.WHOLE)
        found = differing(Cause.DATA, Proof.LIKELY, link, thing=thing)
        return replace(found, params=share.params, length=True) if share.length else found
    if ("sampler" in written and not is_none(written["sampler"])) or "batch_sampler" in written:
        params = sampler.params | batches.params
        return Value(Cause.UNKNOWN, Proof.UNKNOWN, params=params, thing=replace(thing, unseen=True))
    return replace(plain(share), thing=thing) if share.cause.differs or share.params else Value(thing=thing)


def _is_told_a_rank(state: State, node: ast.Call) -> bool:
    """True for `DataLoader(Rows(path, rank=0, world=1))`: a set that cuts a share by the rank is asked for the whole."""
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "dataset")]
    bound = [b.value for g in given if isinstance(g, ast.Name) for b in bindings_of(state.module, g) if b.value is not None]
    calls = [n for value in (*given, *bound) for n in (value, *walk(value)) if isinstance(n, ast.Call)]
    for call in calls:
        site = find_class(state.project, state.module, dotted(call.func)) if dotted(call.func) else None
        made = class_facts(state.project, site.module, site.node).method("__init__") if site is not None else None
        names = (signature_of(made[1], call, bound=True) or {}) if made is not None else {}
        if any(speaks_of_rank(name) and isinstance(value, ast.Constant) for name, value in names.items()):
            return True
    return False


def loader_of_class(state: State, site: ClassSite, init: FunctionSite) -> Value | None:
    """An object of a project class that derives from DataLoader and hands its base a sampler that shares the data out."""
    if not any(name.endswith("DataLoader") for name in class_facts(state.project, site.module, site.node).external):
        return None
    inside = state.summaries.of(init)
    calls = [n for n in walk_scope(init.node) if isinstance(n, ast.Call)]
    bases = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "__init__"]
    given = [k.value for c in bases for k in c.keywords if k.arg in ("sampler", "batch_sampler")]
    if inside is None or not any(inside.values.get(id(v), SAME).kind is Kind.SAMPLER for v in given):
        return None
    text = f"the sampler of {site.node.name} gives each rank its own share of the data"
    how = Link(site.module.path, site.node.lineno, text, how=How.SAMPLED)
    return differing(Cause.DATA, Proof.PROVEN, how, thing=Thing(Kind.LOADER, site))


def share_gone_through(state: State, site: ClassSite, given: dict[str, Value]) -> Value | None:
    """An object that goes through the loader it is handed: it hands out the rank's own batches, and as many of them.

    So is a data set that goes through another one, whose class makes the share.
    """
    if not any(_may_be_shared(v) for v in given.values()):
        return None
    facts = class_facts(state.project, site.module, site.node)
    value = given.get(kept_iterable(state.project, facts))
    if value is not None and value.kind is Kind.INSTANCE and not _ends_early(facts):
        value = _dataset_share(state, value)
    if value is None:
        return None
    if value.kind is Kind.LOADER and value.differs and value.cause is Cause.DATA and not value.sized:
        return replace(value, thing=Thing(Kind.LOADER, site))
    own = value.sized and value.differs and value.cause is Cause.DATA
    return replace(value, thing=thing_of_class(state, site)) if own or (value.params and not value.cause.differs) else None


def _may_be_shared(value: Value) -> bool:
    of_data = value.cause is Cause.DATA and (value.sized or value.kind is Kind.LOADER)
    return bool(value.params) or of_data or value.kind is Kind.INSTANCE


def _ends_early(facts: ClassFacts) -> bool:
    """True where `__iter__` leaves the loop on its own: after as many elements as every rank is to have, say."""
    through = facts.method("__iter__")
    return through is not None and any(isinstance(n, (ast.Break, ast.Return)) for n in walk_scope(through[1]))


def _is_random(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in RANDOM_SAMPLERS


def _dataset_share(state: State, dataset: Value) -> Value:
    """How a data set differs between the ranks: it holds a share, or its class makes one in `__len__` or `__iter__`."""
    if dataset.thing is None or dataset.thing.site is None:
        return dataset
    site = dataset.thing.site
    facts = class_facts(state.project, site.module, site.node)
    for name in ("__len__", "__iter__"):
        method = facts.method(name)
        if method is None:
            continue
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(method[1]))  # what comes of it is one element
        result = SAME if yields else state.summaries.result_of(method[0], method[1])
        for share in (result, state.summaries.count_of(method[0], method[1])):
            if share.cause.differs and share.sized:
                return share
    return dataset if dataset.sized else SAME


def _even_share(state: State, dataset: Value) -> Value | None:
    """What an item of a data set is that holds as many rows on every rank, of a share of its own."""
    if dataset.thing is None or dataset.thing.site is None:
        return None
    site = dataset.thing.site
    method = class_facts(state.project, site.module, site.node).method("__getitem__")
    found = state.summaries.result_of(method[0], method[1]) if method is not None else SAME
    own = found.cause is Cause.DATA and found.differs and found.origin is not None and found.origin.how is How.SHARE
    return replace(found, sized=False) if own else None


def _of_chained(state: State, call: CallParts) -> Value | None:
    """`ChainDataset([Rows(name, rank) for name in names])`: one data set after the other, all of one class."""
    written = call.node.args[0] if call.end in _CHAINED and len(call.node.args) == 1 else None
    if isinstance(written, (ast.ListComp, ast.GeneratorExp)):
        parts = [written.elt]
    else:
        parts = written.elts if isinstance(written, (ast.List, ast.Tuple)) else []
    values = [state.values.get(id(p), SAME) for p in parts]
    sites = {v.thing.site for v in values if v.thing is not None}
    if len(sites) != 1 or None in sites or any(v.thing is None or v.cause.differs for v in values):
        return None
    return values[0]


# Accelerate and Fabric


def wraps(node: ast.expr) -> bool:
    """True where the words of a call say that it gives a wrapper: what it wraps was not looked at."""
    if not isinstance(node, ast.Call):
        return False
    end = dotted(node.func).rpartition(".")[2]
    return end in WRAPPERS or (end in PREPARES and _prepares(node))


def _prepares(node: ast.Call) -> bool:
    holder = dotted(node.func.value).rpartition(".")[2].lower() if isinstance(node.func, ast.Attribute) else ""
    return holder.lstrip("_") in ("accelerator", "fabric", "acc", "deepspeed") or holder.endswith(("accelerator", "fabric"))


def _prepared(state: State, node: ast.Call, args: list[Value]) -> Value:
    """`prepare(model, optimizer, loader)`: loaders are shared out over the ranks, models wrapped, the rest stays as it is."""
    parts = tuple(_one_prepared(state, written, value) for written, value in zip(node.args, args, strict=True))
    return parts[0] if len(parts) == 1 else Value(parts=parts)


def _one_prepared(state: State, written: ast.expr, value: Value) -> Value:
    if isinstance(written, ast.Starred):
        return value
    name = path_of(written).rpartition(".")[2]  # `prepare(models[key])` as well
    if value.kind is Kind.LOADER or LOADER_NAMES.search(name):
        by = dotted(getattr(state.module.parent(written), "func", None))
        if value.sized and value.cause.differs and "setup_dataloaders" in by:
            return value  # an own share, that stays as it is (`use_distributed_sampler=False`)
        link = state.link(written, f"`{name}` is prepared: each rank gets its own share of the batches", how=How.SAMPLED)
        return differing(Cause.DATA, Proof.PROVEN, link, thing=Thing(Kind.LOADER))
    if value.kind in (Kind.OPTIMIZER, Kind.PLATEAU):
        return value
    if stays_bare(state.module, written):
        return value if value.kind is Kind.MODULE else Value(thing=Thing(Kind.MODULE))
    if value.kind is Kind.MODULE or (value.thing is None and name and not _OTHERS.search(name)):
        model = value.thing
        layers = model is not None and model.layers
        return Value(thing=Thing(Kind.WRAPPED, model.site if model else None, _buffers_of(model), layers=layers))
    return value
