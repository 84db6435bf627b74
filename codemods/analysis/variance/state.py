"""What an interpretation of one function holds while it runs, and what it leaves behind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.ranks.trace_items import Step
from codemods.analysis.variance.paths import parameters
from codemods.analysis.variance.values import How, Link, Thing, Value
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project
from codemods.store.tables import Table


@record
class Meeting:
    """A collective that a statement comes to, in the function itself or behind calls; the last step is the collective.

    must: no branch or handler of the called functions stands round it. carries: it makes values equal. needs: the parameter that
    has to be a model of which each forward is a collective. maybe: a forward that waits if the model, which is not seen, has
    buffers. heir: a class derived from that of the called method makes it, and no other may.
    """

    name: str
    steps: tuple[Step, ...]
    must: bool = True
    carries: bool = False
    needs: str = ""
    maybe: bool = False
    heir: bool = False

    @property
    def text(self) -> str:
        return self.steps[-1].text

    @property
    def place(self) -> tuple[str, int]:
        return self.steps[-1].path, self.steps[-1].line


STEP = "optimizer step"


@record
class Told:
    """A number that is handed to something that decides by it: a scheduler."""

    call: ast.Call
    value: Value


class Summaries(Protocol):
    """What an interpretation asks of the rest of the project."""

    project: Project

    def of(self, site: FunctionSite) -> State | None: ...
    def field_thing(self, site: ClassSite, name: str) -> Thing | None: ...
    def field(self, site: ClassSite, name: str) -> Value: ...
    def global_value(self, module: SourceModule, name: str) -> Value | None: ...
    def is_parallel(self, module: SourceModule) -> bool: ...
    def annotated(self, module: SourceModule, annotation: ast.expr) -> Thing | None: ...
    def local_function(self, module: SourceModule, function: FunctionNode, name: str) -> FunctionSite | None: ...
    def enclosing_value(self, module: SourceModule, function: FunctionNode, name: str) -> Value | None: ...
    def shaken(self, site: ClassSite) -> frozenset[str]: ...
    def thing_of(self, module: SourceModule, function: FunctionNode, name: str) -> Thing | None: ...
    def waits(self, site: ClassSite) -> bool | None: ...
    def signalled(self, module: SourceModule) -> frozenset[str]: ...
    def count_of(self, site: ClassSite, method: FunctionNode) -> Value: ...
    def result_of(self, site: ClassSite, method: FunctionNode) -> Value: ...


class State:
    """What is known at the present statement, and what is left behind when the function has ended.

    Now: env: access path (`loss`, `self.best`) -> value. control: what decides over the statement. begun: what decided over the
    statement that gave a name its value last. data_loops: the loops round it
    that go through batches. counts: by what the rounds of the loops round it differ. keys: (the key, the dict) of those loops.
    alike: names that both ways of a test give the same. in_place: the branches and handlers round it, which not every rank
    enters for sure. within: the outermost statement that is being read.
    Left behind, by the identity of the node: values (of expressions), tests (what they decide), met (call -> collectives),
    conditional (calls in branches), given (call -> parameter -> value), targets (call -> the function that is run).
    Left behind of the function: returns and their join, result; one_return: all of them read the same. sets: attributes of self.
    reduced: parameters that are made equal. made_same: all paths that are. filled: containers that it is handed and fills.
    counted: by what the number of items that it yields differs. told, stops: numbers for schedulers, flags that tell the
    framework to stop.
    as_ranks: of the file, what its expressions are that were asked for the rank, by themselves.
    """

    def __init__(
        self,
        summaries: Summaries,
        module: SourceModule,
        function: FunctionNode | None,
        evaluate: Callable[[State, ast.expr | None], Value],
    ) -> None:
        self.summaries, self.module, self.function = summaries, module, function
        self.project = summaries.project
        self.as_ranks: Table[ast.expr, Value | None] = self.project.memo(
            ("as ranks", module.path), lambda: Table(self.project)
        )
        self.signalled = summaries.signalled(module)  # names and entries that a signal handler of the file sets
        self.value = partial(evaluate, self)  # what an expression is; handed in, for it asks the modules that ask it
        self.env: dict[str, Value] = {}
        self.control: list[Value] = []
        self.begun: dict[str, tuple[Value, ...]] = {}
        self.data_loops = 0
        self.counts: list[Value] = []
        self.keys: list[tuple[str, str]] = []
        self.alike: list[set[str]] = []
        self.in_place = 0
        self.within: ast.stmt | None = None
        self.values: dict[int, Value] = {}
        self.tests: dict[int, Value] = {}
        self.met: dict[int, tuple[Meeting, ...]] = {}
        self.conditional: set[int] = set()
        self.given: dict[int, dict[str, Value]] = {}
        self.targets: dict[int, FunctionSite] = {}
        self.returns: list[Value] = []
        self.result: Value | None = None
        self.one_return = False
        self.alike_parts: frozenset[int] = frozenset()
        self.sets: dict[str, Value] = {}
        self.reduced: set[str] = set()
        self.made_same: set[str] = set()
        self.filled: set[str] = set()
        self.counted: list[Value] = []
        self.told: list[Told] = []
        self.stops: list[tuple[ast.stmt, Value]] = []

    @property
    def site(self) -> FunctionSite | None:
        return FunctionSite(self.module, self.function) if self.function is not None else None

    @property
    def body(self) -> list[ast.stmt]:
        return self.function.body if self.function is not None else self.module.tree.body

    def outermost(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements of the body, each noted while it is read."""
        for self.within in body:
            yield self.within

    @property
    def is_parallel(self) -> bool:
        return self.summaries.is_parallel(self.module)

    def own_class(self, node: ast.AST) -> ClassSite | None:
        """The class that `self` is an object of at this node."""
        owner = self.module.class_of(node)
        return class_facts(self.project, self.module, owner).lineage[0] if owner is not None else None

    def carries(self) -> bool:
        """True where a collective of the function makes values equal."""
        return any(m.carries for meetings in self.met.values() for m in meetings)

    def link(self, node: ast.AST, text: str, *, by_name: bool = False, how: How = How.WRITTEN) -> Link:
        return Link(self.module.path, getattr(node, "lineno", 0), text, by_name, how)

    def short(self, node: ast.AST) -> str:
        text = " ".join(self.module.text_of(node).split())
        return text if len(text) <= 60 else text[:57] + "..."

    def is_parameter(self, name: str) -> bool:
        return name in parameters(self.function)
