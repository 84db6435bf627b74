"""What the fields of objects hold: what all methods of the class put into them, joined."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.variance.callers import Callers, Interpreted
from codemods.analysis.variance.objects import wraps
from codemods.analysis.variance.open_entries import without_the_rest
from codemods.analysis.variance.set_outside import set_outside
from codemods.analysis.variance.signals import is_set_by_handler
from codemods.analysis.variance.values import SAME, UNKNOWN, Cause, Kind, Link, Proof, Thing, Value, differing, join, one_thing
from codemods.runtime.record import replace


class Fields:
    """Field -> its value; while that is worked out, it is taken for one that is the same everywhere."""

    def __init__(self, analysis: Interpreted, callers: Callers) -> None:
        self.analysis, self.project, self.callers = analysis, analysis.project, callers

    def thing(self, site: ClassSite, name: str) -> Thing | None:
        """What object the methods of a class put into `self.name`, as far as they make it themselves: no caller is asked."""
        key = ("thing", site.module.path, site.node.lineno, name)
        found = self.analysis.settling.answer(key, lambda: self._thing(site, name), None, light=True)
        assert found is None or isinstance(found, Thing)
        return found

    def _thing(self, site: ClassSite, name: str) -> Thing | None:
        things: set[Thing] = set()
        unread = False
        all_given = class_values(self.project, class_facts(self.project, site.module, site.node)).given.get(name, ())
        for given in all_given:
            if given.function is None:
                continue
            place = FunctionSite(given.site.module, given.function)
            running = self.analysis.running(place.module, place)
            unread = unread or running is not None
            state = running or self.analysis.of(place)
            if state is not None and name in state.sets and (thing := state.sets[name].thing) is not None:
                things.add(thing)
        if not things and not unread:
            things |= self._from_outside(site, name)
        return _as_wrapped_below(one_thing(things), all_given) if unread else one_thing(things)

    def _from_outside(self, site: ClassSite, name: str) -> set[Thing]:
        """What object others put there."""
        found: set[Thing] = set()
        for module, assign in set_outside(self.project, site, name):
            function = module.function_of(assign)
            place = FunctionSite(module, function) if function is not None else None
            state = self.analysis.running(module, place) or (
                self.analysis.of(place) if place is not None else self.analysis.top_level(module)
            )
            value = state.values.get(id(assign.value)) if state is not None else None
            found |= {value.thing} if value is not None and value.thing is not None else set()
        return found

    def value(self, site: ClassSite, name: str) -> Value:
        """What the methods of a class put into `self.name`, joined; parameters are asked of the callers."""
        key = ("field", site.module.path, site.node.lineno, name)
        found = self.analysis.settling.answer(key, lambda: self._joined(site, name), SAME, light=True)
        assert isinstance(found, Value)
        return found

    def _joined(self, site: ClassSite, name: str) -> Value:
        facts = class_facts(self.project, site.module, site.node)
        found: list[Value] = []
        for given in class_values(self.project, facts).given.get(name, ()):
            if given.function is None:
                continue
            place = FunctionSite(given.site.module, given.function)
            state = self.analysis.of(place)
            if name in self.analysis.shaken(given.site) and is_set_by_handler(given.site.module, given.value):
                text = f"`{name}` is set by a signal, which each process gets on its own"
                found.append(differing(Cause.PLACE, Proof.PROVEN, Link(place.module.path, given.value.lineno, text)))
            elif state is not None and name in state.sets:
                found.append(self.callers.resolved(place, without_the_rest(state.sets[name], name)))
        found += self._filled(facts, name)
        if not found or all(v.decided and v.cause is Cause.RANK for v in found):
            return UNKNOWN  # only one rank has it: the others do not get as far as using it
        return replace(join(found), thing=one_thing(v.thing for v in found))

    def _filled(self, facts: ClassFacts, name: str) -> list[Value]:
        """What methods put into a collection that the set-up has made (`self.losses.append(loss)`)."""
        values = class_values(self.project, facts)
        if name not in values.filled:
            return []
        assigned = {id(g.function) for g in values.given.get(name, ())}
        found: list[Value] = []
        for site in facts.lineage:
            inside = {id(site.module.function_of(e)) for e in values.fillers.get(name, ())}
            for method in site.methods().values():
                if id(method) in inside - assigned:
                    place = FunctionSite(site.module, method)
                    state = self.analysis.of(place)
                    if state is not None and name in state.sets:
                        found.append(self.callers.resolved(place, without_the_rest(state.sets[name], name)))
        return found


def _as_wrapped_below(found: Thing | None, given: Sequence[Given]) -> Thing | None:
    """The wrapper, where a statement that was not read yet puts the model into one."""
    if found is None or found.kind is not Kind.MODULE or not any(wraps(g.value) for g in given):
        return found
    return Thing(Kind.WRAPPED, found.site, found.waits if found.site is not None or found.layers else None)
