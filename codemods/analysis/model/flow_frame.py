"""One call of one function on paper: its file, its class, the values its returns and loops collect."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.model.flow_values import Names, Ref, Value
from codemods.analysis.model.signatures import parameters
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import field, record

Env = dict[str, Value]
Place = tuple[str, int]  # path, line


class TooDeep(Exception):
    """The model is too large to follow."""


@record(frozen=False)
class Frame:
    """One call of one function.

    exits: returned values with the undecided test they stand under, if any. owner: where the module hangs whose method it is.
    """

    module: SourceModule
    function: FunctionNode | ast.Lambda
    facts: ClassFacts | None
    exits: list[tuple[Value, ast.expr | None]] = field(default_factory=list)
    loops: list[list[tuple[Env, ast.expr | None]]] = field(default_factory=list)
    breaks: list[list[tuple[Env, ast.expr | None]]] = field(default_factory=list)
    tests: list[ast.expr] = field(default_factory=list)
    no_grad: int = 0
    root: bool = False
    owner: str = ""

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset(a.arg for a in parameters(self.function, bound=False)) - {"self"}


@record
class Branch:
    """An `if` whose answer the source does not decide, and what it costs: names of the modules only one side uses.

    absent: it asks whether something is None.
    """

    text: str
    path: str
    line: int
    lost: Names
    absent: bool = False


def asks_for_none(test: ast.expr) -> bool:
    return any(isinstance(n, ast.Constant) and n.value is None for n in ast.walk(test))


@record
class Bound:
    """The object a method is bound to."""

    ref: Ref
    facts: ClassFacts
    module: SourceModule


@record
class Pass:
    """One `loss.backward()`, and what had been found on the way by then."""

    loss: Value
    path: str
    line: int
    text: str
    assumptions: tuple[str, ...]
    problems: tuple[str, ...]
    decisions: int


@record(frozen=False)
class Loop:
    """A run that starts outside of the model: its object, its class, and the backward passes that are met."""

    root: Ref
    node: ast.ClassDef
    passes: list[Pass] = field(default_factory=list)
