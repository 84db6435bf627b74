"""What a target is given: by an assignment, or as an element of what a loop goes through."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.variance.keeping import is_field_of_parameter
from codemods.analysis.variance.keys_of_own import own_key
from codemods.analysis.variance.open_entries import is_open_field, open_under
from codemods.analysis.variance.paths import bare, container_of, entry_of, own_field, path_of, unpacked
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import (
    REST,
    SAME,
    Cause,
    Kind,
    Proof,
    Thing,
    Value,
    at_most,
    differing,
    join,
    made_of,
    plain,
)
from codemods.data.rank_variance import LOADER_NAMES
from codemods.files.source import called_name, walk_scope
from codemods.runtime.record import replace


def bind(state: State, target: ast.expr, value: Value, *, grows: bool = True) -> None:
    """Give a target its value; a tuple element by element. grows: `d[k] = v` may bring a new key in."""
    if isinstance(target, (ast.Tuple, ast.List)):
        each = replace(plain(value), optional=False, missing=frozenset())  # what is None cannot be taken apart
        parts = value.parts if len(value.parts) == len(target.elts) else (each,) * len(target.elts)
        for element, part in zip(target.elts, parts, strict=True):
            anew = isinstance(element, ast.Starred) and part.kind is not Kind.WRAPPED  # `first, *rest = found`: a list of its own
            bind(state, element.value if anew and isinstance(element, ast.Starred) else element, part)
        return
    path = path_of(target)
    if not path:
        return
    if isinstance(target, (ast.Subscript, ast.Starred)):
        if value.kind is Kind.WRAPPED and value.thing is not None:
            state.env[path] = Value(thing=Thing(Kind.MODELS, None, value.thing.waits))
            return
        held = _put_inside(state, target, path, value, grows=grows)
        if held is None:
            return
        value = held
    else:
        _bind_entries_anew(state, path, value)
    state.env[path] = value
    if is_field_of_parameter(state, path):
        state.filled.add(path)
    if name := own_field(path):
        state.sets[name] = join((state.sets[name], value)) if name in state.sets else value


def _bind_entries_anew(state: State, path: str, value: Value) -> None:
    """`sums = {k: reduce(v) for k, v in sums.items()}`: what stood under a key is another dict's now."""
    for entry in [known for known in state.env if known.startswith(f"{path}[")]:
        state.env[entry] = plain(value)


def _put_inside(state: State, target: ast.Subscript | ast.Starred, path: str, value: Value, *, grows: bool) -> Value | None:
    """What a container holds when `value` is put into it; None where nothing is to be joined with what it held."""
    key = SAME
    if isinstance(target, ast.Subscript):
        if entry := entry_of(target):
            state.env[entry] = value  # `config["rank"] = rank` says nothing of the other entries
            if value.cause is Cause.RANK:
                return None
        key = state.value(target.slice) if not isinstance(target.slice, ast.Slice) else SAME
    anew = isinstance(target, ast.Subscript) and (dotted(target.slice), path) in state.keys
    if value.decided and value.cause is Cause.RANK and not anew:
        return None  # one entry that rank 0 sets; the others stay as they are
    inner = isinstance(target, ast.Subscript) and isinstance(target.value, ast.Subscript)  # of `x[i][k]` it is `x[i]` that grows
    if inner:
        value = replace(value, sized=False)
    elif grows and (key.cause.differs or (key.params and not _is_one_thing(value))):  # which keys there are differs
        # Where the key is a parameter's, it may be what is put in that differs, under the same keys.
        own = key.cause.differs or (not value.cause.differs and value.params - {path} <= key.params)
        value = replace(made_of(value, key), sized=True, keyed=own)
    elif grows and isinstance(target, ast.Subscript) and (decided := own_key(state, target)) is not None:
        value = replace(made_of(value, decided), sized=True, keyed=True)
    elif value.keyed and isinstance(target, ast.Subscript):  # what is put in has keys of its own, or is decided by some
        value = replace(value, keyed=False)
    if anew:
        state.env[path] = value  # `for k in d: d[k] = reduce(d[k])`: each entry is given anew
        return None
    counted = value.keyed or not _is_one_thing(value)
    before = state.value(container_of(target)) if path not in state.env else state.env[path]
    if inner and not before.cause.differs:  # its length is what it was, whatever its elements hold from here on
        before = replace(before, sized=False)
    if Kind.LOADER in (before.kind, value.kind) and before is not SAME and before.cause.differs is not value.cause.differs:
        before = plain(before)  # which of the loaders share the data out depends on the key
        value = plain(value)
    given, held = value, before
    value = join((before, value if counted else replace(value, sized=False)))
    if isinstance(target, ast.Subscript) and (key_of := _outer_key(target)):
        entries = held.entries or _entries_before(held, path)
        if inner:  # one part of the entry; the others are what they were
            before_it = dict(entries)
            given = join((before_it.get(key_of) or open_under(key_of, path, before_it.get(REST, SAME)), plain(given)))
        if given.cause.differs and state.data_loops:
            given = replace(given, mean=True)
        others = tuple((k, v) for k, v in entries if k != key_of)
        value = replace(value, entries=(*others, (key_of, plain(given)))) if entries else value
    if value.cause.differs and state.data_loops:
        value = replace(value, mean=True)
    if state.is_parameter(path):
        state.filled.add(path)
    return value


