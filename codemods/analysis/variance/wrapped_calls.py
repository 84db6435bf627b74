"""Calls that give a wrapper, or run one: methods of the project that wrap a model, and outputs that may be missing."""

from __future__ import annotations

import ast
import re

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import class_facts
from codemods.analysis.functions import functions_by_name
from codemods.analysis.literals import is_none
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.meetings import called_object
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Kind, Proof, Thing, Value, at_most, made_of
from codemods.files.source import walk_block
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace

_WRAPS = lazy(r"model|wrap|ddp|distribut|parallel|prepare|setup", re.I)
_WRAPPER_WORDS = (b"DistributedDataParallel", b"FullyShardedDataParallel")
_MOST_FILES = 4  # that define a method of the name


def of_wrapper(state: State, call: CallParts) -> Value | None:
    """What `model(batch)` of a wrapper gives: made of the rank's own batch, and missing where the code asks for that."""
    known = called_object(state, call.node)
    if known is None or known.thing is None or known.thing.kind is not Kind.WRAPPED or not state.is_parallel:
        return None
    found = made_of(*call.everything)
    if not found.cause.differs and not found.params:
        return None
    return replace(at_most(found, Proof.LIKELY), optional=_may_give_none(state, known.thing))


def _may_give_none(state: State, thing: Thing) -> bool:
    """True where the `forward` of the model returns None somewhere, or is not seen."""
    if thing.site is None:
        return True
    method = class_facts(state.project, thing.site.module, thing.site.node).method("forward")
    if method is None:
        return True
    leaving = [n for n in walk_block(method[1].body) if isinstance(n, ast.Return)]
    return any(n.value is None or is_none(n.value) for n in leaving)


def wrapped_by_method(state: State, call: CallParts) -> Value | None:
    """`backend.transform_model(model)` of an object that is not known: a class of the project wraps the model in it."""
    if call.holder is None or call.holder.thing is not None or len(call.args) != 1 or not _WRAPS.search(call.end):
        return None
    if not isinstance(call.node.func, ast.Attribute):
        return None
    for site in _methods_named(state, call.end):
        summary = state.summaries.of(site)
        made = summary.result.thing if summary is not None and summary.result is not None else None
        if made is not None and made.kind is Kind.WRAPPED:
            model = call.args[0].thing
            seen = model is not None and (model.site is not None or model.layers)
            waits = model.waits if model is not None and seen and made.waits is None else made.waits
            return Value(thing=Thing(Kind.WRAPPED, model.site if model is not None else None, waits))
    return None


def _methods_named(state: State, name: str) -> list[FunctionSite]:
    project = state.project
    defining = set(project.files_containing(f"def {name}(self".encode()))
    paths = sorted(defining & {p for word in _WRAPPER_WORDS for p in project.files_containing(word)})
    modules = [m for m in map(project.module, paths[:_MOST_FILES]) if m is not None]
    return [FunctionSite(m, f) for m in modules for f in functions_by_name(m).get(name, ()) if m.class_of(f) is not None]
