"""The values of a summary at a call: parameters and fields replaced by what the caller hands over and what the object holds."""

from __future__ import annotations

from collections.abc import Callable

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.variance.counters import counts_calls
from codemods.analysis.variance.open_entries import of_entry
from codemods.analysis.variance.paths import own_field
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, Kind, Link, Value, join, made_of, plain
from codemods.runtime.record import replace

Fields = Callable[[str], Value]  # what the field of that name holds
_KEPT_LINKS = 6  # of the way in the function and the way to its call together


def substituted(value: Value, binding: dict[str, Value], fields: Fields | None) -> Value:
    """The value of a summary at a call: its parameters replaced by what is handed over, fields by what the object holds.

    fields: None where the object is `self`: its fields stay open.
    """
    asked = asked_alone(value, binding)
    value = _found_missing(value, asked, fields)
    if not value.params:
        parts, entries = _inside(value, binding, fields)
        return replace(value, parts=parts, entries=entries) if parts or entries else value
    given, left = _handed_over(value, asked, fields)
    if value.by_name and given and all(map(_is_seen, given)):
        # what is handed over is seen: the name no longer counts
        value = replace(value, cause=Cause.UNKNOWN, chain=value.chain[:-1])
    inner = made_of(*given)
    base = SAME if value.cause is Cause.UNKNOWN and given and not left else replace(value, params=frozenset())
    best = join((replace(base, parts=(), entries=(), thing=None), replace(inner, params=inner.params | left)))
    if (best.cause.differs or best.params) and best.chain == inner.chain and value.chain:
        best = replace(best, chain=_cut((*value.chain, *inner.chain)))
    # what is put together from the batches of a loader is no loader
    thing = value.thing or (given[0].thing if len(given) == 1 and not left and not value.mean else None)
    parts, entries = _inside(value, binding, fields)
    sized = best.sized or (value.sized and (best.cause.differs or bool(best.params)))
    return replace(
        best,
        thing=thing,
        parts=parts,
        entries=entries,
        sized=sized,
        keyed=best.keyed or (value.keyed and sized),
        length=value.length and bool(best.params),
        truths=_truths_of(value, binding, best.params),
        optional=value.optional or best.optional,
        missing=value.missing,
        mean=value.mean or best.mean,
    )


def _inside(
    value: Value, binding: dict[str, Value], fields: Fields | None
) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]:
    """The elements and the entries of a value at a call."""
    parts = tuple(substituted(p, binding, fields) for p in value.parts)
    return parts, tuple((key, substituted(v, binding, fields)) for key, v in value.entries)


def _is_seen(given: Value) -> bool:
    """True for what is known, and for a loader that has no sampler, or one that is seen, whatever its data set is."""
    loader = given.thing if given.kind is Kind.LOADER else None
    return given.cause is not Cause.UNKNOWN or (loader is not None and not loader.unseen)


def _cut(chain: tuple[Link, ...]) -> tuple[Link, ...]:
    """The nearest steps of a way; and where it begins, if only a name says so."""
    if len(chain) <= _KEPT_LINKS or not chain[-1].by_name:
        return chain[:_KEPT_LINKS]
    return (*chain[: _KEPT_LINKS - 1], chain[-1])


def _found_missing(value: Value, binding: dict[str, Value], fields: Fields | None) -> Value:
    """The value, which may be missing on a rank where one of what decides over that differs."""
    if not value.missing:
        return value
    given, left = _values_of(value.missing, binding, fields)
    differs = any(g.cause.differs for g in given)
    return replace(value, optional=value.optional or differs, missing=left.union(*[g.params for g in given]))


def _handed_over(value: Value, binding: dict[str, Value], fields: Fields | None) -> tuple[list[Value], frozenset[str]]:
    """What stands for the parameters of a value, and the fields that stay open."""
    given, left = _values_of(value.params, binding, fields)
    if value.length:
        given = [g if g.sized or (g.params and not g.cause.differs) else SAME for g in given]
    return given, left


def asked_alone(value: Value, binding: dict[str, Value]) -> dict[str, Value]:
    """What is handed over, without the loaders whose truth alone counts: ranks that share data out have batches alike."""
    if not value.truths:
        return binding
    return {name: SAME if name in value.truths and _has_batches_alike(g) else g for name, g in binding.items()}


def _has_batches_alike(given: Value) -> bool:
    return given.kind is Kind.LOADER and not given.sized and given.cause is not Cause.RANK


def _truths_of(value: Value, binding: dict[str, Value], still: frozenset[str]) -> frozenset[str]:
    """The parameters of the caller, and fields, of which the truth alone counts there too."""
    asked, whole = frozenset[str](), frozenset[str]()
    for name in value.params & binding.keys():
        given = binding[name]
        asked |= given.params if name in value.truths else given.truths
        whole |= frozenset() if name in value.truths else given.params - given.truths
    return (asked - whole) & still


def _values_of(
    names: frozenset[str], binding: dict[str, Value], fields: Fields | None
) -> tuple[list[Value], frozenset[str]]:
    """What stands for parameters and fields, and the fields that stay open."""
    given: list[Value] = []
    left: set[str] = set()
    for name in sorted(names):  # the first of equal ones tells the way: the same one in each run
        if name in binding:
            given.append(binding[name])
        elif field := own_field(name):
            if fields is None:
                left.add(name)
            else:
                given.append(of_entry(fields(field), name))
    return given, frozenset(left)


def fields_of(state: State, holder: Value, path: str = "") -> Fields:
    """What a field of an object holds: what the function puts there, what the object was told, what its class shows of it."""

    def field(name: str) -> Value:
        if path and (given := state.env.get(f"{path}.{name}")) is not None:
            return given
        site = holder.thing.site if holder.thing is not None else None
        if site is None:
            return plain(holder)
        facts = class_facts(state.project, site.module, site.node)
        if class_values(state.project, facts).set_once(name):
            return state.summaries.field(facts.lineage[0], name)
        if counts_calls(facts, name):
            return SAME
        if name in state.summaries.shaken(facts.lineage[0]):
            return join((plain(holder), state.summaries.field(facts.lineage[0], name)))
        return plain(holder)

    return field
