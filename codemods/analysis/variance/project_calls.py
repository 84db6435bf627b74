"""Calls of functions of the project: which one is run, with what, and what its summary says of the call."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite, run_function
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.entries import is_under_another_key, key_told
from codemods.analysis.variance.heirs import written_anew, written_by_heirs
from codemods.analysis.variance.held_objects import class_held, element_of_field
from codemods.analysis.variance.keeping import change_arguments, change_object, held_under, put, reduces_what_it_holds, taint
from codemods.analysis.variance.meetings import make_same, meet_behind
from codemods.analysis.variance.not_shared import is_asked_for_whole, whole
from codemods.analysis.variance.objects import loader_of_class, share_gone_through, thing_of_class
from codemods.analysis.variance.open_entries import put_over
from codemods.analysis.variance.paths import is_super, own_field, parameters, path_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.substitution import Fields, fields_of, substituted
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
    join,
    made_of,
    plain,
)
from codemods.data.rank_variance import COMMON_METHODS, FILLS
from codemods.runtime.record import replace

_REDUCING = (b"all_gather", b"all_reduce", b"gather_features", b"AllGather", b"GatherLayer")


def project_call(state: State, call: CallParts, site: FunctionSite) -> Value:
    """What the function gives for what it is handed; what it makes equal, fills and keeps is changed on the way."""
    node = call.node
    made = _constructed(state, node, site)
    binding = _bound(call, site, bound=made is not None or _takes_self(site))
    state.given[id(node)] = binding
    summary = state.summaries.of(site)
    if made is not None:
        share = loader_of_class(state, made, site) or share_gone_through(state, made, binding)
        return share or Value(thing=thing_of_class(state, made))
    if summary is None:
        everything = [*call.args, *call.keywords.values()]
        return at_most(made_of(*everything), Proof.LIKELY) if any(v.cause.differs for v in everything) else UNKNOWN
    if not keeps_its_results(site.node):
        _meet(state, call, site, summary, binding)
    written = _written(node, site)
    change_arguments(state, written, summary, binding)
    for name in summary.reduced:
        if name in written:
            make_same(state, written[name])
    receiver = _receiver_path(state, node)
    own = receiver in ("self", "super")
    called = state.env.get(receiver, SAME) if isinstance(node.func, ast.Name) else SAME  # `meter(loss)`: it stays what it is
    held = call.holder if call.holder is not None else called
    if _is_put_under_key(state, node, site, receiver, binding):
        pass  # a rank that stands under a key: the other entries are what they were
    elif own:
        for name, value in summary.sets.items():
            path = f"self.{name}"
            state.env[path] = state.sets[name] = put_over(substituted(value, binding, None), state.env.get(path), path)
    elif receiver and summary.sets:
        change_object(state, node, receiver, held, summary, binding)
    elif receiver and (paths := held_under(state, node, receiver, summary)) and reduces_what_it_holds(state, node, site, summary):
        for path in paths:
            put(state, path, Value(thing=state.env[path].thing))
    elif receiver and call.end in FILLS and isinstance(state.module.parent(node), ast.Expr) and not summary.carries():
        _kept_unseen(state, node, receiver, held, binding)
    fields = None if own else fields_of(state, held, receiver)
    result = _given_by_heirs(state, call, site)
    if result is None:
        result = substituted(summary.result or SAME, binding, fields)
    found = _as_often(state, node, summary, result, binding, fields)
    if found.cause.differs and held.cause.differs and is_under_another_key(node, site.node, held):
        return SAME
    if is_asked_for_whole(state.project, found, node, site):
        return whole(state, node, found)
    return along(found, state.link(node, f"`{state.short(node)}`")) if found.cause.differs and not found.chain else found


def _given_by_heirs(state: State, call: CallParts, site: FunctionSite) -> Value | None:
    """What the heirs of a method that is left open give; where they do not all differ, which of them it is decides."""
    found: list[Value] = []
    for each in written_by_heirs(state, site):
        if each.site is not None and each.result is not None:
            found.append(substituted(each.result, _bound(call, each.site, bound=_takes_self(each.site)), None))
    if not found:
        return None
    own = [v for v in found if v.cause.differs or v.params]
    return join(found) if len(own) in (0, len(found)) else UNKNOWN


def _as_often(
    state: State, node: ast.Call, summary: State, found: Value, binding: dict[str, Value], fields: Fields | None
) -> Value:
    """What a generator gives; it gives as many on each rank as its loops over the rank's own share make rounds."""
    counts = [substituted(c, binding, fields) for c in summary.counted]
    own = join(c for c in counts if c.differs and c.sized)
    if not own.differs or own.cause is not Cause.DATA:
        return found
    way = (state.link(node, f"`{state.short(node)}`"), *own.chain[:6])
    return replace(made_of(own, found), sized=True, parts=found.parts, chain=way)


