"""The analysis of a project: each function interpreted once, its parameters and fields resolved through callers and methods."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.distribution import is_test_file, ranks_in_file, ranks_in_importers
from codemods.analysis.functions import functions_by_name
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.analysis.variance.expressions import value_of
from codemods.analysis.variance.paths import parameters
from codemods.analysis.variance.reading import interpret
from codemods.analysis.variance.state import State
from codemods.analysis.variance.substitution import substituted
from codemods.analysis.variance.values import (
    SAME,
    UNKNOWN,
    Cause,
    Kind,
    Link,
    Proof,
    Thing,
    Value,
    along,
    differing,
    join,
)  # fmt: skip
from codemods.data.rank_variance import DATA_NAMES
from codemods.project import Project
from codemods.record import replace
from codemods.source import FunctionNode, SourceModule, walk

DEPTH = 12  # calls inside calls that are followed down
UPWARD = 5  # callers of callers that are asked
MOST_CALLERS = 10
_BATCHES = frozenset({"training_step", "validation_step", "test_step", "predict_step"})
_GIVEN_BATCH = frozenset({"batch", "outputs"})


def variance(project: Project) -> Analysis:
    """The one analysis of a project."""
    return project.memo("variance", lambda: Analysis(project))


class Analysis:
    """Summaries of functions, worked out on demand; a function that is being worked on is taken for one that changes nothing."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._states: dict[tuple[str, int, int], State | None] = {}
        self._fields: dict[tuple[str, int, str], Value] = {}
        self._things: dict[tuple[str, int, str], Thing | None] = {}
        self._modules: dict[str, State | None] = {}
        self._parallel: dict[str, bool] = {}
        self._resolved: dict[tuple[str, int, str], Value] = {}
        self._running: dict[tuple[str, int, int], State] = {}
        self._depth = 0

    # Functions

    def of(self, site: FunctionSite) -> State | None:
        """The function as it was interpreted; None while that is going on, too deep below, or where it cannot be read."""
        if site.key not in self._states:
            if self._depth >= DEPTH:
                return None
            self._states[site.key] = None
            running = self._running[site.key] = State(self, site.module, site.node, value_of)
            self._states[site.key] = self._interpreted(running, site.node.body)
            del self._running[site.key]
        return self._states[site.key]

    def _interpreted(self, state: State, body: list[ast.stmt]) -> State | None:
        self._depth += 1
        try:
            interpret(state, body)
        except RecursionError:  # an expression of a thousand terms: nothing is known of the function
            return None
        finally:
            self._depth -= 1
        return state

    def top_level(self, module: SourceModule) -> State | None:
        """The statements of a file outside of functions."""
        if module.path not in self._modules:
            self._modules[module.path] = None
            running = self._running[(module.path, 0, 0)] = State(self, module, None, value_of)
            self._modules[module.path] = self._interpreted(running, module.tree.body)
            del self._running[(module.path, 0, 0)]
        return self._modules[module.path]

    def states(self, module: SourceModule) -> list[State]:
        """Every function of a file, and the file itself."""
        found = [self.top_level(module), *(self.of(FunctionSite(module, f)) for f in module.functions)]
        return [s for s in found if s is not None]

    def value(self, module: SourceModule, node: ast.expr) -> Value:
        """What is known of an expression, with what the callers of its function give."""
        function = module.function_of(node)
        site = FunctionSite(module, function) if function else None
        state = self.of(site) if site else self.top_level(module)
        return self.resolved(site, state.values.get(id(node), UNKNOWN)) if state is not None else UNKNOWN

    def argument(self, module: SourceModule, call: ast.Call, index: int | str) -> Value:
        """What is known of an argument of a call, by its position or keyword."""
        given = {k.arg: k.value for k in call.keywords if k.arg}
        if isinstance(index, str):
            return self.value(module, given[index]) if index in given else UNKNOWN
        return self.value(module, call.args[index]) if index < len(call.args) else UNKNOWN

    def global_value(self, module: SourceModule, name: str) -> Value | None:
        state = self.top_level(module) or self._running.get((module.path, 0, 0))
        return state.env.get(name) if state is not None else None

    def is_parallel(self, module: SourceModule) -> bool:
        """True where several processes are seen to run the file."""
        if module.path not in self._parallel:
            shown = ranks_in_file(self.project, module) or ranks_in_importers(self.project, module)
            self._parallel[module.path] = shown is not None and not is_test_file(module.path)
        return self._parallel[module.path]

    def annotated(self, module: SourceModule, annotation: ast.expr) -> Thing | None:
        name = dotted(annotation)
        if not name:
            return None
        if last(name).endswith("DataLoader"):
            return Thing(Kind.LOADER)
        role = external_role(qualified(module, annotation))
        if role is Role.NN_MODULE:
            return Thing(Kind.MODULE)
        site = find_class(self.project, module, name)
        return Thing(self._kind(site), site) if site else None

    def _kind(self, site: ClassSite) -> Kind:
        facts = class_facts(self.project, site.module, site.node)
        return Kind.MODULE if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE) else Kind.INSTANCE

    def thing_of(self, module: SourceModule, function: FunctionNode, name: str) -> Thing | None:
        """What object all callers that are seen hand over for a parameter."""
        return self._given(FunctionSite(module, function), name, UPWARD - 2).thing

    # Functions inside of functions

    def local_function(self, module: SourceModule, function: FunctionNode, name: str) -> FunctionSite | None:
        """A function of that name that is defined inside of `function`."""
        found = [f for f in functions_by_name(module).get(name, ()) if module.function_of(f) is function and module.class_of(f) is None]
        if not found and module.class_of(function) is not None:
            found = [f for f in functions_by_name(module).get(name, ()) if module.function_of(f) is function]
        return FunctionSite(module, found[-1]) if found else None

    def enclosing_value(self, module: SourceModule, function: FunctionNode, name: str) -> Value | None:
        """What a name means in an inner function that does not bind it: what the function round it has bound it to."""
        outer = module.function_of(function)
        if outer is None:
            return None
        site = FunctionSite(module, outer)
        state = self._running.get(site.key) or self.of(site)
        if state is None or name not in state.env:
            return None
        return self.resolved(site, state.env[name])

    # Fields of objects

    def signalled(self, module: SourceModule) -> frozenset[str]:
        """The names and entries (`flag["stop"]`) that a signal handler of the file sets."""
        return self.project.memo(("signalled", module.path), lambda: _signalled(module))

    def shaken(self, site: ClassSite) -> frozenset[str]:
        """The fields that a signal handler of the class sets."""
        return self.project.memo(("shaken", site.module.path, site.node.lineno), lambda: _set_by_signals(site))

    def waits(self, site: ClassSite) -> bool | None:
        """True for a model with buffers (BatchNorm, `register_buffer`), its parts in the project included."""
        return self.project.memo(("buffers", site.module.path, site.node.lineno), lambda: _has_buffers(self.project, site))

    def field_thing(self, site: ClassSite, name: str) -> Thing | None:
        """What object the methods of a class put into `self.name`, as far as they make it themselves: no caller is asked."""
        key = (site.module.path, site.node.lineno, name)
        if key not in self._things:
            self._things[key] = None
            things: set[Thing] = set()
            for given in class_values(self.project, class_facts(self.project, site.module, site.node)).given.get(name, ()):
                place = FunctionSite(given.site.module, given.function) if given.function is not None else None
                state = (self.of(place) or self._running.get(place.key)) if place is not None else None
                if state is not None and name in state.sets and (thing := state.sets[name].thing) is not None:
                    things.add(thing)
            self._things[key] = next(iter(things)) if len(things) == 1 else None
        return self._things[key]

    def field(self, site: ClassSite, name: str) -> Value:
        """What the methods of a class put into `self.name`, joined; parameters are asked of the callers."""
        key = (site.module.path, site.node.lineno, name)
        if key not in self._fields:
            self._fields[key] = SAME
            self._fields[key] = self._field(site, name)
        return self._fields[key]

    def _field(self, site: ClassSite, name: str) -> Value:
        facts = class_facts(self.project, site.module, site.node)
        found: list[Value] = []
        for given in class_values(self.project, facts).given.get(name, ()):
            if given.function is None:
                continue
            place = FunctionSite(given.site.module, given.function)
            state = self.of(place)
            if given.function.name in _handlers(given.site.module) and name in self.shaken(given.site):
                link = Link(place.module.path, given.function.lineno, f"`{name}` is set by a signal, which each process gets on its own")
                found.append(differing(Cause.PLACE, Proof.PROVEN, link))
            elif state is not None and name in state.sets:
                found.append(self.resolved(place, state.sets[name]))
        if not found or all(v.decided and v.cause is Cause.RANK for v in found):
            return UNKNOWN  # only one rank has it: the others do not get as far as using it
        things = {v.thing for v in found if v.thing is not None}
        return replace(join(found), thing=next(iter(things)) if len(things) == 1 else None)

    def result_of(self, site: ClassSite, method: FunctionNode) -> Value:
        """What a method of a class gives, with fields and parameters resolved."""
        place = FunctionSite(site.module, method)
        state = self.of(place)
        return self.resolved(place, state.result) if state is not None and state.result is not None else UNKNOWN

    def count_of(self, site: ClassSite, method: FunctionNode) -> Value:
        """How the number of items that a generator method gives differs between the ranks."""
        place = FunctionSite(site.module, method)
        state = self.of(place)
        found = [self.resolved(place, c) for c in state.counted] if state is not None else []
        return join(v for v in found if v.differs and v.sized)

    # Parameters, from the callers

    def resolved(self, site: FunctionSite | None, value: Value, depth: int = 0) -> Value:
        """The value with what its function is given by its callers, and with what its fields hold."""
        if not value.params or (value.cause.differs and value.proof is Proof.PROVEN):
            return value
        if site is None:
            return replace(value, params=frozenset())
        given = {name: self._given(site, name, depth) for name in sorted(value.params)}
        return substituted(value, given, None)

    def _given(self, site: FunctionSite, name: str, depth: int) -> Value:
        if name.startswith("self."):
            owner = site.module.class_of(site.node)
            return self.field(class_facts(self.project, site.module, owner).lineage[0], name[5:]) if owner else UNKNOWN
        key = (site.module.path, site.node.lineno, name)
        if key not in self._resolved:
            if depth >= UPWARD:
                return UNKNOWN
            self._resolved[key] = UNKNOWN
            value, settled = self._from_callers(site, name, depth)
            if not settled:  # a caller is being worked on: it may know more later
                del self._resolved[key]
                return value
            self._resolved[key] = value
        return self._resolved[key]

    def _from_callers(self, site: FunctionSite, name: str, depth: int) -> tuple[Value, bool]:
        """What the callers hand over for a parameter, and whether all of them were read to the end."""
        if (hook := self._of_hook(site, name)) is not None:
            return hook, True
        found: list[Value] = []
        unsettled = False
        for place in self._callers(site)[:MOST_CALLERS]:
            function = place.module.function_of(place.call)
            caller = FunctionSite(place.module, function) if function else None
            key = caller.key if caller else (place.module.path, 0, 0)
            state = (self.of(caller) if caller else self.top_level(place.module)) or self._running.get(key)
            unsettled = unsettled or key in self._running
            given = state.given.get(id(place.call)) if state is not None else None
            if state is None or given is None or name not in given or id(place.call) not in state.targets:
                continue
            if state.targets[id(place.call)].key != site.key:
                continue
            value = self.resolved(caller, given[name], depth + 1)
            found.append(along(value, Link(place.module.path, place.call.lineno, f"{site.node.name}() is called with it")))
        best = join(found) if found else UNKNOWN
        if best.cause is Cause.UNKNOWN and name in DATA_NAMES and self.is_parallel(site.module):
            link = Link(site.module.path, site.node.lineno, f"`{name}` is this rank's own (by its name)", True)
            best = differing(Cause.DATA, Proof.LIKELY, link)
        return best, not unsettled

    def _callers(self, site: FunctionSite) -> list[CallSite]:
        owner = site.module.parent(site.node)
        uses = None
        if site.node.name == "__init__" and isinstance(owner, ast.ClassDef):
            uses = constructions(self.project, site.module, owner)
        elif site.node.name == "__call__":
            return self._called_objects(site)
        else:
            uses = uses_of(self.project, site.module, site.node)
        return [c for c in uses.outside_tests().calls if not is_test_file(c.module.path)] if uses is not None else []

    def _called_objects(self, site: FunctionSite) -> list[CallSite]:
        """Calls of objects of the class, in the files that make them."""
        owner = site.module.parent(site.node)
        uses = constructions(self.project, site.module, owner) if isinstance(owner, ast.ClassDef) else None
        found: list[CallSite] = []
        for module in {id(c.module): c.module for c in (uses.calls if uses else ())}.values():
            for state in self.states(module):
                calls = {id(c): c for c in module.nodes(ast.Call)}
                found += [CallSite(module, calls[i]) for i, t in state.targets.items() if t.key == site.key and i in calls]
        return found

    def _of_hook(self, site: FunctionSite, name: str) -> Value | None:
        """The batch that Lightning hands to a step: each rank has its own."""
        owner = site.module.class_of(site.node)
        if owner is None:
            return None
        facts = class_facts(self.project, site.module, owner)
        if site.node.name.endswith(("_batch_end", "_batch_start")) and name in _GIVEN_BATCH:
            if not facts.is_a(Role.LIGHTNING_CALLBACK) and not facts.is_a(Role.LIGHTNING_MODULE):
                return None
        elif site.node.name in ("compute_loss", "prediction_step") and name == "inputs" and facts.is_a(Role.HF_TRAINER):
            pass
        elif site.node.name not in _BATCHES or (name not in _GIVEN_BATCH and name != _second(site.node)) or not facts.is_a(Role.LIGHTNING_MODULE):
            return None
        link = Link(site.module.path, site.node.lineno, f"`{name}` of {site.node.name} is this rank's own")
        return differing(Cause.DATA, Proof.PROVEN, link)


