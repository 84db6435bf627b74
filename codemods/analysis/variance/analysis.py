"""The analysis of a project: each function interpreted once; what parameters and fields hold is asked where it is needed."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.functions import functions_by_name
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.buffers import has_buffers
from codemods.analysis.variance.callers import Callers
from codemods.analysis.variance.expressions import value_of
from codemods.analysis.variance.fields import Fields
from codemods.analysis.variance.parallel_files import is_parallel
from codemods.analysis.variance.reading import interpret
from codemods.analysis.variance.scopes import last_bound, may_bind
from codemods.analysis.variance.settling import Settling
from codemods.analysis.variance.signal_events import asked_events
from codemods.analysis.variance.signals import set_in_class, set_in_file
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import UNKNOWN, Kind, Thing, Value, join
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_Key = tuple[str, int, int]
LARGE = 400  # Python files of a project in which a way from call to call may lead through most of it
MOST_READ = 100  # functions that are interpreted for one file of such a project: what lies farther away is unknown


def variance(project: Project) -> Analysis:
    """The one analysis of a project."""
    return project.memo("variance", lambda: Analysis(project))


def begin_file(project: Project) -> None:
    """A file is judged next: in a large project it is judged by itself, and with a bound on what is read for it.

    In a library of 2,900 files one question came to 2,200 functions of 230 others.
    """
    if len(project.python_files) > LARGE:
        variance(project).begin()


class Analysis:
    """Summaries of functions, worked out on demand; a function that is being worked on is taken for one that changes nothing."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.settling: Settling[State | Value | Thing | None] = Settling(project)
        self._running: dict[_Key, State] = {}
        self._left: int | None = None  # functions that may still be interpreted for this file
        self._callers = Callers(self)
        self._fields = Fields(self, self._callers)

    def begin(self) -> None:
        """Forget what was worked out for another file, which had its own bound."""
        self.settling = Settling(self.project)
        self._left = MOST_READ

    # Functions

    def of(self, site: FunctionSite) -> State | None:
        """The function as it was interpreted; None while that is going on, or where it cannot be read."""
        if not self.settling.is_known(site.key):
            # first, whoever asks: it calls the function, and the function reads what it sets
            self.settling.aside((site.module.path, 0, 0), lambda: self.top_level(site.module))
        return self._read(site.key, site.module, site.node)

    def top_level(self, module: SourceModule) -> State | None:
        """The statements of a file outside of functions."""
        return self._read((module.path, 0, 0), module, None)

    def _read(self, key: _Key, module: SourceModule, function: FunctionNode | None) -> State | None:
        if self._left is not None and not self.settling.is_known(key):
            if not self._left:
                self.project.order_counts()  # of two questions about a file the first may have read more
                return None
            self._left -= 1

        def build() -> State | None:
            state = self._running[key] = State(self, module, function, value_of)
            try:
                interpret(state, state.body)
            except RecursionError:  # an expression of a thousand terms: nothing is known of the function
                return None
            finally:
                del self._running[key]
            return state

        found = self.settling.answer(key, build, None)
        assert found is None or isinstance(found, State)
        return found

    def running(self, module: SourceModule, site: FunctionSite | None) -> State | None:
        """The function, or the file itself, while it is being worked on: what is known of it so far."""
        key = site.key if site is not None else (module.path, 0, 0)
        return self._running[key] if self.settling.rests_on(key) else None

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

    def tested(self, module: SourceModule, test: ast.expr) -> Value:
        """What is known of a test: whether something is there is another question than what it holds."""
        function = module.function_of(test)
        site = FunctionSite(module, function) if function else None
        state = self.of(site) if site else self.top_level(module)
        if state is None:
            return UNKNOWN
        return self.resolved(site, state.tests.get(id(test)) or state.values.get(id(test), UNKNOWN))

    def argument(self, module: SourceModule, call: ast.Call, index: int | str) -> Value:
        """What is known of an argument of a call, by its position or keyword."""
        given = {k.arg: k.value for k in call.keywords if k.arg}
        if isinstance(index, str):
            return self.value(module, given[index]) if index in given else UNKNOWN
        return self.value(module, call.args[index]) if index < len(call.args) else UNKNOWN

    def global_value(self, module: SourceModule, name: str) -> Value | None:
        if not may_bind(self.project, module, None, name):
            return None  # not asked of the file: an answer that rests on an open question is worked out again
        key = (module.path, 0, 0)
        now = self._running.get(key)
        if now is not None and now.within is not None and last_bound(self.project, module, name) < now.within.lineno:
            self.settling.rests_like(key)  # nothing that is still to be read gives it another value
            return now.env.get(name)
        state = self.top_level(module) or self.running(module, None)
        return state.env.get(name) if state is not None else None

    def is_parallel(self, module: SourceModule) -> bool:
        """True where several processes are seen to run the file."""
        return is_parallel(self.project, module)

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
        if site is None:
            return None
        kind = self._kind(site)
        return Thing(kind, site, self.waits(site) if kind is Kind.MODULE else False)

    def _kind(self, site: ClassSite) -> Kind:
        facts = class_facts(self.project, site.module, site.node)
        return Kind.MODULE if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE) else Kind.INSTANCE

    def thing_of(self, module: SourceModule, function: FunctionNode, name: str) -> Thing | None:
        """What object all callers that are seen hand over for a parameter."""
        return self._callers.given(FunctionSite(module, function), name).thing

    # Functions inside of functions

    def local_function(self, module: SourceModule, function: FunctionNode, name: str) -> FunctionSite | None:
        """A function of that name that is defined inside of `function`."""
        found = [f for f in functions_by_name(module).get(name, ()) if module.function_of(f) is function]
        if module.class_of(function) is None:
            found = [f for f in found if module.class_of(f) is None]
        else:
            found = [f for f in found if module.class_of(f) is None] or found
        return FunctionSite(module, found[-1]) if found else None

    def enclosing_value(self, module: SourceModule, function: FunctionNode, name: str) -> Value | None:
        """What a name means in an inner function that does not bind it: what the function round it has bound it to."""
        outer = module.function_of(function)
        if outer is None or not may_bind(self.project, module, outer, name):
            return None
        site = FunctionSite(module, outer)
        state = self.running(module, site) or self.of(site)
        if state is None or name not in state.env:
            return None
        return self.resolved(site, state.env[name])

    # Parameters, fields of objects

    def resolved(self, site: FunctionSite | None, value: Value) -> Value:
        """The value with what its function is given by its callers, and with what its fields hold."""
        return self._callers.resolved(site, value)

    def field(self, site: ClassSite, name: str) -> Value:
        """What the methods of a class put into `self.name`, joined; parameters are asked of the callers."""
        return self._fields.value(site, name)

    def field_thing(self, site: ClassSite, name: str) -> Thing | None:
        """What object the methods of a class put into `self.name`, as far as they make it themselves: no caller is asked."""
        return self._fields.thing(site, name)

    def signalled(self, module: SourceModule) -> frozenset[str]:
        """The names and entries (`flag["stop"]`) that a signal handler of the file sets, and questions about an event of one."""
        return self.project.memo(("signalled", module.path), lambda: set_in_file(module) | asked_events(self.project, module))

    def shaken(self, site: ClassSite) -> frozenset[str]:
        """The fields that a signal handler of the class sets."""
        return self.project.memo(("shaken", site.module.path, site.node.lineno), lambda: set_in_class(site))

    def waits(self, site: ClassSite) -> bool | None:
        """True for a model with buffers (BatchNorm, `register_buffer`), its parts in the project included."""
        return self.project.memo(("buffers", site.module.path, site.node.lineno), lambda: has_buffers(self.project, site))

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