def _meet(state: State, call: CallParts, site: FunctionSite, summary: State, binding: dict[str, Value]) -> None:
    """What the call comes to: in the function, and in methods of derived classes, or of the one class that the object is of."""
    text = f"{state.module.text_of(call.node.func)}()"
    thing = call.holder.thing if call.holder is not None else None
    if call.holder is not None and thing is None and isinstance(call.node.func, ast.Attribute) and state.function is not None:
        thing = _handed_over(state, call.node.func, call.holder)
    owner = thing.site if thing is not None else None
    meet_behind(state, call.node, text, summary, binding, exact=owner is not None)
    for each in written_by_heirs(state, site) if not summary.met and owner is None else ():
        meet_behind(state, call.node, text, each, binding, heir=True)
    for each in written_anew(state, owner, summary) if owner is not None else ():
        meet_behind(state, call.node, text, each, {})


def _is_put_under_key(state: State, node: ast.Call, site: FunctionSite, receiver: str, binding: dict[str, Value]) -> bool:
    """`config.put("rank", rank)`: what depends on the rank is the entry under that key alone."""
    told = made_of(*binding.values()) if receiver and binding else SAME
    if told.cause is not Cause.RANK or not (key := key_told(node, site.node)):
        return False
    put(state, f"{receiver}[{key!r}]", along(told, state.link(node, f"`{state.short(node)}` keeps it")))
    return True


def _kept_unseen(state: State, node: ast.Call, receiver: str, held: Value, binding: dict[str, Value]) -> None:
    """`metric.update(x)` of a class that keeps it where it is not followed: in an inner function, deep in another object."""
    told = at_most(made_of(*binding.values()), Proof.LIKELY) if binding else SAME
    if told.cause is Cause.DATA or told.params:
        taint(state, receiver, along(told, state.link(node, f"`{state.short(node)}` keeps it")), held)


def _written(node: ast.Call, site: FunctionSite) -> dict[str, ast.expr]:
    """Parameter -> the argument, as it is written."""
    names = parameters(site.node)[1 if _takes_self(site) else 0 :]
    return {**dict(zip(names, node.args, strict=False)), **{k.arg: k.value for k in node.keywords if k.arg}}


def _receiver_path(state: State, node: ast.Call) -> str:
    """The path of the object that is called or whose method is; "" where there is none."""
    if is_super(node.func):
        return "super"
    if isinstance(node.func, ast.Attribute):
        return path_of(node.func.value)
    return node.func.id if isinstance(node.func, ast.Name) and node.func.id in state.env else ""


