"""The value of a call, the collectives that it comes to, and what it does to the objects that it is given."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, family, last
from codemods.analysis.ranks.collectives import Collective, collective_at
from codemods.analysis.ranks.trace_items import Step
from codemods.analysis.variance import objects
from codemods.analysis.variance.state import STEP, Meeting, State, Told, parameters, path_of
from codemods.analysis.variance.values import (
    SAME,
    UNKNOWN,
    Cause,
    Kind,
    Proof,
    Thing,
    Value,
    along,
    at_most,
    differing,
    join,
    made_of,
    plain,
)  # fmt: skip
from codemods.data.rank_variance import (
    BACKWARDS,
    CASTS,
    CLOCKS,
    COMMON_METHODS,
    EMPTIES,
    FILLS,
    HOST_PACKAGES,
    IN_PLACE,
    LOADS,
    LOOKS_AT_FILES,
    MOVES,
    OWN_ANSWERS,
    PASSED_ON,
    PROGRESS,
    RANDOM_OF_TORCH,
    RANDOM_PACKAGES,
    SAME_CALLS,
    SAYS_REDUCED,
    TO_ONE_RANK,
    SHOWS,
)  # fmt: skip
from codemods.record import replace
from codemods.source import FunctionNode

MOST_MEETINGS = 6  # of one call; more of them say no more
_NO_MEETING = frozenset({"init_process_group", "new_group", "DistributedDataParallel", "log", "log_dict", "mark_step_sync"})


def called(
    state: State, node: ast.Call, name: str, end: str, holder: Value | None, args: list[Value], keywords: dict[str, Value]
) -> Value:
    """What `node` gives. name: qualified; end: its last part; holder: the object that a method is called on."""
    collective = collective_at(state.module, node, state.project)
    if collective is not None and not collective.grouped:
        return _collective(state, node, collective, args)
    if end in BACKWARDS and _is_backward(state, node, name):
        meet(state, node, Meeting("backward", (Step(state.module.path, node.lineno, f"{state.module.text_of(node.func)}()"),)))
        return SAME
    everything = [*args, *(v for k, v in keywords.items() if k not in ("device", "dtype", "map_location"))]
    if end in PROGRESS and (args or "iterable" in keywords):
        return args[0] if args else keywords["iterable"]
    for value, written in zip(args, node.args, strict=True):
        shown(state, written, value) if end in SHOWS else None
    if end in MOVES and holder is not None:
        return holder
    if name == "torch.device":
        return SAME
    if (own := _of_the_process(state, node, name, end, keywords)) is not None:
        return own
    if (made := objects.made(state, node, name, end, holder, args, keywords)) is not None:
        return made
    _forward(state, node)
    site = target(state, node, holder)
    if site is not None:
        state.targets[id(node)] = site
        return _project_call(state, node, site, holder, args, keywords)
    if holder is not None and holder.thing is not None and (found := _of_thing(state, node, end, holder, everything)) is not None:
        return found
    return _unknown(state, node, name, end, holder, everything)


def meet(state: State, node: ast.AST, *meetings: Meeting) -> None:
    """Note that the statement comes to these collectives."""
    known = state.met.get(id(node), ())
    fresh = tuple(m for m in meetings if all(m.place != k.place for k in known))
    state.met[id(node)] = (*known, *fresh)[:MOST_MEETINGS]
    if state.in_place:
        state.conditional.add(id(node))


# Collectives


def _collective(state: State, node: ast.Call, found: Collective, args: list[Value]) -> Value:
    if found.name in _NO_MEETING:
        if found.name == "DistributedDataParallel":
            return objects.wrapped(state, node, found.name, args)
        if found.name in ("log", "log_dict"):
            meet(state, node, Meeting(found.name, (Step(state.module.path, node.lineno, found.text),)))
        return SAME
    if found.writes_its_part:  # each rank writes its own part, and waits for nobody under plain DDP
        return SAME
    step = Step(state.module.path, node.lineno, found.text)
    meet(state, node, Meeting(found.name, (step,), carries=not found.waits_only))
    if found.name in TO_ONE_RANK and found.framework == "torch":
        return _sum_of_one_rank(state, node)
    position = IN_PLACE.get(found.name)
    if position is not None and found.framework not in ("accelerate", "fabric", "lightning"):  # those give back a new tensor
        tensor = next((k.value for k in node.keywords if k.arg in ("tensor", "tensor_list", "object_list", "output_tensor")), None)
        if tensor is None and len(node.args) > position:
            tensor = node.args[position]
        if tensor is not None:
            make_same(state, tensor)
    return SAME


def _sum_of_one_rank(state: State, node: ast.Call) -> Value:
    """`dist.reduce(x, dst=0)`: one rank has the sum, the others what they had, or something in between."""
    path = path_of(node.args[0]) if node.args else ""
    if path:
        link = state.link(node, f"`{state.short(node)}` gives the sum to one rank alone")
        old = state.env.get(path)
        state.env[path] = Value(Cause.RANK, Proof.PROVEN, (link, *(old.chain[:2] if old else ()), link), decided=True)
    return SAME


def make_same(state: State, node: ast.expr) -> None:
    """A value is equal on all ranks from here on."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            make_same(state, element)
        return
    path = path_of(node)
    if not path and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        path = path_of(node.func.value)  # `dist.all_reduce(x.detach())`: a view of it
    if not path:
        return
    old = state.env.get(path)
    state.env[path] = Value(thing=old.thing if old else None)
    state.made_same.add(path)
    if state.is_parameter(path):
        state.reduced.add(path)
    if path.startswith("self.") and path.count(".") == 1:
        state.sets[path[5:]] = SAME


