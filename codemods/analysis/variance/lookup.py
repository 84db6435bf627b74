"""The value of a name and of an attribute: what it was given, or what the function, the object or the file round it holds."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.class_values import ClassValues, class_values
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.variance.meetings import meet_behind
from codemods.analysis.variance.state import State
from codemods.analysis.variance.substitution import fields_of, substituted
from codemods.analysis.variance.values import (
    SAME,
    UNKNOWN,
    Cause,
    How,
    Kind,
    Proof,
    Thing,
    Value,
    at_most,
    differing,
    join,
    plain,
)
from codemods.data.rank_names import MEMBER_WORD, speaks_of_rank
from codemods.data.rank_variance import DESCRIPTIONS, LOSS_NAME, SETTING_OF_LOSS
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace

_REDUCED = lazy(r"(^|_)(all_?)?(reduced|gathered|synced|synchronized)(_|$)", re.I)
_RUN_BY_FRAMEWORKS = (Role.HF_TRAINER, Role.LIGHTNING_CALLBACK)


def name_value(state: State, node: ast.Name) -> Value:
    known = state.env.get(node.id)
    if known is None:
        known = _outer(state, node)
    if known.cause.differs:
        return known
    unseen = known.cause is Cause.UNKNOWN and not known.params and known.thing is None
    if unseen and _reads_as_own_loss(node.id) and state.is_parallel:
        link = state.link(node, f"`{node.id}` is this rank's own (by its name)", by_name=True)
        return differing(Cause.DATA, Proof.LIKELY, link)
    rank = as_rank(state, node)
    return known if rank is None else replace(rank, params=known.params)


def _reads_as_own_loss(name: str) -> bool:
    """True for the name of a loss that says nothing of a reduction: not `loss_dict_reduced`, whatever made it."""
    return bool(LOSS_NAME.search(name)) and not SETTING_OF_LOSS.search(name) and not _REDUCED.search(name)


def _outer(state: State, node: ast.Name) -> Value:
    if state.is_parameter(node.id):
        return Value(Cause.UNKNOWN, Proof.UNKNOWN, params=frozenset({node.id}))
    if state.function is not None:
        if (made := state.summaries.local_function(state.module, state.function, node.id)) is not None:
            return Value(thing=Thing(Kind.FUNCTION, function=made))
        if (closed := state.summaries.enclosing_value(state.module, state.function, node.id)) is not None:
            return closed
    found = state.summaries.global_value(state.module, node.id)
    return found if found is not None else UNKNOWN


def as_rank(state: State, node: ast.Name | ast.Attribute | ast.Call) -> Value | None:
    """The rank itself, or a flag that is made of it (`is_main = rank == 0`): no matter what was read before it."""
    if not _speaks_of_ranks(state.module):
        return None
    if node in state.as_ranks:
        return state.as_ranks[node]
    with state.project.apart() as rest:
        found = _as_rank(state, node)
    return state.as_ranks.put(node, found, rest)


def _as_rank(state: State, node: ast.Name | ast.Attribute | ast.Call) -> Value | None:
    end = last(dotted(node.func if isinstance(node, ast.Call) else node))
    if not speaks_of_rank(end) and not _is_bound_to_rank(state, node):
        return None
    if rank_source(state.module, node, state.project) is None and known_split(state.module, node, state.project) is None:
        return None
    shown = Proof.PROVEN if isinstance(node, ast.Call) or _is_bound_to_rank(state, node) else Proof.LIKELY
    return differing(Cause.RANK, shown, state.link(node, f"`{state.short(node)}` gives the rank", how=How.RANK))


def from_environment(state: State, node: ast.Subscript | ast.Call) -> Value | None:
    """The rank that `os.environ["RANK"]` and `os.getenv("LOCAL_RANK")` give, whatever name it is kept under."""
    if not environment(state.module, node).isupper() or rank_source(state.module, node, state.project) in (None, Ranks.UNKNOWN):
        return None
    return differing(Cause.RANK, Proof.PROVEN, state.link(node, f"`{state.short(node)}` gives the rank", how=How.RANK))


def _is_bound_to_rank(state: State, node: ast.AST) -> bool:
    """Asked of every name that is read, so it is remembered by scope."""
    if not isinstance(node, ast.Name):
        return False
    known, key = _bound_to_rank(state.module), (id(state.module.function_of(node)), node.id)
    if key not in known:
        values = [b.value for b in bindings_of(state.module, node) if b.value is not None]
        parts = (n for v in values for n in walk(v) if isinstance(n, (ast.Name, ast.Attribute)))
        known[key] = any(speaks_of_rank(last(dotted(n))) for n in parts)
    return known[key]


@once_a_module
def _speaks_of_ranks(module: SourceModule) -> bool:
    return MEMBER_WORD.search(module.text) is not None or "gpu" in module.text or "_zero" in module.text


@once_a_module
def _bound_to_rank(module: SourceModule) -> dict[tuple[int, str], bool]:
    del module
    return {}


def attribute_value(state: State, node: ast.Attribute) -> Value:
    path = dotted(node)
    if path in state.env:
        return state.env[path]
    if (rank := as_rank(state, node)) is not None:
        return rank
    if node.attr in DESCRIPTIONS:
        return SAME
    holder = state.value(node.value)
    if node.attr == "module" and holder.thing is None:  # what a wrapper holds
        return replace(plain(holder), thing=Thing(Kind.MODULE))
    if node.attr == "shape":
        return plain(holder) if holder.sized else replace(at_most(plain(holder), Proof.LIKELY), mean=False)
    if isinstance(node.value, ast.Name) and node.value.id == "self" and state.function is not None:
        return _own_field(state, node)
    if holder.kind is Kind.WRAPPED and node.attr == "module":
        return Value(thing=Thing(Kind.MODULE, holder.thing.site if holder.thing else None))
    if holder.thing is not None and holder.thing.site is not None:
        return _of_instance(state, node, holder)
    if holder.kind in (Kind.LOADER, Kind.SAMPLER, Kind.MODULE, Kind.WRAPPED, Kind.OPTIMIZER, Kind.PLATEAU):
        if node.attr == "module":
            return Value(thing=Thing(Kind.MODULE, holder.thing.site if holder.thing else None))
        return SAME
    return plain(holder)


def _own_field(state: State, node: ast.Attribute) -> Value:
    """`self.x`: what a property gives, or whatever the object holds there, asked later."""
    owner = state.module.class_of(node)
    thing = None
    if owner is not None:
        facts = class_facts(state.project, state.module, owner)
        if (method := facts.method(node.attr)) is not None:
            return _property(state, node, method, SAME)
        thing = state.summaries.field_thing(facts.lineage[0], node.attr)
    return Value(Cause.UNKNOWN, Proof.UNKNOWN, params=frozenset({f"self.{node.attr}"}), thing=thing)


def _of_instance(state: State, node: ast.Attribute, holder: Value) -> Value:
    """An attribute of an object of the project: set once, made by a property, or whatever it was told."""
    assert holder.thing is not None and holder.thing.site is not None
    facts = class_facts(state.project, holder.thing.site.module, holder.thing.site.node)
    if (method := facts.method(node.attr)) is not None:
        return _property(state, node, method, holder)
    values = class_values(state.project, facts)
    if values.set_once(node.attr):
        return state.summaries.field(facts.lineage[0], node.attr)
    if values.given.get(node.attr) and any(facts.is_a(role) for role in _RUN_BY_FRAMEWORKS):
        return join((plain(holder), state.summaries.field(facts.lineage[0], node.attr)))  # nobody in sight tells it anything
    if _is_flag(state, facts.lineage[0], values, node.attr):
        field = state.summaries.field(facts.lineage[0], node.attr)
        return field if field.cause is Cause.RANK else plain(holder)
    return plain(holder)


def _is_flag(state: State, site: ClassSite, values: ClassValues, name: str) -> bool:
    """True for a field that the methods of its class alone set, to True and False: it differs by who comes to these places."""
    given = values.given.get(name, [])
    if not given or name in values.filled or name in values.grown:
        return False
    if not all(isinstance(g.value, ast.Constant) and isinstance(g.value.value, bool) for g in given):
        return False
    word, data = f".{name} = ".encode(), site.module.data
    if data.count(word) != data.count(b"self" + word):
        return False
    return all(path == site.module.path for path in state.project.files_containing(word))


def _property(state: State, node: ast.Attribute, method: tuple[ClassSite, FunctionNode], holder: Value) -> Value:
    """What `obj.name` gives where `name` is a method: of a property its result, with the collectives that it comes to."""
    site = FunctionSite(method[0].module, method[1])
    if not any(last(dotted(d)) in ("property", "cached_property") for d in method[1].decorator_list):
        return SAME
    summary = state.summaries.of(site)
    if summary is None:
        return plain(holder)
    meet_behind(state, node, state.module.text_of(node), summary, {})
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    return substituted(summary.result or SAME, {}, None if own else fields_of(state, holder))
