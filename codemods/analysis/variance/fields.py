"""What the fields of objects hold: what all methods of the class put into them, joined."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.variance.callers import Callers, Interpreted
from codemods.analysis.variance.objects import wraps
from codemods.analysis.variance.signals import handlers
from codemods.analysis.variance.values import SAME, UNKNOWN, Cause, Kind, Link, Proof, Thing, Value, differing, join, one_thing
from codemods.record import replace


class Fields:
    """Field -> its value, each worked out once; while that goes on, it is taken for one that is the same everywhere."""

    def __init__(self, analysis: Interpreted, callers: Callers) -> None:
        self.analysis, self.project, self.callers = analysis, analysis.project, callers
        self._values: dict[tuple[str, int, str], Value] = {}
        self._things: dict[tuple[str, int, str], Thing | None] = {}

    def thing(self, site: ClassSite, name: str) -> Thing | None:
        """What object the methods of a class put into `self.name`, as far as they make it themselves: no caller is asked."""
        key = (site.module.path, site.node.lineno, name)
        if key not in self._things:
            self._things[key] = None
            things: set[Thing] = set()
            settled = True
            all_given = class_values(self.project, class_facts(self.project, site.module, site.node)).given.get(name, ())
            for given in all_given:
                if given.function is None:
                    continue
                place = FunctionSite(given.site.module, given.function)
                running = self.analysis.running(place.module, place)
                settled = settled and running is None
                state = running or self.analysis.of(place)
                if state is not None and name in state.sets and (thing := state.sets[name].thing) is not None:
                    things.add(thing)
            self._things[key] = found = one_thing(things)
            if not settled:  # a method is being worked on: it may put more into the field
                del self._things[key]
                return _as_wrapped_below(found, all_given)
        return self._things[key]

    def value(self, site: ClassSite, name: str) -> Value:
        """What the methods of a class put into `self.name`, joined; parameters are asked of the callers."""
        key = (site.module.path, site.node.lineno, name)
        if key not in self._values:
            self._values[key] = SAME
            self._values[key] = self._joined(site, name)
        return self._values[key]

    def _joined(self, site: ClassSite, name: str) -> Value:
        facts = class_facts(self.project, site.module, site.node)
        found: list[Value] = []
        for given in class_values(self.project, facts).given.get(name, ()):
            if given.function is None:
                continue
            place = FunctionSite(given.site.module, given.function)
            state = self.analysis.of(place)
            if given.function.name in handlers(given.site.module) and name in self.analysis.shaken(given.site):
                text = f"`{name}` is set by a signal, which each process gets on its own"
                found.append(differing(Cause.PLACE, Proof.PROVEN, Link(place.module.path, given.function.lineno, text)))
            elif state is not None and name in state.sets:
                found.append(self.callers.resolved(place, state.sets[name]))
        if not found or all(v.decided and v.cause is Cause.RANK for v in found):
            return UNKNOWN  # only one rank has it: the others do not get as far as using it
        return replace(join(found), thing=one_thing({v.thing for v in found if v.thing is not None}))


def _as_wrapped_below(found: Thing | None, given: Sequence[Given]) -> Thing | None:
    """The wrapper, where a statement that was not read yet puts the model into one."""
    if found is None or found.kind is not Kind.MODULE or not any(wraps(g.value) for g in given):
        return found
    return Thing(Kind.WRAPPED, found.site, found.waits if found.site is not None else None)