def _is_backward(state: State, node: ast.Call, name: str) -> bool:
    root = name.partition(".")[0]
    if root in ("ctx", "torch") or family(name) in HOST_PACKAGES or not isinstance(node.func, ast.Attribute):
        return False
    return state.summaries.is_parallel(state.module)


# What a process has of its own


def _of_the_process(state: State, node: ast.Call, name: str, end: str, keywords: dict[str, Value]) -> Value | None:
    if name in CLOCKS:
        return differing(Cause.PLACE, Proof.PROVEN, state.link(node, f"`{state.short(node)}` is each process's own clock"))
    if name in OWN_ANSWERS:
        return differing(Cause.PLACE, Proof.PROVEN, state.link(node, f"`{state.short(node)}` is each process's own"))
    if name.startswith(RANDOM_PACKAGES) or name in RANDOM_OF_TORCH:
        if (source := keywords.get("generator")) is not None:
            return plain(source)
        return UNKNOWN  # equal where all are seeded alike and have drawn as often
    if end in LOOKS_AT_FILES and family(name) in ("os", "glob"):
        return UNKNOWN  # on a shared disk mostly equal, but for what is written meanwhile
    return None


def _one_of_models(state: State, func: ast.Attribute | ast.Subscript) -> Value | None:
    """`models.decoder(x)`, `models["decoder"](x)` of a container that holds wrapped models."""
    holder = state.env.get(dotted(func.value))
    if holder is None or holder.thing is None or holder.thing.kind is not Kind.MODELS:
        return None
    if isinstance(func, ast.Attribute) and func.attr in (*SAME_CALLS, "items", "values", "keys", "get"):
        return None
    return Value(thing=Thing(Kind.WRAPPED, None, holder.thing.waits))


def _forward(state: State, node: ast.Call) -> None:
    """`model(x)` of a wrapped model with buffers or shards waits for all ranks; of a parameter, if it is handed such a model."""
    path = dotted(node.func) or state.module.text_of(node.func)
    known = state.env.get(path)
    if known is None and path.startswith("self.") and path.count(".") == 1 and (owner := state.module.class_of(node)) is not None:
        found = state.summaries.field_thing(class_facts(state.project, state.module, owner).lineage[0], path[5:])
        known = Value(thing=found)
    if known is None and isinstance(node.func, (ast.Attribute, ast.Subscript)):
        known = _one_of_models(state, node.func)
    if known is None:
        return
    step = Step(state.module.path, node.lineno, f"{path}(), the forward of the wrapper")
    if known.thing is not None and known.thing.kind is Kind.WRAPPED and known.thing.waits is not False:
        meet(state, node, Meeting("forward", (step,), maybe=known.thing.waits is None))
    elif known.thing is None and known.params == {path} and state.is_parameter(path):
        meet(state, node, Meeting("forward", (step,), needs=path))


# Functions of the project