def _is_one_thing(value: Value) -> bool:
    """True for a loader that a dict is given under a key, and an object round one: its batches do not count the keys."""
    return value.kind is Kind.LOADER or (value.kind is Kind.INSTANCE and value.cause.differs)


def _entries_before(held: Value, path: str) -> tuple[tuple[str, Value], ...]:
    """What stands under all other keys where one is given a value: the same on all ranks, or what the field held before."""
    same = held.cause is Cause.SAME and not held.params and held.kind is None
    return ((REST, held),) if same or is_open_field(held, path) else ()


def _outer_key(target: ast.Subscript) -> str:
    """`a` of `d["a"]` and `d["a"]["b"]`, "" for a key that is not written out."""
    while isinstance(target.value, ast.Subscript):
        target = target.value
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    return key if isinstance(key, str) else ""


# Loops


def bind_elements(state: State, target: ast.expr, source: ast.expr) -> Value:
    """Give the target of a loop what the source hands out; the value of what is gone through comes back."""
    value = state.value(source)
    elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if value.kind is Kind.ZIPPED:
        return _bind_zipped(state, target, elements, source, value)
    if value.kind is Kind.ENUMERATED and value.parts:
        value = value.parts[1]
        if len(elements) == 2:  # in one round all that make it have one counter
            bind(state, elements[0], SAME)
            bind(state, elements[1], _batch(elements[1], _element(state, source, value)))
            return value
    elif isinstance(pairs := bare(source), ast.Call) and called_name(pairs) == "items" and len(elements) == 2:
        bind(state, elements[0], plain(value) if value.keyed else SAME)  # the keys are the same unless other ones are put in
        bind(state, elements[1], _element(state, source, value))
        return value
    elif elements and len(value.parts) == len(elements) and _is_generator(state, source):  # `for step, x in log_every(loader)`
        for element, part in zip(elements, value.parts, strict=True):
            bind(state, element, _element(state, source, part))
        return value
    counts = isinstance(source, ast.Call) and last(dotted(source.func)) == "range" and not value.sized
    bind(state, target, SAME if counts else _batch(target, _element(state, source, value)))
    return value


def bind_counter(state: State, target: ast.expr, source: ast.expr, rounds: Value) -> None:
    """Behind `for i, x in enumerate(rows)` the counter is as far as there are elements."""
    counts = isinstance(source, ast.Call) and last(dotted(source.func)) == "enumerate" and rounds.sized
    if counts and isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2:
        bind(state, target.elts[0], at_most(plain(rounds), Proof.LIKELY))


def _is_generator(state: State, source: ast.expr) -> bool:
    """True for a call of a function of the project that yields: what it gives is what one round is handed."""
    site = state.targets.get(id(source))
    return site is not None and any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(site.node))


def _bind_zipped(state: State, target: ast.expr, elements: list[ast.expr], source: ast.expr, value: Value) -> Value:
    if len(value.parts) == len(elements):
        for element, part in zip(elements, value.parts, strict=True):
            bind(state, element, _element(state, source, part))
    else:
        bind(state, target, _element(state, source, plain(value)))
    if not all(p.sized and p.cause.differs for p in value.parts):  # the shortest one ends it
        return replace(value, sized=False, params=frozenset())
    return value


def _batch(target: ast.expr, value: Value) -> Value:
    """A whole batch may be missing, where the code asks for that: its collate function gave none."""
    return replace(value, optional=True) if isinstance(target, ast.Name) and value.cause is Cause.DATA else value


def _element(state: State, source: ast.expr, value: Value) -> Value:
    """One element of what is gone through: a batch is the rank's own, also where only a name speaks for the loader."""
    if value.length and not value.mean:  # the keys of a dict; beside a mean only one of its entries is a length
        return SAME
    name = last(dotted(unpacked(source)))
    seen = value.cause.differs or value.kind is Kind.LOADER
    if not seen and LOADER_NAMES.search(name) and state.is_parallel and value.cause is Cause.UNKNOWN:
        link = state.link(source, f"`{name}` gives each rank its own batches (by its name)", by_name=True)
        return replace(differing(Cause.DATA, Proof.LIKELY, link), params=value.params)
    mean = value.mean and (value.cause.differs or bool(value.params)) and value.kind is not Kind.LOADER
    return replace(plain(value), sized=False, keyed=False, mean=mean)
