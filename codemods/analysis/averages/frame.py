"""What is known while one function is read for its averages: the numbers by their names, the loops round the statement."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.averages.scale import At, Number, Scale
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.values import UNKNOWN, Cause, How, Kind, Value
from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project

DEEPEST = 4  # calls into each other


@record
class Shown:
    """A number that is shown: by which call, as it is written, and its scale."""

    call: At
    text: str
    scale: Scale


class Reading:
    """One program part that is read from its outermost function on. counts: what each open count is of. shown: what was met."""

    def __init__(self, project: Project, analysis: Analysis) -> None:
        self.project, self.analysis = project, analysis
        self.counts: dict[str, tuple[SourceModule, ast.expr]] = {}
        self.shown: list[Shown] = []


class Frame:
    """env: access path -> number. begun: path -> how many loops stood round its first value. loops: how often each of the loops
    round the statement runs, None where that is not known. called: parameter -> the path that was handed over for it.
    """

    def __init__(
        self,
        reading: Reading,
        module: SourceModule,
        site: FunctionSite | None,
        evaluate: Callable[[Frame, ast.expr], Number],
        run: Callable[[Frame, ast.Call], Number],
    ) -> None:
        self.reading, self.module, self.site, self._evaluate, self._run = reading, module, site, evaluate, run
        self.env: dict[str, Number] = {}
        self.begun: dict[str, int] = {}
        self.loops: list[Scale | None] = []
        self.over_data = 0
        self.called: dict[str, str] = {}
        self.changed: set[str] = set()
        self.returned: list[Number] = []
        self.depth = 0

    def of(self, node: ast.expr) -> Number:
        return self._evaluate(self, node)

    def inlined(self, call: ast.Call) -> Number:
        """What a function of the project gives for the numbers that a call hands over."""
        return self._run(self, call)

    def scale_of(self, node: ast.expr) -> Scale | None:
        found = self.of(node)
        return found if isinstance(found, Scale) else None

    def at(self, node: ast.expr | ast.stmt) -> At:
        return At(self.module, node)

    def target(self, call: ast.Call) -> FunctionSite | None:
        """The function of the project that a call runs."""
        analysis = self.reading.analysis
        state = analysis.of(self.site) if self.site is not None else analysis.top_level(self.module)
        return state.targets.get(id(call)) if state is not None else None

    def value(self, node: ast.expr) -> Value:
        """What is known of an expression over the ranks."""
        return known_value(self.reading.analysis, self.module, node)

    def is_of_batch(self, node: ast.expr) -> bool:
        """True for what is made of the batch, or the record, of one round, and of nothing that was put together before."""
        if not self.over_data:
            return False
        value = self.value(node)
        return value.differs and value.cause is Cause.DATA and not value.mean

    def is_by_data(self, node: ast.expr) -> bool:
        """True for a number that the rank's own data make, so that each rank has another one."""
        return self.value(node).is_of_own_data

    def many(self, path: str, node: ast.expr) -> Scale:
        """How many items there are in what stands at a path, to be said later."""
        root, _, rest = path.partition(".")
        name = self.called.get(root, f"{self.module.path}:{self._scope(root)}:{root}")
        name = f"{name}.{rest}" if rest else name
        self.reading.counts.setdefault(name, (self.module, node))
        return Scale(open=((name, 1),), own=True)

    def _scope(self, root: str) -> str:
        if root == "self":
            owner = self.module.class_of(self.site.node) if self.site is not None else None
            return owner.name if owner is not None else ""
        return f"{self.site.node.name}@{self.site.node.lineno}" if self.site is not None else ""

    def resolved(self, scale: Scale) -> Scale | None:
        """The scale with its open counts said: a share is a part of the whole; None where one of them is not known."""
        power = scale.power
        for name, times in scale.open:
            module, node = self.reading.counts[name]
            known = share_of(self.reading.analysis, known_value(self.reading.analysis, module, node))
            if known is None:
                return None
            power += known * times
        return replace(scale, power=power, open=())


def known_value(analysis: Analysis, module: SourceModule, node: ast.expr) -> Value:
    """What is known of an expression; of a name that was not read there, what the function leaves it with."""
    found = analysis.value(module, node)
    path = path_of(node)
    if found is not UNKNOWN or not path:
        return found
    function = module.function_of(node)
    site = FunctionSite(module, function) if function is not None else None
    state = analysis.of(site) if site is not None else analysis.top_level(module)
    return analysis.resolved(site, state.env[path]) if state is not None and path in state.env else UNKNOWN


def share_of(analysis: Analysis, value: Value) -> int | None:
    """-1 for what each rank has a share of, 0 for what each has whole; None where it is not shown."""
    origin = value.origin
    if value.kind is Kind.LOADER:
        shared = value.differs and origin is not None and not origin.by_name and origin.how in (How.SAMPLED, How.SHARE)
        return -1 if shared else None
    if value.kind is Kind.SAMPLER:  # as a value it is the same on every rank; what it counts are the samples of one
        return -1
    if value.thing is not None and value.thing.site is not None:
        value = _length(analysis, value.thing.site)
    if value.differs and value.sized and any(link.how is How.SHARE for link in value.chain):
        return -1
    return 0 if value.cause is Cause.SAME and value.proof else None


def _length(analysis: Analysis, site: ClassSite) -> Value:
    """What `__len__` of a class gives."""
    method = class_facts(analysis.project, site.module, site.node).method("__len__")
    return analysis.result_of(*method) if method is not None else UNKNOWN