def target(state: State, node: ast.Call, holder: Value | None) -> FunctionSite | None:
    """The project function that is run: by name, as a method of an object whose class is known, or as `__call__`."""
    thing = holder.thing if holder is not None else None
    if holder is not None and thing is None and isinstance(node.func, ast.Attribute) and state.function is not None:
        thing = _handed_over(state, node.func, holder)
    site = thing.site if thing is not None else None
    if isinstance(node.func, ast.Attribute) and site is not None:
        return _method(state, site, node.func.attr)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call) and dotted(node.func.value.func) == "super":
        return _of_base(state, node)
    if (known := state.env.get(dotted(node.func))) is not None:
        if known.thing is not None and known.thing.function is not None:
            return known.thing.function
        return _method(state, known.thing.site, "__call__") if known.thing and known.thing.site else None
    return called_function(state.project, state.module, node) or _constructor(state, node)


def _constructor(state: State, node: ast.Call) -> FunctionSite | None:
    """`__init__` of the class that `module.Name(...)` makes an object of."""
    name = dotted(node.func)
    if not last(name)[:1].isupper() or (made := find_class(state.project, state.module, name)) is None:
        return None
    return _method(state, made, "__init__")


def _handed_over(state: State, func: ast.Attribute, holder: Value) -> Thing | None:
    """The object that a parameter is, if some class of the project has the method that is called on it."""
    name = dotted(func.value)
    if name.startswith("self.") and holder.params == {name} and func.attr not in COMMON_METHODS:
        owner = state.module.class_of(func)
        if owner is None or not state.project.files_containing(f"def {func.attr}(".encode()):
            return None
        return state.summaries.field(class_facts(state.project, state.module, owner).lineage[0], name[5:]).thing
    if holder.params != {name} or not state.is_parameter(name) or name == "self" or func.attr in COMMON_METHODS:
        return None
    if not state.project.files_containing(f"def {func.attr}(".encode()):
        return None
    assert state.function is not None
    return state.summaries.thing_of(state.module, state.function, name)


def _method(state: State, site: ClassSite, name: str) -> FunctionSite | None:
    found = class_facts(state.project, site.module, site.node).method(name)
    return FunctionSite(found[0].module, found[1]) if found else None


def _of_base(state: State, node: ast.Call) -> FunctionSite | None:
    assert isinstance(node.func, ast.Attribute)
    owner = state.module.class_of(node)
    if owner is None:
        return None
    for site in class_facts(state.project, state.module, owner).lineage[1:]:
        if node.func.attr in (methods := site.methods()):
            return FunctionSite(site.module, methods[node.func.attr])
    return None


def _project_call(
    state: State, node: ast.Call, site: FunctionSite, holder: Value | None, args: list[Value], keywords: dict[str, Value]
) -> Value:
    made = _constructed(state, node, site)
    binding = _bound(node, site, args, keywords, bound=made is not None or _takes_self(site))
    state.given[id(node)] = binding
    summary = state.summaries.of(site)
    everything = [*args, *keywords.values()]
    if made is not None:
        return replace(made_of(SAME), thing=_thing(state, made))
    if summary is None:
        return at_most(made_of(*everything), Proof.LIKELY) if any(v.cause.differs for v in everything) else UNKNOWN
    _pass_on_meetings(state, node, summary, binding)
    receiver = _receiver_path(state, node)
    _change_arguments(state, node, site, summary, binding)
    for name in summary.reduced:
        position = parameters(site.node).index(name) - (1 if _takes_self(site) else 0)
        if 0 <= position < len(node.args):
            make_same(state, node.args[position])
    own = receiver in ("self", "super")
    state_of_object = holder if holder is not None else SAME
    if receiver and not own and summary.sets:
        _change_object(state, node, receiver, state_of_object, summary, binding)
    elif own:
        for name, value in summary.sets.items():
            path = f"self.{name}"
            state.env[path] = state.sets[name] = substituted(value, binding, None)
    result = summary.result if summary.result is not None else SAME
    found = substituted(result, binding, None if own else _fields(state, state_of_object))
    return along(found, state.link(node, f"`{state.short(node)}`")) if found.cause.differs and not found.chain else found


