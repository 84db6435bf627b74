"""Parameters, resolved through the callers of a function, and those of Lightning hooks through what Lightning hands them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, Role, class_facts, overriding
from codemods.analysis.distribution import is_test_module
from codemods.analysis.hooks import WRITER_HOOKS
from codemods.analysis.model.setting_calls import calls_by_settings
from codemods.analysis.ranks.reach import to_a_launcher
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.analysis.variance.inherited_calls import handed_to_the_heir
from codemods.analysis.variance.open_entries import of_entry
from codemods.analysis.variance.paths import is_super, own_field, parameters
from codemods.analysis.variance.settling import Settling
from codemods.analysis.variance.state import State, Summaries
from codemods.analysis.variance.substitution import asked_alone, substituted
from codemods.analysis.variance.values import (
    SAME,
    UNKNOWN,
    Cause,
    How,
    Link,
    Proof,
    Thing,
    Value,
    along,
    at_most,
    differing,
    join,
)
from codemods.data.rank_variance import DATA_NAMES
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import replace

MOST_CALLERS = 10  # a function that is called in more places is everybody's: what one of them hands over says nothing of it
_STEPS = frozenset({"training_step", "validation_step", "test_step", "predict_step"})
_STEP_BEFORE = {f"{stage}_epoch_end": f"{stage}_step" for stage in ("training", "validation", "test")}
_GIVEN_BATCH = frozenset({"batch", "outputs"})
_PREDICTS = ("predict_step", "on_predict", "write_on")
_GIVEN_TO_WRITERS = frozenset({"prediction", "predictions", "batch_indices", "batch"})


class Interpreted(Summaries, Protocol):
    """What is asked of the analysis here: the functions as they were read, and whether they were read to the end."""

    settling: Settling[State | Value | Thing | None]

    def top_level(self, module: SourceModule) -> State | None: ...
    def states(self, module: SourceModule) -> list[State]: ...
    def running(self, module: SourceModule, site: FunctionSite | None) -> State | None: ...


class Callers:
    """Parameter -> what all callers that are seen hand over."""

    def __init__(self, analysis: Interpreted) -> None:
        self.analysis, self.project = analysis, analysis.project

    def resolved(self, site: FunctionSite | None, value: Value) -> Value:
        """The value with what its function is given by its callers, and with what its fields hold."""
        if value.missing:
            asked = {name: self.given(site, name) for name in sorted(value.missing)} if site is not None else {}
            decided = any(v.cause.differs for v in asked_alone(value, asked).values())
            value = replace(value, optional=value.optional or decided, missing=frozenset())
        if not value.params or (value.cause is Cause.DATA and value.proof is Proof.PROVEN):  # nothing weighs more
            open_ones = site is not None and any(entry.params for _, entry in value.entries)
            return replace(value, entries=tuple((k, self.resolved(site, v)) for k, v in value.entries)) if open_ones else value
        if site is None:
            return replace(value, params=frozenset())
        given = {name: self.given(site, name) for name in sorted(value.params)}
        return substituted(value, given, None)

    def given(self, site: FunctionSite, name: str) -> Value:
        """What stands for a parameter or a field of a function."""
        if field := own_field(name):
            owner = site.module.class_of(site.node)
            if owner is None:
                return UNKNOWN
            return of_entry(self.analysis.field(class_facts(self.project, site.module, owner).lineage[0], field), name)
        key = ("given", *site.key, name)
        found = self.analysis.settling.answer(key, lambda: self._from_callers(site, name), UNKNOWN, light=True)
        assert isinstance(found, Value)
        return found

    def _from_callers(self, site: FunctionSite, name: str) -> Value:
        """What the callers hand over for a parameter."""
        if (hook := self._of_hook(site, name)) is not None:
            return hook
        found: list[Value] = []
        for place in self._callers(site):
            function = place.module.function_of(place.call)
            caller = FunctionSite(place.module, function) if function else None
            state = self.analysis.of(caller) if caller else self.analysis.top_level(place.module)
            value = _handed_over(state or self.analysis.running(place.module, caller), place.call, site, name)
            if value is not None:
                link = Link(place.module.path, place.call.lineno, f"{site.node.name}() is called with it", how=How.HANDED)
                handed = along(self.resolved(caller, value), link)
                if not (handed.differs and self._is_beside_the_start(site, place)):
                    found.append(handed)
        found += self._from_settings(site, name)
        found += self._from_heirs(site, name)
        best = join(found) if found else UNKNOWN
        if best.cause is Cause.UNKNOWN and name in DATA_NAMES and self.analysis.is_parallel(site.module):
            link = Link(site.module.path, site.node.lineno, f"`{name}` is this rank's own (by its name)", by_name=True)
            best = differing(Cause.DATA, Proof.LIKELY, link)
        return best

    def _from_settings(self, site: FunctionSite, name: str) -> Iterator[Value]:
        """What `instantiate(config.evaluator, loader=loader)` hands to the class that a setting names."""
        owner = site.module.parent(site.node)
        if site.node.name != "__init__" or not isinstance(owner, ast.ClassDef):
            return
        for place in calls_by_settings(self.project, ClassSite(site.module, owner))[:MOST_CALLERS]:
            given = next((k.value for k in place.call.keywords if k.arg == name), None)
            function = place.module.function_of(place.call)
            caller = FunctionSite(place.module, function) if function else None
            state = self.analysis.of(caller) if caller else self.analysis.top_level(place.module)
            state = state or self.analysis.running(place.module, caller)
            value = state.values.get(id(given)) if state is not None and given is not None else None
            if value is not None:
                link = Link(place.module.path, place.call.lineno, f"{owner.name}() is called with it", how=How.HANDED)
                yield along(self.resolved(caller, value), link)

    def _from_heirs(self, site: FunctionSite, name: str) -> list[Value]:
        """What the classes below hand to the constructor of their base; nothing where they hand it different things."""
        owner = site.module.parent(site.node)
        if site.node.name != "__init__" or not isinstance(owner, ast.ClassDef):
            return []
        found: list[Value] = []
        for heir in (overriding(self.project, ClassSite(site.module, owner), "__init__") or ())[:MOST_CALLERS]:
            place = FunctionSite(heir.module, heir.methods()["__init__"])
            state = self.analysis.of(place) or self.analysis.running(heir.module, place)
            for call in (n for n in walk_scope(place.node) if isinstance(n, ast.Call) and is_super(n.func)):
                if (value := _handed_over(state, call, site, name)) is not None:
                    link = Link(heir.module.path, call.lineno, f"{site.node.name}() is called with it", how=How.HANDED)
                    found.append(along(self.resolved(place, value), link))
        return found if len({value.cause for value in found}) == 1 else []

    def _is_beside_the_start(self, site: FunctionSite, place: CallSite) -> bool:
        """True for `work(0, folder)` in the function that has `mp.spawn` run `work`: that call is for one process alone.

        A folder named after the clock is made by the parent there, and is the same for all that it starts.
        """
        function = place.module.function_of(place.call)
        started = (p for p in uses_of(self.project, site.module, site.node).handed_on if to_a_launcher(p))
        return any(p.module is place.module and p.module.function_of(p.node) is function for p in started)

    def _callers(self, site: FunctionSite) -> list[CallSite]:
        owner = site.module.parent(site.node)
        if site.node.name == "__call__":
            return self._called_objects(site)
        if site.node.name == "__init__" and isinstance(owner, ast.ClassDef):
            uses = constructions(self.project, site.module, owner)
        else:
            uses = uses_of(self.project, site.module, site.node)
        found = [c for c in uses.outside_tests().calls if not is_test_module(c.module)] if uses is not None else []
        return found if len(found) <= MOST_CALLERS else []

    def _called_objects(self, site: FunctionSite) -> list[CallSite]:
        """Calls of objects of the class, in the files that make them."""
        owner = site.module.parent(site.node)
        uses = constructions(self.project, site.module, owner) if isinstance(owner, ast.ClassDef) else None
        found: list[CallSite] = []
        for module in {id(c.module): c.module for c in (uses.calls if uses else ())}.values():
            for state in self.analysis.states(module):
                calls = {id(c): c for c in module.nodes(ast.Call)}
                found += [CallSite(module, calls[i]) for i, t in state.targets.items() if t.key == site.key and i in calls]
        return found

    def _of_hook(self, site: FunctionSite, name: str) -> Value | None:
        """The batch that Lightning or the Trainer hands to a step: each rank has its own."""
        owner = site.module.class_of(site.node)
        if owner is None:
            return None
        if (step := _STEP_BEFORE.get(site.node.name)) is not None and name in parameters(site.node)[1:2]:
            return self._of_steps(site, owner, step)
        roles = _roles_with_batch(site.node, name)
        if not roles or not any(class_facts(self.project, site.module, owner).is_a(role) for role in roles):
            return None
        link = Link(site.module.path, site.node.lineno, f"`{name}` of {site.node.name} is this rank's own", how=How.OF_STEP)
        sized = site.node.name.startswith(_PREDICTS)  # Lightning pads all shares but those of `predict`
        return differing(Cause.DATA, Proof.PROVEN, link, sized=sized)

    def _of_steps(self, site: FunctionSite, owner: ast.ClassDef, step: str) -> Value | None:
        """What the steps of an epoch gave back on this rank, as Lightning 1 hands it to the hook at the end of the epoch."""
        facts = class_facts(self.project, site.module, owner)
        if not facts.is_a(Role.LIGHTNING_MODULE) or (found := facts.method(step)) is None:
            return None
        home = FunctionSite(found[0].module, found[1])
        state = self.analysis.of(home)
        if state is None or state.result is None or not state.returns:
            return None
        value = self.resolved(home, state.result)
        if value.cause is not Cause.DATA:
            return SAME if value.cause is Cause.SAME else None
        link = Link(site.module.path, site.node.lineno, f"{site.node.name}() is handed what the steps of this rank gave back")
        return along(replace(at_most(value, Proof.LIKELY), parts=(), entries=(), thing=None), link)


def _handed_over(caller: State | None, call: ast.Call, site: FunctionSite, name: str) -> Value | None:
    """What a call hands over for a parameter, if it is this function that the call was seen to run."""
    if caller is None or id(call) not in caller.targets:
        return None
    if caller.targets[id(call)].key != site.key:
        return handed_to_the_heir(caller.project, caller, call, site, name)
    return caller.given.get(id(call), {}).get(name)


def _roles_with_batch(function: FunctionNode, name: str) -> tuple[Role, ...]:
    """The classes in which a method of that name is handed a batch, or what was made of one, as that parameter."""
    if function.name.endswith(("_batch_end", "_batch_start")) and name in _GIVEN_BATCH:
        return (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE)
    if function.name in WRITER_HOOKS and name in _GIVEN_TO_WRITERS:
        return (Role.LIGHTNING_CALLBACK,)
    if function.name in ("compute_loss", "prediction_step") and name == "inputs":
        return (Role.HF_TRAINER,)
    if function.name in _STEPS and (name in _GIVEN_BATCH or name == "".join(parameters(function)[1:2])):
        return (Role.LIGHTNING_MODULE,)
    return ()