def _constructed(state: State, node: ast.Call, site: FunctionSite) -> ClassSite | None:
    """The class that the call makes an object of."""
    if site.node.name != "__init__" or (isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"):
        return None
    return _class_of_name(state, dotted(node.func)) if dotted(node.func) else None


def _class_of_name(state: State, name: str) -> ClassSite | None:
    """The class of that name, or the one that is a parameter's default: `tracker_class=Tracker`."""
    default = defaults(state.function).get(name) if state.function is not None and state.is_parameter(name) else None
    return find_class(state.project, state.module, dotted(default) if default is not None else name)


def _takes_self(site: FunctionSite) -> bool:
    names = parameters(site.node)
    return bool(names) and names[0] in ("self", "cls", "ctx") and isinstance(site.module.parent(site.node), ast.ClassDef)


def _bound(call: CallParts, site: FunctionSite, *, bound: bool) -> dict[str, Value]:
    """Parameter -> what is handed over; a default is the same everywhere."""
    args, skipped = call.args, 1 if bound else 0
    names = parameters(site.node)[skipped:]
    out: dict[str, Value] = dict.fromkeys(names, SAME)
    for name, value, written in zip(names, args, call.node.args, strict=False):
        if isinstance(written, ast.Starred):  # which of them it fills is not known
            rest = names[names.index(name) :]
            out.update(dict.fromkeys(rest, plain(value)))
            break
        out[name] = value
    variadic = site.node.args.vararg
    if variadic is not None and len(args) >= len(site.node.args.args) - skipped:
        out[variadic.arg] = made_of(*args[max(len(site.node.args.args) - skipped, 0) :])
    for name, value in call.keywords.items():
        if name in out:
            out[name] = value
        elif site.node.args.kwarg is not None:
            packed = site.node.args.kwarg.arg
            out[packed] = join((out.get(packed, SAME), plain(value)))
    return out


# Which function is run


def target(state: State, node: ast.Call, holder: Value | None) -> FunctionSite | None:
    """The project function that is run: by name, as a method of an object whose class is known, or as `__call__`."""
    thing = holder.thing if holder is not None else None
    if holder is not None and thing is None and isinstance(node.func, ast.Attribute) and state.function is not None:
        thing = _handed_over(state, node.func, holder)
    site = thing.site if thing is not None else None
    if isinstance(node.func, ast.Attribute) and site is not None:
        return _method(state, site, node.func.attr)
    if is_super(node.func):
        return _of_base(state, node)
    if (known := state.env.get(dotted(node.func))) is not None:
        if known.thing is not None and known.thing.function is not None:
            return known.thing.function
        if known.thing is not None and known.thing.site is not None:
            return _when_called(state, known.thing)
        return _constructor(state, node) if known.thing is None and known.params == {dotted(node.func)} else None
    return run_function(state.project, state.module, node) or _constructor(state, node)


def _constructor(state: State, node: ast.Call) -> FunctionSite | None:
    """`__init__` of the class that `module.Name(...)` makes an object of."""
    name = dotted(node.func)
    made = _class_of_name(state, name) if name and (last(name)[:1].isupper() or state.is_parameter(name)) else None
    if made is None:
        return None
    return _method(state, made, "__init__")


def _handed_over(state: State, func: ast.Attribute, holder: Value) -> Thing | None:
    """The object that a parameter, a field or an element of one is, if a class of the project has the method that is called."""
    name = dotted(func.value)
    if func.attr in COMMON_METHODS or not state.project.files_defining(func.attr):
        return None
    if holder.params != {name} and not _is_still(state, name, holder):
        return _held(state, func, holder)
    if name.startswith("self."):
        owner = state.own_class(func)
        return state.summaries.field(owner, name[5:]).thing if owner is not None else None
    if state.function is None or not state.is_parameter(name) or name == "self":
        return None
    return state.summaries.thing_of(state.module, state.function, name)


def _is_still(state: State, name: str, holder: Value) -> bool:
    """True for a parameter that was told something since, and is given no other value: it is the object that was handed over."""
    told = name in holder.params and state.is_parameter(name)
    return told and len(bindings_in(state.module, state.function, name)) == 1


def _held(state: State, func: ast.Attribute, holder: Value) -> Thing | None:
    """The object that a collection of `self` hands out (`for meter in self.meters.values(): meter.settle()`)."""
    if not isinstance(func.value, (ast.Name, ast.Subscript)) or not any(map(own_field, holder.params)):
        return None
    owner, element = state.own_class(func), element_of_field(state.module, func.value)
    made = class_held(state.project, owner, element) if owner is not None and element is not None else None
    return thing_of_class(state, made) if made is not None else None


def _when_called(state: State, thing: Thing) -> FunctionSite | None:
    """What calling an object runs; the `forward` of a module only where it may gather or reduce, as losses do."""
    assert thing.site is not None
    own = _method(state, thing.site, "__call__")
    if own is None and thing.kind is Kind.MODULE and any(word in thing.site.module.data for word in _REDUCING):
        return _method(state, thing.site, "forward")
    return own


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
