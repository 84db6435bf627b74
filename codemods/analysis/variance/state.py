"""What an interpretation of one function holds while it runs, and what it leaves behind."""

from __future__ import annotations

import ast
from typing import Protocol

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite
from codemods.analysis.names import dotted
from codemods.analysis.ranks.trace_items import Step
from codemods.analysis.variance.values import Link, Thing, Value
from codemods.project import Project
from codemods.record import record
from codemods.source import FunctionNode, SourceModule


@record
class Meeting:
    """A collective that a statement comes to, in the function itself or behind calls; the last step is the collective.

    must: nothing but the number of processes decides over it in the called functions. carries: it makes values equal.
    needs: the parameter that has to be a model of which each forward is a collective. maybe: a forward that waits if the model, which
    is not seen, has buffers.
    """

    name: str
    steps: tuple[Step, ...]
    must: bool = True
    carries: bool = False
    needs: str = ""
    maybe: bool = False

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
    """env: access path (`loss`, `self.best`) -> value. control: what decides over the present statement.

    Left behind: met: call -> the collectives it comes to. values, tests: expression -> value. given: call -> parameter -> value, with targets:
    call -> the function. returns, sets (attributes of self), reduced (parameters that are made
    equal), filled (containers it is handed), told. alike: names that every branch gives the same.
    """

    def __init__(self, summaries: Summaries, module: SourceModule, function: FunctionNode | None) -> None:
        self.summaries, self.module, self.function = summaries, module, function
        self.project = summaries.project
        self.env: dict[str, Value] = {}
        self.control: list[Value] = []
        self.data_loops = 0
        self.met: dict[int, tuple[Meeting, ...]] = {}
        self.tests: dict[int, Value] = {}
        self.given: dict[int, dict[str, Value]] = {}
        self.targets: dict[int, FunctionSite] = {}
        self.returns: list[Value] = []
        self.sets: dict[str, Value] = {}
        self.reduced: set[str] = set()
        self.made_same: set[str] = set()
        self.counts: list[Value] = []
        self.counted: list[Value] = []
        self.one_return = False
        self.filled: set[str] = set()
        self.keys: list[tuple[str, str]] = []
        self.alike: list[set[str]] = []
        self.told: list[Told] = []
        self.stops: list[tuple[ast.stmt, Value]] = []
        self.values: dict[int, Value] = {}
        self.in_place = 0  # conditional blocks round the present statement that not every process of a run enters for sure
        self.conditional: set[int] = set()  # calls inside of such blocks
        self.result: Value | None = None

    def link(self, node: ast.AST, text: str, *, by_name: bool = False) -> Link:
        return Link(self.module.path, getattr(node, "lineno", 0), text, by_name)

    def short(self, node: ast.AST) -> str:
        text = " ".join(self.module.text_of(node).split())
        return text if len(text) <= 60 else text[:57] + "..."

    def is_parameter(self, name: str) -> bool:
        return name in parameters(self.function)


def parameters(function: FunctionNode | None) -> tuple[str, ...]:
    """The names of all parameters, in the order in which positions fill them; starred ones last."""
    if function is None:
        return ()
    spec = function.args
    return tuple(a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))))


def path_of(node: ast.AST) -> str:
    """The access path that a value is kept under: `x`, `self.x`, `x` for `x[0]`; "" for anything else."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return dotted(node)