def _change_arguments(state: State, node: ast.Call, site: FunctionSite, summary: State, binding: dict[str, Value]) -> None:
    """What the function puts into the containers that it is handed."""
    names = parameters(site.node)[1 if _takes_self(site) else 0 :]
    for name in summary.filled:
        written = next((k.value for k in node.keywords if k.arg == name), None)
        if written is None and name in names and names.index(name) < len(node.args):
            written = node.args[names.index(name)]
        path = path_of(written) if written is not None else ""
        if path and name in summary.env:
            kept = substituted(summary.env[name], binding, None)
            if kept.cause.differs or kept.params:
                before = state.env.get(path, SAME)
                taint(state, path, kept, before)
                if state.is_parameter(path):
                    state.filled.add(path)


def _thing(state: State, site: ClassSite) -> Thing:
    facts = class_facts(state.project, site.module, site.node)
    kind = Kind.INSTANCE
    if any(external_role(n) is Role.METRIC for n in facts.external):
        kind = Kind.METRIC
    elif facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE):
        return Thing(Kind.MODULE, site, state.summaries.waits(site))
    return Thing(kind, site)


def _constructed(state: State, node: ast.Call, site: FunctionSite) -> ClassSite | None:
    """The class that the call makes an object of."""
    if site.node.name != "__init__" or (isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"):
        return None
    return find_class(state.project, state.module, dotted(node.func)) if dotted(node.func) else None


def _takes_self(site: FunctionSite) -> bool:
    names = parameters(site.node)
    return bool(names) and names[0] in ("self", "cls") and isinstance(site.module.parent(site.node), ast.ClassDef)


def _bound(
    node: ast.Call, site: FunctionSite, args: list[Value], keywords: dict[str, Value], *, bound: bool
) -> dict[str, Value]:
    """Parameter -> what is handed over; a default is the same everywhere."""
    names = list(parameters(site.node))
    if bound and names:
        names = names[1:]
    out: dict[str, Value] = dict.fromkeys(names, SAME)
    for name, value, written in zip(names, args, node.args, strict=False):
        if isinstance(written, ast.Starred):
            break
        out[name] = value
    starred = [v for v, a in zip(args, node.args, strict=False) if isinstance(a, ast.Starred)]
    rest = [*args[len(names) :], *starred]
    variadic = site.node.args.vararg
    if variadic is not None and len(args) >= len(site.node.args.args) - (1 if bound else 0):
        rest = args[max(len(site.node.args.args) - (1 if bound else 0), 0) :]
        out[variadic.arg] = made_of(*rest)
    for name, value in keywords.items():
        if name in out:
            out[name] = value
        elif site.node.args.kwarg is not None:
            packed = site.node.args.kwarg.arg
            out[packed] = join((out.get(packed, SAME), plain(value)))
    return out


def _fields(state: State, holder: Value) -> Callable[[str], Value]:
    """What a field of an object holds: what the object was told, and what its class shows of the field."""

    def field(name: str) -> Value:
        site = holder.thing.site if holder.thing is not None else None
        if site is None:
            return plain(holder)
        facts = class_facts(state.project, site.module, site.node)
        if class_values(state.project, facts).set_once(name):
            return state.summaries.field(facts.lineage[0], name)
        if name in state.summaries.shaken(facts.lineage[0]):
            return join((plain(holder), state.summaries.field(facts.lineage[0], name)))
        return plain(holder)

    return field


def substituted(value: Value, binding: dict[str, Value], fields: Callable[[str], Value] | None) -> Value:
    """The value of a summary at a call: its parameters replaced by what is handed over, fields by what the object holds.

    fields: None where the object is `self`: its fields stay open.
    """
    if not value.params:
        return replace(value, parts=tuple(substituted(p, binding, fields) for p in value.parts)) if value.parts else value
    given: list[Value] = []
    left: set[str] = set()
    for name in value.params:
        if name in binding:
            given.append(binding[name])
        elif name.startswith("self."):
            if fields is None:
                left.add(name)
            else:
                given.append(fields(name[5:]))
    if value.length:
        given = [g if g.sized or (g.params and not g.cause.differs) else SAME for g in given]
    if value.origin is not None and value.origin.by_name and given and all(g.cause is not Cause.UNKNOWN for g in given):
        value = replace(value, cause=Cause.UNKNOWN, chain=value.chain[:-1])  # what is handed over is seen: the name no longer counts
    inner = made_of(*given) if given else SAME
    base = SAME if value.cause is Cause.UNKNOWN and given and not left else replace(value, params=frozenset())
    best = join((replace(base, parts=(), thing=None), replace(inner, params=inner.params | left)))
    if (best.cause.differs or best.params) and best.chain == inner.chain and value.chain:
        best = replace(best, chain=(*value.chain, *inner.chain)[:6])
    thing = value.thing or (given[0].thing if len(given) == 1 and not left else None)
    parts = tuple(substituted(p, binding, fields) for p in value.parts)
    sized = best.sized or (value.sized and best.cause.differs)
    best = replace(best, length=value.length and bool(best.params))
    return replace(best, thing=thing, parts=parts, sized=sized, optional=value.optional or best.optional, mean=value.mean or best.mean)


def _pass_on_meetings(state: State, node: ast.Call, summary: State, binding: dict[str, Value]) -> None:
    step = Step(state.module.path, node.lineno, f"{state.module.text_of(node.func)}()")
    found: list[Meeting] = []
    for ident, meetings in summary.met.items():
        for m in meetings:
            needs, maybe = "", m.maybe
            if m.needs:
                model = binding.get(m.needs, UNKNOWN)
                needs = next(iter(model.params), "") if len(model.params) == 1 else ""
                if not needs and not (model.kind is Kind.WRAPPED and model.thing is not None and model.thing.waits is not False):
                    continue
                maybe = maybe or (model.thing is not None and model.thing.waits is None)
            if len(m.steps) < 7:
                must = m.must and ident not in summary.conditional
                found.append(Meeting(m.name, (step, *m.steps), must, m.carries, needs, maybe))
    if found:
        meet(state, node, *found)


def _receiver_path(state: State, node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Call) and dotted(node.func.value.func) == "super":
            return "super"
        return path_of(node.func.value)
    return node.func.id if isinstance(node.func, ast.Name) and node.func.id in state.env else ""


def _change_object(
    state: State, node: ast.Call, receiver: str, before: Value, summary: State, binding: dict[str, Value]
) -> None:
    """A method that keeps what it is given: the object differs between the ranks as that does; one that reduces makes it equal."""
    kept = made_of(*(substituted(v, binding, lambda _: plain(before)) for v in summary.sets.values()))
    if any(m.carries for meetings in summary.met.values() for m in meetings):
        kept = SAME
    if kept.cause.differs or kept.params:
        link = state.link(node, f"`{state.short(node)}` keeps it")
        taint(state, receiver, along(kept, link), before)
    elif before.cause.differs:
        put(state, receiver, Value(thing=before.thing))


def shown(state: State, node: ast.AST, value: Value) -> None:
    """An object that is put into a text: its `__str__` runs, with the collectives that it comes to."""
    site = value.thing.site if value.thing is not None else None
    if site is None:
        return
    facts = class_facts(state.project, site.module, site.node)
    for name in ("__format__", "__str__", "__repr__"):
        if (method := facts.method(name)) is not None:
            summary = state.summaries.of(FunctionSite(method[0].module, method[1]))
            if summary is not None and summary.met:
                step = Step(state.module.path, getattr(node, "lineno", 0), f"{name} of {state.module.text_of(node)}")
                meet(state, node, *(Meeting(m.name, (step, *m.steps), m.must, m.carries) for ms in summary.met.values() for m in ms if not m.needs))
            return


def taint(state: State, path: str, kept: Value, before: Value) -> None:
    """The object at `path` holds, from here on, what it was given too."""
    found = join((plain(before), plain(kept)))
    put(state, path, replace(found, thing=before.thing, listed=before.listed or before.thing is None, mean=found.mean or state.data_loops > 0))


def put(state: State, path: str, value: Value) -> None:
    state.env[path] = value
    if state.is_parameter(path):
        state.filled.add(path)
    if path.startswith("self.") and path.count(".") == 1:
        name = path[5:]
        state.sets[name] = join((state.sets[name], value)) if name in state.sets and value.cause.differs else value


def property_value(state: State, node: ast.Attribute, method: tuple[ClassSite, FunctionNode], holder: Value) -> Value:
    """What `obj.name` gives where `name` is a method: of a property its result, with the collectives that it comes to."""
    site = FunctionSite(method[0].module, method[1])
    if not any(last(dotted(d)) in ("property", "cached_property") for d in method[1].decorator_list):
        return SAME
    summary = state.summaries.of(site)
    if summary is None:
        return plain(holder)
    found = [Meeting(m.name, (Step(state.module.path, node.lineno, state.module.text_of(node)), *m.steps), m.must, m.carries, maybe=m.maybe)
             for meetings in summary.met.values() for m in meetings if len(m.steps) < 7 and not m.needs]  # fmt: skip
    if found:
        meet(state, node, *found)
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    return substituted(summary.result or SAME, {}, None if own else _fields(state, holder))


# Objects whose class is known, and all the others


def _of_thing(state: State, node: ast.Call, end: str, holder: Value, everything: list[Value]) -> Value | None:
    kind = holder.kind
    if kind is Kind.METRIC:
        if end == "compute":
            step = Step(state.module.path, node.lineno, f"{state.module.text_of(node.func)}()")
            meet(state, node, Meeting("compute", (step,), carries=True))
            return SAME
        if end in ("to", "cuda", "cpu", "clone"):
            return holder
        return plain(made_of(*everything)) if end in ("forward", "__call__") else SAME
    if kind is Kind.PLATEAU and end == "step":
        if len(everything) == 1:
            state.told.append(Told(node, everything[0]))
        return SAME
    if kind in (Kind.OPTIMIZER, Kind.PLATEAU, Kind.SAMPLER):
        if kind is Kind.OPTIMIZER and end == "step":
            _steps(state, node)
        return SAME
    if kind in (Kind.MODULE, Kind.WRAPPED):
        return made_of(*everything)
    return None


def _steps(state: State, node: ast.Call) -> None:
    """A step of the optimizer waits for nobody, but all ranks have to make it: their weights part else."""
    if state.summaries.is_parallel(state.module):
        meet(state, node, Meeting(STEP, (Step(state.module.path, node.lineno, f"{state.module.text_of(node.func)}()"),)))


def _unknown(
    state: State, node: ast.Call, name: str, end: str, holder: Value | None, everything: list[Value]
) -> Value:
    root = family(name)
    if SAYS_REDUCED.search(end) and root not in HOST_PACKAGES and not (root == "torch" and not name.startswith("torch.distributed")):
        for argument in node.args[:1] if end.startswith(("all_reduce", "allreduce")) else ():
            make_same(state, argument)
        if isinstance(node.func, ast.Attribute) and (path := path_of(node.func.value)) in state.env:
            put(state, path, Value(thing=state.env[path].thing))
        return Value(Cause.SAME, Proof.LIKELY)
    if end in SAME_CALLS:
        if end == "step" and len(everything) == 1 and isinstance(state.module.parent(node), ast.Expr):
            state.told.append(Told(node, everything[0]))
        elif end == "step" and "optim" in dotted(node.func).lower():
            _steps(state, node)
        return SAME
    known = root in ("torch", "numpy", "math") or (end in CASTS and holder is None)
    operands = [plain(v) for v in everything]
    if holder is not None:
        path = path_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if end in EMPTIES and path and path in state.env:
            put(state, path, Value(thing=holder.thing))
            return SAME
        told = join(operands) if operands else SAME
        if end in FILLS and path and (told.cause.differs or told.params or state.control):
            _fill(state, node, path, holder, told)
        is_package = isinstance(node.func, ast.Attribute) and dotted(node.func.value).partition(".")[0] in state.module.imports
        if not is_package:
            operands.append(plain(holder))
            known = known or holder.cause is not Cause.UNKNOWN
    kept = end in CASTS or end.endswith(("Dataset", "Subset")) or end in PASSED_ON or (holder is not None and holder.sized)
    found = made_of(*operands) if operands else UNKNOWN
    if end in PASSED_ON and everything:
        return everything[0]
    if (end in LOADS and found.decided) or (end[:1].isupper() and found.cause is Cause.PLACE):
        return UNKNOWN  # what a file holds, or an object that was given a time in its name
    found = found if kept or not found.sized else replace(found, sized=False)
    if not found.cause.differs:
        return found if found.params or known else UNKNOWN
    return found if known else at_most(found, Proof.LIKELY)


def _fill(state: State, node: ast.Call, path: str, holder: Value, told: Value) -> None:
    """`losses.append(loss)`: the list holds a rank's own values; under a test of such a value its length differs as well."""
    link = state.link(node, f"`{state.short(node)}`")
    deciding = join(state.control) if state.control else SAME
    kept = along(told, link)
    if deciding.cause.differs or (deciding.params and not deciding.length):
        kept = replace(along(made_of(told, deciding), link), sized=True)
    if kept.cause.differs or kept.params:
        taint(state, path, kept, holder)