def _second(function: FunctionNode) -> str:
    names = parameters(function)
    return names[1] if len(names) > 1 else ""




def _handlers(module: SourceModule) -> frozenset[str]:
    """The names of the functions that `signal.signal` is handed."""
    return frozenset(last(dotted(c.args[1])) for c in module.calls_named("signal") if len(c.args) == 2)


def _signalled(module: SourceModule) -> frozenset[str]:
    if b"signal" not in module.data:
        return frozenset()
    found: set[str] = set()
    handlers = _handlers(module)
    for function in (f for f in module.functions if f.name in handlers):
        outer = {name for n in walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        for assign in (n for n in walk(function) if isinstance(n, ast.Assign)):
            for target in assign.targets:
                if isinstance(target, ast.Name) and target.id in outer:
                    found.add(target.id)
                elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    found.add(f"{dotted(target.value)}[{target.slice.value!r}]")
                elif isinstance(target, ast.Attribute) and not dotted(target).startswith("self."):
                    found.add(dotted(target))
    return frozenset(found)


def _set_by_signals(site: ClassSite) -> frozenset[str]:
    handlers = _handlers(site.module)
    found: set[str] = set()
    for name, method in site.methods().items():
        if name in handlers:
            targets = (t for n in walk(method) if isinstance(n, ast.Assign) for t in n.targets)
            found |= {t.attr for t in targets if isinstance(t, ast.Attribute) and dotted(t.value) == "self"}
    return frozenset(found)


def _has_buffers(project: Project, site: ClassSite, seen: frozenset[int] = frozenset()) -> bool | None:
    """Does a model have buffers? None where it is put together from what the source does not show."""
    known: bool | None = False
    for node in walk(site.node):
        if not isinstance(node, ast.Call):
            continue
        name, full = dotted(node.func), qualified(site.module, node.func)
        if "BatchNorm" in last(name) or last(name) == "register_buffer" or full.startswith(("torchvision.models.", "timm.")):
            return True
        if full.startswith(("torch.", "super", "self.")) or not name or id(node) in seen:
            continue
        part = find_class(project, site.module, name) if last(name)[:1].isupper() and len(seen) < DEPTH else None
        if part is not None:
            found = False if id(part.node) in seen else _has_buffers(project, part, seen | {id(site.node)})
            if found:
                return True
            known = None if found is None else known
        elif _is_part(site.module, node):
            known = None
    return known


def _is_part(module: SourceModule, node: ast.Call) -> bool:
    """True for `self.name = make(...)` with a function or class from elsewhere: a part of the model that is not seen."""
    up = module.parent(node)
    given = isinstance(up, ast.Assign) and any(isinstance(t, ast.Attribute) for t in up.targets)
    return given and (dotted(node.func).partition(".")[0] in module.imports)
